"""What is certain of the Hessian about a reference point, and how far: the bounds that the envelope is made of.

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

`kngjax.samplers.exact.smooth.moments` finds another α with e'(z - z₀) ≥ α|δ|_{H₀}; the larger of both is taken.

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
import scipy.linalg
from jaxtyping import Array, Float

from kngjax.core.arrays import Vector, block_sums
from kngjax.core.compiling import Compiled
from kngjax.data.records import Records
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.exact.smooth.moments import least_curvatures
from kngjax.samplers.newton import Point
from kngjax.samplers.target import Target

# Radii ρ that are tried, from the length of typical steps to beyond the farthest; and without limit, where Θ is one.
_NUM_RADII = 28
# Relative, outward: far more than float64 loses of sums, and in units of κ·d·2^-52 of eigenvalues relative to H₀.
_OUTWARD, _OUTWARD_OF_CONDITION = 1e-9, 100.0
_SMALLEST_REACH, _SMALLEST_CURVATURE = 1e-12, 1e-12


class Certificate(NamedTuple):
    """What `certify` found about one reference point. Private.

    **Arguments:** `point`: θ₀ with z₀ and the inverse factor L^{-1} of H₀ = LL'. `tilt`: b. `levels`: M(ρ), increasing,
    infinite at last where Θ alone bounds the steps. `curvatures`: C for N below each level, increasing. `radii`,
    `reached`: pairs of ρ and M(ρ). All are filled up with infinities to one length, so that programs serve other data
    too. `everywhere`: a bound of E over Θ. `spread`: ν. `offset`: N₀. `outward`: the
    relative error by which all of them are rounded outward.
    """

    point: Point
    tilt: Float[np.ndarray, " dimension"]
    levels: Float[np.ndarray, " levels"]
    curvatures: Float[np.ndarray, " levels"]
    radii: Float[np.ndarray, " radii"]
    reached: Float[np.ndarray, " radii"]
    everywhere: float
    spread: float
    offset: float
    outward: float

    @property
    def log_determinant(self) -> float:
        """log det H₀."""
        return -2.0 * float(np.sum(np.log(np.diagonal(self.point.inverse_factor))))


def trivial(target: Target, theta: Vector) -> Certificate:
    """The certificate that knows nothing, of which the envelope is uniform on Θ."""
    dimension, nothing = target.dimension, np.full(_NUM_RADII + 1, np.inf)
    point = Point(jnp.asarray(theta), jnp.zeros(dimension), jnp.eye(dimension))
    return Certificate(point, np.zeros(dimension), nothing, nothing, nothing, nothing, np.inf, np.inf, 0.0, 0.0)


def certify(
    target: Target, point: Point, farthest: float, condition: float, by_moments: bool = False
) -> Certificate | None:
    """The certificate about the point θ₀; None where nothing is certain about any radius.

    **Arguments:** `target`: of a loss with `curvature_facts` on a uniform domain. `point`: with a finite inverse
    factor. `farthest`: the largest c‖z‖_K that matters. `condition`: κ of H₀, of whatever scaling of its columns.
    `by_moments`: whether fourth moments, which take longer, are used too.
    """
    loss, records, norm, rate = target.loss, target.data, target.norm, float(target.rate)
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)
    assert norm is not None
    inverse_factor = np.asarray(point.inverse_factor)
    dimension = inverse_factor.shape[0]
    outward = _OUTWARD + _OUTWARD_OF_CONDITION * dimension * float(np.finfo(float).eps) * condition
    inverse = inverse_factor.T @ inverse_factor
    gradient, curve, cap = jax.tree.map(np.array, _at_reference(target, point))
    if not (np.all(np.isfinite(gradient)) and np.all(np.isfinite(curve))):
        return None
    tilt = inverse @ gradient
    spread = float(np.sqrt(_largest_quadratic(norm, inverse))) * (1.0 + outward)
    offset = float(np.linalg.norm(inverse_factor @ point.gradient)) * (1.0 + outward)
    typical, most = spread * dimension / rate, spread * farthest / rate + offset
    radii = np.append(np.geomspace(0.3 * typical, 4.0 * most, _NUM_RADII), np.inf)
    lows, bends = jax.tree.map(np.array, _over_radii(target, point, cap, tilt, radii))

    def whiten(matrix: np.ndarray) -> np.ndarray:
        return inverse_factor @ matrix @ inverse_factor.T

    averages = np.full(radii.size, -np.inf)
    if by_moments:
        averages[:-1] = least_curvatures(target, point, cap, radii[:-1], most, outward)
    levels, curvatures, kept = [], [], []
    for radius, low, bend, average in zip(radii, lows, bends, averages, strict=True):
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(bend))):
            continue
        low, form = whiten(low), whiten(curve + bend)
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(form))):
            continue
        worst = np.linalg.eigvalsh(low)[0] * (1.0 - outward) - outward
        least = max(worst, average)
        if least <= _SMALLEST_CURVATURE:
            continue
        # Beyond the range of float64 nothing is certain, which infinity says.
        with np.errstate(over="ignore"):
            curvature = np.divide(max(np.linalg.eigvalsh(form)[-1], 0.0), least**2)
            if worst > _SMALLEST_CURVATURE:
                largest = scipy.linalg.eigh(form, low, eigvals_only=True)[-1]
                curvature = min(curvature, np.divide(max(largest, 0.0), least))
            curvatures.append(curvature * (1.0 + outward))
        levels.append(least * radius)
        kept.append(radius)
    if not levels:
        return None
    order = np.argsort(levels)
    # What holds below a level holds below every smaller one.
    curvatures = np.minimum.accumulate(np.array(curvatures)[order][::-1])[::-1]
    finite = np.isfinite(kept)
    # |δ|² over Θ in the metric of H₀ is a sum of squares of linear functions.
    far = float(np.sqrt(np.sum(np.square(_farthest(target, np.linalg.inv(inverse_factor), point.theta)))))
    slope, bend = np.linalg.norm(inverse_factor @ gradient), max(np.linalg.eigvalsh(whiten(curve))[-1], 0.0)
    change = (slope * far + 0.5 * bend * far**2) * (1.0 + outward)
    everywhere = float(_bound_determinant(loss, change, dimension))
    return Certificate(
        point,
        tilt,
        _filled(np.array(levels)[order]),
        _filled(curvatures),
        _filled(np.array(kept)[finite]),
        _filled(np.array(levels)[finite]),
        everywhere,
        spread,
        offset,
        outward,
    )


def _filled(values: np.ndarray) -> np.ndarray:
    return np.append(values, np.full(_NUM_RADII + 1 - values.size, np.inf))


def bound_log_determinant(certificate: Certificate, loss: AbstractPredictorLoss, z: Array) -> Array:
    """E at one z, an upper bound of log det H₀ - log det H(θ(z)) wherever θ(z) ∈ Θ. Under jit and vmap."""
    centred = z - certificate.point.gradient
    length = jnp.linalg.norm(certificate.point.inverse_factor @ centred) * (1.0 + certificate.outward)
    return bound_from_lengths(certificate, loss, -(jnp.asarray(certificate.tilt) @ centred), length)


def bound_from_lengths(certificate: Certificate, loss: AbstractPredictorLoss, linear: Array, length: Array) -> Array:
    """F(½CN² - b'(z - z₀)) from -b'(z - z₀) and N, increasing in both, or the bound over Θ where that is less."""
    curvatures = jnp.append(jnp.asarray(certificate.curvatures), jnp.inf)
    curvature = curvatures[jnp.searchsorted(jnp.asarray(certificate.levels), length, side="right")]
    value = loss.bound_determinant(linear + 0.5 * curvature * length**2, certificate.tilt.shape[0])
    return jnp.minimum(value, certificate.everywhere)


@Compiled
def _at_reference(target: Target, point: Point) -> tuple[Array, Array, Array]:
    """g, Q and sup over Θ of |x_i'(θ - θ₀)| for every record: infinite where θ₀ is outside of Θ."""
    loss, records = target.loss, target.data
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)

    def terms(x, y):
        predictors = x @ point.theta
        facts = jax.vmap(loss.curvature_facts)(predictors, y, jnp.ones_like(y))
        leverages = jax.vmap(loss.record_curvature)(predictors, y) * _squares(x, point)
        return (leverages * facts.slope) @ x, (x * (leverages * facts.bend)[:, None]).T @ x

    gradient, curve = block_sums(terms, (records.x, records.y))
    caps = jax.vmap(lambda row: _distance_over(target, row, point.theta))(jnp.asarray(records.x))
    return gradient, curve, jnp.where(target.domain.contains(jnp.asarray(point.theta)), caps, jnp.inf)


