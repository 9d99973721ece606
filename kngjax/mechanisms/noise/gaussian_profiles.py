"""Exact privacy profiles log δ(ε) of Gaussian noise: of fixed covariance, and of covariance that depends on the data.

δ(P‖Q) at ε is sup_A P(A) - e^ε Q(A) = E_P[(1 - e^{ε-L})_+] with L = log p/q. A record z is added to D, or removed from
D' = D + z. All that matters of z are a few numbers, in the notation of Wang (2019): with H = X'X + λI and
θ̂ = H^{-1}X'y of D, the leverage μ = x'H^{-1}x and the residual r = y - x'θ̂, both out of sample.

Everything is computed in log space, since δ is a small difference of tails, and rounded outward: a bound on the
rounding error of each term is added, so that no result is below log δ. These bounds assume relative errors of a few
units of float64 in +, -, *, /, √, exp, log, erf and erfcx. XLA states none, and tests compare with ball arithmetic. The
functions are elementwise in arrays that broadcast against each other, and run under jit and vmap; they want float64.
`kngjax.mechanisms.noise.objective_profiles` has noise in the objective.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from kngjax.mechanisms.noise.mills_ratio import (
    UNIT,
    log_density,
    log_difference,
    log_positive,
    mills_of,
    mills_slope,
    mills_slope_bound,
    slack,
)

Profile = Callable[[Array], Array]

_MOST_STEPS = 100
# Relative width of the bracket of ε at which the search ends; its upper end is returned.
_TOLERANCE = 1e-10
# Below this shift the difference of two tails is an integral, by the trapezoidal rule.
_SMALL_SHIFT = 1e-4


def gaussian_log_delta(epsilon: Any, shift: Any) -> Float[Array, "..."]:
    """log δ(ε) of N(0, I) against N(m, I) with |m| = s: δ = Φ(s/2 - ε/s) - e^ε Φ(-s/2 - ε/s), in both directions.

    Balle and Wang (2018), theorem 8. Lemma 4 of Wang (2019) has the bound s√(2 log(1.25/δ)) in its place, which holds
    for ε ≤ 1 alone.

    δ = φ(t)(M(t) - M(t+s)) with t = ε/s - s/2 and M the ratio of Mills. Where s is small this is φ(t)∫(-M'), at most
    φ(t)·s times the mean of -M' at the two ends, since -M' is convex. What is returned is never below log δ, and above
    it by less than 1e-8 (1 + t²/100) for s ≤ 100.

    **Arguments:** `epsilon`: ε ≥ 0. `shift`: s ≥ 0, the sensitivity over the noise's standard deviation.
    """
    epsilon, shift = jnp.asarray(epsilon), jnp.asarray(shift)
    # Written so that NaN counts as positive.
    nothing = shift <= 0
    safe = jnp.where(nothing, 1.0, shift)
    near, far = epsilon / safe - 0.5 * safe, epsilon / safe + 0.5 * safe
    error = UNIT * far
    chord = jnp.log(0.5 * safe) + jnp.log(jnp.sum(mills_slope(jnp.stack([near, far])), axis=0))
    # The derivative of log[M(t) - M(t+s)] in t is between -2 and 0 for t > -1.
    small = log_density(near) + slack(near, error) + chord + 2.0 * error + UNIT * (2.0 + jnp.abs(chord))
    log_delta = jnp.where(safe < _SMALL_SHIFT, small, log_difference(near, far, 1.0, error, error))
    return jnp.where(nothing, -jnp.inf, at_worst(log_delta))


def posterior_sample_log_delta(epsilon: Any, leverage: Any, residual: Any, gamma: Any) -> Float[Array, "..."]:
    """log δ(ε) of N(θ̂, (γH)^{-1}) against N(θ̂', (γH')^{-1}), the larger of the two directions.

    L depends on θ through u = x'θ alone and is a quadratic in it: with Z = (u - x'θ̂)√(γ/μ), which is N(0, 1) under D
    and N(m, s²) under D', L = a0 + a1 Z + a2 Z² with a0 = -½log(1+μ) + γr²μ/(2(1+μ)), a1 = -r√(γμ), a2 = μ/2,
    m = r√(γμ)/(1+μ) and s² = 1/(1+μ). So δ(D‖D') is a difference of probabilities outside of an interval and δ(D'‖D)
    of one inside of an interval, whose ends are roots of quadratics. This is Theorem 14 of Wang (2019) without its
    tail bounds, the printed ones of which are exceeded.

    What is returned is never below log δ. δ is too large by at most 1e-12 (1 + t²) of the probability that it is a part
    of, with t the distance of the nearest root in standard deviations.

    **Arguments:** `epsilon`: ε ≥ 0. `leverage`, `residual`: μ ≥ 0 and r of the record with respect to D, the smaller
    data set. `gamma`: γ > 0.
    """
    epsilon, leverage, residual, gamma = (jnp.asarray(value) for value in (epsilon, leverage, residual, gamma))
    nothing = leverage <= 0
    # The smallest leverages would be lost in squares; what they hide is below every δ of interest.
    mu = jnp.where(nothing, 1.0, jnp.maximum(leverage, 1e-200))
    either = jnp.maximum(
        _added_log_delta(epsilon, mu, residual, gamma), _removed_log_delta(epsilon, mu, residual, gamma)
    )
    return jnp.where(nothing, -jnp.inf, at_worst(either))


def gaussian_renyi(alpha: Any, shift: Any) -> Float[Array, "..."]:
    """D_α of N(0, I) and N(m, I) with |m| = s: αs²/2, in both directions."""
    return 0.5 * jnp.asarray(alpha) * jnp.square(jnp.asarray(shift))


def _scale(mu: Array, residual: Array, gamma: Array) -> tuple[Array, Array, Array]:
    """|a1|, and the mean and the standard deviation of Z under D'."""
    slope = jnp.abs(residual) * jnp.sqrt(gamma * mu)
    return slope, slope / (1.0 + mu), 1.0 / jnp.sqrt(1.0 + mu)


