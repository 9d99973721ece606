"""The budget of AdaOPS's stages: balls confirm what float64 plans, and nothing beyond."""

from fractions import Fraction

import jax
import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.draws.stages_in_balls import StagePlan, gamma_within, keeps_budget

BOUNDS = kng.Bounds(x=([-1.0, -2.0], [1.0, 0.5]), y=(-3.0, 3.0))
SQUARED = Fraction(6)


def planned(adjacency="add_remove", epsilon=1.0, delta=1e-6, **changes):
    mechanism = kng.AdaOPS(BOUNDS, epsilon, delta, adjacency, **changes)
    with float64():
        found = jax.tree.map(lambda number: Fraction(float(number)), mechanism.plan(3))
    shift = SQUARED / found.eigenvalue_deviation
    plan = StagePlan(found.order, found.budget, shift, found.bound_shift, found.tail, found.least_curvature)
    return plan, mechanism.guarantee


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-10])
def test_plans_are_confirmed_and_those_that_spend_a_little_more_are_not(adjacency, epsilon, delta):
    plan, guarantee = planned(adjacency, epsilon, delta)
    assert keeps_budget(plan, SQUARED, guarantee)
    more = Fraction(1) + Fraction(1, 10**5)
    assert not keeps_budget(plan._replace(budget=plan.budget * more), SQUARED, guarantee)
    for name in ("eigenvalue_shift", "bound_shift"):
        assert not keeps_budget(
            plan._replace(**{name: getattr(plan, name) * (1 + 100 * (more - 1))}), SQUARED, guarantee
        )
    assert not keeps_budget(plan._replace(tail=plan.tail * (2 - 1000 * (more - 1) - 1)), SQUARED, guarantee)
    assert not keeps_budget(plan._replace(least_curvature=plan.least_curvature / 10**4), SQUARED, guarantee)
    assert not keeps_budget(plan._replace(order=Fraction(1)), SQUARED, guarantee)


def test_the_conversion_is_that_of_gaussian_noise():
    """N(0, 1) and N(s, 1) have D_α = αs²/2 and an exact profile, which the conversion may not fall short of."""
    epsilon, shift, order = 1.0, 0.4, Fraction(10)
    exact = scipy.stats.norm.cdf(shift / 2 - epsilon / shift)
    exact -= np.exp(epsilon) * scipy.stats.norm.cdf(-shift / 2 - epsilon / shift)
    # Hardly anything but the first stage.
    plan = StagePlan(order, Fraction(1, 10**9), Fraction(2, 5), Fraction(1, 10**9), Fraction(20), Fraction(10**9))
    for factor, expected in ((0.9, False), (50.0, True)):
        guarantee = kng.Guarantee.approximate(epsilon, float(exact * factor), "add_remove")
        assert keeps_budget(plan, Fraction(1), guarantee) is expected


@pytest.mark.parametrize("share", [1.0, 0.1, 1e-6])
def test_gamma_spends_what_the_last_stage_has_and_no_more(share):
    """The Rényi divergence of the normal laws of u = x'θ for both directions, by their textbook formula in balls."""
    plan, _ = planned()
    leverage, bound = SQUARED / plan.least_curvature * Fraction(share), Fraction(7, 3)
    gamma = gamma_within(plan, leverage, bound)
    with ctx.workprec(500):
        mu, order = ball_of(leverage), ball_of(plan.order)
        # In units of the deviation of u without the record.
        apart = ball_of(bound) * (ball_of(gamma) * mu).sqrt() / (1 + mu)

        def renyi(first: arb, second: arb) -> arb:
            mixed = order * second + (1 - order) * first
            return order * apart**2 / (2 * mixed) + (first.log() * (1 - order) + second.log() * order - mixed.log()) / (
                2 * (order - 1)
            )

        budget = ball_of(plan.budget)
        added, removed = renyi(arb(1), 1 / (1 + mu)), renyi(1 / (1 + mu), arb(1))
        assert added <= budget
        assert removed <= added
        assert added >= budget * (1 - arb(2) ** -200)
