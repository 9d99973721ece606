"""Profiles never fall below the exact log δ, and exceed it by no more than they say: against ball arithmetic."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from kngjax.mechanisms.noise import gaussian_profiles, objective_profiles
from kngjax.mechanisms.noise.mills_ratio import mills, mills_slope
from tests.oracles import exact_hockey_stick as oracle
from tests.oracles.exact_hockey_stick import exact

# Default runs take few cases and those that were worst; slow ones take thousands.
SIZES = [40, pytest.param(3000, marks=pytest.mark.slow)]
PROGRAMS = {
    "gaussian": jax.jit(gaussian_profiles.gaussian_log_delta),
    "posterior": jax.jit(gaussian_profiles.posterior_sample_log_delta),
    "objective": jax.jit(objective_profiles.objective_log_delta),
}
# What was once below the exact value, or far above it: (ε, s), (ε, μ, r, γ), (ε, μ, r, |x|, |H⁻¹x|, σ).
WORST = {
    "gaussian": [
        (0.0, 1e-14),
        (1e-12, 8e-14),
        (1e-6, 2.7e-8),
        (1e-12, 1e-12 / 21.0),
        (0.00485797, 0.000245452),
        (2.66e-6 * 37.6, 2.66e-6),
        # Here XLA's erfcx is 0.
        (37.6 * 0.5 + 0.125, 0.5),
        (500.0, 30.0),
    ],
    "posterior": [
        (0.0, 1.96049e-14, 4.93371e-06, 2.53306e-05),
        (0.0, 1.70542e-14, 0.0, 65.6077),
        (1e-7, 1e-8, 1.0, 1.0),
        (1e-9, 1e-12, 1e-2, 1.0),
        (0.3, 0.3, 0.0, 1.0),
        (3.0, 1e-3, 10.0, 100.0),
        (20.0, 1e4, 1e-2, 1e-2),
    ],
    "objective": [
        (0.513, 0.11184 * 878.25, -2.984, 0.11184, 878.25, 2.7846),
        (0.513, 105.0, 2.5, 0.1, 1050.0, 2.0),
        (66.0158, 0.00789151, 0.0035206, 61.83, 0.000127632, 0.045087),
        (0.219072, 0.00154445, 0.0734607, 5.84858, 0.000264072, 27.4994),
        (2.0, 1e6, 3.0, 1e2, 1e4, 1.0),
        (0.0, 1e-6, 1.0, 1.0, 1e-6, 1.0),
    ],
}


def drawn(kind, size, seed=0):
    """Cases over many orders of magnitude, one a row."""
    random = np.random.default_rng(seed)

    def logarithmic(least, most):
        return 10.0 ** random.uniform(least, most, size)

    coins = random.uniform(size=(3, size)) < 0.5
    if kind == "gaussian":
        shift = logarithmic(-14.0, 3.0)
        return np.stack([coins[0] * shift * logarithmic(-3.0, 1.6) + coins[1] * np.square(shift) / 2.0, shift], axis=1)
    if kind == "posterior":
        mu, residual, gamma = logarithmic(-14.0, 6.0), logarithmic(-6.0, 6.0) * coins[2], logarithmic(-6.0, 3.0)
        shift = residual * np.sqrt(gamma * mu)
        epsilon = coins[0] * (shift + mu) * logarithmic(-3.0, 1.5) + coins[1] * np.square(shift) / 2.0
        return np.stack([epsilon, mu, residual, gamma], axis=1)
    mu, length, deviation = logarithmic(-6.0, 10.0), logarithmic(-2.0, 2.0), logarithmic(-2.0, 2.0)
    shift = logarithmic(-4.0, 3.0) * coins[2]
    around = coins[1] * np.square(shift / (1.0 + mu)) / 2.0
    epsilon = coins[0] * logarithmic(-3.0, 2.0) * np.minimum(1.0, (shift + mu) / (1.0 + mu)) + around
    spread = mu / length
    return np.stack([epsilon, length * spread, shift * deviation / length, length, spread, deviation], axis=1)


def enclosed(kind, case):
    """Floats below and above log δ. With noise in the objective: on a line, where μ = |x||H⁻¹x|."""
    epsilon, *numbers = map(float, case)
    if kind == "gaussian":
        return oracle.log_delta(epsilon, lambda: exact(numbers[0]), lambda: exact(1))
    if kind == "posterior":
        mu, residual, gamma = numbers
        return oracle.log_delta(
            epsilon,
            lambda: abs(exact(residual)) * (exact(gamma) * exact(mu)).sqrt() / (1 + exact(mu)),
            lambda: 1 / (1 + exact(mu)).sqrt(),
        )
    _, residual, length, spread, deviation = numbers

    def grown():
        return 1 + exact(length) * exact(spread)

    return oracle.log_delta(
        epsilon, lambda: exact(length) * abs(exact(residual)) / (exact(deviation) * grown()), lambda: 1 / grown()
    )


def excess(kind, found, exact_value, case):
    """By how much more than it says a profile is above the exact log δ; 0 or less where it keeps its word."""
    if kind == "gaussian":
        return found - exact_value - 1e-8 * (1.0 + abs(exact_value) / 1e3)
    if kind == "objective":
        return found - np.logaddexp(exact_value, np.log(4e-33)) - 1e-4
    # δ is a part of the probability beyond the nearest root, which is at most e^{-t²/2}.
    return np.exp(found) - np.exp(exact_value) * (1.0 + 1e-9) - 1e-12


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", sorted(PROGRAMS))
def test_no_profile_falls_below_the_exact_one(kind, size):
    cases = np.concatenate([np.array(WORST[kind]), drawn(kind, size)])
    found = np.concatenate([np.asarray(PROGRAMS[kind](*part.T)) for part in np.array_split(cases, 1 + size // 400)])
    ends = np.array([enclosed(kind, case) for case in cases])
    assert np.count_nonzero(ends[:, 0] > -600.0) > 0.5 * size
    tells = "\n".join(map(str, cases[found < ends[:, 0]][:5]))
    # 2Φ(-12) is added by the quadrature, so that nothing is said below.
    assert np.all(found >= ends[:, 0]), tells
    over = [excess(kind, *numbers) for numbers in zip(found, ends[:, 1], cases, strict=True)]
    assert np.nanmax(over) <= 0.0, cases[np.nanargmax(over)]


@pytest.mark.slow
def test_the_ratio_of_mills_everywhere():
    """XLA's erfcx is 0 for some arguments between 26.5 and 26.7, as if there were no tail."""
    places = np.concatenate(
        [np.linspace(37.4, 37.8, 200), np.linspace(-5.0, 45.0, 101), 10.0 ** np.linspace(-8, 8, 33)]
    )
    with oracle.precision(3000):
        balls = [oracle.mills(exact(place)) for place in places if place < 100.0]
        slopes = [1 - exact(place) * ball for place, ball in zip(places, balls, strict=False)]
        expected = np.array([[float(ball), float(slope)] for ball, slope in zip(balls, slopes, strict=True)])
    near = places[places < 100.0]
    np.testing.assert_allclose(mills(near), expected[:, 0], rtol=3e-15)
    found = np.asarray(mills_slope(near))
    assert np.all(found >= expected[:, 1])
    np.testing.assert_allclose(found, expected[:, 1], rtol=1e-11)
    far = places[places > 1e3]
    np.testing.assert_allclose(mills(far), (1.0 - far**-2.0) / far, rtol=1e-11)


def test_the_oracle_itself():
    """By another formula: δ = Φ(s/2 - ε/s) - e^ε Φ(-s/2 - ε/s), and quadrature for two deviations."""
    low, high = oracle.log_delta(0.7, lambda: exact(1.3), lambda: exact(1))
    by_hand = stats.norm.cdf(0.65 - 0.7 / 1.3) - np.exp(0.7) * stats.norm.cdf(-0.65 - 0.7 / 1.3)
    assert low <= high
    np.testing.assert_allclose(np.exp(high), by_hand, rtol=1e-13)
    first, second = stats.norm(0.0, 1.0), stats.norm(0.4, 0.6)
    grid = np.linspace(-12.0, 12.0, 400_001)
    deltas = [
        integrate.trapezoid(np.maximum(one.pdf(grid) - np.exp(0.2) * other.pdf(grid), 0.0), grid)
        for one, other in ((first, second), (second, first))
    ]
    _, high = oracle.log_delta(0.2, lambda: exact(0.4), lambda: exact(0.6))
    np.testing.assert_allclose(np.exp(high), max(deltas), rtol=1e-7)
