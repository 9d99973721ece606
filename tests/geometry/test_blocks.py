"""Norms in blocks: values, duals and volumes by hand, uniform points of their balls, and their moments."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from kngjax.geometry.blocks import Block, BlockNorm, ScaledBlocks, uniform_points
from tests.oracles.goodness_of_fit import (
    assert_cell_frequencies,
    assert_mean_within,
    assert_same_law,
    assert_two_samples_agree,
)

# Columns of different blocks lie among one another.
BLOCKS = Block("exchange", (4, 0, 2)), Block("sum", (1, 5)), Block("sum", (3,))
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0, 0.1, 1.0])
NORM = BlockNorm(WEIGHTS, BLOCKS)
NUMBER = 20_000


def lengths(vectors):
    """The norms of rows, in NumPy."""
    y = vectors / WEIGHTS
    above, below = (np.maximum(sign * y[:, [4, 0, 2]], 0.0).sum(axis=1) for sign in (1.0, -1.0))
    return np.max([above, below, np.abs(y[:, [1, 5]]).sum(axis=1), np.abs(y[:, 3])], axis=0)


def by_rejection(number, seed):
    points = np.random.default_rng(seed).uniform(-1.0, 1.0, (number, 6)) * WEIGHTS
    return points[lengths(points) <= 1.0]


@pytest.fixture(scope="module")
def points():
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda key: NORM.draw_from_ball(key, (NUMBER,), 6))(jax.random.key(0)))


def test_value_and_triangle_inequality():
    vectors = np.random.default_rng(1).standard_cauchy((300, 6))
    value = jax.jit(jax.vmap(NORM))
    np.testing.assert_allclose(value(vectors), lengths(vectors), rtol=1e-12)
    np.testing.assert_allclose(value(-2.5 * vectors), 2.5 * lengths(vectors), rtol=1e-12)
    sums = lengths(vectors + np.roll(vectors, 1, axis=0))
    assert np.all(sums <= (lengths(vectors) + np.roll(lengths(vectors), 1)) * (1.0 + 1e-12))
    assert NORM(np.zeros(6)) == 0.0


def test_the_dual_norm_is_the_largest_product_over_the_ball():
    """By SciPy, over p, q >= 0 with v = w(p - q): an exchange bounds the sums of p and of q, others that of both."""
    rows = np.zeros((4, 12))
    rows[0, [4, 0, 2]] = rows[1, [10, 6, 8]] = rows[2, [1, 5, 7, 11]] = rows[3, [3, 9]] = 1.0
    for vector in np.random.default_rng(2).normal(size=(6, 6)):
        costs = np.r_[-vector * WEIGHTS, vector * WEIGHTS]
        found = optimize.linprog(costs, A_ub=rows, b_ub=np.ones(4), bounds=(0.0, None))
        assert float(NORM.dual(vector)) == pytest.approx(-found.fun, rel=1e-9)


def test_what_sensitivities_ask_of_the_norm():
    corner, sphere = np.arange(1.0, 7.0), np.random.default_rng(3).normal(size=(4000, 6))
    assert float(NORM.largest_over_box(corner)) == pytest.approx(lengths(corner[None])[0], rel=1e-12)
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    largest, worst = float(NORM.largest_over_l2_ball(6)), np.zeros((1, 6))
    assert np.all(lengths(sphere) <= largest)
    worst[0, [4, 0, 2]] = 1.0 / WEIGHTS[[4, 0, 2]]
    assert lengths(worst / np.linalg.norm(worst))[0] == pytest.approx(largest, rel=1e-12)


def test_volume_is_the_share_of_a_box_and_in_a_plane_that_of_a_square_and_two_triangles():
    share = math.exp(float(NORM.log_volume(6))) / np.prod(2.0 * WEIGHTS)
    inside = len(by_rejection(100_000, 4))
    assert_cell_frequencies([inside, 100_000 - inside], [share, 1.0 - share])
    assert math.exp(Block("exchange", (0, 1)).log_volume) == pytest.approx(3.0, rel=1e-12)
    assert math.exp(Block("sum", (0, 1)).log_volume) == pytest.approx(2.0, rel=1e-12)


def test_draws_are_uniform_in_the_ball(points):
    radii = lengths(points)
    assert radii.max() <= 1.0 + 1e-12
    assert_same_law(np.minimum(radii, 1.0) ** 6, stats.uniform.cdf)
    reference = by_rejection(400_000, 5)
    for direction in (*np.eye(6), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0, -0.4, 0.3, 0.1, -2.0, 0.7]):
        assert_two_samples_agree(points @ direction, reference @ direction)


def test_squares_have_the_means_of_the_simplices(points):
    squares = np.array([float(block.mean_square) for block in BLOCKS])[[0, 1, 0, 2, 0, 1]]
    assert_mean_within((points / WEIGHTS) ** 2, squares)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_mean_within((points / WEIGHTS) ** 2, 1.1 * squares)


@pytest.mark.parametrize("size", range(1, 13))
def test_the_mean_square_of_an_exchange_is_that_of_simplices_of_all_numbers_of_positive_columns(size):
    total = math.comb(2 * size, size)
    chances = [Fraction(math.comb(size, k) ** 2, total) for k in range(size + 1)]
    assert sum(chances) == 1
    of_simplex = [Fraction(2, (k + 1) * (k + 2)) for k in range(size + 1)]
    positive = sum(p * Fraction(k, size) * of_simplex[k] for k, p in enumerate(chances))
    negative = sum(p * Fraction(size - k, size) * of_simplex[size - k] for k, p in enumerate(chances))
    columns = tuple(range(size))
    assert Block("exchange", columns).mean_square == positive + negative
    assert Block("sum", columns).mean_square == of_simplex[size]


def test_numbers_of_positive_columns_have_the_chances_of_their_volumes(points):
    counts = np.bincount((points[:, [4, 0, 2]] > 0.0).sum(axis=1), minlength=4)
    assert_cell_frequencies(counts, np.array([1, 9, 9, 1]) / 20.0)


def test_points_are_the_same_functions_of_random_numbers_in_numpy_and_jax():
    random = np.random.default_rng(6)
    numbers = random.exponential(size=(5, 6)), random.exponential(size=(5, 6)), *random.uniform(size=(2, 5, 6))
    here, there = (np.asarray(uniform_points(BLOCKS, xp, *numbers)) for xp in (np, jax.numpy))
    np.testing.assert_allclose(here, there, rtol=1e-12)


def test_noise_deviations_are_those_of_a_gamma_radius_times_points(points):
    noise = ScaledBlocks(BLOCKS, tuple(map(Fraction, WEIGHTS)), Fraction(9, 4))
    radius = np.random.default_rng(7).gamma(7.0, 1.5, (NUMBER, 1))
    assert_mean_within((radius * points) ** 2, noise.deviations**2)
    assert noise.scaled(Fraction(4)).deviations == pytest.approx(2.0 * noise.deviations, rel=1e-12)


def test_what_is_no_norm_is_refused():
    for blocks in (BLOCKS[:2], (*BLOCKS, Block("sum", (3,))), (*BLOCKS, Block("sum", (6,)))):
        with pytest.raises(ValueError, match="must lie in one block"):
            BlockNorm(WEIGHTS, blocks)
        with pytest.raises(ValueError, match="must lie in one block"):
            ScaledBlocks(blocks, tuple(map(Fraction, WEIGHTS)))
    with pytest.raises(ValueError, match="weights of BlockNorm must all be positive"):
        BlockNorm(np.append(WEIGHTS[:5], 0.0), BLOCKS)
