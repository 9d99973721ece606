"""AdaOPS with every rounding in its proof: the laws of its stages, and how rarely its bounds fail."""

import dataclasses
import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.data.exact_sums import ExactSums
from kngjax.draws import ada_ops_draw
from kngjax.draws.ada_ops_draw import NoisyAdaOPS
from kngjax.draws.choice import proved_draw
from kngjax.sensitivity.moments_in_fractions import rounded_eigenvalue_change
from tests.oracles.goodness_of_fit import assert_same_law, assert_two_samples_agree

LINE = kng.Bounds(x=([-2.0], [1.0]), y=(-1.0, 1.0), intercept=False)


def adaptive(bounds=LINE, adjacency="add_remove", epsilon=1.0, delta=1e-5, **changes):
    return kng.AdaOPS(bounds, epsilon, delta, adjacency, **changes)


def records(number):
    generator = np.random.default_rng(1)
    x = generator.uniform(-2.0, 1.0, (number, 1))
    return x, np.clip(0.3 * x[:, 0] + 0.2 * generator.normal(size=number), -1.0, 1.0)


def way_of(mechanism, x, y):
    way = proved_draw(mechanism, mechanism.intake.check_schema(x, y))
    assert isinstance(way, NoisyAdaOPS)
    return way, way.prepare(x, y)


@pytest.mark.slow
def test_releases_have_the_law_of_float64s_draws():
    mechanism, (x, y) = adaptive(), records(3000)
    way, sums = way_of(mechanism, x, y)
    bits = random.Random(7).getrandbits
    found = np.array([way.draw(sums, bits)[0] for _ in range(1000)])
    with float64():
        others, succeeded = mechanism.draws(mechanism.prepare(x, y), kng.research_key(0), 20_000)
    assert succeeded
    assert_two_samples_agree(found, np.asarray(others)[:, 0])


def test_each_stage_has_its_normal_law():
    """With so little noise that what a record changes is two and three deviations."""
    way, sums = way_of(adaptive(), *records(3000))
    plan = way.plan._replace(eigenvalue_shift=Fraction(2), bound_shift=Fraction(3))
    way, bits = dataclasses.replace(way, plan=plan), random.Random(8).getrandbits
    lowest = np.array([float(way._draw_eigenvalue(sums, bits)) for _ in range(1000)])
    # X² = 4, and r adds less than a part in 10⁵.
    deviation = 4.0 / float(plan.eigenvalue_shift)
    centre = float(sums.gram[0, 0]) - 4.0 - float(plan.tail) * deviation
    assert_same_law((lowest - centre) / deviation, scipy.stats.norm.cdf)
    ridge, curvature = Fraction(7, 5), Fraction(4000)
    logs = np.log([float(way._draw_bound(sums, ridge, curvature, bits)) for _ in range(1000)])
    change = math.log1p(4.0 / 4000.0)
    deviation = change / float(plan.bound_shift)
    estimate = abs(float(sums.moment[0] / (sums.gram[0, 0] + ridge)))
    centre = math.log(1.0 + 2.0 * estimate) + change + float(plan.tail) * deviation
    assert_same_law((logs - centre) / deviation, scipy.stats.norm.cdf)


def test_what_a_record_changes_of_the_bound_is_rounded_up(monkeypatch):
    """With 12 digits, so that rounding down would be seen: a ≥ log(1 + X²/h) in the noise of log L."""
    way, sums = way_of(adaptive(), *records(50))
    monkeypatch.setattr(ada_ops_draw, "_DIGITS", 12)
    deviations, original = [], ada_ops_draw.cell_of

    def seen(grid, drawn, places):
        with ctx.workprec(200):
            (at_one,), (at_zero,) = places([arb(1)]), places([arb(0)])
            deviations.append(at_one - at_zero)
        return original(grid, drawn, places)

    monkeypatch.setattr(ada_ops_draw, "cell_of", seen)
    curvatures = [Fraction(number, 7) for number in range(10, 900, 23)]
    for curvature in curvatures:
        way._draw_bound(sums, Fraction(1), curvature, random.Random(1).getrandbits)
    with ctx.workprec(200):
        for deviation, curvature in zip(deviations, curvatures, strict=True):
            change = ball_of(way.radii.features / curvature).log1p()
            excess = deviation * ball_of(way.plan.bound_shift) / change - 1
            assert excess > 0
            assert excess < 2.0**-8


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_bounds_fail_as_rarely_as_is_said_for_the_larger_neighbour(adjacency):
    """With z = 1 in place of the plan's: λ̃ > λ_min of the smaller one, and L < Y + X|θ̂| of the smaller one."""
    x, y = records(300)
    way, smaller = way_of(adaptive(adjacency=adjacency), x, y)
    way = dataclasses.replace(way, plan=way.plan._replace(tail=Fraction(1)))
    larger = way.prepare(np.append(x, [[-2.0]], axis=0), np.append(y, -1.0))
    bits, chance, ridge = random.Random(9).getrandbits, float(scipy.stats.norm.sf(1.0)), Fraction(1)
    least = smaller.gram[0, 0]
    over = sum(way._draw_eigenvalue(larger, bits) > least for _ in range(1000))
    assert scipy.stats.binomtest(over, 1000, chance).pvalue > 1e-6
    assert sum(way._draw_eigenvalue(smaller, bits) > least for _ in range(300)) < over
    target = 1 + 2 * abs(smaller.moment[0] / (smaller.gram[0, 0] + ridge))
    for sums in (smaller, larger):
        under = sum(way._draw_bound(sums, ridge, least + ridge, bits) < target for _ in range(500))
        assert under / 500 < chance + 5.0 * math.sqrt(chance / 500)


