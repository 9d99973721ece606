"""Values of noise in float32: all of them, and what they give away."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from audits.support import impossible_outputs, laplace_values


def test_these_are_the_values_of_jax():
    values = laplace_values()
    assert values.dtype == np.float32
    key = jax.random.key(0)
    # Of 32 random bits 23 are those of the fraction.
    fractions = np.asarray(jax.random.bits(key, (5000,), jnp.uint32)) >> 9
    drawn = np.asarray(jax.random.laplace(key, (5000,), jnp.float32))
    np.testing.assert_array_equal(values[fractions], drawn)


def test_outputs_of_whole_noise_are_possible_of_both_answers_but_at_the_end():
    whole = np.arange(-1000, 1001, dtype=np.float32)
    assert impossible_outputs(whole, 0.0, 1.0, 1.0) == 1 / 2001
    # No sum of a half and a whole number is one.
    assert impossible_outputs(whole, 0.0, 0.5, 1.0) == 1.0


@pytest.mark.slow
def test_most_outputs_of_naive_noise_tell_two_answers_apart():
    values = laplace_values()
    assert impossible_outputs(values, 0.0, 1.0, 1.0) > 0.5
