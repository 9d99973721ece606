"""Ensembles of points that move each other: directions from the differences of other points, with nothing to tune.

An ensemble's density is the product of the density with itself. One half moves while the other rests, so a direction
or step computed from the resting half is as good as a constant, and every move leaves the product invariant
(Gilks, Roberts and George 1994; Goodman and Weare 2010). The moves are the same for every linear change of basis.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def half_size(dimension: int) -> int:
    """Counts the points of each half: their differences span R^d, with one to spare."""
    return dimension + 2


def halves(dimension: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """(moving, resting) twice: every point moves once a sweep."""
    half = half_size(dimension)
    return (slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))


def combinations(
    weights: Float[Array, "moving resting"], resting: Float[Array, "resting dimension"]
) -> Float[Array, "moving dimension"]:
    """Σ_k weight_k (θ_k - mean)/√(points - 1): with normal weights, normal with the resting points' covariance."""
    centred = resting - jnp.mean(resting, axis=0, keepdims=True)
    return weights @ centred / jnp.sqrt(resting.shape[0] - 1.0)
