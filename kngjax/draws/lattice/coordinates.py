"""Coordinates of a lattice in which a density is about round: k = Um with a unimodular U, by reduction of a form.

U has whole entries and determinant ±1, so that m ↦ Um is one-to-one from Z^d onto Z^d, whatever else U is: boxes of m
that cover U^{-1}Θ are sets of lattice points that cover Θ, each point once, and no Jacobian arises. Hence U may be
chosen by the data, and by rounded numbers; what is proved of it, that it is unimodular, is computed in whole numbers.
"""

import dataclasses
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kngjax.draws.finite import below
from kngjax.draws.lattice.places import AbstractCoordinates, somewhere
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.linear_algebra import fractions_of, rational

# Bits to which a form is known before it is reduced, and what is added to its diagonal so that it stays positive.
_FORM_BITS = 60
_LEAST_CURVATURE = 1e-12
# Lovász's constant, and after how many steps a reduction is given up: four coefficients take some hundreds.
_SHRINKAGE = Fraction(3, 4)
_MOST_STEPS = 2000
# Whole numbers of 64 bits may not be larger in any product of U, or of its inverse, and a point.
_LARGEST = 2**60
# A law is taken to lie within so many units of a form; boxes of other coordinates are to hold so much fewer points.
_WITHIN = 16.0
_GAIN = 1.1

Form = list[list[Fraction]]


@dataclasses.dataclass(frozen=True, eq=False)
class LatticeCoordinates(AbstractCoordinates):
    """k = Um. **Arguments:** `matrix`: U, whole and unimodular; `inverse`: U^{-1}, whole."""

    matrix: Int[np.ndarray, "dimension dimension"]
    inverse: Int[np.ndarray, "dimension dimension"]

    @classmethod
    def own(cls, dimension: int) -> "LatticeCoordinates":
        """Returns the coordinates that are k itself."""
        return cls(np.eye(dimension, dtype=np.int64), np.eye(dimension, dtype=np.int64))

    @classmethod
    def reduced(cls, form: Float[np.ndarray, "dimension dimension"], low, high) -> "LatticeCoordinates":
        """Finds coordinates in which k'Qk is about diagonal (Lenstra, Lenstra and Lovász 1982), for k from low to high.

        They are k itself where a form is not finite or not positive, or whole numbers of 64 bits would not hold a box
        of m.
        """
        own, exact = cls.own(len(low)), _exact(form)
        basis = None if exact is None else reduced_basis(exact)
        if basis is None:
            return own
        matrix, inverse = np.array(basis, object), np.array(_whole_inverse(basis), object)
        ends = np.array([abs(int(end)) for end in np.maximum(np.abs(low), np.abs(high))], object)
        if np.any(abs(matrix) @ (abs(inverse) @ ends) >= _LARGEST):
            return own
        return cls(matrix.astype(np.int64), inverse.astype(np.int64))

    def around(self, low, high):
        return _extremes(self.inverse, low, high)

    def extremes(self, low, high):
        return _extremes(self.matrix, low, high)

    def sizes(self, low, high):
        return [int(np.prod(side.astype(object))) for side in high - low + 1]

    def log_sizes(self, low, high):
        return np.sum(np.log((high - low + 1).astype(float)), axis=1)

    def divisible(self, low, high):
        return high > low

    def may_hold(self, low, high):
        return np.all(low <= high, axis=1)

    def somewhere(self, low, high):
        return somewhere(low, high) @ self.matrix.T, np.ones(len(low), bool)

    def draw(self, low, high, bits):
        place = [int(a) + below(int(b - a) + 1, bits) for a, b in zip(low, high, strict=True)]
        return self.matrix @ np.array(place, np.int64)


class Frame(NamedTuple):
    """Coordinates for a law on Θ. **Arguments:** `lengths`: of their axes in the law's norm, positive and finite."""

    coordinates: LatticeCoordinates
    lengths: Float[np.ndarray, " dimension"]


def round_frame(form: Float[np.ndarray, "dimension dimension"], domain: DomainLattice, entries=None) -> Frame:
    """Finds coordinates in which k'Qk and Θ's extent together are about round.

    The law lies within some units of Q in Θ. The coordinates are k itself unless boxes of others around the law hold
    much fewer points: those may reach far out of Θ, where all that they hold is rejected. It never fails, whatever the
    form, since the data chose that.

    **Arguments:** `entries`: the largest |X_ij| of each column of some records, whole: X_i'U is kept below 2^53.
    """
    # Where Θ ends a law it is no wider than Θ.
    extent = np.diag(4.0 / (domain.high - domain.low + 1.0) ** 2)
    whole = np.where(np.all(np.isfinite(form)), form, 0.0) + extent
    own = LatticeCoordinates.own(len(whole))
    given = Frame(own, np.sqrt(np.maximum(np.diagonal(whole), np.diagonal(extent))))
    found = LatticeCoordinates.reduced(whole, domain.low, domain.high)
    exact = _exact(whole)
    if exact is None or np.array_equal(found.matrix, own.matrix) or not _holds(found, entries):
        return given
    # Fractions: what U'QU cancels may be all that a float has of it.
    turned = _turned(exact, found.matrix.tolist())
    points = _log_points(_inverse(turned), *found.around(domain.low, domain.high))
    if points > _log_points(_inverse(exact), domain.low, domain.high) - math.log(_GAIN):
        return given
    return Frame(found, np.array([_root(turned[axis][axis]) for axis in range(len(turned))]))


