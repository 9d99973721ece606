"""Sensitivities of moments in the l1 norm as fractions: beside float64's, and beside what rows at corners do."""

from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.sensitivity import moments
from kngjax.sensitivity.moments_in_fractions import (
    SquaredRadii,
    squared_absolute_moment_changes,
    squared_moment_changes,
)

SIZES, RESPONSE = [Fraction(3, 2), Fraction(1, 4), Fraction(5)], Fraction(7, 3)
RADII = SquaredRadii(sum((size**2 for size in SIZES), Fraction(0)), RESPONSE**2)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_they_are_those_of_float64(adjacency):
    ends = np.array([float(size) for size in SIZES])
    bounds = kng.Bounds(x=(-ends, ends), y=(-float(RESPONSE), 1.0), intercept=False)
    squared = squared_absolute_moment_changes(RADII, sum(SIZES, Fraction(0)), adjacency)
    by_float = moments.absolute_moment_changes(bounds, adjacency, 3)
    np.testing.assert_allclose(np.sqrt(np.array(squared, float)), np.array(by_float), rtol=1e-6)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_row_moves_moments_more_and_corners_move_them_as_much(adjacency):
    """In fractions. Only the matrix of an exchange is moved less here: no two corners are orthogonal."""
    generator = np.random.default_rng(0)
    most = [
        *squared_moment_changes(RADII, adjacency),
        *squared_absolute_moment_changes(RADII, sum(SIZES, Fraction(0)), adjacency),
    ]
    largest = np.zeros(4, object)
    for trial in range(400):
        rows = []
        for _ in range(2):
            share = [Fraction(int(k), 8) for k in generator.integers(-8, 9, 4)]
            if trial % 2:
                share = [Fraction(int(k)) for k in generator.choice([-1, 1], 4)]
            rows.append([size * part for size, part in zip([*SIZES, RESPONSE], share, strict=True)])
        if adjacency is Adjacency.ADD_REMOVE:
            rows[1] = [Fraction(0)] * 4
        one, other = (np.array(row, object) for row in rows)
        matrix = np.outer(one[:3], one[:3]) - np.outer(other[:3], other[:3])
        moment = one[:3] * one[3] - other[:3] * other[3]
        sums = abs(matrix[np.triu_indices(3)]).sum(), abs(moment).sum()
        largest = np.maximum(largest, [(matrix**2).sum(), (moment**2).sum(), sums[0] ** 2, sums[1] ** 2])
    assert np.all(largest <= np.array(most, object))
    reached = largest / np.array(most, object)
    assert np.all(reached[[1, 3]] == 1)
    assert adjacency is Adjacency.REPLACE or np.all(reached == 1)


def test_orthogonal_rows_move_the_matrix_as_much_as_an_exchange_can():
    one, other = np.array([1, 1], object), np.array([1, -1], object)
    change = np.outer(one, one) - np.outer(other, other)
    assert (change**2).sum() == squared_moment_changes(SquaredRadii(Fraction(2), Fraction(1)), Adjacency.REPLACE)[0]
