"""Moments of records with weights: what one record changes is reached by the worst ones, and exceeded by none."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records, WeightedRecords
from kngjax.sensitivity import moments
from kngjax.sensitivity.moments_in_fractions import (
    SquaredRadii,
    eigenvalue_step,
    ridge_change,
    rounded_eigenvalue_change,
    squared_moment_changes,
)

LARGEST = 2.5
SIDES = {"square": ([-1.0, -1.0], [1.0, 1.0]), "plain": ([-1.0, -2.0], [1.0, 0.5])}


def bounds_of(name, weight=LARGEST):
    return kng.Bounds(x=tuple(map(np.array, SIDES[name])), y=(-0.5, 0.5), intercept=False, weight=weight)


def contributions(name):
    """w·xx' and w·xy at corners of the bounds, of weights at the ends and between, as mechanisms add them up."""
    corners = itertools.product(*zip(*SIDES[name], strict=True), (-0.5, 0.5))
    for record, weight in itertools.product(corners, (0.0, 1.25, LARGEST)):
        rows = Records(np.array([record[:2]]), np.array([record[2]]))
        yield kng.SquaredLoss().sums(WeightedRecords(rows, np.array([weight])))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("name", SIDES)
def test_moments_change_by_no_more_and_that_much(name, adjacency):
    """In fractions. Of exchanged records X'X moves most where they are at right angles, X'y where they are opposite."""
    bounds, records = bounds_of(name), list(contributions(name))
    matrix, moment = squared_moment_changes(SquaredRadii.of(bounds, 2), adjacency)
    nothing = ExactSums(0, 0 * records[0].gram, 0 * records[0].moment, 0)
    pairs = list(itertools.product(records, records if adjacency is Adjacency.REPLACE else [nothing]))
    matrices = max(np.sum((one.gram - two.gram) ** 2) for one, two in pairs)
    vectors = max(np.sum((one.moment - two.moment) ** 2) for one, two in pairs)
    assert matrices <= matrix
    assert vectors <= moment
    if name == "square":
        assert (matrices, vectors) == (matrix, moment)
    with float64():
        by_float = np.array(moments.moment_changes(bounds, adjacency, 2)) ** 2
    np.testing.assert_allclose(by_float, [float(matrix), float(moment)], rtol=1e-14)


def test_the_smallest_eigenvalue_changes_by_no_more_and_that_much():
    """By W·X² where all lie along one direction but the record at right angles to them, and the rounded one by ⌈⌉."""
    radii, generator, found = SquaredRadii.of(bounds_of("square"), 2), np.random.default_rng(0), []
    for _ in range(300):
        x, w = generator.choice([-1.0, 1.0], (4, 2)), generator.choice([0.0, 1.0, LARGEST], 4)
        before, after = (np.linalg.eigvalsh((part.T * weights) @ part)[0] for part, weights in ((x[:3], w[:3]), (x, w)))
        other = np.vstack([x[:3], generator.choice([-1.0, 1.0], (1, 2))])
        exchanged = np.linalg.eigvalsh((other.T * w) @ other)[0]
        found += [after - before, abs(after - exchanged)]
    with float64():
        largest = float(moments.eigenvalue_change(bounds_of("square"), 2))
    assert largest == pytest.approx(2.0 * LARGEST, rel=1e-14)
    assert min(found) >= -1e-12
    assert largest - 1e-9 <= max(found) <= largest + 1e-9
    assert rounded_eigenvalue_change(radii, eigenvalue_step(radii)) >= 2 * Fraction(LARGEST)


@pytest.mark.parametrize(("regularization", "num_others"), [(0.5, 20.0), (30.0, 50.0)])
def test_a_ridge_regression_changes_by_no_more_and_about_that_much(regularization, num_others):
    """Records (a, 1) of the largest weight, and one more, (1, -1), of any."""
    line = kng.Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False, weight=LARGEST)
    bound = float(ridge_change(SquaredRadii.of(line, 1), Fraction(regularization), Fraction(num_others)))
    found = []
    for size, weight in itertools.product(np.linspace(0.001, 1.0, 400), (1.0, LARGEST)):
        precision, moment = regularization + LARGEST * num_others * size**2, LARGEST * num_others * size
        found.append(abs((moment - weight) / (precision + weight) - moment / precision))
    assert 0.98 * bound < max(found) <= bound
    with float64():
        assert float(moments.ridge_changes(line, regularization, num_others, 1)) == pytest.approx(bound, rel=1e-12)


def test_radii_are_of_records_times_the_roots_of_their_weights():
    plain, weighted = (SquaredRadii.of(bounds_of("plain", weight), 2) for weight in (None, LARGEST))
    assert weighted == SquaredRadii(Fraction(LARGEST) * plain.features, Fraction(LARGEST) * plain.response)
    assert moments.explain_radii(bounds_of("plain", None), 2.0, 0.5) == "|x| <= 2 and |y| <= 0.5"
    assert "weights w of at most 2.5" in moments.explain_radii(bounds_of("plain"), 2.0, 0.5)
    x, y = moments.radii(bounds_of("plain"), 2)
    assert (x**2, y**2) == (pytest.approx(LARGEST * 5.0), pytest.approx(LARGEST * 0.25))
    with float64():
        absolute = [
            np.array(moments.absolute_moment_changes(bounds_of("plain", w), Adjacency.REPLACE, 2))
            for w in (None, LARGEST)
        ]
    np.testing.assert_allclose(absolute[1], LARGEST * absolute[0], rtol=1e-12)
