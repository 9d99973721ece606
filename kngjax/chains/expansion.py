"""A quadratic in place of the gradient of the loss: what costs a pass over the rows, for a few multiplications."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.chains.newton import Point, gradient, point_of, records_a_block, solve
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, block_sums
from kngjax.core.compiling import Compiled
from kngjax.data.records import Records
from kngjax.geometry.norms import k_norm_noise
from kngjax.losses.base import AbstractPredictorLoss

# How many points are tried, and how far log f may be from the quadratic's at any: beyond it proposals are refused too
# often to be worth their price.
_NUM_TRIALS = 16
_LARGEST_ERROR = 0.5


class Expansion(NamedTuple):
    """Expands the gradient to second order: G(θ) = ∇ℓ(θ̂) + Hδ + ½T[δ, δ] with δ = θ - θ̂.

    H = Σ ρ''_i x_i x_i' and T = Σ ρ'''_i x_i ⊗ x_i ⊗ x_i are those at θ̂. Private, as it follows from the records.
    On {θ : H + T[δ] positive definite}, a convex set since T[δ] is linear in δ, G is the gradient of a strictly
    convex function, hence one to one there, with the Jacobian det(H + T[δ]).

    **Arguments:** `centre`: θ̂, shape (d,). `gradient`: shape (d,). `hessian`: shape (d, d). `third`: shape (d, d, d).
    """

    centre: Float[Array, " dimension"]
    gradient: Float[Array, " dimension"]
    hessian: Float[Array, "dimension dimension"]
    third: Float[Array, "dimension dimension dimension"]

    def point(self, theta: Vector) -> Point:
        """G at θ and the inverse factor of its Jacobian, NaN where that is not positive definite."""
        step = jnp.asarray(theta) - self.centre
        bend = self.third @ step
        return point_of(jnp.asarray(theta), self.gradient + (self.hessian + 0.5 * bend) @ step, self.hessian + bend)


def expansion(target: Target, centre: Vector) -> Expansion | None:
    """G about an estimate of θ, or None where it is too far from ∇ℓ for the mechanism's law. On the host.

    Judged by |c‖∇ℓ‖_K - c‖G‖_K| at solutions of G = z for a few fixed z from the K-norm density, so that it is a
    function of the data alone. None also where θ̂ is not in Θ, and for sums instead of records, where ∇ℓ costs nothing.
    """
    if not isinstance(target.data, Records):
        return None
    found, error = _expanded(target, jnp.asarray(centre))
    return jax.tree.map(np.asarray, found) if float(error) <= _LARGEST_ERROR else None


@Compiled
def _expanded(target: Target, centre: Array) -> tuple[Expansion, Array]:
    assert target.norm is not None
    norm = target.norm
    found = Expansion(centre, *_derivatives(target, centre))
    start = found.point(centre)
    values = k_norm_noise(norm, jax.random.key(0), target.rate, (_NUM_TRIALS,), target.dimension)
    solutions = jax.vmap(lambda value: solve(target, start, value, found.point))(values)
    thetas = solutions.point.theta
    scores = jax.vmap(lambda theta: norm(gradient(target, theta)))(thetas)
    errors = target.rate * jnp.abs(scores - jax.vmap(norm)(solutions.point.gradient))
    # Whether a solution lies in Θ does not matter here; NaN is no small error.
    usable = target.domain.contains(centre) & jnp.all(~solutions.unsettled)
    return found, jnp.where(usable, jnp.max(errors), jnp.inf)


def _derivatives(target: Target, centre: Array) -> tuple[Array, Array, Array]:
    """∇ℓ, H and T at the centre, in one pass over the rows."""
    loss, data, dimension = target.loss, target.data, target.dimension
    assert isinstance(data, Records)
    assert isinstance(loss, AbstractPredictorLoss)
    rows, columns = np.triu_indices(dimension)
    places = np.zeros((dimension, dimension), int)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)

    def terms(x, y):
        predictors = x @ centre
        products = x[:, rows] * x[:, columns]
        scores, curvatures = jax.vmap(loss.record_score)(predictors, y), jax.vmap(loss.record_curvature)(predictors, y)
        changes = jax.vmap(jax.grad(loss.record_curvature))(predictors, y)
        return scores @ x, curvatures @ products, (x * changes[:, None]).T @ products

    first, second, third = block_sums(terms, (data.x, data.y), records_a_block(rows.size))
    return first, second[places], third[:, places]