def _added_log_delta(epsilon: Array, mu: Array, residual: Array, gamma: Array) -> Array:
    """log δ(D‖D'): outside of the roots of L = ε."""
    epsilon, mu, residual, gamma = jnp.broadcast_arrays(epsilon, mu, residual, gamma)
    slope, mean, deviation = _scale(mu, residual, gamma)
    excess = jnp.log1p(mu) + 2.0 * epsilon
    root = jnp.sqrt(slope * mean + mu * excess)
    # The smaller root by the larger one's partner, which loses no digits.
    lower, upper = (slope * mean - excess) / (slope + root), (slope + root) / mu
    lower_error, upper_error = UNIT * (slope * mean + excess) / (slope + root), UNIT * upper
    moved = UNIT * mean / deviation
    at, error = jnp.stack([-lower, upper]), jnp.stack([lower_error, upper_error])
    deviation, moved = deviation[None], moved[None]
    other = jnp.stack([mean - lower, upper - mean]) / deviation
    both = log_difference(at, other, deviation, error, 2.0 * error / deviation + moved)
    return jnp.logaddexp(both[0], both[1])


def _removed_log_delta(epsilon: Array, mu: Array, residual: Array, gamma: Array) -> Array:
    """log δ(D'‖D): between the roots of L = -ε, and 0 if there are none."""
    slope, mean, deviation = _scale(mu, residual, gamma)
    volume = jnp.log1p(mu)
    excess = volume - 2.0 * epsilon
    square = slope * mean + mu * excess
    square_error = UNIT * (slope * mean + mu * (volume + 2.0 * epsilon))
    exists = square + square_error > 0
    root = jnp.sqrt(jnp.maximum(jnp.where(exists, square, 1.0), square_error))
    # |√(a ± e) - √a| ≤ e/√a.
    root_error = square_error / root + UNIT * root
    lower, upper = (slope * mean - excess) / (slope + root), (slope + root) / mu
    lower_error = UNIT * (slope * mean + volume + 2.0 * epsilon) + (root_error + UNIT * root) * jnp.abs(lower)
    lower_error = lower_error / (slope + root)
    upper_error = UNIT * upper + root_error / mu
    first, last = (lower - mean) / deviation, (upper - mean) / deviation
    moved = UNIT * (mean + jnp.abs(lower)) / deviation
    first_error, last_error = lower_error / deviation + moved, 2.0 * upper_error / deviation + moved
    # δ = [P'(Z > lower) - e^ε P(Z > lower)] - [the same at upper], and the densities are in proportion e^ε at both.
    positive = jnp.maximum(first, 0.0)
    at_lower, at_upper, in_first, in_last = mills_of(lower, upper, positive, last)
    at_lower, at_upper = at_lower / deviation, at_upper / deviation
    lower_spare = lower_error * mills_slope_bound(lower) / deviation
    lower_spare += UNIT * (1.0 + jnp.square(jnp.minimum(lower, 0.0))) * at_lower
    last_spare = last_error * (mills_slope_bound(last) + jnp.abs(last) * jnp.abs(at_upper - in_last))
    last_spare += upper_error * mills_slope_bound(upper) / deviation
    last_spare += UNIT * (1.0 + jnp.square(last)) * (at_upper + in_last)
    far = jnp.exp(0.5 * jnp.minimum(jnp.square(first) - jnp.square(last), 0.0))
    brackets = in_first - at_lower + far * (at_upper - in_last)
    spare = UNIT * in_first + first_error * mills_slope_bound(positive) + lower_spare
    moved = first_error * jnp.abs(first) + UNIT * jnp.square(first)
    spare += far * (last_spare + moved * jnp.abs(at_upper - in_last))
    in_tail = log_density(first) + slack(first, first_error) + log_positive(brackets + spare)
    density, last_density, beyond = jnp.exp(log_density(first)), jnp.exp(log_density(last)), ndtr(-first)
    near = beyond - density * at_lower + last_density * (at_upper - in_last)
    spare = UNIT * (beyond + density * at_lower * (1.0 + jnp.square(first))) + density * lower_spare
    spare += density * first_error * (1.0 + jnp.abs(first) * at_lower) + last_density * last_spare
    log_delta = jnp.where(first > 0, in_tail, log_positive(near + spare)) + UNIT
    return jnp.where(exists, log_delta, -jnp.inf)


