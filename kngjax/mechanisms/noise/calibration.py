"""Calibrates the noise of a draw with several stages to a budget (ε, δ), by Rényi divergences of one public order.

The functions run under jit and vmap, since some budgets are spent inside of a draw; they want float64.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import float64
from kngjax.core.bisection import bisect
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.mechanisms.noise.gaussian_profiles import epsilon_at, gaussian_log_delta, posterior_sample_renyi

# The grid of α - 1: any order is valid, and none between two of these is better by more than a part in 10⁴.
_ORDERS = np.logspace(-4.0, 8.0, 2401)
_ROUNDING = 1e-10
_HALVINGS = 100


@Compiled
def largest_shift(epsilon: Any, delta: Any) -> Float[Array, ""]:
    """The largest s whose `kngjax.mechanisms.noise.gaussian_profiles.gaussian_log_delta` is at most log δ at ε: what
    N(0, I) hides of it.

    Rounded inward, as that profile is rounded outward; 0, which hides nothing, where none is found.

    **Arguments:** `epsilon`, `delta`: scalars.
    """
    epsilon = jnp.asarray(epsilon)

    def profile(inverse: Array) -> Array:
        return gaussian_log_delta(epsilon, 1.0 / jnp.maximum(inverse, 1e-150))

    # δ falls as 1/s grows.
    return (1.0 - _ROUNDING) / epsilon_at(profile, jnp.log(jnp.asarray(delta)), jnp.ones_like(epsilon))


def gaussian_guarantee(epsilon: Any, delta: Any, adjacency: Adjacency) -> Guarantee:
    """s-Gaussian DP for the largest shift s, stated at (ε, δ); ValueError where no s is known to be hidden.

    The statement is checked by other code than that which calibrates: `kngjax.accounting.conversions`.
    """
    with float64(), quick_compilation():
        shift = float(largest_shift(epsilon, delta))
    try:
        return Guarantee.gaussian(shift, adjacency, float(epsilon), float(delta))
    except ValueError:
        raise ValueError(
            f"no Gaussian noise is known to be ({float(epsilon):g}, {float(delta):g})-differentially private in "
            "float64: give a larger epsilon, or a delta that is neither tiny nor nearly 1"
        ) from None


@jax.jit
def renyi_budget(epsilon: Any, delta: Any) -> tuple[Array, Array]:
    """(α, R) such that a Rényi divergence of at most R of this one order α is (ε, δ)-DP, with R/α as large as can be.

    δ = e^{(α-1)(R-ε)} (1-1/α)^α/(α-1) (Canonne, Kamath and Steinke 2020, Proposition 12) holds for every α; R/α, which
    is s²/2 for a shift s of Gaussian noise, is the largest on a grid of orders.

    **Arguments:** `epsilon`, `delta`: scalars.
    """
    # JAX caches constants in the dtype of first use; convert here so float64 calls get float64 orders.
    excess = jnp.asarray(_ORDERS, dtype=jnp.result_type(float))
    order = 1.0 + excess
    tail = jnp.log(jnp.asarray(delta)) + jnp.log(excess) + order * jnp.log1p(1.0 / excess)
    divergence = epsilon + tail / excess
    best = jnp.argmax(divergence / order)
    return order[best], divergence[best] * (1.0 - _ROUNDING)


def advanced_epsilons(epsilon: Array, delta: Any, shares: Array, count: int) -> Float[Array, "2"]:
    """The largest ε_k ∝ shares, J of each, with √(2 log(1/δ)Σε_k²) + Σε_k tanh(ε_k/2) ≤ ε, from below."""
    slope = jnp.sqrt(2.0 * jnp.log(1.0 / jnp.asarray(delta)) * count * jnp.sum(jnp.square(shares)))

    def fits(epsilon_of_one):
        losses = epsilon_of_one * shares
        return slope * epsilon_of_one + count * jnp.sum(losses * jnp.tanh(0.5 * losses)) <= epsilon

    return shares * bisect(fits, jnp.zeros_like(epsilon), epsilon / slope, _HALVINGS)[0]


def posterior_sample_gamma(alpha: Any, divergence: Any, leverage: Any, residual: Any) -> Float[Array, "..."]:
    """The largest γ with D_α ≤ R for every record of leverage at most μ and residual at most |r|, in both directions.

    Of the two directions of `posterior_sample_renyi` the first is never the smaller one, and it increases with μ and
    with |r|: of its first term that is plain, and the derivative of its second with respect to μ is half of
    1/(1-(α-1)μ) - 1/(1+μ). So γ solves D_α(D‖D') = R at the largest μ and |r|, in which it is linear. It is 0 where no
    γ > 0 will do, as the covariance alone spends R.

    **Arguments:** `alpha`: α > 1. `divergence`: R. `leverage`, `residual`: μ > 0 and r ≠ 0.
    """
    alpha, mu, residual = jnp.asarray(alpha), jnp.asarray(leverage), jnp.asarray(residual)
    room = 1.0 - (alpha - 1.0) * mu
    left = divergence - posterior_sample_renyi(alpha, mu, jnp.zeros_like(residual), 1.0)
    gamma = 2.0 * (1.0 + mu) * room * jnp.maximum(left, 0.0) / (alpha * mu * jnp.square(residual))
    return jnp.where(room > 0, gamma, 0.0)
