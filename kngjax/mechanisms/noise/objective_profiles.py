"""Privacy profiles log δ(ε) of ridge regression with Gaussian noise in its objective, by quadrature.

The notation and the rules are those of `kngjax.mechanisms.noise.gaussian_profiles`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from kngjax.mechanisms.noise.gaussian_profiles import at_worst
from kngjax.mechanisms.noise.mills_ratio import UNIT, log_density, log_difference, log_positive, mills

# The largest |h| of a node: beyond it lies a probability of less than 1e-32.
_FAR = 12.0
_LOG_BEYOND = float(scipy.special.log_ndtr(-_FAR)) + float(np.log(2.0))
# Pieces of this rule end around the places where the integrand turns: in t, and around roots in the widths of their
# layers; and where the standard normal weight wants it.
_DEGREE = 32
_TURNS, _LAYERS, _WEIGHT_ENDS = (0.0, 1.0, 3.0, 8.0, 20.0), (1.0, 4.0, 12.0), (-_FAR, -7.0, -3.5, 0.0, 3.5, 7.0, _FAR)
# Share of δ that is added beside the estimated error.
_SPARE = 1e-9


def _clenshaw_curtis(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [-1, 1] and weights of the rule that is exact for polynomials of this even degree."""
    angles = np.pi * np.arange(degree + 1) / degree
    orders = np.arange(0, degree + 1, 2)
    moments = np.where((orders == 0) | (orders == degree), 0.5, 1.0) * 2.0 / (1.0 - orders**2)
    weights = 2.0 / degree * np.cos(angles[:, None] * orders[None]) @ moments
    weights[[0, -1]] *= 0.5
    return np.cos(angles), weights


