"""Our chains on one problem, the walk as one kernel, and the papers' loop in NumPy: what `_chain_peers` stands beside.

All draw from KNG with the squared loss of Figure 1's design, from sufficient statistics at ε = 1, and discard their own
warm-up; a call's whole time counts, warm-up and adaptation too. Walks of one coordinate have the same scales.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import kngjax as kng
from benchmarks import _pallas_walk
from benchmarks._workloads import BOUNDS, NUTS, design

# A loop in Python has time for so many.
NUMPY_CHAINS = 2


class Lengths(NamedTuple):
    """**Arguments:** `records`, `dimension`; `chains`, discarded and kept: sweeps of `walks` and of `gibbs`, draws of
    `trajectories`.
    """

    records: int
    dimension: int
    walks: tuple[int, int, int]
    gibbs: tuple[int, int, int]
    trajectories: tuple[int, int, int]


# Some are as long as workloads, so that they share programs.
PROCESSOR = Lengths(10_000, 12, (100, 100, 1000), (100, 20, 100), (20, 150, 150))
CARD = Lengths(10_000, 12, (1024, 100, 500), (1024, 20, 100), (1000, 100, 100))
QUICK = Lengths(500, 3, (4, 5, 40), (4, 5, 40), (4, 20, 40))


class Problem(NamedTuple):
    """What all methods draw from, with starts of shape (most chains, d) and scales of steps, shape (d,)."""

    mechanism: kng.KNG
    data: Any
    starts: np.ndarray
    scales: np.ndarray
    lengths: Lengths


def problem(lengths: Lengths) -> Problem:
    """Figure 1's; starts are states of one long chain, every fifth sweep."""
    mechanism = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.L1Ball(1.0), 1.0, "replace")
    with jax.enable_x64(True):
        x, y, _ = design(jax.random.key(0), lengths.records, lengths.dimension)
        data = mechanism.prepare(np.asarray(x), np.asarray(y))
        density = _pallas_walk.density(mechanism, data)
    inside, scales = _pallas_walk.start(density)
    most = max(chains for chains, _, _ in lengths[2:])
    noise = normal_noise(np.random.default_rng(0), scales, 200 + 5 * most, 1)
    thetas = numpy_walk(density, inside[:, None], noise)[200::5, :, 0]
    return Problem(mechanism, data, thetas, scales, lengths)


def normal_noise(
    random: np.random.Generator, scales: np.ndarray, num_sweeps: int, num_chains: int
) -> _pallas_walk.Noise:
    """Steps and uniform numbers of some chains."""
    shape = (num_sweeps, scales.size, num_chains)
    return _pallas_walk.Noise(scales[:, None] * random.standard_normal(shape), random.uniform(size=shape))


def numpy_walk(density: _pallas_walk.Density, starts: np.ndarray, noise: _pallas_walk.Noise) -> np.ndarray:
    """The papers' algorithm in NumPy, one chain after the other: θ after each sweep, shape (sweeps, d, chains)."""
    gram, moment, rates, (radius,) = density

    def log_density(theta):
        return -np.inf if np.sum(np.abs(theta)) > radius else -np.max(rates * np.abs(gram @ theta - moment))

    thetas = np.empty_like(noise.steps)
    for chain in range(thetas.shape[2]):
        theta = starts[:, chain].copy()
        current = log_density(theta)
        for sweep, coordinate in np.ndindex(thetas.shape[:2]):
            moved = theta.copy()
            moved[coordinate] += noise.steps[sweep, coordinate, chain]
            proposed = log_density(moved)
            if np.log1p(-noise.uniforms[sweep, coordinate, chain]) < proposed - current:
                theta, current = moved, proposed
            thetas[sweep, :, chain] = theta
    return thetas


Run = Callable[[int], np.ndarray]


def ours(sampler: Any, of: str) -> Callable[[Problem], Run]:
    """A method of `kng.sample`: of a problem to a function of a seed to draws of shape (chains, draws, d)."""

    def method(given: Problem) -> Run:
        chains, discarded, kept = getattr(given.lengths, of)
        sizes = {"num_chains": chains, "num_warmup": discarded, "num_draws": kept, "progress": False}

        def run(seed):
            key = kng.research_key(seed)
            return kng.sample(given.mechanism, given.data, key=key, sampler=sampler, **sizes).theta

        return run

    return method


def kept_draws(thetas: Any, discarded: int) -> np.ndarray:
    """Draws of shape (chains, draws, d) from those of shape (draws, chains, d)."""
    return np.swapaxes(np.asarray(thetas[discarded:]), 0, 1)


def by_pallas(given: Problem) -> Run:
    """The walk as one kernel, with random numbers of its own: on a card alone."""
    chains, discarded, kept = given.lengths.walks
    starts = given.starts[:chains].T
    density = _pallas_walk.density(given.mechanism, given.data)

    def run(seed):
        noise = _pallas_walk.Counters(np.array([seed, 0], np.uint32), given.scales)
        thetas = _pallas_walk.sweeps(density, starts, noise, discarded + kept)
        return np.moveaxis(np.asarray(thetas[discarded:]), (0, 1, 2), (1, 2, 0))

    return run


def by_numpy(given: Problem) -> Run:
    """`numpy_walk` of a few chains."""
    _, discarded, kept = given.lengths.walks
    density, starts = _pallas_walk.density(given.mechanism, given.data), given.starts[:NUMPY_CHAINS].T

    def run(seed):
        noise = normal_noise(np.random.default_rng(seed), given.scales, discarded + kept, NUMPY_CHAINS)
        return kept_draws(np.moveaxis(numpy_walk(density, starts, noise), 2, 1), discarded)

    return run


WALKS = {
    "kngjax CoordinateWalk": ours(kng.chains.CoordinateWalk(), "walks"),
    "kngjax CoordinateWalk, float32": ours(kng.chains.CoordinateWalk(precision="float32"), "walks"),
    "kngjax walk as one Pallas kernel": by_pallas,
    f"NumPy loop, {NUMPY_CHAINS} chains": by_numpy,
}
OTHERS = {
    "kngjax SliceGibbs": ours(kng.chains.SliceGibbs(), "gibbs"),
    "kngjax NUTS": ours(NUTS, "trajectories"),
}
