"""The public rule for the threshold of the pseudo-Huber loss."""

import numpy as np
import pytest

import kngjax as kng
from tests.losses.table import at_residuals

RULE = kng.PseudoHuberLoss.public_threshold


def test_the_public_threshold_by_hand():
    # √10⁴/(10·5) of the scale; half of it where records are few.
    assert RULE(10_000, 5, 0.3, 1.0) == pytest.approx(0.6)
    assert RULE(10_000, 5, 0.3, 0.5) == pytest.approx(0.3)
    assert RULE(100, 5, 0.3, 1.0) == pytest.approx(0.15)
    assert RULE(1, 1, 2.0, 1e-9) == pytest.approx(1.0)


def test_there_the_noise_of_kng_is_about_half_of_the_sampling_error():
    """Of the gradient, coordinate by coordinate, for normal residuals and features of deviation ½."""
    num_records, dimension, scale, epsilon = 40_000, 6, 2.0, 0.8
    loss = kng.PseudoHuberLoss(RULE(num_records, dimension, scale, epsilon))
    mechanism = kng.KNG(loss, kng.Bounds((-1.0, 1.0), columns=5), kng.Box(-9.0, 9.0), epsilon, "replace")
    rate = epsilon / (2.0 * float(mechanism.sensitivity_value(dimension)))
    # Of noise ∝ exp(-rate·‖b‖) for a box of half widths w: w²(d + 1)(d + 2)/(3·rate²).
    noise = np.asarray(mechanism.score_norm(dimension).weights) / rate * np.sqrt((dimension + 1) * (dimension + 2) / 3)
    residuals = scale * np.random.default_rng(0).normal(size=100_000)
    sampling = 0.5 * np.sqrt(num_records) * np.std(at_residuals(loss, residuals)[1])
    ratios = noise / sampling
    assert np.all((ratios > 0.4) & (ratios < 0.8))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((0, 3, 1.0, 1.0), "num_records and dimension must be at least 1, got 0 and 3"),
        ((100, 0, 1.0, 1.0), "num_records and dimension must be at least 1"),
        ((100, 3, 0.0, 1.0), "scale must be one positive and finite number, got 0.0"),
        ((100, 3, 1.0, np.inf), "epsilon must be one positive and finite number, got inf"),
    ],
)
def test_what_gives_no_threshold(arguments, told):
    with pytest.raises(ValueError, match=told):
        RULE(*arguments)
