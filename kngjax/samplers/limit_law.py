"""The law that a mechanism has in the limit: where chains start, and how far they step.

KNG (Reimherr and Awan 2019, Theorem 3.2): with H the Hessian at the minimiser θ̂, ∇ℓ(θ) is about H(θ - θ̂), so
H(θ - θ̂) is about a draw from the K-norm density exp(-c‖z‖_K). The exponential mechanism is about N(θ̂, (cH)^{-1}).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.core.arrays import Vector
from kngjax.geometry.norms import k_norm_noise
from kngjax.samplers.target import Target

# A start a little wider than the law: chains that disagree can then be told from chains that agree.
INFLATION = 1.5


def sound_hessian(target: Target, centre: Vector) -> Float[Array, "dimension dimension"]:
    """H at the centre, with directions in which it vanishes given a little curvature."""
    hessian = target.loss.hessian(centre, target.data)
    # Responses of astronomical size overflow: then any curvature serves, as long as the start is a number.
    hessian = jnp.where(jnp.all(jnp.isfinite(hessian)), hessian, jnp.eye(target.dimension))
    diagonal = jnp.diagonal(hessian)
    floor = jnp.maximum(1e-8 * jnp.max(diagonal), 1e-12)
    return hessian + floor * jnp.eye(target.dimension)


def inverse_directions(target: Target, centre: Vector) -> Float[Array, "dimension dimension"]:
    """Rows H^{-1}e_j, scaled to unit length: along each about one coordinate of the gradient changes."""
    inverse = jnp.linalg.inv(sound_hessian(target, centre))
    return inverse / jnp.linalg.norm(inverse, axis=1, keepdims=True)


def limit_law_draws(
    target: Target, centre: Vector, key: PRNGKeyArray, num_draws: int
) -> Float[Array, "draws dimension"]:
    """Points of Θ scattered about the centre by `INFLATION` times the limit law's noise.

    A point outside Θ is drawn back along the ray from the domain's interior point, to a random point of it, so that
    no two points coincide: an ensemble on a face of Θ could never leave it. Where Θ is the support of a base measure,
    or the point is not a number, a draw from the base measure stands in for it.
    """
    noise_key, share_key, base_key = jax.random.split(key, 3)
    hessian = sound_hessian(target, centre)
    shape = (num_draws, target.dimension)
    if target.norm is None:
        factor = jnp.linalg.cholesky(hessian)
        noise = jax.random.normal(noise_key, shape) / jnp.sqrt(target.rate)
        steps = jax.scipy.linalg.solve_triangular(factor, noise.T, lower=True, trans="T").T
    else:
        noise = k_norm_noise(target.norm_at(centre), noise_key, target.rate, shape[:1], target.dimension)
        steps = jnp.linalg.solve(hessian, noise.T).T
    points = jnp.broadcast_to(jnp.asarray(centre), shape) + INFLATION * steps
    known = jnp.all(jnp.isfinite(points), axis=1)
    inside = known & jax.vmap(target.domain.contains)(points)
    anywhere = target.domain.draw(base_key, shape[:1], target.dimension)
    if target.domain.is_uniform:
        interior = target.domain.interior_point(target.dimension)
        rays = points - jnp.broadcast_to(interior, shape)
        reach = jax.vmap(lambda ray: target.domain.chord(interior, ray)[1])(rays)
        share = jax.random.uniform(share_key, shape[:1]) ** (1.0 / target.dimension) * reach
        instead = jnp.where(known[:, None], jnp.broadcast_to(interior, shape) + share[:, None] * rays, anywhere)
    else:
        instead = anywhere
    return jnp.where(inside[:, None], points, instead)


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
