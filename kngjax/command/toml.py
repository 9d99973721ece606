"""Reads tables of a TOML file as frozen dataclasses: a field is a key, and its type says what the value may be.

msgspec converts, strictly: no text is a number, and true is no 1. Decimal numbers are kept as they are written until
then. All values are public, and errors show them.
"""

import functools
import glob
import inspect
import math
import operator
import pathlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

Level = str | bool | int | float
Text = Annotated[str, msgspec.Meta(min_length=1)]
Pair = tuple[float, float]

# What a value must be, of the types that keys have.
_WORDS = {
    float: "a number",
    Fraction: "a positive number",
    int: "a whole number",
    bool: "true or false",
    str: "text",
    Text: "text",
    Pair: "[lower, upper]",
    Level: "text or a number",
    dict[str, Level]: "a table, like { education = 12 }",
    dict[str, Text]: "a table, like { wage = 'dollars' }",
}


def convert(value: Any, kind: Any) -> Any:
    """Converts a value of the file to the type that its key declares; raises ValueError that says what it must be.

    One value stands for a list of one where the type is a tuple of any length. A `Fraction` is positive and exact.
    """
    if get_origin(kind) is tuple and Ellipsis in get_args(kind):
        if value == []:
            raise ValueError("must not be empty")
        return tuple(convert(part, get_args(kind)[0]) for part in (value if isinstance(value, list) else [value]))
    if kind is Fraction:
        if convert(value, float) <= 0:
            raise ValueError(f"must be positive, not {value}")
        return Fraction(value)
    if not _is_finite(value):
        raise ValueError(f"must be finite, not {shown(value)}")
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        stop = ";" if get_origin(kind) is Literal else ","
        raise ValueError(f"must be {in_words(kind)}{stop} not {shown(value)}") from None
    if kind == Pair and not converted[0] < converted[1]:
        raise ValueError(f"must be [lower, upper] with lower < upper, not {shown(value)}")
    return converted


def in_words(kind: Any) -> str:
    """Says what a value of this type must be: "a number", "one of replace, add_remove"."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple and Ellipsis in get_args(kind):
        return f"{in_words(get_args(kind)[0])}, or a list of such"
    return _WORDS[kind]


def _is_finite(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    try:
        return not isinstance(value, int | Decimal) or math.isfinite(float(value))
    except (OverflowError, ValueError):  # a whole number beyond all floats, a signaling NaN
        return False


def shown(value: Any) -> str:
    """Writes a value of the file as its reader would."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {shown(part)}' for name, part in value.items())} }}"
    return str(value) if isinstance(value, Decimal) else repr(value)


def read_table(kind: type, table: Any, where: str) -> Any:
    """Reads one table as a dataclass of this kind.

    Raises ValueError that starts with `where`, the file and the table, and names the key.
    """
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    check_keys(table, inspect.signature(kind).parameters, where)
    hints, settings = get_type_hints(kind, include_extras=True), {}
    for name, value in table.items():
        try:
            settings[name] = convert(value, without_none(hints[name]))
        except ValueError as error:
            raise ValueError(f"{where} {name}: {error}") from None
    try:
        return kind(**settings)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None


def without_none(kind: Any) -> Any:
    """Takes None out of a type, since no value of a file is None."""
    parts = [part for part in get_args(kind) if part is not type(None)]
    return functools.reduce(operator.or_, parts) if type(None) in get_args(kind) else kind


def refuse_unknown(table: dict[str, Any], known: Sequence[str], where: str, what: str) -> None:
    """Raises ValueError that lists the known names if there is another one, which may be a misspelling."""
    for name in table:
        if name not in known:
            raise ValueError(f"{where} has an unknown {what} {name!r}; known are {', '.join(known)}")


def check_keys(
    table: dict[str, Any], known: Mapping[str, inspect.Parameter], where: str, others: Sequence[str] = ()
) -> None:
    """Raises ValueError for keys that are no parameter and none of the others, and for a parameter that is missing."""
    refuse_unknown(table, [*known, *others], where, "key")
    for name, one in known.items():
        if one.default is inspect.Parameter.empty and name not in table:
            raise ValueError(f"{where} needs the key {name!r}")


def plain(value: Any) -> Any:
    """Makes a value of the file one of Python, with floats for decimal numbers."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def beside(file: pathlib.Path, named: str) -> pathlib.Path:
    """Finds a path or pattern that a file names: relative to its folder, or else to the working directory."""
    found = file.parent / named
    return found if found.exists() or glob.glob(str(found)) else pathlib.Path(named)
