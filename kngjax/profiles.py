"""Exact privacy profiles log δ(ε) of Gaussian noise: of fixed covariance, and of covariance that depends on the data.

δ(P‖Q) at ε is sup_A P(A) - e^ε Q(A) = E_P[(1 - e^{ε-L})_+] with L = log p/q. A record z is added to D, or removed from
D' = D + z. All that matters of z are a few numbers, in the notation of Wang (2019): with H = X'X + λI and
θ̂ = H^{-1}X'y of D, the leverage μ = x'H^{-1}x and the residual r = y - x'θ̂, both out of sample.

Everything is computed in log space, since δ of interest is a small difference of tails. The functions are elementwise
in arrays that broadcast against each other, and run under jit and vmap; they want float64.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfcx, ndtr
from jaxtyping import Array, Float
from scipy.special import log_ndtr

Profile = Callable[[Array], Array]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_MOST_STEPS = 100
# Of ε, relative; the upper end of the bracket is returned.
_TOLERANCE = 1e-10
# Of a node's standard normal variable: beyond it lies less than 1e-32.
_FAR = 12.0
_LOG_BEYOND = float(log_ndtr(-_FAR)) + math.log(2.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def gaussian_log_delta(epsilon: Any, shift: Any) -> Float[Array, "..."]:
    """log δ(ε) of N(0, I) against N(m, I) with |m| = s: δ = Φ(s/2 - ε/s) - e^ε Φ(-s/2 - ε/s), in both directions.

    Balle and Wang (2018), theorem 8. Lemma 4 of Wang (2019) has the bound s√(2 log(1.25/δ)) in its place, which holds
    for ε ≤ 1 alone.

    **Arguments:** `epsilon`: ε ≥ 0. `shift`: s ≥ 0, the sensitivity over the noise's standard deviation.
    """
    epsilon, shift = jnp.asarray(epsilon), jnp.asarray(shift)
    # Written so that NaN counts as positive.
    nothing = shift <= 0
    safe = jnp.where(nothing, 1.0, shift)
    found = _log_tail(epsilon / safe - 0.5 * safe, epsilon / safe + 0.5 * safe, 1.0)
    return jnp.where(nothing, -jnp.inf, _at_worst(found))


def posterior_sample_log_delta(epsilon: Any, leverage: Any, residual: Any, gamma: Any) -> Float[Array, "..."]:
    """log δ(ε) of N(θ̂, (γH)^{-1}) against N(θ̂', (γH')^{-1}), the larger of the two directions.

    L depends on θ through u = x'θ alone and is a quadratic in it: with Z = (u - x'θ̂)√(γ/μ), which is N(0, 1) under D
    and N(m, s²) under D', L = a0 + a1 Z + a2 Z² with a0 = -½log(1+μ) + γr²μ/(2(1+μ)), a1 = -r√(γμ), a2 = μ/2,
    m = r√(γμ)/(1+μ) and s² = 1/(1+μ). So δ(D‖D') is a difference of probabilities outside of an interval and δ(D'‖D)
    of one inside of an interval, whose ends are roots of quadratics. This is Theorem 14 of Wang (2019) without its
    tail bounds, the printed ones of which are exceeded.

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
    return jnp.where(nothing, -jnp.inf, _at_worst(either))


def gaussian_renyi(alpha: Any, shift: Any) -> Float[Array, "..."]:
    """D_α of N(0, I) and N(m, I) with |m| = s: αs²/2, in both directions."""
    return 0.5 * jnp.asarray(alpha) * jnp.square(jnp.asarray(shift))


def _scaled(mu: Array, residual: Array, gamma: Array) -> tuple[Array, Array, Array]:
    """|a1|, and the mean and the standard deviation of Z under D'."""
    slope = jnp.abs(residual) * jnp.sqrt(gamma * mu)
    return slope, slope / (1.0 + mu), 1.0 / jnp.sqrt(1.0 + mu)


def _added_log_delta(epsilon: Array, mu: Array, residual: Array, gamma: Array) -> Array:
    """log δ(D‖D'): outside of the roots of L = ε."""
    slope, mean, deviation = _scaled(mu, residual, gamma)
    excess = jnp.log1p(mu) + 2.0 * epsilon
    root = jnp.sqrt(slope * mean + mu * excess)
    # The smaller root by the larger one's partner, which loses no digits.
    lower, upper = (slope * mean - excess) / (slope + root), (slope + root) / mu
    below = _log_tail(-lower, (mean - lower) / deviation, deviation)
    above = _log_tail(upper, (upper - mean) / deviation, deviation)
    return jnp.logaddexp(below, above)


