"""Records that outgrow one device or one machine: rows spread over a mesh, of one process or of several.

Each process brings rows of its own. Sufficient statistics are summed on each host and d² numbers travel; for other
losses the rows rest on the devices, and XLA's collectives add up their gradients.
"""

import functools
import hashlib
import operator
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from kngjax.core.arrays import float64
from kngjax.core.errors import UnfitShape
from kngjax.core.owner_only import OwnerOnly
from kngjax.data.exact_sums import ExactSums
from kngjax.data.processes import Processes
from kngjax.data.records import Records

ELSEWHERE = "another process refused its rows, and nothing is computed: its own message says why"


class Shards(OwnerOnly):
    """Rows for the devices of a mesh, for `mechanism.prepare` and `kngjax.release`; made by `kngjax.shard`. Private."""

    def __init__(self, X: Any, y: Any, mesh: Mesh):
        self.X, self.y, self.mesh = X, y, mesh
        # n of all processes, once they have told each other; devices hold more rows, since some are padding.
        self.num_records: int | None = None

    def __repr__(self) -> str:
        return f"<Shards of records over {self.mesh.size} devices; private>"

    @property
    def spans_processes(self) -> bool:
        return len({device.process_index for device in self.mesh.devices.flat}) > 1

    @property
    def processes(self) -> Processes:
        """Those that bring the rows."""
        return Processes(self.spans_processes)

    def together(self, work: Callable[[], Any], settings: Any) -> Any:
        """work() of this process's own rows, once every process has succeeded; else all of them raise.

        **Arguments:** `settings`: the pytree of public settings that must be the same everywhere.
        """
        try:
            part, failure = work(), None
        except BaseException as error:
            part, failure = None, error
        if self.spans_processes:
            words = [failure is not None, 0 if part is None else part.dimension, *_digest(settings)]
            refused, dimensions, *digests = _gather(np.array(words, dtype=np.float64)).T
            if failure is None and np.any(refused):
                raise UnfitShape(ELSEWHERE)
            if failure is None and np.any(digests != np.transpose([words[2:]])):
                raise UnfitShape("the processes have different mechanisms: the proof is of one, so give all the same")
            if failure is None and np.any(dimensions != dimensions[0]):
                raise UnfitShape("the rows of the processes have different numbers of columns")
        if failure is not None:
            raise failure
        return part

    def total(self, part: ExactSums) -> ExactSums:
        """The sums of every process's rows together, exactly, whatever the processes and their order."""
        return functools.reduce(operator.add, map(ExactSums.from_text, self.texts(part.to_text())))

    def texts(self, text: str) -> list[str]:
        """Every process's text, in the order of the processes."""
        if not self.spans_processes:
            return [text]
        word = np.frombuffer(text.encode(), np.uint8)
        sizes = _gather(np.array([word.size], np.float64))[:, 0].astype(int)
        words = np.array(multihost_utils.process_allgather(np.pad(word, (0, sizes.max() - word.size))))
        return [bytes(row[:size]).decode() for row, size in zip(words, sizes, strict=True)]

    def count(self, records: Records) -> int:
        """The number of records of all processes together."""
        self.num_records = int(np.sum(self._counts(records)[:, 0]))
        return self.num_records

    def _counts(self, records: Records) -> np.ndarray:
        counts = np.array([records.y.shape[0], len(self.mesh.local_devices)], dtype=np.float64)
        return _gather(counts) if self.spans_processes else counts[None]

    def spread_rows(self, records: Records) -> Records:
        """The records as float64 arrays whose rows are spread over the mesh.

        Every device holds equally many rows, the last ones padded with zeros where n does not divide: with x = 0 the
        predictor is 0 for every θ, so that such a row adds nothing to a gradient s·x, and a constant to the loss. The
        bandwidth by which a chain for quantiles scales its start sees those rows: they change where the chain starts,
        and not its limit.
        """
        rows, devices = self._counts(records).T
        each = int(np.max(np.ceil(rows / devices)))
        local_devices = self.mesh.local_devices

        def spread(array: Any) -> Array:
            padding = [(0, each * len(local_devices) - array.shape[0]), *[(0, 0)] * (array.ndim - 1)]
            parts = np.split(np.pad(array, padding), len(local_devices))
            sharding = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names))
            shape = (each * self.mesh.size, *array.shape[1:])
            on_devices = [jax.device_put(part, device) for part, device in zip(parts, local_devices, strict=True)]
            return jax.make_array_from_single_device_arrays(shape, sharding, on_devices)

        with float64():
            return Records(spread(np.asarray(records.x)), spread(np.asarray(records.y)))


def shard(X: Any = None, y: Any = None, mesh: Mesh | None = None) -> Shards:
    """Records for `mechanism.prepare` and `kngjax.release` whose rows are spread over devices, or over processes.

    Under `jax.distributed` each process gives rows of its own, and all call `release` at the same place with the same
    mechanism: the first draws the key, and every one of them returns the same release. What one refuses, all refuse.
    Sufficient statistics are the same to the bit as those of one device; other values are the same up to rounding,
    since their sums are added in another order.

    **Arguments:**

    - `X`, `y`: this process's rows, as in `kngjax.data.prepare`, or X a `kngjax.stream` of them. Private.
    - `mesh`: the devices, with Auto axes; rows are spread over all of its axes. None for all devices of all processes.

    Prepared data of losses without a sufficient statistic are float64 arrays on the devices: set `jax_enable_x64`
    before you compute with them yourself.

    Raises TypeError for what is no mesh, ValueError for Explicit axes.
    """
    if mesh is None:
        mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(AxisType.Auto,))
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh must be a jax.sharding.Mesh, not a {type(mesh).__name__}")
    if any(kind is not AxisType.Auto for kind in mesh.axis_types):
        raise ValueError(
            "the mesh must have Auto axes: jax.make_mesh(shape, names, axis_types=(jax.sharding.AxisType.Auto,))"
        )
    processes = {device.process_index for device in mesh.devices.flat}
    if len(processes) > 1 and len(processes) < jax.process_count():
        raise ValueError("the mesh must be of one process or of all: every process takes part in the sums")
    if jax.process_index() not in processes:
        raise ValueError("the mesh has no device of this process")
    return Shards(X, y, mesh)


def _gather(numbers: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, "processes numbers"]:
    with float64():
        return np.array(multihost_utils.process_allgather(numbers))


def _digest(settings: Any) -> list[int]:
    """Eight numbers of 32 bits that identify settings, static ones included, and are the same in every process."""
    leaves, tree = jax.tree.flatten(settings)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(tree)).encode())
    for leaf in leaves:
        digest.update(f"{np.shape(leaf)}{np.asarray(leaf).dtype}".encode() + np.asarray(leaf).tobytes())
    return np.frombuffer(digest.digest(), dtype="<u4").tolist()
