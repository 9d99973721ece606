"""Smallest eigenvalues on a grid: beside roots of characteristic polynomials to sixty digits, and where they tie."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_mat

from kngjax.draws import eigenvalues
from kngjax.draws.eigenvalues import is_positive_semidefinite, nearest_multiple

HALF = Fraction(1, 2)


def exact_matrix(rows):
    return np.array([[Fraction(entry) for entry in row] for row in rows], object)


def smallest_root(matrix) -> arb:
    """The smallest eigenvalue as a root of the characteristic polynomial, which FLINT isolates, to sixty digits."""
    entries = [fmpq(entry.numerator, entry.denominator) for entry in matrix.ravel()]
    polynomial = fmpq_mat(len(matrix), len(matrix), entries).charpoly().numer()
    with ctx.workprec(256):
        roots = [root.real for root, _ in polynomial.complex_roots()]
        smallest = min(roots, key=float)
        assert smallest.rad() < arb(10) ** -60
        return smallest


def turned(values):
    """A matrix of fractions with these eigenvalues: reflected by I - 2vv'/v'v."""
    direction = np.array([Fraction(number) for number in range(1, len(values) + 1)], object)
    reflection = np.diag([Fraction(1)] * len(values)) - 2 * np.outer(direction, direction) / (direction @ direction)
    return reflection @ np.diag([Fraction(value) for value in values]) @ reflection


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_the_multiple_is_that_nearest_to_the_root_of_the_characteristic_polynomial(dimension):
    generator = np.random.default_rng(dimension)
    for number in range(12):
        records = exact_matrix(generator.normal(size=(2 * dimension, dimension)))
        matrix, step = records.T @ records, Fraction(2) ** -int(generator.integers(0, 60))
        if number % 3 == 0:
            # Of less than full rank.
            matrix = np.outer(records[0], records[0])
        with ctx.workprec(256):
            expected = (smallest_root(matrix) / arb(fmpq(step.numerator, step.denominator)) + arb(0.5)).floor()
        assert nearest_multiple(matrix, step) == int(expected.unique_fmpz())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((2, 2, 2), 2),
        ((0, 0, 5), 0),
        ((0, 0, 0), 0),
        ((3 * HALF, 7, 9), 2),
        ((HALF, HALF, HALF), 1),
        ((HALF - Fraction(1, 2**300), 1, 1), 0),
        ((HALF + Fraction(1, 2**300), 1, 1), 1),
        ((HALF - Fraction(1, 2**3000), 1, 1), 0),
        ((-HALF, 1, 1), 0),
        ((10**30, 10**30 + 1, 10**31), 10**30),
    ],
)
def test_ties_repeated_and_zero_eigenvalues_are_rounded_as_they_are(values, expected, monkeypatch):
    """Halves upward, however little is lacking, and wherever the search begins."""
    for guess in (None, 0, 10**7, -(10**7)):
        if guess is not None:
            monkeypatch.setattr(eigenvalues, "_guess", lambda matrix, guess=guess: Fraction(guess))
        assert nearest_multiple(turned(values), Fraction(1)) == expected
        assert nearest_multiple(np.diag([Fraction(value) for value in values]), Fraction(1)) == expected


def test_no_size_and_no_failure_of_float64_stops_the_search(monkeypatch):
    assert nearest_multiple(np.diag([Fraction(10) ** 400] * 2), Fraction(10) ** 399) == 10

    def fails(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("numpy.linalg.eigvalsh", fails)
    assert nearest_multiple(turned((3, 4, 5)), Fraction(1, 4)) == 12


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[0, 1], [1, 5]], False),
        ([[0, 0], [0, 1]], True),
        ([[1, 1], [1, 1]], True),
        ([[1, 2], [2, 1]], False),
        ([[4, 2, 2], [2, 1, 1], [2, 1, 2]], True),
        ([[4, 2, 2], [2, 1, 0], [2, 0, 9]], False),
        ([[Fraction(1, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(1, 3)]], True),
        ([[0, 0, 0], [0, 0, Fraction(1, 2**900)], [0, Fraction(1, 2**900), 1]], False),
        ([[-1]], False),
    ],
)
def test_elimination_tells_matrices_that_are_singular(rows, expected):
    assert is_positive_semidefinite(exact_matrix(rows), Fraction(0)) is expected


def test_columns_that_repeat_each_other_have_the_eigenvalue_zero():
    """Twenty columns, in units with a third in them."""
    columns = np.random.default_rng(0).integers(-9, 9, (24, 10))
    records = exact_matrix(np.hstack([columns, columns]).tolist()) / 3
    assert nearest_multiple(records.T @ records, Fraction(1, 2**20)) == 0
