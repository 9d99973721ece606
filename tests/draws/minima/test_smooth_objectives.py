"""Gradients and Hessians in float64 are within their bounds of what 200 binary digits find."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.core.balls import ball_of
from kngjax.core.verified import UNIT
from kngjax.data.records import Records
from kngjax.draws.minima.newton_searches import float_search
from kngjax.draws.minima.smooth_objectives import Objective
from tests.oracles.smooth_minima import LOSSES, made, true_gradient


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 700), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_in_float64_are_within_their_bounds_which_are_not_wide(name, seeds):
    """At the minimiser and elsewhere; a unit of the last place more per record would be seen in the width."""
    for seed in seeds:
        objective = made(name, 200, 3, seed, scale=np.array([1.0, 30.0, 1e-3]))
        for theta in (float_search(objective, np.zeros(3)), np.array([0.5, -0.1, 40.0]), np.zeros(3)):
            value, bound = objective.gradient(theta)
            with ctx.workprec(200):
                places = [arb(one) for one in theta.tolist()]
                ridge = [ball_of(objective.ridge) * one for one in places]
                true = [
                    one - part for one, part in zip(true_gradient(objective, places, [arb(0)] * 3), ridge, strict=True)
                ]
                for one, two, off in zip(value.tolist(), true, bound.tolist(), strict=True):
                    assert abs(two - arb(one)) <= arb(off)
            sizes = objective.sizes @ np.abs(theta) + np.abs(objective.scores.y) + 1.0
            assert np.all(bound <= 50 * UNIT * (sizes @ objective.sizes))


def test_sums_of_many_records_are_within_their_bounds():
    """Scores of which each is the same and exact, and columns that are constant: errors of sums do not cancel."""
    row = np.random.default_rng(1).uniform(1.0, 2.0, 400)
    records = Records(np.tile(row, (960, 1)), np.full(960, 1e3))
    objective = Objective.of(records, kng.HuberLoss(1 / 3).verified_score(), Fraction(1), Fraction(2))
    value, bound = objective.gradient(np.zeros(400))
    exact = [-960 * Fraction(1 / 3) * Fraction(one) for one in row.tolist()]
    errors = [abs(Fraction(one) - two) for one, two in zip(value.tolist(), exact, strict=True)]
    assert all(error <= Fraction(off) for error, off in zip(errors, bound.tolist(), strict=True))
    assert max(error / abs(two) for error, two in zip(errors, exact, strict=True)) > 2 * UNIT
    assert np.all(bound < 40 * UNIT * np.abs(value))


def test_predictors_that_cancel_are_within_their_errors():
    """Products of 2^60 that add up to about 1: scores are off by some hundreds, and the bound says so."""
    generator = np.random.default_rng(2)
    x = np.hstack([generator.uniform(1.0, 2.0, (40, 1)) * 2.0**60 for _ in range(3)])
    x[:, 2] = -(x[:, 0] + x[:, 1]) * (1.0 + 2.0**-50)
    objective = Objective.of(
        Records(x, np.zeros(40)), kng.HuberLoss(2.0**40).verified_score(), Fraction(1), Fraction(2)
    )
    theta = np.array([1.0, 1.0, 1.0]) * 1.1
    value, bound = objective.gradient(theta)
    places = [Fraction(one) for one in theta.tolist()]
    exact, plain = [Fraction(0)] * 3, np.zeros(3)
    for row in x.tolist():
        score = sum((Fraction(a) * b for a, b in zip(row, places, strict=True)), Fraction(0))
        exact = [one + score * Fraction(a) for one, a in zip(exact, row, strict=True)]
        plain += np.abs(float(score) * np.array(row))
    errors = [float(abs(Fraction(one) - two)) for one, two in zip(value.tolist(), exact, strict=True)]
    assert np.all(np.array(errors) <= bound)
    # Far more than sums of these scores would lose, were they exact.
    assert np.max(np.array(errors) / plain) > 100 * UNIT


@pytest.mark.parametrize("name", LOSSES)
def test_hessians_contain_the_mean_slopes_between_all_points_of_the_box(name):
    """One record at a time, so that no bound has room from another: some of its slopes are at both ends."""
    generator, reached = np.random.default_rng(3), []
    for seed in range(60):
        objective = made(name, 1, 2, seed)
        theta, radius = generator.normal(size=2), 10.0 ** generator.uniform(-3, 1, 2)
        middle, off = objective.slopes(theta, radius)
        with ctx.workprec(200):
            (row,), (y,) = objective.x[:1].tolist(), objective.scores.y[:1].tolist()
            at = sum((arb(a) * arb(b) for a, b in zip(row, theta.tolist(), strict=True)), arb(0))
            reach = sum((abs(arb(a)) * arb(b) for a, b in zip(row, radius.tolist(), strict=True)), arb(0))
            places = [at + reach * arb(part) for part in np.linspace(-1.0, 1.0, 9).tolist()]
            values = [objective.scores.score.ball(place, Fraction(y)) for place in places]
            for (one, first), (two, second) in itertools.pairwise(zip(places, values, strict=True)):
                slope = (second - first) / (two - one)
                for j, k in itertools.product(range(2), repeat=2):
                    gap = abs(slope * arb(row[j]) * arb(row[k]) - arb(middle[j, k]))
                    assert gap <= arb(off[j, k])
                    reached.append(float(gap) / off[j, k])
    assert max(reached) > (0.5 if name == "logistic" else 0.6)
