"""Values of noise in float32: all of them, and what they give away."""

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.audit import impossible_outputs, laplace_values


def test_these_are_the_values_of_jax():
    values = laplace_values()
    assert values.dtype == np.float32
    for seed in range(3):
        drawn = jax.random.laplace(jax.random.key(seed), (5000,), jnp.float32)
        assert np.all(np.isin(np.asarray(drawn), values))


def test_most_outputs_of_naive_noise_tell_two_answers_apart_and_none_on_a_lattice():
    values = laplace_values()
    assert impossible_outputs(values, 0.0, 1.0, 1.0) > 0.5
    # A count plus whole noise: one more at most is out of reach, at the end of the range.
    whole = np.arange(-1000, 1001, dtype=np.float32)
    assert impossible_outputs(whole, 0.0, 1.0, 1.0) == 1 / 2001
