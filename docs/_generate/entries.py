"""Entries of the reference: a directive of Sphinx's domain of Python around each docstring, which is Markdown."""

import enum
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import kngjax as kng
from docs._generate.public_names import PAGES, Page, bases, full_name, public_names
from docs._generate.signatures import signature_in_words

# A `<` that Markdown would read as a tag, outside of code.
_TAG = re.compile(r"(`[^`]*`)|<(?=[A-Za-z/!?])")


def page_of_names(page: Page) -> str:
    """The whole page in MyST Markdown: its names, and after them what their abstract classes have in common."""
    names, shared = public_names(page), shared_classes(page)
    parts = [f"# {page.title}", page.says]
    if not page.files:
        parts += [docstring(importlib.import_module(page.package)), _table_of(page)]
    else:
        parts.append(_table_of(page))
    for name, one in names.items():
        if not is_elsewhere(page, name):
            parts += [f"## {name}", entry(full_name(page, name), one)]
    if shared:
        parts += [
            "## What they share",
            "Abstract classes, whose methods and properties the classes above have as well.",
        ]
        parts += [entry(f"{one.__module__}.{one.__name__}", one) for one in shared]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table_of(page: Page) -> str:
    rows = []
    for name, one in public_names(page).items():
        home = f"kngjax.{name}" if is_elsewhere(page, name) else full_name(page, name)
        rows.append(f"| {{py:obj}}`~{home}` | {first_sentence(one)} |")
    return "\n".join(["| name | what it is |", "| --- | --- |", *rows])


def is_elsewhere(page: Page, name: str) -> bool:
    """Whether this is a public name of `kngjax` too, which has its entry under that shorter path."""
    return not page.files and getattr(kng, name, None) is public_names(page)[name]


def first_sentence(one: Any) -> str:
    """That of its docstring, in one line of a table."""
    text = " ".join(docstring(one).split("\n\n")[0].split())
    # The dots of "1, ..., n" end none.
    found = re.match(r"(?:`[^`]*`|[^`])*?(?<!\.)\.(?=\s|$)", text)
    return (found[0] if found else text).removesuffix(":").replace("|", r"\|")


def docstring(one: Any) -> str:
    """Its docstring as Markdown, without indentation; "" of what has none of its own, as a dictionary."""
    if not (inspect.ismodule(one) or inspect.isclass(one) or inspect.isroutine(one) or isinstance(one, property)):
        return ""
    return _TAG.sub(lambda found: found[1] or r"\<", inspect.getdoc(one) or "")


@functools.cache
def shared_classes(page: Page) -> tuple[type, ...]:
    """The abstract classes behind the names of a page that have documented members, and no entry on an earlier page."""
    earlier = {base for other in PAGES[: PAGES.index(page)] for base in _bases_of(other)}
    found = [base for base in _bases_of(page) if base not in earlier and dict(members(base))]
    return tuple(sorted(found, key=lambda base: len(bases(base))))


@functools.cache
def _bases_of(page: Page) -> tuple[type, ...]:
    classes = [one for one in public_names(page).values() if inspect.isclass(one)]
    public = {one for other in PAGES for one in public_names(other).values() if inspect.isclass(one)}
    return tuple(dict.fromkeys(base for one in classes for base in bases(one) if base not in public))


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class itself defines under public names with a docstring: methods, properties, and members of an enum."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") or name in getattr(kind, "__annotations__", {}):
            continue
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        plain = plain.func if isinstance(plain, functools.cached_property) else plain
        is_member = inspect.isroutine(plain) or isinstance(plain, property)
        # Equinox wraps methods.
        documented = getattr(plain, "__doc__", None) and (is_member or callable(plain))
        is_value = isinstance(member, kind) and isinstance(member, enum.Enum)
        if is_value or (documented and not inspect.isclass(plain)):
            yield name, member


def entry(name: str, one: Any) -> str:
    """The directive of one name, with those of its members inside of it."""
    if inspect.isclass(one):
        kind = "exception" if issubclass(one, BaseException) else "class"
        signature = "" if issubclass(one, enum.Enum) or inspect.isabstract(one) else signature_in_words(one)
        inside = [_inherited(one), *(_member(one, own, member) for own, member in members(one))]
        return _directive(kind, f"{name}{signature}", docstring(one), *inside)
    if inspect.isroutine(one) or callable(one):
        return _directive("function", f"{name}{signature_in_words(one)}", docstring(one))
    return _directive("data", name, "")


def _inherited(kind: type) -> str:
    named = [base for base in bases(kind) if any(base in shared_classes(page) for page in PAGES)]
    if not named:
        return ""
    return f"It has as well what {', '.join(f'{{py:class}}`~{one.__module__}.{one.__name__}`' for one in named)} has."


def _member(kind: type, name: str, member: Any) -> str:
    if isinstance(member, enum.Enum):
        return _directive("attribute", name, "", options=(f":value: {member.value!r}",), fence=":::::")
    if isinstance(member, property | functools.cached_property):
        getter = member.fget if isinstance(member, property) else member.func
        return _directive("property", name, docstring(getter), fence=":::::")
    options = ()
    if isinstance(member, classmethod | staticmethod):
        options = (f":{type(member).__name__}:",)
    bound = not isinstance(member, staticmethod | classmethod)
    method = getattr(kind, name)
    signature = signature_in_words(method, bound=bound)
    return _directive("method", f"{name}{signature}", docstring(method), options=options, fence=":::::")


def _directive(kind: str, argument: str, *content: str, options: tuple[str, ...] = (), fence: str = "::::::") -> str:
    head = "\n".join([f"{fence}{{py:{kind}}} {argument}", *options])
    return "\n\n".join([head, *(part for part in content if part)]) + f"\n{fence}"
