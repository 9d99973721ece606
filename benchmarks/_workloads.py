"""What is meant to run on an accelerator, with what it must move and compute at least: see `_limits`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import kngjax as kng
from benchmarks import _pallas_walk
from benchmarks._limits import DEPTH, FUNCTION, RANDOM, Work

BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
# Of a record: the score of the pseudo-Huber loss, and its derivative.
SCORE, CURVATURE = 4.0 + 2.0 * FUNCTION, 2.0 + FUNCTION
# Newton steps of a minimiser, and evaluations of a person's profile: two directions of four normal tails each.
NEWTON_STEPS, EVALUATIONS, PROFILE = 5, 8, 50.0 * FUNCTION
# Leapfrog steps of a trajectory: `HMC` takes as many. NUTS doubles its trees at most seven times, and nearly always
# does, as the density has kinks; the work of a run is of those that it took.
LEAPFROGS = {"HMC": 16.0, "NUTS": 120.0}
NUTS = kng.chains.NUTS(max_tree_depth=7)


class Sizes(NamedTuple):
    """**Arguments:** `replicates`: of Figure 1. `records`: of it, and of gradient norms. `dimension`.
    `walks`: chains, discarded and kept sweeps, of each walk. `thetas`: of gradient norms. `trajectories`: chains,
    discarded and kept draws, of NUTS and HMC. `objectives`: data sets, and records of each. `people`.
    """

    replicates: int
    records: int
    dimension: int
    walks: tuple[tuple[int, int, int], ...]
    thetas: int
    trajectories: tuple[int, int, int]
    objectives: tuple[int, int]
    people: int


_FEW = (100, 100, 1000)
CARD = Sizes(
    100, 100_000, 12, (_FEW, (10_000, 100, 100), (100_000, 100, 100)), 100_000, (1000, 100, 100), (10_000, 1000), 10**6
)
# As much as two processors do in half a minute each.
PROCESSOR = Sizes(
    100, 100_000, 12, (_FEW, (10_000, 20, 50), (100_000, 5, 10)), 2000, (1000, 10, 10), (10_000, 1000), 10**5
)
QUICK = Sizes(4, 1000, 3, ((4, 5, 20), (20, 5, 20)), 50, (4, 20, 20), (8, 100), 500)


class Workload(NamedTuple):
    """**Arguments:** `name`: with its sizes. `work`: that it must do. `make`: makes the data, and then a function of a
    research key to results on the host. `found`: the work by what was found, where only a run tells.
    """

    name: str
    work: Work
    make: Callable[[], Callable[[Any], Any]]
    found: Callable[[Any], Work] | None = None


def design(key: Any, num_records: int, dimension: int = 12) -> tuple[Any, Any, Any]:
    """Algorithm 1 of Reimherr and Awan (2019): uniform features, normal noise, responses divided by their largest."""
    x_key, noise_key = jax.random.split(key)
    x = jax.random.uniform(x_key, (num_records, dimension - 1), minval=-1.0)
    truth = jnp.concatenate([jnp.zeros(1), jnp.linspace(-1.0, 1.0, dimension)[:-1]])
    y = x @ truth[1:] + jax.random.normal(noise_key, (num_records,))
    largest = jnp.max(jnp.abs(y))
    return x, y / largest, truth / largest


def records(num_records: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Features without the constant column, and responses within ±1."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    return x, np.clip(0.2 * x.sum(axis=1) + 0.2 * random.standard_normal(num_records), -1.0, 1.0)


def _kng(loss: Any) -> kng.KNG:
    return kng.KNG(loss, BOUNDS, kng.L1Ball(1.0), 1.0, "replace")


def _made(data_sets: int, num_records: int, dimension: int) -> tuple[float, float]:
    """Bytes and operations of records that a design makes: written once, read once."""
    return 16.0 * data_sets * num_records * dimension, data_sets * num_records * dimension * RANDOM


def simulated(name: str, mechanism: Any, work: Work, replicates: int, num_records: int, d: int, **given: Any):
    """One estimate from each of many made-up data sets, by `kng.simulate`."""

    def made_up(key, num_records):
        return design(key, num_records, d)

    def run(key):
        return kng.simulate(made_up, mechanism, replicates, key, num_records=num_records, progress=False, **given).theta

    return Workload(name, work, lambda: run)


def figure(sizes: Sizes) -> Workload:
    """A cell of Figure 1: data, sums X'X and X'y, and exact draws."""
    count, n, d = sizes.replicates, sizes.records, sizes.dimension
    moved, operations = _made(count, n, d)
    # Predictors and X'y, half of a symmetric matrix of products, the largest response and its division.
    work = Work(moved, operations + count * n * (4.0 * d + d * (d + 1.0) + 2.0))
    name = f"Figure 1, {count} data sets of {n}"
    return simulated(name, _kng(kng.SquaredLoss()), work, count, n, d, sampler=kng.chains.Exact())


def objective(sizes: Sizes) -> Workload:
    """Objective perturbation with the pseudo-Huber loss: data, and a minimiser by Newton's method."""
    (count, n), d = sizes.objectives, sizes.dimension
    moved, operations = _made(count, n, d)
    step = d * (d + 1.0) + 4.0 * d + SCORE + CURVATURE
    work = Work(moved, operations + count * n * (2.0 * d + NEWTON_STEPS * step))
    mechanism = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.5), BOUNDS, kng.L1Ball(1.0), 1.0, "replace")
    return simulated(f"objective perturbation, {count} data sets of {n}", mechanism, work, count, n, d)


