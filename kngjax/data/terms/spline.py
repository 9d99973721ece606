"""B-splines of a column of numbers, with public knots."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kngjax.data.terms.base import (
    AbstractColumnTerm,
    check_degree,
    check_range,
    filled_numbers,
    is_number,
)

_HIGHEST_DEGREE = 5


@dataclass(frozen=True)
class Spline(AbstractColumnTerm):
    """Describes B-splines B_1(v), ..., B_k(v) of some degree, with k the number of knots plus the degree.

    All B-splines with these inner knots add up to 1, as the constant column does, so that the first of them, which is
    1 at `lower`, is left out: coefficients are differences from the curve's value there, the last at `upper`.

    **Arguments:** all public. `column`, the name of a column of numbers; `lower` and `upper`, bounds in own units, to
    which its values v are clipped; `knots`, different numbers between them in increasing order; `degree`, from 1 to 5;
    `missing`, a number in [lower, upper] for cells that are no number, or "drop", or None to refuse them.

    **Raises:** `ValueError` for bounds, knots and degrees of which that is not true; `TypeError` for other types.

    Source: de Boor, A Practical Guide to Splines (2001), chapter IX.
    """

    column: str
    lower: float | int
    upper: float | int
    knots: Sequence[float | int]
    degree: int = 3
    missing: float | int | str | None = None

    def __post_init__(self) -> None:
        check_range(self.column, self.lower, self.upper, self.missing)
        if not isinstance(self.knots, (tuple, list)):
            raise TypeError(f"the knots of column {self.column!r} must be numbers, like (10, 20).")
        object.__setattr__(self, "knots", tuple(self.knots))
        check_degree(self.column, self.degree, _HIGHEST_DEGREE)
        if not all(is_number(knot) for knot in self.knots):
            raise TypeError(f"the knots of column {self.column!r} must be numbers, like (10, 20).")
        # As float64 has them.
        knots = self._all_knots[self.degree : -self.degree]
        if not np.all(knots[:-1] < knots[1:]):
            raise ValueError(f"the knots of column {self.column!r} must increase, strictly between its bounds.")

    @property
    def _all_knots(self) -> np.ndarray:
        ends = self.degree + 1
        return np.array([float(self.lower)] * ends + [float(k) for k in self.knots] + [float(self.upper)] * ends)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the coefficients, in own units and of the basis alike: "experience B1", "experience B2"."""
        return tuple(f"{self.column} B{number}" for number in range(1, len(self.knots) + self.degree + 1))

    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Returns 0 and the unit vectors: no B-spline is negative, and they add up to 1 at most."""
        return [self.multiplied]

    def columns_of(self, values: Any) -> np.ndarray:
        """Returns the basis columns, shape (m, k), of a column's cells, private or public, shape (m,)."""
        from scipy.interpolate import BSpline

        numbers = filled_numbers(self.column, values, self.missing)
        absent, knots = np.isnan(numbers), self._all_knots
        clipped = np.clip(np.where(absent, float(self.lower), numbers), knots[0], knots[-1])
        found = np.zeros((clipped.size, len(knots) - self.degree - 1))
        if clipped.size:
            found = BSpline.design_matrix(clipped, knots, self.degree).toarray()
        columns = np.clip(found[:, 1:], 0.0, 1.0)
        columns[absent] = np.nan
        return columns