def posterior_sample_epsilon_bound(delta: Any, leverage: Any, residual: Any, gamma: Any) -> Float[Array, "..."]:
    """ε with δ(ε) ≤ δ in closed form: ½|-log(1+μ) + γμr²/(1+μ)| + μK/2 + √(γμK)|r| with K = 2 log(2/δ).

    Equation (7) of Wang (2019) with its constant put right: L is a quadratic in a standard normal variable whose square
    exceeds K with probability at most δ. The printed K = log(2/δ) belongs to a tail of √δ.
    """
    delta, mu, residual, gamma = (jnp.asarray(value) for value in (delta, leverage, residual, gamma))
    tail = 2.0 * jnp.log(2.0 / delta)
    centre = 0.5 * jnp.abs(-jnp.log1p(mu) + gamma * mu * jnp.square(residual) / (1.0 + mu))
    return centre + 0.5 * mu * tail + jnp.sqrt(gamma * mu * tail) * jnp.abs(residual)


def posterior_sample_renyi(alpha: Any, leverage: Any, residual: Any, gamma: Any) -> Float[Array, "..."]:
    """The larger Rényi divergence of order α > 1 of the two directions; infinite from α = (1+μ)/μ on.

    D_α(D‖D') = αγμr²/(2(1+μ)(1+μ-αμ)) - log[(1+μ-αμ)(1+μ)^{α-1}]/(2(α-1)), and
    D_α(D'‖D) = αγμr²/(2(1+μ)(1+αμ)) - log[(1+αμ)(1+μ)^{-α}]/(2(α-1)): Gaussian integrals of e^{(α-1)L}. Rounded
    outward.
    """
    alpha, mu, residual, gamma = (jnp.asarray(value) for value in (alpha, leverage, residual, gamma))
    shift = alpha * gamma * mu * jnp.square(residual) / (2.0 * (1.0 + mu))
    # 1 + μ - αμ = 1 - (α-1)μ.
    share = (alpha - 1.0) * mu
    room = 1.0 - share
    safe = jnp.where(room > 0, room, 1.0)
    fall, volume = jnp.log1p(-jnp.where(room > 0, share, 0.0)), (alpha - 1.0) * jnp.log1p(mu)
    growth = jnp.log1p(alpha * mu)
    added = shift / safe - (fall + volume) / (2.0 * (alpha - 1.0))
    removed = shift / (1.0 + alpha * mu) - (growth - volume - jnp.log1p(mu)) / (2.0 * (alpha - 1.0))
    # Rounding errors, of which that of 1 - (α-1)μ may be the largest.
    lost = shift / jnp.square(safe) + (share / safe - fall + volume + growth) / (2.0 * (alpha - 1.0))
    return jnp.where(room > 0, jnp.maximum(added, removed) + UNIT * lost, jnp.inf)


