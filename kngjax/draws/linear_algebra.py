"""Vectors and matrices of balls and of fractions: their products, what solves them, and what stands on a diagonal."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat
from jaxtyping import Float


def dot(one: Sequence[arb], other: Sequence[arb]) -> arb:
    """Computes the inner product, over as many entries as the shorter vector has."""
    return sum((a * b for a, b in zip(one, other, strict=False)), arb(0))


def times(matrix: arb_mat, vector: Sequence[Any]) -> list[arb]:
    """Mv."""
    return (matrix * arb_mat(len(vector), 1, list(vector))).entries()


def solved(matrix: arb_mat, vector: Sequence[arb]) -> list[arb]:
    """M^{-1}v; raises ZeroDivisionError where M is not known well enough."""
    return matrix.solve(arb_mat(len(vector), 1, list(vector))).entries()


def shifted(matrix: arb_mat, shift: arb) -> arb_mat:
    """M + μI."""
    size = matrix.nrows()
    return matrix + arb_mat(size, size, [shift if i == j else 0 for i in range(size) for j in range(size)])


def enclosing(middle: Float[np.ndarray, "size size"], off: Float[np.ndarray, "size size"]) -> arb_mat:
    """Makes balls about these numbers, each as wide as it may be off."""
    pairs = zip(middle.ravel().tolist(), off.ravel().tolist(), strict=True)
    return arb_mat(len(middle), len(middle), [arb(one, two) for one, two in pairs])


def rational(rows: Sequence[Sequence[Any]]) -> fmpq_mat:
    """Converts a table of numbers, each of which is a fraction, without rounding."""
    return fmpq_mat([[fmpq(*Fraction(one).as_integer_ratio()) for one in row] for row in rows])


def fractions_of(matrix: fmpq_mat) -> list[list[Fraction]]:
    """Converts a matrix to Python's fractions."""
    return [[Fraction(int(one.p), int(one.q)) for one in row] for row in matrix.tolist()]
