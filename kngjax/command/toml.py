"""Tables of a TOML file as frozen dataclasses: a field is a key, with a converter that says what its value may be.

Decimal numbers are kept as they are written until they are converted. All values are public, and errors show them.
"""

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

Level = str | bool | int | float


def key(convert: Callable[[Any], Any], advice: str = "") -> dict[str, Any]:
    """The metadata of a dataclass field that is a key of a table; `advice` is what to write when it is missing."""
    return {"convert": convert, "advice": advice}


def number(value: Any) -> float:
    """A finite number as a float; TypeError or ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"must be a number, not {shown(value)}")
    try:
        nearest = float(value)
    except (OverflowError, ValueError):  # a whole number beyond all floats, a signaling NaN
        nearest = math.inf
    if not math.isfinite(nearest):
        raise ValueError(f"must be finite, not {shown(value)}")
    return nearest


def positive(value: Any) -> Fraction:
    """A positive number, exactly as it is written."""
    if number(value) <= 0:
        raise ValueError(f"must be positive, not {value}")
    return Fraction(value)


def whole(value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"must be a whole number, not {shown(value)}")
    return value


def switch(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false, not {shown(value)}")
    return value


def text(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"must be text, not {shown(value)}")
    return value


def pair(value: Any) -> tuple[float, float]:
    """Two finite numbers [lower, upper] in this order."""
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"must be [lower, upper], not {shown(value)}")
    lower, upper = (number(side) for side in value)
    if not lower < upper:
        raise ValueError(f"must be [lower, upper] with lower < upper, not {shown(value)}")
    return lower, upper


def one_or_more(convert: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A converter of one value, or of a list of them, to a tuple."""

    def converted(value: Any) -> tuple[Any, ...]:
        if value == []:
            raise ValueError("must not be empty")
        return tuple(convert(part) for part in (value if isinstance(value, list) else [value]))

    return converted


def choice(*known: str) -> Callable[[Any], str]:
    """A converter that lets only these words pass."""

    def chosen(value: Any) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}; not {shown(value)}")
        return value

    return chosen


def level(value: Any) -> Level:
    """A level of a category, or a finite number; a whole one is kept as it is."""
    if isinstance(value, str | bool):
        return value
    nearest = number(value)
    return value if isinstance(value, int) else nearest


def fixed_values(value: Any) -> dict[str, Level]:
    """A table of one value a column."""
    if not isinstance(value, dict):
        raise TypeError(f"must be a table, like {{ education = 12 }}, not {shown(value)}")
    return {column: level(part) for column, part in value.items()}


def domain(value: Any) -> tuple[str, tuple[Any, ...]]:
    """The name of a domain with its sizes: numbers, or for a box lists of them."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("box", "l1_ball", "l2_ball"):
        raise ValueError(
            f"must be one of {{ box = [lower, upper] }}, {{ l1_ball = radius }}, {{ l2_ball = radius }}; not "
            f"{shown(value)}"
        )
    shape, size = next(iter(value.items()))
    if shape != "box":
        return shape, (number(size),)
    if not isinstance(size, list) or len(size) != 2:
        raise TypeError(f"box must be [lower, upper], not {shown(size)}")
    return shape, tuple([number(end) for end in side] if isinstance(side, list) else number(side) for side in size)


def pairs_of_a_table(value: Any) -> list[tuple[str, Any]]:
    """The keys and values of a table; none of what is no table."""
    return list(value.items()) if isinstance(value, dict) else []


def shown(value: Any) -> str:
    """A value of the file as its reader would write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {shown(part)}' for name, part in value.items())} }}"
    return str(value) if isinstance(value, Decimal) else repr(value)


def read_table(kind: type, table: Any, where: str) -> Any:
    """One table as a dataclass of this kind, whose fields convert the values of their keys.

    Raises ValueError that starts with `where`, the file and the table, and names the key.
    """
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    refuse_unknown(table, list(fields), where, "key")
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in table:
            raise ValueError(f"{where} needs the key {name!r}{field.metadata['advice']}")
    settings: dict[str, Any] = {}
    for name, value in table.items():
        try:
            settings[name] = fields[name].metadata["convert"](value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where} {name}: {error}") from None
    try:
        return kind(**settings)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None


def refuse_unknown(table: dict[str, Any], known: list[str], where: str, what: str) -> None:
    """Raises ValueError that lists the known names if there is another one, which may be a misspelling."""
    for name in table:
        if name not in known:
            raise ValueError(f"{where} has an unknown {what} {name!r}; known are {', '.join(known)}")