def at_worst(log_delta: Array) -> Array:
    """Caps log δ at 0, and takes 0, which promises nothing, for NaN: overflow may not pass for privacy."""
    return jnp.where(jnp.isnan(log_delta), 0.0, jnp.minimum(log_delta, 0.0))


def epsilon_at(profile: Profile, log_delta: Any, upper: Array) -> Float[Array, "..."]:
    """The smallest ε ≥ 0 with profile(ε) ≤ log δ, rounded outward: 0 where that meets it, ∞ where none is found.

    The Illinois variant of regula falsi inside of a bracket, elementwise; halving where a value is not finite.

    **Arguments:** `profile`: log δ as a decreasing function of ε, elementwise. `upper`: ε where it is at most log δ, or
    a first guess of one, which is doubled until it is.
    """
    log_delta, upper = jnp.asarray(log_delta), jnp.asarray(upper)
    upper = jnp.broadcast_to(upper, jnp.broadcast_shapes(upper.shape, log_delta.shape)).astype(log_delta.dtype)
    zeros, unknown = jnp.zeros_like(upper), jnp.full_like(upper, jnp.nan)

    def is_open(lower, below, upper, above):
        # Values that are not known yet count as open.
        return ~(below <= 0) & ~((above <= 0) & ~jnp.isnan(below) & (upper - lower <= _TOLERANCE * upper))

    def continues(state):
        *bracket, _, steps = state
        return jnp.any(is_open(*bracket)) & (steps < _MOST_STEPS)

    def step(state):
        lower, below, upper, above, side, steps = state
        secant = upper - above * (upper - lower) / jnp.where(above == below, 1.0, above - below)
        # A little to one side and to the other, so that brackets close from both.
        secant += 0.4 * _TOLERANCE * upper * (2 * (steps % 2) - 1)
        usable = jnp.isfinite(secant) & (secant > lower) & (secant < upper) & (steps % 4 != 3)
        inside = jnp.where(usable, secant, 0.5 * (lower + upper))
        first, second = jnp.isnan(below), jnp.isnan(above)
        grow = above > 0
        trial = jnp.where(first, 0.0, jnp.where(second, upper, jnp.where(grow, 2.0 * upper + 1e-12, inside)))
        # √(-2 log δ) is nearly linear in ε, so that secants of it meet the root in a few steps.
        excess = jnp.sqrt(-2.0 * log_delta) - jnp.sqrt(-2.0 * jnp.minimum(profile(trial), 0.0))
        is_upper = ~first & (second | grow | (excess <= 0))
        narrowed = ~first & ~second & ~grow
        # Illinois: an end that stays twice counts half.
        new_below = jnp.where(is_upper, jnp.where(narrowed & (side == 1), 0.5 * below, below), excess)
        new_above = jnp.where(is_upper, excess, jnp.where(narrowed & (side == -1), 0.5 * above, above))
        new_lower = jnp.where(is_upper, lower, trial)
        new_side = jnp.where(narrowed, jnp.where(is_upper, 1, -1), 0)
        return new_lower, new_below, jnp.where(is_upper, trial, upper), new_above, new_side, steps + 1

    start = (zeros, unknown, upper, unknown, jnp.zeros_like(upper, dtype=int), 0)
    _, below, upper, above, *_ = jax.lax.while_loop(continues, step, start)
    return jnp.where(below <= 0, 0.0, jnp.where(above <= 0, upper, jnp.inf))