def _removed_log_delta(epsilon: Array, mu: Array, residual: Array, gamma: Array) -> Array:
    """log δ(D'‖D): between the roots of L = -ε, and 0 if there are none."""
    slope, mean, deviation = _scaled(mu, residual, gamma)
    excess = jnp.log1p(mu) - 2.0 * epsilon
    square = slope * mean + mu * excess
    exists = square > 0
    root = jnp.sqrt(jnp.where(exists, square, 1.0))
    lower, upper = (slope * mean - excess) / (slope + root), (slope + root) / mu
    first, last = (lower - mean) / deviation, (upper - mean) / deviation
    # δ = [P'(Z > lower) - e^ε P(Z > lower)] - [the same at upper], and the densities are in proportion e^ε at both.
    far = jnp.exp(0.5 * jnp.minimum(jnp.square(first) - jnp.square(last), 0.0))
    brackets = _mills(first) - _mills(lower) / deviation + far * (_mills(upper) / deviation - _mills(last))
    in_tail = _log_density(first) + _log_positive(brackets)
    density_ratio = jnp.exp(_log_density(first)) / deviation
    near = ndtr(-first) - density_ratio * _mills(lower)
    near += jnp.exp(_log_density(last)) * (_mills(upper) / deviation - _mills(last))
    return jnp.where(exists, jnp.where(first > 0, in_tail, _log_positive(near)), -jnp.inf)


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
    D_α(D'‖D) = αγμr²/(2(1+μ)(1+αμ)) - log[(1+αμ)(1+μ)^{-α}]/(2(α-1)): Gaussian integrals of e^{(α-1)L}.
    """
    alpha, mu, residual, gamma = (jnp.asarray(value) for value in (alpha, leverage, residual, gamma))
    shift = alpha * gamma * mu * jnp.square(residual) / (2.0 * (1.0 + mu))
    # log(1 + μ - αμ) = log1p(-(α-1)μ).
    room = 1.0 - (alpha - 1.0) * mu
    safe = jnp.where(room > 0, room, 1.0)
    added = shift / safe - (jnp.log(safe) + (alpha - 1.0) * jnp.log1p(mu)) / (2.0 * (alpha - 1.0))
    removed = shift / (1.0 + alpha * mu)
    removed -= (jnp.log1p(alpha * mu) - alpha * jnp.log1p(mu)) / (2.0 * (alpha - 1.0))
    return jnp.where(room > 0, jnp.maximum(added, removed), jnp.inf)


def objective_log_delta(
    epsilon: Any, leverage: Any, residual: Any, length: Any, spread: Any, deviation: Any
) -> Float[Array, "..."]:
    """log δ(ε) of N(θ̂, σ²H^{-2}) against N(θ̂', σ²H'^{-2}), ridge regression with N(0, σ²I) noise b in its objective.

    θ = H^{-1}(X'y + b), so b' = b - xe under D' with e = y - x'θ = r - x'H^{-1}b, and with t = |x|e/σ and
    g = x'b/(|x|σ)

        L = -log(1+μ) + t²/2 - tg.

    t = |x|r/σ - κh with κ = |x||H^{-1}x| and h another N(0, 1) of correlation ρ = μ/κ with g. Given h, L is normal with
    mean c(h) and variance t²(1-ρ²), and E[(1 - e^{ε-L})_+] is known; the mean over h is taken by Gauss-Legendre rules
    between the places where c(h) = ε. The other direction has -L of the same form with r/(1+μ), κ/(1+μ), and the signs
    of log(1+μ) and of ρ changed. What lies beyond |h| = 12 counts in full, so that δ is never below 2Φ(-12) = 4e-33;
    above that its relative error is below 1e-8 for μ < 100, and for larger ones it may be too large by a part in 10³.

    **Arguments:** `length`: |x|. `spread`: |H^{-1}x|. `deviation`: σ. The others as for `posterior_sample_log_delta`.
    """
    larger, nothing = _objective_larger(_mixed_log_delta, epsilon, leverage, residual, length, spread, deviation)
    return jnp.where(nothing, -jnp.inf, _at_worst(jnp.logaddexp(larger, _LOG_BEYOND)))


def objective_renyi(
    alpha: Any, leverage: Any, residual: Any, length: Any, spread: Any, deviation: Any
) -> Float[Array, "..."]:
    """The larger Rényi divergence of order α > 1 of the two directions, of the laws of `objective_log_delta`.

    log E[e^{(α-1)L}]/(α-1): given h the exponent (α-1)L has the mean and variance that make it a quadratic ah² + bh + c
    of its own, and E e^{ah²+bh+c} = (1-2a)^{-½}e^{c + b²/(2(1-2a))}; infinite from 2a = 1 on.

    **Arguments:** `alpha`: α > 1. The others as for `objective_log_delta`.
    """
    larger, nothing = _objective_larger(_mixed_renyi, alpha, leverage, residual, length, spread, deviation)
    # An overflow promises nothing.
    return jnp.where(nothing, 0.0, jnp.where(jnp.isnan(larger), jnp.inf, larger))


def _objective_larger(divergence: Callable[..., Array], order: Any, *people: Any) -> tuple[Array, Array]:
    """The larger divergence of the two directions of `objective_log_delta`, and where the record is not there at all.

    **Arguments:** `divergence`: of (order, constant, start, kappa, correlation). `order`: ε or α. `people`: μ, r, |x|,
    |H^{-1}x| and σ.
    """
    order, mu, residual, length, spread, deviation = jnp.broadcast_arrays(*map(jnp.asarray, (order, *people)))
    # Written so that NaN counts as a record.
    nothing = (mu <= 0) | (length <= 0)
    kappa = jnp.where(nothing, 1.0, length * spread)
    correlation = jnp.where(nothing, 0.0, jnp.clip(mu / kappa, 0.0, 1.0))
    start, volume = length * jnp.abs(residual) / deviation, jnp.log1p(mu)
    added = divergence(order, -volume, start, kappa, -correlation)
    removed = divergence(order, volume, start / (1.0 + mu), kappa / (1.0 + mu), correlation)
    return jnp.maximum(added, removed), nothing


def _mixed_renyi(alpha: Array, constant: Array, start: Array, kappa: Array, correlation: Array) -> Array:
    """log E[e^{(α-1)L}]/(α-1) for the L of `_mixed_log_delta`."""
    order = alpha - 1.0
    growth = 1.0 + order * (1.0 - jnp.square(correlation))
    room = 1.0 - order * (growth * jnp.square(kappa) - 2.0 * correlation * kappa)
    linear = order * start * (correlation - growth * kappa)
    safe = jnp.where(room > 0, room, 1.0)
    exponent = order * constant + 0.5 * order * growth * jnp.square(start) + 0.5 * jnp.square(linear) / safe
    return jnp.where(room > 0, (exponent - 0.5 * jnp.log(safe)) / order, jnp.inf)


def _mixed_log_delta(epsilon: Array, constant: Array, start: Array, kappa: Array, correlation: Array) -> Array:
    """log E[(1 - e^{ε-L})_+], L = constant + t²/2 + tg, t = start - κh, with (g, h) of this correlation."""
    # c(h) - ε = quadratic·h² + linear·h + rest, from E[g|h] = ρh.
    quadratic = 0.5 * jnp.square(kappa) - correlation * kappa
    linear = start * (correlation - kappa)
    rest = constant + 0.5 * jnp.square(start) - epsilon
    discriminant = jnp.square(linear) - 4.0 * quadratic * rest
    root = jnp.sqrt(jnp.maximum(discriminant, 0.0))
    partner = -0.5 * (linear + jnp.where(linear >= 0, root, -root))
    roots = [_ratio(partner, quadratic), _ratio(rest, partner)]
    inner = [jnp.clip(jnp.where(discriminant > 0, place, _FAR), -_FAR, _FAR) for place in roots]
    # And where t = 0: there L does not vary given h.
    inner.append(jnp.clip(_ratio(start, kappa), -_FAR, _FAR))
    # The standard normal weight wants short pieces too.
    ends = [jnp.full_like(start, place) for place in (-_FAR, -4.0, 0.0, 4.0, _FAR)]
    ends = jnp.sort(jnp.stack([*ends, *inner], axis=-1), axis=-1)
    half = 0.5 * jnp.diff(ends)[..., None]
    along = (1,) * (half.ndim - 1) + _NODES.shape
    nodes = ends[..., :-1, None] + half * (1.0 + jnp.reshape(jnp.asarray(_NODES, dtype=half.dtype), along))
    weights = jnp.reshape(jnp.asarray(_WEIGHTS, dtype=half.dtype), along)

    def given(value: Array) -> Array:
        return value[..., None, None]

    t = given(start) - given(kappa) * nodes
    mean = given(constant) + 0.5 * jnp.square(t) + t * given(correlation) * nodes
    variance = jnp.square(t) * (1.0 - jnp.square(given(correlation)))
    logs = _normal_log_delta(given(epsilon), mean, variance) + _log_density(nodes)
    return jax.scipy.special.logsumexp(logs, axis=(-2, -1), b=half * weights)


def _normal_log_delta(epsilon: Array, mean: Array, variance: Array) -> Array:
    """log E[(1 - e^{ε-L})_+] for L ~ N(mean, variance), where the variance may be 0 and e^{-L} need not have mean 1."""
    deviation = jnp.sqrt(jnp.maximum(variance, 1e-24))
    at = (epsilon - mean) / deviation
    # e^{ε-mean+variance/2} Φ(-at - deviation), which is φ(at) M(at + deviation).
    other = at + deviation
    tilted = jnp.exp(jnp.minimum((at + 0.5 * deviation) * deviation, 0.0)) * ndtr(-other)
    near = ndtr(-at) - jnp.where(other > 0, jnp.exp(_log_density(at)) * _mills(jnp.maximum(other, 0.0)), tilted)
    return jnp.where(at > 0, _log_tail(jnp.maximum(at, 0.0), jnp.maximum(other, 0.0), 1.0), _log_positive(near))


def _ratio(numerator: Array, denominator: Array) -> Array:
    return jnp.where(denominator == 0, _FAR, numerator / jnp.where(denominator == 0, 1.0, denominator))


def _log_tail(at: Array, other: Array, scale: Any) -> Array:
    """log[Φ(-at) - scale·φ(at)·M(other)] with M the ratio of Mills; for at > 0 without loss of digits in the tail."""
    in_tail = _log_density(at) + _log_positive(_mills(jnp.maximum(at, 0.0)) - scale * _mills(other))
    near = ndtr(-at) - scale * jnp.exp(_log_density(at)) * _mills(other)
    return jnp.where(at > 0, in_tail, _log_positive(near))


def _mills(at: Array) -> Array:
    """Φ(-t)/φ(t)."""
    return math.sqrt(math.pi / 2.0) * erfcx(at / math.sqrt(2.0))


def _log_density(at: Array) -> Array:
    return -0.5 * jnp.square(at) - _LOG_ROOT_TWO_PI


def _log_positive(value: Array) -> Array:
    """log v, -inf for v ≤ 0, and NaN for NaN."""
    nothing = value <= 0
    return jnp.where(nothing, -jnp.inf, jnp.log(jnp.where(nothing, 1.0, value)))


def _at_worst(log_delta: Array) -> Array:
    """At most 0, and 0, which promises nothing, for what is no number: overflow may not pass for privacy."""
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

    def unfinished(state):
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
        found = jnp.sqrt(-2.0 * log_delta) - jnp.sqrt(-2.0 * jnp.minimum(profile(trial), 0.0))
        is_upper = ~first & (second | grow | (found <= 0))
        narrowed = ~first & ~second & ~grow
        # Illinois: an end that stays twice counts half.
        new_below = jnp.where(is_upper, jnp.where(narrowed & (side == 1), 0.5 * below, below), found)
        new_above = jnp.where(is_upper, found, jnp.where(narrowed & (side == -1), 0.5 * above, above))
        new_lower = jnp.where(is_upper, lower, trial)
        new_side = jnp.where(narrowed, jnp.where(is_upper, 1, -1), 0)
        return new_lower, new_below, jnp.where(is_upper, trial, upper), new_above, new_side, steps + 1

    start = (zeros, unknown, upper, unknown, jnp.zeros_like(upper, dtype=int), 0)
    _, below, upper, above, *_ = jax.lax.while_loop(unfinished, step, start)
    return jnp.where(below <= 0, 0.0, jnp.where(above <= 0, upper, jnp.inf))
