"""The noise that mechanisms expect is that which they draw, from closed forms and from draws."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import QuadraticSummary
from kngjax.mechanisms.expected_noise import k_norm_covariance, laplace_bridge_variances

BOUNDS = kng.Bounds(x=(0.0, 4.0), y=(-2.0, 4.0), columns=2)


@jax.jit
def draws_of(mechanism, data):
    return mechanism.draws(data, jax.random.key(0), 4000)[0]


def test_covariances_of_k_norm_noise():
    # Of l1 independent Laplace noise; of l2 a length that is Gamma(d); of l_inf Gamma(d + 1) times a uniform number.
    np.testing.assert_allclose(k_norm_covariance(kng.L1(), 0.5, 3), 8.0 * np.eye(3), atol=0.3)
    np.testing.assert_allclose(k_norm_covariance(kng.L2(), 0.5, 3), 16.0 * np.eye(3), atol=0.5)
    np.testing.assert_allclose(k_norm_covariance(kng.LInf(), 0.5, 3), 20.0 / 0.25 / 3.0 * np.eye(3), rtol=1e-12)


def test_differences_of_ranks():
    np.testing.assert_allclose(laplace_bridge_variances(0.5, 1), [2.0], rtol=1e-3)
    steps = np.random.default_rng(0).laplace(size=(400_000, 3))
    paths = np.cumsum(steps[:, :2], axis=1)
    weights = np.exp(-np.abs(paths[:, 1]))
    expected = np.sum(weights[:, None] * paths**2, axis=0) / np.sum(weights)
    np.testing.assert_allclose(laplace_bridge_variances(1.0, 2), expected, rtol=0.02)


@pytest.mark.parametrize(
    "made",
    [
        kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"),
        kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 5000.0, 1.0, 0.01, "add_remove", "identity", 20_000),
        kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 5000.0, 1.0, 0.01, "add_remove", "hessian", 20_000),
        kng.OutputPerturbation(kng.SquaredLoss(), BOUNDS, 5000.0, 1.0, 0.01, "add_remove", "hessian_squared", 20_000),
        kng.PosteriorSample(BOUNDS, 5000.0, 0.01, "add_remove", 20_000, 1e-6),
    ],
    ids=["AdaSSP", "identity", "hessian", "hessian_squared", "PosteriorSample"],
)
@pytest.mark.default_cases("AdaSSP", "PosteriorSample")
def test_draws_scatter_as_expected(made):
    """The moments are those of 20,000 records: two columns on [0, 4], and θ such that y is about its middle."""
    n = 20_000
    gram = np.array([[1.0, 2.0, 2.0], [2.0, 16 / 3, 4.0], [2.0, 4.0, 16 / 3]])
    theta = np.array([0.8, 0.1, 0.0])
    of_y = n * theta @ gram @ theta
    data = QuadraticSummary(np.asarray(float(n)), n * gram, n * gram @ theta, np.asarray(of_y))
    centred = theta
    if isinstance(made, kng.AdaSSP):
        # x̃ = (x - 2)/2 and ỹ = (y - 1)/3, at θ̃ = 0 but for the slopes.
        gram_of = np.diag([1.0, 1 / 3, 1 / 3])
        tilde = np.array([0.0, 0.2 / 3, 0.0])
        data = QuadraticSummary(np.asarray(float(n)), n * gram_of, n * gram_of @ tilde, np.asarray(0.0), True)
        centred = np.array([1.0 - 0.1 * 2.0, 0.1, 0.0])
    expected = made.noise.expected(n * gram, n)
    draws = np.asarray(draws_of(made, data))
    # A deviation from 4000 draws is off by 1.1%.
    deviations = np.sqrt(np.diag(expected.covariance))
    np.testing.assert_allclose(np.std(draws, axis=0), deviations, rtol=0.06)
    pulled = centred - expected.pull @ (centred if not isinstance(made, kng.AdaSSP) else 0.0 * centred)
    np.testing.assert_array_less(np.abs(np.mean(draws, axis=0) - pulled), 5.0 * deviations / np.sqrt(4000))


def test_noise_on_sums_of_squares_grows_with_the_coefficients():
    """AdaSSP of a column that explains all of responses that fill their bounds: θ̃ = (0, 1, 0) in public units."""
    made, n = kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"), 20_000
    gram = n * np.diag([1.0, 1 / 3, 1 / 3])
    data = QuadraticSummary(np.asarray(float(n)), gram, gram @ np.array([0.0, 1.0, 0.0]), np.asarray(n / 3), True)
    draws = np.asarray(draws_of(made, data))
    # Of own units: half widths of 2 and 3, and the intercept at the middles.
    slopes = n * np.array([[1.0, 2.0, 2.0], [2.0, 16 / 3, 4.0], [2.0, 4.0, 16 / 3]])
    expected = made.noise.expected(slopes, n)
    times = np.std(draws, axis=0) / np.sqrt(np.diag(expected.covariance))
    assert expected.growth > 1.4
    # Off θ̃ half of the variance is left.
    np.testing.assert_allclose(times[1:], [expected.growth, np.sqrt(0.5 + 0.5 * expected.growth**2)], rtol=0.06)
    # θ̃ in own units: a slope of 3/2, and 1 in the middle of a column about 2.
    assert expected.at is not None
    at = np.sqrt(np.diag(expected.at(np.array([-2.0, 1.5, 0.0]))))
    np.testing.assert_allclose(np.std(draws, axis=0), at, rtol=0.06)
    np.testing.assert_allclose(expected.at(np.array([1.0, 0.0, 0.0])), expected.covariance, rtol=1e-9, atol=1e-12)
