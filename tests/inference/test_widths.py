"""How many groups of records serve: their common bias, which no spread shows, is small beside the width."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import kngjax as kng
from kngjax.inference import widths
from kngjax.inference.settings import Scenario

BOUNDS = kng.Bounds(x=([-1.0] * 3, [1.0] * 3))


def logistic(epsilon=1.0, columns=3):
    bounds = kng.Bounds(x=([-1.0] * columns, [1.0] * columns))
    return kng.KNG(kng.LogisticLoss(), bounds, kng.Box(-10.0, 10.0), epsilon, "replace")


def test_kng_is_off_by_three_halves_of_the_variance_of_its_noise_over_how_far_gradients_are_straight():
    """Of one logit, by quadrature: -(3/2)(1 - 2p)v² to second order."""
    chance, count, rate = 0.8, 2000, 0.5
    steps = np.linspace(-0.3, 0.3, 200_001)
    weights = np.exp(-rate * count * np.abs(scipy.special.expit(scipy.special.logit(chance) + steps) - chance))
    weights /= weights.sum()
    variance = weights @ steps**2
    assert weights @ steps == pytest.approx(-1.5 * (1.0 - 2.0 * chance) * variance, rel=0.02)


def test_a_mean_score_is_straight_as_far_as_its_secants_are_within_a_quarter():
    law = Scenario.of(logistic(), None, None).law
    solved = scipy.optimize.brentq(lambda t: (scipy.special.expit(t) - 0.5) / t - 0.75 * 0.25, 0.1, 10.0)
    assert law.straight == pytest.approx(solved, rel=0.05)
    # Of a quantile in a tail the density falls within a fraction of the residuals' deviation, in units of which it is.
    bounds = kng.Bounds(x=([-1.0], [1.0]), y=(-5.0, 5.0))
    tails = [
        Scenario.of(kng.KNG(kng.QuantileLoss(tau), bounds, kng.Box(-9.0, 9.0), 1.0, "replace"), None, scale)
        for tau, scale in ((0.5, 1.0), (0.9, 1.0), (0.9, 2.0))
    ]
    middle, tail, wider = (found.law.straight for found in tails)
    # Where Φ(1.2816 - t) is .9 - 1.25tφ(1.2816).
    assert tail == pytest.approx(0.38, rel=0.1)
    assert middle > 3.0 * tail
    assert wider == pytest.approx(2.0 * tail, rel=0.1)


def test_more_records_serve_more_groups_and_more_coefficients_fewer():
    few, more, many = (kng.WithIntervals(logistic(), kng.Groups()).making(n).number for n in (10_000, 20_000, 100_000))
    assert few < more < many
    assert kng.WithIntervals(logistic(columns=11), kng.Groups()).making(100_000).number < many
    # Measured by `benchmarks.interval_coverage`: seven groups held .85 at d = 12.
    with pytest.raises(ValueError, match="off the same way"):
        kng.WithIntervals(logistic(columns=11), kng.Groups()).making(10_000)


def test_a_named_number_of_groups_that_would_all_be_off_is_refused_by_public_facts_which_say_what_would_do():
    plan = kng.WithIntervals(logistic(), kng.Groups(20))
    with pytest.raises(ValueError, match=r"estimates of 20 groups of 10000 records .* 7 groups, a larger epsilon"):
        plan.making(10_000)
    assert plan.making(100_000).number == 20
    with pytest.raises(ValueError, match="Sandwich, a larger epsilon or more records"):
        kng.WithIntervals(logistic(columns=11), kng.Groups(3)).making(8_000)
    # How far responses scatter is not public without their bounds.
    robust = kng.KNG(kng.PseudoHuberLoss(0.1), BOUNDS, kng.Box(-10.0, 10.0), 1.0, "replace")
    assert kng.WithIntervals(robust, kng.Groups(3)).making(1_000).number == 3


def test_the_multiple_of_the_deviation_that_groups_are_off_grows_with_their_number():
    setting = Scenario.of(logistic(), None, None)
    expected = setting.expected(20_000, and_far=False)
    bends = [widths._bend(setting, number, expected) for number in (3, 6, 12)]
    # √m where sampling is most of the error, and √(m³) where noise is.
    assert np.all(np.diff(np.log(bends)) > 0.5 * np.log(2.0))
    assert np.all(np.diff(np.log(bends)) < 1.5 * np.log(2.0))


def on_a_wide_domain(epsilon, adjacency="replace"):
    """Of which 1,000 records at ε = .3 had intervals in 38 tables of 100, that held .84: `interval_coverage`."""
    bounds = kng.Bounds(x=([-1.0] * 3, [1.0] * 3), y=(-3.5, 3.5))
    return kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-20.0, 20.0), epsilon, adjacency)


def test_sums_at_an_estimate_that_may_be_far_off_are_refused_before_a_value_is_looked_at():
    unread, responses = np.zeros((1000, 3)), np.zeros(1000)
    for covariance in (kng.Sandwich(), kng.Sandwich(noise="zcdp"), kng.inference.IndependentErrors()):
        with pytest.raises(ValueError, match="may come from far off"):
            kng.release(kng.WithIntervals(on_a_wide_domain(0.3), covariance), unread, responses)
    assert len(kng.WithIntervals(on_a_wide_domain(1.0), kng.Sandwich()).certify(unread, responses)) == 2
    # A guess of n decides where n is private, and without one nothing does.
    private = kng.WithIntervals(on_a_wide_domain(0.15, "add_remove"), kng.Sandwich())
    with pytest.raises(ValueError, match="may come from far off"):
        dataclasses.replace(private, num_records=1000).certify(unread, responses)
    assert len(private.certify(unread, responses)) == 2
    # The density of a minimiser falls everywhere.
    bounds, domain = on_a_wide_domain(0.3).bounds, on_a_wide_domain(0.3).domain
    minimiser = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), bounds, domain, 0.3, "replace")
    assert len(kng.WithIntervals(minimiser, kng.inference.IndependentErrors()).certify(unread, responses)) == 2


def test_the_preview_of_sums_at_an_estimate_that_may_be_far_off_has_no_width():
    plan = kng.WithIntervals(on_a_wide_domain(0.3), kng.Sandwich(noise="zcdp"))
    assert np.all(np.isinf(kng.preview(plan, num_records=1000).width))
    assert np.all(np.isfinite(kng.preview(plan, num_records=2000).width))
