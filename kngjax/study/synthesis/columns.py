"""Columns of levels of a synthetic table, described by public facts alone."""

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from kngjax.data import cells
from kngjax.data.terms.base import is_number

# The type of a synthetic column by those of its levels.
_TYPES = ((np.bool_, {bool}), (np.int64, {int}), (np.float64, {int, float}))
# More whole numbers than these are a `Count` or `Numeric`.
MOST_OF_ORDINAL = 1000
# Settings that are lists, and those that may be any text.
_LISTS, _ANY_TEXT = frozenset(("levels", "parents", "heaps")), ("name", "other", "missing", "share")


class AbstractColumn(abc.ABC):
    """Describes a column of a synthetic table. All of it is public, and chosen without looking at the data.

    `name`: in the frame. `share`: its part of ε, or None for an equal part of what the others leave. `parents`: earlier
    columns of levels, for whose combinations it has a table each. `given`: the right side of a formula of earlier
    columns, which its quantile curves depend on; None without curves, or where they depend on nothing.
    """

    name: str
    share: Any
    parents: tuple[str, ...] = ()
    given: str | None = None

    @property
    @abc.abstractmethod
    def labels(self) -> tuple[Any, ...]:
        """Labels the cells of the column's table; empty where there is no table."""

    @property
    def drawn(self) -> Bool[np.ndarray, " labels"]:
        """Marks the labels that a synthetic table may have."""
        return np.ones(len(self.labels), bool)

    @property
    def is_parent(self) -> bool:
        """Tells whether a later column may have the column as a parent."""
        return True

    @property
    @abc.abstractmethod
    def facts(self) -> tuple[tuple[Any, Any] | None, tuple[str, ...] | None]:
        """Tells formulas of later columns the bounds of the column, or the text of its levels."""

    @abc.abstractmethod
    def read(self, column: Any) -> np.ndarray:
        """Returns the value of each private cell, shape (n,). Raises ValueError for one missing without `missing`."""

    def places(self, values: np.ndarray) -> Int[np.ndarray, " records"]:
        """Returns the index of each value among `labels`; the value itself, unless told."""
        return values

    def of_places(self, places: Int[np.ndarray, " records"]) -> np.ndarray:
        """Inverts `places`."""
        return places

    def in_formulas(self, values: np.ndarray) -> np.ndarray:
        """Values as formulas of later columns see them."""
        return values

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Values as a synthetic table has them."""
        return values

    def to_dict(self) -> dict[str, Any]:
        """Returns the column as JSON-ready values."""
        return {"type": type(self).__name__, **dataclasses.asdict(self)}  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class Category(AbstractColumn):
    """Describes a column of levels, which a table counts for each combination of levels of its parents.

    Each cell is read by itself. It is a declared level if `kngjax.data.cells` finds one in it, `other` if it has
    another number or text, and `missing` if it has neither. A synthetic column has the type of its levels: text, int64,
    float64 or bool. If levels are no text and `other` is another text, as by default, cells of `other` are counted and
    never drawn: the levels are drawn by their shares among one another.

    **Arguments:** all public. `name`: of the column. `levels`: all text or all numbers, which the data may have; levels
    read off the data would tell who is in them. `parents`: names of earlier columns, `Category` or `Ordinal`. `other`,
    `missing`: one of the levels, or a further one. With `missing` None a missing cell fails the release. `share`: its
    part of ε.
    """

    name: Any
    levels: Any
    parents: Any = ()
    other: Any = "other"
    missing: Any = None
    share: Any = None

    def __post_init__(self) -> None:
        make_plain(self)
        cells.require_levels(f"the levels of {self.name!r}", self.levels)
        if not self.levels:
            raise ValueError(f"the category {self.name!r} needs levels, like ('north', 'south')")
        for word, label in (("other", self.other), ("missing", self.missing)):
            if label is not None and not isinstance(label, str | int | float | bool):
                raise TypeError(f"{word} of {self.name!r} must be a level, like {word!r}, not {label!r}")
        is_level = cells.place_of(self.missing, self.levels) >= 0
        if self.missing == "drop" and not is_level:
            raise ValueError(f"missing of {self.name!r} may not be 'drop': every record is kept, and counts as a level")
        if self.other is None:
            raise ValueError(f"other of {self.name!r} must name a level, for cells that have none of the declared ones")
        if len({str(label) for label in self.labels}) < len(self.labels):
            raise ValueError(f"the levels of {self.name!r} must be all different as text, with other and missing")
        if len(self.labels) < 2:
            raise ValueError(f"the category {self.name!r} has one level alone: leave the column out")

    @property
    def labels(self) -> tuple[Any, ...]:
        """Returns the declared levels, then `other` and `missing` where these are none of them."""
        every = list(self.levels)
        for label in self._named:
            if cells.place_of(label, every) < 0:
                every.append(label)
        return tuple(every)

    @property
    def drawn(self) -> Bool[np.ndarray, " labels"]:
        made = super().drawn
        # Text that a declared level has, "1" of 1, is that level.
        is_beside = [isinstance(label, str) and cells.place_of(label, self.levels) < 0 for label in self._named]
        has_text = any(is_beside[1:]) or any(isinstance(level, str) for level in self.levels)
        if is_beside[0] and not has_text and len(self.levels) > 1:
            made[self._place(self.other)] = False
        return made

    @property
    def facts(self) -> tuple[None, tuple[str, ...]]:
        return None, tuple(map(str, self.labels))

    def read(self, column: Any) -> Int[np.ndarray, " records"]:
        places, empty = cells.levels(column, self.levels), cells.are_empty(column)
        is_missing, is_other = (places < 0) & empty, (places < 0) & ~empty
        refuse_absent(self.name, self.missing, is_missing)
        for chosen, label in ((is_other, self.other), (is_missing, self.missing)):
            if label is not None:
                places[chosen] = self._place(label)
        return places

    @property
    def _named(self) -> tuple[Any, ...]:
        """Returns the label of undeclared cells, and the label of missing ones if they have one."""
        return (self.other,) if self.missing is None else (self.other, self.missing)

    def _place(self, label: Any) -> int:
        return cells.place_of(label, self.labels)

    def in_formulas(self, values: np.ndarray) -> np.ndarray:
        return np.array([str(label) for label in self.labels], object)[values]

    def shown(self, values: np.ndarray) -> np.ndarray:
        drawn = self.drawn
        if not drawn[values].all():
            # These are private cells, for the owner's eyes.
            return np.array(self.labels, object)[values]
        kept = [label for label, is_drawn in zip(self.labels, drawn, strict=True) if is_drawn]
        kind = next((kind for kind, of in _TYPES if {*map(type, kept)} <= of), object)
        if kind is np.int64 and max(map(abs, kept)) >= 2**63:
            kind = object
        made = np.empty(len(self.labels), kind)
        made[drawn] = np.array(self.labels, object)[drawn]
        return made[values]


class AbstractWholeNumbers(AbstractColumn):
    """Describes a column of whole numbers from `low` to `high`; `whole_numbers` reads other cells."""

    low: Any
    high: Any
    missing: Any

    @property
    def facts(self) -> tuple[tuple[int, int], None]:
        return (self.low, self.high), None

    def read(self, column: Any) -> np.ndarray:
        return whole_numbers(self.name, column, self.missing, self.low, self.high)

    def shown(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.int64)


@dataclasses.dataclass(frozen=True)
class Ordinal(AbstractWholeNumbers):
    """Describes a column of few whole numbers, which a table counts for each combination of its parents' levels.

    Each cell by itself is clipped to the bounds and rounded to the nearest whole number.

    **Arguments:** all public. `name`: of the column. `low`, `high`: the least and the largest number. `parents`: names
    of earlier columns, `Category` or `Ordinal`. `missing`: the whole number that stands for cells without a number;
    with None they fail the release. `share`: its part of ε.
    """

    name: Any
    low: Any
    high: Any
    parents: Any = ()
    missing: Any = None
    share: Any = None

    def __post_init__(self) -> None:
        make_plain(self)
        check_whole(self.name, self.low, self.high, self.missing)
        if self.high - self.low >= MOST_OF_ORDINAL:
            raise ValueError(
                f"the table of {self.name!r} would have {self.high - self.low + 1} numbers, and an Ordinal has up to "
                f"{MOST_OF_ORDINAL}: take Count, or Numeric"
            )

    @property
    def labels(self) -> tuple[int, ...]:
        """Returns the whole numbers."""
        return tuple(range(int(self.low), int(self.high) + 1))

    def places(self, values: np.ndarray) -> Int[np.ndarray, " records"]:
        return (values - self.low).astype(np.int64)

    def of_places(self, places: Int[np.ndarray, " records"]) -> np.ndarray:
        return (places + self.low).astype(np.float64)


def make_plain(column: Any) -> None:
    """Turns NumPy's numbers into Python's, for JSON, and lists into tuples.

    Raises TypeError for what is no name of a column and for what is no list, and ValueError for settings of "auto".
    """
    for field in dataclasses.fields(column):
        if isinstance(value := getattr(column, field.name), np.generic):
            object.__setattr__(column, field.name, value.item())
    given = {name: value for name, value in vars(column).items() if name not in _ANY_TEXT}
    if not isinstance(column.name, str) or not column.name:
        raise TypeError(f"a column's name must be text, like 'age', not {column.name!r}")
    refuse_auto(f"{column.name!r}", **given)
    for setting, listed in given.items():
        if setting not in _LISTS:
            continue
        if isinstance(listed, str | Mapping) or not isinstance(listed, Sequence | np.ndarray):
            raise TypeError(f"{setting} of {column.name!r} must be a list, not {listed!r}")
        plain = tuple(one.item() if isinstance(one, np.generic) else one for one in listed)
        object.__setattr__(column, setting, plain)


def refuse_auto(of: str, **given: Any) -> None:
    """Raises ValueError for a setting that asks the data. **Arguments:** `of`: the column or the plan, in words."""
    for setting, value in given.items():
        if isinstance(value, str) and value.strip().lower() == "auto":
            raise ValueError(
                f"{setting} of {of} may not be 'auto': it would be read off the data, and tell of them without a "
                "guarantee. Name what you know beforehand, or from public data"
            )


def check_ends(name: str, low: Any, high: Any) -> None:
    """Raises TypeError or ValueError unless these can be the public bounds of a column of numbers."""
    if not (is_number(low) and is_number(high)):
        raise TypeError(f"low and high of {name!r} must be numbers, the public bounds of its cells, not {(low, high)}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low and high of {name!r} must be finite, the lower one first, not {(low, high)}")


def check_whole(name: str, low: Any, high: Any, missing: Any) -> None:
    """Raises TypeError or ValueError unless these can be the public bounds of a column of whole numbers."""
    check_ends(name, low, high)
    if not all(float(end).is_integer() and abs(end) < 2**53 for end in (low, high)):
        raise ValueError(f"low and high of {name!r} must be whole numbers, not {(low, high)}")
    if missing is not None and not (is_number(missing) and float(missing).is_integer() and low <= missing <= high):
        raise ValueError(f"missing of {name!r} must be a whole number from {low} to {high}, or None, not {missing!r}")


def refuse_absent(name: str, missing: Any, absent: np.ndarray) -> None:
    """Raises ValueError where cells are missing and nothing says what they count as."""
    if missing is None and absent.any():
        raise ValueError(
            f"column {name!r} has cells that are missing, infinite or no number: say in its description what these "
            "count as, missing=..., a public value"
        )


def all_numbers(name: str, column: Any, missing: Any) -> np.ndarray:
    """Returns the number of each cell by itself, `missing` where it is none. Private.

    Raises ValueError for cells that are none where `missing` is None; the message tells no value.
    """
    numbers = cells.numbers(column)
    absent = np.isnan(numbers)
    refuse_absent(name, missing, absent)
    return numbers if missing is None else np.where(absent, float(missing), numbers)


def whole_numbers(name: str, column: Any, missing: Any, low: float | int, high: float | int) -> np.ndarray:
    """Returns the nearest whole number of each cell by itself, within the bounds. Private. Raises as `all_numbers`."""
    return np.rint(np.clip(all_numbers(name, column, missing), low, high))
