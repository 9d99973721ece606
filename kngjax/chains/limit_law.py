"""The law that a mechanism has in the limit, about which chains start, and by which they step.

KNG (Reimherr and Awan 2019, Theorem 3.2): with H the Hessian at the minimiser θ̂, ∇ℓ(θ) is about H(θ - θ̂), so
H(θ - θ̂) is about a draw from the K-norm density exp(-c‖z‖_K). The exponential mechanism is about N(θ̂, (cH)^{-1}).
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.data.records import Records, WeightedRecords
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.losses.base import AbstractRowLoss

# Starts are so many times as wide as the law: chains that disagree can then be told from chains that agree.
INFLATION = 2.0
# A start is chosen among so many points of each of two laws: among few where many chains start, which reach the modes
# together.
_CANDIDATES, _FEW_CANDIDATES, _MANY_CHAINS = 32, 8, 128
# A chain computes the densities of so many candidates together at most, over so many records in all.
_TOGETHER, _RECORDS_TOGETHER = 16, 2**13


def sound_hessian(target: Target, centre: Vector) -> Float[Array, "dimension dimension"]:
    """H at the centre, with directions in which it vanishes given a little curvature."""
    loss, dimension = target.loss, target.dimension
    is_flat = isinstance(loss, AbstractRowLoss) and type(loss).hessian is AbstractRowLoss.hessian
    if is_flat and loss.gradient_is_piecewise_constant(dimension):
        hessian = _differences(target, centre)
    else:
        hessian = loss.hessian(centre, target.data)
    # Responses of astronomical size overflow: then any curvature serves, as long as the start is a number.
    hessian = jnp.where(jnp.all(jnp.isfinite(hessian)), hessian, jnp.eye(target.dimension))
    diagonal = jnp.diagonal(hessian)
    floor = jnp.maximum(1e-8 * jnp.max(diagonal), 1e-12)
    return hessian + floor * jnp.eye(target.dimension)


def _differences(target: Target, centre: Vector) -> Float[Array, "dimension dimension"]:
    """Differences of the gradient over a hundredth of Θ's width, where a loss has no curvature of its own."""
    widths = target.domain.widths(target.dimension)
    steps = 0.01 * jnp.where(jnp.isfinite(widths), widths, 100.0)

    def change(step):
        above, below = (target.loss.gradient(centre + sign * step, target.data) for sign in (1.0, -1.0))
        return above - below

    slopes = jax.vmap(change)(jnp.diag(steps)) / (2.0 * steps[:, None])
    sizes, axes = jnp.linalg.eigh(0.5 * (slopes + slopes.T))
    return (axes * jnp.maximum(sizes, 1e-3 * jnp.max(sizes))[None]) @ axes.T


class LimitLaw(NamedTuple):
    """Holds the limit law. **Arguments:** `centre`: θ̂, shape (d,); `factor`: L with LL' = H, the Hessian at θ̂."""

    centre: Float[Array, " dimension"]
    factor: Float[Array, "dimension dimension"]

    def gauge(self, norm: AbstractNorm, theta: Vector) -> Float[Array, ""]:
        """‖H(θ - θ̂)‖_K."""
        return norm(self.factor @ ((theta - self.centre) @ self.factor))

    def log_density(self, target: Target, scale: float, theta: Vector) -> Float[Array, ""]:
        """Returns the log-density at θ of this law, `scale` times as wide; NaN where it overflows."""
        dimension = target.dimension
        log_root = jnp.sum(jnp.log(jnp.diagonal(self.factor)))
        if target.norm is None:
            turned, precision = (theta - self.centre) @ self.factor, target.rate / scale**2
            return log_root + 0.5 * dimension * jnp.log(precision / (2.0 * math.pi)) - 0.5 * precision * turned @ turned
        rate = target.rate / scale
        return 2.0 * log_root - k_norm_log_mass(target.norm, rate, dimension) - rate * self.gauge(target.norm, theta)


def inverse_directions(target: Target, centre: Vector) -> Float[Array, "dimension dimension"]:
    """Returns rows H^{-1}e_j, scaled to unit length: along each about one coordinate of the gradient changes."""
    inverse = jnp.linalg.inv(sound_hessian(target, centre))
    return inverse / jnp.linalg.norm(inverse, axis=1, keepdims=True)


