"""A public, well-conditioned regression basis from named columns of a data frame.

The noise of a private regression grows with the public bounds of the columns and with how nearly parallel
they are. Raw powers of, say, years of experience are bad in both ways; Legendre polynomials of the column
mapped to [-1, 1] are bounded by 1 and nearly orthogonal, and the noise is several times smaller. The
coefficients in the column's own units v follow from the released ones, theta, by a public matrix M:

    u = (2 v - lower - upper) / (upper - lower),     P_j(u) = sum_i M_ij v^i,     in own units: M theta.

A cell becomes a number or a level by the rule of `kngjax.data.cells`. One that is missing, infinite, no number or no
declared level is treated as the term's public `missing` says, in the same way whatever it was:

    missing=VALUE or LEVEL    the cell counts as this
    missing="drop"            its columns are NaN, for `Bounds(..., missing="drop")` to drop the record (add_remove)
    missing=None              the data are refused

Everything in a `Design` is public and chosen before the data are seen; it maps each record by itself.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.polynomial import Legendre, legendre
from numpy.polynomial import Polynomial as PowerSeries

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import cells

if TYPE_CHECKING:
    from kngjax.geometry.feature_hulls import FeatureHull

_HIGHEST_DEGREE = 8


@dataclass(frozen=True)
class Polynomial:
    """Legendre polynomials P_1(u), ..., P_degree(u) of u = (2 clip(v) - lower - upper) / (upper - lower).

    **Arguments:** all public. `column`, the name of a column of numbers; `lower` and `upper`, bounds in the
    column's own units, to which its values v are clipped; `degree`, a whole number in 1, ..., 8; `missing`,
    a number in [lower, upper] for cells that are no number, or "drop", or None to refuse them.

    **Raises:** `ValueError` unless lower < upper are finite and the degree is in its range (beyond 8 the raw
    powers of the own units lose too many digits); `TypeError` for arguments of other types.

    Source: Abramowitz and Stegun, chapter 22.
    """

    column: str
    lower: float | int
    upper: float | int
    degree: int = 1
    missing: float | int | str | None = None

    def __post_init__(self) -> None:
        _check_column(self.column)
        if isinstance(self.degree, bool) or not isinstance(self.degree, (int, np.integer)):
            raise TypeError(f"the degree for column {self.column!r} must be a whole number, like 2.")
        if not 1 <= self.degree <= _HIGHEST_DEGREE:
            raise ValueError(
                f"the degree for column {self.column!r} must be 1 to {_HIGHEST_DEGREE}, not {self.degree}: "
                "coefficients of higher powers lose their digits."
            )
        if not all(isinstance(bound, (int, float, np.number)) for bound in (self.lower, self.upper)):
            raise TypeError(f"lower and upper of column {self.column!r} must be numbers.")
        if not (self.lower < self.upper and math.isfinite(float(self.upper) - float(self.lower))):
            raise ValueError(
                f"the bounds of column {self.column!r} must be finite with lower < upper, not "
                f"({self.lower}, {self.upper})."
            )
        if self.missing not in (None, "drop"):
            if isinstance(self.missing, bool) or not isinstance(self.missing, (int, float, np.number)):
                raise TypeError(f"missing of column {self.column!r} must be a number, 'drop' or None.")
            if not self.lower <= self.missing <= self.upper:
                raise ValueError(f"missing of column {self.column!r} must be between its bounds, not {self.missing}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients of v, v^2, ...: "experience", "experience^2"."""
        return (self.column, *(f"{self.column}^{power}" for power in range(2, self.degree + 1)))

    @property
    def basis_names(self) -> tuple[str, ...]:
        """The basis columns: "experience P1", "experience P2"."""
        return tuple(f"{self.column} P{power}" for power in range(1, self.degree + 1))

    @property
    def bounds(self) -> np.ndarray:
        """The exact minimum and maximum of each P_j over [-1, 1], shape (2, degree)."""
        return np.array([_extremes(power) for power in range(1, self.degree + 1)]).T

    @property
    def own_units(self) -> np.ndarray:
        """M, shape (degree + 1, degree): in column j - 1 the coefficients of 1, v, v^2, ... in P_j."""
        block = np.zeros((self.degree + 1, self.degree))
        for power in range(1, self.degree + 1):
            basis = Legendre.basis(power, domain=[float(self.lower), float(self.upper)])
            coefficients = basis.convert(kind=PowerSeries).coef
            block[: coefficients.size, power - 1] = coefficients
        return block

    def columns_of(self, values: Any) -> np.ndarray:
        """The basis columns, shape (m, degree), of a column's cells in own units, private or public, shape (m,)."""
        lower, upper = float(self.lower), float(self.upper)
        numbers = cells.numbers(values)
        absent = np.isnan(numbers)
        _refuse_missing(self.column, self.missing, absent)
        if self.missing not in (None, "drop"):
            numbers[absent] = float(self.missing)
        clipped = np.clip(numbers, lower, upper)
        # In this order of subtraction the ends become exactly -1 and 1, and rounding does not lead beyond them.
        u = ((clipped - lower) - (upper - clipped)) / (upper - lower)
        return np.clip(legendre.legvander(u, self.degree)[:, 1:], *self.bounds)

    def outside(self, values: Any) -> np.ndarray:
        """Which of the private cells, shape (m,), are clipped or no number; for the data owner only."""
        numbers = cells.numbers(values)
        return ~((self.lower <= numbers) & (numbers <= self.upper))


