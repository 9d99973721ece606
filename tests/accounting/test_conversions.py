"""Conversions never lose privacy: profiles of explicit mechanisms lie below what their guarantees convert to."""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from kngjax.accounting import Guarantee, conversions, zcdp_rho
from tests.accounting.guarantees_drawn import SIMPLE, hockey_stick, made

LOSS, FAR = st.floats(1e-8, 12.0), st.floats(0.0, 12.0)
FAILURE = st.floats(1e-12, 0.5)
# What outward rounding may add.
ROUNDING = 1.0 + 1e-10


@given(LOSS, FAR)
def test_pure_is_randomised_response(bound, epsilon):
    likely = 1.0 / (1.0 + math.exp(-bound))
    exact = max(0.0, likely - math.exp(epsilon) * math.exp(-bound) * likely)
    found = Guarantee.pure(bound, "replace").at(epsilon=epsilon)
    assert exact <= found * (1.0 + 1e-12) + 1e-15
    assert found <= exact * ROUNDING + 1e-15


@given(LOSS, FAR)
def test_laplace_noise_is_within_pure(bound, epsilon):
    exact = max(0.0, -math.expm1(0.5 * (epsilon - bound)))
    assert exact <= Guarantee.pure(bound, "replace").at(epsilon=epsilon) + 1e-15


@pytest.mark.parametrize("bound", [0.2, 1.0, 4.0])
def test_that_profile_of_laplace_noise_is_its_integral(bound):
    def excess(x):
        first, second = stats.laplace.pdf(x, 0.0, 1.0 / bound), stats.laplace.pdf(x, 1.0, 1.0 / bound)
        return max(0.0, first - math.exp(0.5 * bound) * second)

    found, _ = integrate.quad(excess, -40.0 / bound, 1.0, points=[0.0, 0.25], limit=200)
    assert found == pytest.approx(-math.expm1(-0.25 * bound), abs=1e-8)


@pytest.mark.slow
@given(st.floats(0.05, 6.0), st.floats(0.0, 8.0))
def test_gaussian_is_the_profile_of_gaussian_noise(mu, epsilon):
    cut = epsilon / mu + 0.5 * mu
    exact = stats.norm.sf(cut - mu) - math.exp(epsilon) * stats.norm.sf(cut)
    found = Guarantee.gaussian(mu, "replace").at(epsilon=epsilon)
    # A difference of tails loses digits, in the oracle too.
    lost = 1e-13 * (1.0 + cut**2) * stats.norm.sf(cut - mu) + 1e-290
    assert found == pytest.approx(exact, rel=1e-10, abs=lost)
    assert exact <= Guarantee.zcdp(mu**2 / 2.0, "replace").at(epsilon=epsilon) + lost


@pytest.mark.slow
@given(st.floats(0.05, 6.0), FAILURE)
def test_zcdp_costs_no_less_than_the_gaussian_noise_that_attains_it(mu, delta):
    exact = Guarantee.gaussian(mu, "replace").at(delta=delta)
    assert exact <= Guarantee.zcdp(mu**2 / 2.0, "replace").at(delta=delta)


def scores_and_change():
    numbers = st.lists(st.tuples(st.floats(-5.0, 5.0), st.floats(-1.0, 1.0)), min_size=2, max_size=8)
    return numbers.map(lambda pairs: np.array(pairs).T)


@pytest.mark.slow
@given(scores_and_change(), st.floats(0.05, 6.0), FAR)
def test_bounded_range_covers_exponential_mechanisms(numbers, bound, epsilon):
    scores, change = numbers
    first = np.exp(scores - np.max(scores))
    # c(s' - s) varies by at most ε.
    second = np.exp(scores + 0.5 * bound * change - np.max(scores))
    laws = first / np.sum(first), second / np.sum(second)
    guarantee = Guarantee.bounded_range(bound, "replace")
    delta = hockey_stick(*laws, epsilon)
    assert delta <= guarantee.at(epsilon=epsilon) + 1e-15
    assert delta <= Guarantee.zcdp(guarantee.rho, "replace").at(epsilon=epsilon) + 1e-15


@given(st.floats(0.05, 6.0), st.floats(0.0, 0.999))
def test_bounded_range_is_attained(bound, share):
    epsilon = share * bound
    top = 0.5 * (bound + epsilon)
    likely = -math.expm1(top - bound) / -math.expm1(-bound)
    laws = (likely, 1.0 - likely), (likely * math.exp(-top), 1.0 - likely * math.exp(-top))
    found = Guarantee.bounded_range(bound, "replace").at(epsilon=epsilon)
    assert found == pytest.approx(hockey_stick(*laws, epsilon), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("rho", "epsilon"), [(0.0625, 1.5), (0.5, 4.0), (3.0, 9.0), (0.01, 0.3)])
