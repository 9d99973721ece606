"""Bounds the Hessian about a reference point, with certainty and up to known distances, for an envelope.

Notation. θ₀ is any point of R^d, z₀ = ∇ℓ(θ₀), w_i = ρ''_i(θ₀), H(θ) = Σ ρ''_i(θ) x_i x_i', H₀ = H(θ₀), δ = θ - θ₀,
u_i = x_i'δ, q_i = x_i'H₀^{-1}x_i, h_i = w_i q_i (leverages: Σh_i = d), |v|_A = √(v'Av), N(z) = |z - z₀|_{H₀^{-1}}.

*Determinant.* By the formula of Cauchy and Binet det Σ e^{v_i} x_i x_i' = Σ_S det(X_S)² e^{Σ_{i∈S} v_i}, so log det is
convex in the log-weights v, with gradient h at log w. Hence, with the facts of `curvature_facts` about log ρ'',

    log det H₀ - log det H(θ) ≤ F(½δ'Qδ - g'δ),   g = Σ h_i a_i x_i,   Q = Σ h_i m_i x_i x_i',

for every θ, F as in `bound_determinant`.

*Tilt.* With b = H₀^{-1}g and H̄ = ∫ H(θ₀ + tδ) dt, for which z - z₀ = H̄δ, b'(z - z₀) = g'δ + b'(H̄ - H₀)δ, and
|b'(H̄ - H₀)δ| ≤ ½Σ|b'x_i|K_i u_i² with |ρ'''| ≤ K_i. So g'δ ≥ b'(z - z₀) - ½δ'Bδ with B = Σ|b'x_i|K_i x_i x_i'.

*Radius.* Let |u_i| ≤ U_i where |δ|_{H₀} ≤ ρ and θ ∈ Θ: U_i = min(ρ√q_i, sup over Θ of |x_i'δ|), the latter if
θ₀ ∈ Θ, since segments stay in Θ. The mean of ρ''_i over such a segment is at least κ_i, so H̄ ≥ Σκ_i x_i x_i' = H_low.
With α the least eigenvalue of H_low relative to H₀ and e = δ/|δ|_{H₀}, e'(z - z₀) ≥ α|δ|_{H₀}, and the left side grows
with the length of δ. So with M(ρ) = αρ: N(z) < M(ρ) implies |δ|_{H₀} < ρ; and |δ|_{H₀} ≥ ρ implies N(z) ≥ M(ρ), hence
‖z‖_K ≥ (M(ρ) - N₀)/ν, where N₀ = |z₀|_{H₀^{-1}} and ν = sup {|v|_{H₀^{-1}} : ‖v‖_K ≤ 1}.

*Together.* Where N(z) < M(ρ), α|δ|²_{H₀} ≤ δ'H̄δ = δ'(z - z₀) ≤ |δ|_{H₀}N gives |δ|_{H₀} ≤ N/α, and then δ'H_lowδ ≤
δ'H̄δ gives |δ|²_{H_low} ≤ N²/α. So with λ the largest eigenvalue of Q + B relative to H_low, and λ₀ relative to H₀,

    log det H₀ - log det H(θ(z)) ≤ E(z) = F(½CN² - b'(z - z₀)),   C = min(λ/α, λ₀/α²).

Everything here is computed from private data, and any θ₀ would do: none of it changes the law of a draw.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.chains.exact.smooth.sizes import farthest_length
from kngjax.chains.newton import Point, log_determinant
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, block_sums
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss

# Few records are one block, of which less is compiled; of many so few that what all radii make of it is in a cache.
_ONE_BLOCK, _ROWS_A_BLOCK = 2048, 256
# Radii ρ that are tried, from the length of typical steps to beyond the farthest; and without limit, where Θ is one.
NUM_RADII = 29
# Relative, outward: far more than float64 loses of sums, and in units of κ·d·2^-52 of eigenvalues relative to H₀.
_OUTWARD, _OUTWARD_OF_CONDITION = 1e-9, 100.0
_SMALLEST_REACH, _SMALLEST_CURVATURE = 1e-12, 1e-12
# Beyond this condition number of H₀, with columns scaled alike, it counts as singular.
_WORST_CONDITION = 1e10


class GradientCertificate(NamedTuple):
    """Holds the bounds that `certify` found about one reference point. Private.

    **Arguments:** `point`: θ₀ with z₀ and the inverse factor L^{-1} of H₀ = LL'. `factor`: L. `tilt`: b. `levels`:
    M(ρ), increasing, infinite at last where Θ alone bounds the steps. `curvatures`: C for N below each level,
    increasing. `radii`, `reached`: pairs of ρ and M(ρ). All are filled up with infinities to one length. `everywhere`:
    a bound of E over Θ. `spread`: ν, infinite where nothing is known. `offset`: N₀. `outward`: the relative error by
    which all of them are rounded outward.
    """

    point: Point
    factor: Float[Array, "dimension dimension"]
    tilt: Float[Array, " dimension"]
    levels: Float[Array, " radii"]
    curvatures: Float[Array, " radii"]
    radii: Float[Array, " radii"]
    reached: Float[Array, " radii"]
    everywhere: Float[Array, ""]
    spread: Float[Array, ""]
    offset: Float[Array, ""]
    outward: Float[Array, ""]


def trivial(theta: Vector) -> GradientCertificate:
    """Returns the certificate that knows nothing, of which the envelope is uniform on Θ."""
    dimension, infinite, zero = theta.shape[0], jnp.full(NUM_RADII, jnp.inf), jnp.zeros(())
    point = Point(jnp.asarray(theta), jnp.zeros(dimension), jnp.eye(dimension))
    return GradientCertificate(
        point,
        point.inverse_factor,
        jnp.zeros(dimension),
        levels=infinite,
        curvatures=infinite,
        radii=infinite,
        reached=infinite,
        everywhere=jnp.asarray(jnp.inf),
        spread=jnp.asarray(jnp.inf),
        offset=zero,
        outward=zero,
    )


def certify(target: Target, point: Point) -> GradientCertificate:
    """Returns the certificate about the point θ₀; the trivial one where H₀ is nearly singular, or float64 overflows.

    Runs under jit and vmap.

    **Arguments:** `target`: of a loss with `curvature_facts` on a uniform domain.
    """
    loss, norm, rate, dimension = target.loss, target.norm, target.rate, target.dimension
    assert isinstance(loss, AbstractPredictorLoss)
    assert norm is not None
    nothing = trivial(point.theta)
    factor, condition = _factor(point.inverse_factor)
    known = (target.data.num_records >= dimension) & (condition <= _WORST_CONDITION)
    known &= jnp.all(jnp.isfinite(point.gradient)) & jnp.isfinite(log_determinant(point))
    # Eigenvalues are asked only of finite matrices, one call after another: see `newton.point_of`.
    point = jax.tree.map(functools.partial(jnp.where, known), point, nothing.point)
    factor = jnp.where(known, factor, nothing.factor)
    inverse_factor = point.inverse_factor
    inverse = inverse_factor.T @ inverse_factor
    outward = _OUTWARD + _OUTWARD_OF_CONDITION * dimension * float(np.finfo(float).eps) * condition
    outward = jnp.where(known, outward, _OUTWARD)
    caps = farthest_steps(target, point)
    gradient, curve = _at_reference(target, point)
    known &= jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(curve))
    tilt = inverse @ gradient
    spread = jnp.sqrt(norm.largest_quadratic(inverse)) * (1.0 + outward)
    offset = jnp.linalg.norm(inverse_factor @ point.gradient) * (1.0 + outward)
    typical = spread * dimension / rate
    # The c‖z‖_K beyond which none matters.
    enough = spread * farthest_length(target, log_determinant(point)) / rate + offset
    radii = jnp.append(jnp.geomspace(0.3 * typical, 4.0 * enough, NUM_RADII - 1), jnp.inf)
    lows, bends = _over_radii(target, point, caps, tilt, radii)

    def whiten(matrices: Array) -> Array:
        return inverse_factor @ matrices @ inverse_factor.T

    lows, forms, curve = whiten(lows), whiten(curve[None] + bends), whiten(curve)
    known &= jnp.all(jnp.isfinite(curve))
    are_finite = known & jnp.all(jnp.isfinite(lows) & jnp.isfinite(forms), axis=(1, 2))
    identity = jnp.eye(dimension)
    lows, forms = (jnp.where(are_finite[:, None, None], matrices, identity) for matrices in (lows, forms))
    least, largest, bend = _extremes(lows, forms, jnp.where(known, curve, identity), outward)
    # Beyond the range of float64 nothing is certain, which infinity says.
    curvatures = jnp.minimum(bend[1:] / jnp.square(least), largest / least) * (1.0 + outward)
    kept = are_finite & (least > _SMALLEST_CURVATURE)
    levels, curvatures = jnp.where(kept, least * radii, jnp.inf), jnp.where(kept, curvatures, jnp.inf)
    order = jnp.argsort(levels)
    # |δ|² over Θ in the metric of H₀ is a sum of squares of linear functions.
    farthest = jax.vmap(lambda column: _distance_over(target, column, point.theta))(factor.T)
    far = jnp.sqrt(jnp.sum(jnp.square(farthest)))
    slope = jnp.linalg.norm(inverse_factor @ gradient)
    change = (slope * far + 0.5 * bend[0] * far**2) * (1.0 + outward)
    everywhere = loss.bound_determinant(jnp.where(jnp.isnan(change), jnp.inf, change), dimension)
    found = GradientCertificate(
        point,
        factor,
        tilt,
        levels=levels[order],
        # What holds below a level holds below every smaller one.
        curvatures=jax.lax.cummin(curvatures[order], reverse=True),
        radii=jnp.where(kept, radii, jnp.inf),
        reached=levels,
        everywhere=jnp.asarray(everywhere),
        spread=spread,
        offset=offset,
        outward=outward,
    )
    return jax.tree.map(functools.partial(jnp.where, known), found, nothing)


def bound_log_determinant(certificate: GradientCertificate, loss: AbstractPredictorLoss, z: Array) -> Array:
    """E at one z, an upper bound of log det H₀ - log det H(θ(z)) wherever θ(z) ∈ Θ. Under jit and vmap."""
    centred = z - certificate.point.gradient
    length = jnp.linalg.norm(certificate.point.inverse_factor @ centred) * (1.0 + certificate.outward)
    return bound_from_lengths(certificate, loss, -(jnp.asarray(certificate.tilt) @ centred), length)


def bound_from_lengths(
    certificate: GradientCertificate, loss: AbstractPredictorLoss, linear: Array, length: Array
) -> Array:
    """F(½CN² - b'(z - z₀)) from -b'(z - z₀) and N, increasing in both, or the bound over Θ where that is less."""
    curvatures = jnp.append(jnp.asarray(certificate.curvatures), jnp.inf)
    curvature = curvatures[jnp.searchsorted(jnp.asarray(certificate.levels), length, side="right")]
    value = loss.bound_determinant(linear + 0.5 * curvature * length**2, certificate.tilt.shape[0])
    return jnp.minimum(value, certificate.everywhere)


def farthest_steps(target: Target, point: Point) -> Float[Array, " records"]:
    """sup over Θ of |x_i'(θ - θ₀)| for every record: infinite where θ₀ is outside of Θ."""
    assert isinstance(target.data, Records)
    caps = jax.vmap(lambda row: _distance_over(target, row, point.theta))(jnp.asarray(target.data.x))
    return jnp.where(target.domain.contains(point.theta), caps, jnp.inf)


def _factor(inverse_factor: Array) -> tuple[Array, Array]:
    """L, and κ of H₀ = LL' with its rows and columns scaled to a diagonal of ones; infinite if either is not finite."""
    identity = jnp.eye(inverse_factor.shape[0])
    factor = _inverse(jnp.where(jnp.all(jnp.isfinite(inverse_factor)), inverse_factor, identity))
    scaled = factor / jnp.linalg.norm(factor, axis=1, keepdims=True)
    gram = scaled @ scaled.T
    is_finite = jnp.all(jnp.isfinite(inverse_factor)) & jnp.all(jnp.isfinite(gram))
    values = jnp.linalg.eigvalsh(jnp.where(is_finite, gram, identity))
    return factor, jnp.where(is_finite & (values[0] > 0.0), values[-1] / values[0], jnp.inf)


def _inverse(factor: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(factor, jnp.eye(factor.shape[0]), lower=True)


def _extremes(lows: Array, forms: Array, curve: Array, outward: Array) -> tuple[Array, Array, Array]:
    """For each radius the least eigenvalue of H_low, and λ; and the largest eigenvalues of Q, first, and of each Q + B.

    λ is infinite where the least eigenvalue is not certainly positive. All matrices are finite, and relative to H₀.
    """
    number, identity = lows.shape[0], jnp.eye(lows.shape[-1])
    values = jnp.linalg.eigvalsh(jnp.concatenate([lows, curve[None], forms]))
    least = values[:number, 0] * (1.0 - outward) - outward
    is_positive = least > _SMALLEST_CURVATURE
    inverses = jax.vmap(_inverse)(jnp.linalg.cholesky(jnp.where(is_positive[:, None, None], lows, identity)))
    relative = jnp.linalg.eigvalsh(inverses @ forms @ jnp.swapaxes(inverses, 1, 2))[:, -1]
    largest = jnp.where(is_positive, jnp.maximum(relative, 0.0), jnp.inf)
    return least, largest, jnp.maximum(values[number:, -1], 0.0)


def _at_reference(target: Target, point: Point) -> tuple[Array, Array]:
    """g and Q."""
    loss, records = target.loss, target.data
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)

    def terms(x, y):
        predictors = x @ point.theta
        facts = jax.vmap(loss.curvature_facts)(predictors, y, jnp.ones_like(y))
        leverages = jax.vmap(loss.record_curvature)(predictors, y) * _squares(x, point)
        return (leverages * facts.slope) @ x, (x * (leverages * facts.bend)[:, None]).T @ x

    return block_sums(terms, (records.x, records.y), _ONE_BLOCK)


def _over_radii(target: Target, point: Point, caps: Array, tilt: Array, radii: Array) -> tuple[Array, Array]:
    """H_low and B for each radius, shape (radii, d, d): one product of matrices with the products x_ij x_ik."""
    loss, records, dimension = target.loss, target.data, target.dimension
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)
    rows, columns = np.triu_indices(dimension)
    facts_of = jax.vmap(jax.vmap(loss.curvature_facts, (None, None, 0)))

    def terms(x, y, cap):
        squares = _squares(x, point)[:, None]
        steps = jnp.where(squares > 0.0, radii[None] * jnp.sqrt(squares), 0.0)
        reach = jnp.maximum(jnp.minimum(steps, cap[:, None]), _SMALLEST_REACH)
        facts, pulls = facts_of(x @ point.theta, y, reach), jnp.abs(x @ tilt)[:, None]
        bends = jnp.where(pulls > 0.0, pulls * facts.third, 0.0)
        return (x[:, rows] * x[:, columns]).T @ jnp.concatenate([facts.mean, bends], axis=1)

    block = _ONE_BLOCK if records.x.shape[0] <= _ONE_BLOCK else _ROWS_A_BLOCK
    sums = block_sums(terms, (records.x, records.y, caps), block)
    packed = jnp.zeros((dimension, dimension, sums.shape[1])).at[rows, columns].set(sums).at[columns, rows].set(sums)
    lows, bends = jnp.split(jnp.moveaxis(packed, 2, 0), 2)
    return lows, bends


def _squares(x: Array, point: Point) -> Array:
    return jnp.sum(jnp.square(x @ jnp.asarray(point.inverse_factor).T), axis=1)


def _distance_over(target: Target, row: Array, theta: Array) -> Array:
    lower, upper = target.domain.linear_interval(row, row)
    here = row @ theta
    return jnp.maximum(upper - here, here - lower)
