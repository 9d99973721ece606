"""Output perturbation: the laws of its three metrics, its guarantee against brute force, and what it refuses."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import kngjax as kng
from kngjax.losses.base import AbstractResidualLoss
from tests.mechanisms.test_posterior_sample import LINE, PLANE, neighbours
from tests.oracles.gaussian_laws import hockey_stick
from tests.oracles.goodness_of_fit import assert_same_law
from tests.oracles.perturbed_ridge import ridge

METRICS = ("identity", "hessian", "hessian_squared")
EPSILON, DELTA = 1.0, 1e-3


def squared(metric="identity", bounds=PLANE, adjacency="add_remove", regularization=120.0, **changes):
    settings = {"epsilon": EPSILON, "delta": DELTA, "max_records": 50, "metric": metric, **changes}
    return kng.OutputPerturbation(kng.SquaredLoss(), bounds, regularization, adjacency=adjacency, **settings)


def power(precision, metric):
    return np.linalg.matrix_power(precision, METRICS.index(metric))


@pytest.mark.default_cases("hessian_squared")
@pytest.mark.parametrize("metric", METRICS)
def test_draws_follow_the_gaussian(metric):
    generator = np.random.default_rng(0)
    x, y = generator.uniform(-1.0, 1.0, (40, 1)), generator.uniform(-1.0, 1.0, 40)
    mean, precision = ridge(np.column_stack([np.ones(40), x]), y, 120.0)
    mechanism = squared(metric)
    draws = kng.sample(mechanism, mechanism.prepare(x, y), key=kng.research_key(0), num_draws=4000, num_chains=1)
    covariance_root = np.linalg.cholesky(float(mechanism.gamma_for(2)) * power(precision, metric))
    whitened = (draws.theta[0] - mean) @ covariance_root
    for coordinate in (*whitened.T, (whitened[:, 0] - whitened[:, 1]) / np.sqrt(2.0)):
        assert_same_law(coordinate, stats.norm.cdf)


@pytest.mark.default_cases("identity-add_remove", "identity-replace")
@pytest.mark.parametrize(
    ("metric", "adjacency"),
    [
        *((metric, "add_remove") for metric in METRICS),
        ("identity", "replace"),
        *(pytest.param(metric, "replace", marks=pytest.mark.slow) for metric in METRICS[1:]),
    ],
)
def test_no_neighbours_betray_more_than_is_said(metric, adjacency):
    mechanism = squared(metric, LINE, adjacency, regularization=60.0, max_records=12)
    gamma, generator = float(mechanism.gamma_for(1)), np.random.default_rng(1)

    def law(x, y, gamma):
        theta, precision = ridge(x, y, 60.0)
        return float(theta[0]), float((gamma * power(precision, metric)[0, 0]) ** -0.5)

    worst, bolder = 0.0, 0.0
    for _ in range(120):
        pair = neighbours(generator, 12, adjacency)
        for factor in (1.0, 4.0):
            first, second = (law(*data, factor * gamma) for data in pair)
            found = max(hockey_stick(first, second, EPSILON), hockey_stick(second, first, EPSILON))
            worst, bolder = (max(worst, found), bolder) if factor == 1.0 else (worst, max(bolder, found))
    assert worst <= DELTA * (1.0 + 1e-6)
    # Half of the noise is noticed where the calibration is tight.
    if metric != "hessian_squared" and adjacency == "add_remove":
        assert worst > 0.7 * DELTA
        assert bolder > 2.0 * DELTA


def logistic_minimiser(x, y, regularization):
    signs = 2.0 * y - 1.0

    def objective(theta):
        return np.logaddexp(0.0, -signs * (x @ theta)).sum() + 0.5 * regularization * theta @ theta

    def slope(theta):
        return -(signs / (1.0 + np.exp(signs * (x @ theta)))) @ x + regularization * theta

    return optimize.minimize(objective, np.zeros(x.shape[1]), jac=slope, tol=1e-12).x


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_no_record_moves_a_logistic_regression_more(adjacency):
    bounds = kng.Bounds(x=([-1.0, -1.0], [1.0, 1.0]), intercept=False)
    mechanism = kng.OutputPerturbation(kng.LogisticLoss(), bounds, 2.0, EPSILON, DELTA, adjacency)
    bound, generator, found = mechanism.sensitivity.value, np.random.default_rng(2), []
    for _ in range(60):
        count = int(generator.integers(1, 6))
        x = generator.choice([-1.0, 1.0], (count + 1, 2)) * (generator.random((count + 1, 1)) < 0.8)
        y = generator.choice([0.0, 1.0], count + 1)
        other, flipped = (x[:-1], y[:-1]), (x, np.append(y[:-1], 1.0 - y[-1]))
        second = other if adjacency == "add_remove" else flipped
        found.append(np.linalg.norm(logistic_minimiser(x, y, 2.0) - logistic_minimiser(*second, 2.0)))
    assert max(found) <= bound
    assert max(found) > 0.3 * bound


@pytest.mark.slow
def test_the_noise_of_a_logistic_regression_is_about_its_minimiser():
    bounds = kng.Bounds(x=([-1.0], [1.0]))
    mechanism = kng.OutputPerturbation(kng.LogisticLoss(), bounds, 2.0, EPSILON, DELTA, "replace")
    generator = np.random.default_rng(3)
    x, y = generator.uniform(-1.0, 1.0, (30, 1)), generator.choice([0.0, 1.0], 30)
    draws = kng.sample(mechanism, mechanism.prepare(x, y), key=kng.research_key(0), num_draws=4000, num_chains=1)
    mean = logistic_minimiser(np.column_stack([np.ones(30), x]), y, 2.0)
    deviation = float(mechanism.gamma_for(2)) ** -0.5
    for coordinate in range(2):
        assert_same_law((draws.theta[0, :, coordinate] - mean[coordinate]) / deviation, stats.norm.cdf)


def test_the_gaussian_is_calibrated_by_its_exact_profile():
    """Of the shift s over the noise's deviation: Φ(s/2 - ε/s) - e^ε Φ(-s/2 - ε/s) = δ."""
    mechanism = squared()
    shift = np.sqrt(float(mechanism.gamma_for(2))) * mechanism.sensitivity.value
    first, second = stats.norm.cdf(np.array([0.5 * shift, -0.5 * shift]) - EPSILON / shift)
    np.testing.assert_allclose(first - np.exp(EPSILON) * second, DELTA, rtol=1e-7)
    classical = EPSILON / np.sqrt(2.0 * np.log(1.25 / DELTA))
    assert shift > 1.1 * classical


