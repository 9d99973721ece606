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


@pytest.mark.parametrize(("scale", "spread"), [(1.0, 0.1), (1.0, 1.0), (1.0, 30.0), (50.0, 1.0)])
def test_tails_of_laplace_and_normal_errors_are_those_of_a_sum_over_the_first(scale, spread):
    grid = (np.arange(200_000) + 0.5) / 200_000
    laplace = scipy.stats.laplace.ppf(grid) * scale
    for t in (-2.0 * spread, 0.0, spread, 4.0 * scale):
        expected = np.mean(scipy.stats.norm.sf((t - laplace) / spread))
        np.testing.assert_allclose(intervals._of_both(t, scale, spread), expected, rtol=2e-3, atol=1e-5)


def test_both_ways_to_a_tail_agree_where_one_ends(monkeypatch):
    expected = [intervals.count_of_population(1e5, rate, 0.95, n) for rate in (1e-3, 1.0) for n in (None, 10**6)]
    monkeypatch.setattr(intervals, "_NORMAL", 1e3)
    found = [intervals.count_of_population(1e5, rate, 0.95, n) for rate in (1e-3, 1.0) for n in (None, 10**6)]
    np.testing.assert_allclose(found, expected, rtol=3e-5)


@pytest.mark.parametrize("count", [0.0, 5.0, 40.0])
def test_of_huge_tables_a_small_count_has_the_interval_of_a_poisson_law(count):
    np.testing.assert_allclose(
        intervals.count_of_population(count, 1.0, 0.95, 10**10),
        intervals.count_of_population(count, 1.0, 0.95),
        1e-6,
        1e-9,
    )


@pytest.mark.parametrize(
    ("n", "epsilon", "mean"),
    [(60, 0.3, 0.3), (60, 3.0, 0.3), (2000, 0.1, 0.003), (2000, 3.0, 0.3)]
    + [(1000, epsilon, times / 1000) for epsilon in (8.0, 60.0) for times in (1.0, 2.0, 3.7, 10.0)],
)
def test_intervals_of_a_proportion_hold_it_in_its_population(n, epsilon, mean):
    """Of two values, as far apart as bounds allow, no variance is larger: their intervals are the tightest."""
    generator, scale = np.random.default_rng(0), 1.0 / (n * epsilon)
    deviation = np.sqrt(2.0) * scale
    far = 6.0 * np.sqrt(mean * (1.0 - mean) / n) + 8.0 * scale

    def end(outside):
        """Finds the last release between the mean and this one whose interval has the mean."""
        inside = mean
        for _ in range(50):
            middle = 0.5 * (inside + outside)
            lower, upper = intervals.mean_of_population(middle, deviation, (0.0, 1.0), n, 0.95)
            inside, outside = (middle, outside) if lower <= mean <= upper else (inside, middle)
        return inside

    first, last = end(mean - far), end(mean + far)
    draws = generator.binomial(n, mean, 10**5) / n + generator.laplace(0.0, scale, 10**5)
    assert 0.945 <= np.mean((first <= draws) & (draws <= last)) <= (0.965 if n * mean > 5 else 0.999)
    own = intervals.margin_of_sum(deviation, 0.95)
    np.testing.assert_allclose(np.mean(np.abs(generator.laplace(0.0, scale, 10**5)) > own), 0.05, atol=0.003)


def test_shares_without_noise_are_those_of_wilson():
    """With next to no noise the interval of a share inverts the score test, whose ends are in closed form."""
    for cell, others in ((7.0, 23.0), (0.0, 40.0), (500.0, 500.0)):
        n, share, z = cell + others, cell / (cell + others), scipy.stats.norm.ppf(0.975)
        middle, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        expected = (np.array([middle - half, middle + half])) / (1 + z**2 / n)
        found = intervals.share_of_row(cell, others, 1, 50.0, 0.95, True)
        np.testing.assert_allclose(found, np.clip(expected, 0.0, 1.0), atol=3e-6)
        np.testing.assert_allclose(intervals.share_of_row(cell, others, 1, 50.0, 0.95, False), share, atol=3e-6)


@pytest.mark.parametrize(
    ("cell", "others", "number", "rate"), [(20.0, 80.0, 1, 0.3), (12.0, 90.0, 3, 0.5), (150.0, 150.0, 1, 0.1)]
)
@pytest.mark.parametrize("of_population", [True, False])
def test_ends_of_shares_are_where_a_tail_is_half_the_risk(cell, others, number, rate, of_population):
    """Tails are summed over both laws of the noises; at half of that noise they are far from half the risk."""
    places, masses = noise(rate)
    near = np.abs(places) <= 40.0 / rate
    places, masses = places[near], masses[near]
    rest = masses
    for _ in range(number - 1):
        rest = np.convolve(rest, masses, mode="same")
    for side, end in zip(
        (1.0, -1.0), intervals.share_of_row(cell, others, number, rate, 0.95, of_population), strict=True
    ):
        found, spread = (1 - end) * cell - end * others, np.sqrt((cell + others) * end * (1 - end))
        tails = []
        for scale in (1.0, 0.5):
            drawn = scale * ((1 - end) * places[:, None] - end * places[None])
            weights = masses[:, None] * rest[None]
            if of_population:
                tail = np.sum(weights * scipy.stats.norm.sf(side * (found - drawn) / spread))
            else:
                tail = np.sum(weights * (side * (drawn - found) >= 0))
            tails.append(tail)
        # Of 5,000 draws a tail of .025 has the error .0022.
        assert tails[0] == pytest.approx(0.025, abs=0.007)
        assert tails[1] < 0.02


def test_shares_of_little_but_noise_are_anything():
    assert intervals.share_of_row(1.0, -2.0, 1, 0.05, 0.95, True) == (0.0, 1.0)
    lower, upper = intervals.share_of_row(-500.0, 20.0, 1, 1.0, 0.95, True)
    assert 0.0 <= lower <= upper <= 1.0
