"""Makes parameters float64 arrays on the host, and sums of records of which the rounding error is bounded."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.core
import jax.numpy as jnp
import jaxlib.version
import numpy as np
from jaxtyping import Array, Float

from kngjax.core import forks, versions

# Every release imports this module.
versions.require_right(jaxlib.version.__version__)

# Parameters rest as NumPy arrays and are computed with as JAX arrays or tracers; static checkers know no type that is
# all three, so for them these are Any, and beartype checks dtype and shape when the tests run.
if TYPE_CHECKING:
    Scalar: TypeAlias = Any
    Vector: TypeAlias = Any
    Matrix: TypeAlias = Any
else:
    Scalar = Float[Array, ""] | Float[np.ndarray, ""]
    Vector = Float[Array, " dimension"] | Float[np.ndarray, " dimension"]
    Matrix = Float[Array, "dimension dimension"] | Float[np.ndarray, "dimension dimension"]


def parameter(value: Any) -> Array | np.ndarray:
    """Copies a number, a list or an array of numbers into a NumPy float64 array that nobody can change.

    It is a copy, so that a public setting does not change with the caller's array. Tracers pass through.

    On the host a parameter keeps its 53 bits whatever `jax_enable_x64` says, and as an array it is an argument of
    compiled functions, so that one program serves every value. A JAX array would carry the precision that it was made
    in into every release.
    """
    if is_traced(value):
        return value
    copy = np.array(value, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def positive_parameter(name: str, value: Any, meaning: str) -> Array | np.ndarray:
    """Returns a parameter that is one positive number; raises TypeError or ValueError that say what it is for."""
    if not is_traced(value) and np.asarray(value).dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number, {meaning}; got {value!r}")
    made = parameter(value)
    if not is_traced(made) and (np.ndim(made) or not 0.0 < float(made) < np.inf):
        raise ValueError(f"{name} must be one positive and finite number, {meaning}; got {value!r}")
    return made


def is_traced(*values: object) -> bool:
    """Says whether any of these is a tracer, whose value cannot be validated."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def float64():
    """Lets JAX compute in float64 within a context; only NumPy arrays may leave it."""
    forks.refuse()
    return jax.enable_x64(True)


# Up to so many rows are added in whatever order a library takes.
ROWS_A_BLOCK = 1024


def block_sums(terms: Callable[..., Any], rows: tuple[Any, ...], block: int | None = None) -> Any:
    """Sums terms(*rows) over blocks of rows, under jit, vmap and grad; memory holds results of one block at a time.

    Blocks are added in groups of about √(n/b), and then the groups. So one row's term passes at most
    k = b + 2⌈√(n/b)⌉ + 2 additions on its way to an entry of the sum, in whatever order the b rows of a block are
    added; with u = 2^-53 in float64 the entry errs by at most ku/(1 - ku)·Σ_i |t_i| (Higham 2002, section 4.2),
    where a sum of one row after another may err by n of them: 5·10^3 for n = 10^9 and b = 2^12. The product of a weight
    and a row is one more rounding, and in a block of b rows there are b - 1 additions. Loops, and not sums of reshaped
    arrays: compilers merge those into one sum over all rows.

    **Arguments:** `terms`: a function from some rows of each array to a pytree of their sums. `rows`: arrays of one
    length. `block`: b, the rows of a block, `ROWS_A_BLOCK` unless given; up to b rows are one block without a loop.
    """
    arrays = tuple(jnp.asarray(part) for part in rows)
    num_rows, block = arrays[0].shape[0], ROWS_A_BLOCK if block is None else block
    if num_rows <= block:
        return terms(*arrays)

    def add(sums: Any, start: Any, length: int) -> Any:
        of_block = terms(*(jax.lax.dynamic_slice_in_dim(part, start, length) for part in arrays))
        return jax.tree.map(jnp.add, sums, of_block)

    def add_group(first: Any, size: int, sums: Any) -> Any:
        of_group = jax.lax.fori_loop(0, size, lambda number, sums: add(sums, (first + number) * block, block), zeros)
        return jax.tree.map(jnp.add, sums, of_group)

    shapes = jax.eval_shape(terms, *arrays)
    zeros = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    num_blocks, rest = divmod(num_rows, block)
    in_group = math.isqrt(num_blocks - 1) + 1
    num_groups, left = divmod(num_blocks, in_group)
    # Loops of static lengths, which can be differentiated.
    sums = jax.lax.fori_loop(0, num_groups, lambda number, sums: add_group(number * in_group, in_group, sums), zeros)
    if left:
        sums = add_group(num_groups * in_group, left, sums)
    return add(sums, num_blocks * block, rest) if rest else sums


