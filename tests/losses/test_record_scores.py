"""Verified scores of records with weights: within their bounds of what fractions say, and one rounding away at most."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import kngjax as kng
from kngjax.core.verified import UNIT
from kngjax.losses.record_scores import RecordScores
from kngjax.losses.verified_scores import SquaredScore

COUNT = 200
GENERATOR = np.random.default_rng(0)
PREDICTORS, Y = GENERATOR.normal(size=COUNT), GENERATOR.normal(size=COUNT)
# Of all sizes, and with as many digits as float64 has.
WEIGHTS = GENERATOR.uniform(size=COUNT) * 10.0 ** GENERATOR.integers(-3, 4, COUNT)


def test_scores_times_weights_are_within_their_bounds_of_fractions():
    """Of exact predictors the squared loss's score is y - η rounded once, and its product once more."""
    score, off = RecordScores(SquaredScore(), Y, WEIGHTS).floats(PREDICTORS, np.zeros(COUNT))
    errors = [
        abs(Fraction(s) - Fraction(w) * (Fraction(p) - Fraction(y)))
        for s, w, p, y in zip(score, WEIGHTS, PREDICTORS, Y, strict=True)
    ]
    assert all(error <= bound for error, bound in zip(errors, off, strict=True))
    # More than the score's own rounding explains is there, and hardly more than two roundings are allowed for.
    assert any(error > 1.05 * UNIT * abs(s) for error, s in zip(errors, score, strict=True))
    assert np.all(off <= 2.01 * UNIT * np.abs(score) + 1e-290)


@pytest.mark.parametrize(
    "loss", [kng.PseudoHuberLoss(0.3), kng.LogisticLoss(), kng.HuberLoss(0.4)], ids=lambda o: repr(o)
)
def test_slopes_and_balls_are_those_of_one_record_times_its_weight(loss):
    verified = loss.verified_score()
    responses = (Y > 0).astype(float)
    plain, given = RecordScores(verified, responses), RecordScores(verified, responses, WEIGHTS)
    radius = np.full(COUNT, 0.1)
    for of in (lambda one: one.slopes(PREDICTORS, radius), lambda one: one.secants(PREDICTORS, 0.0 * radius, radius)):
        for expected, found in zip(of(plain), of(given), strict=True):
            np.testing.assert_array_equal(found, WEIGHTS * expected)
    predictors = [arb(one) for one in PREDICTORS[:9].tolist()]
    few, some = (RecordScores(verified, responses[:9], part) for part in (None, WEIGHTS[:9]))
    for of in (lambda one: one.balls(predictors), lambda one: one.slope_balls(predictors)):
        for ball, weighted, w in zip(of(few), of(some), WEIGHTS[:9].tolist(), strict=True):
            assert weighted.overlaps(ball * arb(w))
            assert weighted.rel_accuracy_bits() > 40
    one_in_eight = slice(None, None, 8)
    every = given.rows(one_in_eight)
    np.testing.assert_array_equal(every.weights, WEIGHTS[::8])
    np.testing.assert_array_equal(every.y, responses[::8])
    assert plain.rows(one_in_eight).weights is None
    assert "OWNER ONLY" in repr(given)