def sampled(name: str, sampler: Any, work: Work, n: int, d: int, chains: int, discarded: int, kept: int) -> Workload:
    """Chains on the squared loss, by `kng.sample`."""

    def make():
        mechanism = _kng(kng.SquaredLoss())
        data = mechanism.prepare(*records(n, d))
        settings = {"num_chains": chains, "num_warmup": discarded, "num_draws": kept, "progress": False}
        return lambda key: kng.sample(mechanism, data, key=key, sampler=sampler, **settings)

    return Workload(name, work, make)


def walk(sizes: Sizes, chains: int, discarded: int, kept: int) -> Workload:
    """The one-at-a-time walk: in a move two random numbers, the gradient, its norm, that of θ, and a choice."""
    d, moves = sizes.dimension, float(sizes.dimension * (discarded + kept))
    move = 6.0 * d + 2.0 * RANDOM + 2.0 * FUNCTION
    moved = 8.0 * chains * kept * d
    work = Work(moved, chains * moves * move, moves, crossed=moved)
    name = f"walk, {chains} chains of {discarded + kept} sweeps"
    return sampled(name, kng.chains.CoordinateWalk(), work, sizes.records, d, chains, discarded, kept)


def kernel_walk(sizes: Sizes, chains: int, discarded: int, kept: int) -> Workload:
    """The same walk as one Pallas kernel, of whole blocks of chains that begin at the estimate; draws stay there."""
    whole = -(-chains // _pallas_walk.BLOCK) * _pallas_walk.BLOCK
    work = walk(sizes, whole, 0, discarded + kept).work._replace(crossed=0.0)

    def make():
        mechanism = _kng(kng.SquaredLoss())
        density = _pallas_walk.density(mechanism, mechanism.prepare(*records(sizes.records, sizes.dimension)))
        estimate, scales = _pallas_walk.start(density)
        starts = np.tile(estimate[:, None], whole)

        def run(key):
            noise = _pallas_walk.Counters(np.asarray(jax.random.key_data(key)), scales)
            with jax.enable_x64(True):
                return _pallas_walk.sweeps(density, starts, noise, discarded + kept)

        return run

    return Workload(f"Pallas walk, {whole} chains of {discarded + kept} sweeps", work, make)


def trajectories(sizes: Sizes, sampler: Any) -> Workload:
    """NUTS or HMC: in a leapfrog step the gradient of a gradient's norm from X'X, and the map onto the domain."""
    (chains, discarded, kept), d, kind = sizes.trajectories, sizes.dimension, type(sampler).__name__

    def work(leapfrogs):
        steps = (discarded + kept) * leapfrogs
        step = 4.0 * d * d + 2.0 * d * FUNCTION
        moved = 8.0 * chains * kept * d
        return Work(moved, chains * steps * step, steps, 2.0 * DEPTH, moved)

    name = f"{kind}, {chains} chains of {discarded + kept} draws"
    made = sampled(name, sampler, work(LEAPFROGS[kind]), sizes.records, d, chains, discarded, kept)
    return made._replace(found=lambda draws: work(float(np.mean(draws.info.num_steps))))


def gradient_norms(sizes: Sizes) -> Workload:
    """The log-density of KNG with the pseudo-Huber loss at many θ: predictors, scores and X's for each."""
    count, n, d = sizes.thetas, sizes.records, sizes.dimension
    moved = 8.0 * (n + count) * (d + 1.0)
    work = Work(moved, float(count) * n * (4.0 * d + SCORE), crossed=moved - 8.0 * count * d)

    def make():
        mechanism = _kng(kng.PseudoHuberLoss(0.5))
        data = mechanism.prepare(*records(n, d))

        @jax.jit
        def densities(mechanism, data, thetas):
            return jax.vmap(mechanism.log_density, (0, None))(thetas, data)

        def run(key):
            with jax.enable_x64(True):
                thetas = 0.05 * jax.random.normal(key, (count, d))
                return np.asarray(densities(mechanism, data, thetas))

        return run

    return Workload(f"gradient norms, {count} thetas x {n} records", work, make)


def per_person(sizes: Sizes) -> Workload:
    """Each person's ε under a posterior sample: X'X, leverages and residuals, and the root of a profile."""
    n, d = sizes.people, sizes.dimension
    person = d * (d + 1.0) + d * d + 4.0 * d + EVALUATIONS * PROFILE
    work = Work(16.0 * n * (d + 1.0) + 24.0 * n, n * person, crossed=8.0 * n * (d + 1.0) + 24.0 * n)

    def make():
        facts = {"max_records": n, "dimension": d}
        mechanism = kng.PosteriorSample.calibrated(BOUNDS, max(1000.0, 0.01 * n), 1.0, 1e-6, "add_remove", **facts)
        x, y = records(n, d)
        return lambda key: kng.per_instance_privacy(mechanism, x, y).epsilon

    return Workload(f"privacy of {n} people", work, make)


def workloads(sizes: Sizes, on_card: bool) -> list[Workload]:
    """All of them, in the order of the table; kernels are for cards."""
    walks = [make(sizes, *of_walk) for of_walk in sizes.walks for make in (walk, kernel_walk)[: 1 + on_card]]
    hamiltonian = [trajectories(sizes, sampler) for sampler in (NUTS, kng.chains.HMC())]
    return [figure(sizes), *walks, gradient_norms(sizes), *hamiltonian, objective(sizes), per_person(sizes)]
