"""The public bandwidth: by hand, in units of the response, and its bias beside standard errors."""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.data import prepare
from kngjax.losses.kernels import KERNELS
from kngjax.owner import nonprivate

DISTRIBUTIONS = {"logistic": stats.logistic, "gaussian": stats.norm}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_the_distribution_that_it_names(name):
    kernel, law, points = KERNELS[name], DISTRIBUTIONS[name], np.linspace(-12.0, 12.0, 49)
    levels = np.array([0.01, 0.3, 0.9])
    np.testing.assert_allclose(jax.vmap(kernel.probability)(points), law.cdf(points), rtol=1e-10)
    np.testing.assert_allclose(jax.vmap(kernel.density)(points), law.pdf(points), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(kernel.quantile)(levels), law.ppf(levels), rtol=1e-10)
    assert kernel.deviation == pytest.approx(law.std(), rel=1e-12)
    assert kernel.peak == pytest.approx(law.pdf(0.0), rel=1e-15)
    assert kernel.peak >= law.pdf(0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_the_public_bandwidth_by_hand(name):
    def deviation(*arguments):
        return DISTRIBUTIONS[name].std() * kng.SmoothedQuantileLoss.public_bandwidth(*arguments, kernel=name)

    assert deviation(0.5, 1000, 3, 2.0) == pytest.approx(2.0 * 0.5 * (9.907755 / 1000.0) ** 0.4, rel=1e-6)
    assert deviation(0.1, 200, 3, 2.0) == pytest.approx(2.0 * 0.3 * (8.298317 / 200.0) ** 0.4, rel=1e-6)
    # 120·9/(1000·2) of the scale for a logistic kernel, where that is more.
    assert deviation(0.5, 1000, 3, 2.0, 2.0) == pytest.approx(2.0 * 0.54 * np.pi / np.sqrt(3.0))
    assert deviation(0.5, 1000, 3, 2.0, 1e6) == deviation(0.5, 1000, 3, 2.0)
    # Many records need no less than a twentieth of the scale.
    assert deviation(0.5, 10**7, 3, 2.0) == pytest.approx(0.1)
    assert deviation(0.5, 1, 3, 1.0) == pytest.approx(0.5 * 3.0**0.4)
    assert kng.SmoothedQuantileLoss(0.5, deviation(0.5, 100, 2, 1.0), name).kernel == name


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((1.0, 100, 3, 1.0), "tau must lie strictly between 0 and 1"),
        ((0.5, 0, 3, 1.0), "num_records and dimension must be at least 1, got 0 and 3"),
        ((0.5, 100, 0, 1.0), "num_records and dimension must be at least 1"),
        ((0.5, 100, 3, 0.0), "the scale must be one positive and finite number"),
        ((0.5, 100, 3, np.inf), "the scale must be one positive and finite number"),
        ((0.5, 100, 3, 1.0, 0.0), "epsilon must be one positive and finite number"),
    ],
)
def test_what_gives_no_bandwidth(arguments, told):
    with pytest.raises(ValueError, match=told):
        kng.SmoothedQuantileLoss.public_bandwidth(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.9])
def test_the_bias_of_the_public_bandwidth_is_below_a_standard_error(tau):
    """With skewed noise of standard deviation 1, whose quantiles smoothing moves."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (4000, 2))
    records = prepare(kng.Bounds(x=(-1.0, 1.0), columns=2), x, x.sum(axis=1) + random.exponential(size=4000))
    exact = nonprivate.fit(kng.QuantileLoss(tau), records)
    width = kng.SmoothedQuantileLoss.public_bandwidth(tau, 4000, 3, 1.0)

    def bias(bandwidth):
        moved = nonprivate.minimiser(kng.SmoothedQuantileLoss(tau, bandwidth), records) - exact.theta
        return np.max(np.abs(moved / exact.standard_errors))

    assert bias(width) < 1.0
    assert bias(16.0 * width) > 3.0
