"""Sampling variances: what one record adds and is cut to, the sums against NumPy, and draws without their noise."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.data import persons
from kngjax.data.records import Records, WeightedRecords
from kngjax.inference import score_variances
from kngjax.inference.score_variances import Directions, UsualScores
from tests.inference.test_with_intervals import BOUNDS, mechanism, records, table

COMBINATIONS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0], [2.0, 0.25, 1.0]])
# Usual scores of a pseudo-Huber loss of responses with little scatter.
USUAL = UsualScores(0.03, 5000)


def directions_of(inverse, usual=USUAL, square_unit=0.49):
    return Directions.of(inverse, COMBINATIONS, BOUNDS, square_unit, usual)


def inverse_of(x):
    return np.linalg.inv(x.T @ x)


def test_sums_are_sampling_variances_over_those_of_the_inverse():
    """t of each combination is a'WJWa/a'Wa, J = Σ s² xx', where no record is cut, up to 2^-22 of the cut a record."""
    made = records(5000)
    x, square = np.asarray(made.x), np.random.default_rng(1).uniform(0.0, 1.0, 5000)
    inverse = inverse_of(x)
    directions = directions_of(inverse, UsualScores(None, None))
    found = directions.columns(x, square, 0.49).sum(axis=0) * directions.cuts
    scores = (x * (0.49 * square)[:, None]).T @ x
    wanted = np.diag(COMBINATIONS @ inverse @ scores @ inverse @ COMBINATIONS.T)
    np.testing.assert_allclose(found * np.diag(COMBINATIONS @ inverse @ COMBINATIONS.T), wanted, rtol=2e-6)
    assert np.all(directions.columns(x, square, 0.49).max(axis=0) < 1.0)


def persons_of(rows, codes, votes):
    """Rows of persons with their weights as these are shared, min(m, k)/m each."""
    made = persons.shares(codes, votes, np.zeros(len(codes), np.uint64))
    return WeightedRecords(Records(rows.x, rows.y, made.persons), made.weights, codes)


@pytest.mark.parametrize("votes", [1, 3])
def test_sums_over_persons_are_clustered_sampling_variances(votes):
    """t of each combination is a'WJWa/a'Wa with J = Σ gg', g = Σ w·s·x over a person's rows: in NumPy, one by one."""
    made, random = records(2000), np.random.default_rng(1)
    x, shares, codes = np.asarray(made.x), random.uniform(-1.0, 1.0, 2000), random.integers(0, 300, 2000)
    codes[:2] = 300, 301
    codes = np.unique(codes, return_inverse=True)[1]
    rows, inverse = persons_of(made, codes, votes), inverse_of(x)
    directions = directions_of(inverse, UsualScores(None, None), 0.49 * votes**2)
    columns = directions.columns_of_persons(x, shares / votes, 0.49 * votes**2, rows)
    assert columns.shape == (rows.num_records, 3)
    middle = np.zeros((3, 3))
    for person in range(rows.num_records):
        own = codes == person
        weight = min(own.sum(), votes) / own.sum()
        score = weight * (0.7 * shares[own]) @ x[own]
        middle += np.outer(score, score)
    found = columns.sum(axis=0) * directions.cuts * np.diag(COMBINATIONS @ inverse @ COMBINATIONS.T)
    wanted = np.diag(COMBINATIONS @ inverse @ middle @ inverse @ COMBINATIONS.T)
    np.testing.assert_allclose(found, wanted, rtol=3e-4)
    # Rows taken for persons are far from it.
    apart = directions.columns(x, (shares / votes) ** 2, 0.49 * votes**2).sum(axis=0)
    assert np.all(np.abs(apart / columns.sum(axis=0) - 1.0) > 0.5)


def test_every_person_adds_at_most_1_by_their_own_rows_alone():
    made, codes = records(300), np.repeat(np.arange(60), 5)
    x, shares = np.asarray(made.x), np.linspace(-1.0, 1.0, 300)
    with np.errstate(all="ignore"):
        directions = directions_of(1e150 * inverse_of(x), UsualScores(0.3, 10**9))
        found = directions.columns_of_persons(x, shares, 0.49, persons_of(made, codes, 1))
        assert np.all((found >= 0.0) & (found <= 1.0))
        assert found.max() == 1.0
        # Other persons stand before, between and after these rows, which keep their order.
        order = np.argsort(np.random.default_rng(2).permutation(60)[codes], kind="stable")
        again = directions.columns_of_persons(
            x[order], shares[order], 0.49, persons_of(Records(x[order], np.asarray(made.y)[order]), codes[order], 1)
        )
        assert again.tobytes() == found.tobytes()
        # One row a person is a record.
        each = directions.columns_of_persons(x, shares, 0.49, persons_of(made, np.arange(300), 1))
        np.testing.assert_array_equal(each, directions.columns(x, shares**2, 0.49))


