"""The one-at-a-time walk on the squared loss of Figure 1's design: ours, NumPyro's `MCMC`, BlackJAX, a NumPy loop.

`python -m benchmarks.walk [--chains 100] [--moves 10000] [--records 10000] [--dimension 12]`.

KNG from sufficient statistics, ε = 1. A move changes one coordinate and every method makes about as many a chain, with
the same scales: whole sweeps of d for ours. Peers are written as most would write them, on the same jitted log-density,
O(d²) a move: NumPyro as a custom kernel with `chain_method="vectorized"`, which compiles for every run, and the same
kernel in a loop that is compiled once; BlackJAX as its random walk with a proposal of one coordinate, mapped; and a
NumPy loop of the papers' algorithm for a few chains, scaled up. Effective draws are of the worst coefficient by ArviZ,
over all chains, without the first tenth.
"""

import argparse
import functools
import os
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

import kngjax as kng
from benchmarks.squared_loss import data_set, mechanisms
from kngjax.chains.limit_law import limit_law_scales
from kngjax.core.arrays import float64
from kngjax.owner import nonprivate
from kngjax.releases.chains import advance, start_chains

NUMPY_CHAINS = 2


class Problem(NamedTuple):
    """What all methods draw from, with their starts, shape (chains, d), and scales, shape (d,)."""

    mechanism: kng.KNG
    data: kng.data.QuadraticSummary
    starts: np.ndarray
    scales: np.ndarray


def problem(num_records: int, dimension: int, num_chains: int) -> Problem:
    """Figure 1's, with chains that start about the estimate without privacy."""
    mechanism, data = mechanisms()["KNG"], data_set(num_records, dimension, 0)
    centre = nonprivate.minimiser(mechanism.loss, data)
    with float64():
        states = start_chains(mechanism, data, kng.chains.CoordinateWalk(), centre, kng.research_key(0), num_chains)
        scales = limit_law_scales(mechanism.target(data), centre)
        return Problem(mechanism, data, np.array(states.theta), np.array(scales))


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


