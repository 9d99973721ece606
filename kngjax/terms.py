"""A public, well-conditioned regression basis from named columns of a data frame.

The noise of a private regression grows with the public bounds of the columns and with how nearly parallel
they are. Raw powers of, say, years of experience are bad in both ways; Legendre polynomials of the column
mapped to [-1, 1] are bounded by 1 and nearly orthogonal, and the noise is several times smaller. The
coefficients in the column's own units v follow from the released ones, theta, by a public matrix M:

    u = (2 v - lower - upper) / (upper - lower),     P_j(u) = sum_i M_ij v^i,     in own units: M theta.

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

from kngjax._frames import to_array
from kngjax.refusals import UnfitShape, UnfitType

if TYPE_CHECKING:
    from kngjax.features import FeatureHull

_HIGHEST_DEGREE = 8


@dataclass(frozen=True)
class Polynomial:
    """Legendre polynomials P_1(u), ..., P_degree(u) of u = (2 clip(v) - lower - upper) / (upper - lower).

    **Arguments**, all public: `column`, the name of a column of numbers; `lower` and `upper`, bounds in the
    column's own units, to which its values v are clipped; `degree`, a whole number in 1, ..., 8.

    **Raises**: `ValueError` unless lower < upper are finite and the degree is in its range (beyond 8 the raw
    powers of the own units lose too many digits); `TypeError` for arguments of other types.

    Source: Abramowitz and Stegun, chapter 22.
    """

    column: str
    lower: float | int
    upper: float | int
    degree: int = 1

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

    def columns_of(self, values: np.ndarray) -> np.ndarray:
        """The basis columns, shape (m, degree), of `values` in own units, private or public, shape (m,)."""
        lower, upper = float(self.lower), float(self.upper)
        clipped = np.clip(_numbers(self.column, values), lower, upper)
        # In this order of subtraction the ends become -1 and 1 exactly, and rounding leads nowhere beyond.
        u = ((clipped - lower) - (upper - clipped)) / (upper - lower)
        return np.clip(legendre.legvander(u, self.degree)[:, 1:], *self.bounds)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which of the private `values`, shape (m,), are clipped; for the data owner only."""
        numbers = _numbers(self.column, values)
        return (numbers < self.lower) | (numbers > self.upper)


