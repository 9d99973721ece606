"""Many private estimates from simulated data: one program makes the data of an n, another draws for every n."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh
from jaxtyping import Array, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.chains.base import AbstractSampler
from kngjax.core.compiling import Compiled
from kngjax.core.randomness import require_typed_key
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.parameters import check_epsilon
from kngjax.releases.default_sampler import research_sampler
from kngjax.releases.replicates import AXIS, DataGenerator, SimulatedPart, batch_of, estimates

Measure = Callable[[Array, Array], Array]


def error(theta: Array, truth: Array) -> Float[Array, ""]:
    """Computes |θ̃ - θ|_2."""
    return jnp.linalg.norm(theta - truth)


@dataclasses.dataclass(frozen=True, eq=False)
class Simulation:
    """Holds what `simulate` found; the data were simulated, so nothing here is private.

    **Arguments:**

    - `sizes`: the numbers of records, shape (sizes,). `epsilons`: shape (epsilons,).
    - `theta`: the estimates, shape (sizes, epsilons, replicates, d), NaN where a search was given up.
    - `truth`: the coefficients that estimates are measured against, shape (sizes, replicates, d).
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
        """Makes a row for each size and ε: mean and standard error of each measure, for a data frame."""
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


@overload
def simulate(
    design: DataGenerator, mechanism: AbstractMechanism, num_replicates: int, key: PRNGKeyArray, **settings: Any
) -> Simulation: ...


@overload
def simulate(
    design: DataGenerator,
    mechanism: Mapping[str, AbstractMechanism],
    num_replicates: int,
    key: PRNGKeyArray,
    **settings: Any,
) -> dict[str, Simulation]: ...


def simulate(  # pyright: ignore[reportInconsistentOverload]
    design: DataGenerator,
    mechanism: AbstractMechanism | Mapping[str, AbstractMechanism],
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
) -> Simulation | dict[str, Simulation]:
    """Generates data, draws, and measures, many times over, by one compiled program for every n, ε and replicate.

    A small program that makes and sums up the data is compiled for each n; the program that draws is compiled once,
    unless a loss has no sufficient statistic. Replicates run in batches, each with every mechanism and every ε on the
    same data. A replicate depends on its own key and the batch size alone, so results are the same to the bit on one
    device and on many. Some draws are made on the host, such as several levels of `PrivateQuantile` jointly: their data
    sets follow one another, and `max_bytes`, `batch_size` and `devices` are ignored. `Exact` draws smooth losses in
    batches, and redraws on the host, with another key, what a batch gave up.

    **Arguments:**

    - `design`: a function of (key, number of records) that JAX can compile, to (X, y, θ): X of shape (n, columns),
      without the constant column, or None; y of shape (n,), or None for a mean; θ of shape (d,).
    - `mechanism`: any, or several by name, which all see the same data and draw by the same keys.
    - `key`: a research key. `num_records`: n, or several. `epsilons`: None for the mechanism's own.
    - `sampler`: for KNG and the exponential mechanism; chains start about an estimate from the replicate's own
      records, not about θ. None takes what `sample` takes at the smallest n and ε.
    - `measures`: by name, functions of an estimate and θ to a number; None for the error |θ̃ - θ|_2.
    - `max_bytes`: memory for the records of one batch on one device. `batch_size`: replaces the size that follows.
    - `devices`: None for all that JAX sees. `float32`: faster, but estimates lose digits as n grows; not on the host.
      `progress`: None shows the bar on a terminal.

    **Returns** a `Simulation`, or one for each mechanism by name. Raises ValueError for counts below 1 and beyond a
    `max_records`, for no mechanism, for measures of several numbers, for float32 on the host, and as `draw` does.
    """
    require_typed_key(key)
    sizes = [num_records] if isinstance(num_records, int | np.integer) else list(num_records)
    if not sizes or min(*sizes, num_replicates, 1 if batch_size is None else batch_size) < 1:
        raise ValueError("num_records, num_replicates and batch_size must be at least 1")
    is_one = isinstance(mechanism, AbstractMechanism)
    named = {"": mechanism} if is_one else dict(mechanism)
    if not named:
        raise ValueError("there is no mechanism to draw from")
    for one in named.values():
        one.intake.check_count(max(sizes))
    losses = None if epsilons is None else np.asarray(list(epsilons), dtype=np.float64)
    for epsilon in () if losses is None else losses:
        check_epsilon(float(epsilon), allow_large_epsilon=True)
    # First: not every mechanism knows its ε, and whoever waited for draws would learn of it at the end.
    own = {name: np.asarray([float(one.epsilon)]) if losses is None else losses for name, one in named.items()}
    dimension = jax.eval_shape(lambda key: design(key, sizes[0])[2], key).size
    chosen = list(jax.devices() if devices is None else devices)
    mesh = Mesh(np.asarray(chosen), (AXIS,), axis_types=(AxisType.Auto,))
    functions = dict(measures or {"error": error})
    with jax.enable_x64(not float32):
        _require_numbers(functions, dimension)
        parts = {}
        for name, one in named.items():
            least, asked = one, sampler
            if isinstance(one, AbstractDensityMechanism):
                least = eqx.tree_at(lambda one: one.epsilon, one, own[name].min())
            elif not is_one:
                asked = None
            chosen_sampler = research_sampler(least, asked, dimension, min(sizes))
            parts[name] = SimulatedPart.of(design, one, chosen_sampler, losses, sizes[0], key)
        if float32 and any(part.is_on_host or part.ends_on_host for part in parts.values()):
            raise ValueError(
                "float32=True is for what is mapped over data sets: these draws, or some of them, are made on the host"
            )
        results, hidden = [], None if progress is None else not progress
        with tqdm(total=len(parts) * len(sizes) * num_replicates, unit="estimate", disable=hidden) as bar:
            for size in map(int, sizes):
                keys = jax.random.split(jax.random.fold_in(key, size), num_replicates)
                batch = batch_size or batch_of(design, size, parts, max_bytes, int(num_replicates), key)
                results.append(estimates(design, size, parts, keys, mesh, batch, max_bytes, bar.update))
        simulations = {}
        for name in parts:
            thetas, truths = (np.stack(side) for side in zip(*(by_name[name] for by_name in results), strict=True))
            thetas = np.swapaxes(thetas, 1, 2)
            values = [np.array(value) for value in _measured(tuple(functions.values()), thetas, truths)]
            by_measure = dict(zip(functions, values, strict=True))
            simulations[name] = Simulation(np.asarray(sizes), own[name], thetas, truths, by_measure)
    return simulations[""] if is_one else simulations


def _require_numbers(measures: Mapping[str, Measure], dimension: int) -> None:
    """Raises ValueError for a measure that does not make one number of an estimate and θ."""
    theta = jnp.zeros(dimension)
    for name, measure in measures.items():
        if shape := np.shape(jax.eval_shape(measure, theta, theta)):
            raise ValueError(f"the measure {name!r} returns an array of shape {shape}: give one number a measure")


@functools.partial(Compiled, static_argnames="measures")
def _measured(measures, thetas, truths):
    """Computes the values of each measure, shape (sizes, epsilons, replicates), NaN where there is no estimate."""
    found = [jax.vmap(jax.vmap(jax.vmap(measure)), (1, None), 1)(thetas, truths) for measure in measures]
    return [jnp.where(jnp.isnan(thetas[..., 0]), jnp.nan, values) for values in found]
