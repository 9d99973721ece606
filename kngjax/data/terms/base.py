"""A term of a design makes columns of numbers from cells of named columns, record by record, with public bounds."""

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kngjax.core.errors import about
from kngjax.data import cells

Missing = float | int | str | bool | None


class AbstractTerm(abc.ABC):
    """Describes some columns of a regression basis, k in number. Everything in it is public."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Returns the columns of a data frame that it reads."""

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """Returns the k coefficients in own units."""

    @property
    def basis_names(self) -> tuple[str, ...]:
        """Returns the k coefficients of the basis; those in own units where these are the same."""
        return self.names

    @property
    def bounds(self) -> np.ndarray:
        """Returns the least and the largest value of each basis column, shape (2, k); 0 and 1 unless told."""
        return np.repeat([[0.0], [1.0]], len(self.names), axis=1)

    @property
    def atoms(self) -> tuple[frozenset[str], ...]:
        """Functions of cells in own units of which columns are sums, independent of one another; empty the constant.

        Terms that have one of them in common call it the same: an atom of a product holds one name of each factor.
        """
        return (frozenset(), *(frozenset([name]) for name in self.names))

    @property
    def own_units(self) -> np.ndarray:
        """Returns a matrix of shape (number of `atoms`, k): in each column what a basis column is made of."""
        return self.multiplied

    @property
    def multiplied(self) -> np.ndarray:
        """Returns whole numbers, shape (number of `atoms`, k): what each coefficient in own units multiplies."""
        return np.eye(len(self.names) + 1)[:, 1:]

    @property
    @abc.abstractmethod
    def substitutes(self) -> list[Missing]:
        """Says what each basis column holds where a cell is missing: a number, "drop", or None without a policy."""

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        """Groups of basis columns, by place, of zeros and ones, of which a record has at most one that is 1."""
        return ()

    @property
    def slopes(self) -> tuple[tuple[int, ...], ...]:
        """Groups of other basis columns, by place, of which a record has at most one that is not 0."""
        return ()

    @abc.abstractmethod
    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Blocks of side-by-side basis columns, of each the vertices of a polytope that contains it for any cells.

        **Arguments:** `pieces`: of each curve.
        """

    @abc.abstractmethod
    def of(self, table: Mapping[str, Any]) -> np.ndarray:
        """Makes the basis columns, shape (m, k), of columns of cells by name, private or public, each of shape (m,)."""


class AbstractColumnTerm(AbstractTerm):
    """Describes a term that reads one column, `column`, with its policy for missing cells, `missing`."""

    column: str
    missing: Missing

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def substitutes(self) -> list[Missing]:
        if self.missing in (None, "drop"):
            return [self.missing] * len(self.basis_names)
        return self.columns_of([self.missing])[0].tolist()

    def of(self, table: Mapping[str, Any]) -> np.ndarray:
        return self.columns_of(table[self.column])

    @abc.abstractmethod
    def columns_of(self, values: Any) -> np.ndarray:
        """Returns the basis columns, shape (m, k), of a column's cells, private or public, shape (m,)."""


def check_column(column: Any) -> None:
    """Raises TypeError unless this can be a column's name."""
    if not isinstance(column, str) or not column:
        raise TypeError("a term's column must be the name of a column, like 'age'.")


def is_number(value: Any) -> bool:
    """Tells whether this is a real number, and no bool."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def check_range(column: str, lower: Any, upper: Any, missing: Any) -> None:
    """Raises TypeError or ValueError unless a column of numbers can have these bounds and this policy."""
    check_column(column)
    if not all(isinstance(bound, (int, float, np.number)) for bound in (lower, upper)):
        raise TypeError(f"lower and upper of column {column!r} must be numbers.")
    if not (lower < upper and math.isfinite(float(upper) - float(lower))):
        raise ValueError(f"the bounds of column {column!r} must be finite with lower < upper, not ({lower}, {upper}).")
    check_missing(column, missing, lower, upper)


def check_missing(column: str, missing: Any, lower: Any, upper: Any) -> None:
    """Raises TypeError or ValueError unless a policy is a number there, "drop" or None."""
    if missing in (None, "drop"):
        return
    if not is_number(missing):
        raise TypeError(f"missing of column {column!r} must be a number, 'drop' or None.")
    if not (math.isfinite(missing) and lower <= missing <= upper):
        raise ValueError(
            f"missing of column {column!r} must be {'between its bounds' if math.isfinite(lower) else 'finite'}, not "
            f"{missing}."
        )


def check_degree(column: str, degree: Any, highest: int, why: str = "") -> None:
    """Raises TypeError or ValueError unless a degree is a whole number from 1 to the highest."""
    if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)):
        raise TypeError(f"the degree for column {column!r} must be a whole number, like 2.")
    if not 1 <= degree <= highest:
        raise ValueError(f"the degree for column {column!r} must be 1 to {highest}, not {degree}{why}.")


def filled_numbers(column: str, values: Any, missing: Missing) -> np.ndarray:
    """Cells as numbers, with `missing` in place of what is none; NaN for "drop". Raises ValueError without a policy."""
    numbers = cells.numbers(values)
    absent = np.isnan(numbers)
    refuse_missing(column, missing, absent)
    if missing not in (None, "drop"):
        numbers[absent] = float(missing)
    return numbers


def refuse_missing(column: str, missing: Missing, absent: np.ndarray) -> None:
    """Raises ValueError where cells are missing and no policy says what they count as."""
    if missing is None and absent.any():
        refusal = ValueError(
            f"column {column!r} has cells that are missing, infinite, no number or no declared level: give the term a "
            "public value in their place, missing=..., or missing='drop' under add_remove."
        )
        raise about(refusal, "missing", column)
