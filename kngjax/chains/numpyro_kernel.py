"""The one-at-a-time walk as a NumPyro `MCMCKernel`."""

from typing import Any, NamedTuple

import jax
from jaxtyping import Array, PRNGKeyArray
from numpyro.infer.mcmc import MCMCKernel

from kngjax.chains.coordinate_walk import CoordinateWalk, WalkState
from kngjax.chains.limit_law import starts
from kngjax.chains.newton import descend
from kngjax.chains.target import Target


class CoordinateWalkKernelState(NamedTuple):
    """**Arguments:** `theta`: the sample field; `walk`: the walk's state; `rng_key`: of the next sweep."""

    theta: Any
    walk: WalkState
    rng_key: PRNGKeyArray


class CoordinateWalkKernel(MCMCKernel):
    """Runs `CoordinateWalk` in `numpyro.infer.MCMC`: one sweep a sample, site name `theta`. Research only.

        mcmc = MCMC(CoordinateWalkKernel(mechanism.target(data)), num_warmup=500, num_samples=1000)
        mcmc.run(jax.random.key(0))

    It serves `chain_method` "sequential", "vectorized" and `jax.vmap`. `kngjax.sample` draws randomness in blocks and
    is many times faster.

    Chains start as those of `kngjax.sample` do, each by its own key, or at `init_params`.

    **Arguments:** `target`: from `mechanism.target(data)`, private. `walk`: its settings; "public" tuning by default.
    """

    sample_field = "theta"  # pyright: ignore[reportAssignmentType]
    model = None

    def __init__(self, target: Target, walk: CoordinateWalk | None = None):
        self.target = target
        self.walk = CoordinateWalk(tuning="public") if walk is None else walk

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs) -> CoordinateWalkKernelState:
        is_batch = _is_batch(rng_key)
        if init_params is None:
            places = _starts(self.target, rng_key if is_batch else rng_key[None])
            init_params = places if is_batch else places[0]
        return (jax.vmap(self._init_one) if is_batch else self._init_one)(rng_key, init_params)

    def _init_one(self, rng_key: PRNGKeyArray, theta: Array) -> CoordinateWalkKernelState:
        walk = self.walk.init(self.target, theta[None], theta, rng_key)
        return CoordinateWalkKernelState(walk.theta, walk, rng_key)

    def sample(self, state, model_args, model_kwargs) -> CoordinateWalkKernelState:
        if _is_batch(state.rng_key):
            return jax.vmap(self._sample_one)(state)
        return self._sample_one(state)

    def _sample_one(self, state: CoordinateWalkKernelState) -> CoordinateWalkKernelState:
        next_key, noise_key = jax.random.split(state.rng_key)
        noise = jax.tree.map(lambda block: block[0], self.walk.noise(noise_key, self.target, state.walk, 1))
        walk, _ = self.walk.step(self.target, state.walk, noise)
        return CoordinateWalkKernelState(walk.theta, walk, next_key)


@jax.jit
def _starts(target, keys):
    """Draws the point at which each chain starts. Private."""
    centre = descend(target)
    return jax.vmap(lambda key: starts(target, centre, key, 1)[0])(keys)


def _is_batch(rng_key: Any) -> bool:
    typed = jax.numpy.issubdtype(rng_key.dtype, jax.dtypes.prng_key)
    return rng_key.ndim > (0 if typed else 1)
