"""Parameters as float64 arrays on the host, and the float64 scope in which releases are computed."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

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
    """A number or a list or array of numbers as a NumPy float64 array of its own, which nobody can change.

    A promise does not move with the caller's array that it was made of. JAX arrays, which do not change, and tracers
    pass through.

    On the host a parameter keeps its 53 bits whatever `jax_enable_x64` says, and as an array it is an argument of
    compiled functions, so that one program serves every value.
    """
    if isinstance(value, jax.Array):
        return value
    own = np.array(value, dtype=np.float64)
    own.setflags(write=False)
    return own


def is_traced(*values: object) -> bool:
    """Whether any of these is a tracer, whose value cannot be validated."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def float64():
    """A context in which JAX computes in float64; let only NumPy arrays leave it."""
    return jax.enable_x64(True)


# So few rows are added in whatever order a library takes.
ROWS_A_BLOCK = 1024


def block_sums(terms: Callable[..., Any], rows: tuple[Any, ...], block: int | None = None) -> Any:
    """Σ terms(*rows) over blocks of rows, under jit, vmap and grad; what a block makes is in memory for it alone.

    Blocks are added in groups of about √(n/b) each, and the groups then. So of no entry are more than
    k = b + 2⌈√(n/b)⌉ + 2 additions made on the way of one row's term to the sum, in whatever order a block's own b rows
    are added; with u = 2^-53 in float64 the entry errs by at most ku/(1 - ku)·Σ_i |t_i| (Higham 2002, section 4.2),
    where a sum of one row after another may err by n of them: 5·10^3 for n = 10^9 and b = 2^12. The product of a weight
    and a row is one more rounding, and in a block of b rows there are b - 1 additions. Loops, and not sums of reshaped
    arrays: compilers merge those into one sum over all rows.

    **Arguments:** `terms`: from so many rows of each array to a pytree of their sums. `rows`: arrays of one length.
    `block`: b, rows at a time, `ROWS_A_BLOCK` unless given; so few rows are one block, and there is no loop.
    """
    arrays = tuple(jnp.asarray(part) for part in rows)
    num_rows, block = arrays[0].shape[0], ROWS_A_BLOCK if block is None else block
    if num_rows <= block:
        return terms(*arrays)

    def add(sums: Any, start: Any, length: int) -> Any:
        found = terms(*(jax.lax.dynamic_slice_in_dim(part, start, length) for part in arrays))
        return jax.tree.map(jnp.add, sums, found)

    def add_group(first: Any, size: int, sums: Any) -> Any:
        found = jax.lax.fori_loop(0, size, lambda place, sums: add(sums, (first + place) * block, block), nothing)
        return jax.tree.map(jnp.add, sums, found)

    shapes = jax.eval_shape(terms, *arrays)
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    num_blocks, rest = divmod(num_rows, block)
    in_group = math.isqrt(num_blocks - 1) + 1
    num_groups, left = divmod(num_blocks, in_group)
    # Of static lengths, so that gradients pass.
    sums = jax.lax.fori_loop(0, num_groups, lambda number, sums: add_group(number * in_group, in_group, sums), nothing)
    if left:
        sums = add_group(num_groups * in_group, left, sums)
    return add(sums, num_blocks * block, rest) if rest else sums


def record_sums(weights: Any, rows: Any) -> Any:
    """Σ_i w_i x_i, of numbers or rows x_i, with the bound of `block_sums`: ku/(1 - ku)·Σ_i |w_i x_ij|."""
    return block_sums(lambda weights, rows: weights @ rows, (weights, rows))


def weighted_gram(weights: Any, rows: Any) -> Any:
    """Σ_i w_i x_i x_i', with the bound of `block_sums` for a product of one factor more, k + 1 in the place of k."""
    return block_sums(lambda weights, rows: (rows * weights[:, None]).T @ rows, (weights, rows))


def record_sums_on_host(
    weights: Float[np.ndarray, " records"], rows: Float[np.ndarray, "records columns"]
) -> np.ndarray:
    """Σ_i w_i x_i in NumPy: of blocks of b = `ROWS_A_BLOCK` rows in float64, and of the blocks' sums rounded once.

    A block's term passes at most b roundings, its product's and b - 1 of additions in whatever order, and the last one
    is one more. So with k = b + 1 and u = 2^-53 an entry errs by at most ku/(1 - ku)·Σ_i |w_i x_ij|, whatever n.
    """
    starts = range(0, len(rows), ROWS_A_BLOCK)
    parts = [weights[start : start + ROWS_A_BLOCK] @ rows[start : start + ROWS_A_BLOCK] for start in starts]
    table = np.array(parts, np.float64).reshape(-1, rows.shape[1])
    # Beyond, and for what is no number, nothing is stated.
    if not np.all(np.abs(table) < 1e300):
        return np.sum(table, axis=0)
    return np.array([math.fsum(column) for column in table.T])


def cumulative_sums(terms: Any) -> Any:
    """t_0, t_0 + t_1, …, along the first axis: within blocks, and of what the blocks before add up to, in turn.

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