def record_sums(weights: Any, rows: Any) -> Any:
    """Computes Σ_i w_i x_i of numbers or rows x_i, with the bound of `block_sums`: ku/(1 - ku)·Σ_i |w_i x_ij|."""
    return block_sums(lambda weights, rows: weights @ rows, (weights, rows))


def weighted_gram(weights: Any, rows: Any) -> Any:
    """Computes Σ_i w_i x_i x_i', with the bound of `block_sums` at k + 1: the product has one more factor."""
    return block_sums(lambda weights, rows: (rows * weights[:, None]).T @ rows, (weights, rows))


def record_sums_on_host(
    weights: Float[np.ndarray, " records"], rows: Float[np.ndarray, "records columns"]
) -> np.ndarray:
    """Computes Σ_i w_i x_i in NumPy: in float64 over blocks of b = `ROWS_A_BLOCK` rows, whose sums are rounded once.

    A term passes at most b roundings in its block, one of its product and b - 1 of additions in whatever order, and one
    at the end. So with k = b + 1 and u = 2^-53 an entry errs by at most ku/(1 - ku)·Σ_i |w_i x_ij|, whatever n.
    """
    starts = range(0, len(rows), ROWS_A_BLOCK)
    parts = [weights[start : start + ROWS_A_BLOCK] @ rows[start : start + ROWS_A_BLOCK] for start in starts]
    table = np.array(parts, np.float64).reshape(-1, rows.shape[1])
    # No bound is stated for larger sums, or for NaN.
    if not np.all(np.abs(table) < 1e300):
        return np.sum(table, axis=0)
    return np.array([math.fsum(column) for column in table.T])


def cumulative_sums(terms: Any) -> Any:
    """Computes t_0, t_0 + t_1, … along the first axis: within blocks, plus the cumulative sums of earlier blocks.

    A cumulative sum within a block of b = `ROWS_A_BLOCK` makes at most b - 1 additions for one term, in whatever order,
    and one adds what was before; that is a cumulative sum of n/b terms again. So none of the sums has more than
    k = bL additions on the way of one term, L = ⌈log n/log b⌉ or 1, and it errs by at most ku/(1 - ku)·Σ |t| over the
    terms in it, as in `block_sums`: 2·10^3 for n = 10^6, where one after another may err by 10^6 of them.
    """
    terms = jnp.asarray(terms)
    count, block = terms.shape[0], ROWS_A_BLOCK
    if count <= block:
        return jnp.cumsum(terms, axis=0)
    num_blocks, shape = -(-count // block), terms.shape[1:]
    padded = jnp.pad(terms, [(0, num_blocks * block - count), *((0, 0) for _ in shape)])
    within = jnp.cumsum(padded.reshape(num_blocks, block, *shape), axis=1)
    before = cumulative_sums(within[:-1, -1])
    later = within[1:] + before[:, None]
    return jnp.concatenate([within[0], later.reshape(-1, *shape)])[:count]


_LARGEST = 1e60


def require_moderate(name: str, *values: Any) -> None:
    """Raises ValueError for a public size beyond 1e60, or below 1e-60 but not 0: float64 cannot square their products.

    Sensitivities are such squares: one that underflows to 0 would take all noise away.
    """
    sizes = np.abs(np.concatenate([np.ravel(np.asarray(value, np.float64)) for value in values]))
    if np.any((sizes > _LARGEST) | ((sizes > 0.0) & (sizes < 1.0 / _LARGEST))):
        raise ValueError(f"{name} must be 0 or between 1e-60 and 1e60 in size: rescale the columns of X, y and theta")
