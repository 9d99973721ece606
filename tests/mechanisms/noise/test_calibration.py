"""Calibration of noise to (ε, δ): against quadrature and closed forms that share no code with them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from kngjax.mechanisms.noise.calibration import largest_shift, posterior_sample_gamma, renyi_budget

BUDGETS = list(itertools.product([0.01, 0.5, 2.0, 20.0], [1e-12, 1e-6, 0.05]))


def gaussian_delta(epsilon, shift):
    """∫(p - e^ε q)_+ for unit normals; beyond the place where they cross, as tails."""
    cross = epsilon / shift + 0.5 * shift
    log_ratio = epsilon + stats.norm.logsf(cross) - stats.norm.logsf(cross - shift)
    return stats.norm.sf(cross - shift) * -np.expm1(log_ratio)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_largest_shift_spends_delta_and_no_more(epsilon, delta):
    shift = float(largest_shift(epsilon, delta))
    exact = optimize.brentq(lambda s: gaussian_delta(epsilon, s) - delta, epsilon / 40.0, 40.0, xtol=1e-14)
    assert exact * (1.0 - 1e-6) < shift <= exact * (1.0 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_a_renyi_budget_of_one_order_is_enough_for_gaussian_noise(epsilon, delta):
    """The exact δ of the shift that spends it is below δ, and the shift is not much smaller than the largest."""
    order, divergence = (float(value) for value in renyi_budget(epsilon, delta))
    shift = np.sqrt(2.0 * divergence / order)
    assert order > 1.0
    assert gaussian_delta(epsilon, shift) <= delta
    assert shift > 0.65 * float(largest_shift(epsilon, delta))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_conversion_holds_for_the_worst_law_of_two_outcomes(epsilon, delta):
    """e^{(α-1)R} ≥ E[e^{(α-1)L}] for all laws of L with E[(1-e^{ε-L})_+] = δ: L is one number or -∞, and is worst."""
    order, divergence = (float(value) for value in renyi_budget(epsilon, delta))

    def exponent(excess):
        """log of the moment that one value L = ε + t has, with the probability that makes δ."""
        return np.log(delta) - np.log(-np.expm1(-excess)) + (order - 1.0) * excess

    least = optimize.minimize_scalar(exponent, bounds=(1e-9, 100.0 / order), method="bounded", options={"xatol": 1e-12})
    assert (order - 1.0) * (divergence - epsilon) == pytest.approx(least.fun, rel=1e-6, abs=1e-6)


def renyi(order, mean, variance):
    """D_α of N(0, 1) and N(mean, variance), the larger of both directions, by quadrature."""
    first, second = stats.norm(0.0, 1.0), stats.norm(mean, np.sqrt(variance))
    line = np.linspace(-60.0, 60.0, 8_001)
    logs = [order * p.logpdf(line) + (1.0 - order) * q.logpdf(line) for p, q in ((first, second), (second, first))]
    return max(np.log(integrate.simpson(np.exp(log), x=line)) for log in logs) / (order - 1.0)


@pytest.mark.slow
def test_gamma_spends_the_divergence_at_the_worst_record_and_less_at_every_other():
    random = np.random.default_rng(0)
    for _ in range(30):
        order = 1.0 + 10.0 ** random.uniform(-1.0, 1.3)
        leverage = random.uniform(0.02, 0.5) / (order - 1.0)
        residual, divergence = random.uniform(0.5, 5.0), 10.0 ** random.uniform(-0.5, 0.5)
        gamma = float(posterior_sample_gamma(order, divergence, leverage, residual))

        def spent(mu, r, order=order, gamma=gamma):
            # Z = (u - x'θ̂)√(γ/μ) of one record, N(0, 1) without it.
            return renyi(order, r * np.sqrt(gamma * mu) / (1.0 + mu), 1.0 / (1.0 + mu))

        if gamma > 0.0:
            assert spent(leverage, residual) == pytest.approx(divergence, rel=1e-6)
        else:
            assert spent(leverage, 0.0) >= divergence * (1.0 - 1e-6)
        for mu, r in random.uniform(0.0, 1.0, (5, 2)) * (leverage, residual):
            assert spent(mu, r) <= max(divergence, spent(leverage, residual)) * (1.0 + 1e-7)


def test_where_the_covariance_alone_spends_more_there_is_no_gamma():
    assert float(posterior_sample_gamma(11.0, 1.0, 0.2, 1.0)) == 0.0
    assert float(posterior_sample_gamma(11.0, 1e-6, 0.05, 1.0)) == 0.0
    assert float(posterior_sample_gamma(11.0, 1.0, 0.05, 1.0)) > 0.0


def test_what_was_computed_before_in_float32_changes_nothing():
    """A program that was traced in single precision must not leave its constants to one in double."""
    with jax.enable_x64(False):
        jax.jit(renyi_budget)(1.0, 1e-6)
    order, divergence = renyi_budget(1.0, 1e-6)
    assert order.dtype == divergence.dtype == jnp.float64
    excess = np.logspace(-4.0, 8.0, 2401)
    assert float(np.min(np.abs(excess / (float(order) - 1.0) - 1.0))) < 1e-12
