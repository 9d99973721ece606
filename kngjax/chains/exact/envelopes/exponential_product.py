"""The product envelope of KNG: coordinates that are independent and piecewise exponential, for the crossover in n.

With V = A^{-1} and the dual norm, ‖A(θ - θ̂)‖ ≥ g'(θ - θ̂) + Σ_j w_j|θ_j - θ̂_j| as long as
‖Vg‖_* + Σ_j w_j‖Ve_j‖_* ≤ 1. A ball lies in its bounding box, and 1_Θ(θ) ≤ exp(σ(r·1) - r·‖θ‖_1) for r ≥ 0. So f is
below a constant times Π_j exp(-cg_jθ_j - cw_j|θ_j - θ̂_j| - r|θ_j|) on the bounding box of Θ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.exact.envelopes.base import AbstractEnvelope, Proposals, Uniforms, excess, fit_parameters
from kngjax.chains.quadratic import QuadraticForm, support
from kngjax.chains.target import Target
from kngjax.core.arrays import Scalar
from kngjax.geometry import segments

NUM_STEPS = 250


class ProductShape(NamedTuple):
    """**Arguments:** `slopes`: cg. `weights`: cw ≥ 0. `pull`: r ≥ 0."""

    slopes: Float[Array, " dimension"]
    weights: Float[Array, " dimension"]
    pull: Scalar


class ExponentialPieces(NamedTuple):
    """Three segments a coordinate: `ends` at which each is highest, `rates` of its fall, `lengths`, `log_masses`.

    The fall is to the right where `rates` are positive and to the left where they are negative.
    """

    ends: Float[Array, "3 dimension"]
    rates: Float[Array, "3 dimension"]
    lengths: Float[Array, "3 dimension"]
    log_masses: Float[Array, "3 dimension"]


def bounding_box(target: Target) -> tuple[Float[Array, " dimension"], Float[Array, " dimension"]]:
    """Returns the smallest box that contains Θ."""
    lower, upper = jax.vmap(lambda axis: target.domain.linear_interval(axis, axis))(jnp.eye(target.dimension))
    return jnp.asarray(lower), jnp.asarray(upper)


def log_factors(form: QuadraticForm, shape: ProductShape, theta: Float[Array, "*points dimension"]) -> Array:
    """-cg_j(θ_j - θ̂_j) - cw_j|θ_j - θ̂_j| - r|θ_j|, coordinate by coordinate."""
    steps = theta - jnp.broadcast_to(form.centre, theta.shape)
    slopes, weights = jnp.broadcast_to(shape.slopes, theta.shape), jnp.broadcast_to(shape.weights, theta.shape)
    return -slopes * steps - weights * jnp.abs(steps) - shape.pull * jnp.abs(theta)


def edges_of(target: Target, form: QuadraticForm) -> Float[Array, "4 dimension"]:
    """Returns the sides of the bounding box, with θ̂_j and 0 between them."""
    lower, upper = bounding_box(target)
    turns = jnp.clip(form.centre, lower, upper), jnp.clip(jnp.zeros_like(lower), lower, upper)
    return jnp.stack([lower, jnp.minimum(*turns), jnp.maximum(*turns), upper])


def pieces_of(form: QuadraticForm, edges: Float[Array, "4 dimension"], shape: ProductShape) -> ExponentialPieces:
    """Returns the factors between the edges."""
    middles = 0.5 * (edges[:-1] + edges[1:])
    sides = jnp.sign(middles - jnp.broadcast_to(form.centre, middles.shape))
    rates = jnp.broadcast_to(shape.slopes, middles.shape) + sides * jnp.broadcast_to(shape.weights, middles.shape)
    rates += shape.pull * jnp.sign(middles)
    ends = jnp.where(rates > 0, edges[:-1], edges[1:])
    lengths = edges[1:] - edges[:-1]
    log_masses = log_factors(form, shape, ends) + segments.log_mass(jnp.abs(rates), lengths)
    return ExponentialPieces(ends, rates, lengths, log_masses)


class ExponentialProduct(AbstractEnvelope):
    """exp(σ(r·1) - Σ_j (cg_j(θ_j - θ̂_j) + cw_j|θ_j - θ̂_j| + r|θ_j|)) on the bounding box of Θ.

    **Arguments:** `log_mass`: M, a sum of one-dimensional integrals. `shape`: g, w, r. `pieces`: of the factors.
    """

    log_mass: Float[Array, ""]
    shape: ProductShape
    pieces: ExponentialPieces

    @classmethod
    def of(
        cls, target: Target, form: QuadraticForm, shape: ProductShape, wanted: Bool[Array, ""]
    ) -> "ExponentialProduct":
        """Returns the envelope for this shape, scaled to where it is below c‖y‖ in spite of rounding."""
        shape = within_budget(target, form, shape)
        pieces = pieces_of(form, edges_of(target, form), shape)
        log_mass = jnp.sum(jax.scipy.special.logsumexp(pieces.log_masses, axis=0))
        log_mass += shape.pull * support(target, jnp.ones(target.dimension))
        known = wanted & form.sound & jnp.isfinite(log_mass)
        return cls(jnp.where(known, log_mass, jnp.inf), shape, pieces)

    @classmethod
    def fit(cls, target: Target, form: QuadraticForm, wanted: Bool[Array, ""]) -> "ExponentialProduct":
        """Returns the envelope with about the least mass if it is wanted, else one that must not be used.

        The budget c is shared out among both signs of each (T'^{-1}g)_j and the w_j, by a softmax.
        """
        dimension = target.dimension
        costs, edges, extent = column_costs(form), edges_of(target, form), support(target, jnp.ones(dimension))
        pulls = float(target.domain.is_sign_symmetric)
        axes = jax.vmap(form.norm.dual)(jnp.eye(dimension))
        reach = jnp.asarray(target.domain.widths(dimension))

        def shape(parameters):
            shares, log_pull = parameters
            up, down, weights = jnp.split(jax.nn.softmax(shares), 3)
            slopes = target.rate * ((up - down) / axes) @ form.transform
            candidate = ProductShape(slopes, target.rate * weights / costs, pulls * jnp.exp(log_pull))
            return within_budget(target, form, candidate)

        def log_mass(parameters):
            candidate = shape(parameters)
            sums = jax.scipy.special.logsumexp(pieces_of(form, edges, candidate).log_masses, axis=0)
            return jnp.sum(sums) + candidate.pull * extent

        start = (
            jnp.concatenate([jnp.zeros(2 * dimension), jnp.full(dimension, 2.0)]),
            jnp.log(2.0 * dimension / jnp.mean(reach)),
        )
        return cls.of(target, form, shape(fit_parameters(log_mass, start, wanted, NUM_STEPS, 0.15)), wanted)

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        number, dimension = uniforms.shape[0], target.dimension
        pieces = self.pieces
        weights = jax.nn.softmax(pieces.log_masses, axis=0)
        below = jnp.broadcast_to(jnp.cumsum(weights, axis=0)[:2, None], (2, number, dimension))
        piece = jnp.sum(uniforms[None, :, :dimension] > below, axis=0)

        def of_piece(table):
            return jnp.take_along_axis(table, piece, axis=0)

        rates, lengths = of_piece(pieces.rates), of_piece(pieces.lengths)
        steps = segments.distance(uniforms[:, dimension : 2 * dimension], jnp.abs(rates), lengths)
        theta = of_piece(pieces.ends) + jnp.where(rates > 0, steps, -steps)
        inside = jax.vmap(target.domain.contains)(theta)
        images = form.images(theta)
        log_ratio = -target.rate * jax.vmap(form.norm)(images) - excess(target, form, theta)
        log_ratio -= jnp.sum(log_factors(form, self.shape, theta), axis=1)
        log_ratio -= self.shape.pull * support(target, jnp.ones(dimension))
        return theta, jnp.where(inside, jnp.minimum(log_ratio, 0.0), -jnp.inf)


def column_costs(form: QuadraticForm) -> Float[Array, " dimension"]:
    """‖T'^{-1}e_j‖_*: |θ_j - θ̂_j| ≤ this times ‖y‖."""
    return jax.vmap(form.norm.dual)(form.inverse)


def within_budget(target: Target, form: QuadraticForm, shape: ProductShape) -> ProductShape:
    """Scales g and w so that ‖T'^{-1}cg‖_* + Σ_j cw_j‖T'^{-1}e_j‖_* is c, less rounding's share.

    Rounding of the inverse: with R = I - T^{-1}T, |θ_j - θ̂_j| ≤ costs_j‖y‖ + Σ_k |R_jk||θ_k - θ̂_k|, so that
    |θ_j - θ̂_j| ≤ costs_j‖y‖/(1 - ρ) with ρ = max_j Σ_k |R_jk|costs_k/costs_j.
    """
    costs = column_costs(form)
    used = form.norm.dual(form.inverse.T @ shape.slopes) + costs @ shape.weights
    residual = jnp.abs(jnp.eye(costs.shape[0]) - form.inverse @ form.transform)
    share = jnp.maximum(1.0 - 1e-9 - 4.0 * jnp.max(residual @ costs / costs), 0.0)
    factor = target.rate * share / used
    return ProductShape(shape.slopes * factor, shape.weights * factor, shape.pull)
