"""Ridge regressions with Gaussian noise on a grid: cells beside distribution functions, quadrature and lengths."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from flint import arb, arb_mat, ctx

from kngjax.core.balls import ball_of
from kngjax.data.exact_sums import ExactSums, gram
from kngjax.draws import uniforms
from kngjax.draws.grid_cells import Grid
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.ridge_posterior import RidgeNoise, draw_ridge
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_gamma, assert_mean_within, assert_same_law


def sums_of(x, y) -> ExactSums:
    table = gram(np.column_stack([x, y]))
    return ExactSums(len(y), table[:-1, :-1], table[:-1, -1], table[-1, -1])


def some_sums(dimension, number=30):
    generator = np.random.default_rng(dimension)
    x = generator.uniform(-1.0, 1.0, (number, dimension)) @ generator.uniform(-1.0, 1.0, (dimension, dimension))
    return sums_of(x, generator.uniform(-1.0, 1.0, number))


def law_of(sums, noise):
    """θ̂ and the covariance, by NumPy."""
    precision = sums.gram.astype(float) + float(noise.ridge) * np.eye(sums.dimension)
    inverse = np.linalg.inv(precision)
    return inverse @ sums.moment.astype(float), float(noise.variance) * np.linalg.matrix_power(inverse, noise.power)


@pytest.mark.parametrize("power", [1, 2])
def test_cells_of_a_line_have_normal_probabilities(power):
    sums, noise = some_sums(1), RidgeNoise(Fraction(1, 3), Fraction(5, 2), power)
    bits, grid = random.Random(0).getrandbits, Grid((-1,))
    found = np.array([draw_ridge(sums, noise, grid, bits)[0] for _ in range(120)])
    with ctx.workprec(200):
        precision = ball_of(sums.gram[0, 0] + noise.ridge)
        middle = ball_of(sums.moment[0]) / precision
        deviation = ball_of(noise.variance).sqrt() / (precision if power == 2 else precision.sqrt())

        def below(number):
            end = (arb(number) - arb(0.5)) / 2
            return float(((middle - end) / deviation / arb(2).sqrt()).erfc() / 2)

        numbers = range(-6, 8)
        chances = [below(number + 1) - below(number) for number in numbers]
    counts = [np.sum(found == number) for number in numbers]
    assert_cell_frequencies(np.append(counts, len(found) - sum(counts)), np.append(chances, 1.0 - sum(chances)))


@pytest.mark.parametrize("power", [1, 2])
def test_cells_of_a_plane_have_the_probabilities_of_quadrature(power):
    sums, noise = some_sums(2), RidgeNoise(Fraction(1, 2), Fraction(7, 3), power)
    middle, covariance = law_of(sums, noise)
    assert abs(covariance[0, 1]) > 0.1 * math.sqrt(covariance[0, 0] * covariance[1, 1])
    exponents = [int(np.round(np.log2(size))) for size in np.sqrt(np.diag(covariance))]
    bits, grid = random.Random(1).getrandbits, Grid(tuple(exponents))
    found = np.array([draw_ridge(sums, noise, grid, bits) for _ in range(600)])
    units = 2.0 ** np.array(exponents)
    centre = np.round(middle / units).astype(int)
    sides = [np.arange(one - 4, one + 5) for one in centre]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    first, second = ((side[:, None] + nodes / 2.0) * unit for side, unit in zip(sides, units, strict=True))
    places = np.stack(np.broadcast_arrays(first[:, None, :, None], second[None, :, None, :]), axis=-1) - middle
    density = np.exp(-0.5 * np.einsum("abijk,kl,abijl->abij", places, np.linalg.inv(covariance), places))
    density /= 2.0 * np.pi * math.sqrt(np.linalg.det(covariance))
    chances = np.einsum("abij,i,j->ab", density, weights, weights) * np.prod(units) / 4.0
    counts = np.histogram2d(*found.T, bins=[np.append(side, side[-1] + 1) - 0.5 for side in sides])[0]
    assert_cell_frequencies(
        np.append(counts.ravel(), len(found) - counts.sum()), np.append(chances, 1.0 - chances.sum())
    )


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("number", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_lengths_in_the_metric_of_the_noise_are_chi_square(power, number):
    sums, noise = some_sums(5), RidgeNoise(Fraction(1, 10), Fraction(3), power)
    middle, covariance = law_of(sums, noise)
    bits, grid = random.Random(2).getrandbits, Grid((-40,) * 5)
    found = np.array([grid.values(draw_ridge(sums, noise, grid, bits)) for _ in range(number)])
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (found - middle).T)
    assert_gamma(0.5 * np.sum(whitened**2, axis=0), 2.5)
    assert_mean_within(whitened.T, np.zeros(5))
    for axis in range(5):
        assert_same_law(whitened[axis], scipy.stats.norm.cdf)
    assert_mean_within((whitened[:-1] * whitened[1:]).T, np.zeros(4))


@pytest.mark.parametrize("power", [1, 2])
def test_no_precision_changes_a_cell_however_collinear_the_columns_are(power, monkeypatch):
    """Pivots of H are 2^-60 of its entries; the first attempts have too few digits even for their signs."""
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (20, 3))
    x[:, 2] = x[:, 1]
    sums, grid = sums_of(x, x[:, 0] ** 2), Grid((-30, 0, 3))
    noise = RidgeNoise(Fraction(1, 2**60), Fraction(1, 9), power)
    found = []
    for first in (1, 64, 2000):
        monkeypatch.setattr(uniforms, "_FIRST_DIGITS", first)
        # The same uniform numbers, whatever digits are asked for.
        streams = [random.Random(seed).getrandbits(20_000) for seed in range(120)]
        monkeypatch.setattr("kngjax.draws.noises.Uniform", told(streams))
        found.append([draw_ridge(sums, noise, grid, random.Random(0).getrandbits) for _ in range(30)])
    assert found[0] == found[1] == found[2]
    assert len({tuple(cell) for cell in found[0]}) == 30


def told(numbers):
    """A class of uniform numbers of which 20000 binary digits are given, one after the other."""
    left = iter(numbers)

    class Told(uniforms.Uniform):
        def __init__(self, bits):
            super().__init__(bits)
            self.given = next(left)

        def ball(self, digits):
            self._number, self._digits = self.given >> (20_000 - digits), digits
            return super().ball(digits)

    return Told


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_draw_is_what_a_general_solver_makes_of_the_same_normal_numbers(power, dimension, monkeypatch):
    """In 2000 digits: (θ - θ̂)'H^p(θ - θ̂) is σ²|z|², and H^{p/2}(θ - θ̂) is an orthogonal map of σz."""
    sums, noise = some_sums(dimension), RidgeNoise(Fraction(2, 3), Fraction(5, 7), power)
    numbers = [random.Random(seed).getrandbits(20_000) for seed in range(dimension + 1)]
    monkeypatch.setattr("kngjax.draws.noises.Uniform", told(numbers))
    grid = Grid((-300,) * dimension)
    cell = draw_ridge(sums, noise, grid, random.Random(0).getrandbits)
    monkeypatch.setattr("kngjax.draws.noises.Uniform", told(numbers))
    with ctx.workprec(2000):
        z = StandardNormalNoise(dimension, random.Random(0).getrandbits).balls(1500)
        eye = range(dimension)
        precision = arb_mat([[ball_of(sums.gram[i, j] + (noise.ridge if i == j else 0)) for j in eye] for i in eye])
        moment = arb_mat([[ball_of(number)] for number in sums.moment])
        apart = arb_mat([[ball_of(number)] for number in grid.exact_values(cell)]) - precision.solve(moment)
        metric = precision if power == 1 else precision * precision
        length = (apart.transpose() * metric * apart)[0, 0]
        expected = ball_of(noise.variance) * sum((one**2 for one in z), arb(0))
        assert abs(float(length / expected) - 1.0) < 1e-15
        if power == 2:
            made = precision * apart
            assert all(abs(float(made[i, 0] / z[i]) ** 2 / float(noise.variance) - 1.0) < 1e-12 for i in eye)


