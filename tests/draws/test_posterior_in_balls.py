"""What balls confirm of posterior samples and of noise in the objective: no less than what the worst records take."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb, ctx

from kngjax.accounting.guarantees import Guarantee
from kngjax.draws import posterior_in_balls
from kngjax.draws.posterior_in_balls import RidgeSettings, is_private, is_private_in_objective
from kngjax.mechanisms.noise.objective_profiles import objective_log_delta
from kngjax.sensitivity.moments_in_fractions import SquaredRadii
from tests.oracles import exact_hockey_stick as oracle

# X², Y², λ, γ, n and ε.
SETTINGS = [
    (Fraction(3, 2), Fraction(4), Fraction(40), Fraction(1, 50), 1000, Fraction(1)),
    (Fraction(2), Fraction(1), Fraction(5), Fraction(1, 2), 30, Fraction(3)),
    (Fraction(1), Fraction(1), Fraction(500), Fraction(4), 10**6, Fraction(1, 2)),
    (Fraction(1), Fraction(1), Fraction(3), Fraction(1), 0, Fraction(1, 2)),
    (Fraction(1), Fraction(9), Fraction(1, 4), Fraction(1, 1000), 12, Fraction(6)),
]


def settings_of(numbers) -> tuple[RidgeSettings, Fraction]:
    x, y, ridge, gamma, others, epsilon = numbers
    return RidgeSettings(SquaredRadii(x, y), ridge, gamma, others), epsilon


def neighbours(settings: RidgeSettings, share: float):
    """The mean and the deviation that one record adds to a line, in units of the noise without it.

    The others are (a, Y) with na² = λ(1-t)/t, and the record is (X, -Y).
    """
    x, y = (oracle.exact(square).sqrt() for square in settings.radii)
    ridge, count = oracle.exact(settings.ridge), settings.others
    total = ridge * (1 / oracle.exact(share) - 1) if count else arb(0)
    before = total + ridge
    estimate = (count * total).sqrt() * y / before
    after = before + x * x
    changed = ((count * total).sqrt() * y - x * y) / after
    return abs(changed - estimate) * (oracle.exact(settings.gamma) * before).sqrt(), (before / after).sqrt()


def log_delta_at(settings: RidgeSettings, epsilon: Fraction, share: float) -> float:
    return oracle.log_delta(epsilon, lambda: neighbours(settings, share)[0], lambda: neighbours(settings, share)[1])[1]


def worst_delta(settings: RidgeSettings, epsilon: Fraction) -> float:
    """log δ of the worst of such neighbours, by a search over how the others lie."""
    if not settings.others:
        return log_delta_at(settings, epsilon, 1.0)
    shares = np.linspace(1e-3, 1.0, 60)
    values = [log_delta_at(settings, epsilon, float(share)) for share in shares]
    best = int(np.argmax(values))
    low, high = shares[max(best - 1, 0)], shares[min(best + 1, 59)]
    for _ in range(40):
        one, two = low + (high - low) / 3.0, high - (high - low) / 3.0
        if log_delta_at(settings, epsilon, one) < log_delta_at(settings, epsilon, two):
            low = one
        else:
            high = two
    return log_delta_at(settings, epsilon, 0.5 * (low + high))


@pytest.mark.parametrize("numbers", SETTINGS)
def test_worst_neighbours_have_the_least_delta_that_is_confirmed(numbers):
    """Data sets on a line whose laws are compared by another program: δ is theirs, up to a part in 10⁶."""
    settings, epsilon = settings_of(numbers)
    delta = math.exp(worst_delta(settings, epsilon))
    assert 1e-60 < delta < 0.5
    assert is_private(settings, Guarantee.approximate(epsilon, delta * (1.0 + 1e-6), "add_remove"))
    assert not is_private(settings, Guarantee.approximate(epsilon, delta * (1.0 - 1e-6), "add_remove"))


@pytest.mark.parametrize("numbers", SETTINGS[:2])
def test_exchanges_take_a_removal_and_an_addition(numbers):
    settings, epsilon = settings_of(numbers)
    delta = math.exp(worst_delta(settings, epsilon)) * (1.0 + math.exp(float(epsilon)))
    assert is_private(settings, Guarantee.approximate(2 * epsilon, delta * (1.0 + 1e-6), "replace"))
    assert not is_private(settings, Guarantee.approximate(2 * epsilon, delta * (1.0 - 1e-6), "replace"))


@pytest.mark.parametrize("numbers", SETTINGS)
@pytest.mark.parametrize("place", [0.01, 0.3, 0.5, 0.9])
def test_slopes_are_those_of_differences(numbers, place):
    settings, epsilon = settings_of(numbers)
    step = Fraction(1, 2**40)
    with ctx.workprec(400):
        level, middle = oracle.exact(epsilon) / 4, oracle.exact(place)

        def deltas(t):
            return posterior_in_balls._worst_record(settings, t).deltas(level)

        above, below = deltas(middle + oracle.exact(step)), deltas(middle - oracle.exact(step))
        slopes = posterior_in_balls._slopes(settings, middle, level)
        for up, down, slope, size in zip(above, below, slopes, deltas(middle), strict=True):
            rough = (up - down) / (2 * oracle.exact(step))
            assert abs(float(rough - slope)) <= 1e-9 * (abs(float(slope)) + float(size) / place)


@pytest.mark.parametrize("numbers", SETTINGS)
def test_cells_are_bounded_by_the_worst_of_their_points(numbers):
    settings, epsilon = settings_of(numbers)
    with ctx.workprec(300):
        level = oracle.exact(epsilon) / 2
        for low, high in ((0.0, 0.01), (0.2, 0.3), (0.3, 0.9), (0.6, 0.61), (0.9, 1.0)):
            bounds = posterior_in_balls._outermost(settings, arb(low), arb(high)).deltas(level)
            for point in np.linspace(low, high, 7)[1:].tolist():
                deltas = posterior_in_balls._worst_record(settings, arb(point)).deltas(level)
                assert all(not delta > bound for delta, bound in zip(deltas, bounds, strict=True))
                assert deltas[0] <= bounds[0] * (1 + arb(2) ** -100)


def test_slopes_of_a_cell_contain_those_of_its_points():
    settings, epsilon = settings_of(SETTINGS[0])
    with ctx.workprec(300):
        level = oracle.exact(epsilon)
        for low, high in ((0.1, 0.101), (0.45, 0.55), (0.7, 0.7001)):
            cell = posterior_in_balls._slopes(settings, arb(low).union(arb(high)), level)
            for point in np.linspace(low, high, 9).tolist():
                inside = posterior_in_balls._slopes(settings, arb(point), level)
                assert all(wide.contains(narrow) for wide, narrow in zip(cell, inside, strict=True))


def test_a_guarantee_that_is_missed_by_little_is_not_confirmed_for_want_of_cells(monkeypatch):
    settings, epsilon = settings_of(SETTINGS[0])
    guarantee = Guarantee.approximate(epsilon, math.exp(worst_delta(settings, epsilon)) * (1.0 + 1e-6), "add_remove")
    monkeypatch.setattr(posterior_in_balls, "_MOST_CELLS", 8)
    is_private.cache_clear()
    assert not is_private(settings, guarantee)
    is_private.cache_clear()


def objective_gamma(radii, ridge, others, epsilon, delta):
    """γ where log(1+κ) + w²/2 + wz = ε, by another program: bisection in float64."""
    from scipy.stats import norm

    x, y = math.sqrt(radii.features), math.sqrt(radii.response)
    kappa, tail = x**2 / float(ridge), -norm.ppf(delta / 4.0)
    residual = y * (1.0 + 0.5 * math.sqrt(others * kappa))
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if math.log1p(kappa) + middle**2 / 2 + middle * tail < epsilon else (low, middle)
    return ((low - kappa * tail) / (x * residual)) ** 2


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_noise_in_the_objective_is_confirmed_up_to_the_bound(adjacency):
    radii, ridge, others, epsilon, delta = SquaredRadii(Fraction(2), Fraction(3)), Fraction(300), 500, 0.8, 1e-6
    shares = (epsilon, delta) if adjacency == "add_remove" else (epsilon / 2, delta / (1.0 + math.exp(epsilon / 2)))
    gamma, guarantee = objective_gamma(radii, ridge, others, *shares), Guarantee.approximate(epsilon, delta, adjacency)
    for factor, expected in ((1.0 - 1e-10, True), (1.0 + 1e-10, False)):
        settings = RidgeSettings(radii, ridge, Fraction(gamma * factor), others)
        assert is_private_in_objective(settings, guarantee) is expected
    # No γ at all will do.
    small = RidgeSettings(radii, Fraction(1), Fraction(1, 10**9), others)
    assert not is_private_in_objective(small, guarantee)


def test_no_record_betrays_more_than_noise_in_the_objective_is_confirmed_for():
    """The exact profile, by quadrature, of records at random and of the worst direction."""
    generator, log_delta = np.random.default_rng(7), jax.jit(objective_log_delta)
    for _ in range(10):
        ridge, others, epsilon = float(10.0 ** generator.uniform(1.5, 3)), int(generator.integers(1, 1000)), 1.0
        gamma = objective_gamma(SquaredRadii(Fraction(1), Fraction(1)), Fraction(ridge), others, epsilon, 1e-4)
        settings = RidgeSettings(SquaredRadii(Fraction(1), Fraction(1)), Fraction(ridge), Fraction(gamma), others)
        if not is_private_in_objective(settings, Guarantee.approximate(epsilon, 1.001e-4, "add_remove")):
            continue
        leverages = np.linspace(0.05, 1.0, 20) / ridge
        residuals = 1.0 + np.sqrt(others * leverages * (1.0 - ridge * leverages))
        spreads = leverages + generator.uniform(size=20) * (np.sqrt(leverages / ridge) - leverages)
        found = log_delta(epsilon, leverages, residuals, 1.0, spreads, gamma**-0.5)
        assert np.all(np.asarray(found) < math.log(1e-4))
