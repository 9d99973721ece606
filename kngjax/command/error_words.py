"""Puts errors of the library in the words of a job's file: the table and key that they are about, and advice."""

import contextlib
import inspect
from collections.abc import Iterator

from kngjax.command import named_parts
from kngjax.core.errors import field_of


@contextlib.contextmanager
def told(where: str) -> Iterator[None]:
    """Raises errors of public settings anew: `where`, then the key of [study] that they are about, then their words."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{in_words(error)}") from None


def in_words(error: BaseException) -> str:
    """Puts the words of an error in the terms of a file, if it is about an argument of a study."""
    name, *keys = field_of(error) or ("",)
    words = in_toml(str(error))
    if name not in inspect.signature(named_parts.public("Study")).parameters:
        return words
    return f"[study.{name}] {keys[0]}: {words}" if keys else f"[study] {name}: {words}"


def in_toml(message: str) -> str:
    """Writes the advice of a message with keys of [[analyses]] in place of arguments in Python."""
    for python, toml in _ADVICE.items():
        message = message.replace(python, toml)
    return message


_ADVICE = {
    "force=True": "force = true",
    "intervals=False": "intervals = false",
    "intervals=True": "intervals = true",
}