def test_the_least_noise_is_that_of_float64_whatever_the_callers_setting():
    """In float32 such a δ is 0."""
    mechanism = kng.OutputPerturbation(kng.PseudoHuberLoss(0.3), PLANE, 100.0, 1.0, 1e-60, "replace")
    expected = mechanism.noise.least(3, None)
    with jax.enable_x64(False):
        np.testing.assert_array_equal(mechanism.noise.least(3, None), expected)


@pytest.mark.slow
def test_a_release_says_what_was_proved():
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    release = kng.release(squared("hessian"), x, x[:, 0])
    assert kng.Release.from_json(release.to_json()) == release
    certificate = release.certificate
    assert certificate.epsilon == EPSILON
    assert certificate.delta == pytest.approx(DELTA + certificate.rounding_delta, rel=1e-12)
    assert "gamma" in release.certificate.explain()


class FullSquareLoss(AbstractResidualLoss):
    """r², twice the squared loss: a quadratic whose ridge regression records move by another length."""

    needs_response_bounds: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True

    def residual_value(self, residual):
        return jnp.square(residual)

    def residual_slope(self, residual):
        return 2.0 * jnp.asarray(residual)

    def residual_minimiser(self):
        return 0.0

    def record_curvature(self, predictor, response):
        return 2.0 * jnp.ones_like(predictor)

    def curvature_bound(self, predictor):
        return 2.0

    def score_interval(self, predictor, response):
        return 2.0 * (predictor[0] - response[1]), 2.0 * (predictor[1] - response[0])


@pytest.mark.parametrize("metric", METRICS)
def test_another_quadratic_loss_is_refused(metric):
    """The changes of a ridge regression are those of ½r² alone."""
    with pytest.raises(ValueError, match="FullSquareLoss is another quadratic"):
        kng.OutputPerturbation(FullSquareLoss(), PLANE, 120.0, EPSILON, DELTA, "add_remove", metric, 50)


def test_the_squared_loss_alone_is_half_the_square():
    """As its name says, and no other public loss: by its values, and by what it declares."""
    losses = {name: getattr(kng, name) for name in kng.__all__ if name.endswith("Loss")}
    assert [name for name, loss in losses.items() if loss.is_half_square] == ["SquaredLoss"]
    assert float(kng.SquaredLoss().record_value(0.25, 1.0)) == 0.5 * 0.75**2


@pytest.mark.parametrize(
    ("build", "advice"),
    [
        (lambda: squared(metric="hesse"), "metric must be one of"),
        (lambda: squared(max_records=None), "max_records is missing"),
        (lambda: squared(regularization=0.0), "regularization must be positive"),
        (lambda: squared(regularization=0.1, metric="hessian_squared"), "no amount of noise"),
        (lambda: squared(delta=0.0), "delta must be positive"),
        (
            lambda: kng.OutputPerturbation(kng.QuantileLoss(0.5), PLANE, 1.0, 1.0, 1e-6, "replace"),
            "smooth losses of a regression",
        ),
        (
            lambda: kng.OutputPerturbation(kng.LogisticLoss(), PLANE, 1.0, 1.0, 1e-6, "replace", metric="hessian"),
            "for the squared loss",
        ),
        (
            lambda: kng.OutputPerturbation(
                kng.PoissonLoss(), kng.Bounds(x=([-1.0], [1.0]), y=(0.0, 5.0)), 1.0, 1.0, 1e-6, "replace"
            ),
            "gradients must be bounded",
        ),
    ],
    ids=["metric", "max_records", "regularization", "small_ridge", "delta", "quantile", "logistic", "poisson"],
)
def test_what_is_refused(build, advice):
    with pytest.raises(ValueError, match=advice):
        build()
