"""Parameters as float64 arrays on the host, and the float64 scope in which releases are computed."""

from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.core
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
    """A number or a list or array of numbers as a NumPy float64 array; JAX arrays and tracers pass through.

    On the host a parameter keeps its 53 bits whatever `jax_enable_x64` says, and as an array it is an argument of
    compiled functions, so that one program serves every value.
    """
    if isinstance(value, jax.Array):
        return value
    return np.asarray(value, dtype=np.float64)


def is_traced(*values: object) -> bool:
    """Whether any of these is a tracer, whose value cannot be validated."""
    return any(isinstance(value, jax.core.Tracer) for value in values)


def float64():
    """A context in which JAX computes in float64; let only NumPy arrays leave it."""
    return jax.enable_x64(True)
