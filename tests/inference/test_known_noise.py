"""Intervals have their level, by sums over all that the noise and the records can be."""

import numpy as np
import pytest
import scipy.stats

from kngjax.inference import known_noise as intervals


def noise(rate):
    places = np.arange(-2000, 2001)
    masses = np.exp(-rate * np.abs(places))
    return places, masses / masses.sum()


@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0, 3.0, 60.0])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_margin_is_the_least_with_its_level(rate, level):
    places, masses = noise(rate)
    found = intervals.margin_of_count(rate, level)
    assert masses[np.abs(places) <= found].sum() >= level - 1e-9
    assert found == 0 or masses[np.abs(places) < found].sum() < level


@pytest.mark.parametrize(("n", "rate"), [(40, 1.0), (40, 0.2), (None, 0.5), (None, 5.0)])
@pytest.mark.parametrize("mean", [0.0, 0.7, 6.0, 25.0, 39.9])
def test_both_ends_are_where_a_test_of_half_the_risk_begins_to_reject(mean, n, rate):
    places, masses = noise(rate)
    x = np.arange(201)
    law = scipy.stats.poisson(mean) if n is None else scipy.stats.binom(n, mean / n)
    of_sum = np.convolve(law.pmf(x), masses)
    counts = np.arange(len(of_sum)) + places[0]
    covered = 0.0
    for count in range(-30, 121):
        mass = of_sum[counts == count].sum()
        if mass > 1e-7:
            lower, upper = intervals.count_of_population(float(count), rate, 0.9, n)
            assert 0.0 <= lower <= upper
            holds = of_sum[counts >= count].sum() >= 0.05 and of_sum[counts <= count].sum() >= 0.05
            at_an_end = min(abs(lower - mean), abs(upper - mean)) < 1e-6
            assert at_an_end or (lower <= mean <= upper) is bool(holds)
            covered += mass * holds
    assert covered >= 0.9 - 1e-5
    assert covered < 0.999 or mean == 0.0


def test_large_counts_have_the_ends_of_a_normal_law():
    for n in (None, 10**8):
        lower, upper = intervals.count_of_population(1e6, 1e-2, 0.95, n)
        variance = 1e6 * (1.0 if n is None else 0.99) + 2.0 / 1e-2**2
        np.testing.assert_allclose(upper - lower, 2 * 1.96 * np.sqrt(variance), rtol=0.01)
        np.testing.assert_allclose(0.5 * (lower + upper), 1e6, atol=10.0)


@pytest.mark.parametrize(
    ("scale", "spread"), [(1.0, 0.0), (1.0, 0.1), (1.0, 1.0), (1.0, 30.0), (1e-6, 2.0), (50.0, 1.0)]
)
def test_a_margin_of_laplace_and_normal_errors_has_its_risk(scale, spread):
    margin = intervals._quantile_of_both(scale, spread, 0.05)
    grid = (np.arange(200_000) + 0.5) / 200_000
    laplace = scipy.stats.laplace.ppf(grid) * scale
    beyond = scipy.stats.norm.sf((margin - laplace) / spread) if spread else laplace > margin
    np.testing.assert_allclose(2.0 * np.mean(beyond), 0.05, rtol=2e-3)


@pytest.mark.parametrize(("n", "epsilon"), [(60, 0.3), (60, 3.0), (2000, 0.1), (2000, 3.0)])
@pytest.mark.parametrize("mean", [0.003, 0.3])
def test_intervals_of_a_proportion_hold_it_in_its_population(n, epsilon, mean):
    """Of two values, as far apart as bounds allow, no variance is larger: their intervals are the tightest."""
    generator, turns, deviation = np.random.default_rng(0), 4000, np.sqrt(2.0) / (n * epsilon)
    means = generator.binomial(n, mean, turns) / n + generator.laplace(0.0, deviation / np.sqrt(2.0), turns)
    found = np.array([intervals.mean_of_population(one, deviation, (0.0, 1.0), n, 0.95) for one in means.tolist()])
    covered = np.mean((found[:, 0] <= mean) & (mean <= found[:, 1]))
    assert covered >= 0.94
    assert covered <= 0.975 or mean * n * epsilon < 20
    own = intervals.margin_of_sum(deviation, 0.95)
    np.testing.assert_allclose(
        np.mean(np.abs(generator.laplace(0.0, deviation / np.sqrt(2), 10**5)) > own), 0.05, atol=0.003
    )
