"""The set of all changes that one record can make to the gradient: its extreme points, its hull, its ellipsoid.

One record contributes s·x with the score s ∈ [a, b] and x in a product of hulls, so contributions lie in
C = conv{a x, b x : x a vertex}. Between neighbouring data sets the gradient changes by a point of

    replace:     C - C = conv of ±(a x - b x') and ±(s x - s x'), s the larger of |a| and |b|, x and x' vertices
    add_remove:  C ∪ -C, in the hull of ±s x, s the larger of |a| and |b|

Proof: `docs/proofs/sensitivities.md`. For the columns of a box there are 2^{d+1} points and not 4^d, since a block of
the product of hulls a x - b x' has two ends and not four.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import Ellipsoid
from kngjax.geometry.polytopes import Polytope

# The most points that are listed: enough for twelve columns of a box.
LARGEST_NUMBER = 8192


@dataclasses.dataclass(frozen=True)
class SensitivitySet:
    """Holds points whose hull, with their negatives, is that of all possible changes. Public.

    **Arguments:** `points`: shape (m, d). `adjacency`: between which data sets.

    NumPy converts the set to its points, so `Polytope(set)` and `Ellipsoid.of(set)` are norms made to fit it.
    """

    points: Float[np.ndarray, "points dimension"]
    adjacency: Adjacency

    def __post_init__(self):
        if not np.all(np.isfinite(self.points)):
            raise ValueError(
                "the gradient can change without limit: give a bounded domain (L1Ball, L2Ball or Box), or a loss with "
                "a bounded score (quantile, Huber, pseudo-Huber, logistic)"
            )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.points, dtype=dtype)

    def hull(self) -> Polytope:
        """The norm whose ball is the hull, the least for which Δ = 1. Raises ValueError beyond six dimensions."""
        return Polytope(self.points)

    def support(self, direction: Any) -> float:
        """h(u) = max u'v over the set: two hulls are equal if this is, for every u of shape (d,)."""
        return float(np.max(np.abs(self.points @ np.asarray(direction))))

    def ellipsoid(self) -> Ellipsoid:
        """The norm whose ball is the ellipsoid of least volume around the set; Δ = 1."""
        return Ellipsoid.of(self.points)


def changes_within(gradient_range: tuple[Any, Any], adjacency: Adjacency) -> Float[Array, " dimension"]:
    """Bounds the change of each coordinate if one record's contribution lies in (m, M), shape (d,)."""
    smallest, largest = (jnp.asarray(end) for end in gradient_range)
    if adjacency is Adjacency.REPLACE:
        return largest - smallest
    return jnp.maximum(jnp.abs(smallest), jnp.abs(largest))


def longest_change(
    norm: AbstractNorm | None, changes: Float[Array, " dimension"], points: Float[Array, "points dimension"] | None
) -> Float[Array, ""]:
    """Δ, the length of the longest change in a norm (None: the one whose ball is the box of changes, in which it is 1).

    A norm is convex, so it is largest at one of the points whose hull is that of all changes; without them it is
    bounded over the box |v_j| ≤ w_j.

    **Arguments:** `changes`: w, shape (d,). `points`: from `change_points`, None where they are not listed.
    """
    if norm is None:
        # By the definition of the norm, which needs a box with a volume.
        return jnp.where(jnp.all(jnp.isfinite(changes) & (changes > 0)), 1.0, jnp.inf)
    over_box = norm.largest_over_box(changes)
    return over_box if points is None else jnp.minimum(over_box, jnp.max(jax.vmap(norm)(points)))


def number_of_points(blocks: tuple[Any, ...], adjacency: Adjacency) -> int:
    """Counts the points of `change_points`, from the blocks' shapes alone."""
    shapes = [np.shape(block) for block in blocks]
    if adjacency is Adjacency.ADD_REMOVE:
        return math.prod(number for number, _ in shapes)
    across = math.prod(number if columns == 1 else number**2 for number, columns in shapes)
    along = math.prod(number if columns == 1 else number * (number - 1) for number, columns in shapes)
    return across + along


def change_points(
    blocks: tuple[Any, ...], score: tuple[Any, Any], adjacency: Adjacency
) -> Float[Array, "points dimension"] | None:
    """The points of a `SensitivitySet`, shape (m, d), None where they are more than `LARGEST_NUMBER`; runs under jit.

    **Arguments:** `blocks`: vertices of the blocks of features, from `Bounds.feature_blocks`. `score`: (a, b).
    """
    if number_of_points(blocks, adjacency) > LARGEST_NUMBER:
        return None
    first, second = (jnp.asarray(end) for end in score)
    largest = jnp.maximum(jnp.abs(first), jnp.abs(second))
    vertices = [jnp.asarray(block) for block in blocks]
    if adjacency is Adjacency.ADD_REMOVE:
        return largest * _product(vertices)
    # From one end of the score to the other, and from one vertex to another at its larger end.
    across = _product([_differences(block, first, second) for block in vertices])
    along = _product([_differences(block, largest, largest, distinct=True) for block in vertices])
    return jnp.concatenate([across, along])


def _differences(block: Array, first: Array, second: Array, distinct: bool = False) -> Array:
    """The points first·x - second·x' over vertices x and x', or only their ends where there is but one column."""
    number, columns = block.shape
    differences = (first * block)[:, None, :] - (second * block)[None, :, :]
    if columns == 1 and number <= 2:
        ends = jnp.stack([jnp.min(differences), jnp.max(differences)])
        return ends[:number, None]
    if distinct:
        rows, others = np.nonzero(~np.eye(number, dtype=bool))
        return differences[rows, others]
    return differences.reshape(number**2, columns)


def _product(blocks: list[Array]) -> Array:
    """Every combination of a row of each block, side by side."""
    choices = np.indices([len(block) for block in blocks]).reshape(len(blocks), -1)
    return jnp.concatenate([block[rows] for block, rows in zip(blocks, choices, strict=True)], axis=1)