def scattered(
    target: Target,
    centre: Vector,
    hessian: Array,
    key: PRNGKeyArray,
    anywhere: Float[Array, "draws dimension"],
    scale: float,
) -> tuple[Float[Array, "draws dimension"], Bool[Array, " draws"]]:
    """Scatters points of Θ about the centre by multiples of the limit law's noise, and marks the noise's own points.

    A point outside Θ is drawn back along the ray from the domain's interior point, to a random point of it, so that
    no two points coincide: an ensemble on a face of Θ could never leave it. Where Θ is the support of a base measure,
    or the point is not a number, a draw from the base measure stands in for it.

    **Arguments:** `hessian`: at the centre. `anywhere`: draws from the base measure, one a point. `scale`: how many
    times as wide as the law.
    """
    noise_key, share_key = jax.random.split(key)
    shape = anywhere.shape
    if target.norm is None:
        factor = jnp.linalg.cholesky(hessian)
        noise = jax.random.normal(noise_key, shape) / jnp.sqrt(target.rate)
        steps = jax.scipy.linalg.solve_triangular(factor, noise.T, lower=True, trans="T").T
    else:
        noise = k_norm_noise(target.norm_at(centre), noise_key, target.rate, shape[:1], target.dimension)
        steps = jnp.linalg.solve(hessian, noise.T).T
    points = jnp.broadcast_to(jnp.asarray(centre), shape) + scale * steps
    known = jnp.all(jnp.isfinite(points), axis=1)
    inside = known & jax.vmap(target.domain.contains)(points)
    if target.domain.is_uniform:
        interior = target.domain.interior_point(target.dimension)
        rays = points - jnp.broadcast_to(interior, shape)
        reach = jax.vmap(lambda ray: target.domain.chord(interior, ray)[1])(rays)
        share = jax.random.uniform(share_key, shape[:1]) ** (1.0 / target.dimension) * reach
        points = jnp.where(inside[:, None], points, jnp.broadcast_to(interior, shape) + share[:, None] * rays)
        inside = known
    return jnp.where(inside[:, None], points, anywhere), inside


def starts(
    target: Target, centre: Vector, key: PRNGKeyArray, num_points: int, num_chains: int = 1
) -> Float[Array, "points dimension"]:
    """Draws points of Θ where chains start, about from a density twice as wide as the mechanism's.

    That density is f at c/`INFLATION` for KNG, and at c/`INFLATION`² for the exponential mechanism. The draw is chosen
    with chances proportional to this density over that of the candidates (Rubin 1988), of which half come from the
    limit law about the centre, as wide, and half from the base measure; of these f itself decides, or where Θ is much
    larger than the law they would begin where nothing of f is. So chains disagree at first whatever f is, and
    where it has several modes that candidates reach, they begin in several. Where a chain moves several points they
    scatter about its draw by the limit law itself: wider ensembles take steps that are too long. Private; the law that
    a chain tends to does not depend on it.

    **Arguments:** `centre`: an estimate of θ, shape (d,). `num_points`: of one chain. `num_chains`: how many start.
    """
    num_candidates = _CANDIDATES if num_chains <= _MANY_CHAINS else _FEW_CANDIDATES
    base_key, near_key, choice_key, each_base_key, each_key = jax.random.split(key, 5)
    anywhere = target.domain.draw(base_key, (num_candidates,), target.dimension)
    hessian = sound_hessian(target, centre)
    near, own = scattered(target, centre, hessian, near_key, anywhere, INFLATION)
    # Points from the base measure come first, so that one of them is taken where no density is a number.
    points, candidates = jnp.concatenate([anywhere, near]), jnp.concatenate([jnp.ones(num_candidates, bool), own])
    law = LimitLaw(jnp.asarray(centre), jnp.linalg.cholesky(hessian))
    of_near = target if target.norm is None else dataclasses.replace(target, norm=target.norm_at(centre))
    wider = target.rate / (INFLATION**2 if target.norm is None else INFLATION)

    def parts(theta):
        log_base, log_near = target.domain.log_density(theta), law.log_density(of_near, INFLATION, theta)
        log_proposal = jnp.logaddexp(jnp.where(jnp.isnan(log_near), -jnp.inf, log_near), log_base)
        score = target.score(theta)
        return jnp.where(jnp.isfinite(score), score, jnp.inf), log_base - log_proposal

    data = target.data
    num_records = data.rows.num_records if isinstance(data, Records | WeightedRecords) else 1
    # A divisor of their number, so that no rest needs a program of its own.
    together = math.gcd(_TOGETHER, 2 ** max(0, (_RECORDS_TOGETHER // max(1, num_records)).bit_length() - 1))
    scores, log_ratios = jax.lax.map(parts, points, batch_size=together)
    rates = jnp.concatenate([jnp.full(num_candidates, target.rate), jnp.full(num_candidates, wider)])
    log_weights = log_ratios - rates * (scores - jnp.min(scores))
    log_weights = jnp.where(candidates & jnp.isfinite(log_weights), log_weights, -jnp.inf)
    theta = points[jnp.argmax(log_weights + jax.random.gumbel(choice_key, log_weights.shape, log_weights.dtype))]
    if num_points == 1:
        return theta[None]
    anywhere = target.domain.draw(each_base_key, (num_points,), target.dimension)
    return scattered(target, theta, hessian, each_key, anywhere, 1.0)[0]


def limit_law_scales(target: Target, centre: Vector) -> Float[Array, " dimension"]:
    """Step scales of about half the conditional spread of each coordinate, at most the domain's width.

    KNG: along e_j the density spreads over some d/(c‖He_j‖_K), since the gauge is Gamma(d)/c. Exponential mechanism:
    the conditional deviation is (cH_jj)^-½.
    """
    hessian = sound_hessian(target, centre)
    if target.norm is None:
        scales = 2.4 / jnp.sqrt(target.rate * jnp.diagonal(hessian))
    else:
        scales = (target.dimension + 1) / (2.0 * target.rate * jax.vmap(target.norm_at(centre))(hessian))
    return jnp.minimum(scales, target.domain.widths(target.dimension))
