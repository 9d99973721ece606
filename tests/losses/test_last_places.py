"""One unit in the last place more than what roundings make of scores and weights is seen."""

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.core.verified import UNIT
from tests.losses.test_smooth_scores import SCORES, places, true_score, true_weight
from tests.losses.test_verified_scores import SCORES as VERIFIED

# In units of 2^-53 of |s| and of w: a little more than what 400 places reach.
MOST = {"pseudo-Huber": (2.8, 4.1), "logistic": (2.3, 3.6), "quantile": (2.0, 3.8), "Poisson": (2.2, 1.7)}
MOST_VERIFIED = {
    "squared": 0.5,
    "Huber": 0.5,
    "pseudo-Huber": 2.8,
    "logistic": 2.3,
    "Poisson": 2.0,
    "capped Poisson": 2.0,
    "smoothed": 3.2,
    "Gaussian smoothed": 2.7,
    "expectile": 1.5,
    "low expectile": 1.7,
}


def moved(values, units):
    """By so many units in the last place."""
    return np.nextafter(values, np.copysign(np.inf, units)) if units else values


def relative(value, truth):
    return float(abs(truth - arb(float(value))) / abs(truth)) / UNIT


def cancels(score, response):
    """What is left of a difference tells more of its terms' roundings than of its own."""
    return abs(float(score)) < 0.5 * max(abs(response), 0.5)


def of_smooth_scores(name, units=0):
    """How far scores and weights are off, with so many units in the last place added."""
    predictor, response = places(name, 400, seed=3, spread=1.5)
    found = SCORES[name].at(predictor, 0.0, response)
    scores, weights = moved(found.score, units), moved(found.weight, units)
    off = [(0.0, 0.0)]
    with ctx.workprec(300):
        for k, (eta, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
            score, weight = true_score(name, eta, y), true_weight(name, eta, y)
            is_told = name == "pseudo-Huber" or not cancels(score, y)
            off.append((relative(scores[k], score) if is_told else 0.0, relative(weights[k], weight)))
    return np.max(off, axis=0)


def of_verified_scores(name, units=0):
    (loss, truth), generator = VERIFIED[name], np.random.default_rng(4)
    predictor, response = generator.uniform(-2.0, 2.0, 400), generator.integers(0, 2, 400) * 1.0
    scores = moved(loss.verified_score().floats(predictor, np.zeros(400), response)[0], units)
    off = [0.0]
    with ctx.workprec(300):
        for k, (eta, y) in enumerate(zip(predictor.tolist(), response.tolist(), strict=True)):
            if not cancels(score := truth(arb(eta), arb(y)), y):
                off.append(relative(scores[k], score))
    return max(off)


@pytest.mark.parametrize("name", SCORES)
def test_scores_and_weights_of_shells_are_off_by_no_unit_more(name):
    assert np.all(of_smooth_scores(name) <= MOST[name])
    for units in (-1, 1):
        assert np.all(of_smooth_scores(name, units) > MOST[name])


@pytest.mark.parametrize("name", VERIFIED)
def test_scores_of_boxes_and_minimisers_are_off_by_no_unit_more(name):
    assert of_verified_scores(name) <= MOST_VERIFIED[name]
    for units in (-1, 1):
        assert of_verified_scores(name, units) > MOST_VERIFIED[name]
