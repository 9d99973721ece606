"""Coordinates of a lattice in which a density is about round: k = Um with a unimodular U, by reduction of a form.

U has whole entries and determinant ±1, so that m ↦ Um is one-to-one from Z^d onto Z^d, whatever else U is: boxes of m
that cover U^{-1}Θ are sets of lattice points that cover Θ, each point once, and no Jacobian arises. Hence U may be
chosen by the data, and by rounded numbers; what is proved of it, that it is unimodular, is computed in whole numbers.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kngjax.releases.lattice.units import DomainLattice

# Bits to which a form is known before it is reduced, and what is added to its diagonal so that it stays positive.
_FORM_BITS = 60
_LEAST_CURVATURE = 1e-12
# Lovász's constant.
_SHRINKAGE = Fraction(3, 4)
# Whole numbers of 64 bits may not be larger in any product of U, or of its inverse, and a point.
_LARGEST = 2**60


class Coordinates(NamedTuple):
    """k = Um. **Arguments:** `matrix`: U, whole and unimodular; `inverse`: U^{-1}, whole."""

    matrix: Int[np.ndarray, "dimension dimension"]
    inverse: Int[np.ndarray, "dimension dimension"]

    @classmethod
    def own(cls, dimension: int) -> "Coordinates":
        """Those of k itself."""
        return cls(np.eye(dimension, dtype=np.int64), np.eye(dimension, dtype=np.int64))

    @classmethod
    def reduced(cls, form: Float[np.ndarray, "dimension dimension"], low, high) -> "Coordinates":
        """Those in which k'Qk is about diagonal (Lenstra, Lenstra and Lovász 1982), for k from low to high.

        Those of k itself where a form is not finite, or whole numbers of 64 bits would not hold a box of m.
        """
        own = cls.own(len(low))
        if not np.all(np.isfinite(form)):
            return own
        # In powers of 2 as units, so that nothing but the entries is rounded.
        units = np.exp2(np.rint(np.log2(np.maximum(np.diagonal(form), np.finfo(float).tiny)) / 2))
        unit = form / units[:, None] / units[None, :] + _LEAST_CURVATURE * np.eye(len(low))
        whole = np.rint(0.5 * (unit + unit.T) * 2.0**_FORM_BITS)
        exact = [
            [Fraction(value) * Fraction(one) * Fraction(other) for value, other in zip(row, units, strict=True)]
            for row, one in zip(whole.tolist(), units.tolist(), strict=True)
        ]
        basis = reduced_basis(exact)
        inverse = _inverse(basis)
        found = cls(np.array(basis, object), np.array(inverse, object))
        ends = np.array([abs(int(end)) for end in np.maximum(np.abs(low), np.abs(high))], object)
        farthest = abs(found.inverse) @ ends
        if np.any(abs(found.matrix) @ farthest >= _LARGEST):
            return own
        return cls(found.matrix.astype(np.int64), found.inverse.astype(np.int64))

    def around(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest box of m around all k from low to high, each of shape (d,)."""
        return _extremes(self.inverse, low, high)

    def extremes(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest boxes of k around boxes of m, each of shape (boxes, d)."""
        return _extremes(self.matrix, low, high)


def round_coordinates(
    form: Float[np.ndarray, "dimension dimension"], domain: DomainLattice
) -> tuple[Coordinates, Float[np.ndarray, " dimension"]]:
    """Those in which k'Qk and Θ's extent together are about round, and the lengths of their axes in that norm."""
    # Where Θ ends a law it is no wider than Θ.
    extent = 4.0 / (domain.high - domain.low + 1.0) ** 2
    found = Coordinates.reduced(form + np.diag(extent), domain.low, domain.high)
    matrix = found.matrix.astype(float)
    # Apart, since what rounding leaves of the one may be more than all of the other: no length is 0.
    return found, np.sqrt(np.maximum(np.diagonal(matrix.T @ form @ matrix), 0.0) + extent @ matrix**2)


def _extremes(matrix, low, high):
    up, down = np.maximum(matrix, 0).T, np.minimum(matrix, 0).T
    return low @ up + high @ down, high @ up + low @ down


def reduced_basis(form: list[list[Fraction]]) -> list[list[int]]:
    """Columns of U, a basis of Z^d that is reduced in the norm k'Qk, Q positive definite; without rounding.

    For a few coefficients: Gram-Schmidt is done anew after each step.
    """
    dimension = len(form)
    columns = [[int(i == j) for i in range(dimension)] for j in range(dimension)]
    at = 1
    while at < dimension:
        for other in range(at - 1, -1, -1):
            share = _projections(form, columns)[0][at][other]
            columns[at] = [a - round(share) * b for a, b in zip(columns[at], columns[other], strict=True)]
        shares, squares = _projections(form, columns)
        if squares[at] >= (_SHRINKAGE - shares[at][at - 1] ** 2) * squares[at - 1]:
            at += 1
        else:
            columns[at - 1], columns[at] = columns[at], columns[at - 1]
            at = max(at - 1, 1)
    return [list(row) for row in zip(*columns, strict=True)]


def _projections(form, columns):
    """Gram-Schmidt in the norm k'Qk: each column's shares of those before it, and the squares of what is left."""
    dimension = len(form)
    images = [[sum(q * c for q, c in zip(row, column, strict=True)) for row in form] for column in columns]
    products = [[sum(a * b for a, b in zip(column, image, strict=True)) for image in images] for column in columns]
    shares = [[Fraction(0)] * dimension for _ in range(dimension)]
    squares = [Fraction(0)] * dimension
    for i in range(dimension):
        left = [Fraction(0)] * dimension
        for j in range(i):
            left[j] = products[i][j] - sum((left[k] * shares[j][k] for k in range(j)), Fraction(0))
            shares[i][j] = left[j] / squares[j]
        squares[i] = products[i][i] - sum((left[k] * shares[i][k] for k in range(i)), Fraction(0))
    return shares, squares


def _inverse(matrix: list[list[int]]) -> list[list[int]]:
    """U^{-1} by elimination in fractions; raises AssertionError unless U is unimodular, which its proof needs."""
    dimension = len(matrix)
    rows = [[*map(Fraction, row), *(Fraction(i == j) for j in range(dimension))] for i, row in enumerate(matrix)]
    for at in range(dimension):
        pivot = next(row for row in range(at, dimension) if rows[row][at] != 0)
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(dimension):
            if other != at:
                times = rows[other][at]
                rows[other] = [a - times * b for a, b in zip(rows[other], rows[at], strict=True)]
    inverse = [row[dimension:] for row in rows]
    if any(value.denominator != 1 for row in inverse for value in row):
        raise AssertionError("coordinates of a lattice are not unimodular")
    return [[int(value) for value in row] for row in inverse]
