"""Draws from many generated data sets: data by a program for each n, estimates by one for all that have one shape.

Mechanism, data and keys are arguments of the second, so that n, ε and the number of replicates compile nothing anew.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Key, PRNGKeyArray

from kngjax.chains.base import AbstractIndependentSampler, AbstractSampler
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.records import prepare_simulated
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.preparation import PlainIntake
from kngjax.releases.chains import draw, estimate

# (key, number of records) -> (X, y, θ): the records, and the θ that estimates are measured against.
DataGenerator = Callable[[PRNGKeyArray, int], tuple[Any, Any, Any]]

AXIS = "replicate"
# How often a draw reads each number, and how much it takes to make one, about: by which programs are compiled well.
_TIMES_READ, _TIMES_MADE = 100, 10
_LARGEST_BATCH = 128
# X, its clipped copy with an intercept, and what is computed from it.
_COPIES = 4
# A processor generates data sets of so many records together at a time: those of more leave its cache.
_RECORDS_TOGETHER = 1 << 15


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedPart:
    """Holds one mechanism of a simulation, and what draws from it.

    **Arguments:** `epsilons`: shape (epsilons,); None for the mechanism's own. `is_on_host`: whether draws are made on
    the host, between compiled calls. `ends_on_host`: whether what a batch gives up is.
    """

    mechanism: AbstractMechanism
    sampler: AbstractSampler | None
    epsilons: np.ndarray | None
    is_on_host: bool
    ends_on_host: bool

    @classmethod
    def of(cls, design: DataGenerator, mechanism, sampler, epsilons, num_records: int, key) -> "SimulatedPart":
        """Returns the part of a mechanism: types and shapes decide where its draws are made.

        Raises ValueError where there is no mechanism for each of several ε.
        """
        if epsilons is not None and not any(field.name == "epsilon" for field in dataclasses.fields(mechanism)):
            raise ValueError(f"{type(mechanism).__name__} computes its epsilon: simulate one mechanism for each")
        if isinstance(mechanism, AbstractDirectMechanism):
            return cls(mechanism, sampler, epsilons, mechanism.runs_on_host, False)
        if not isinstance(sampler, AbstractIndependentSampler):
            return cls(mechanism, sampler, epsilons, False, False)
        shapes = jax.eval_shape(lambda key: mechanism.target(_generated(design, num_records, mechanism, key)[0]), key)
        may_be_traced = sampler.may_be_traced(shapes)
        return cls(mechanism, sampler, epsilons, not may_be_traced, may_be_traced and sampler.runs_on_host(shapes))

    def draw_keys(self, key: PRNGKeyArray) -> Key[Array, " epsilons"]:
        """Returns one key for each ε, shape (epsilons,)."""
        return key[None] if self.epsilons is None else jax.random.split(key, len(self.epsilons))


def batch_of(
    design: DataGenerator,
    num_records: int,
    parts: Mapping[str, SimulatedPart],
    max_bytes: int,
    num_replicates: int,
    key,
) -> int:
    """Returns how many replicates a device takes at a time, a power of 2: fewer where records fill the memory."""
    records = _bytes(lambda key: design(key, num_records), key)
    leaders = {_alike(part.mechanism, parts) for part in parts.values() if not part.is_on_host}
    taken = [
        _bytes(lambda key, one=parts[name].mechanism: _generated(design, num_records, one, key)[0], key)
        for name in leaders
    ]
    largest = max(taken, default=0)
    # What is summed up leaves no records behind; of others those wait too that another mechanism takes.
    held = sum(taken) - largest + (_COPIES * records if 2 * largest > records else largest)
    most = max_bytes // max(1, held)
    wanted = 1 << (num_replicates - 1).bit_length()
    return min(_LARGEST_BATCH, wanted, 1 << max(0, most.bit_length() - 1))


def _numbers(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _bytes(function: Callable[[Any], Any], key: PRNGKeyArray) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(function, key)))


def estimates(
    design: DataGenerator,
    num_records: int,
    parts: Mapping[str, SimulatedPart],
    keys: Key[Array, " replicates"],
    mesh: Mesh,
    batch: int,
    max_bytes: int,
    has_made: Callable[[int], Any],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Draws from one data set for each key by every mechanism.

    **Arguments:** `batch`: data sets at a time on a device. `has_made`: is told how many estimates were made.
    **Returns** by name the estimates, shape (replicates, epsilons, d), NaN where a search was given up, and θ, shape
    (replicates, d).
    """
    mapped = {name: part for name, part in parts.items() if not part.is_on_host}
    pieces: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in parts}
    step, replicates = batch * mesh.size, len(keys)
    for start in range(0, replicates if mapped else 0, step):
        number = min(step, replicates - start)
        chosen = keys[jnp.arange(start, start + step) % replicates]
        for name, *made in _batch(design, num_records, mesh, mapped, max_bytes, chosen, replicates):
            thetas, truths = (np.array(part[:number]) for part in made)
            if parts[name].ends_on_host:
                thetas = _ended_on_the_host(thetas, design, num_records, parts[name], chosen)
            pieces[name].append((thetas, truths))
            has_made(number)
    for name, part in parts.items():
        for key in keys if part.is_on_host else ():
            theta, truth = _on_the_host(design, num_records, part, key)
            pieces[name].append((theta[None], truth[None]))
            has_made(1)
    joined = {name: [np.concatenate(side) for side in zip(*made, strict=True)] for name, made in pieces.items()}
    return {name: (thetas, truths) for name, (thetas, truths) in joined.items()}


