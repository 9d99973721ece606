"""Noise that is added in floating point: values that one answer can give and its neighbour cannot."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

_FRACTION_BITS = 23


def laplace_values() -> Float[np.ndarray, " values"]:
    """All that `jax.random.laplace` can return in float32, one for each of its 2^23 uniform numbers, in their order."""
    return np.asarray(_laplace(jnp.arange(2**_FRACTION_BITS, dtype=jnp.uint32)))


# Compiled as a whole, as JAX's own is: a product and a sum may then be rounded once.
@jax.jit
def _laplace(fractions):
    below_one = jax.lax.bitcast_convert_type(fractions | jnp.uint32(0x3F800000), jnp.float32) - jnp.float32(1.0)
    least = jnp.float32(-1.0 + jnp.finfo(jnp.float32).epsneg)
    uniform = jax.lax.max(least, below_one * (jnp.float32(1.0) - least) + least)
    return jnp.sign(uniform) * jnp.log1p(-jnp.abs(uniform))


@jax.jit
def _added(answer, scale, values):
    return answer + scale * values


def impossible_outputs(values: np.ndarray, answer: float, neighbour: float, scale: float) -> float:
    """P(an output `answer` + scale·Z is none that `neighbour` + scale·Z can give), Z uniform among float32 values.

    Any such output proves which of the two data sets it was: no ε holds, and δ is at least this probability.

    **Arguments:** `values`: of Z, shape (values,). `answer`, `neighbour`: of the two data sets. `scale`: of the noise.
    """
    outputs, others = (
        np.asarray(_added(np.float32(value), np.float32(scale), values)) for value in (answer, neighbour)
    )
    return float(np.mean(~np.isin(outputs, others)))
