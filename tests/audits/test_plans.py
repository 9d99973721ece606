"""Audits of estimates with intervals: sums replayed on neighbours, all parts told apart, and bugs that must be seen."""

import functools

import numpy as np
import pytest

import kngjax as kng
from audits import plans
from kngjax.inference import covariances, interval_plans
from kngjax.inference.positive_definite import ChainLengths
from kngjax.inference.score_variances import summing_of
from kngjax.mechanisms.block_sums import BlockSums
from tests.inference.test_with_intervals import (
    COVARIANCES,
    LEVELS,
    OF_LEVELS,
    mechanism,
    table,
    table_of_levels,
)

LINE = kng.Bounds(x=([0.0], [1.0]), y=(-1.0, 1.0), intercept=False)


def neighbours(adjacency, name="sandwich"):
    """A record far beyond the bounds, where it shows if it is not clipped, for one in the middle, or for none."""
    x, y = table_of_levels(30) if name == "levels" else table(30)
    # With both levels at once, against the promise.
    far = [9.0, 9.0, 9.0, -9.0, 8.0] if name == "levels" else [9.0, -9.0]
    near = [0.0, 1.0, -1.0, 0.0, -1.0] if name == "levels" else [0.25, 1.0]
    more, response = np.vstack([x, far]), np.append(y, 0.5)
    if adjacency == "add_remove":
        return (more, response), (x, y)
    return (more, response), (np.vstack([x, near]), np.append(y, 0.3))


def plan_of(name, adjacency="replace"):
    if name == "levels":
        return kng.WithIntervals(mechanism(adjacency, bounds=LEVELS), OF_LEVELS)
    return kng.WithIntervals(mechanism(adjacency), COVARIANCES[name])


@pytest.fixture(autouse=True)
def short_chains(monkeypatch):
    """Whatever directions follow from what was released, they are public."""
    short = functools.partial(covariances.matrices_given, lengths=ChainLengths(4, 2, 5, 1))
    monkeypatch.setattr(covariances, "matrices_given", short)
    interval_plans._hessians.cache_clear()
    yield
    interval_plans._hessians.cache_clear()


@pytest.mark.default_cases("sandwich-replace", "levels-add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("name", [*COVARIANCES, "levels"])
def test_no_sums_of_a_plan_move_by_more_than_their_noise_hides(name, adjacency):
    found = plans.replayed_sums(plan_of(name, adjacency), *neighbours(adjacency, name), num_points=4)
    assert found.passed
    assert found.ratio > 0.4


def test_half_of_the_noise_of_h_is_seen_by_the_replay(monkeypatch):
    half = property(lambda made: made.covariance.summing(made.mechanism, 2.0 * made.epsilons[0]))
    monkeypatch.setattr(interval_plans.RegressionPlan, "summing", half)
    assert not plans.replayed_sums(plan_of("levels"), *neighbours("replace", "levels"), num_points=2).passed


def test_half_of_the_noise_of_the_variances_is_seen_by_the_replay(monkeypatch):
    half = property(lambda made: summing_of(made.dimension, 2.0 * made.epsilons[1], made.mechanism.adjacency))
    monkeypatch.setattr(interval_plans.RegressionPlan, "of_variances", half)
    assert not plans.replayed_sums(plan_of("sandwich"), *neighbours("replace"), num_points=2).passed


def test_records_with_several_levels_at_once_are_seen_by_the_replay(monkeypatch):
    monkeypatch.setattr(BlockSums, "alone", lambda made, x: x)
    assert not plans.replayed_sums(plan_of("levels"), *neighbours("replace", "levels"), num_points=2).passed


def test_a_plan_without_such_sums_is_refused():
    means = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False), 1.0, "replace")
    with pytest.raises(TypeError, match="no sums at a released value"):
        plans.replayed_sums(kng.WithIntervals(means), *neighbours("replace"))


def of_sums(share=0.9):
    """Nearly all of ε is for the sums, that are far apart."""
    made = kng.KNG(kng.SquaredLoss(), LINE, kng.Box(-1.0, 1.0), 1.0, "replace")
    pair = (np.array([[1.0], [0.5]]), np.array([-1.0, 0.0])), (np.array([[0.0], [0.5]]), np.array([1.0, 0.0]))
    return kng.WithIntervals(made, kng.Sandwich(share=share)), pair


def told_apart(plan, pair, number=1500):
    found, claimed = plans.black_box_of_plan(plan, *pair, num_draws=number)
    return found > claimed, found / claimed


@pytest.mark.slow
def test_an_estimate_and_its_sums_together_are_as_private_as_claimed():
    seen, ratio = told_apart(*of_sums())
    assert not seen
    assert ratio > 0.3


@pytest.mark.slow
def test_a_share_that_is_counted_several_times_is_told_apart(monkeypatch):
    """The sums at four times their ε, besides an estimate at what it has."""
    greedy = property(lambda made: made.covariance.summing(made.mechanism, 4.0 * made.epsilons[0]))
    monkeypatch.setattr(interval_plans.RegressionPlan, "summing", greedy)
    assert told_apart(*of_sums())[0]
