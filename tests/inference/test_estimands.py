"""Biases of robust and smoothed losses before the data: closed forms, quadrature by SciPy, and what is said of them."""

from statistics import NormalDist

import matplotlib as mpl
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from numpyro import distributions as dist

import kngjax as kng

LINE = kng.Bounds(x=(0.0, 1.0), columns=1)
ENDS = np.array([[0.0], [1.0]])


def previewed(loss, residual, bounds=LINE, **settings):
    made = kng.KNG(loss, bounds, kng.Box(-5.0, 5.0), 1.0, "replace")
    return kng.preview(made, num_records=10_000, residual=residual, design=ENDS, simulate=False, **settings)


@pytest.mark.default_cases("k-normal", "h-normal")
@pytest.mark.parametrize("residual", ["normal", "StudentT", "Laplace"])
@pytest.mark.parametrize("loss", ["k", "h"])
def test_symmetric_laws_have_no_bias(loss, residual):
    made = kng.PseudoHuberLoss(0.2) if loss == "k" else kng.SmoothedQuantileLoss(0.5, 0.3)
    laws = {"normal": lambda: 0.5, "StudentT": lambda: dist.StudentT(3.0, 0.0, 0.4), "Laplace": lambda: dist.Laplace()}
    found = previewed(made, laws[residual]())
    np.testing.assert_allclose(found.bias, 0.0, atol=1e-5)
    assert list(found.to_frame()) == ["noise", "standard_error", "ratio"]
    assert "not quite" not in found.explain()


def minimum_of_exponential(slope):
    """The θ at which E slope(e - θ) = 0 for exponential e, by quadrature."""

    def score(theta):
        inside, _ = scipy.integrate.quad(lambda e: slope(e - theta) * np.exp(-e), 0.0, 60.0, points=[theta], limit=500)
        return inside

    return scipy.optimize.brentq(score, 0.1, 2.0, xtol=1e-12)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("k", [0.1, 1.0])
@pytest.mark.parametrize(("target", "value"), [("mean", 1.0), ("median", np.log(2.0)), (0.75, np.log(4.0))])
def test_of_exponential_residuals_it_is_that_of_quadrature(k, target, value):
    expected = minimum_of_exponential(lambda r: r / np.sqrt(1.0 + (r / k) ** 2)) - value
    found = previewed(kng.PseudoHuberLoss(k), dist.Exponential(1.0), target=target)
    np.testing.assert_allclose(found.bias, [expected, 0.0], atol=2e-5)
    assert found.setting.target == (target if isinstance(target, str) else "0.75-quantile")


def test_of_other_losses_with_residuals():
    expected = minimum_of_exponential(lambda r: np.clip(r, -0.5, 0.5)) - 1.0
    np.testing.assert_allclose(previewed(kng.HuberLoss(0.5), dist.Exponential(1.0)).bias.iloc[0], expected, atol=1e-4)
    bounded = kng.Bounds(x=(0.0, 1.0), y=(-5.0, 5.0), columns=1)
    expected = minimum_of_exponential(lambda r: np.where(r > 0.0, 1.6, 0.4) * r) - 1.0
    found = previewed(kng.ExpectileLoss(0.8), dist.Exponential(1.0), bounded, target="mean")
    np.testing.assert_allclose(found.bias.iloc[0], expected, atol=1e-4)
    # An expectile is its own target.
    assert previewed(kng.ExpectileLoss(0.8), dist.Exponential(1.0), bounded).bias is None


@pytest.mark.default_cases("SquaredLoss")
@pytest.mark.parametrize("loss", ["QuantileLoss", "SquaredLoss"])
def test_quantiles_and_means_are_what_their_losses_estimate(loss):
    bounded = kng.Bounds(x=(0.0, 1.0), y=(-5.0, 5.0), columns=1)
    made = kng.QuantileLoss(0.9) if loss == "QuantileLoss" else kng.SquaredLoss()
    np.testing.assert_allclose(previewed(made, dist.Exponential(1.0), bounded).bias, 0.0, atol=1e-6)


@pytest.mark.parametrize("tau", [0.1, 0.9])
def test_of_a_normal_kernel_it_is_the_quantile_of_the_sum(tau):
    """e + hZ is normal with variance σ² + h²."""
    z, h = NormalDist().inv_cdf(tau), 0.4
    loss = kng.SmoothedQuantileLoss(tau, h, "gaussian")
    np.testing.assert_allclose(previewed(loss, 0.5).bias, [z * (np.hypot(0.5, h) - 0.5), 0.0], atol=1e-5)


def test_a_bias_is_said_in_standard_errors_and_moves_to_own_units():
    found = previewed(kng.PseudoHuberLoss(0.3), dist.Exponential(1.0))
    np.testing.assert_allclose(found.to_frame()["bias"], found.bias)
    worst = np.abs(found.bias / found.standard_error).max()
    assert f"not quite the mean: the bias is up to {worst:.2g} standard errors" in found.explain()
    in_own_units = found.shown_in(("at 0", "twice"), np.array([[1.0, 0.0], [2.0, 1.0]]))
    np.testing.assert_allclose(in_own_units.bias, [found.bias.iloc[0], 2.0 * found.bias.iloc[0]])
    assert in_own_units.bias.index[1] == "twice"


def test_without_an_intercept_slopes_take_its_place():
    """The mean 1 of the residuals is not in the span of x: least squares on |x| ≤ 1, x = ±1, ½ has Σx/Σx² of it."""
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=1, intercept=False)
    rows = np.array([[1.0], [0.5], [0.5]])
    made = kng.KNG(kng.PseudoHuberLoss(50.0), bounds, kng.Box(-5.0, 5.0), 1.0, "replace")
    found = kng.preview(made, num_records=1000, residual=dist.Exponential(1.0), design=rows, simulate=False)
    # So wide a threshold is least squares.
    np.testing.assert_allclose(found.bias, 0.0, atol=2e-3)
    narrow = kng.KNG(kng.PseudoHuberLoss(0.01), bounds, kng.Box(-5.0, 5.0), 1.0, "replace")
    found = kng.preview(narrow, num_records=1000, residual=dist.Exponential(1.0), design=rows, simulate=False)
    # Least absolute deviations: Σ x_i (F(x_i θ) - ½) = 0.
    expected = scipy.optimize.brentq(lambda t: (0.5 - np.exp(-t)) + (0.5 - np.exp(-0.5 * t)), 0.1, 3.0)
    np.testing.assert_allclose(found.bias, expected - 2.0 / 1.5, atol=5e-3)


def test_what_has_no_target_is_refused():
    with pytest.raises(ValueError, match="target must be"):
        previewed(kng.PseudoHuberLoss(0.5), 0.5, target="mode")
    with pytest.raises(ValueError, match="target must be"):
        previewed(kng.PseudoHuberLoss(0.5), 0.5, target=1.0)
    with pytest.raises(ValueError, match="LogisticLoss has none"):
        previewed(kng.LogisticLoss(), None, target="mean")
    with pytest.raises(ValueError, match="residual must be a positive number"):
        previewed(kng.PseudoHuberLoss(0.5), lambda x: dist.Normal(0.0, 1.0))


def test_biases_are_dashed():
    mpl.use("Agg")
    axes = previewed(kng.PseudoHuberLoss(0.3), dist.Exponential(1.0)).plot()
    assert [line.get_linestyle() for line in axes.lines] == ["-", ":", "-", ":", "--"]
    assert "dashed: bias" in axes.get_ylabel()
