"""Every test computes in float64, and an array of the wrong rank is an error and not a silent broadcast."""

import hypothesis
import jax

# Before any array is made: JAX refuses to mix the two precisions in one process.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# The same examples in every run, however slow the machine.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fixed")
