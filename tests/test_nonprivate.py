"""The owner's non-private fit against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

import kngjax as kng
from kngjax import data as data_room
from kngjax import nonprivate
from tests.statistical.problems import records


def fitted(loss: kng.QuantileLoss, name: str, y_bounds=None) -> tuple[nonprivate.NonprivateFit, np.ndarray, np.ndarray]:
    x, y = records(name, 3, num_records=2000)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=y_bounds)
    return nonprivate.fit(loss, data_room.prepare(bounds, x, y)), sm.add_constant(x), y


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_quantile_regression_is_the_exact_minimiser(tau):
    fit, x, y = fitted(kng.QuantileLoss(tau), "quantile")
    reference = sm.QuantReg(y, x).fit(q=tau, max_iter=5000, p_tol=1e-10)

    def loss(theta):
        residuals = y - x @ theta
        return np.sum(residuals * (tau - (residuals <= 0)))

    assert loss(fit.theta) <= loss(reference.params) + 1e-9
    np.testing.assert_allclose(fit.theta, reference.params, atol=1e-3)
    np.testing.assert_allclose(fit.standard_errors, reference.bse, rtol=0.25)


def test_least_squares_with_robust_standard_errors():
    fit, x, y = fitted(kng.SquaredLoss(), "squared", (-10.0, 10.0))
    reference = sm.OLS(y, x).fit(cov_type="HC0")
    np.testing.assert_allclose(fit.theta, reference.params, rtol=1e-9)
    np.testing.assert_allclose(fit.standard_errors, reference.bse, rtol=1e-9)


def test_logistic_regression_with_robust_standard_errors():
    fit, x, y = fitted(kng.LogisticLoss(), "logistic")
    reference = sm.Logit(y, x).fit(disp=0, cov_type="HC0")
    np.testing.assert_allclose(fit.theta, reference.params, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.standard_errors, reference.bse, rtol=1e-5)


@pytest.mark.parametrize(
    "loss", [kng.PseudoHuberLoss(0.4), kng.HuberLoss(0.4), kng.SmoothedQuantileLoss(0.3, 0.2)], ids=repr
)
def test_smooth_losses_have_a_vanishing_gradient(loss):
    fit, x, y = fitted(loss, "pseudo_huber")
    gradient = loss.gradient(fit.theta, data_room.Records(x, y))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)
