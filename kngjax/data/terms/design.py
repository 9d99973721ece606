"""All terms of a regression side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import cells
from kngjax.data.named_columns import Columns
from kngjax.data.terms.base import AbstractColumnTerm, AbstractTerm
from kngjax.data.terms.categorical import Categorical
from kngjax.data.terms.indicator import Indicator
from kngjax.data.terms.polynomial import Polynomial
from kngjax.data.terms.product import Product
from kngjax.data.terms.spline import Spline

if TYPE_CHECKING:
    from kngjax.geometry.feature_hulls import FeatureHull


@dataclass(frozen=True)
class Design:
    """Puts the columns of all terms side by side: k of them, beside i = 1 or 0 constant columns.

    **Arguments:** `terms`, public, a tuple of `Polynomial`, `Spline` and `Categorical`, each on a column of its own,
    and of `Indicator` and `Product` on any. `own`, public: terms whose coefficients are told in own units in place of
    those of the constant column and of `terms`, which span the same: categories with all their levels, as of `0 + r`;
    None for those of `terms`. `intercept`, public: whether the constant column stands before them. Without it no column
    may hold a constant, by which it would be moved: polynomials are counted from zero, `from_zero=True`, where no other
    term holds what their middles take away.

    **Raises:** `ValueError` when there are no terms, two share a column or the name of a coefficient, or a product
    lacks a term that its coefficients in own units need; `TypeError` for anything that is not a term.
    """

    terms: tuple[AbstractTerm, ...]
    own: tuple[AbstractTerm, ...] | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "own", None if self.own is None else tuple(self.own))
        object.__setattr__(self, "intercept", bool(self.intercept))
        if not self.terms:
            raise ValueError("a design needs at least one term, like Polynomial('age', 0, 100).")
        for term in (*self.terms, *(self.own or ())):
            if not isinstance(term, AbstractTerm):
                raise TypeError(f"the terms must be Polynomial, Categorical and the like, not {type(term).__name__}.")
        if (column := _first_repeated([term.column for term in self._whole_columns()])) is not None:
            raise ValueError(f"column {column!r} has two terms; keep one.")
        if (name := _first_repeated(self.names) or _first_repeated(self.basis_names)) is not None:
            raise ValueError(f"two coefficients would be called {name!r}; rename a column.")
        self._require_the_same_columns()
        self._require_the_same_span()

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the columns of a data frame that the terms read, each once."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.columns))

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Returns the public bounds, in own units, of the columns of numbers that have some."""
        bounded = [term for term in self._column_terms() if isinstance(term, (Polynomial, Spline))]
        return {term.column: (float(term.lower), float(term.upper)) for term in bounded}

    def range_of(self, column: str, count: int = 101) -> np.ndarray:
        """Returns public numbers across the bounds of a column, or its levels; ValueError where it has neither."""
        if column in self.ranges:
            return np.linspace(*self.ranges[column], count)
        return np.asarray(self._levels(column))

    def middle_of(self, column: str) -> Any:
        """Returns the middle of a column's bounds, or its reference level."""
        return sum(self.ranges[column]) / 2 if column in self.ranges else self._levels(column)[0]

    def thresholds(self, column: str) -> tuple[float | int, ...]:
        """Returns the public numbers that indicators compare a column with, in increasing order; none where none do."""
        found = [term for term in self._column_terms() if isinstance(term, Indicator) and term.column == column]
        return tuple(sorted({term.threshold for term in found}))

    def _levels(self, column: str) -> tuple[Any, ...]:
        for term in self._column_terms():
            if term.column == column and isinstance(term, Categorical):
                return term.levels
        # On, below and above each threshold.
        if found := self.thresholds(column):
            return tuple(sorted({end for one in found for end in (one - 1, one, one + 1)}))
        raise ValueError(f"column {column!r} has neither bounds nor levels in this design: say where it is, at=...")

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the k + i coefficients in own units: "intercept", "experience", "experience^2", "region[south]"."""
        if self.own is not None:
            return tuple(name for term in self.own for name in term.names)
        return (*self._constant_name, *(name for term in self.terms for name in term.names))

    @property
    def basis_names(self) -> tuple[str, ...]:
        """Returns the k + i coefficients of the basis: "intercept", "experience P1", "experience P2", ..."""
        return (*self._constant_name, *self.column_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Returns the k columns of the matrix: "experience P1", "experience P2", ..."""
        return tuple(name for term in self.terms for name in term.basis_names)

    @property
    def _constant_name(self) -> tuple[str, ...]:
        return ("intercept",) * self.intercept

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        """Groups of coefficients, by place, of columns of zeros and ones of which a record has at most one 1."""
        return self._grouped("indicators")

    @property
    def slopes(self) -> tuple[tuple[int, ...], ...]:
        """Groups of coefficients, by place, of other columns of which a record has at most one that is not 0."""
        return self._grouped("slopes")

    def _grouped(self, kind: str) -> tuple[tuple[int, ...], ...]:
        found, first = [], int(self.intercept)
        for term in self.terms:
            found += [tuple(first + place for place in group) for group in getattr(term, kind)]
            first += len(term.basis_names)
        return tuple(found)

    @property
    def lower(self) -> np.ndarray:
        """Returns the exact public minimum of each column of the matrix, shape (k,)."""
        return np.concatenate([term.bounds[0] for term in self.terms])

    @property
    def upper(self) -> np.ndarray:
        """Returns the exact public maximum of each column of the matrix, shape (k,)."""
        return np.concatenate([term.bounds[1] for term in self.terms])

    def hull(self, pieces: int = 4) -> "FeatureHull":
        """Returns a public polytope that contains the columns of every record, for `Bounds(..., hull=...)`.

        It is much smaller than the box from `lower` to `upper`: polynomials of a column lie on the image of the curve
        of its powers, and at most one of the 0/1 columns of a category is 1.

        **Arguments:** `pieces`: the number of pieces of each curve; more are tighter and have more vertices. See
        `kngjax.geometry.feature_hulls.moment_curve`, which raises ValueError above degree 6 unless there is one piece.
        """
        from kngjax.geometry.feature_hulls import FeatureHull

        return FeatureHull(*(block for term in self.terms for block in term.vertices(pieces)))

    @property
    def own_units_matrix(self) -> np.ndarray:
        """Returns M, public, shape (k + i, k + i): from basis coefficients to those in own units."""
        basis, _, own = self._in_atoms()
        # Of whole numbers, and so is its inverse.
        return np.rint(np.linalg.inv(own)) @ basis

    def in_own_units(self, theta: Any) -> np.ndarray:
        """Computes M theta, the coefficients of 1, v, v^2, ... in each column's own units: linear post-processing.

        **Arguments:** `theta`, released, basis coefficients with the intercept first, if there is one, shape
        (..., k + i). High powers of wide columns cancel: predict with the basis, and read these.

        **Returns:** shape (..., k + i), in the order of `names`. **Raises:** `ValueError` for another shape.
        """
        coefficients = np.asarray(theta, dtype=np.float64)
        if coefficients.shape[-1:] != (len(self.names),):
            raise ValueError(
                f"theta has shape {coefficients.shape}, and its last axis must have {len(self.names)} "
                f"coefficients: {', '.join(self.basis_names)}."
            )
        return coefficients @ self.own_units_matrix.T

    def matrix(self, frame: Any) -> np.ndarray:
        """Makes the basis columns of a private data frame, shape (n, k), float64; NaN in records that are dropped.

        **Arguments:** `frame`, private: pandas, polars or pyarrow, with at least the columns of the terms, of
        any type.

        **Raises:** `ValueError` for absent columns, and for missing cells where a term has no `missing`;
        `TypeError` for what is no frame; no message tells a value.
        """
        table = self._table(frame)
        columns = {name: table[name] for name in self.columns}
        return np.hstack([term.of(columns) for term in self.terms])

    def matrix_of(self, columns: Mapping[str, Any]) -> np.ndarray:
        """Makes the basis columns of arrays by name, shape (m, k), as of a released curve's public grid points.

        **Arguments:** `columns`, for each column of the terms an array of shape (m,) or one value for all.

        **Raises:** as `matrix`, and `ValueError` for arrays of different lengths.
        """
        self._check_present(list(columns))
        arrays = {name: _array(columns[name]) for name in self.columns}
        shapes = {array.shape for array in arrays.values() if array.ndim > 0} or {(1,)}
        if len(shapes) > 1 or len(shape := shapes.pop()) > 1:
            raise ValueError("the columns must be arrays of one axis and one length, or single values.")
        table = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
        return np.hstack([term.of(table) for term in self.terms])

    def with_constant(self, x: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows coefficients"]:
        """Rows of basis columns, k of them, with the constant 1 before them where the design has one: k + i."""
        return np.hstack([np.ones((len(x), int(self.intercept))), x])

    def check(self, frame: Any) -> None:
        """Raises what `matrix` raises because of a frame's columns and types, without a look at a value.

        **Raises:** `TypeError` for what is no frame and for columns of dates or lists; `ValueError` for absent columns.
        """
        self._table(frame)

    def _in_atoms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In each column what one of the basis is made of, the same in own units, and what is told in own units."""
        of_basis = [(term, term.own_units) for term in self.terms]
        plain = [(term, term.multiplied) for term in self.terms]
        of_own = plain if self.own is None else [(term, term.multiplied) for term in self.own]
        places: dict[frozenset[str], int] = {frozenset(): 0} if self.intercept else {}
        for term, matrix in (*plain, *of_own):
            for atom, row in zip(term.atoms, matrix, strict=True):
                if row.any():
                    places.setdefault(atom, len(places))
        for term, matrix in of_basis:
            for atom, row in zip(term.atoms, matrix, strict=True):
                if row.any() and not atom and not self.intercept:
                    raise ValueError(
                        f"the columns of {term.names[0]!r} hold a constant, which an intercept takes up: without one "
                        "polynomials are counted from zero, from_zero=True, and a category lacks its reference."
                    )
                if row.any() and atom not in places:
                    absent = ":".join(sorted(atom, key=lambda name: " ".join(term.names).find(name)))
                    raise ValueError(
                        f"the product {term.names[0]!r} needs the coefficient {absent!r} too: add its factors as "
                        "terms, as a*b does."
                    )
        own = _assembled(of_own, places, self.intercept and self.own is None)
        return _assembled(of_basis, places, self.intercept), _assembled(plain, places, self.intercept), own

    def _require_the_same_span(self) -> None:
        """Raises ValueError unless the columns of the basis, and those in own units, are sums of one another."""
        _, *both = self._in_atoms()
        # Of whole numbers, so that a determinant is 0 or no smaller than 1.
        if not all(one.shape == (len(one), len(one)) and abs(np.linalg.det(one)) > 0.5 for one in both):
            raise ValueError(
                "some columns are sums of others, the constant one included: give categories all their levels, "
                "full=True, in products alone that lack the category or another factor as a term."
            )

    def _require_the_same_columns(self) -> None:
        """Raises ValueError unless factors of products are terms of their columns, but for degrees and codings."""
        known: dict[str, Any] = {}
        for term in self._column_terms():
            if not isinstance(term, Indicator):
                plain = replace(term, degree=1, from_zero=False) if isinstance(term, Polynomial) else term
                plain = replace(term, full=False) if isinstance(term, Categorical) else plain
                if known.setdefault(term.column, plain) != plain:
                    raise ValueError(f"column {term.column!r} is one thing in a product and another elsewhere.")

    def _column_terms(self) -> list[AbstractColumnTerm]:
        """Lists the terms that read one column, factors of products included."""
        factors = [factor for term in self.terms if isinstance(term, Product) for factor in term.factors]
        return [term for term in (*self.terms, *factors) if isinstance(term, AbstractColumnTerm)]

    def _whole_columns(self) -> list[AbstractColumnTerm]:
        """Terms that serve for all of what a column says, of which there is one a column."""
        return [t for t in self.terms if isinstance(t, AbstractColumnTerm) and not isinstance(t, Indicator)]

    def _table(self, frame: Any) -> nw.DataFrame | Columns:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame | Columns):
            raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}.")
        self._check_present([*table.columns])
        for column in self.columns:
            if not cells.is_readable(table[column]):
                raise UnfitType(
                    f"the type of column {column!r} holds neither numbers nor text: convert it by a public rule."
                )
        return table

    def _check_present(self, present: list[Any]) -> None:
        for column in self.columns:
            if column not in present:
                # The data's own names are not listed: in a file without a header line they are somebody's record.
                raise UnfitShape(f"a term names the column {column!r}, which the data do not have.")


def _assembled(
    terms: Sequence[tuple[AbstractTerm, np.ndarray]], places: Mapping[frozenset[str], int], has_constant: bool
) -> np.ndarray:
    """The matrices of terms side by side, a row an atom. **Arguments:** `has_constant`: the constant, before them."""
    blocks = [np.eye(len(places), 1)] if has_constant else []
    for term, matrix in terms:
        block = np.zeros((len(places), matrix.shape[1]))
        for atom, row in zip(term.atoms, matrix, strict=True):
            if row.any():
                block[places[atom]] = row
        blocks.append(block)
    return np.hstack(blocks)


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _array(values: Any) -> np.ndarray:
    # Cell by cell: what NumPy makes of a list as a whole would depend on all of it.
    return np.asarray(values) if hasattr(values, "dtype") else np.asarray(values, dtype=object)
