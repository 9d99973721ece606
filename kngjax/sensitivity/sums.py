"""What one record can change of sums and of counts: plain sums over records, in which n stands nowhere.

A record x adds x to Σx, so that coordinate j of it changes between neighbouring data sets by at most

    replace:     u_j - l_j              (x is exchanged for x', both within the bounds)
    add_remove:  max(|l_j|, |u_j|)      (x comes or goes)

and a record in cell k adds 1 to the count of cell k, and to no other.
"""

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.compiling import Compiled
from kngjax.data.bounds import Bounds
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.sensitivity.change_sets import LARGEST_NUMBER, change_points, number_of_points
from kngjax.sensitivity.gradients import changes_within

_compiled = functools.partial(Compiled, static_argnames=("adjacency", "dimension"))


@_compiled
def sum_changes(bounds: Bounds, adjacency: Adjacency, dimension: int) -> Float[Array, " dimension"]:
    """By how much each coordinate of Σx can change between neighbouring data sets, shape (d,)."""
    return changes_within(bounds.features(dimension), adjacency)


@_compiled
def sum_sensitivity(
    bounds: Bounds, adjacency: Adjacency, norm: AbstractNorm | None, dimension: int
) -> Float[Array, ""]:
    """Δ of Σx in the norm (None: the one whose ball is the box of changes, in which it is 1).

    A norm is convex, so it is largest at an extreme point of all changes; where these are too many it is bounded over
    the box around them.
    """
    changes = sum_changes(bounds, adjacency, dimension)
    if norm is None:
        # 1 by the definition of the norm, which needs a box with a volume.
        return jnp.where(jnp.all(jnp.isfinite(changes) & (changes > 0)), 1.0, jnp.inf)
    over_box, blocks = norm.largest_over_box(changes), bounds.feature_blocks(dimension)
    if number_of_points(blocks, adjacency) > LARGEST_NUMBER:
        return over_box
    points = change_points(blocks, (1.0, 1.0), adjacency)
    return jnp.minimum(over_box, jnp.max(jax.vmap(norm)(points)))


def sum_changes_in_fractions(bounds: Bounds, adjacency: Adjacency, dimension: int) -> list[Fraction]:
    """`sum_changes` of bounds without a hull, of which float64's numbers are taken as they are."""
    # Not by JAX, which may have float32 alone.
    sides = (np.asarray(side, np.float64) for side in (bounds.x_lower, bounds.x_upper))
    ends = (list(map(Fraction, np.broadcast_to(side, (dimension,)).tolist())) for side in sides)
    if adjacency is Adjacency.REPLACE:
        return [upper - lower for lower, upper in zip(*ends, strict=True)]
    return [max(abs(lower), abs(upper)) for lower, upper in zip(*ends, strict=True)]


def explain_sum_sensitivity(norm: AbstractNorm, changes: np.ndarray, value: float, adjacency: Adjacency) -> str:
    """The derivation of the sensitivity of Σx in words."""
    widths = ", ".join(f"{change:.6g}" for change in changes)
    exchange = adjacency is Adjacency.REPLACE
    event = "exchanging one record moves" if exchange else "one record more or less moves"
    most = "u_j - l_j, the width of the bounds" if exchange else "max(|l_j|, |u_j|), the largest size within the bounds"
    return (
        f"{event} coordinate j of the sum of the records by at most {most}: w = ({widths}). In the "
        f"{type(norm).__name__} norm no such change is longer than {value:.6g}."
    )


def count_sensitivity(counted: int, adjacency: Adjacency) -> int:
    """Δ_1: the largest sum of the sizes of the changes of all counts, of records that each lie in one cell.

    One record more adds 1 to one count: Δ_1 = 1. An exchanged one leaves its cell for another one: two counts change
    by 1 each, Δ_1 = 2, or where one cell alone is counted, that count does: Δ_1 = 1.

    **Arguments:** `counted`: how many cells are counted, at least 1.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        return 1
    return 1 if counted == 1 else 2


def explain_count_sensitivity(counted: int, value: int, adjacency: Adjacency) -> str:
    """The derivation of the sensitivity of counts in words."""
    if adjacency is Adjacency.ADD_REMOVE:
        why = "each record lies in one cell, so one record more or less changes one count by 1"
    elif counted == 1:
        why = "an exchanged record comes to the only cell that is counted, or leaves it, which changes its count by 1"
    else:
        why = "each record lies in one cell, so an exchanged one takes 1 from one count and adds 1 to another"
    return f"{why}: the sizes of all changes add up to at most {value}."
