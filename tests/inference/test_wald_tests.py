"""Wald tests by draws: of a normal law those by chi-squared, levels that hold for any law, refusals in words."""

import numpy as np
import pytest
import scipy.stats

from kngjax.inference.wald_tests import WaldTest
from tests.words import words_of

ROOT = np.array([[1.0, 0.0, 0.0], [0.6, 0.5, 0.0], [-0.4, 0.2, 2.0]])
PULL = np.array([0.5, -1.0, 3.0])
PAIR = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 1.0]])


def normal(generator, count):
    return PULL + generator.standard_normal((count, 3)) @ ROOT.T


def heavy(generator, count):
    """Errors with a common scale, as where H is little known, about a pull that grows with it."""
    return generator.lognormal(0.0, 0.7, (count, 1)) * normal(generator, count)


def test_of_normal_errors_it_is_the_test_by_chi_squared():
    off = np.array([1.5, -0.5, 0.0])
    errors, theta = normal(np.random.default_rng(0), 20_000), PULL + off
    found = WaldTest.of(PAIR, theta, errors)
    found_off, covariance = PAIR @ (theta - errors.mean(axis=0)), PAIR @ np.cov(errors.T) @ PAIR.T
    assert found.statistic == pytest.approx(found_off @ np.linalg.solve(covariance, found_off), rel=1e-9)
    whole = PAIR @ off
    exact = scipy.stats.chi2.sf(whole @ np.linalg.solve(PAIR @ ROOT @ ROOT.T @ PAIR.T, whole), 2)
    assert 0.05 < exact < 0.95
    # The centre and the covariance are of the same draws: a hundredth each.
    assert found.pvalue == pytest.approx(exact, abs=4.0 * found.pvalue_error + 0.01)
    assert (found.df_num, found.draws) == (2, 20_000)
    assert found.pvalue_error == pytest.approx(np.sqrt(exact * (1.0 - exact) / 20_000), rel=0.1)


def test_it_is_of_what_is_tested_and_not_of_how_it_is_written():
    generator = np.random.default_rng(1)
    errors, theta = heavy(generator, 3000), np.array([2.0, 0.0, 1.0])
    one, other = (WaldTest.of(rows, theta, errors) for rows in (PAIR, [[1e6, 0.0], [1.0, 1e-5]] @ PAIR))
    assert other.statistic == pytest.approx(one.statistic, rel=1e-6)
    assert other.pvalue == one.pvalue


def pvalues(errors, estimates):
    return np.array([WaldTest.of(PAIR, theta, errors).pvalue for theta in estimates])


@pytest.mark.parametrize("law", [normal, heavy])
def test_under_what_is_tested_p_values_are_uniform_whatever_the_law_of_the_errors(law):
    """Of 600 estimates, by 4,000 draws: shares of both scatter. By draws of half the errors p-values are too small."""
    generator = np.random.default_rng(2)
    errors, estimates = law(generator, 4000), law(generator, 600)
    centre = errors.mean(axis=0)
    whole, halved = pvalues(errors, estimates), pvalues(centre + 0.5 * (errors - centre), estimates)
    for level in (0.02, 0.1, 0.5):
        error = np.sqrt(level * (1.0 - level) * (1.0 / 600 + 1.0 / 4000))
        assert np.mean(whole <= level) == pytest.approx(level, abs=4.0 * error)
        assert np.mean(halved <= level) > level + 5.0 * error


def test_far_from_it_the_p_value_is_the_least_that_the_draws_can_tell():
    errors = normal(np.random.default_rng(3), 999)
    found = WaldTest.of(PAIR, np.array([90.0, 0.0, 0.0]), errors, ("a - c", "2 b + c"))
    assert found.pvalue == 1.0 / 1000.0
    assert found.summary().title == "Wald test that a - c, 2 b + c are all 0"
    assert "p-value: +- 0.001 by 999 draws of the errors' joint law, the least that these can tell" in words_of(found)


@pytest.mark.parametrize("rows", [[[1.0, 0.0, 1.0], [2.0, 0.0, 2.0]], [[0.0, 0.0, 0.0]], np.zeros((0, 3))])
def test_sums_that_follow_from_others_are_refused(rows):
    with pytest.raises(ValueError, match="some combinations are sums of others, or zero"):
        WaldTest.of(np.array(rows), PULL, normal(np.random.default_rng(4), 50))
