"""Coordinates of a lattice: unimodular, round, and of the same law; and how many boxes badly scaled tables need."""

import dataclasses
import random

import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law
from kngjax.draws.lattice import coordinates, envelope
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from tests.oracles.goodness_of_fit import assert_cell_frequencies

# A column that varies little beside the intercept, on a lattice of some 2,000 points.
NARROW = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=([0.0], [1.0])), kng.Box(-4.0, 4.0), 6.0, "replace")
COARSE = kng.draws.Lattice(data_digits=5, theta_digits=5, expected_proposals=2.0)


def narrow_records():
    generator = np.random.default_rng(4)
    x = 0.7 + 0.06 * generator.standard_normal((40, 1))
    return NARROW.intake.records(
        x.clip(0.0, 1.0), np.round(4.0 * (x[:, 0] + 0.5 * generator.standard_normal(40))) / 4.0
    )


def draws_of(problem, sampler, number):
    bits, drawn = random.Random(5).getrandbits, sampler.envelope(problem)
    return drawn, np.array([drawn.draw(bits) for _ in range(number)])


def frequencies(problem, points):
    """How often each point of Θ was drawn, in the order of `lattice_law`."""
    sides = problem.domain.high - problem.domain.low + 1
    places = np.ravel_multi_index((points - problem.domain.low).T, sides)
    return np.bincount(places, minlength=int(np.prod(sides)))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_coordinates_are_unimodular_and_round(dimension):
    generator = np.random.default_rng(dimension)
    x = np.column_stack([np.ones(500), 0.5 + 0.01 * generator.standard_normal((500, dimension - 1))])
    found = LatticeCoordinates.reduced(x.T @ x, np.full(dimension, -(2**24)), np.full(dimension, 2**24))
    np.testing.assert_array_equal(found.matrix @ found.inverse, np.eye(dimension))
    assert all(part.dtype == np.int64 for part in (found.matrix, found.inverse))
    moves = x @ found.matrix
    gram = moves.T @ moves
    sizes = np.sqrt(np.diagonal(gram))
    # 40,000 before, of columns scaled to one size; of a reduced basis of 4 at most some 100.
    assert np.linalg.cond(gram / np.outer(sizes, sizes)) < 10.0


def test_what_numbers_of_64_bits_would_not_hold_keeps_its_own_coordinates():
    form = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    small, large = (LatticeCoordinates.reduced(form, np.full(2, -(2**size)), np.full(2, 2**size)) for size in (20, 59))
    assert np.any(small.matrix != np.eye(2))
    np.testing.assert_array_equal(large.matrix, np.eye(2))
    np.testing.assert_array_equal(LatticeCoordinates.reduced(form * np.nan, [-1, -1], [1, 1]).matrix, np.eye(2))


def test_a_basis_of_another_lattice_is_refused():
    with pytest.raises(AssertionError, match="unimodular"):
        coordinates._whole_inverse([[2, 0], [0, 1]])


@pytest.mark.slow
def test_draws_in_round_coordinates_have_the_probabilities_of_each_point():
    """Against the law point by point, in k: it knows no coordinates. Pearson's statistic at the suite's level."""
    problem = COARSE.problem(NARROW, narrow_records())
    drawn, points = draws_of(problem, COARSE, 4000)
    assert np.any(drawn._score.coordinates.matrix != np.eye(2))
    law = lattice_law(NARROW, narrow_records(), COARSE)
    assert_cell_frequencies(frequencies(problem, points), law.probabilities)


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["a matrix of determinant 2", "a wrong inverse"])
def test_coordinates_that_are_not_unimodular_draw_another_law(plant, monkeypatch):
    """Every second point is never drawn; or a part of Θ, which the boxes leave out."""
    reduced = LatticeCoordinates.reduced

    def planted(form, low, high):
        found = reduced(form, low, high)
        if plant == "a wrong inverse":
            return dataclasses.replace(found, inverse=0 * found.inverse)
        return dataclasses.replace(found, matrix=found.matrix @ np.diag([2, 1]))

    monkeypatch.setattr(LatticeCoordinates, "reduced", planted)
    problem = COARSE.problem(NARROW, narrow_records())
    _, points = draws_of(problem, COARSE, 1500)
    law = lattice_law(NARROW, narrow_records(), COARSE)
    with pytest.raises(AssertionError):
        assert_cell_frequencies(frequencies(problem, points), law.probabilities)


def test_rays_bound_the_score_at_every_point_beyond_a_cell():
    """Points k₀ + t(p - k₀), t ≥ 1, of random cells, scored record by record in fractions of the norm."""
    problem, generator = COARSE.problem(NARROW, narrow_records()), np.random.default_rng(6)
    score = problem.score.near(problem.domain, float(problem.rate))
    assert isinstance(score, QuantileScore)
    whole = problem.score.whole(problem.domain.low, problem.domain.high)
    positive = seen = 0
    for _ in range(60):
        low = score.origin + generator.integers(-12, 12, 2)
        high = low + generator.integers(0, 4, 2)
        bound = int(score.beyond(low[None], high[None])[0])
        for point in generator.uniform(low, high, (20, 2)):
            for times in (1.0, 1.7, 4.0):
                # The lattice point must lie on the ray: cells of whole numbers alone are extended exactly.
                corner = np.rint(point).astype(np.int64)
                m = score.origin + int(np.ceil(times)) * (corner - score.origin)
                k = score.coordinates.matrix @ m
                if np.all((low <= corner) & (corner <= high)) and problem.domain.contains(k):
                    assert problem.score.at(k, whole.runs[0], whole.sums[0]) >= bound
                    positive, seen = positive + (bound > 0), seen + 1
    assert positive > 100
    assert seen > positive


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
def test_a_badly_scaled_table_needs_no_more_boxes_than_its_twin_times_eight(epsilon):
    """Columns that vary by a sixteenth of their bounds, beside the intercept, in units far apart."""
    generator = np.random.default_rng(7)
    x, noise = generator.uniform(-1.0, 1.0, (400, 2)), generator.standard_normal(400)

    def boxes(columns, bounds, reach):
        mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=bounds), kng.Box(-reach, reach), epsilon, "replace")
        sampler = kng.draws.Lattice(most_boxes=20_000)
        problem = sampler.problem(mechanism, mechanism.intake.records(columns, x.sum(axis=1) + noise))
        return len(sampler.envelope(problem)._boxes.runs)

    twin = boxes(x, ([-1.0, -1.0], [1.0, 1.0]), 20.0)
    upper = np.array([80.0, 1e-3])
    bad = boxes(np.array([60.0, 8e-4]) + x * np.array([10.0, 1e-4]), (np.zeros(2), upper), 20_000.0)
    assert bad <= 8 * twin, (bad, twin)


def test_ends_of_a_core_and_its_slabs_hold_every_point_once():
    problem = kng.draws.Lattice(data_digits=6, theta_digits=7).problem(NARROW, narrow_records())
    drawn = envelope.LatticeEnvelope(*problem, 1.5, 1000)
    boxes, inverse = drawn._boxes, drawn._score.coordinates.inverse
    generator = np.random.default_rng(8)
    for point in generator.integers(problem.domain.low, problem.domain.high + 1, (300, 2)):
        m = inverse @ point
        assert np.sum(np.all((boxes.low <= m) & (m <= boxes.high), axis=1)) == 1
