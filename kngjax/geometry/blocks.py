"""Norms that are the largest of norms of blocks of columns: intervals, cross-polytopes and exchanges."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Vector, parameter
from kngjax.geometry.abstract_norms import AbstractNorm, Points, require_weights
from kngjax.geometry.scaled_norms import AbstractScaledNoise


class Block(NamedTuple):
    """Some columns and their norm in units y = z/w: Σ|y_j|, or of an exchange max(Σ(y_j)⁺, Σ(y_j)⁻).

    The unit ball of Σ|y_j| is the cross-polytope, of one column an interval. That of an exchange is the hull of
    all e_l - e_m and all ±e_l.

    **Arguments:** `kind`, and `columns`: which, by number.
    """

    kind: Literal["sum", "exchange"]
    columns: tuple[int, ...]

    @property
    def log_volume(self) -> float:
        """Computes log 2^L/L! of the cross-polytope of L columns, and log C(2L, L)/L! of the ball of an exchange.

        Where k given columns are positive the latter is a product of simplices {y ≥ 0, Σy ≤ 1} of k and L - k columns,
        with the volume 1/(k!(L - k)!) = C(L, k)/L!, for C(L, k) choices of columns; and Σ_k C(L, k)² = C(2L, L).
        """
        size = len(self.columns)
        parts = 2**size if self.kind == "sum" else math.comb(2 * size, size)
        return math.log(parts) - math.lgamma(size + 1)

    @property
    def mean_square(self) -> Fraction:
        """Computes E y_j² of a uniform point of the unit ball, 2/((L + 1)(L + 2)) of the cross-polytope.

        In a simplex {y ≥ 0, Σy ≤ 1} of k columns it is 2/((k + 1)(k + 2)). With the chances C(L, k)²/C(2L, L) of k
        positive columns of an exchange, of which j is one k times in L, and as many of negative ones,

            E y_j² = 2 Σ_k C(L, k)²/C(2L, L)·(k/L)·2/((k + 1)(k + 2)) = 4L(2L + 1)/((L + 1)²(L + 2)²),

        as C(L, k)/((k + 1)(k + 2)) = C(L + 2, k + 2)/((L + 1)(L + 2)), k·C(L, k) = L·C(L - 1, k - 1), and
        Σ_k C(L - 1, k - 1)C(L + 2, L - k) = C(2L + 1, L - 1) = C(2L, L)·L(2L + 1)/((L + 1)(L + 2)).
        """
        size = len(self.columns)
        around = (size + 1) * (size + 2)
        return Fraction(2, around) if self.kind == "sum" else Fraction(4 * size * (2 * size + 1), around**2)


def memberships(blocks: Sequence[Block], dimension: int) -> Bool[np.ndarray, "dimension blocks"]:
    """Marks which column lies in which block."""
    return np.array([[j in block.columns for block in blocks] for j in range(dimension)])


def require_partition(blocks: Sequence[Block], dimension: int) -> None:
    """Raises ValueError unless each of so many columns lies in one block, and in no other."""
    if sorted(column for block in blocks for column in block.columns) != list(range(dimension)):
        raise ValueError(f"each of {dimension} columns must lie in one block, and in no other, got {tuple(blocks)}")


def uniform_points(blocks: Sequence[Block], xp: Any, sizes: Any, rests: Any, coins: Any, others: Any) -> Any:
    """Makes uniform points of the product of the blocks' unit balls, y of shape (..., D), from random numbers.

    Exponential numbers over the sum of them and of one more are uniform in the simplex {y ≥ 0, Σy ≤ 1}. The signs of a
    cross-polytope are fair, and its sizes are one such point; an exchange has one of its positive columns, and another
    of its negative ones. Which are positive: of 2L things, the first L of them the columns, L are chosen, all choices
    alike. A set S of columns is then chosen by C(L, L - |S|) = C(L, |S|) of the C(2L, L) choices, which is the share
    that the part of the ball where S is positive has of its volume, `Block.log_volume`.

    **Arguments:** `xp`: `numpy` or `jax.numpy`. `sizes`, `rests`: exponential numbers, shapes (..., D) and (..., 2B)
    for B blocks. `coins`, `others`: uniform numbers, shape (..., D).
    """
    members = memberships(blocks, sizes.shape[-1])
    exchanges = [np.array(block.columns) for block in blocks if block.kind == "exchange"]
    splits = np.array([block.kind == "exchange" for block in blocks])
    is_split = members @ splits
    signs = [coins[..., ~is_split] < 0.5]
    for columns in exchanges:
        own = coins[..., columns]
        both = xp.sort(xp.concatenate([own, others[..., columns]], axis=-1), axis=-1)
        signs.append(own <= both[..., len(columns) - 1, None])
    order = np.argsort(np.concatenate([np.flatnonzero(~is_split), *exchanges]))
    positive = xp.concatenate(signs, axis=-1)[..., order]
    above, below = (xp.where(side, sizes, 0.0) @ members.astype(sizes.dtype) for side in (positive, ~positive))
    above = above + below * xp.broadcast_to(~splits, below.shape) + rests[..., ::2]
    below, block_of = below + rests[..., 1::2], np.argmax(members, axis=1)
    is_above = positive | xp.broadcast_to(~is_split, positive.shape)
    return xp.where(positive, sizes, -sizes) / xp.where(is_above, above[..., block_of], below[..., block_of])


@dataclasses.dataclass(frozen=True)
class ScaledBlocks(AbstractScaledNoise):
    """Noise with density ∝ exp(-‖z/w‖/λ) for the largest norm of a block, in fractions.

    It is a sum of D + 1 exponential numbers, E r² = (D + 1)(D + 2), times a uniform point of the product of the balls.

    **Arguments:** all public. `blocks`: each column lies in one. `weights`: w. `scale_squared`: λ².
    """

    blocks: tuple[Block, ...]
    weights: tuple[Fraction, ...]
    scale_squared: Fraction = Fraction(1)

    def __post_init__(self):
        require_partition(self.blocks, len(self.weights))

    @property
    def mean_squares(self) -> Float[np.ndarray, " dimension"]:
        dimension = len(self.weights)
        of_point = {column: float(block.mean_square) for block in self.blocks for column in block.columns}
        return (dimension + 1.0) * (dimension + 2.0) * np.array([of_point[j] for j in range(dimension)])


class BlockNorm(AbstractNorm):
    """‖v‖ is the largest norm of a block of v/w: its ball is the product of the blocks' balls.

    **Arguments:** `weights`: w, shape (d,), positive. `blocks`: each column lies in one.
    """

    weights: Vector = eqx.field(converter=parameter)
    blocks: tuple[Block, ...] = eqx.field(static=True)

    def __check_init__(self):
        require_partition(self.blocks, self.weights.shape[-1])
        require_weights(self, self.weights)

    @property
    def dimension(self) -> int | None:
        return self.weights.shape[-1]

    def _of_blocks(self, of_signs: Any, of_exchange: Any, of_sum: Any, numbers: Any) -> Array:
        """Combines what `of_signs` makes of the positive and of the negative parts of each block."""
        members = memberships(self.blocks, self.weights.shape[-1]).T
        parts = (of_signs(jnp.where(members, jnp.maximum(side, 0.0), 0.0), axis=1) for side in (numbers, -numbers))
        above, below = parts
        is_exchange = np.array([block.kind == "exchange" for block in self.blocks])
        return jnp.where(is_exchange, of_exchange(above, below), of_sum(above, below))

    def __call__(self, vector: Vector) -> Float[Array, ""]:
        return jnp.max(self._of_blocks(jnp.sum, jnp.maximum, jnp.add, jnp.asarray(vector) / jnp.asarray(self.weights)))

    def dual(self, vector: Vector) -> Float[Array, ""]:
        """Adds up, over blocks, max_j w_j|v_j|, and of an exchange max_j w_j(v_j)⁺ + max_j w_j(v_j)⁻."""
        scaled = jnp.asarray(vector) * jnp.asarray(self.weights)
        return jnp.sum(self._of_blocks(jnp.max, jnp.add, jnp.maximum, scaled))

    def largest_over_box(self, half_widths: Vector) -> Float[Array, ""]:
        """‖w‖ of the half widths, as all may be positive at once."""
        return self(half_widths)

    def largest_over_l2_ball(self, dimension: int) -> Float[Array, ""]:
        """Takes the largest (Σ_j 1/w_j²)^½ of a block, by Cauchy and Schwarz."""
        members = memberships(self.blocks, self.weights.shape[-1]).T
        return jnp.sqrt(jnp.max(jnp.sum(jnp.where(members, jnp.asarray(self.weights) ** -2.0, 0.0), axis=1)))

    def draw_from_ball(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Points:
        """Multiplies `uniform_points` by w."""
        keys = jax.random.split(key, 4)
        sizes = jax.random.exponential(keys[0], (*shape, dimension))
        rests = jax.random.exponential(keys[1], (*shape, 2 * len(self.blocks)))
        coins, others = (jax.random.uniform(one, sizes.shape) for one in keys[2:])
        points = uniform_points(self.blocks, jnp, sizes, rests, coins, others)
        return points * jnp.broadcast_to(jnp.asarray(self.weights), points.shape)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """Σ_j log w_j and the log-volumes of the blocks."""
        return jnp.sum(jnp.log(jnp.asarray(self.weights))) + sum(block.log_volume for block in self.blocks)
