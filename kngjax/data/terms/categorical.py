"""Columns of zeros and ones for the public levels of a column."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kngjax.data import cells
from kngjax.data.terms.base import AbstractColumnTerm, check_column, refuse_missing


@dataclass(frozen=True)
class Categorical(AbstractColumnTerm):
    """Codes a category by a column 1{v = level} for each public level but the first, which is the reference.

    **Arguments:** all public. `column`, the name of a column of text, numbers or bools; `levels`, at least
    two different values of one kind, the reference first; `missing`, the declared level for cells that have
    none of them, or "drop", or None to refuse them; `full`, whether the reference has a column too, in products that
    lack a margin, as that of a slope for each level does.

    **Raises:** `ValueError` for fewer levels, and for two that are one by the rule of `kngjax.data.cells`, like
    1 and True; `TypeError` for levels of mixed or other kinds.
    """

    column: str
    levels: tuple[str | float | int | bool, ...]
    missing: str | float | int | bool | None = None
    full: bool = False

    def __post_init__(self) -> None:
        check_column(self.column)
        if isinstance(self.levels, str):
            raise TypeError(f"the levels of column {self.column!r} must be a tuple, like ('north', 'south').")
        object.__setattr__(self, "levels", tuple(self.levels))
        cells.require_levels(f"the levels of column {self.column!r}", self.levels)
        if len(self.levels) < 2:
            raise ValueError(f"column {self.column!r} needs two levels or more.")
        is_level = cells.place_of(self.missing, self.levels) >= 0
        if self.missing == "drop" and is_level:
            raise ValueError(f"'drop' is a level of column {self.column!r}: missing = 'drop' would have two meanings.")
        if self.missing not in (None, "drop") and not is_level:
            raise ValueError(
                f"missing of column {self.column!r} must be one of its levels, 'drop' or None: declare a level for it, "
                "as 'unknown'."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the coefficients, in own units and of the basis alike: "region[south]"."""
        return tuple(f"{self.column}[{level}]" for level in self.levels[self._first :])

    @property
    def atoms(self) -> tuple[frozenset[str], ...]:
        """Returns the constant and the levels but the reference, whichever have columns."""
        return (frozenset(), *(frozenset([f"{self.column}[{level}]"]) for level in self.levels[1:]))

    @property
    def multiplied(self) -> np.ndarray:
        """Returns a row of zeros over the identity; in front, of the reference, 1 less all other levels."""
        made = np.eye(len(self.levels))
        made[1:, 0] = -1.0
        return made[:, self._first :]

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self.names))),)

    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Returns the unit vectors, as at most one of the columns is 1, and 0 where the reference has none."""
        return [np.eye(len(self.levels))[:, self._first :]]

    def places_of(self, values: Any) -> np.ndarray:
        """Finds the index of each cell's level, shape (m,), by the policy for cells that have none; -1 if dropped.

        **Arguments:** `values`, a column's cells, private or public, shape (m,). Raises ValueError for cells that have
        no declared level where there is no policy; the message tells no value.
        """
        places = cells.levels(values, self.levels)
        absent = places < 0
        refuse_missing(self.column, self.missing, absent)
        if self.missing not in (None, "drop"):
            places[absent] = cells.levels([self.missing], self.levels)[0]
        return places

    def columns_of(self, values: Any) -> np.ndarray:
        """Returns the 0/1 columns, shape (m, k), of a column's cells, private or public, shape (m,)."""
        places = self.places_of(values)
        columns = (places[:, None] == np.arange(self._first, len(self.levels))).astype(np.float64)
        columns[places < 0] = np.nan
        return columns

    @property
    def _first(self) -> int:
        """The place of the first level that has a column."""
        return 0 if self.full else 1