@dataclass(frozen=True)
class Categorical:
    """One column 1{v = level} for each public level but the first, which is the reference.

    **Arguments:** all public. `column`, the name of a column of text, numbers or bools; `levels`, at least
    two different values of one kind, the reference first; `missing`, the declared level for cells that have
    none of them, or "drop", or None to refuse them.

    **Raises:** `ValueError` for fewer levels, and for two that are one by the rule of `kngjax.data.cells`, like
    "1" and "01"; `TypeError` for levels of mixed or other kinds.
    """

    column: str
    levels: tuple[str | float | int | bool, ...]
    missing: str | float | int | bool | None = None

    def __post_init__(self) -> None:
        _check_column(self.column)
        if isinstance(self.levels, str):
            raise TypeError(f"the levels of column {self.column!r} must be a tuple, like ('north', 'south').")
        object.__setattr__(self, "levels", tuple(self.levels))
        cells.require_levels(f"the levels of column {self.column!r}", self.levels)
        if len(self.levels) < 2:
            raise ValueError(f"column {self.column!r} needs two levels or more.")
        is_level = any(cells.same_level(self.missing, level) for level in self.levels)
        if self.missing == "drop" and is_level:
            raise ValueError(f"'drop' is a level of column {self.column!r}: missing = 'drop' would have two meanings.")
        if self.missing not in (None, "drop") and not is_level:
            raise ValueError(f"missing of column {self.column!r} must be one of its levels, 'drop' or None.")

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients, in own units and of the basis alike: "region[south]"."""
        return tuple(f"{self.column}[{level}]" for level in self.levels[1:])

    basis_names = names

    @property
    def bounds(self) -> np.ndarray:
        """Zeros and ones, shape (2, number of levels - 1)."""
        return np.repeat([[0.0], [1.0]], len(self.levels) - 1, axis=1)

    @property
    def own_units(self) -> np.ndarray:
        """A row of zeros over the identity, shape (number of levels, number of levels - 1)."""
        return np.eye(len(self.levels))[:, 1:]

    def columns_of(self, values: Any) -> np.ndarray:
        """The 0/1 columns, shape (m, number of levels - 1), of a column's cells, private or public, shape (m,)."""
        places = cells.levels(values, self.levels)
        absent = places < 0
        _refuse_missing(self.column, self.missing, absent)
        if self.missing not in (None, "drop"):
            places[absent] = cells.levels([self.missing], self.levels)[0]
        columns = (places[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        if self.missing == "drop":
            columns[absent] = np.nan
        return columns

    def outside(self, values: Any) -> np.ndarray:
        """Which of the private cells, shape (m,), have no declared level; for the data owner only."""
        return cells.levels(values, self.levels) < 0


@dataclass(frozen=True)
class Design:
    """The columns of all terms side by side, in their order, without the constant column: k in all.

    **Arguments:** `terms`, public, a tuple of `Polynomial` and `Categorical`, each on a column of its own.

    **Raises:** `ValueError` when there are no terms, or two share a column or the name of a coefficient;
    `TypeError` for anything that is not a term.
    """

    terms: tuple[Polynomial | Categorical, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        if not self.terms:
            raise ValueError("a design needs at least one term, like Polynomial('age', 0, 100).")
        for term in self.terms:
            if not isinstance(term, (Polynomial, Categorical)):
                raise TypeError(f"the terms must be Polynomial or Categorical, not {type(term).__name__}.")
        if (column := _first_repeated([term.column for term in self.terms])) is not None:
            raise ValueError(f"column {column!r} has two terms; keep one.")
        if (name := _first_repeated(self.names) or _first_repeated(self.basis_names)) is not None:
            raise ValueError(f"two coefficients would be called {name!r}; rename a column.")

    @property
    def names(self) -> tuple[str, ...]:
        """The k + 1 coefficients in own units: "intercept", "experience", "experience^2", "region[south]"."""
        return ("intercept", *(name for term in self.terms for name in term.names))

    @property
    def basis_names(self) -> tuple[str, ...]:
        """The k + 1 coefficients of the basis: "intercept", "experience P1", "experience P2", ..."""
        return ("intercept", *(name for term in self.terms for name in term.basis_names))

    @property
    def lower(self) -> np.ndarray:
        """The exact public minimum of each column of the matrix, shape (k,)."""
        return np.concatenate([term.bounds[0] for term in self.terms])

    @property
    def upper(self) -> np.ndarray:
        """The exact public maximum of each column of the matrix, shape (k,)."""
        return np.concatenate([term.bounds[1] for term in self.terms])

    def hull(self, pieces: int = 4) -> "FeatureHull":
        """A public polytope that contains the columns of every record, for `Bounds(..., hull=...)`.

        It is much smaller than the box from `lower` to `upper`: polynomials of a column lie on the image of the curve
        of its powers, and at most one of the 0/1 columns of a category is 1.

        **Arguments:** `pieces`: the number of pieces of each curve; more are tighter and have more vertices. See
        `kngjax.geometry.feature_hulls.moment_curve`, which raises ValueError above degree 6 unless there is one piece.
        """
        from kngjax.geometry.feature_hulls import FeatureHull, moment_curve

        blocks = []
        for term in self.terms:
            if isinstance(term, Categorical):
                blocks.append(term.own_units)
            else:
                matrix = replace(term, lower=-1, upper=1, missing=None).own_units
                blocks.append(matrix[0] + moment_curve(term.degree, -1.0, 1.0, pieces) @ matrix[1:])
        return FeatureHull(*blocks)

    @property
    def own_units_matrix(self) -> np.ndarray:
        """M, public, shape (k + 1, k + 1): from basis coefficients to those in own units."""
        matrix = np.eye(len(self.names))
        start = 1
        for term in self.terms:
            block = term.own_units
            stop = start + block.shape[1]
            matrix[0, start:stop], matrix[start:stop, start:stop] = block[0], block[1:]
            start = stop
        return matrix

    def in_own_units(self, theta: Any) -> np.ndarray:
        """M theta, the coefficients of 1, v, v^2, ... in each column's own units: linear post-processing.

        **Arguments:** `theta`, released, basis coefficients with the intercept first, shape (..., k + 1).
        High powers of wide columns cancel: predict with the basis, and read these.

        **Returns:** shape (..., k + 1), in the order of `names`. **Raises:** `ValueError` for another shape.
        """
        coefficients = np.asarray(theta, dtype=np.float64)
        if coefficients.shape[-1:] != (len(self.names),):
            raise ValueError(
                f"theta has shape {coefficients.shape}, and its last axis must have {len(self.names)} "
                f"coefficients: {', '.join(self.basis_names)}."
            )
        return coefficients @ self.own_units_matrix.T

    def matrix(self, frame: Any) -> np.ndarray:
        """The basis columns of a private data frame, shape (n, k), float64; NaN in records that are to be dropped.

        **Arguments:** `frame`, private: pandas, polars or pyarrow, with at least the columns of the terms, of
        any type.

        **Raises:** `ValueError` for absent columns, and for missing cells where a term has no `missing`;
        `TypeError` for what is no frame; no message tells a value.
        """
        table = self._table(frame)
        return np.hstack([term.columns_of(table[term.column]) for term in self.terms])

    def matrix_of(self, columns: Mapping[str, Any]) -> np.ndarray:
        """The basis columns of arrays by name, shape (m, k): for instance of a released curve's public grid points.

        **Arguments:** `columns`, for each column of the terms an array of shape (m,) or one value for all.

        **Raises:** as `matrix`, and `ValueError` for arrays of different lengths.
        """
        self._check_present(list(columns))
        arrays = [_array(columns[term.column]) for term in self.terms]
        shapes = {array.shape for array in arrays if array.ndim > 0} or {(1,)}
        if len(shapes) > 1 or len(shape := shapes.pop()) > 1:
            raise ValueError("the columns must be arrays of one axis and one length, or single values.")
        pairs = zip(self.terms, arrays, strict=True)
        return np.hstack([term.columns_of(np.broadcast_to(array, shape)) for term, array in pairs])

    def check(self, frame: Any) -> None:
        """Raise what `matrix` raises because of a frame's columns and types, without a look at a value.

        **Raises:** `TypeError` for what is no frame and for columns of dates or lists; `ValueError` for absent columns.
        """
        self._table(frame)

    def clipped_fractions(self, frame: Any) -> dict[str, float]:
        """The fraction of records that are missing or outside the bounds or levels, by column; FOR THE DATA OWNER ONLY.

        **Arguments:** `frame`, private, as for `matrix`, which raises the same. The fractions carry no noise:
        to publish them, or to choose bounds by them, voids the guarantee of a release.
        """
        table = self._table(frame)
        outside = {term.column: term.outside(table[term.column]) for term in self.terms}
        return {column: float(flags.sum() / max(flags.size, 1)) for column, flags in outside.items()}

    def _table(self, frame: Any) -> nw.DataFrame:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}.")
        self._check_present(table.columns)
        for term in self.terms:
            if not cells.is_readable(table[term.column]):
                raise UnfitType(
                    f"the type of column {term.column!r} holds neither numbers nor text: convert it by a public rule."
                )
        return table

    def _check_present(self, present: list[Any]) -> None:
        for term in self.terms:
            if term.column not in present:
                # The data's own names are not listed: in a file without a header line they are somebody's record.
                raise UnfitShape(f"a term names column {term.column!r}, which the data do not have.")


def _check_column(column: Any) -> None:
    if not isinstance(column, str) or not column:
        raise TypeError("a term's column must be the name of a column, like 'age'.")


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _array(values: Any) -> np.ndarray:
    # Cell by cell: what NumPy makes of a list as a whole would depend on all of it.
    return np.asarray(values) if hasattr(values, "dtype") else np.asarray(values, dtype=object)


def _refuse_missing(column: str, missing: Any, absent: np.ndarray) -> None:
    if missing is None and absent.any():
        raise ValueError(
            f"column {column!r} has cells that are missing, infinite, no number or no declared level: give the term a "
            "public value in their place, missing=..., or missing='drop' under add_remove."
        )


@functools.cache
def _extremes(power: int) -> tuple[float, float]:
    """The minimum and maximum of P_power over [-1, 1]: the maximum is P_power(1) = 1, and so is -P_power(-1)
    for odd powers; even ones are least where the derivative is zero."""
    if power % 2 == 1:
        return -1.0, 1.0
    polynomial = Legendre.basis(power)
    critical_points = polynomial.deriv().roots().real  # all real; some versions of NumPy return complex numbers
    return float(polynomial(critical_points).min()), 1.0