@Compiled
def _over_radii(target: Target, point: Point, caps: Array, tilt: Array, radii: Array) -> tuple[Array, Array]:
    """H_low and B for each radius, shape (radii, d, d)."""
    loss, records = target.loss, target.data
    assert isinstance(loss, AbstractPredictorLoss)
    assert isinstance(records, Records)

    def at(radius):
        def terms(x, y, cap):
            squares = _squares(x, point)
            steps = jnp.where(squares > 0.0, radius * jnp.sqrt(squares), 0.0)
            reach = jnp.maximum(jnp.minimum(steps, cap), _SMALLEST_REACH)
            facts = jax.vmap(loss.curvature_facts)(x @ point.theta, y, reach)
            pulls = jnp.abs(x @ tilt)
            bends = jnp.where(pulls > 0.0, pulls * facts.third, 0.0)
            return (x * facts.mean[:, None]).T @ x, (x * bends[:, None]).T @ x

        return block_sums(terms, (records.x, records.y, caps))

    return jax.lax.map(at, jnp.asarray(radii))


@Compiled
def _farthest(target: Target, factor: Array, theta: Array) -> Array:
    """sup over Θ of |l_k'(θ - θ₀)| for the columns l_k of L."""
    return jax.vmap(lambda row: _distance_over(target, row, theta))(jnp.asarray(factor).T)


@Compiled
def _largest_quadratic(norm: AbstractNorm, matrix: Array) -> Array:
    return norm.largest_quadratic(matrix)


@functools.partial(Compiled, static_argnames="dimension")
def _bound_determinant(loss: AbstractPredictorLoss, change: Array, dimension: int) -> Array:
    return jnp.asarray(loss.bound_determinant(change, dimension))


def _squares(x: Array, point: Point) -> Array:
    return jnp.sum(jnp.square(x @ jnp.asarray(point.inverse_factor).T), axis=1)


def _distance_over(target: Target, row: Array, theta: Array) -> Array:
    lower, upper = target.domain.linear_interval(row, row)
    here = row @ theta
    return jnp.maximum(upper - here, here - lower)
