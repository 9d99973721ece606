"""Extends the facts that sensitivities rest on to records with weights: the one home of W.

A record with weight w in [0, W] contributes w·∇ℓ(θ; z) to the gradient, which lies in [min(0, W·m_j), max(0, W·M_j)]
if ∇ℓ lies in [m_j, M_j]. `docs/proofs/weights.md` proves the rules for exchanges, gradients of one length, Hessians,
moments and losses.

For persons with any number of rows, W bounds the sum of the weights of one person's rows. If that sum is exactly 1,
every statement about one record without weights holds for one person: `docs/proofs/persons.md`.
"""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Vector
from kngjax.data.bounds import Bounds
from kngjax.geometry.reach import Reach
from kngjax.losses.base import AbstractLoss, Ends
from kngjax.sensitivity.change_sets import changes_within


def most(bounds: Bounds) -> Any:
    """W; None where records have no weights, and where a person's add up to 1, so that a record's facts hold."""
    return None if bounds.has_one_vote else bounds.weight


def of_weighted(ends: tuple[Any, Any], bounds: Bounds) -> tuple[Any, Any]:
    """[min(0, W·a), max(0, W·b)] for [a, b], number by number; [a, b] where records have no weights."""
    if most(bounds) is None:
        return ends
    first, last = (jnp.asarray(most(bounds)) * jnp.asarray(end) for end in ends)
    return jnp.minimum(first, 0.0), jnp.maximum(last, 0.0)


def of_weighted_in_fractions(ends: tuple[Fraction, Fraction], largest: Fraction | None) -> tuple[Fraction, Fraction]:
    """Computes `of_weighted` without rounding. **Arguments:** `largest`: W, or None."""
    if largest is None:
        return ends
    return min(largest * ends[0], Fraction(0)), max(largest * ends[1], Fraction(0))


def largest_in_fractions(bounds: Bounds) -> Fraction | None:
    """W, None where records have no weights."""
    return None if most(bounds) is None else Fraction(float(most(bounds)))


def largest(bounds: Bounds) -> float:
    """W; 1 where records have no weights."""
    return 1.0 if most(bounds) is None else float(most(bounds))


def times(bounds: Bounds, value: Any) -> Float[Array, "..."]:
    """W·value; the value where records have no weights."""
    return jnp.asarray(1.0 if most(bounds) is None else most(bounds)) * jnp.asarray(value)


def root_times(bounds: Bounds, radius: Any) -> Float[Array, "..."]:
    """√W·radius, a bound on √w·|x| for one on |x|; the radius where records have no weights."""
    return jnp.sqrt(times(bounds, 1.0)) * jnp.asarray(radius)


def adjacency_of_ranges(bounds: Bounds, adjacency: Adjacency) -> Adjacency:
    """Chooses the adjacency of a loss's ranges: with weights, what records share does not cancel by itself."""
    return adjacency if most(bounds) is None else Adjacency.ADD_REMOVE


def gradient_changes(
    loss: AbstractLoss, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int
) -> Float[Array, " dimension"]:
    """Bounds the change of each coordinate of ∇ℓ_n between neighbouring data sets, with weights, shape (d,)."""

    def without(between: Adjacency) -> Float[Array, " dimension"]:
        return changes_within(loss.gradient_range(bounds, reach, between, dimension), between)

    if most(bounds) is None:
        return without(adjacency)
    comes_or_goes = without(Adjacency.ADD_REMOVE)
    if adjacency is Adjacency.ADD_REMOVE:
        return times(bounds, comes_or_goes)
    return times(bounds, jnp.maximum(without(Adjacency.REPLACE), comes_or_goes))


def gradient_range_at(loss: AbstractLoss, theta: Vector, bounds: Bounds, adjacency: Adjacency) -> Ends:
    """(m, M) of one record's contribution to the gradient, its weight included, at this θ alone."""
    return of_weighted(loss.gradient_range_at(theta, bounds, adjacency_of_ranges(bounds, adjacency)), bounds)


def score_range(
    loss: AbstractLoss, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int
) -> tuple[Array, Array]:
    """[a, b] ∋ w·s where one record's contribution to the gradient is w·s·x."""
    first, last = of_weighted(
        loss.score_range(bounds, reach, adjacency_of_ranges(bounds, adjacency), dimension), bounds
    )
    return jnp.asarray(first), jnp.asarray(last)


def range_depends_on_theta(loss: AbstractLoss, bounds: Bounds, adjacency: Adjacency) -> bool:
    """Tells whether `gradient_range_at` varies with θ."""
    return loss.range_depends_on_theta(adjacency_of_ranges(bounds, adjacency))


def why_no_points(loss: AbstractLoss, bounds: Bounds, adjacency: Adjacency) -> str | None:
    """Says why the extreme points of all changes of the gradient are not listed; None if `score_range` lists them."""
    return loss.why_no_points(adjacency_of_ranges(bounds, adjacency))
