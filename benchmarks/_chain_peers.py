"""NumPyro's and BlackJAX's chains on the problem of `_chains`, written as most would write them.

They start at states of a long chain, as starts are left to their user. NumPyro's walk is a kernel for its `MCMC`, and
the same kernel in a loop that is compiled once; its NUTS runs on `mechanism.numpyro_model`. BlackJAX's walk has
proposals of one coordinate; its NUTS has its window adaptation for each chain. All NUTS double their trees
as often at most; all chains are mapped over.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS
from numpyro.infer.mcmc import MCMCKernel

from benchmarks import _workloads
from benchmarks._chains import Problem, Run, kept_draws

# Of trees, as ours.
DOUBLINGS = _workloads.NUTS.max_tree_depth


class PlainKernel(MCMCKernel):
    """A Metropolis move of one coordinate in turn, as a user of NumPyro would write it."""

    sample_field = "theta"  # pyright: ignore[reportAssignmentType]
    model = None

    class State(NamedTuple):
        theta: jax.Array
        log_density: jax.Array
        number: jax.Array
        rng_key: jax.Array

    def __init__(self, log_density, scales):
        self.log_density, self.scales = log_density, scales

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        number = jnp.zeros(init_params.shape[:-1], int)
        return self.State(init_params, jax.vmap(self.log_density)(init_params), number, rng_key)

    def sample(self, state, model_args, model_kwargs):
        return jax.vmap(self._move)(state)

    def _move(self, state):
        next_key, step_key, accept_key = jax.random.split(state.rng_key, 3)
        coordinate = state.number % self.scales.shape[0]
        moved = state.theta.at[coordinate].add(self.scales[coordinate] * jax.random.normal(step_key))
        proposed = self.log_density(moved)
        accept = jnp.log(jax.random.uniform(accept_key)) < proposed - state.log_density
        theta = jnp.where(accept, moved, state.theta)
        return self.State(theta, jnp.where(accept, proposed, state.log_density), state.number + 1, next_key)


def _by_mcmc(kernel: Any, lengths: tuple[int, int, int], starts: Any, thinning: int = 1) -> Run:
    """NumPyro's `MCMC`, mapped over chains."""
    chains, discarded, kept = lengths
    settings = {"num_chains": chains, "chain_method": "vectorized", "progress_bar": False, "thinning": thinning}
    mcmc = MCMC(kernel, num_warmup=discarded * thinning, num_samples=kept * thinning, **settings)

    def run(seed):
        mcmc.run(jax.random.PRNGKey(seed), init_params=starts)
        found = mcmc.get_samples(group_by_chain=True)
        return np.asarray(found["theta"] if isinstance(found, dict) else found)

    return run


def by_numpyro(given: Problem) -> Run:
    """Its `MCMC` with `PlainKernel`, a draw kept every sweep."""
    kernel = PlainKernel(given.mechanism.target(given.data).log_density, jnp.asarray(given.scales))
    starts = jnp.asarray(given.starts[: given.lengths.walks[0]])
    return _by_mcmc(kernel, given.lengths.walks, starts, given.lengths.dimension)


def by_numpyro_nuts(given: Problem) -> Run:
    """Its NUTS on the mechanism's model."""
    bijector = given.mechanism.target(given.data).domain.bijector(given.lengths.dimension)
    starts = {"theta": bijector.inv(jnp.asarray(given.starts[: given.lengths.trajectories[0]]))}
    kernel = NUTS(given.mechanism.numpyro_model(given.data), max_tree_depth=DOUBLINGS)
    return _by_mcmc(kernel, given.lengths.trajectories, starts)


def by_numpyro_compiled(given: Problem) -> Run:
    """`PlainKernel` in a loop that is compiled once, a draw kept every sweep."""
    chains, discarded, kept = given.lengths.walks

    @jax.jit
    def loop(mechanism, data, starts, scales, key):
        kernel = PlainKernel(mechanism.target(data).log_density, scales)
        state = kernel.init(jax.random.split(key, starts.shape[0]), 0, starts, (), {})

        def keep(state, _):
            state = jax.lax.fori_loop(0, scales.size, lambda _, state: kernel.sample(state, (), {}), state)
            return state, state.theta

        return jax.lax.scan(keep, state, None, length=discarded + kept)[1]

    def run(seed):
        parts = (given.mechanism, given.data, given.starts[:chains], given.scales)
        return kept_draws(loop(*parts, jax.random.PRNGKey(seed)), discarded)

    return run


def by_blackjax(given: Problem) -> Run:
    """Its additive step, a draw kept every sweep."""
    import blackjax

    (chains, discarded, kept), d = given.lengths.walks, given.lengths.dimension

    @jax.jit
    def loop(mechanism, data, starts, scales, key):
        def one_coordinate(key, theta):
            place_key, step_key = jax.random.split(key)
            place = jax.random.randint(place_key, (), 0, d)
            return jnp.zeros_like(theta).at[place].set(scales[place] * jax.random.normal(step_key))

        walk = blackjax.additive_step_random_walk(mechanism.target(data).log_density, one_coordinate)

        def move(states, key):
            return jax.vmap(walk.step)(jax.random.split(key, starts.shape[0]), states)[0], None

        def keep(states, keys):
            states, _ = jax.lax.scan(move, states, keys)
            return states, states.position

        keys = jax.random.split(key, (discarded + kept, d))
        return jax.lax.scan(keep, jax.vmap(walk.init)(starts), keys)[1]

    def run(seed):
        parts = (given.mechanism, given.data, given.starts[:chains], given.scales)
        return kept_draws(loop(*parts, jax.random.key(seed)), discarded)

    return run


def by_blackjax_nuts(given: Problem) -> Run:
    """Its NUTS after its window adaptation, on R^d through the domain's bijector, as NumPyro's."""
    import blackjax

    chains, discarded, kept = given.lengths.trajectories

    @jax.jit
    def loop(mechanism, data, starts, key):
        target = mechanism.target(data)
        log_density, bijector = target.unconstrained_log_density, target.domain.bijector(starts.shape[1])

        def chain(key, start):
            warm_key, key = jax.random.split(key)
            adaptation = blackjax.window_adaptation(blackjax.nuts, log_density, max_num_doublings=DOUBLINGS)
            (state, parameters), _ = adaptation.run(warm_key, bijector.inv(start), discarded)
            step = blackjax.nuts(log_density, **parameters).step

            def keep(state, key):
                state, _ = step(key, state)
                return state, bijector(state.position)

            return jax.lax.scan(keep, state, jax.random.split(key, kept))[1]

        return jax.vmap(chain)(jax.random.split(key, starts.shape[0]), starts)

    def run(seed):
        return np.asarray(loop(given.mechanism, given.data, given.starts[:chains], jax.random.key(seed)))

    return run


WALKS = {
    "NumPyro MCMC, walk": by_numpyro,
    "NumPyro kernel, own jit": by_numpyro_compiled,
    "BlackJAX walk": by_blackjax,
}
OTHERS = {"NumPyro NUTS": by_numpyro_nuts, "BlackJAX NUTS": by_blackjax_nuts}
