"""Noise in balls: balls contain the draw, and the draw has its law."""

import random

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

from kngjax.draws.noises import BlockNoise, LengthNoise, MaximumNoise, SumNoise
from kngjax.draws.uniforms import Uniform, decided
from kngjax.geometry.blocks import Block
from tests.oracles.goodness_of_fit import (
    assert_cell_frequencies,
    assert_mean_within,
    assert_same_law,
    assert_two_samples_agree,
)

NORMS = {
    MaximumNoise: lambda z: np.max(np.abs(z), axis=-1),
    SumNoise: lambda z: np.sum(np.abs(z), axis=-1),
    LengthNoise: lambda z: np.linalg.norm(z, axis=-1),
}


def test_more_digits_are_of_the_same_number():
    bits = random.Random(0).getrandbits
    for _ in range(200):
        uniform = Uniform(bits)
        with ctx.workprec(600):
            few, many = (uniform.ball(digits) for digits in (20, 500))
            again = uniform.ball(30)
        assert few.contains(many)
        assert again.contains(many)
        assert 0 <= few.mid() <= 1
        assert float(few.rad()) == pytest.approx(2.0**-21)


def test_every_bit_of_a_uniform_number_is_drawn():
    """All ones: the number is next to 1, by as many digits as are asked for."""
    asked = []
    uniform = Uniform(lambda number: asked.append(number) or 2**number - 1)
    with ctx.workprec(1000):
        for digits in (64, 128, 700):
            assert (1 - uniform.ball(digits)).upper() * arb(2) ** digits <= 1.001
    assert asked == [64, 64, 572]


def test_a_decision_is_taken_with_as_few_digits_as_it_needs():
    asked = []

    def attempt(digits):
        asked.append((digits, ctx.prec))
        return None if digits < 500 else digits

    assert decided(attempt) == 512
    assert [digits for digits, _ in asked] == [64, 128, 256, 512]
    assert all(precision > digits for digits, precision in asked)


@pytest.mark.parametrize("kind", NORMS)
def test_balls_of_few_digits_contain_those_of_many(kind):
    bits = random.Random(1).getrandbits
    for dimension in (1, 2, 3, 12):
        for _ in range(50):
            noise = kind(dimension, bits)
            with ctx.workprec(128):
                few = noise.balls(64)
            with ctx.workprec(600):
                many = noise.balls(500)
            assert len(few) == len(many) == dimension
            for wide, narrow in zip(few, many, strict=True):
                assert wide.contains(narrow)
                assert wide.rad() < abs(wide.mid()) / 2**30 + arb(2) ** -40


def test_a_uniform_number_that_may_be_zero_leaves_the_noise_open():
    noise = SumNoise(1, lambda _: 0)
    (ball,) = noise.balls(64)
    assert not ball.is_finite()


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("dimension", [1, 3])
def test_the_norm_of_noise_is_a_gamma_number_and_its_direction_that_of_a_uniform_point(kind, dimension):
    """Directions by their sizes in the coordinates: all alike, and as those of z/‖z‖ drawn by NumPy."""
    bits, generator, number = random.Random(2).getrandbits, np.random.default_rng(3), 3000
    with ctx.workprec(128):
        z = np.array([[float(ball.mid()) for ball in kind(dimension, bits).balls(64)] for _ in range(number)])
    norms = NORMS[kind](z)
    assert_same_law(norms, scipy.stats.gamma(dimension).cdf)
    assert_mean_within(np.sign(z), np.zeros(dimension))
    if dimension > 1:
        others = {
            MaximumNoise: lambda: generator.uniform(-1.0, 1.0, (30 * number, dimension)),
            SumNoise: lambda: generator.laplace(size=(number, dimension)),
            LengthNoise: lambda: generator.standard_normal((number, dimension)),
        }[kind]()
        if kind is MaximumNoise:
            # On the cube's surface: one coordinate is ±1, and the others are uniform.
            others[np.arange(len(others)), generator.integers(dimension, size=len(others))] = 1.0
        directions, others = z / norms[:, None], others / NORMS[kind](others)[:, None]
        for axis in range(dimension):
            assert_two_samples_agree(np.abs(directions[:, axis]), np.abs(others[:, axis]))
        assert_mean_within(np.sign(z[:, 0] * z[:, 1]), 0.0)


# Columns of different blocks lie among one another.
BLOCKS = Block("exchange", (5, 0, 2)), Block("sum", (1, 6)), Block("sum", (3,)), Block("exchange", (4, 7))
SUMMED = [("exchange", (5, 0, 2)), ("sum", (1, 6)), ("sum", (3,)), ("exchange", (4, 7))]


def norms_of_blocks(z):
    """The norm of each block of each row, in NumPy."""
    found = []
    for kind, columns in SUMMED:
        above, below = (np.maximum(sign * z[:, columns], 0.0).sum(axis=1) for sign in (1.0, -1.0))
        found.append(np.maximum(above, below) if kind == "exchange" else above + below)
    return np.array(found).T


def noise_in_blocks(number, seed=2):
    bits = random.Random(seed).getrandbits
    with ctx.workprec(128):
        return np.array([[float(ball.mid()) for ball in BlockNoise(BLOCKS, bits).balls(64)] for _ in range(number)])


def test_noise_in_blocks_has_a_gamma_norm_and_half_of_it_has_not():
    norms = norms_of_blocks(noise_in_blocks(1500)).max(axis=1)
    assert_same_law(norms, scipy.stats.gamma(8).cdf)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_same_law(norms / 2.0, scipy.stats.gamma(8).cdf)


def test_noise_in_blocks_is_uniform_in_its_balls_given_the_norm():
    """Against rejection by NumPy from the box about the balls, each coordinate and two sums of coordinates."""
    generator = np.random.default_rng(3)
    points = generator.uniform(-1.0, 1.0, (300_000, 8))
    points = points[norms_of_blocks(points).max(axis=1) <= 1.0]
    others = points * generator.gamma(9.0, size=(len(points), 1))
    z = noise_in_blocks(2000)
    for direction in (*np.eye(8), [1, 0, 1, 0, 0, 1, 0, 0], [0, 0.5, 0, 0.1, 1, 0, 0.7, -1]):
        assert_two_samples_agree(z @ direction, others @ direction)


def test_numbers_of_positive_columns_of_an_exchange_have_the_law_of_its_volumes():
    """C(L, k)^2/C(2L, L) for k of L = 3, and all sets of k columns alike."""
    signs = noise_in_blocks(2000)[:, [5, 0, 2]] > 0.0
    counts = np.bincount(signs @ [1, 2, 4], minlength=8)
    chances = np.array([[1, 3, 3, 1][bin(which).count("1")] for which in range(8)]) / 20.0
    assert_cell_frequencies(counts, chances)
    with pytest.raises(AssertionError, match="below the suite's rate"):
        assert_cell_frequencies(counts, np.full(8, 1.0 / 8.0))


def test_balls_of_noise_in_blocks_hold_those_of_more_digits():
    bits = random.Random(1).getrandbits
    for _ in range(50):
        noise = BlockNoise(BLOCKS, bits)
        with ctx.workprec(128):
            few = noise.balls(64)
        with ctx.workprec(600):
            many = noise.balls(500)
        assert len(few) == len(many) == 8
        for wide, narrow in zip(few, many, strict=True):
            assert wide.contains(narrow)
            assert wide.rad() < abs(wide.mid()) / 2**30 + arb(2) ** -40