def _holds(found: LatticeCoordinates, entries) -> bool:
    if entries is None:
        return True
    columns = np.abs(found.matrix).T.tolist()
    return all(sum(int(size) * step for size, step in zip(entries, column, strict=True)) < 2**53 for column in columns)


def _turned(form: Form, matrix: list[list[int]]) -> Form:
    """U'QU."""
    turn = np.array(matrix, object)
    return (turn.T @ np.array(form, object) @ turn).tolist()


def _log_points(inverse: Form, low, high) -> float:
    """Estimates the logarithm of the number of points of a box that lies about the law and in this box."""
    widths = [_root(inverse[axis][axis]) for axis in range(len(inverse))]
    pairs = zip(widths, low.tolist(), high.tolist(), strict=True)
    return sum(math.log1p(min(2.0 * _WITHIN * width, float(end - start))) for width, start, end in pairs)


def _root(value: Fraction) -> float:
    """√value in floats, neither 0 nor infinite."""
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(value / Fraction(4) ** shift), min(max(shift, -900), 900))


def _extremes(matrix, low, high):
    up, down = np.maximum(matrix, 0).T, np.minimum(matrix, 0).T
    return low @ up + high @ down, high @ up + low @ down


def _exact(form) -> Form | None:
    """Q in fractions, to 60 bits in powers of 2 as units, with a little on its diagonal; None if it is not finite."""
    diagonal = np.diagonal(form)
    if not (np.all(np.isfinite(form)) and np.all(diagonal > 0.0)):
        return None
    powers = np.rint(np.log2(diagonal) / 2).astype(int)
    # At most 2 in size if Q is positive.
    unit = np.ldexp(np.ldexp(form, -powers[:, None]), -powers[None, :])
    unit = np.clip(0.5 * (unit + unit.T), -4.0, 4.0) + _LEAST_CURVATURE * np.eye(len(form))
    whole = np.rint(unit * 2.0**_FORM_BITS).astype(np.int64).tolist()
    return [
        [
            Fraction(value, 2**_FORM_BITS) * Fraction(2) ** int(one + other)
            for value, other in zip(row, powers, strict=True)
        ]
        for row, one in zip(whole, powers, strict=True)
    ]


def reduced_basis(form: Form) -> list[list[int]] | None:
    """Columns of U, a basis of Z^d that is reduced in the norm k'Qk; without rounding.

    None if Q is not positive definite, or after many steps. For a few coefficients: Gram-Schmidt is done anew after
    each step.
    """
    dimension = len(form)
    columns = [[int(i == j) for i in range(dimension)] for j in range(dimension)]
    if _projections(form, columns) is None:
        return None
    at = 1
    for _ in range(_MOST_STEPS):
        if at >= dimension:
            return [list(row) for row in zip(*columns, strict=True)]
        for other in range(at - 1, -1, -1):
            share = _projected(form, columns)[0][at][other]
            columns[at] = [a - round(share) * b for a, b in zip(columns[at], columns[other], strict=True)]
        shares, squares = _projected(form, columns)
        if squares[at] >= (_SHRINKAGE - shares[at][at - 1] ** 2) * squares[at - 1]:
            at += 1
        else:
            columns[at - 1], columns[at] = columns[at], columns[at - 1]
            at = max(at - 1, 1)
    return None


def _projected(form: Form, columns: list[list[int]]) -> tuple[Form, list[Fraction]]:
    """Orthogonalises columns by Gram-Schmidt in the norm of a form that is known to be positive definite."""
    found = _projections(form, columns)
    assert found is not None
    return found


def _projections(form: Form, columns: list[list[int]]) -> tuple[Form, list[Fraction]] | None:
    """Gram-Schmidt in the norm k'Qk: each column's shares of those before it, and the squares of what is left.

    None if Q is not positive definite: a square is 0 or less.
    """
    dimension = len(form)
    products = _turned(form, [list(row) for row in zip(*columns, strict=True)])
    shares = [[Fraction(0)] * dimension for _ in range(dimension)]
    squares = [Fraction(0)] * dimension
    for i in range(dimension):
        left = [Fraction(0)] * dimension
        for j in range(i):
            left[j] = products[i][j] - sum((left[k] * shares[j][k] for k in range(j)), Fraction(0))
            shares[i][j] = left[j] / squares[j]
        squares[i] = products[i][i] - sum((left[k] * shares[i][k] for k in range(i)), Fraction(0))
        if squares[i] <= 0:
            return None
    return shares, squares


def _inverse(matrix) -> Form:
    """Inverts a matrix that has an inverse, without rounding."""
    return fractions_of(rational(matrix).inv())


def _whole_inverse(matrix: list[list[int]]) -> list[list[int]]:
    """U^{-1}; raises AssertionError unless U is unimodular, which a proof needs and no data change."""
    inverse = _inverse(matrix)
    if any(value.denominator != 1 for row in inverse for value in row):
        raise AssertionError("coordinates of a lattice are not unimodular")
    return [[int(value) for value in row] for row in inverse]
