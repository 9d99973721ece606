"""A column of zeros and ones: whether a number is above a public threshold."""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kngjax.data.terms.base import AbstractColumnTerm, check_column, check_missing, filled_numbers, is_number

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}


@dataclass(frozen=True)
class Indicator(AbstractColumnTerm):
    """Describes the column 1{v > threshold}, or that of another comparison.

    **Arguments:** all public. `column`, the name of a column of numbers; `comparison`, one of ">", ">=", "<", "<=" and
    "=="; `threshold`, a finite number; `missing`, a number for cells that are none, or "drop", or None to refuse them.

    **Raises:** `ValueError` for another comparison or a threshold that is not finite; `TypeError` for other types.
    """

    column: str
    comparison: str
    threshold: float | int
    missing: float | int | str | None = None

    def __post_init__(self) -> None:
        check_column(self.column)
        if self.comparison not in _COMPARISONS:
            raise ValueError(f"the comparison for column {self.column!r} must be one of {', '.join(_COMPARISONS)}.")
        if not is_number(self.threshold):
            raise TypeError(f"the threshold for column {self.column!r} must be a number.")
        if not math.isfinite(self.threshold):
            raise ValueError(f"the threshold for column {self.column!r} must be finite, not {self.threshold}.")
        check_missing(self.column, self.missing, -math.inf, math.inf)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the coefficient, in own units and of the basis alike: "age > 65"."""
        return (f"{self.column} {self.comparison} {self.threshold}",)

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Returns 0 and 1."""
        return [self.bounds]

    def columns_of(self, values: Any) -> np.ndarray:
        """Returns the 0/1 column, shape (m, 1), of a column's cells, private or public, shape (m,)."""
        numbers = filled_numbers(self.column, values, self.missing)
        found = _COMPARISONS[self.comparison](numbers, float(self.threshold)).astype(np.float64)
        return np.where(np.isnan(numbers), np.nan, found)[:, None]
