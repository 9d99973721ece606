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


def block_sums(terms: Callable[..., Any], rows: tuple[Any, ...], block: int) -> Any:
    """Σ terms(*rows) over blocks of rows, under jit: what a block makes is in memory for that block alone.

    Blocks are added in groups of about √(n/b) each, and the groups then. So of no entry are more than
    k = b + 2⌈√(n/b)⌉ + 2 additions made on the way of one row's term to the sum, in whatever order a block's own b rows
    are added; with u = 2^-53 in float64 the entry errs by at most ku/(1 - ku)·Σ_i |t_i| (Higham 2002, section 4.2),
    where a sum of one row after another may err by n of them: 5·10^3 for n = 10^9 and b = 2^12.

    **Arguments:** `terms`: from so many rows of each array to a pytree of their sums. `rows`: arrays of one length.
    `block`: b, rows at a time.
    """
    arrays = tuple(jnp.asarray(part) for part in rows)
    num_rows = arrays[0].shape[0]

    def add(sums: Any, start: Any, length: int) -> Any:
        found = terms(*(jax.lax.dynamic_slice_in_dim(part, start, length) for part in arrays))
        return jax.tree.map(jnp.add, sums, found)

    def add_group(number: Any, sums: Any) -> Any:
        start, end = number * in_group, jnp.minimum((number + 1) * in_group, num_blocks)
        found = jax.lax.fori_loop(start, end, lambda place, sums: add(sums, place * block, block), nothing)
        return jax.tree.map(jnp.add, sums, found)

    shapes = jax.eval_shape(lambda: terms(*arrays))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    num_blocks, rest = divmod(num_rows, block)
    in_group = math.isqrt(max(num_blocks - 1, 0)) + 1
    sums = nothing
    if num_blocks:
        sums = jax.lax.fori_loop(0, -(-num_blocks // in_group), add_group, nothing)
    return add(sums, num_blocks * block, rest) if rest else sums


_LARGEST = 1e60


def require_moderate(name: str, *values: Any) -> None:
    """Raises ValueError for a public size beyond 1e60, or below 1e-60 but not 0: float64 cannot square their products.

    Sensitivities are such squares: one that underflows to 0 would take all noise away.
    """
    sizes = np.abs(np.concatenate([np.ravel(np.asarray(value, np.float64)) for value in values]))
    if np.any((sizes > _LARGEST) | ((sizes > 0.0) & (sizes < 1.0 / _LARGEST))):
        raise ValueError(f"{name} must be 0 or between 1e-60 and 1e60 in size: rescale the columns of X, y and theta")