def test_zcdp_is_the_best_chernoff_bound(rho, epsilon):
    """δ = E(1 - e^{ε-L})_+ ≤ c e^{(α-1)(αρ-ε)}, with the least c for (1-e^{-z})_+ ≤ c e^{(α-1)z}: both by search."""

    def log_delta(log_excess):
        excess = math.exp(log_excess)
        z = np.linspace(1e-9, 40.0 / (1.0 + excess), 200_001)
        return np.max(np.log(-np.expm1(-z)) - excess * z) + excess * ((1.0 + excess) * rho - epsilon)

    found = optimize.minimize_scalar(log_delta, bounds=(-3.0, 7.0), method="bounded", options={"xatol": 1e-7})
    assert math.log(conversions.zcdp_delta(rho, epsilon)) == pytest.approx(found.fun, abs=1e-6)


@pytest.mark.slow
@given(st.floats(1e-6, 50.0), FAILURE)
@settings(max_examples=40)
def test_zcdp_rounds_outward_in_fifty_digits(rho, delta):
    found = conversions.zcdp_epsilon(rho, delta)
    with decimal.localcontext() as context:
        context.prec = 50

        def epsilon(excess):
            alpha = 1 + excess
            tail = ((1 / Decimal(delta)).ln() - alpha.ln()) / excess
            return alpha * Decimal(rho) + tail + (excess / alpha).ln()

        low, high = Decimal("1e-7"), Decimal("1e7")
        for _ in range(140):
            first, second = low * (high / low) ** Decimal("0.382"), low * (high / low) ** Decimal("0.618")
            low, high = (low, second) if epsilon(first) < epsilon(second) else (first, high)
        least = max(epsilon(low), Decimal(0))
        # The search's own end is a bound from above, and by quadratic error very close to the least.
        assert found >= least * (1 - Decimal("1e-20"))
        assert found <= least + Decimal("1e-9") * (1 + least)
    assert found <= conversions.zcdp_epsilon_textbook(rho, delta) * ROUNDING


@given(LOSS, st.floats(1e-9, 0.4))
def test_closed_forms_round_outward_in_fifty_digits(bound, delta):
    with decimal.localcontext() as context:
        context.prec = 50
        top, low = Decimal(bound), Decimal(delta)
        whole = top.exp() - low * (1 + top.exp())
        pure = whole.ln() if whole > 1 else Decimal(0)
        root = 1 - (low * (1 - (-top).exp())).sqrt()
        ranged = max(Decimal(0), top + 2 * root.ln())
    for exact, guarantee in ((pure, Guarantee.pure), (ranged, Guarantee.bounded_range)):
        found = guarantee(bound, "replace").at(delta=delta)
        assert exact <= found <= exact + Decimal("1e-9")


@pytest.mark.slow
@given(SIMPLE, FAILURE)
@settings(max_examples=200)
def test_delta_at_epsilon_at_delta_is_no_more(recipe, delta):
    guarantee = made(recipe)
    epsilon = guarantee.at(delta=delta)
    if math.isfinite(epsilon):
        assert guarantee.at(epsilon=epsilon) <= delta * (1.0 + 1e-8) + 1e-13
        assert epsilon == 0.0 or guarantee.at(epsilon=0.999 * epsilon) > delta


@given(st.floats(0.01, 5.0), st.floats(1e-6, 0.9), FAR)
def test_what_is_stated_once_lies_between_the_chord_to_its_mirror_and_the_step(bound, low, epsilon):
    guarantee = Guarantee.approximate(bound, low, "replace")
    chord = 1.0 + (low - 1.0) * (math.exp(epsilon) + 1.0) / (math.exp(bound) + 1.0)
    assert guarantee.at(epsilon=epsilon) == pytest.approx(max(low, chord), rel=1e-9)
    assert guarantee.at(delta=low) == bound
    assert guarantee.at(delta=0.99 * low) == math.inf


@pytest.mark.slow
@given(st.floats(0.01, 20.0), FAILURE)
@settings(max_examples=25)
def test_zcdp_rho_is_the_inverse_rounded_inward(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert conversions.zcdp_epsilon(rho, delta) <= epsilon < conversions.zcdp_epsilon(rho * (1.0 + 1e-9), delta)


def test_extreme_numbers_stay_on_the_safe_side():
    assert Guarantee.zcdp(1e-12, "replace").at(delta=1e-6) < 1e-4
    assert Guarantee.zcdp(1e6, "replace").at(delta=1e-6) > 1e6
    assert Guarantee.gaussian(1e-9, "replace").at(epsilon=1.0) <= 1e-300
    assert Guarantee.gaussian(1e-9, "replace").at(epsilon=0.0) == pytest.approx(1e-9 / math.sqrt(2.0 * math.pi))
    assert Guarantee.pure(900.0, "replace").at(delta=1e-6) == pytest.approx(900.0)
    assert Guarantee.gaussian(1.0, "replace").at(delta=0.0) == Guarantee.zcdp(1.0, "replace").at(delta=0.0) == math.inf
    for wrong in ({}, {"delta": 0.1, "epsilon": 1.0}, {"delta": 1.0}, {"delta": -0.1}, {"epsilon": -1.0}):
        with pytest.raises(ValueError, match=r"name either delta|must be at least 0"):
            Guarantee.pure(1.0, "replace").at(**wrong)
    with pytest.raises(ValueError, match="zCDP meets"):
        zcdp_rho(1.0, 0.0)
