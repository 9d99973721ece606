"""The statistical checks themselves: they pass what is right and fail what is a little wrong."""

import numpy as np
import pytest
from scipy import stats

from tests.oracles.goodness_of_fit import (
    FAILURE_RATE,
    assert_cell_frequencies,
    assert_gamma,
    assert_mean_within,
    assert_same_law,
    assert_two_samples_agree,
)

NORMALS = np.random.default_rng(20190917).normal(size=20_000)
DIE = np.array([0.5, 0.25, 0.15, 0.0999, 0.0001, 0.0])


def test_the_right_law_passes_and_a_near_one_fails():
    assert_same_law(NORMALS, stats.norm.cdf)
    with pytest.raises(AssertionError, match="distribution function"):
        assert_same_law(1.06 * NORMALS + 0.03, stats.norm.cdf)


def test_half_or_double_the_scale_is_seen_in_three_hundred_draws():
    sizes = np.abs(NORMALS[:300])
    assert_gamma(0.5 * sizes**2, 0.5)
    for factor in (0.7, 1.4):
        with pytest.raises(AssertionError, match="distribution function"):
            assert_gamma(0.5 * (factor * sizes) ** 2, 0.5)
    cells = np.diff(stats.norm.cdf(np.append(np.arange(-12.5, 12.0) / 4.0, np.inf), loc=0.05))
    cells[0] += 1.0 - cells.sum()
    found = np.random.default_rng(1).normal(0.05, 1.0, 300)
    for factor in (1.0, 0.5, 2.0):
        counts = np.bincount(np.clip(np.floor(4.0 * factor * found + 0.5) + 12, 0, 24).astype(int), minlength=25)
        if factor == 1.0:
            assert_cell_frequencies(counts, cells)
        else:
            with pytest.raises(AssertionError, match="chi-square"):
                assert_cell_frequencies(counts, cells)


def test_equal_samples_pass_and_shifted_ones_fail():
    assert_two_samples_agree(NORMALS[::2], NORMALS[1::2])
    with pytest.raises(AssertionError, match="distribution functions"):
        assert_two_samples_agree(NORMALS[::2], NORMALS[1::2] + 0.1)


def test_means_within_their_standard_errors():
    sample = NORMALS.reshape(-1, 4)
    assert_mean_within(sample, np.zeros(4))
    assert_mean_within(NORMALS, 0.0, 1.0 / np.sqrt(NORMALS.size))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean_within(sample, np.array([0.0, 0.0, 0.1, 0.0]))


def test_cell_frequencies_pool_rare_cells():
    random = np.random.default_rng(2)
    assert_cell_frequencies(random.multinomial(20_000, DIE), DIE)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_cell_frequencies(random.multinomial(20_000, DIE[[1, 0, 2, 3, 4, 5]]), DIE)
    with pytest.raises(AssertionError, match="probability 0"):
        assert_cell_frequencies([5000, 2500, 1500, 999, 0, 1], DIE)
    with pytest.raises(AssertionError, match="too few"):
        assert_cell_frequencies([3, 3], [0.5, 0.5])


def test_no_check_fails_more_often_than_the_rate_says():
    random = np.random.default_rng(3)
    # At a rate where failures can be counted: p-values of right samples are not too often small.
    pvalues = [stats.kstest(random.uniform(size=200), "uniform").pvalue for _ in range(300)]
    assert stats.binomtest(int(np.sum(np.array(pvalues) < 0.01)), 300, 0.01, "greater").pvalue > FAILURE_RATE


@pytest.mark.parametrize("check", [assert_same_law, assert_two_samples_agree])
def test_draws_that_are_not_finite_fail(check):
    with pytest.raises(AssertionError, match="not finite"):
        check(np.array([0.1, np.nan, 0.3]), stats.norm.cdf if check is assert_same_law else NORMALS)