_NODES, _WEIGHTS = _clenshaw_curtis(_DEGREE)
# Every second node belongs to the rule of half the degree.
_HALF_WEIGHTS = np.zeros(_DEGREE + 1)
_HALF_WEIGHTS[::2] = _clenshaw_curtis(_DEGREE // 2)[1]


def objective_log_delta(
    epsilon: Any, leverage: Any, residual: Any, length: Any, spread: Any, deviation: Any
) -> Float[Array, "..."]:
    """log δ(ε) of N(θ̂, σ²H^{-2}) against N(θ̂', σ²H'^{-2}), ridge regression with N(0, σ²I) noise b in its objective.

    θ = H^{-1}(X'y + b), so b' = b - xe under D' with e = y - x'θ = r - x'H^{-1}b, and with t = |x|e/σ and
    g = x'b/(|x|σ)

        L = -log(1+μ) + t²/2 - tg.

    t = |x|r/σ - κh with κ = |x||H^{-1}x| and h another N(0, 1) of correlation ρ = μ/κ with g. Given h, L is normal with
    mean c(h) and variance t²(1-ρ²), and E[(1 - e^{ε-L})_+] is known; the mean over h is taken by Clenshaw-Curtis rules
    on pieces that end around the places where c(h) = ε or t = 0. The other direction has -L of the same form with
    r/(1+μ), κ/(1+μ), and the signs of log(1+μ) and of ρ changed. What lies beyond |h| = 12 counts in full, so that δ
    is never below 2Φ(-12) = 4e-33. To the integral is added by how much rules of half the degree differ on each piece,
    and 1e-9 of it: an estimate of its error, no bound that is proved. On thousands of cases on a line, where δ is known
    in closed form, with μ from 1e-6 to 1e10, it was never below δ, and above it, apart from those 4e-33, by less than a
    part in 10⁴, in half of the cases by 1e-9.

    **Arguments:** `length`: |x|. `spread`: |H^{-1}x|. `deviation`: σ. The others as for `posterior_sample_log_delta`.
    """
    larger, nothing = _objective_larger(_mixed_log_delta, epsilon, leverage, residual, length, spread, deviation)
    return jnp.where(nothing, -jnp.inf, at_worst(jnp.logaddexp(larger, _LOG_BEYOND)))


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
    parts = order * constant, 0.5 * order * growth * jnp.square(start), 0.5 * jnp.square(linear) / safe
    # Rounding errors, of which those of the room and of a linear term that is a difference may be the largest.
    size = order * start * (jnp.abs(correlation) + growth * kappa)
    lost = sum(jnp.abs(part) for part in parts) + jnp.abs(linear) * size / safe + jnp.abs(jnp.log(safe))
    lost += (1.0 + parts[2]) * (1.0 + order * kappa * (growth * kappa + 2.0)) / safe
    return jnp.where(room > 0, (sum(parts) - 0.5 * jnp.log(safe) + UNIT * lost) / order, jnp.inf)


def _mixed_log_delta(epsilon: Array, constant: Array, start: Array, kappa: Array, correlation: Array) -> Array:
    """log E[(1 - e^{ε-L})_+], L = constant + t²/2 + tg, t = start - κh, with (g, h) of this correlation."""
    ends = _ends(epsilon, constant, start, kappa, correlation)
    half = 0.5 * jnp.diff(ends)[..., None]
    along = (1,) * (half.ndim - 1) + _NODES.shape
    # JAX caches constants in the dtype of first use; convert here so float64 calls get float64 nodes.
    rule = [jnp.reshape(jnp.asarray(part, dtype=half.dtype), along) for part in (_NODES, _WEIGHTS, _HALF_WEIGHTS)]
    nodes = ends[..., :-1, None] + half * (1.0 + rule[0])

    def over_nodes(value: Array) -> Array:
        return value[..., None, None]

    t = over_nodes(start) - over_nodes(kappa) * nodes
    parts = over_nodes(constant), 0.5 * jnp.square(t), t * over_nodes(correlation) * nodes
    variance = jnp.square(t) * (1.0 - jnp.square(over_nodes(correlation)))
    # A rounding error of the mean does at most what as much less of ε does.
    size = jnp.abs(over_nodes(start)) + over_nodes(kappa) * jnp.abs(nodes)
    spare = UNIT * (over_nodes(epsilon) + jnp.abs(parts[0]) + size * (jnp.abs(t) + jnp.abs(nodes)))
    logs = _normal_log_delta(over_nodes(epsilon) - spare, parts[0] + parts[1] + parts[2], variance) + log_density(nodes)
    peak = jnp.max(logs, axis=(-2, -1), keepdims=True)
    values = half * jnp.exp(logs - jnp.where(peak == -jnp.inf, 0.0, peak))
    error = jnp.sum(jnp.abs(jnp.sum(values * (rule[1] - rule[2]), axis=-1)), axis=-1)
    integral = jnp.sum(values * rule[1], axis=(-2, -1))
    return peak[..., 0, 0] + log_positive((1.0 + _SPARE) * integral + error)


def _ends(epsilon: Array, constant: Array, start: Array, kappa: Array, correlation: Array) -> Array:
    """Returns the ends of the pieces to integrate over, values of h within 12 of 0, in order along a last axis."""
    # c(h) - ε = quadratic·h² + linear·h + rest, from E[g|h] = ρh.
    quadratic = 0.5 * jnp.square(kappa) - correlation * kappa
    linear = start * (correlation - kappa)
    rest = constant + 0.5 * jnp.square(start) - epsilon
    discriminant = jnp.square(linear) - 4.0 * quadratic * rest
    # The size of its slope at both roots.
    root = jnp.sqrt(jnp.maximum(discriminant, 0.0))
    partner = -0.5 * (linear + jnp.where(linear >= 0, root, -root))
    ends = [jnp.full_like(start, end) for end in _WEIGHT_ENDS]
    ends += [_ratio(start + side * turn, kappa) for turn in _TURNS for side in (-1.0, 1.0)]
    for zero in (_ratio(partner, quadratic), _ratio(rest, partner)):
        zero = jnp.where(discriminant > 0, zero, _FAR)
        deviation = jnp.abs(start - kappa * zero) * jnp.sqrt(1.0 - jnp.square(correlation))
        widths = [_ratio(jnp.ones_like(root), root), _ratio(deviation, root)]
        ends += [zero] + [zero + side * n * width for width in widths for n in _LAYERS for side in (-1.0, 1.0)]
    return jnp.sort(jnp.clip(jnp.stack(ends, axis=-1), -_FAR, _FAR), axis=-1)


def _normal_log_delta(epsilon: Array, mean: Array, variance: Array) -> Array:
    """log E[(1 - e^{ε-L})_+] for L ~ N(mean, variance), where the variance may be 0 and e^{-L} need not have mean 1."""
    deviation = jnp.sqrt(jnp.maximum(variance, 1e-24))
    at = (epsilon - mean) / deviation
    # e^{ε-mean+variance/2} Φ(-at - deviation), which is φ(at) M(at + deviation).
    other = at + deviation
    tilted = jnp.exp(jnp.minimum((at + 0.5 * deviation) * deviation, 0.0)) * ndtr(-other)
    near = ndtr(-at) - jnp.where(other > 0, jnp.exp(log_density(at)) * mills(jnp.maximum(other, 0.0)), tilted)
    safe = jnp.maximum(at, 0.0)
    tail = log_difference(safe, jnp.maximum(other, 0.0), 1.0, UNIT * safe, UNIT * (safe + deviation))
    return jnp.where(at > 0, tail, log_positive(near + UNIT))


def _ratio(numerator: Array, denominator: Array) -> Array:
    return jnp.where(denominator == 0, _FAR, numerator / jnp.where(denominator == 0, 1.0, denominator))
