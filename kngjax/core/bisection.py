"""Solves equations with a single unknown by bisection, under jit and vmap."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def bisect(
    lies_above: Callable[[Float[Array, "*batch"]], Bool[Array, "*batch"]],
    lower: Float[Array, "*batch"],
    upper: Float[Array, "*batch"],
    num_halvings: int,
    geometric: bool = False,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Halves the interval [lower, upper] so many times, and returns the ends between which the solution lies.

    The lower end moves to every middle for which `lies_above` says that what is sought lies above it, and the upper end
    to every other, among them those for which it compares with NaN. So each end that was moved has the answer of its
    side, whatever rounding did to the other one. The ends are (upper - lower)/2^n apart, or their logarithms are, until
    they are next to each other.

    **Arguments:** `geometric`: middles are √(lower·upper) of positive ends, and not their mean.
    """

    def halve(_, ends):
        middle = jnp.sqrt(ends[0] * ends[1]) if geometric else 0.5 * (ends[0] + ends[1])
        above = lies_above(middle)
        return jnp.where(above, middle, ends[0]), jnp.where(above, ends[1], middle)

    return jax.lax.fori_loop(0, num_halvings, halve, (jnp.asarray(lower), jnp.asarray(upper)))
