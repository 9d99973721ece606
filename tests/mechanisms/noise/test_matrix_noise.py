"""Noise on symmetric matrices: its law entry by entry, and what Wishart noise gives away, exactly and by simulation."""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.mechanisms.noise import matrix_noise
from kngjax.mechanisms.noise.calibration import largest_shift
from tests.oracles.goodness_of_fit import assert_mean_within, assert_same_law

NUM_DRAWS = 4000


def drawn(draw, *arguments, seed=0):
    keys = jax.random.split(kng.research_key(seed), NUM_DRAWS)
    return np.asarray(jax.vmap(lambda key: draw(key, *arguments))(keys))


def test_gaussian_noise_is_isotropic_in_the_frobenius_norm():
    noise = drawn(matrix_noise.symmetric_gaussian, 3, 2.0)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    assert_same_law(noise[:, 1, 1] / 2.0, stats.norm.cdf)
    assert_same_law(noise[:, 0, 2] / np.sqrt(2.0), stats.norm.cdf)
    # Along any symmetric matrix of length 1, such as vv', it is N(0, σ²).
    direction = np.outer([0.6, 0.8, 0.0], [0.6, 0.8, 0.0])
    assert_same_law(np.sum(noise * direction, axis=(1, 2)) / 2.0, stats.norm.cdf)


@pytest.mark.slow
def test_laplace_noise_is_independent_on_a_triangle():
    noise = drawn(matrix_noise.triangle_laplace, 3, 2.0)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    for row, column in ((0, 0), (0, 2), (1, 2)):
        assert_same_law(noise[:, row, column] / 2.0, stats.laplace.cdf)
    assert_mean_within(noise[:, 0, 1] * noise[:, 0, 0], 0.0)


def test_wishart_noise_along_a_vector():
    """1/(v'W^{-1}v) is chi-square with k - d + 1 degrees of freedom, which the exact profile rests on."""
    noise = drawn(matrix_noise.wishart, 3, 7, 0.5)
    vector = np.array([0.6, 0.0, 0.8])
    along = 1.0 / np.einsum("i,nij,j->n", vector, np.linalg.inv(noise), vector)
    assert_same_law(along / 0.5, stats.chi2(5).cdf)
    assert_mean_within(noise[:, 0, 0], 7 * 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "degrees", "epsilon"),
    [(1, 4, 0.6), (2, 6, 0.1), (5, 12, 0.6), (1, 4, 0.1), (2, 6, 0.6), (5, 12, 0.1)],
)
def test_the_profile_is_that_of_the_densities_in_full_dimension(dimension, degrees, epsilon):
    """By simulation of W, with the ratio of SciPy's Wishart densities at W and W - τvv'."""
    scale, change, generator = 0.5, 0.7, np.random.default_rng(1)
    vector = np.full(dimension, 1.0 / np.sqrt(dimension))
    step = change * np.outer(vector, vector)
    normals = generator.normal(size=(20_000, dimension, degrees)) * np.sqrt(scale)
    noise = normals @ normals.transpose(0, 2, 1)
    law = stats.wishart(df=degrees, scale=scale * np.eye(dimension))

    def log_density(matrices):
        positive = np.linalg.eigvalsh(matrices)[:, 0] > 0
        found = np.full(len(matrices), -np.inf)
        found[positive] = law.logpdf(np.moveaxis(matrices[positive], 0, -1))
        return found

    own = log_density(noise)
    losses = own - log_density(noise - step), own - log_density(noise + step)
    excess = [np.maximum(0.0, 1.0 - np.exp(epsilon - loss)) for loss in losses]
    larger = max(excess, key=np.mean)
    exact = float(np.exp(matrix_noise.wishart_log_delta(epsilon, change, dimension, degrees, scale)))
    assert_mean_within(larger, exact)


@pytest.mark.slow
def test_scales_are_calibrated():
    for dimension, degrees in ((1, 10), (5, 1000)):
        scale = float(matrix_noise.wishart_scale(0.5, 1e-6, 3.0, dimension, degrees))
        delta = np.exp(float(matrix_noise.wishart_log_delta(0.5, 3.0, dimension, degrees, scale)))
        np.testing.assert_allclose(delta, 1e-6, rtol=1e-6)
        half = np.exp(float(matrix_noise.wishart_log_delta(0.5, 3.0, dimension, degrees, 0.5 * scale)))
        assert half > 10.0 * 1e-6


def test_many_degrees_of_freedom_are_nearly_gaussian():
    """Of deviation s√(2k) along a vector, which is then that of Gaussian noise for the same (ε, δ)."""
    scale = float(matrix_noise.wishart_scale(0.5, 1e-6, 1.0, 3, 1_000_000))
    np.testing.assert_allclose(scale * np.sqrt(2e6), 1.0 / float(largest_shift(0.5, 1e-6)), rtol=0.02)
