"""Puts errors of the library in the words of a job's file: the table and key that they are about, and advice."""

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

from kngjax.command import named_parts
from kngjax.command.intervals_file import COVARIANCES
from kngjax.command.toml import shown
from kngjax.core.errors import field_of


@contextlib.contextmanager
def told(where: str) -> Iterator[None]:
    """Raises errors of public settings anew: `where`, then the key of [study] that they are about, then their words."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{in_words(error)}") from None


def in_words(error: BaseException) -> str:
    """The words of an error in the terms of a file; what is no argument of a study stays as it is."""
    name, *keys = field_of(error) or ("",)
    words = in_toml(str(error))
    if name not in inspect.signature(named_parts.public("Study")).parameters:
        return words
    return f"[study.{name}] {keys[0]}: {words}" if keys else f"[study] {name}: {words}"


def in_toml(message: str) -> str:
    """A message whose advice is written as in Python, with keys of [[analyses]] in its place."""
    for python, toml in _advice().items():
        message = message.replace(python, toml)
    return message


@functools.cache
def _advice() -> dict[str, str]:
    from kngjax.inference.foreseen_ends import OTHER_WAYS

    ways = {f"intervals={python}": f"intervals = {_of_covariance(one)}" for python, (one, _) in OTHER_WAYS.items()}
    return ways | {
        "force=True": "force = true",
        "intervals=False": "intervals = false",
        "intervals=True": "intervals = true",
    }


def _of_covariance(covariance: Any) -> str:
    """A covariance as a file writes it, with the settings that differ from its defaults or are always said."""
    [kind] = [key for key, name in COVARIANCES.items() if name.endswith(type(covariance).__name__)]
    given = {name: value for name, value in covariance.settings().items() if name != "type"}
    known = named_parts.parameters(type(covariance))
    said = {
        name: one for name, one in given.items() if one is not None and (name == "share" or one != known[name].default)
    }
    return shown({"covariance": kind} | said).replace("'", '"')
