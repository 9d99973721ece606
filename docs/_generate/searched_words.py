"""Arguments of public functions, classes and methods: what a search of the site must find, however common a word."""

import inspect
from collections.abc import Iterator
from typing import Any

from docs._generate.entries import is_elsewhere, members, shared_classes
from docs._generate.public_names import PAGES, Page, full_name, public_names


def documented(page: Page) -> Iterator[tuple[str, Any]]:
    """The names that have an entry on a page, and what they are; methods are part of their class's entry."""
    for name, one in public_names(page).items():
        if not is_elsewhere(page, name):
            yield full_name(page, name), one
    yield from ((f"{one.__module__}.{one.__name__}", one) for one in shared_classes(page))


def arguments_of(one: Any) -> dict[str, list[str]]:
    """The arguments of a function or of a class and its methods, by the method's name, "" for its own.

    Those that `**` collects have no names, and an abstract class or an enumeration is not called.
    """
    found = {} if inspect.isabstract(one) or not callable(one) else {"": _names(one)}
    for name, _ in members(one) if inspect.isclass(one) else ():
        if inspect.isroutine(method := getattr(one, name)):
            is_plain = not isinstance(inspect.getattr_static(one, name), staticmethod | classmethod)
            found[name] = _names(method)[is_plain:]
    return found


def _names(called: Any) -> list[str]:
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters.values() if one.kind is not one.VAR_KEYWORD]


def every_argument() -> frozenset[str]:
    """The names of the arguments of everything that the reference documents."""
    entries = [one for page in PAGES for _, one in documented(page)]
    return frozenset(name for one in entries for names in arguments_of(one).values() for name in names)
