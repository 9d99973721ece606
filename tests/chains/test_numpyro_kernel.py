"""The walk as a NumPyro kernel draws from the same density under every chain method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import MCMC

import kngjax as kng
from tests.oracles.goodness_of_fit import assert_mean_within
from tests.statistical.problems import problem


# NumPyro donates the collected samples' buffer, which XLA cannot always use.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable:UserWarning")
@pytest.mark.parametrize(
    ("method", "start"),
    [
        ("sequential", "given"),
        *[
            pytest.param(method, start, id=f"{name}-{start}")
            for name, method, start in [
                ("sequential", "sequential", "default"),
                ("vectorized", "vectorized", "given"),
                ("vectorized", "vectorized", "default"),
                ("vmap", jax.vmap, "given"),
                ("vmap", jax.vmap, "default"),
            ]
        ],
    ],
)
def test_numpyro_runs_the_walk(method, start):
    mechanism, data = problem("pseudo_huber", "kng", 2)
    kernel = kng.chains.CoordinateWalkKernel(mechanism.target(data), kng.chains.CoordinateWalk())
    mcmc = MCMC(kernel, num_warmup=200, num_samples=1500, num_chains=2, chain_method=method, progress_bar=False)
    init_params = None if start == "default" else jnp.full((2, 2), 0.3)
    mcmc.run(jax.random.key(0), init_params=init_params)
    theta = mcmc.get_samples(group_by_chain=True)
    assert theta.shape == (2, 1500, 2)
    reference = kng.sample(mechanism, data, key=kng.research_key(1), num_draws=1, num_chains=2000).theta[:, 0]
    # The chains are short and correlated: about 40 sweeps an independent draw.
    standard_error = reference.std(axis=0) * np.sqrt(1.0 / 75 + 1.0 / 2000)
    assert_mean_within(np.asarray(theta).reshape(-1, 2), reference.mean(axis=0), standard_error)
    assert np.std(np.asarray(theta)) > 0


def test_an_old_style_key_serves_too():
    mechanism, data = problem("pseudo_huber", "kng", 1)
    mcmc = MCMC(
        kng.chains.CoordinateWalkKernel(mechanism.target(data)),
        num_warmup=10,
        num_samples=20,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0))
    assert np.all(np.isfinite(mcmc.get_samples()))


def test_chains_start_apart_unless_they_are_told_where():
    """All at one point, R-hat would see no mode but its own."""
    mechanism, data = problem("pseudo_huber", "kng", 1)
    kernel = kng.chains.CoordinateWalkKernel(mechanism.target(data))
    keys = jax.random.split(jax.random.key(0), 2)
    theta = np.asarray(kernel.init(keys, 0, None, (), {}).theta)
    assert theta.shape == (2, 1)
    assert theta[0] != theta[1]
    np.testing.assert_array_equal(kernel.init(keys, 0, np.full((2, 1), 0.25), (), {}).theta, np.full((2, 1), 0.25))
