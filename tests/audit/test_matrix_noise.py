"""Audits of noise on matrices: the published Wishart release is caught, and what replaces it passes, at d = 1, 2, 5.

The two neighbours differ in one record of length 1 and weight κ: matrices M and M + κ·vv'. An attacker looks at the
release's entries along v and at whether it is one that the larger matrix can produce.
"""

import functools

import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from experiments import irls2016
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.mechanisms.noise import matrix_noise
from kngjax.mechanisms.noise.calibration import largest_shift
from tests.oracles.goodness_of_fit import assert_cell_frequencies

EPSILON, DELTA, CAP = 0.5, 1e-3, 2.0
# Claimed of the replacements: large, so that an audit of so many draws has the power to see half their noise.
STRONG = 2.0
NUM_DRAWS = 20_000
# Where the loss spreads over many entries, and where it is nearly all beyond the claim only at half the noise.
MANY_DRAWS = {("laplace", 5): 300_000, ("wishart", 1): 100_000}
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


@pytest.mark.slow
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


def log_ratio(kind, noisy, smaller, larger):
    """The privacy loss that a release shows, up to an increasing map: what the best attacker looks at."""
    if kind == "gaussian":
        return np.einsum("nij,ij->n", noisy, larger - smaller)
    if kind == "laplace":
        rows, columns = np.triu_indices(len(smaller))
        far, near = (np.abs(noisy - matrix)[:, rows, columns].sum(1) for matrix in (smaller, larger))
        return far - near
    # (k-d-1)/2 times the difference of log determinants; what the larger matrix cannot produce is below all.
    signs, logs = np.linalg.slogdet(noisy - larger)
    possible = (signs > 0) & (np.linalg.eigvalsh(noisy - larger)[:, 0] > 0)
    return np.where(possible, logs - np.linalg.slogdet(noisy - smaller)[1], -1e9)


@functools.cache
def replacement_noise(kind, dimension, seed):
    """Noise of a replacement at the claim `STRONG`; its size is in proportion to its scale, whatever the kind."""
    key, shape = kng.research_key(seed), (MANY_DRAWS.get((kind, dimension), NUM_DRAWS),)
    if kind == "gaussian":
        size = CAP / largest_shift(STRONG, DELTA)
        return np.asarray(matrix_noise.symmetric_gaussian(key, dimension, size, shape))
    if kind == "laplace":
        # Of the triangle of κvv': κ(‖v‖_1² + ‖v‖_2²)/2.
        size = CAP * 0.5 * (dimension + 1.0) / STRONG
        return np.asarray(matrix_noise.triangle_laplace(key, dimension, size, shape))
    degrees = dimension + 1 + 100
    size = matrix_noise.wishart_scale(STRONG, DELTA, CAP, dimension, degrees)
    return np.asarray(matrix_noise.wishart(key, dimension, degrees, size, shape))


def replacement_bound(kind, factor, dimension):
    """The audit's lower bound on ε of a replacement whose noise is multiplied by a factor."""
    delta = 0.0 if kind == "laplace" else DELTA
    smaller, larger, vector = neighbours(dimension)
    features = []
    for seed, matrix in enumerate((smaller, larger)):
        noisy = matrix + factor * replacement_noise(kind, dimension, seed)
        best = log_ratio(kind, noisy, smaller, larger)
        features.append(np.column_stack([seen(noisy, larger, vector), best]))
    return epsilon_lower_bound(*features, delta, 1.0 - 1e-6)


@pytest.mark.default_cases("gaussian-1")
@pytest.mark.parametrize("dimension", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "wishart"])
def test_what_replaces_it_passes_and_half_its_noise_does_not(kind, dimension):
    assert replacement_bound(kind, 1.0, dimension) <= STRONG
    assert replacement_bound(kind, 0.5, dimension) > STRONG


def test_the_published_release_says_what_it_is():
    with pytest.warns(UserWarning, match="not differentially private"):
        irls2016.published_wishart(np.eye(2), CAP, EPSILON, 10, np.random.default_rng(0))


@pytest.mark.slow
def test_the_profile_of_few_degrees_of_freedom_is_that_of_the_published_noise():
    """At k = d + 1 the share of impossible releases bounds δ from below, whatever ε."""
    scale, dimension = CAP / (2.0 * EPSILON), 3
    few = float(np.exp(matrix_noise.wishart_log_delta(20.0, CAP, dimension, dimension + 2, scale)))
    assert few > stats.chi2(3).cdf(CAP / scale) * (1.0 - 1e-6)
