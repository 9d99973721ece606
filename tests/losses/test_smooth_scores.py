"""Bounds of scores and of how their slopes change, against scores of 400 binary digits and their differences."""

import math

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.core.verified import UNIT
from kngjax.losses.smooth_scores import LogisticScore, PoissonScore, PseudoHuberScore
from kngjax.losses.verified_scores import NO_WEIGHT, AbstractSmoothScore

LOSSES = {
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "logistic": kng.LogisticLoss(),
    "quantile": kng.SmoothedQuantileLoss(0.7, 0.05),
    "Poisson": kng.PoissonLoss(),
}
SCORES = {name: loss.verified_score() for name, loss in LOSSES.items()}
# About the scale on which each bends.
SCALES = {"pseudo-Huber": 0.3, "logistic": 1.0, "quantile": 0.05, "Poisson": 1.0}


def true_score(name, predictor, response):
    """A computation of its own, in balls."""
    eta, y = arb(predictor), arb(response)
    if name == "Poisson":
        return eta.exp() - y
    if name == "logistic":
        return (1 + (eta / 2).tanh()) / 2 - y
    if name == "quantile":
        return (1 + ((eta - y) / (2 * arb(0.05))).tanh()) / 2 - arb(0.7)
    return (eta - y) * arb(0.3) / (arb(0.3) ** 2 + (eta - y) ** 2).sqrt()


def difference(of, eta, order=1):
    """The derivative, from differences over 2^-120 and 2^-60: right to dozens of digits."""
    step = arb(2) ** (-120 if order == 1 else -60)
    if order == 1:
        return (of(eta + step) - of(eta - step)) / (2 * step)
    return (of(eta + step) - 2 * of(eta) + of(eta - step)) / step**2


def true_weight(name, predictor, response, order=1):
    return difference(lambda eta: true_score(name, eta, response), arb(predictor), order)


