"""Legendre polynomials of a column of numbers, or of its logarithm."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Legendre, legendre
from numpy.polynomial import Polynomial as PowerSeries

from kngjax.data.terms.base import AbstractColumnTerm, check_degree, check_range, filled_numbers

_HIGHEST_DEGREE = 8
# Width of bounds above which the powers of no coefficient are beyond float64.
_NARROW = 1e-30


@dataclass(frozen=True)
class Polynomial(AbstractColumnTerm):
    """Describes Legendre polynomials P_1, ..., P_degree of u = (2 clip(v) - lower - upper) / (upper - lower).

    With `from_zero` powers (v/s)^1, ..., (v/s)^degree instead, s = max(|lower|, |upper|), which are 0 where v is: for
    designs without an intercept, and for products that lack a margin, as the slopes in `r:x` do without `r`.

    **Arguments:** all public. `column`, the name of a column of numbers; `lower` and `upper`, bounds in the
    column's own units, to which its values v are clipped; `degree`, a whole number in 1, ..., 8; `missing`,
    a number in [lower, upper] for cells that are no number, or "drop", or None to refuse them; `transform`, "log"
    for polynomials of log v between log lower and log upper, where own units are those of log v; `from_zero`.

    **Raises:** `ValueError` unless lower < upper are finite, and positive for "log", and the degree is in its range
    (beyond 8 the raw powers of the own units lose too many digits), and for bounds so near to each other that
    coefficients in own units would be infinite; `TypeError` for arguments of other types.

    Source: Abramowitz and Stegun, chapter 22.
    """

    column: str
    lower: float | int
    upper: float | int
    degree: int = 1
    missing: float | int | str | None = None
    transform: str | None = None
    from_zero: bool = False

    def __post_init__(self) -> None:
        check_range(self.column, self.lower, self.upper, self.missing)
        why = ": coefficients of higher powers lose their digits"
        check_degree(self.column, self.degree, _HIGHEST_DEGREE, why)
        if self.transform not in (None, "log"):
            raise ValueError(f"the transform of column {self.column!r} must be 'log' or None, not {self.transform!r}.")
        if self.transform == "log" and not (self.lower > 0 and self._ends[0] < self._ends[1]):
            raise ValueError(
                f"log({self.column}) needs positive bounds, since 0 has no logarithm, that logarithms tell apart, not "
                f"[{self.lower}, {self.upper}]."
            )
        if self._ends[1] - self._ends[0] < _NARROW and not self._has_own_units():
            raise ValueError(
                f"the bounds of column {self.column!r} are so near to each other that its coefficients would be "
                "infinite: multiply the column and its bounds by a public number."
            )

    def _has_own_units(self) -> bool:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return bool(np.all(np.isfinite(self.own_units)))

    @property
    def _ends(self) -> tuple[float, float]:
        """The bounds after the transform."""
        lower, upper = float(self.lower), float(self.upper)
        return (math.log(lower), math.log(upper)) if self.transform == "log" else (lower, upper)

    @property
    def _size(self) -> float:
        """The largest absolute value after the transform."""
        return max(map(abs, self._ends))

    @property
    def _variable(self) -> str:
        return f"log({self.column})" if self.transform == "log" else self.column

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the coefficients of v, v^2, ...: "experience", "experience^2"."""
        return (self._variable, *(f"{self._variable}^{power}" for power in range(2, self.degree + 1)))

    @property
    def basis_names(self) -> tuple[str, ...]:
        """Names the basis columns: "experience P1", "experience P2", or from zero "experience/60" and its square."""
        if self.from_zero:
            scaled = f"{self._variable}/{self._size:g}"
            return (scaled, *(f"({scaled})^{power}" for power in range(2, self.degree + 1)))
        return tuple(f"{self._variable} P{power}" for power in range(1, self.degree + 1))

    @property
    def bounds(self) -> np.ndarray:
        """Returns the exact minimum and maximum of each P_j over [-1, 1], or of each power, shape (2, degree)."""
        if self.from_zero:
            ends = _powers(np.array(self._ends) / self._size, self.degree)
            within = np.where(self._ends[0] < 0.0 < self._ends[1], 0.0, ends[0])
            return np.array([np.minimum(ends.min(axis=0), within), ends.max(axis=0)])
        return np.array([_extremes(power) for power in range(1, self.degree + 1)]).T

    @property
    def own_units(self) -> np.ndarray:
        """Returns M, shape (degree + 1, degree): in column j - 1 the coefficients of 1, v, v^2, ... in P_j."""
        if self.from_zero:
            return np.diag(_powers(np.array([1.0 / self._size]), self.degree)[0], k=-1)[:, :-1]
        return _in_powers(self.degree, *self._ends)

    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Gives the vertices of a polytope that contains the curve of the basis columns."""
        from kngjax.geometry.feature_hulls import moment_curve

        if self.from_zero:
            lower, upper = (end / self._size for end in self._ends)
            return [np.asarray(moment_curve(self.degree, lower, upper, pieces))]
        matrix = _in_powers(self.degree, -1.0, 1.0)
        return [matrix[0] + moment_curve(self.degree, -1.0, 1.0, pieces) @ matrix[1:]]

    def columns_of(self, values: Any) -> np.ndarray:
        """Makes the basis columns, shape (m, degree), of a column's cells in own units, shape (m,)."""
        clipped = np.clip(filled_numbers(self.column, values, self.missing), float(self.lower), float(self.upper))
        lower, upper = self._ends
        if self.transform == "log":
            clipped = np.clip(np.log(clipped), lower, upper)
        if self.from_zero:
            return np.clip(_powers(clipped / self._size, self.degree), *self.bounds)
        # In this order of subtraction the ends become exactly -1 and 1, and rounding does not lead beyond them.
        u = ((clipped - lower) - (upper - clipped)) / (upper - lower)
        return np.clip(legendre.legvander(u, self.degree)[:, 1:], *self.bounds)


def _powers(values: np.ndarray, degree: int) -> np.ndarray:
    """values^1, ..., values^degree, shape (m, degree), by products: the same numbers for a cell wherever it stands."""
    return np.cumprod(np.repeat(values[:, None], degree, axis=1), axis=1)


def _in_powers(degree: int, lower: float, upper: float) -> np.ndarray:
    block = np.zeros((degree + 1, degree))
    for power in range(1, degree + 1):
        coefficients = Legendre.basis(power, domain=[lower, upper]).convert(kind=PowerSeries).coef
        block[: coefficients.size, power - 1] = coefficients
    return block


@functools.cache
def _extremes(power: int) -> tuple[float, float]:
    """The minimum and maximum of P_power over [-1, 1]: the maximum is P_power(1) = 1, and so is -P_power(-1)
    for odd powers; even ones are least where the derivative is zero."""
    if power % 2 == 1:
        return -1.0, 1.0
    polynomial = Legendre.basis(power)
    critical_points = polynomial.deriv().roots().real  # all real; some versions of NumPy return complex numbers
    return float(polynomial(critical_points).min()), 1.0