def by_kngjax(given: Problem, num_moves: int, precision="float64"):
    """A function of a seed to draws of shape (chains, sweeps, d)."""
    num_chains, dimension = given.starts.shape
    num_sweeps = -(-num_moves // dimension)
    walk = kng.chains.CoordinateWalk(precision=precision)
    with float64():
        centre = nonprivate.minimiser(given.mechanism.loss, given.data)
        states = start_chains(given.mechanism, given.data, walk, centre, kng.research_key(0), num_chains)

    def run(seed):
        _, thetas, _ = advance(given.mechanism, given.data, walk, states, kng.research_key(seed), 1, num_sweeps, 1)
        return np.swapaxes(np.asarray(thetas), 0, 1)

    return run


def by_numpyro(given: Problem, num_moves: int):
    """NumPyro's `MCMC` with `PlainKernel`, a draw kept every sweep; it compiles anew for every run."""

    def run(seed):
        target = given.mechanism.target(given.data)
        mcmc = MCMC(
            PlainKernel(target.log_density, jnp.asarray(given.scales)),
            num_warmup=0,
            num_samples=num_moves,
            thinning=given.starts.shape[1],
            num_chains=given.starts.shape[0],
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.PRNGKey(seed), init_params=jnp.asarray(given.starts))
        return np.asarray(mcmc.get_samples(group_by_chain=True))

    return run


def by_numpyro_compiled(given: Problem, num_moves: int):
    """The same kernel in a loop that is compiled once, which NumPyro leaves to its user; a draw kept every sweep."""
    num_sweeps, dimension = -(-num_moves // given.starts.shape[1]), given.starts.shape[1]

    @jax.jit
    def loop(mechanism, data, starts, scales, key):
        kernel = PlainKernel(mechanism.target(data).log_density, scales)
        state = kernel.init(jax.random.split(key, starts.shape[0]), 0, starts, (), {})

        def keep(state, _):
            state = jax.lax.fori_loop(0, dimension, lambda _, state: kernel.sample(state, (), {}), state)
            return state, state.theta

        return jax.lax.scan(keep, state, None, length=num_sweeps)[1]

    def run(seed):
        thetas = loop(given.mechanism, given.data, given.starts, given.scales, jax.random.PRNGKey(seed))
        return np.swapaxes(np.asarray(thetas), 0, 1)

    return run


def by_blackjax(given: Problem, num_moves: int):
    """BlackJAX's additive step, a draw kept every sweep, or None if it is not installed."""
    try:
        import blackjax
    except ImportError:
        return None
    dimension = given.starts.shape[1]

    @jax.jit
    def loop(mechanism, data, starts, scales, key):
        def one_coordinate(key, theta):
            place_key, step_key = jax.random.split(key)
            place = jax.random.randint(place_key, (), 0, dimension)
            return jnp.zeros_like(theta).at[place].set(scales[place] * jax.random.normal(step_key))

        walk = blackjax.additive_step_random_walk(mechanism.target(data).log_density, one_coordinate)

        def move(states, key):
            return jax.vmap(walk.step)(jax.random.split(key, starts.shape[0]), states)[0], None

        def keep(states, keys):
            states, _ = jax.lax.scan(move, states, keys)
            return states, states.position

        keys = jax.random.split(key, (-(-num_moves // dimension), dimension))
        return jax.lax.scan(keep, jax.vmap(walk.init)(starts), keys)[1]

    def run(seed):
        thetas = loop(given.mechanism, given.data, given.starts, given.scales, jax.random.key(seed))
        return np.swapaxes(np.asarray(thetas), 0, 1)

    return run


def by_numpy(given: Problem, num_moves: int):
    """The papers' algorithm in NumPy, one chain after the other."""
    target = given.mechanism.target(given.data)
    gram, moment, weights, rate, radius = (
        np.asarray(part, dtype=float)
        for part in (given.data.gram, given.data.moment, target.norm.weights, target.rate, target.domain.radius)
    )

    def log_density(theta):
        if np.sum(np.abs(theta)) > radius:
            return -np.inf
        return -rate * np.max(np.abs(gram @ theta - moment) / weights)

    def run(seed):
        random = np.random.default_rng(seed)
        chains = np.empty((min(NUMPY_CHAINS, given.starts.shape[0]), num_moves, given.starts.shape[1]))
        for chain in chains:
            theta = given.starts[0].copy()
            density = log_density(theta)
            for number in range(num_moves):
                coordinate = number % theta.size
                moved = theta.copy()
                moved[coordinate] += given.scales[coordinate] * random.standard_normal()
                proposed = log_density(moved)
                if np.log(random.random()) < proposed - density:
                    theta, density = moved, proposed
                chain[number] = theta
        return chains

    return run


METHODS = {
    "CoordinateWalk": by_kngjax,
    "CoordinateWalk, float32": functools.partial(by_kngjax, precision="float32"),
    "NumPyro MCMC": by_numpyro,
    "NumPyro kernel, own jit": by_numpyro_compiled,
    "BlackJAX random walk": by_blackjax,
    "NumPy loop": by_numpy,
}


def effective(thetas: np.ndarray) -> float:
    """Bulk effective draws of the worst coefficient, without the first tenth."""
    kept = thetas[:, thetas.shape[1] // 10 :]
    # Moves of one coordinate: a draw in d of them says nearly all.
    step = max(1, kept.shape[1] // 1000)
    return float(kng.owner.Draws(kept[:, ::step], "").ess().min())


def rows(num_chains=100, num_moves=10_000, num_records=10_000, dimension=12, rounds=5) -> list[dict]:
    """One row a method: first and best warm seconds for all chains, and effective draws per second.

    Rounds alternate between the methods, so that what else the machine does is shared.
    """
    with float64():
        given = problem(num_records, dimension, num_chains)
        made, found = {name: method(given, num_moves) for name, method in METHODS.items()}, {}
        for seed in range(rounds + 1):
            for name, run in made.items():
                if run is None or (name == "NumPy loop" and seed > 1):
                    continue
                start = time.perf_counter()
                thetas = run(seed)
                taken = (time.perf_counter() - start) * num_chains / thetas.shape[0]
                first, best, _ = found.get(name, (taken, np.inf, None))
                found[name] = (first, min(best, taken) if seed else best, (thetas, num_chains / thetas.shape[0]))
        table = []
        for name in METHODS:
            if name not in found:
                table.append({"method": name, "note": "not installed"})
                continue
            first, best, (thetas, share) = found[name]
            table.append({"method": name, "first": first, "warm": best, "effective": effective(thetas) * share / best})
        return table


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--moves", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=12)
    options = parser.parse_args()
    print(
        f"{options.chains} chains x {options.moves} moves of one coordinate, d = {options.dimension}, "
        f"n = {options.records}, on {os.cpu_count()} processors with load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'method':26}{'first, s':>10}{'warm, s':>10}{'times ours':>12}{'effective/s':>13}")
    table = rows(options.chains, options.moves, options.records, options.dimension)
    for row in table:
        if "note" in row:
            print(f"{row['method']:26}{row['note']:>20}")
            continue
        ratio = row["warm"] / table[0]["warm"]
        print(f"{row['method']:26}{row['first']:>10.3f}{row['warm']:>10.3f}{ratio:>12.1f}{row['effective']:>13.0f}")


if __name__ == "__main__":
    main()