def test_rounding_never_lifts_the_bounds_beyond_what_they_bound():
    """Without noise, or a record's change, to speak of; λ_min halfway between two multiples is rounded up."""
    way, _ = way_of(adaptive(), *records(10))
    silent = way.plan._replace(eigenvalue_shift=Fraction(10**40), bound_shift=Fraction(10**40), tail=Fraction(0))
    way = dataclasses.replace(way, plan=silent)
    change, bits = rounded_eigenvalue_change(way.radii, way.step), random.Random(0).getrandbits
    for number in range(1, 20):
        least = (number - Fraction(1, 2)) * way.step
        sums = ExactSums(1, np.array([[least]], object), np.array([Fraction(number, 7)], object), 1)
        assert way._draw_eigenvalue(sums, bits) + change <= least
        bound = way._draw_bound(sums, Fraction(1), Fraction(10**40), bits)
        assert bound >= 1 + 2 * Fraction(number, 7) / (1 + least)


def test_a_record_moves_the_stages_by_no_more_than_their_noise_covers():
    """In 400 digits: by at most s deviations, and for the worst records of a line by nearly as many."""
    way, _ = way_of(adaptive(), *records(10))
    reached = []
    for number in (0, 3, 50):
        # Their product with y is 0, so that the estimate without the record is 0.
        pairs = np.tile([[-2.0], [1.0]], (number, 1)), np.tile([1.0, 1.0], number)
        one = way.prepare(*pairs)
        ridge = Fraction(3)
        for x, y in ((-2.0, 1.0), (-2.0, -1.0), (1.0, 1.0)):
            two = way.prepare(np.append(pairs[0], [[x]], axis=0), np.append(pairs[1], y))
            curvature = one.gram[0, 0] + ridge
            with ctx.workprec(400):
                logs = [
                    (1 + 2 * abs(ball_of(Fraction(sums.moment[0]) / (sums.gram[0, 0] + ridge)))).log()
                    for sums in (one, two)
                ]
                change = ball_of(1 + Fraction(4) / curvature).log()
                reached.append(float(abs(logs[0] - logs[1]) / change))
    assert max(reached) <= 1.0
    assert max(reached) > 0.4


def test_what_follows_rounded_numbers_is_a_function_of_them_and_within_the_budget():
    way, sums = way_of(adaptive(), *records(3000))
    for seed in range(20):
        tuned = way.tuning(sums, random.Random(seed).getrandbits)
        assert tuned == way.tuning(sums, random.Random(seed).getrandbits)
        assert tuned.curvature >= way.plan.least_curvature
        assert tuned.ridge >= way.least_ridge > 0
        assert tuned.curvature <= tuned.ridge + sums.gram[0, 0]
        assert tuned.gamma > 0


def test_what_is_not_confirmed_is_rounded_as_before(monkeypatch):
    monkeypatch.setattr("kngjax.draws.ada_ops_draw.keeps_budget", lambda *_: False)
    assert kng.release(adaptive(), *records(50)).certificate.assurance == "in_reals"


def test_lengths_of_several_coefficients_are_whole(monkeypatch):
    """log L in three dimensions, without noise to speak of."""
    bounds = kng.Bounds(x=([-1.0, -1.0], [1.0, 1.0]), y=(-1.0, 1.0))
    generator = np.random.default_rng(5)
    x = generator.uniform(-1.0, 1.0, (400, 2))
    y = np.clip(x @ [0.5, -0.3] + 0.2, -1.0, 1.0)
    way, sums = way_of(adaptive(bounds), x, y)
    way = dataclasses.replace(way, plan=way.plan._replace(bound_shift=Fraction(10**9), tail=Fraction(0)))
    ridge = Fraction(2)
    found = float(way._draw_bound(sums, ridge, Fraction(10**9), random.Random(0).getrandbits))
    design = np.column_stack([np.ones(400), x])
    estimate = np.linalg.solve(design.T @ design + 2.0 * np.eye(3), design.T @ y)
    assert found == pytest.approx(1.0 + math.sqrt(3.0) * np.linalg.norm(estimate), rel=1e-7)
