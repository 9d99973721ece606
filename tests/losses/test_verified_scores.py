"""Scores in float64 and in balls beside 300 binary digits of what losses are by their formulas."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.core.verified import UNIT


def huber(k):
    return lambda eta, y: min(max(eta - y, -arb(k)), arb(k))


def pseudo_huber(k):
    return lambda eta, y: (eta - y) / (1 + ((eta - y) / arb(k)) ** 2).sqrt()


def logistic(eta, y):
    return 1 / (1 + (-eta).exp()) - y


def smoothed(tau, h):
    return lambda eta, y: 1 / (1 + ((y - eta) / arb(h)).exp()) - arb(tau)


def gaussian_smoothed(tau, h):
    return lambda eta, y: ((y - eta) / (arb(h) * arb(2).sqrt())).erfc() / 2 - arb(tau)


def expectile(tau):
    return lambda eta, y: 2 * (eta - y) * (arb(tau) if eta <= y else 1 - arb(tau))


def tangent(inner, lower, upper):
    return lambda eta, y: inner(min(max(eta, ball_of(lower)), ball_of(upper)), y)


SCORES = {
    "squared": (kng.SquaredLoss(), lambda eta, y: eta - y),
    "Huber": (kng.HuberLoss(0.3), huber(0.3)),
    "pseudo-Huber": (kng.PseudoHuberLoss(0.7), pseudo_huber(0.7)),
    "logistic": (kng.LogisticLoss(), logistic),
    "Poisson": (kng.PoissonLoss(), lambda eta, y: eta.exp() - y),
    "capped Poisson": (kng.CappedPoissonLoss(0.5), tangent(lambda eta, y: eta.exp() - y, -12, Fraction(1, 2))),
    "smoothed": (kng.SmoothedQuantileLoss(0.3, 0.07), smoothed(0.3, 0.07)),
    "Gaussian smoothed": (kng.SmoothedQuantileLoss(0.3, 0.07, "gaussian"), gaussian_smoothed(0.3, 0.07)),
    "expectile": (kng.ExpectileLoss(0.8), expectile(0.8)),
    "low expectile": (kng.ExpectileLoss(0.1), expectile(0.1)),
}
SPANS = {f"{name}, extended": name for name in SCORES}
ENDS = Fraction(-1, 3), Fraction(7, 5)


def case(name):
    loss, truth = SCORES[SPANS.get(name, name)]
    score = loss.verified_score()
    if name in SPANS:
        return score.extended(ENDS), tangent(truth, *ENDS), ("Poisson" in name, "logistic" in name)
    return score, truth, ("Poisson" in name, "logistic" in name)


def records(number, is_count, is_binary, seed=0):
    """Residuals around 0, at kinks and thresholds, next to nothing and very large."""
    generator = np.random.default_rng(seed)
    response = generator.uniform(-2.0, 2.0, number) * generator.choice([1.0, 1e-9, 1e6], number)
    sizes = 10.0 ** generator.uniform(-20.0, 5.0, number) * generator.choice([-1.0, 1.0], number)
    predictor = response + generator.choice([-0.7, -0.3, 0.0, 0.0, 0.3, 0.7], number) + sizes
    if is_binary or is_count:
        response = np.floor(np.abs(response)) % 2 if is_binary else np.floor(np.abs(response)) % 9
        predictor = np.clip(sizes, -600.0, 600.0)
    error = np.abs(predictor) * generator.choice([0.0, 1e-15, 1e-9, 1e-3, 0.5], number)
    return predictor, error, response


@pytest.mark.parametrize("name", [*SCORES, *SPANS])
def test_scores_are_within_their_errors_and_slopes_between_their_ends(name):
    """Of any predictor within the error, and of any two; and in balls."""
    score, truth, kind = case(name)
    predictor, error, response = records(150, *kind)
    value, off = score.floats(predictor, error, response)
    least, most = score.slopes(predictor, error, response)
    generator = random.Random(3)
    with ctx.workprec(300):
        for eta, away, y, s, bound, low, high in zip(
            *(column.tolist() for column in (predictor, error, response, value, off, least, most)), strict=True
        ):
            places = [arb(eta) + arb(away) * arb(move) for move in (0, -1, 1, generator.uniform(-1, 1))]
            scores = [truth(place, arb(y)) for place in places]
            ball = arb(eta, away)
            for place, one in zip(places, scores, strict=True):
                assert abs(one - arb(s)) <= arb(bound)
                assert score.ball(ball, Fraction(y)).overlaps(one)
                assert score.ball(place, Fraction(y)).overlaps(one)
                for other, two in zip(places, scores, strict=True):
                    if abs(place - other) > 0:
                        slope = (one - two) / (place - other)
                        assert arb(low) <= slope + arb(2) ** -150
                        assert slope - arb(2) ** -150 <= arb(high)
                        assert score.slope_ball(ball, Fraction(y)).overlaps(slope)


@pytest.mark.parametrize("name", [*SCORES, *SPANS])
@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-3])
def test_secants_from_the_middle_lie_between_their_ends(name, error):
    """Of radii of all sizes, to either side, and as far as to their ends."""
    score, truth, kind = case(name)
    predictor, radius, response = records(150, *kind, seed=1)
    radius = np.where(radius == 0.0, 1e-6, np.minimum(radius, 50.0))
    off = error * np.minimum(radius, 1.0)
    least, most = score.secants(predictor, off, radius, response)
    assert np.all(least >= 0.0)
    generator = random.Random(5)
    with ctx.workprec(300):
        for eta, away, reach, y, low, high in zip(
            *(column.tolist() for column in (predictor, off, radius, response, least, most)), strict=True
        ):
            middle = arb(eta) + arb(away) * arb(generator.uniform(-1, 1))
            for move in (-1.0, 1.0, generator.uniform(-1, 1), 1e-3 * generator.uniform(-1, 1)):
                other = middle + arb(reach) * arb(move)
                slope = (truth(other, arb(y)) - truth(middle, arb(y))) / (other - middle)
                assert arb(low) <= slope + arb(2) ** -120
                assert slope - arb(2) ** -120 <= arb(high)


@pytest.mark.parametrize("name", ["pseudo-Huber", "logistic", "smoothed", "Gaussian smoothed"])
def test_secants_are_known_better_than_slopes(name):
    score, *_ = case(name)
    generator = np.random.default_rng(5)
    predictor, response = generator.uniform(-3.0, 3.0, 200), generator.integers(0, 2, 200) * 1.0
    sizes = [np.full(200, size) for size in (1e-15, 0.01)]
    (least, most), (low, high) = (
        score.secants(predictor, *sizes, response),
        score.slopes(predictor, sum(sizes), response),
    )
    assert np.all((least >= low - 1e-12) & (most <= high + 1e-12))
    assert np.median((most - least) / (high - low)) < 0.5


@pytest.mark.parametrize("name", SCORES)
def test_bounds_are_no_wider_than_a_few_units(name):
    """Of moderate numbers, without any error of the predictor: what is proved is near to what is true."""
    score, *_ = case(name)
    generator = np.random.default_rng(5)
    predictor, response = generator.uniform(-3.0, 3.0, 100), generator.integers(0, 2, 100) * 1.0
    # Tangents that begin far off leave it so: else objective perturbation over a wide Θ asks for balls of all records.
    for one in (score, score.extended((Fraction(-(10**8)), Fraction(10**8)))):
        _, off = one.floats(predictor, np.zeros(100), response)
        assert np.all(off < 200 * UNIT)
        least, most = one.slopes(predictor, np.full(100, 1e-12), response)
        assert np.quantile(most - least, 0.9) < 1e-8


@pytest.mark.parametrize("error", [0.0, 1e-17, 3e-16])
@pytest.mark.parametrize("end", ENDS)
def test_scores_are_within_their_errors_a_unit_from_where_tangents_begin(end, error):
    """The ends are no float64 numbers, so that what lies within one may lie beyond the other."""
    score, truth, _ = case("squared, extended")
    predictor = float(end) + UNIT * np.arange(-8.0, 9.0)
    value, off = score.floats(predictor, np.full(17, error), np.zeros(17))
    with ctx.workprec(300):
        for eta, s, bound in zip(predictor.tolist(), value.tolist(), off.tolist(), strict=True):
            for move in (-1, 0, 1):
                assert abs(truth(arb(eta) + move * arb(error), arb(0)) - arb(s)) <= arb(bound)


@pytest.mark.parametrize("name", SCORES)
def test_in_float64_scores_are_those_of_the_loss(name):
    loss, _ = SCORES[name]
    predictor, response = np.linspace(-3.0, 3.0, 41), np.tile([0.0, 1.0], 21)[:41]
    value, _ = loss.verified_score().floats(predictor, np.zeros(41), response)
    with float64():
        expected = [float(loss.record_score(eta, y)) for eta, y in zip(predictor, response, strict=True)]
        slopes = [float(loss.record_curvature(eta, y)) for eta, y in zip(predictor, response, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)
    least, most = loss.verified_score().slopes(predictor, np.zeros(41), response)
    assert np.all((least <= np.array(slopes) * (1 + 1e-12)) & (slopes <= most * (1 + 1e-12)))


@pytest.mark.parametrize("name", SCORES)
def test_no_score_leaves_its_interval_and_none_rises_faster_than_said(name):
    """Over [-2, 3] and responses in [0, 4]: the ends are reached, or neared where they are limits."""
    score, truth, (_, is_binary) = case(name)
    predictor, response = (Fraction(-2), Fraction(3)), (Fraction(0), Fraction(1 if is_binary else 4))
    lower, upper = score.interval(predictor, response)
    steepest = score.largest_slope(predictor)
    with ctx.workprec(300):
        ends = [truth(ball_of(predictor[0]), ball_of(response[1])), truth(ball_of(predictor[1]), ball_of(response[0]))]
        assert ball_of(lower) <= ends[0] + arb(2) ** -100
        assert ball_of(upper) >= ends[1] - arb(2) ** -100
        assert all(
            ball_of(steepest) >= truth(arb(t) / 8 + 1, arb(1)) - truth(arb(t) / 8, arb(1)) for t in range(-16, 16)
        )
    if name in ("squared", "Poisson", "expectile", "low expectile"):
        assert float(lower) == pytest.approx(float(ends[0]), rel=1e-15)
        assert float(upper) == pytest.approx(float(ends[1]), rel=1e-15)
        assert score.interval(None, response) is None
        assert score.interval(predictor, None) is None
    elif "capped" in name:
        assert score.interval(None, response) == (lower, upper)
        assert score.interval(predictor, None) is None
    else:
        assert score.interval(None, None) == (lower, upper)


# Ends beside the cap at ½ and those at -12: within, beyond on either side, about both, and of one point in common.
TWICE = [(-0.3, 1.4), (-20.0, 0.3), (1.0, 2.0), (-15.0, -13.0), (-20.0, 3.0), (0.5, 0.7), (-13.0, -12.0)]


@pytest.mark.parametrize("ends", TWICE)
def test_what_is_continued_by_tangents_twice_is_the_score_at_the_nearest_number_of_the_nearest(ends):
    """And its interval and its largest slope are those of where both meet; or hold it, where they do not."""
    score = SCORES["capped Poisson"][0].verified_score().extended(tuple(map(Fraction, ends)))
    etas, ys = np.linspace(-25.0, 5.0, 61), np.tile([0.0, 1.0], 31)[:61]
    value, off = score.floats(etas, np.zeros(61), ys)
    expected = np.exp(np.clip(np.clip(etas, *ends), -12.0, 0.5)) - ys
    assert np.all(np.abs(value - expected) <= off + 1e-15)
    assert np.all(off < 1e-12)
    nearest = np.clip(ends, -12.0, 0.5)
    found = score.interval((Fraction(-30), Fraction(30)), (Fraction(0), Fraction(4)))
    low, high = np.exp(nearest) - [4.0, 0.0]
    assert float(found[0]) <= low + 1e-15
    assert high - 1e-15 <= float(found[1])
    if nearest[0] < nearest[1]:
        np.testing.assert_allclose([float(end) for end in found], [low, high], rtol=1e-14)
        assert float(score.largest_slope(None)) == pytest.approx(np.exp(nearest[1]), rel=1e-14)


def test_slopes_reach_their_largest_where_they_are_steepest():
    expected = {"squared": 1, "Huber": 1, "pseudo-Huber": 1, "logistic": 1 / 4, "smoothed": 1 / (4 * 0.07)}
    expected["Gaussian smoothed"] = 1 / (0.07 * math.sqrt(2 * math.pi))
    for name, slope in {**expected, "expectile": 1.6, "low expectile": 1.8, "Poisson": math.exp(3.0)}.items():
        assert float(case(name)[0].largest_slope((Fraction(-2), Fraction(3)))) == pytest.approx(slope, rel=1e-15)
    with ctx.workprec(300):
        assert ball_of(case("Poisson")[0].largest_slope((Fraction(0), Fraction(3)))) >= arb(3).exp()


def test_a_secant_over_the_tangents_reaches_as_far_as_no_rounding_hides():
    """η₀ = 0 is 2^31 off, beside which 2^-35 is rounded away: from 0 the score is constant, and rises before -2^-35."""
    score = SCORES["squared"][0].verified_score().extended((Fraction(-(2.0**-35)), Fraction(-(2.0**-36))))
    far, near = np.array([2.0**31]), np.array([2.0**-35])
    assert score.secants(far, far, near, np.zeros(1))[1] >= 0.5


def test_what_float64_cannot_tell_is_said_to_be_unknown():
    for name in SCORES:
        score, *_ = case(name)
        _, off = score.floats(np.array([np.nan]), np.array([0.0]), np.array([0.0]))
        assert np.all(np.isnan(off)), name
    # A predictor that may be anything.
    assert case("Poisson")[0].floats(np.array([1.0]), np.array([2.0]), np.array([0.0]))[1] == np.inf


def test_the_check_loss_has_no_such_score():
    assert kng.QuantileLoss(0.5).verified_score() is None
