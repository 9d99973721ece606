"""Rejection: proposals are accepted with the probability that their envelope says, which is drawn from if the best."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import kngjax as kng
from kngjax.chains.exact import rejection
from kngjax.chains.exact.envelopes.base import AbstractEnvelope
from kngjax.chains.quadratic import quadratic_form
from tests.oracles.goodness_of_fit import assert_mean_within

NUM_DRAWS = 4000


class Power(AbstractEnvelope):
    """The density ∝ θ^power on [0, 1] by uniform proposals."""

    log_mass: Float[Array, ""]
    power: Float[Array, ""]

    def propose(self, target, form, key, uniforms):
        theta = uniforms[:, :1]
        return theta, self.power * jnp.log(theta[:, 0])


@pytest.mark.parametrize("best", [0, 1])
def test_draws_follow_the_density_of_the_envelope_with_the_smallest_mass(best):
    """E θ^k = (p + 1)/(p + 1 + k) for the densities ∝ θ^p with p = 1 and 3."""
    bounds = kng.Bounds(y=(0.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(0.0, 1.0), 1.0, "replace")
    target = mechanism.target(mechanism.prepare(None, np.linspace(0.0, 1.0, 8)))
    powers = [1.0, 3.0]
    envelopes = [Power(jnp.asarray(0.0 if number == best else 1.0), jnp.asarray(powers[number])) for number in (0, 1)]
    found = jax.jit(
        lambda target, envelopes, key: rejection.search_from(
            target,
            quadratic_form(target),
            envelopes,
            rejection.start(key, NUM_DRAWS, 1),
            lambda search: search.count < NUM_DRAWS,
            1000,
        )
    )(target, envelopes, kng.research_key(4))
    theta = np.asarray(found.kept)[:, 0]
    power = powers[best]
    expected = [(power + 1.0) / (power + 1.0 + moment) for moment in (1, 2)]
    assert_mean_within(np.column_stack([theta, theta**2]), expected)
