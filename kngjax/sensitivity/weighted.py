"""Extends the facts that sensitivities rest on to records with weights: the one home of W.

A record with weight w in [0, W] contributes w·∇ℓ(θ; z) to the gradient. If ∇ℓ lies in [m_j, M_j] for every record and
every θ, its contribution lies in

    [min(0, W·m_j), max(0, W·M_j)],

since a product of w and v lies between 0 and W·v; and both ends are reached where they are reached without weights, by
w = W or w = 0. A score s in [a, b] of a gradient s·x becomes w·s in [min(0, W·a), max(0, W·b)], and all that follows
from a score interval follows from this one.

*Exchanging a record* cancels what two contributions at the same θ share, as θ in θ - x of a mean. With weights it is no
longer shared: w(θ - x) - w'(θ - x') has (w - w')θ in it. Of gradients g and g' at one θ, and weights w ≥ w' (else they
change places),

    wg - w'g' = w'(g - g') + (w - w')g,

so with D_j the largest |g_j - g'_j| and B_j the largest |g_j|, coordinate j changes by at most w'D_j + (w - w')B_j,
which is at most

    W·max(D_j, B_j),

and both are reached where they are reached without weights: by w = w' = W, or w = W and w' = 0. For a mean D_j is the
width u_j - l_j of its bounds, and B_j is no larger where Θ lies within them. Where nothing cancels it is the width of
what holds 0 and W·[m_j, M_j].

*A gradient of one length and any direction*, as (θ - x)/‖θ - x‖_2 of a geometric median, becomes w·u with ‖u‖_2 = 1 and
w in [0, W]: any point of the l2 ball of radius W, and no other. One record more or less changes the sum by at most W,
and an exchange by ‖w'u' - wu‖_2 ≤ w' + w ≤ 2W; both are reached, by w = w' = W and u' = -u, two records on either side
of θ. So the radius of the ball of all changes is W times that without weights.

*One record's Hessian* w·ρ''·xx' has the eigenvalue W·λ at most.

*Moments* of least squares are those of other records without weights: w·xx' and w·xy are what √w·(x, y) adds to X'X and
X'y. So all that is proved of them for |x| ≤ X and |y| ≤ Y, whatever else the records are, holds with √W·X and √W·Y in
their places: of X'X, X'y, eigenvalues, ridge regressions and their posteriors (`kngjax.sensitivity.moments`). An
exchange, too, is of two such records; that their weights may differ adds nothing, for both radii bound each of them.

*One record's loss* w·ℓ(θ; z), as a function of θ for one record and its weight, varies by at most W times the range
[a, b] of ℓ, and no more than that enters the proof of `kngjax.sensitivity.gradients.value_sensitivity`: the log-ratio
of the exponential mechanism's densities is c·(w'ℓ(θ; z') - wℓ(θ; z)) up to constants, and each term varies over Θ by at
most c·W·(b - a).
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


def of_weighted(ends: tuple[Any, Any], bounds: Bounds) -> tuple[Any, Any]:
    """[min(0, W·a), max(0, W·b)] for [a, b], number by number; [a, b] where records have no weights."""
    if bounds.weight is None:
        return ends
    first, last = (jnp.asarray(bounds.weight) * jnp.asarray(end) for end in ends)
    return jnp.minimum(first, 0.0), jnp.maximum(last, 0.0)


def of_weighted_in_fractions(ends: tuple[Fraction, Fraction], largest: Fraction | None) -> tuple[Fraction, Fraction]:
    """Computes `of_weighted` without rounding. **Arguments:** `largest`: W, or None."""
    if largest is None:
        return ends
    return min(largest * ends[0], Fraction(0)), max(largest * ends[1], Fraction(0))


def largest_in_fractions(bounds: Bounds) -> Fraction | None:
    """W, None where records have no weights."""
    return None if bounds.weight is None else Fraction(float(bounds.weight))


def largest(bounds: Bounds) -> float:
    """W; 1 where records have no weights."""
    return 1.0 if bounds.weight is None else float(bounds.weight)


def times(bounds: Bounds, value: Any) -> Float[Array, "..."]:
    """W·value; the value where records have no weights."""
    return jnp.asarray(value) if bounds.weight is None else jnp.asarray(bounds.weight) * jnp.asarray(value)


def root_times(bounds: Bounds, radius: Any) -> Float[Array, "..."]:
    """√W·radius, a bound on √w·|x| for one on |x|; the radius where records have no weights."""
    return jnp.asarray(radius) if bounds.weight is None else jnp.sqrt(jnp.asarray(bounds.weight)) * jnp.asarray(radius)


def adjacency_of_ranges(bounds: Bounds, adjacency: Adjacency) -> Adjacency:
    """Chooses the adjacency of a loss's ranges: with weights, what records share does not cancel by itself."""
    return adjacency if bounds.weight is None else Adjacency.ADD_REMOVE


def gradient_changes(
    loss: AbstractLoss, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int
) -> Float[Array, " dimension"]:
    """By how much each coordinate of ∇ℓ_n can change between neighbouring data sets, weights included, shape (d,)."""

    def without(between: Adjacency) -> Float[Array, " dimension"]:
        return changes_within(loss.gradient_range(bounds, reach, between, dimension), between)

    if bounds.weight is None:
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
    """Whether `gradient_range_at` varies with θ."""
    return loss.range_depends_on_theta(adjacency_of_ranges(bounds, adjacency))


def why_no_points(loss: AbstractLoss, bounds: Bounds, adjacency: Adjacency) -> str | None:
    """Why the extreme points of all changes of the gradient are not listed; None where they are, by `score_range`."""
    return loss.why_no_points(adjacency_of_ranges(bounds, adjacency))
