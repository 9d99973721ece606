"""Audits of noise on matrices: the published Wishart release is caught, and what replaces it passes, at d = 1, 2, 5.

The two neighbours differ in one record of length 1 and weight κ: matrices M and M + κ·vv'. An attacker looks at the
release's entries along v and at whether it is one that the larger matrix can produce.
"""

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from experiments import irls2016
from kngjax import matrix_noise
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.calibration import largest_shift
from tests.goodness_of_fit import assert_cell_frequencies

EPSILON, DELTA, CAP = 0.5, 1e-3, 2.0
NUM_DRAWS = 20_000
DIMENSIONS = pytest.mark.parametrize("dimension", [1, 2, 5])


def neighbours(dimension):
    vector = np.full(dimension, 1.0 / np.sqrt(dimension))
    matrix = np.eye(dimension)
    return matrix, matrix + CAP * np.outer(vector, vector), vector


def seen(noisy, larger, vector):
    """What the attacker looks at: v'Sv, the trace, and the smallest eigenvalue of S - M'."""
    least = np.linalg.eigvalsh(noisy - larger)[:, 0]
    return np.stack([np.einsum("i,nij,j->n", vector, noisy, vector), np.trace(noisy, axis1=1, axis2=2), least], axis=1)


def bound(draw, dimension, delta):
    """The audit's lower bound on ε from both data sets; `draw(matrix, generator seed)` gives releases."""
    smaller, larger, vector = neighbours(dimension)
    features = [seen(draw(matrix, seed), larger, vector) for seed, matrix in enumerate((smaller, larger))]
    return epsilon_lower_bound(*features, delta, 1.0 - 1e-6)


def published(matrix, seed):
    generator = np.random.default_rng(seed)
    return np.stack(
        [irls2016.published_wishart(matrix, CAP, EPSILON, 1, generator) for _ in range(NUM_DRAWS)]
    )  # the note's N is 1 where matrices are sums


@DIMENSIONS
@pytest.mark.filterwarnings("ignore:published_wishart is not differentially private")
def test_the_published_wishart_release_is_caught(dimension):
    smaller, larger, _ = neighbours(dimension)
    impossible = np.linalg.eigvalsh(published(smaller, 3) - larger)[:, 0] < 0
    share = 1.0 - np.exp(-EPSILON)
    assert_cell_frequencies([impossible.sum(), (~impossible).sum()], [share, 1.0 - share])
    # From its own data set such a release is never impossible, so no finite ε holds at a δ below that share.
    assert not np.any(np.linalg.eigvalsh(published(larger, 4) - larger)[:, 0] < -1e-12)
    assert bound(published, dimension, DELTA) > 4.0 * EPSILON


def replacement(kind, factor):
    def draw(matrix, seed):
        dimension = len(matrix)
        keys = jax.random.split(kng.research_key(seed), NUM_DRAWS)
        if kind == "gaussian":
            size = CAP / largest_shift(EPSILON, DELTA)
            noise = jax.vmap(lambda key: matrix_noise.symmetric_gaussian(key, dimension, factor * size))(keys)
        elif kind == "laplace":
            # Of the triangle of κvv': κ(‖v‖_1² + ‖v‖_2²)/2.
            size = CAP * 0.5 * (dimension + 1.0) / EPSILON
            noise = jax.vmap(lambda key: matrix_noise.triangle_laplace(key, dimension, factor * size))(keys)
        else:
            degrees = dimension + 1 + 100
            size = matrix_noise.wishart_scale(EPSILON, DELTA, CAP, dimension, degrees)
            noise = jax.vmap(lambda key: matrix_noise.wishart(key, dimension, degrees, factor * size))(keys)
        return matrix + np.asarray(noise)

    return draw


@DIMENSIONS
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "wishart"])
def test_what_replaces_it_passes(kind, dimension):
    delta = 0.0 if kind == "laplace" else DELTA
    assert bound(replacement(kind, 1.0), dimension, delta) <= EPSILON


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "wishart"])
def test_a_quarter_of_the_noise_is_caught(kind):
    delta = 0.0 if kind == "laplace" else DELTA
    assert bound(replacement(kind, 0.25), 1, delta) > EPSILON


def test_the_published_release_says_what_it_is():
    with pytest.warns(UserWarning, match="not differentially private"):
        irls2016.published_wishart(np.eye(2), CAP, EPSILON, 10, np.random.default_rng(0))


def test_the_profile_of_few_degrees_of_freedom_is_that_of_the_published_noise():
    """At k = d + 1 the share of impossible releases bounds δ from below, whatever ε."""
    scale, dimension = CAP / (2.0 * EPSILON), 3
    least = stats.expon.cdf(CAP / (2.0 * scale))
    np.testing.assert_allclose(least, 1.0 - np.exp(-EPSILON))
    few = float(np.exp(matrix_noise.wishart_log_delta(20.0, CAP, dimension, dimension + 2, scale)))
    assert few > stats.chi2(3).cdf(CAP / scale) * (1.0 - 1e-6)
