"""Proposals from an envelope, and what they are accepted with: the compiled parts of a search.

A proposal z of a shell is accepted with probability exp(-(t - t_{k-1}))·exp(E(z) - E_k), which needs no record, times
1_Θ(θ(z))·(det H₀/det H(θ(z)))·exp(-E(z)), which is at most 1 by the certificate; a proposal θ of a piece of Θ with
probability exp(T_g - c‖∇ℓ(θ)‖_K) if c‖∇ℓ(θ)‖_K ≥ t_K. What was accepted has exactly the law f, in whatever order.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from kngjax.chains.exact.smooth.gradient_certificate import bound_log_determinant
from kngjax.chains.exact.smooth.gradient_envelope import Envelope
from kngjax.chains.newton import Point, evaluate, gradient, log_determinant, solve
from kngjax.chains.target import Target
from kngjax.losses.base import AbstractPredictorLoss


class Proposals(NamedTuple):
    """Holds a batch of proposals.

    **Arguments:** `component`: shells, then pieces. `z`, `theta`: of either kind. `first`: log of a shell's first
    probability. `log_left`: log of what its uniform variable leaves for the second, -inf where the first refused it;
    for a piece log of the variable itself. `bound`: E(z). `within`: whether θ belongs to its piece and to Θ.
    """

    component: Array
    z: Array
    theta: Array
    first: Array
    log_left: Array
    bound: Array
    within: Array


def propose(target: Target, envelope: Envelope, key: PRNGKeyArray, number: int | Array, batch: int) -> Proposals:
    """Makes a batch of independent proposals, the batch of this number."""
    norm, domain, loss, dimension = target.norm, target.domain, target.loss, target.dimension
    assert norm is not None
    assert isinstance(loss, AbstractPredictorLoss)
    certificate, point = envelope.certificate, envelope.certificate.point
    keys = jax.random.split(jax.random.fold_in(key, number), 4)
    of_component, of_length, of_acceptance = jax.random.uniform(keys[0], (3, batch))
    component = components(jnp.asarray(envelope.log_masses), of_component)
    # 1 - U lies in (0, 1], where its logarithm is finite.
    log_uniform = jnp.log1p(-of_acceptance)
    num_shells = envelope.heights.shape[0]

    # Shells: t^d is uniform between its ends, the direction that of a uniform point of the ball.
    shell = jnp.minimum(component, num_shells - 1)
    edges = jnp.asarray(envelope.edges)
    inner, outer = edges[shell], edges[shell + 1]
    share = (inner / jnp.where(outer > 0, outer, 1.0)) ** dimension
    length = outer * (share + (1.0 - share) * of_length) ** (1.0 / dimension)
    balls = norm.draw_from_ball(keys[1], (batch,), dimension)
    z = (length / target.rate / jax.vmap(norm)(balls))[:, None] * balls
    bound = jax.vmap(lambda one: bound_log_determinant(certificate, loss, one))(z)
    heights = jnp.asarray(envelope.heights)[shell]
    # The first stage refuses with probability 1 - e^a; given that it did not, U·e^-a is uniform again.
    first = (inner - length) + (bound - heights)
    left = jnp.where(log_uniform <= first, log_uniform - first, -jnp.inf)

    # Pieces of Θ: between two ellipsoids, or all of Θ beyond the last.
    radii = jnp.asarray(envelope.radii)
    piece = jnp.clip(component - num_shells, 0, radii.shape[0] - 1)
    is_last = radii[piece] >= radii[-1]
    inner, outer = radii[piece], radii[jnp.minimum(piece + 1, radii.shape[0] - 1)]
    share = jnp.where(is_last, 0.0, (inner / jnp.where(outer > 0, outer, 1.0)) ** dimension)
    radius = outer * (share + (1.0 - share) * of_length) ** (1.0 / dimension)
    normals = jax.random.normal(keys[2], (batch, dimension))
    steps = (radius / jnp.linalg.norm(normals, axis=1))[:, None] * normals
    middle = jnp.asarray(point.theta)[None]
    near = middle + steps @ jnp.asarray(point.inverse_factor)
    theta = jnp.where(is_last[:, None], domain.draw(keys[3], (batch,), dimension), near)
    distance = jnp.linalg.norm((theta - middle) @ jnp.asarray(certificate.factor), axis=1)
    within = jax.vmap(domain.contains)(theta) & (~is_last | (distance >= radii[-1]))
    is_shell = component < num_shells
    return Proposals(component, z, theta, first, jnp.where(is_shell, left, log_uniform), bound, within)


def components(log_masses: Array, uniforms: Array) -> Array:
    """Shells and pieces with probabilities in proportion to their masses, of uniform numbers below 1."""
    sums = jnp.cumsum(jnp.exp(log_masses - jnp.max(log_masses)))
    # The last with any mass, where a product is rounded up to the sum of all.
    last = jnp.searchsorted(sums, sums[-1])
    return jnp.minimum(jnp.searchsorted(sums, uniforms * sums[-1], side="right"), last)


def solutions(target: Target, start: Point, values: Array, bounds: Array) -> tuple[Array, Array, Array, Array]:
    """θ(z), the log of the second stage's probability, whether z was left unsettled, and whether θ(z) lies in Θ.

    **Arguments:** `start`: θ₀. `bounds`: E(z).
    """
    start = jax.tree.map(jnp.asarray, start)
    found = jax.vmap(lambda value: solve(target, start, value))(values)
    # The search ends within 1e-6 of z in units of its noise; two whole steps leave nothing but rounding.
    points = jax.vmap(lambda point, value: _step(target, _step(target, point, value), value))(found.point, values)
    log_ratios = log_determinant(start) - jax.vmap(log_determinant)(points) - bounds
    inside = found.found & jax.vmap(target.domain.contains)(points.theta)
    return points.theta, log_ratios, found.unsettled, inside


def _step(target: Target, point: Point, value: Array) -> Point:
    """The point after one whole step of Newton's method towards ∇ℓ(θ) = value."""
    scaled = point.inverse_factor @ (point.gradient - value)
    return evaluate(target, point.theta - scaled @ point.inverse_factor)


def lengths(target: Target, theta: Array) -> Array:
    """c‖∇ℓ(θ)‖_K of each θ."""
    assert target.norm is not None
    norm = target.norm
    return target.rate * jax.vmap(lambda one: norm(gradient(target, one)))(theta)
