"""Mechanisms with smooth losses, records for them, and their laws by formulas of their own."""

from unittest import mock

import numpy as np
from scipy.special import expit

import kngjax as kng
from kngjax.draws.shell_draws import ShellDraw
from kngjax.draws.shells import shells
from kngjax.draws.shells.shell_search import ShellProblem

LOSSES = {
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "logistic": kng.LogisticLoss(),
    "quantile": kng.SmoothedQuantileLoss(0.7, 0.2),
    "Poisson": kng.PoissonLoss(),
}
MOST_COUNTS = 6.0


def problem(n, d, epsilon, seed=0, norm=None, domain=None, skew=0.0, loss="pseudo-Huber"):
    """A mechanism with records in which columns and residuals are skewed."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (n, d))
    predictor, columns = x @ np.full(d, 0.5 / d), ([-1.0] * d, [1.0] * d)
    bounds = kng.Bounds(x=columns, y=(-3.0, 3.0) if loss == "quantile" else None, intercept=False)
    if loss == "logistic":
        y = (generator.uniform(size=n) < expit(2.0 * predictor)) * 1.0
    elif loss == "Poisson":
        y = np.clip(generator.poisson(np.exp(predictor)), 0.0, MOST_COUNTS)
        bounds = kng.Bounds(x=columns, y=(0.0, MOST_COUNTS), intercept=False)
    else:
        y = np.clip(predictor + 0.2 * generator.standard_normal(n) + skew * generator.exponential(size=n), -3.0, 3.0)
    mechanism = kng.KNG(LOSSES[loss], bounds, domain or kng.L1Ball(3.0), epsilon, "replace", norm)
    return mechanism, x, y


def parts(mechanism, x, y):
    """The draw itself, however few the records; its records; and the problem that they make."""
    with mock.patch.object(shells, "GRADIENTS_UNASKED", 0):
        way = ShellDraw.of(mechanism, mechanism.intake.check_schema(x, y))
    assert isinstance(way, ShellDraw)
    records = way.prepare(x, y)
    return way, records, ShellProblem(records, way.noise, way.shape)


def scores(loss, predictors, y):
    """∂ρ/∂η."""
    if loss == "logistic":
        return expit(predictors) - y
    if loss == "Poisson":
        return np.exp(predictors) - y
    if loss == "quantile":
        return expit((predictors - y) / 0.2) - 0.7
    return -(y - predictors) / np.sqrt(1.0 + ((y - predictors) / 0.3) ** 2)


def gradients(loss, x, y, thetas):
    """G at each θ, shape (thetas, d)."""
    return scores(loss, thetas @ x.T, y[None]) @ x


def log_density(mechanism, loss, x, y, thetas):
    """-ε/(2Δ)·max|G_j|/w_j with Δ = 1, for features within [-1, 1]: w is the width of the scores or twice the largest.

    Under replace two records' gradients differ by at most 2·max|s|.
    """
    reach = float(mechanism.domain.radius) if hasattr(mechanism.domain, "radius") else None
    if loss == "Poisson":
        sides = mechanism.domain.exact_shape(x.shape[1])
        most = reach if reach is not None else float(np.sum(np.maximum(np.abs(sides.lower), np.abs(sides.upper))))
        widest = 2.0 * max(np.exp(most), MOST_COUNTS - np.exp(-most))
    else:
        widest = 2.0 * {"pseudo-Huber": 0.3, "logistic": 1.0, "quantile": 0.7}[loss]
    return -0.5 * float(mechanism.epsilon) * np.abs(gradients(loss, x, y, thetas)).max(axis=1) / widest


def moderate(loss, epsilon):
    """An ε that makes the noise of every loss about as wide, beside what the records tell."""
    return epsilon * {"pseudo-Huber": 1.0, "logistic": 4.0, "quantile": 1.0, "Poisson": 4.0}[loss]