def _batch(
    design: DataGenerator,
    num_records: int,
    mesh: Mesh,
    parts: Mapping[str, SimulatedPart],
    max_bytes: int,
    keys: Key[Array, " batch"],
    replicates: int,
) -> Iterator[tuple[str, Any, Any]]:
    """Yields of each mechanism its name, its estimates and θ, all from the same data, as many for each device."""
    data_keys, draw_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    leaders = {name: _alike(part.mechanism, parts) for name, part in parts.items()}
    mechanisms = {name: parts[name].mechanism for name in leaders.values()}
    together = _RECORDS_TOGETHER // num_records
    if jax.default_backend() != "cpu":
        together = max_bytes // max(1, _COPIES * _bytes(lambda key: design(key, num_records), keys[0]))
    # A power of 2, which divides the share of a device.
    together = math.gcd(len(keys) // mesh.size, 1 << max(0, together.bit_length() - 1))
    records = jax.eval_shape(lambda key: design(key, num_records), keys[0])
    with quick_compilation(_TIMES_MADE * replicates * _numbers(records)):
        data, truth = _data(design, num_records, mesh, together, mechanisms, data_keys)
    for name, part in parts.items():
        own = jax.vmap(part.draw_keys)(draw_keys)
        read = _TIMES_READ * replicates * own.shape[1] * _numbers(data[leaders[name]]) // len(keys)
        with quick_compilation(read):
            thetas = _draws(mesh, part.mechanism, part.sampler, part.epsilons, data[leaders[name]], own)
        yield name, thetas, truth


def _alike(mechanism: AbstractMechanism, parts: Mapping[str, SimulatedPart]) -> str:
    """Returns the name of the first mechanism that takes the same of the same records."""

    def public(one: AbstractMechanism) -> Any:
        return type(one.intake), one.bounds, one.loss

    for name, part in parts.items():
        if part.mechanism is mechanism:
            return name
        if type(mechanism.intake) is PlainIntake and eqx.tree_equal(public(part.mechanism), public(mechanism)) is True:
            return name
    raise AssertionError


def _generated(design, num_records, mechanism, key):
    """Generates data as a mechanism takes them, and θ."""
    X, y, truth = design(key, num_records)
    return _taken(mechanism, X, y), truth


def _taken(mechanism, X, y):
    if y is None and mechanism.loss.has_response:
        raise ValueError(f"the design returned no y, and {type(mechanism.loss).__name__} has a response")
    return mechanism.intake.summarise(prepare_simulated(mechanism.bounds, X, y))


_alone = Compiled(_generated, static_argnames=("design", "num_records"))


@functools.partial(Compiled, static_argnames=("design", "num_records", "mesh", "together"))
def _data(design, num_records, mesh, together, mechanisms, keys):
    def generate(key):
        X, y, truth = design(key, num_records)
        return {name: _taken(one, X, y) for name, one in mechanisms.items()}, truth

    def share(keys):
        return jax.vmap(generate)(keys) if together == len(keys) else jax.lax.map(generate, keys, batch_size=together)

    part = PartitionSpec(AXIS)
    return jax.shard_map(share, mesh=mesh, in_specs=part, out_specs=part, check_vma=False)(keys)


@functools.partial(Compiled, static_argnames="mesh")
def _draws(mesh, mechanism, sampler, epsilons, data, keys):
    def replicate(data, keys):
        if epsilons is None:
            return draw(mechanism, data, keys[0], sampler)[0][None]

        def at(epsilon, key):
            return draw(eqx.tree_at(lambda one: one.epsilon, mechanism, epsilon), data, key, sampler)[0]

        return jax.vmap(at)(epsilons, keys)

    part = PartitionSpec(AXIS)
    return jax.shard_map(jax.vmap(replicate), mesh=mesh, in_specs=(part, part), out_specs=part, check_vma=False)(
        data, keys
    )


def _on_the_host(
    design: DataGenerator, num_records: int, part: SimulatedPart, key: PRNGKeyArray, is_again: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Draws from one data set outside of compiled programs: estimates of shape (epsilons, d), and θ.

    **Arguments:** `is_again`: whether a batch gave these data up: another key is taken then.
    """
    data_key, draw_key = jax.random.split(key)
    # No descendant of what the batch drew with, nor of what made the data.
    draw_key = jax.random.fold_in(key, 2) if is_again else draw_key
    mechanism, epsilons = part.mechanism, part.epsilons
    data, truth = _alone(design, num_records, mechanism, data_key)
    centre = estimate(mechanism, data) if isinstance(mechanism, AbstractDensityMechanism) else None
    thetas = []
    for number, own in enumerate(part.draw_keys(draw_key)):
        at = mechanism
        if epsilons is not None:
            at = eqx.tree_at(lambda one: one.epsilon, mechanism, np.asarray(epsilons[number]))
        thetas.append(np.asarray(draw(at, data, own, part.sampler, centre)[0]))
    return np.stack(thetas), np.asarray(truth)


def _ended_on_the_host(
    thetas: np.ndarray, design: DataGenerator, num_records: int, part: SimulatedPart, keys: Key[Array, " batch"]
) -> np.ndarray:
    """Returns estimates, shape (replicates, epsilons, d), with those that a batch gave up drawn from the same data.

    Giving up depends on the key, so such a draw takes another key. Other failures give NaN.
    """
    given_up, has_failed = (np.any(is_so(thetas), axis=2) for is_so in (np.isnan, np.isinf))
    thetas[has_failed] = np.nan
    for number in np.flatnonzero(np.any(given_up, axis=1)):
        again, _ = _on_the_host(design, num_records, part, keys[number], is_again=True)
        thetas[number, given_up[number]] = again[given_up[number]]
    return thetas
