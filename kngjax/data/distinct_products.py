"""The different numbers of Σ w xx' that records can change, and the groups of them of which a record changes one."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from kngjax.accounting.adjacency import Adjacency

# Exact sums cut numbers into parts of 22 binary digits: these have one.
_DIGITS = 21

Floats = Float[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class DistinctProducts:
    """Describes the products w·x_j x_k of a record's features and its curvature w that make up w·xx', each once.
    Public.

    Of the levels of one category a record has at most one: x_l x_m = 0 of two of them, and beside an intercept
    x_l² = x_l, so that such products need no number of their own. The products of one column with the levels of a
    category, or of the levels of two categories, are *exclusive*: at most one of them is not 0.

    **Arguments:** `lower`, `upper`: of the features, shape (d,). `indicators`: for each category its columns, of zeros
    and ones, of which a record has at most one that is 1. `slopes`: of a number times the levels of a category alike.
    `adjacency`. `has_curvature`: whether w is any number in [0, 1]; else it is 1.
    """

    lower: Floats
    upper: Floats
    indicators: Sequence[Sequence[int]]
    slopes: Sequence[Sequence[int]]
    adjacency: Adjacency
    has_curvature: bool = True

    def __post_init__(self):
        columns = [column for group in self._groups for column in group]
        if len(set(columns)) < len(columns) or not all(0 <= column < len(self.lower) for column in columns):
            raise ValueError(
                f"indicators and slopes must be columns from 0 to {len(self.lower) - 1}, each at most once"
            )

    @property
    def _groups(self) -> tuple[Sequence[int], ...]:
        return (*self.indicators, *self.slopes)

    @functools.cached_property
    def _group_of(self) -> dict[int, int]:
        return {column: place for place, group in enumerate(self._groups) for column in group}

    def _is_known(self, first: int, second: int) -> bool:
        """Whether x_j x_k of a record is 0, or another product, whatever the record is."""
        group = self._group_of.get(second)
        if group is None or self._group_of.get(first) != group:
            return False
        return first != second or self._is_on_diagonal(0, second)

    def _is_on_diagonal(self, first: int, second: int) -> bool:
        """Whether x_j x_k is x_k² too: of the intercept and a level."""
        has_intercept = bool(self.lower[0] == self.upper[0] == 1.0)
        return has_intercept and first == 0 and self._group_of.get(second, len(self.indicators)) < len(self.indicators)

    @functools.cached_property
    def _all(self) -> tuple[Int[np.ndarray, "numbers two"], Floats, Floats]:
        """All different pairs j ≤ k with the ends of their products."""
        dimension = len(self.lower)
        least, most = product_ranges(self.lower, self.upper)
        pairs = np.stack(np.triu_indices(dimension), axis=1)
        if self.has_curvature:
            least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
        different = np.array([not self._is_known(*pair) for pair in pairs.tolist()])
        return pairs[different], least[different], most[different]

    @functools.cached_property
    def _changed(self) -> np.ndarray:
        _, least, most = self._all
        return changed_columns(least, most, self.adjacency)

    @property
    def pairs(self) -> Int[np.ndarray, "numbers two"]:
        """Returns the j ≤ k of each number that is released."""
        return self._all[0][self._changed]

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Returns the ends between which each product lies."""
        return self._all[1][self._changed], self._all[2][self._changed]

    @functools.cached_property
    def exclusive(self) -> tuple[tuple[int, ...], ...]:
        """Groups of the released numbers, by place, of which a record adds to one at most."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, pair in enumerate(self.pairs.tolist()):
            # A column by itself stands for itself, and a level for its category.
            names = [f"category {self._group_of[one]}" if one in self._group_of else f"column {one}" for one in pair]
            found.setdefault((names[0], names[1]), []).append(place)
        return tuple(tuple(places) for places in found.values() if len(places) > 1)

    def of(self, x: Float[np.ndarray, "records d"], curvature: Float[np.ndarray, " records"]) -> Floats:
        """Computes w·x_j x_k of each record by itself, rounded to few digits, shape (records, numbers). Private.

        Sums of columns are fastest where each is in one piece, as those that are made are.
        """
        # The order of rows in memory is that of columns, one of which is made at a time.
        made = np.empty((len(self.pairs), len(x)))
        for column, (first, second), unit in zip(made, self.pairs.tolist(), self._units.tolist(), strict=True):
            np.multiply(x[:, first], x[:, second], out=column)
            column *= curvature
            np.rint(np.multiply(column, 1.0 / unit, out=column), out=column)
            column *= unit
        return made.T

    @functools.cached_property
    def _units(self) -> Floats:
        """Multiples of which products are: with so few digits sums of them are exact without much ado.

        A unit is 2^-21 of a power of two that no product exceeds; n of them are off by 2^-22·√n of it, and noise of
        their sum is as large as what one record adds, and more.
        """
        return np.exp2(np.ceil(np.log2(np.max(np.abs(self.ends), axis=0))) - _DIGITS)

    @property
    def basis(self) -> tuple[Float[np.ndarray, "numbers d"], Float[np.ndarray, "numbers d"]]:
        """Returns u and v of each number h, which adds h·(uu' - vv') to Σ w xx'."""
        dimension = len(self.lower)
        u, v = np.zeros((2, len(self.pairs), dimension))
        for place, (first, second) in enumerate(self.pairs.tolist()):
            if first == second:
                u[place, first] = 1.0
            elif self._is_on_diagonal(first, second):
                # e_0 e_k' + e_k e_0' + e_k e_k'.
                u[place, [first, second]] = v[place, first] = 1.0
            else:
                u[place, [first, second]] = v[place, first] = np.sqrt(0.5)
                v[place, second] = -np.sqrt(0.5)
        return u, v

    def base(self, num_records: int | float | None) -> Float[np.ndarray, "d d"]:
        """Returns the part of Σ w xx' that no record changes. **Arguments:** `num_records`: n, where it is public."""
        dimension = len(self.lower)
        made, (pairs, least, _) = np.zeros((dimension, dimension)), self._all
        for (first, second), shared in zip(pairs[~self._changed].tolist(), least[~self._changed], strict=True):
            made[first, second] = made[second, first] = shared * float(num_records or 0)
        return made

    def numbers_of(self, matrix: Float[np.ndarray, "d d"]) -> Float[np.ndarray, " numbers"]:
        """Reads the released numbers off a matrix."""
        first, second = self.pairs.T
        return matrix[first, second]

    @property
    def guess(self) -> Float[np.ndarray, "d d"]:
        """Computes E xx' of made-up records: independent features, even within their bounds, levels equally likely."""
        mean = 0.5 * (self.lower + self.upper)
        squares = mean**2 + (self.upper - self.lower) ** 2 / 12.0
        for place, group in enumerate(self._groups):
            columns, share = list(group), 1.0 / (len(group) + 1.0)
            if place < len(self.indicators):
                mean[columns] = squares[columns] = 1.0
            mean[columns], squares[columns] = share * mean[columns], share * squares[columns]
        made = np.outer(mean, mean)
        for group in self._groups:
            made[np.ix_(group, group)] = 0.0
        np.fill_diagonal(made, squares)
        return made


