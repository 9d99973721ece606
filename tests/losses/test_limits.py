"""Limits of losses: wide thresholds, narrow bandwidths, residuals far out, ties, and curvature by the density."""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data.records import Records
from tests.losses.table import at_residuals, check_loss, sums


def test_at_a_tie_the_check_loss_counts_the_record_as_below():
    assert kng.QuantileLoss(0.3).record_score(2.0, 2.0) == pytest.approx(0.7)
    data = Records(np.ones((4, 1)), np.array([1.0, 2.0, 2.0, 5.0]))
    assert float(kng.QuantileLoss(0.3).gradient(np.array([2.0]), data)[0]) == pytest.approx(3 - 4 * 0.3)


# E|Z|/2 of each kernel.
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("kernel", "half"), [("logistic", np.log(2.0)), ("gaussian", 1.0 / np.sqrt(2.0 * np.pi))])
def test_the_smoothed_loss_tends_to_the_check_loss(tau, kernel, half):
    residuals = np.linspace(-2.0, 2.0, 41)
    distances = []
    for bandwidth in (0.1, 0.01, 0.001):
        smoothed, _ = at_residuals(kng.SmoothedQuantileLoss(tau, bandwidth, kernel), residuals)
        distances.append(np.abs(smoothed - check_loss(residuals, tau)).max())
        # Jensen: by at most h·E|Z|/2 at the kink.
        assert distances[-1] == pytest.approx(bandwidth * half, rel=1e-6)
    away = np.abs(residuals) > 0.05
    slopes = at_residuals(kng.SmoothedQuantileLoss(tau, 0.001, kernel), residuals)[1][away]
    np.testing.assert_allclose(slopes, tau - (residuals[away] < 0), atol=1e-12)


def test_the_limits_of_the_robust_losses():
    pseudo = kng.PseudoHuberLoss(0.8)
    small, large, residuals = np.linspace(-1e-3, 1e-3, 31), np.repeat([-1e5, 1e5], [15, 16]), np.linspace(-3.0, 3.0, 31)
    np.testing.assert_allclose(at_residuals(pseudo, small)[0], small**2 / 2, rtol=1e-6)
    value, slope = at_residuals(pseudo, large)
    np.testing.assert_allclose(value, 0.8 * np.abs(large) - 0.8**2, rtol=1e-9)
    np.testing.assert_allclose(slope, 0.8 * np.sign(large), rtol=1e-9)
    for wide in (kng.PseudoHuberLoss(1e6), kng.HuberLoss(1e6)):
        np.testing.assert_allclose(at_residuals(wide, residuals)[0], residuals**2 / 2, rtol=1e-9, atol=1e-15)
    # No cancellation where √(1 + q) - 1 would lose all digits.
    assert float(pseudo.residual_value(1e-9)) == pytest.approx(0.5e-18, rel=1e-12)


def test_the_logistic_loss_does_not_overflow():
    loss = kng.LogisticLoss()
    np.testing.assert_allclose(loss.record_value(800.0, 0.0), 800.0)
    np.testing.assert_allclose(loss.record_value(800.0, 1.0), 0.0, atol=1e-12)
    assert np.isfinite(loss.record_score(-800.0, 1.0))


@pytest.mark.slow
def test_the_curvature_estimate_of_the_check_loss():
    random = np.random.default_rng(3)
    x = np.concatenate([np.ones((40_000, 1)), random.uniform(-1, 1, (40_000, 1))], axis=1)
    records = Records(x, x @ [1.0, -2.0] + random.normal(scale=0.5, size=40_000))
    _, _, hessian = sums(kng.QuantileLoss(0.5), np.array([1.0, -2.0]), records)
    np.testing.assert_allclose(hessian, stats.norm.pdf(0.0) / 0.5 * x.T @ x, rtol=0, atol=1500)


def test_the_expectile_loss_at_one_half_is_the_squared_loss():
    half, residuals = kng.ExpectileLoss(0.5), np.linspace(-3.0, 3.0, 31)
    np.testing.assert_allclose(jax.vmap(half.residual_value)(residuals), residuals**2 / 2, rtol=1e-12, atol=1e-15)
    # The minimiser of a constant has τ of all distances to it above: the estimate of Newey and Powell.
    y = np.random.default_rng(8).normal(size=301)
    expectile = float(kng.owner.nonprivate.minimiser(kng.ExpectileLoss(0.8), Records(np.ones((301, 1)), y))[0])
    above, below = np.clip(y - expectile, 0.0, None).sum(), np.clip(expectile - y, 0.0, None).sum()
    assert 0.8 * above == pytest.approx(0.2 * below, rel=1e-6)


def test_the_smoothed_loss_does_not_overflow():
    for kernel in ("logistic", "gaussian"):
        loss, far = kng.SmoothedQuantileLoss(0.3, 1e-3, kernel), np.array([-1e300, -1e3, 1e3, 1e300])
        values, slopes = at_residuals(loss, far)
        np.testing.assert_allclose(values, check_loss(far, 0.3), rtol=1e-12)
        np.testing.assert_array_equal(slopes, 0.3 - (far < 0))
        np.testing.assert_array_equal(jax.vmap(loss.record_curvature, (None, 0))(0.0, far), np.zeros(4))