def places(name, number, seed=0, spread=6.0):
    """Predictors and responses, with t from near 0 to far out."""
    generator = np.random.default_rng(seed)
    away = SCALES[name] * spread * generator.standard_normal(number) * generator.uniform(0.0, 1.0, number) ** 2
    if name == "logistic":
        return away, (generator.uniform(size=number) < 0.5) * 1.0
    if name == "Poisson":
        return away, np.round(generator.uniform(0.0, 9.0, number))
    response = generator.standard_normal(number)
    return response + away, response


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-3])
@pytest.mark.parametrize("name", SCORES)
def test_scores_and_weights_are_as_near_as_they_say(name, error):
    predictor, response = places(name, 400, spread=20.0)
    found = SCORES[name].at(predictor, error, response)
    off = np.broadcast_to(found.score_error, predictor.shape)
    generator, worst = np.random.default_rng(1), 0.0
    with ctx.workprec(400):
        for k, (eta, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
            eta = arb(eta) + arb(error) * float(generator.choice([-1.0, 1.0]))
            score, weight = true_score(name, eta, y), true_weight(name, eta, y)
            assert abs(score - arb(float(found.score[k]))) <= arb(float(off[k]))
            missed = float(abs(weight - arb(float(found.weight[k])))) - NO_WEIGHT
            assert missed <= found.weight_error * float(weight)
            worst = max(worst, missed / float(weight) / found.weight_error)
    # Not much more than it must be, unless it is all rounding.
    assert error == 0.0 or worst > 0.1
    assert error > 0.0 or found.weight_error < 2e-12


@pytest.mark.parametrize("name", SCORES)
def test_extreme_predictors_and_responses_are_told_from_none(name):
    generator = np.random.default_rng(2)
    predictor = np.concatenate([[0.0, -0.0, 1e-300], generator.choice([-1.0, 1.0], 60) * np.geomspace(1.0, 1e308, 60)])
    response = generator.permutation(predictor) if name in ("pseudo-Huber", "quantile") else np.zeros(predictor.size)
    with np.errstate(all="ignore"):
        found = SCORES[name].at(predictor, 0.0, response)
    off = np.broadcast_to(found.score_error, predictor.shape)
    with ctx.workprec(2400):
        for k, (eta, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
            score, weight = SCORES[name].in_balls(arb(eta), arb(y))
            if name == "Poisson" and eta > 700.0:
                assert not np.isfinite(found.score[k])
                continue
            assert abs(score - arb(float(found.score[k]))) <= arb(float(off[k]))
            slack = arb(NO_WEIGHT) + arb(found.weight_error) * arb(float(found.weight[k])) * 2
            assert abs(weight - arb(float(found.weight[k]))) <= slack


@pytest.mark.parametrize("name", SCORES)
def test_balls_contain_scores_and_weights_of_all_their_points(name):
    generator = np.random.default_rng(3)
    predictor, response = places(name, 60, seed=4, spread=40.0)
    for radius in (0.0, 1e-30, 1e-3, 0.5):
        for eta, y in zip(predictor.tolist(), response.tolist(), strict=True):
            with ctx.workprec(200):
                score, weight = SCORES[name].in_balls(arb(eta, radius), arb(y))
            # Of wide balls none need be known.
            is_known = score.is_finite() and weight.is_finite()
            assert is_known or radius > 0.1
            if not is_known:
                continue
            for share in (-1.0, 1.0, float(generator.uniform(-1.0, 1.0))):
                with ctx.workprec(600):
                    place = arb(eta) + arb(radius) * share
                    assert score.overlaps(true_score(name, place, y))
                    assert abs(true_score(name, place, y) - score.mid()).lower() <= score.rad()
                    weight_there = true_weight(name, place, y)
                    assert abs(weight_there - weight.mid()).lower() <= weight.rad() + arb(2) ** -160 * weight_there


@pytest.mark.parametrize("name", SCORES)
def test_tangents_are_below_the_log_of_weights(name):
    predictor, response = places(name, 150, seed=5)
    error = 1e-3 * SCALES[name]
    tangents = SCORES[name].tangents(predictor, error, response)
    assert np.all(np.abs(tangents.slope) <= SCORES[name].steepness)
    generator = np.random.default_rng(6)
    with ctx.workprec(400):
        for k, (middle, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
            eta = arb(middle) + arb(error) * float(generator.uniform(-1.0, 1.0))
            here = true_weight(name, eta, y)
            slope = true_weight(name, eta, y, 2) / here
            assert abs(slope - arb(float(tangents.slope[k]))) <= arb(tangents.error) + arb(2) ** -100
            for size in np.geomspace(1e-3, 20.0, 8):
                for sign in (-1, 1):
                    u = arb(float(size * SCALES[name])) * sign
                    least = slope * u - arb(float(tangents.bend[k])) * u * u / 2
                    assert (true_weight(name, eta + u, y) / here).log() >= least - arb(2) ** -100


@pytest.mark.parametrize("name", [name for name in SCORES if name != "Poisson"])
def test_bends_of_tangents_are_no_larger_than_they_must_be(name):
    """At t the parabola touches at -t, too, where log w is the same: with less of m it would cut."""
    response = np.zeros(40)
    predictor = SCALES[name] * np.linspace(0.2, 6.0, 40)
    tangents = SCORES[name].tangents(predictor, 0.0, response)
    np.testing.assert_allclose(2.0 * predictor * tangents.slope, -2.0 * tangents.bend * predictor**2, rtol=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_means_are_below_all_means_and_near_to_the_least(name):
    predictor, response = places(name, 60, seed=7)
    error = 1e-6 * SCALES[name]
    means, nearest = SCORES[name].means(predictor, error, response), 0.0
    for size in (1e-6, 0.1, 1.0, 5.0, 40.0):
        reach = np.full_like(predictor, size * SCALES[name])
        bound = means(reach)
        assert np.all(bound >= 0.0)
        with ctx.workprec(400):
            for k, (middle, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
                found = []
                for side in (-1.0, 1.0):
                    eta = arb(middle) + arb(error) * side
                    here = true_score(name, eta, y)
                    for share in (-1.0, -0.6, -0.01, 0.01, 0.6, 1.0):
                        u = arb(float(reach[k])) * share
                        found.append((true_score(name, eta + u, y) - here) / u)
                least = min(float(one) for one in found)
                assert bound[k] <= least
                nearest = max(nearest, 1.0 - bound[k] / least)
    assert nearest < 0.06
    assert np.all(means(np.full_like(predictor, np.inf)) == 0.0)


@pytest.mark.parametrize("name", SCORES)
def test_steepness_and_bends_bound_the_third_derivative_and_are_nearly_reached(name):
    score = SCORES[name]
    away = SCALES[name] * np.concatenate([np.linspace(-8.0, 8.0, 801), [-40.0, 40.0]])
    steep, bent = [], []
    with ctx.workprec(400):
        for eta in away.tolist():
            weight, third = true_weight(name, eta, 0.0), true_weight(name, eta, 0.0, 2)
            assert abs(third) <= arb(score.steepness) * weight * (1 + arb(2) ** -100)
            steep.append(float(abs(third) / weight))
            bent.append(float(abs(third)))
    assert max(steep) > 0.999 * score.steepness
    reach = np.full(1, 0.7 * SCALES[name])
    for eta in (-2.0 * SCALES[name], 0.0, 1.3 * SCALES[name]):
        bound = score.bends(np.full(1, eta), 1e-9, np.zeros(1))(reach)[0]
        inside = [one for one, place in zip(bent, away, strict=True) if abs(place - eta) <= reach[0]]
        assert max(inside) <= bound
        assert name != "Poisson" or max(inside) > 0.95 * bound
    if score.largest_bend is not None:
        assert score.largest_bend * (1.0 - 2e-4) < max(bent) <= score.largest_bend


def test_bends_of_poisson_are_infinite_where_float64_does_not_know():
    bends = PoissonScore().bends(np.array([0.0, 0.0, 2.0]), 0.0, np.zeros(3))
    found = bends(np.array([60.0, 200.0, 3.0]))
    assert math.exp(60.0) <= found[0] < 1e29
    assert np.isinf(found[1])
    assert math.exp(5.0) <= found[2] < 1.001 * math.exp(5.0)


@pytest.mark.parametrize("name", SCORES)
def test_changes_of_determinants_are_bounded_by_changes_of_tangents(name):
    """Σh_i(log w_i - log w_i(η_i + u_i)) ≤ F(Σh_i(½m_i u_i² - a_i u_i))."""
    score, generator = SCORES[name], np.random.default_rng(8)
    for case in range(40):
        predictor, response = places(name, 12, seed=case + 100)
        u = SCALES[name] * generator.standard_normal(12) * generator.choice([0.1, 1.0, 10.0])
        shares = generator.dirichlet(np.ones(12)) * 3.0
        tangents = score.tangents(predictor, 0.0, response)
        with ctx.workprec(400):
            triples = zip(predictor.tolist(), response.tolist(), u.tolist(), strict=True)
            logs = [
                float((true_weight(name, eta, y) / true_weight(name, arb(eta) + arb(step), y)).log())
                for eta, y, step in triples
            ]
        change = float(shares @ (0.5 * tangents.bend * u**2 - tangents.slope * u))
        scale = 3.0 * score.concavity
        bound = change if math.isinf(scale) else scale * math.log1p(change / scale)
        assert shares @ np.array(logs) <= bound + 1e-9


def test_scores_are_those_of_their_losses():
    predictor, response = np.linspace(-2.0, 2.0, 9), np.full(9, 1.0)
    for name, loss in LOSSES.items():
        found = SCORES[name].at(predictor, 0.0, response)
        expected = [float(loss.record_score(eta, y)) for eta, y in zip(predictor, response, strict=True)]
        np.testing.assert_allclose(found.score, expected, rtol=1e-5, atol=1e-6)
    for other in (kng.SmoothedQuantileLoss(0.5, 0.1, kernel="gaussian"), kng.HuberLoss(0.5)):
        assert not isinstance(other.verified_score(), AbstractSmoothScore)
    wide = LogisticScore(0.5, 0.3).wider(4.0)
    assert (wide, wide.scale) == (LogisticScore(2.0, 0.3), 2.0)
    assert PseudoHuberScore(0.5).wider(2.0).scale == 1.0
    assert PoissonScore().wider(2.0) == PoissonScore()
    assert UNIT == 2.0**-53