@dataclass(frozen=True)
class Categorical:
    """One column 1{v = level} for each public level but the first, which is the reference.

    A value that is not a declared level counts as the reference level: this maps each record by itself, so
    an unexpected value costs accuracy and no privacy.

    **Arguments**, all public: `column`, the name of a column of text, numbers or bools; `levels`, at least
    two different values of one kind, the reference first.

    **Raises**: `ValueError` for fewer or repeated levels; `TypeError` for levels of mixed or other kinds.
    """

    column: str
    levels: tuple[str | float | int | bool, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        if isinstance(self.levels, str):
            raise TypeError(f"the levels of column {self.column!r} must be a tuple, like ('north', 'south').")
        object.__setattr__(self, "levels", tuple(self.levels))
        are_numbers = (isinstance(level, (int, float)) and math.isfinite(level) for level in self.levels)
        if not (all(isinstance(level, str) for level in self.levels) or all(are_numbers)):
            raise TypeError(f"the levels of column {self.column!r} must be all text or all finite numbers.")
        if not 2 <= len(self.levels) == len(set(self.levels)):
            raise ValueError(f"column {self.column!r} needs two levels or more, all different.")

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

    def columns_of(self, values: np.ndarray) -> np.ndarray:
        """The 0/1 columns, shape (m, number of levels - 1), of `values`, private or public, shape (m,)."""
        return self._equal(values)[:, 1:].astype(np.float64)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which of the private `values`, shape (m,), are no declared level; for the data owner only."""
        return np.logical_not(self._equal(values).any(axis=1))

    def _equal(self, values: np.ndarray) -> np.ndarray:
        declared, kinds = ("text", "UTO") if isinstance(self.levels[0], str) else ("numbers", "biufO")
        if values.dtype.kind not in kinds:
            raise UnfitType(
                f"the levels of column {self.column!r} are {declared}, and the column holds {values.dtype}; "
                "declare the levels as the data have them."
            )
        if values.dtype.kind in "fO" and any(value is None or value != value for value in values):
            raise ValueError(_missing(self.column))
        return np.stack([(values == level).astype(bool) for level in self.levels], axis=1)


@dataclass(frozen=True)
class Design:
    """The columns of all terms side by side, in their order, without the constant column: k in all.

    **Arguments**: `terms`, public, a tuple of `Polynomial` and `Categorical`, each on a column of its own.

    **Raises**: `ValueError` when there are no terms, or two share a column or the name of a coefficient;
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
        if (column := _repeated([term.column for term in self.terms])) is not None:
            raise ValueError(f"column {column!r} has two terms; keep one.")
        if (name := _repeated(self.names) or _repeated(self.basis_names)) is not None:
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

        Much less than the box from `lower` to `upper`: polynomials of a column lie on the image of the curve of its
        powers, and of the 0/1 columns of a category one at most is 1.

        **Arguments:** `pieces`: of each curve; more make it tighter, with more vertices. See `features.moment_curve`,
        which raises ValueError above degree 6 unless there is one piece.
        """
        from kngjax.features import FeatureHull, moment_curve

        blocks = []
        for term in self.terms:
            if isinstance(term, Categorical):
                blocks.append(term.own_units)
            else:
                matrix = replace(term, lower=-1, upper=1).own_units
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

        **Arguments**: `theta`, released, basis coefficients with the intercept first, shape (..., k + 1).
        High powers of wide columns cancel: predict with the basis, and read these.

        **Returns**: shape (..., k + 1), in the order of `names`. **Raises**: `ValueError` for another shape.
        """
        coefficients = np.asarray(theta, dtype=np.float64)
        if coefficients.shape[-1:] != (len(self.names),):
            raise ValueError(
                f"theta has shape {coefficients.shape}, and its last axis must have {len(self.names)} "
                f"coefficients: {', '.join(self.basis_names)}."
            )
        return coefficients @ self.own_units_matrix.T

    def matrix(self, frame: Any) -> np.ndarray:
        """The basis columns of a private data frame, shape (n, k), float64.

        **Arguments**: `frame`, private: pandas, polars or pyarrow, with at least the columns of the terms.

        **Raises**: `ValueError` for absent columns and for missing or infinite values, `TypeError` for a
        column of the wrong kind; no message tells a value.
        """
        return self.matrix_of(self._columns(frame))

    def matrix_of(self, columns: Mapping[str, Any]) -> np.ndarray:
        """The same from arrays by name, shape (m, k): for instance a released curve's public grid points.

        **Arguments**: `columns`, for each column of the terms an array of shape (m,) or one value for all.

        **Raises**: as `matrix`, and `ValueError` for arrays of different lengths.
        """
        self._check_present(list(columns))
        arrays = [np.asarray(columns[term.column]) for term in self.terms]
        shapes = {array.shape for array in arrays if array.ndim > 0} or {(1,)}
        if len(shapes) > 1 or len(shape := shapes.pop()) > 1:
            raise ValueError("the columns must be arrays of one axis and one length, or single values.")
        pairs = zip(self.terms, arrays, strict=True)
        return np.hstack([term.columns_of(np.broadcast_to(array, shape)) for term, array in pairs])

    def clipped_fractions(self, frame: Any) -> dict[str, float]:
        """The fraction of records outside the public bounds or levels, by column; FOR THE DATA OWNER ONLY.

        **Arguments**: `frame`, private, as for `matrix`, which raises the same. The fractions carry no noise:
        to publish them, or to choose bounds by them, voids the guarantee of a release.
        """
        columns = self._columns(frame)
        outside = {term.column: term.outside(columns[term.column]) for term in self.terms}
        return {column: float(flags.sum() / max(flags.size, 1)) for column, flags in outside.items()}

    def _columns(self, frame: Any) -> dict[str, np.ndarray]:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}.")
        self._check_present(table.columns)
        return {term.column: to_array(table[term.column], _missing(term.column)) for term in self.terms}

    def _check_present(self, present: list[Any]) -> None:
        for term in self.terms:
            if term.column not in present:
                # What the data have is not listed: in a file without a header line it is somebody's record.
                raise UnfitShape(f"a term names column {term.column!r}, which the data do not have.")


def _check_column(column: Any) -> None:
    if not isinstance(column, str) or not column:
        raise TypeError("a term's column must be the name of a column, like 'age'.")


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _numbers(column: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise UnfitType(f"column {column!r} must hold numbers; convert it, or declare it as Categorical.")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(_missing(column))
    return numbers


def _missing(column: str) -> str:
    return f"column {column!r} has missing or infinite values; remove or replace them first."


@functools.cache
def _extremes(power: int) -> tuple[float, float]:
    """The minimum and maximum of P_power over [-1, 1]: the maximum is P_power(1) = 1, and so is -P_power(-1)
    for odd powers; even ones are least where the derivative is zero."""
    if power % 2 == 1:
        return -1.0, 1.0
    polynomial = Legendre.basis(power)
    critical_points = polynomial.deriv().roots().real  # all real; some versions of NumPy say it in complex
    return float(polynomial(critical_points).min()), 1.0
