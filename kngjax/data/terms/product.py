"""Products of terms: interactions."""

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kngjax.data.terms.base import AbstractColumnTerm, AbstractTerm, Missing

# Polytopes of blocks with more columns are too many facets.
_MOST_COLUMNS = 6


@dataclass(frozen=True)
class Product(AbstractTerm):
    """Describes all products of one basis column of each factor.

    **Arguments:** `factors`: two or more terms of one column each, of different columns. Public.

    **Raises:** `ValueError` for fewer, or for two of one column; `TypeError` for what is no term of one column.
    """

    factors: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        for factor in self.factors:
            if not isinstance(factor, AbstractColumnTerm):
                raise TypeError(f"the factors of a product must be terms of one column, not {type(factor).__name__}.")
        if len(self.factors) < 2:
            raise ValueError("a product needs two terms or more.")
        if len(set(self.columns)) < len(self.factors):
            raise ValueError(
                "a product needs terms of different columns: take a polynomial of a higher degree instead."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(factor.column for factor in self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """Joins one name of each factor: "age:region[south]"."""
        return tuple(":".join(parts) for parts in itertools.product(*(factor.names for factor in self.factors)))

    @property
    def basis_names(self) -> tuple[str, ...]:
        """Joins one basis name of each factor: "age P1:region[south]"."""
        return tuple(":".join(parts) for parts in itertools.product(*(factor.basis_names for factor in self.factors)))

    @property
    def bounds(self) -> np.ndarray:
        """Finds the least and the largest product of the factors' ends for each column, shape (2, k)."""
        ends = itertools.product(*(factor.bounds.T.tolist() for factor in self.factors))
        corners = [[math.prod(corner) for corner in itertools.product(*pairs)] for pairs in ends]
        return np.array([[min(found) for found in corners], [max(found) for found in corners]])

    @property
    def atoms(self) -> tuple[frozenset[str], ...]:
        """Unites one atom of each factor: atoms of some factors alone belong to other terms."""
        return tuple(frozenset().union(*parts) for parts in itertools.product(*(one.atoms for one in self.factors)))

    @property
    def own_units(self) -> np.ndarray:
        """Returns the Kronecker product of the factors' matrices."""
        return functools.reduce(np.kron, [factor.own_units for factor in self.factors])

    @property
    def multiplied(self) -> np.ndarray:
        return functools.reduce(np.kron, [factor.multiplied for factor in self.factors])

    @property
    def substitutes(self) -> list[Missing]:
        """Multiplies the factors' substitutes, for records that lack the cells of all factors."""
        policies = [factor.missing for factor in self.factors]
        if "drop" in policies or None in policies:
            return ["drop" if "drop" in policies else None] * len(self.basis_names)
        numbers = [[float(number) for number in factor.substitutes if number is not None] for factor in self.factors]
        return [math.prod(one) for one in itertools.product(*numbers)]

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        return self._groups if all(factor.indicators for factor in self.factors) else ()

    @property
    def slopes(self) -> tuple[tuple[int, ...], ...]:
        return () if self.indicators else self._groups

    @property
    def _groups(self) -> tuple[tuple[int, ...], ...]:
        """The columns of equal numbers, whose levels of categories differ."""
        have_levels = [bool(factor.indicators) for factor in self.factors]
        if not any(have_levels):
            return ()
        places = np.arange(len(self.basis_names)).reshape([len(factor.basis_names) for factor in self.factors])
        of_numbers = [axis for axis, has_levels in enumerate(have_levels) if not has_levels]
        grouped = np.moveaxis(places, of_numbers, range(len(of_numbers)))
        width = math.prod(grouped.shape[len(of_numbers) :])
        return tuple(map(tuple, grouped.reshape(-1, width).tolist()))

    def vertices(self, pieces: int) -> list[np.ndarray]:
        """Products of the factors' vertices, as a product is linear in each factor; of many columns their ends."""
        if len(self.basis_names) > _MOST_COLUMNS:
            return [ends[:, None] for ends in self.bounds.T]
        (first, *others) = [block for factor in self.factors for block in factor.vertices(pieces)]
        for block in others:
            first = np.einsum("ij,kl->ikjl", first, block).reshape(len(first) * len(block), -1)
        return [first]

    def of(self, table: Mapping[str, Any]) -> np.ndarray:
        (first, *others) = [factor.of(table) for factor in self.factors]
        for columns in others:
            first = (first[:, :, None] * columns[:, None, :]).reshape(len(first), -1)
        return np.clip(first, *self.bounds)
