"""Every test computes in float64, and an array of the wrong rank is an error and not a silent broadcast."""

import jax

# Before any array is made: JAX refuses to mix the two precisions in one process.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
