"""Many private estimates from simulated data, in one compiled program for each number of records where there is one."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec
from jaxtyping import Array, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.chains.base import AbstractIndependentSampler, AbstractSampler
from kngjax.core.randomness import require_typed_key
from kngjax.data.records import prepare_simulated
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.parameters import check_epsilon
from kngjax.releases.chains import draw, estimate, require_sampler

# (key, number of records) -> (X, y, θ): the records, and the θ that estimates are measured against.
DataGenerator = Callable[[PRNGKeyArray, int], tuple[Any, Any, Any]]
Measure = Callable[[Array, Array], Array]

_AXIS = "replicate"
_LARGEST_BATCH = 128
# X, its clipped copy with an intercept, and what is computed from it.
_COPIES = 4


def error(theta: Array, truth: Array) -> Float[Array, ""]:
    """|θ̃ - θ|_2."""
    return jnp.linalg.norm(theta - truth)


@dataclasses.dataclass(frozen=True, eq=False)
class Simulation:
    """Holds what `simulate` found: of simulated data, so nothing here is private.

    **Arguments:**

    - `sizes`: the numbers of records, shape (sizes,). `epsilons`: shape (epsilons,).
    - `theta`: the estimates, shape (sizes, epsilons, replicates, d), NaN where a search was given up.
    - `truth`: what they are measured against, shape (sizes, replicates, d).
    - `measures`: by name, each of shape (sizes, epsilons, replicates).
    """

    sizes: np.ndarray
    epsilons: np.ndarray
    theta: np.ndarray
    truth: np.ndarray
    measures: dict[str, np.ndarray]

    def __repr__(self) -> str:
        sizes, epsilons, replicates, dimension = self.theta.shape
        names = ", ".join(self.measures)
        return (
            f"<Simulation: {sizes} sizes x {epsilons} epsilons x {replicates} replicates of {dimension} coefficients; "
            f"measures: {names}>"
        )

    def table(self) -> list[dict[str, int | float]]:
        """A row a size and ε: mean and standard error over replicates of each measure, for a data frame or a CSV."""
        rows = []
        for index, size in enumerate(self.sizes):
            for number, epsilon in enumerate(self.epsilons):
                row: dict[str, int | float] = {"n": int(size), "epsilon": float(epsilon)}
                for name, values in self.measures.items():
                    replicates = values[index, number]
                    row[name] = float(np.mean(replicates))
                    row[f"{name}_standard_error"] = float(np.std(replicates, ddof=1) / np.sqrt(len(replicates)))
                rows.append(row)
        return rows


def simulate(
    design: DataGenerator,
    mechanism: AbstractMechanism,
    num_replicates: int,
    key: PRNGKeyArray,
    *,
    num_records: int | Sequence[int],
    epsilons: Sequence[float] | None = None,
    sampler: AbstractSampler | None = None,
    measures: Mapping[str, Measure] | None = None,
    max_bytes: int = 1 << 30,
    batch_size: int | None = None,
    devices: Sequence[Any] | None = None,
    float32: bool = False,
    progress: bool | None = None,
) -> Simulation:
    """Generates data, draws, and measures, many times over: one compiled program a number of records, if draws compile.

    Replicates are mapped over in batches, each with every ε on the same data; between batches the progress bar moves.
    A replicate depends on its own key and on the batch size alone, so that results are the same to the bit on one
    device and on many. Where draws are made on the host, between compiled calls, as `PrivateQuantile` makes those of
    several levels jointly, data sets follow one another, with programs in common; `max_bytes`, `batch_size` and
    `devices` then count for nothing. `Exact` draws
    those of smooth losses in batches, and on the host what a batch gave up, with another key.

    **Arguments:**

    - `design`: a function of (key, number of records) that JAX can compile, to (X, y, θ): X of shape (n, columns),
      without the constant column, or None; y of shape (n,), or None for a mean; θ of shape (d,).
    - `mechanism`: any. `sampler`: for KNG and the exponential mechanism; chains start about an
      estimate from the replicate's own records, not about θ.
    - `key`: a research key. `num_records`: n, or several. `epsilons`: None for the mechanism's own.
    - `measures`: by name, functions of an estimate and θ to a number; None for the error |θ̃ - θ|_2.
    - `max_bytes`: of memory for the records of one batch on one device. `batch_size`: instead of what follows from it.
    - `devices`: None for all that JAX sees. `float32`: for research where speed counts: estimates lose digits as n
      grows; not on the host. `progress`: None shows the bar on a terminal.

    Raises ValueError for counts below 1, for float32 on the host, and as `draw` does.
    """
    require_typed_key(key)
    require_sampler(mechanism, sampler)
    sizes = [num_records] if isinstance(num_records, int | np.integer) else list(num_records)
    if not sizes or min(sizes) < 1 or num_replicates < 1:
        raise ValueError("num_records and num_replicates must be at least 1")
    require_declared(mechanism, jax.eval_shape(lambda key: design(key, sizes[0])[2], key).size, sampler)
    losses = np.asarray([float(mechanism.epsilon)] if epsilons is None else list(epsilons), dtype=np.float64)
    if epsilons is not None and not any(field.name == "epsilon" for field in dataclasses.fields(mechanism)):
        raise ValueError(f"{type(mechanism).__name__} computes its epsilon: simulate one mechanism for each")
    for epsilon in losses:
        check_epsilon(float(epsilon), allow_large_epsilon=True)
    named = tuple((measures or {"error": error}).items())
    with jax.enable_x64(not float32):
        is_on_host, ends_on_host = _uses_of_host(design, sizes[0], mechanism, sampler, key)
    if (is_on_host or ends_on_host) and float32:
        raise ValueError(
            "float32=True is for what is mapped over data sets: these draws, or some of them, are made on the host"
        )
    chosen = list(jax.devices() if devices is None else devices)
    mesh = Mesh(np.asarray(chosen), (_AXIS,), axis_types=(AxisType.Auto,))
    steps = [
        1 if is_on_host else len(chosen) * (batch_size or _batch(design, size, max_bytes, num_replicates, key))
        for size in sizes
    ]
    results = []
    hidden = None if progress is None else not progress
    with (
        jax.enable_x64(not float32),
        tqdm(total=len(sizes) * num_replicates, unit="data set", disable=hidden) as bar,
    ):
        for size, step in zip(sizes, steps, strict=True):
            keys = jax.random.split(jax.random.fold_in(key, size), num_replicates)
            parts = []
            for start in range(0, num_replicates, step):
                batch_keys = keys[jnp.arange(start, start + step) % num_replicates]
                given = None if epsilons is None else losses
                if is_on_host:
                    batch_results = _on_the_host(design, int(size), named, mechanism, sampler, given, batch_keys)
                else:
                    settings = (design, int(size), named, mesh)
                    batch_results = _batch_of_replicates(*settings, mechanism, sampler, given, batch_keys)
                number = min(step, num_replicates - start)
                batch_results = jax.tree.map(lambda part, number=number: np.array(part[:number]), batch_results)
                if ends_on_host:
                    settings = (design, int(size), named, mechanism, sampler, given, batch_keys)
                    batch_results = _ended_on_the_host(batch_results, *settings)
                parts.append(batch_results)
                bar.update(number)
            results.append(jax.tree.map(lambda *pieces: np.concatenate(pieces), *parts))
    theta, truth, values = jax.tree.map(lambda *pieces: np.stack(pieces), *results)
    by_epsilon = {name: np.swapaxes(value, 1, 2) for name, value in zip(dict(named), values, strict=True)}
    return Simulation(np.asarray(sizes), losses, np.swapaxes(theta, 1, 2), truth, by_epsilon)


def _batch(design: DataGenerator, num_records: int, max_bytes: int, num_replicates: int, key: PRNGKeyArray) -> int:
    """Replicates at a time on a device, whatever the number of devices."""
    shapes = jax.eval_shape(lambda key: design(key, num_records), key)
    size = _COPIES * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    return int(np.clip(max_bytes // max(size, 1), 1, min(_LARGEST_BATCH, num_replicates)))


def _uses_of_host(
    design, num_records: int, mechanism: AbstractMechanism, sampler: AbstractSampler | None, key
) -> tuple[bool, bool]:
    """Whether draws are made on the host, between compiled calls; and whether what a batch gives up is.

    Types and shapes decide.
    """
    if isinstance(mechanism, AbstractDirectMechanism):
        return mechanism.runs_on_host, False
    if not isinstance(sampler, AbstractIndependentSampler):
        return False, False

    def target(key):
        assert isinstance(mechanism, AbstractDensityMechanism)
        return mechanism.target(_generate(design, num_records, mechanism, key)[0])

    shapes = jax.eval_shape(target, key)
    may_be_traced = sampler.may_be_traced(shapes)
    return not may_be_traced, may_be_traced and sampler.runs_on_host(shapes)


@functools.partial(jax.jit, static_argnames=("design", "num_records"))
def _generate(design, num_records, mechanism, key):
    """Data as a mechanism takes them, and θ."""
    X, y, truth = design(key, num_records)
    return mechanism.intake.summarise(prepare_simulated(mechanism.bounds, X, y)), truth


def _ended_on_the_host(results, design, num_records, measures, mechanism, sampler, epsilons, keys):
    """Results of a batch, with those that it gave up drawn on the host from the same data.

    That a batch gave one up is a fact about its keys, so that another one is taken. What failed otherwise stays so.
    """
    theta, truth, values = results
    given_up, has_failed = (np.any(is_so(theta), axis=2) for is_so in (np.isnan, np.isinf))
    for part in (theta, *values):
        part[has_failed] = np.nan
    for number in np.flatnonzero(np.any(given_up, axis=1)):
        settings = (design, num_records, measures, mechanism, sampler, epsilons, keys[number : number + 1])
        again, _, others = jax.tree.map(np.asarray, _on_the_host(*settings, is_again=True))
        places = given_up[number]
        for part, other in zip((theta, *values), (again, *others), strict=True):
            part[number, places] = other[0, places]
    return theta, truth, values


def _on_the_host(design, num_records, measures, mechanism, sampler, epsilons, keys, is_again=False):
    """Does the work of `_batch_of_replicates` for one data set, outside of compiled programs; or by another key."""
    data_key, draw_key = jax.random.split(keys[0])
    # No descendant of what the batch drew with, nor of what made the data.
    draw_key = jax.random.fold_in(keys[0], 2) if is_again else draw_key
    data, truth = _generate(design, num_records, mechanism, data_key)
    centre = estimate(mechanism, data) if isinstance(mechanism, AbstractDensityMechanism) else None
    if epsilons is None:
        thetas = [draw(mechanism, data, draw_key, sampler, centre)[0]]
    else:
        thetas = []
        for epsilon, key in zip(epsilons, jax.random.split(draw_key, len(epsilons)), strict=True):
            at_epsilon = eqx.tree_at(lambda mechanism: mechanism.epsilon, mechanism, np.asarray(epsilon))
            thetas.append(draw(at_epsilon, data, key, sampler, centre)[0])
    theta = jnp.stack([jnp.asarray(one) for one in thetas])
    values = [jax.vmap(measure, (0, None))(theta, truth) for _, measure in measures]
    return jax.tree.map(lambda value: value[None], (theta, truth, values))


@functools.partial(jax.jit, static_argnames=("design", "num_records", "measures", "mesh"))
def _batch_of_replicates(design, num_records, measures, mesh, mechanism, sampler, epsilons, keys):
    def replicate(key):
        data_key, draw_key = jax.random.split(key)
        data, truth = _generate(design, num_records, mechanism, data_key)
        if epsilons is None:
            theta = draw(mechanism, data, draw_key, sampler)[0][None]
        else:

            def estimate(epsilon, key):
                at_epsilon = eqx.tree_at(lambda mechanism: mechanism.epsilon, mechanism, epsilon)
                return draw(at_epsilon, data, key, sampler)[0]

            theta = jax.vmap(estimate)(epsilons, jax.random.split(draw_key, epsilons.shape[0]))
        return theta, truth, [jax.vmap(measure, (0, None))(theta, truth) for _, measure in measures]

    part = PartitionSpec(_AXIS)
    return jax.shard_map(jax.vmap(replicate), mesh=mesh, in_specs=part, out_specs=part, check_vma=False)(keys)
