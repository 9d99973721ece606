"""Loss and gradient of a quadratic ½θ'Gθ - m'θ + ½s from its sufficient statistic (G, m, s), in O(d) a move."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Vector
from kngjax.data.records import QuadraticSummary
from kngjax.losses.base import Number


def carry(theta: Vector, summary: QuadraticSummary) -> Float[Array, " dimension"]:
    """The gradient Gθ - m."""
    return jnp.asarray(summary.gram) @ jnp.asarray(theta) - summary.moment


def moved(carry: Array, summary: QuadraticSummary, coordinate: int | Array, step: Number) -> Float[Array, " dimension"]:
    """The gradient after θ_coordinate grew by `step`."""
    return carry + step * jnp.asarray(summary.gram)[coordinate]


def value_from(carry: Array, theta: Vector, summary: QuadraticSummary) -> Float[Array, ""]:
    """½(θ'(Gθ - m) - θ'm + s) from the gradient."""
    return 0.5 * (jnp.asarray(theta) @ (carry - summary.moment) + summary.sum_of_squares)