def product_ranges(
    lower: Float[np.ndarray, " dimension"], upper: Float[np.ndarray, " dimension"]
) -> tuple[Float[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """Returns the ends between which x_j x_k lies for j ≤ k; squares are at least 0."""
    first, second = np.triu_indices(len(lower))
    corners = np.array([one[first] * other[second] for one in (lower, upper) for other in (lower, upper)])
    least, most = corners.min(axis=0), corners.max(axis=0)
    return np.where((first == second) & (lower * upper < 0.0)[first], 0.0, least), most


def symmetric(triangles: Float[np.ndarray, "*batch pairs"], dimension: int) -> Float[np.ndarray, "..."]:
    """Makes symmetric matrices with these upper triangles."""
    first, second = np.triu_indices(dimension)
    made = np.zeros((*triangles.shape[:-1], dimension, dimension))
    made[..., first, second] = triangles
    made[..., second, first] = triangles
    return made


def changed_columns(
    lower: Float[np.ndarray, " columns"], upper: Float[np.ndarray, " columns"], adjacency: Adjacency
) -> Bool[np.ndarray, " columns"]:
    """Marks the columns whose sums one record changes: an exchange leaves columns that all records share. Public."""
    return lower < upper if adjacency is Adjacency.REPLACE else np.maximum(np.abs(lower), np.abs(upper)) > 0.0
