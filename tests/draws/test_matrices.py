"""Noise on matrices, rounded to a grid: the laws of its entries, of their sums and of what they are made of."""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy import stats

from kngjax.draws import grid_cells
from kngjax.draws.noisy_matrices import NoisyByWishart, NoisyNumbers, NoisyTriangle, _BartlettFactor
from kngjax.geometry.scaled_norms import ScaledNorm
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_gamma, assert_same_law

MATRIX = np.array([[Fraction(10, 3), Fraction(-1, 7)], [Fraction(-1, 7), Fraction(1, 9)]], object)
COUNT = 300
LOCATIONS = np.array(MATRIX, float)


def drawn(noisy, matrix=MATRIX, count=COUNT, seed=0):
    bits = random.Random(seed).getrandbits
    return np.array([noisy.draw(matrix, bits) for _ in range(count)])


def nearly(noisy):
    assert noisy is not None
    return noisy


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_entries_of_a_triangle_have_their_laws(kind):
    """Off the diagonal Gaussian noise has half the variance, Laplace noise the same scale; none is another's."""
    found = drawn(nearly(NoisyTriangle.of(kind, Fraction(9, 4), 2)))
    np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
    law, off = (stats.norm, 1.5 / np.sqrt(2.0)) if kind == "gaussian" else (stats.laplace, 1.5)
    entries = []
    for (row, column), scale in {(0, 0): 1.5, (1, 1): 1.5, (0, 1): off}.items():
        entries.append(law.cdf(found[:, row, column], LOCATIONS[row, column], scale))
        assert_same_law(entries[-1], stats.uniform.cdf)
        apart = np.abs(found[:, row, column] - LOCATIONS[row, column]) / scale
        assert_gamma(*((apart**2 / 2.0, 0.5) if kind == "gaussian" else (apart, 1.0)))
    correlations = np.corrcoef(entries) - np.eye(3)
    assert np.max(np.abs(correlations)) < 6.0 / np.sqrt(COUNT)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_cells_of_a_triangle_have_their_probabilities(kind, monkeypatch):
    """On a grid as coarse as the noise: rounded once, to the nearest."""
    monkeypatch.setattr(grid_cells, "_DIGITS", 0)
    noisy = nearly(NoisyTriangle.of(kind, Fraction(9, 4), 2))
    found, law = drawn(noisy), (stats.norm if kind == "gaussian" else stats.laplace)
    for place, exponent, scale in (((0, 0), noisy.exponents[0], 1.5), ((0, 1), noisy.exponents[1], None)):
        scale = scale or (1.5 / np.sqrt(2.0) if kind == "gaussian" else 1.5)
        unit = 2.0**exponent
        numbers = np.arange(-12, 13)
        counts = np.array([np.sum(found[:, *place] == number * unit) for number in numbers])
        edges = (np.append(numbers, numbers[-1] + 1) - 0.5) * unit
        chances = np.diff(law.cdf(edges, LOCATIONS[place], scale))
        assert_cell_frequencies(np.append(counts, COUNT - counts.sum()), np.append(chances, 1.0 - chances.sum()))


@pytest.mark.parametrize("degrees", [5, 6])
def test_wishart_noise_has_its_law(degrees):
    """v'Wv/s and 1/(s v'W^{-1}v) are chi-square numbers of k and k - d + 1 degrees; so is the trace, of kd degrees."""
    found = drawn(nearly(NoisyByWishart.of(2, degrees, Fraction(3, 2))))
    np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
    noise = (found - LOCATIONS) / 1.5 + degrees * np.eye(2)
    assert_gamma(0.5 * np.trace(noise, axis1=1, axis2=2), degrees)
    for angle in (0.0, 1.0, 2.3):
        direction = np.array([np.cos(angle), np.sin(angle)])
        assert_gamma(0.5 * np.einsum("i,nij,j->n", direction, noise, direction), degrees / 2)
        inverse = 1.0 / np.einsum("i,nij,j->n", direction, np.linalg.inv(noise), direction)
        assert_gamma(0.5 * inverse, (degrees - 1) / 2)


def test_a_wishart_matrix_of_three_columns():
    """1/(s e_j'W^{-1}e_j) and det W/s³, which is a product of chi-square numbers of 7, 6 and 5 degrees."""
    found = drawn(nearly(NoisyByWishart.of(3, 7, Fraction(1))), np.zeros((3, 3), object))
    noise = found + 7 * np.eye(3)
    for place in range(3):
        assert_gamma(0.5 / np.linalg.inv(noise)[:, place, place], 2.5)
        assert_gamma(0.5 * noise[:, place, place], 3.5)
    expected = np.prod(np.random.default_rng(0).chisquare([7, 6, 5], (100_000, 3)), axis=1)
    assert stats.ks_2samp(np.linalg.det(noise), expected).pvalue > 1e-6


def test_a_factor_is_the_same_draw_with_more_digits():
    factor = _BartlettFactor(3, 1004, random.Random(1).getrandbits)
    found = []
    for digits in (64, 256):
        with ctx.workprec(digits + 64):
            found.append([entry for row in factor.balls(digits) for entry in row])
    assert all(one.overlaps(other) for one, other in zip(*found, strict=True))
    assert all(float(other.rad()) < 1e-50 for other in found[1])


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_number_has_nothing_above_the_diagonal(kind):
    noisy = nearly(NoisyTriangle.of(kind, Fraction(1), 1))
    assert len(noisy.exponents) == 1
    assert drawn(noisy, np.zeros((1, 1), object), 3).shape == (3, 1, 1)


def test_noise_beyond_float64_has_no_grid():
    for size in (Fraction(2) ** 2100, Fraction(2) ** -2100, Fraction(0)):
        assert NoisyNumbers.of("gaussian", size, 2) is None
        assert NoisyTriangle.of("laplace", size, 2) is None
        assert NoisyByWishart.of(2, 5, size) is None


def test_noise_is_what_was_asked_for():
    noisy = nearly(NoisyNumbers.of("gaussian", Fraction(9, 4), 2))
    assert noisy.noise == ScaledNorm("normal", (Fraction(1),) * 2, Fraction(9, 4))
    assert nearly(NoisyNumbers.of("laplace", Fraction(9, 4), 2)).noise.kind == "sum"
