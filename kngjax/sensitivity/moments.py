"""Bounds in float64 what one record changes of X'X, X'y, their smallest eigenvalue and ridge regression.

The bounds rest on X = sup ‖x‖_2 and Y = sup |y| of one record. A record of weight w counts as √w·(x, y), so weights up
to W give √W·sup ‖x‖_2 and √W·sup |y| (`kngjax.sensitivity.weighted`).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.losses.base import Number
from kngjax.sensitivity import gradients, weighted

# The relative error of a few operations, by which bounds are rounded outward.
_ROUNDING = 1e-14


def feature_radius(bounds: Bounds, dimension: int) -> Float[Array, ""]:
    """X = sup √w·‖x‖_2 of one record, the intercept included; w = 1 without weights."""
    return weighted.root_times(bounds, gradients.feature_radius(bounds, dimension))


def response_radius(bounds: Bounds) -> Float[Array, ""]:
    """Y = sup √w·|y| of one record; the bounds must have a response."""
    return weighted.root_times(bounds, gradients.response_radius(bounds))


def radii(bounds: Bounds, dimension: int) -> tuple[float, float]:
    """X and Y as numbers of 64 bits, outside of compiled code."""
    with float64():
        return float(feature_radius(bounds, dimension)), float(response_radius(bounds))


def explain_radii(bounds: Bounds, x: float, y: float) -> str:
    """Says in words what the radii X and Y bound. **Arguments:** `x`, `y`: X and Y."""
    if weighted.most(bounds) is None:
        return f"|x| <= {x:.6g} and |y| <= {y:.6g}"
    largest = weighted.largest(bounds)
    return (
        f"sqrt(w)*|x| <= {x:.6g} and sqrt(w)*|y| <= {y:.6g} with weights w of at most {largest:.6g}, and "
        "a record counts as sqrt(w)*(x, y) does without a weight"
    )


def moment_changes(bounds: Bounds, adjacency: Adjacency, dimension: int) -> tuple[Array, Array]:
    """Bounds one record's change of X'X in the Frobenius norm, and of X'y in the l2 norm.

    add_remove: ‖xx'‖_F = ‖x‖² ≤ X² and ‖xy‖ ≤ XY. replace: ‖xx' - zz'‖_F² = |x|⁴ + |z|⁴ - 2(x'z)² ≤ 2X⁴, and 2XY.
    """
    x, y = feature_radius(bounds, dimension), response_radius(bounds)
    if adjacency is Adjacency.REPLACE:
        return jnp.sqrt(2.0) * jnp.square(x), 2.0 * x * y
    return jnp.square(x), x * y


def absolute_moment_changes(bounds: Bounds, adjacency: Adjacency, dimension: int) -> tuple[Array, Array]:
    """Bounds one record's change of the upper triangle of X'X, with its diagonal, and of X'y in the l1 norm.

    Σ_{j≤k}|x_j x_k| = (‖x‖_1² + ‖x‖_2²)/2 and |y|‖x‖_1, with ‖x‖_1 and ‖x‖_2 at their largest; twice that for an
    exchange.
    """
    x, y = feature_radius(bounds, dimension), response_radius(bounds)
    lower, upper = bounds.features(dimension)
    total = weighted.root_times(bounds, jnp.sum(jnp.maximum(jnp.abs(lower), jnp.abs(upper))))
    times = 2.0 if adjacency is Adjacency.REPLACE else 1.0
    return times * 0.5 * (jnp.square(total) + jnp.square(x)), times * y * total


def eigenvalue_change(bounds: Bounds, dimension: int) -> Float[Array, ""]:
    """Bounds one record's change of the smallest eigenvalue of X'X by X², under both adjacencies.

    One record more adds xx', which raises it by something in [0, |x|²] (Weyl); an exchange adds one and takes one.
    """
    return jnp.square(feature_radius(bounds, dimension))


def largest_ridge_residual(
    bounds: Bounds, regularization: Number, num_others: Number, leverage: Array, dimension: int
) -> Float[Array, "*leverages"]:
    """sup |y - x'θ̂| over n ridge regressions θ̂ = H^{-1}X'y and records of leverage μ = x'H^{-1}x, H = X'X + λI.

    |x'θ̂| ≤ Y·‖XH^{-1}x‖_1 ≤ Y√n·√(x'H^{-1}X'XH^{-1}x) = Y√n·√(μ - λ‖H^{-1}x‖²), and ‖H^{-1}x‖ ≥ μ/‖x‖ ≥ μ/X: so
    |r| ≤ Y(1 + √(nμ(1 - λμ/X²))). It is attained where all other records are (±a, Y) along x for one a ≤ X, and is at
    most Y(1 + X√n/(2√λ)).

    **Arguments:** `num_others`: n, the records that θ̂ is computed from. `leverage`: μ ∈ [0, X²/λ].
    """
    y, ridge = response_radius(bounds), jnp.asarray(regularization)
    fitted = 1.0 - ridge * leverage / jnp.square(feature_radius(bounds, dimension))
    return y * (1.0 + jnp.sqrt(num_others * leverage * jnp.maximum(fitted, 0.0)))


def ridge_changes(
    bounds: Bounds, regularization: Number, num_others: Number, dimension: int, resolution: int = 4096
) -> Float[Array, ""]:
    """sup ‖θ̂' - θ̂‖_2 when a record joins n others in a ridge regression.

    θ̂' - θ̂ = H^{-1}x·r/(1+μ). With p = ‖H^{-1}x‖² and f = μ - λp ≥ 0, the fitted part of the leverage, |r| ≤
    Y(1+√(nf)) as in `largest_ridge_residual`, so with l = √p it is at most l·Y(1+√(nf))/(1+λl²+f), where l ≤ X/λ and
    f ≤ F(l) = l(X - λl). On a cell a ≤ l ≤ b this is at most b·Y(1+√(nf))/(1+λa²+f) with f at most the largest F on
    the cell, which is F at the point of [a, b] nearest to X/(2λ); and for given a the best f is the root of the
    derivative or the end of its range. What is returned is the largest of these bounds over cells whose ends are in
    proportion, the first of which begins at 0.
    """
    x, ridge = feature_radius(bounds, dimension), jnp.asarray(regularization)
    n, y = jnp.maximum(jnp.asarray(num_others), 1e-9), response_radius(bounds)
    span = jnp.log(1e3) + jnp.maximum(jnp.log(jnp.square(x) / ridge), 0.0)
    ends = x / ridge * jnp.exp(-span * jnp.linspace(1.0, 0.0, resolution))
    lower, upper = jnp.concatenate([jnp.zeros(1), ends[:-1]]), ends
    inside = jnp.clip(0.5 * x / ridge, lower, upper)
    most = inside * (x - ridge * inside)
    spread = 1.0 + ridge * jnp.square(lower)
    # d/df log: √n/(2√f(1+√(nf))) = 1/(1+λa²+f) at √f = √(1/n + 1 + λa²) - 1/√n.
    best = jnp.square(jnp.sqrt(1.0 / n + spread) - jnp.sqrt(1.0 / n))
    fitted = jnp.clip(best, 0.0, most)
    return jnp.max(upper * y * (1.0 + jnp.sqrt(n * fitted)) / (spread + fitted)) * (1.0 + _ROUNDING)


def residual_log_change(bounds: Bounds, curvature: Array, dimension: int) -> Float[Array, "*curvatures"]:
    """log(1 + X²/h): by how much one record more or less changes log(Y + X‖θ̂‖) in a ridge regression, h ≤ λ + λ_min.

    λ_min is the smallest eigenvalue of the smaller of the two data sets, of which H, θ̂ and r = y - x'θ̂ are here. With
    the record θ̂' = θ̂ + H^{-1}x·r/(1+μ), where |r| ≤ Y + X‖θ̂‖ and X‖H^{-1}x‖ ≤ X²/h. Without it θ̂ = θ̂' - H^{-1}x·r'
    with r' = y - x'θ̂', where |r'| ≤ Y + X‖θ̂'‖. Each is at most 1 + X²/h times the other.
    """
    return jnp.log1p(jnp.square(feature_radius(bounds, dimension)) / curvature)