@pytest.mark.parametrize("far", [9, 40, 100])
def test_draws_are_right_far_in_the_tails(far, monkeypatch):
    """U = e^{-far²/2} and V = 0: the noise is so many deviations, to the grid's last digit."""
    sums, noise = some_sums(1), RidgeNoise(Fraction(1), Fraction(4), 1)
    with ctx.workprec(30_000):
        digits = int(((-(arb(far) ** 2) / 2).exp() * arb(2) ** 20_000).floor().unique_fmpz())
        expected = ball_of(sums.moment[0]) / ball_of(sums.gram[0, 0] + 1)
        expected += 2 * far / ball_of(sums.gram[0, 0] + 1).sqrt()
    monkeypatch.setattr("kngjax.draws.noises.Uniform", told([digits, 0]))
    (cell,) = draw_ridge(sums, noise, Grid((-50,)), random.Random(0).getrandbits)
    with ctx.workprec(200):
        assert abs(expected * arb(2) ** 50 - arb(cell)) < 0.5001


def test_normal_numbers_beyond_eight_deviations_have_the_probabilities_that_they_should():
    """With the first 47 digits of U all 0, which fixes |z| > 8.07: ½|z|² exceeds 47 log 2 by an exponential number."""
    generator, k, number, found = random.Random(9), 47, 3000, []

    def bits(asked):
        nonlocal fresh
        drawn = generator.getrandbits(asked)
        if fresh:
            fresh, drawn = False, drawn & ((1 << (asked - k)) - 1)
        return drawn

    for _ in range(number):
        fresh = True
        noise = StandardNormalNoise(2, bits)
        with ctx.workprec(300):
            found.append([float(ball) for ball in noise.balls(200)])
    pairs = np.array(found)
    halves = 0.5 * np.sum(pairs**2, axis=1) - k * math.log(2.0)
    assert_same_law(halves, scipy.stats.expon.cdf)
    # P(|z| > t)/2^-47 for each t beyond.
    for far in (8.1, 8.3):
        chance = float(arb(far / math.sqrt(2.0)).erfc() * arb(2) ** k)
        for axis in range(2):
            over = int(np.sum(np.abs(pairs[:, axis]) > far))
            assert scipy.stats.binomtest(over, number, chance).pvalue > 1e-6
            assert over > 20


def test_without_records_the_prior_is_drawn():
    empty = ExactSums(0, np.zeros((2, 2), object), np.zeros(2, object), 0)
    noise, bits, grid = RidgeNoise(Fraction(4), Fraction(9), 1), random.Random(4).getrandbits, Grid((-40, -40))
    found = np.array([grid.values(draw_ridge(empty, noise, grid, bits)) for _ in range(300)])
    assert_gamma(0.5 * np.sum((found / 1.5) ** 2, axis=1), 1.0)
    for axis in range(2):
        assert_same_law(found[:, axis], scipy.stats.norm(0.0, 1.5).cdf)
