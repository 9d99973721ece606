"""What released sums may be without their noise: laws in closed form, and how often their intervals hold the truth."""

import numpy as np
import pytest

from kngjax.inference import given_sums
from kngjax.inference.noise_of_sums import noise_of_deviations

HALF = 2.0


def sums_of(v):
    return np.array([len(v), v.sum(), (v**2 - 0.5 * HALF**2).sum()])


def test_without_noise_means_have_the_interval_of_a_normal_law():
    v = np.random.default_rng(0).uniform(-1.0, 2.0, 400)
    drawn = np.tile(sums_of(v), (20_000, 1))
    for of_population, width in ((True, 3.92 * v.std() / 20.0), (False, 0.0)):
        found = given_sums.means_given(drawn, HALF, np.random.default_rng(1), of_population)
        lower, upper = given_sums.ends_of_draws(found, 0.95)
        assert upper - lower == pytest.approx(width, rel=0.03, abs=1e-12)
        assert 0.5 * (lower + upper) == pytest.approx(v.mean(), abs=0.02 * width + 1e-12)


def test_of_fewer_than_two_records_a_mean_may_be_anything_within_the_bounds():
    drawn = np.tile([1.0, 0.3, 0.1], (100, 1))
    found = given_sums.means_given(drawn, HALF, np.random.default_rng(0), True)
    assert given_sums.ends_of_draws(found, 0.95) == (-HALF, HALF)
    wild = np.random.default_rng(0).normal(0.0, 1e6, (100, 3))
    assert np.all(np.abs(given_sums.means_given(wild, HALF, np.random.default_rng(0), True)) <= HALF)


def test_noise_of_boxes_has_the_deviations_that_it_is_asked_for():
    asked = np.array([1.0, 20.0, 0.3])
    drawn = noise_of_deviations(asked, np.random.default_rng(0), 40_000)
    np.testing.assert_allclose(drawn.std(axis=0), asked, rtol=0.03)
    # One radius: large numbers come together.
    assert np.corrcoef(np.abs(drawn[:, 0]), np.abs(drawn[:, 1]))[0, 1] > 0.1


def test_counts_have_geometric_noise_and_errors_of_a_poisson_or_of_a_multinomial_law():
    released, random = np.array([400.0, 100.0, 0.0]), np.random.default_rng(0)
    drawn = given_sums.counts_given(released, 0.5, random)
    assert drawn.min() >= 0.0
    np.testing.assert_allclose(drawn[:, :2].mean(axis=0), released[:2], atol=0.15)
    np.testing.assert_allclose(drawn[:, :2].var(axis=0), 1.0 / (2.0 * np.sinh(0.25) ** 2), rtol=0.08)
    fixed = np.tile([300.0, 100.0], (40_000, 1))
    poisson = given_sums.expected_counts_given(fixed, random, False)
    np.testing.assert_allclose(np.cov(poisson.T), np.diag([301.0, 101.0]), atol=8.0)
    multinomial = given_sums.expected_counts_given(fixed, random, True)
    np.testing.assert_allclose(multinomial.sum(axis=1), 400.0)
    np.testing.assert_allclose(multinomial.var(axis=0), 75.0, rtol=0.03)
    shares = given_sums.shares_given(np.tile([[[30.0, 70.0], [0.0, 0.0]]], (10_000, 1, 1)), random, True)
    assert shares[:, 0, 0].std() == pytest.approx(np.sqrt(0.3 * 0.7 / 100), rel=0.05)
    assert np.all((shares >= 0.0) & (shares <= 1.0))


@pytest.mark.parametrize(("count", "epsilon"), [(150, 0.3), (500, 1.0)])
def test_intervals_of_means_of_private_numbers_have_their_level_and_with_half_the_noise_they_have_not(count, epsilon):
    """By the law of the mechanism over 600 tables: errors of the shares are .009, and of .02 at half the noise."""
    random, held = np.random.default_rng(7), {1.0: 0, 0.5: 0}
    deviations = np.sqrt(20.0 / 3.0) / epsilon * np.array([1.0, HALF, 0.5 * HALF**2])
    for _ in range(600):
        v = np.clip(random.exponential(0.4, count), 0.0, 2.0 * HALF) - HALF
        released = sums_of(v) + noise_of_deviations(deviations, random, 1)[0]
        again = np.random.default_rng(0)
        for scale in held:
            sums = released - scale * noise_of_deviations(deviations, again, 500)
            lower, upper = given_sums.ends_of_draws(given_sums.means_given(sums, HALF, again, True), 0.95)
            held[scale] += lower <= 0.4 - HALF <= upper
    assert 0.95 - 0.03 < held[1.0] / 600 <= 0.99
    assert held[0.5] / 600 < 0.9
