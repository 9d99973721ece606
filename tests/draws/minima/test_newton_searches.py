"""Searches that end at the minimiser, where scores are steep and ridges tiny too."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.data.records import Records
from kngjax.draws.minima.newton_searches import float_search, step_length
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.minima.verified_minima import CertifiedMinimizer

STEEP = {
    "Huber": kng.HuberLoss(1e-3),
    "Huber, steeper": kng.HuberLoss(1e-8),
    "pseudo-Huber": kng.PseudoHuberLoss(1e-6),
    "smoothed": kng.SmoothedQuantileLoss(0.3, 1e-6),
    "logistic": kng.LogisticLoss(),
}


def steep(name, ridge, number=50, seed=0):
    """Responses that a plane separates for the logistic loss, and residuals far beyond the thresholds of others."""
    generator = np.random.default_rng(seed)
    x = np.hstack([np.ones((number, 1)), generator.uniform(-1.0, 1.0, (number, 2))])
    y = (x[:, 1] > 0) * 1.0 if name == "logistic" else generator.uniform(-1.0, 1.0, number)
    scores = STEEP[name].verified_score()
    return Objective.of(Records(x, y), scores, ridge, 3 * scores.largest_slope(None))


@pytest.mark.parametrize("digits_of_ridge", [4, 30, 90])
@pytest.mark.parametrize("name", STEEP)
def test_minimisers_of_steep_scores_are_found_with_digits_that_follow_the_ridge(name, digits_of_ridge):
    """So many digits of the noise as tell its effect on θ, and few more."""
    for seed in range(3):
        objective = steep(name, Fraction(1, 2**digits_of_ridge), seed=seed)
        tilt = (np.random.default_rng(seed).normal(size=3) * 1e-2).tolist()
        search, found = CertifiedMinimizer(objective), None
        for digits in (64, 128, 256):
            with ctx.workprec(digits + 64):
                found = search.places([arb(one, arb(2) ** -digits) for one in tilt]) or found
        assert found is not None
        assert all(float(one.rad()) < 1e-20 * (float(abs(one)) + 1.0) for one in found)


@pytest.mark.parametrize("kind", [float, arb])
def test_a_step_ends_where_its_function_is_lower_and_flat(kind):
    """Kinks of relative width 10^-12 at places from 10^-30 to 10^30, between slopes of -1 and r."""
    for exponent in range(-30, 31, 3):
        for after in (0.01, 1.0, 1e6):
            kink = 1.37 * 10.0**exponent

            def slope(place, kink=kink, after=after):
                return kind(min(max((float(place) / kink - 1.0) * 1e12, -1.0), after))

            length = step_length(slope, kind(-1.0), 200)
            assert length is not None
            # The integral of the slope: -1 up to the kink, and at most r beyond.
            assert -kink + after * max(float(length) - kink, 0.0) < 0
            assert abs(float(slope(length))) <= 1 / 8


def test_a_step_that_rises_slowly_for_long_is_not_taken():
    """From -1 to .1 at t = .01: the slope at 1 is small, but the function is higher there."""
    length = step_length(lambda t: -1.0 + 110.0 * min(float(t), 0.01), -1.0, 64)
    assert length is not None
    assert -0.01 / 2 + 0.1 * max(float(length) - 0.01, 0.0) < 0
    assert float(length) < 0.06


def test_no_step_is_taken_where_none_leads_down_and_a_flat_function_has_no_end():
    assert step_length(lambda _: 0.5, -1.0, 64) is None
    assert step_length(lambda _: float("nan"), -1.0, 64) is None
    length = step_length(lambda _: -1.0, -1.0, 64)
    assert length is not None
    assert 2**60 < length < 2**1000
    # And so does a step that is cut down until it leads down.
    length = step_length(lambda t: -1.0 if t < Fraction(1, 2**500) else 1.0, -1.0, 64)
    assert length is not None
    assert 2**-1000 < length < 2**-500


def test_a_function_that_seems_to_fall_for_ever_does_not_stop_a_search():
    """A ridge that float64 does not tell from 0, and records that none of it moves."""
    objective = Objective.of(
        Records(np.array([[1e-60, 1.0]]), np.zeros(1)),
        kng.HuberLoss(1e-60).verified_score(),
        Fraction(1e-300),
        Fraction(1),
    )
    assert np.all(np.isfinite(float_search(objective, np.array([1e300, -1e-300]))))


@pytest.mark.parametrize("ridge", [Fraction(1, 10**6), Fraction(1, 10**16)])
@pytest.mark.parametrize("name", STEEP)
def test_what_is_near_is_found_for_tiny_ridges(name, ridge):
    objective = steep(name, ridge)
    place = CertifiedMinimizer(objective).near(Fraction(1, 10**30))
    assert all(abs(one) <= 10**18 for one in place)