def test_cuts_are_public_and_the_least_of_what_bounds_and_what_usual_scores_allow():
    inverse = inverse_of(np.asarray(records(5000).x))
    usual, bounded = directions_of(inverse).cuts, directions_of(inverse, UsualScores(None, 5000)).cuts
    np.testing.assert_allclose(usual, 40.0 * 0.03 / 5000)
    corners = np.array([[1.0, a, b] for a in (-1.0, 1.0) for b in (-2.0, 2.0)])
    vectors = COMBINATIONS @ inverse
    vectors /= np.sqrt(np.einsum("kd,kd->k", vectors, COMBINATIONS))[:, None]
    largest = 0.49 * ((np.abs(corners) @ np.abs(vectors).T) ** 2).max(axis=0)
    np.testing.assert_allclose(bounded, largest, rtol=1e-10)
    assert np.all(usual < bounded)
    np.testing.assert_array_equal(directions_of(inverse, UsualScores(0.3, None)).cuts, bounded)
    np.testing.assert_allclose(directions_of(inverse, UsualScores(1e9, 5000)).cuts, bounded)


@pytest.mark.parametrize("size", [1.0, 1e-150, 1e150])
def test_every_record_adds_at_most_1_by_itself_whatever_the_inverse_is(size):
    x, square = np.asarray(records(300).x), np.linspace(0.0, 1.0, 300)
    with np.errstate(all="ignore"):
        directions = directions_of(size * inverse_of(x), UsualScores(0.3, 10**9))
        found = directions.columns(x, square, 0.49)
        assert np.all((found >= 0.0) & (found <= 1.0))
        order = np.random.default_rng(2).permutation(300)[:77]
        assert directions.columns(x[order], square[order], 0.49).tobytes() == found[order].tobytes()
        # Some are cut, so that the largest change is that of the noise.
        assert (found.max() == 1.0) == (size >= 1.0)
    summing = score_variances.summing_of(3, 0.05, kng.Adjacency.REPLACE)
    assert float(summing.epsilon) == 0.05
    moves = summing.intake.exact_sums(np.ones((1, 3))).moment - summing.intake.exact_sums(np.zeros((1, 3))).moment
    noise = summing.noise_in_fractions(3, 1)
    length = max(float(move) / float(weight) for move, weight in zip(moves, noise.weights, strict=True))
    assert length / float(noise.scale_squared) ** 0.5 == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_draws_take_off_the_noise_that_there_is(adjacency):
    """A Gamma(k + 1) radius times a point of the box: half of it would be seen."""
    summing = score_variances.summing_of(3, 0.5, kng.Adjacency.parse(adjacency))
    cuts, sums = np.array([0.5, 2.0, 1.0]), np.full(3, 1e4)
    drawn = score_variances.variances_given(sums, summing, cuts, USUAL, 40_000)
    np.testing.assert_allclose(drawn.mean(axis=0), 1e4 * cuts, rtol=1e-3)
    # E r² = (k + 1)(k + 2)/ε², and a third of it in each coordinate.
    np.testing.assert_allclose(drawn.std(axis=0), cuts * np.sqrt(20.0 / 3.0) / 0.5, rtol=0.05)


def test_draws_are_at_least_a_public_floor():
    summing = score_variances.summing_of(3, 0.05, kng.Adjacency.REPLACE)
    drawn = score_variances.variances_given(np.full(3, -1e6), summing, np.ones(3), USUAL, 100)
    np.testing.assert_array_equal(drawn, np.full((100, 3), 0.05 * 0.03))
    none = score_variances.variances_given(np.full(3, -1e6), summing, np.ones(3), UsualScores(None, None), 100)
    np.testing.assert_array_equal(none, 0.0)


def test_a_release_adds_up_the_columns_of_its_records():
    """At next to no noise the third release is what NumPy makes of records, θ̃ and the first two."""
    x, y = table(20_000)
    plan = kng.WithIntervals(mechanism(epsilon=90.0), combinations=COMBINATIONS)
    fit = kng.release(plan, x, y)
    theta, design = fit.value, np.column_stack([np.ones(20_000), x])
    residual = y - design @ theta
    score = residual / np.sqrt(1.0 + (residual / 0.7) ** 2)
    w = (1.0 + (residual / 0.7) ** 2) ** -1.5
    inverse = np.linalg.inv((design * w[:, None]).T @ design)
    along = design @ (COMBINATIONS @ inverse).T / np.sqrt(np.diag(COMBINATIONS @ inverse @ COMBINATIONS.T))
    wanted = (score[:, None] ** 2 * along**2).sum(axis=0)
    np.testing.assert_allclose(fit.parts[2].value * fit.making["cuts"], wanted, rtol=0.02)
