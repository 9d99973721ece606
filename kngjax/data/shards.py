"""Records that outgrow one device: their rows are spread over the devices of one host.

A sufficient statistic is summed on the host, exactly. For other losses the rows rest on the devices, and XLA's
collectives add up their gradients.
"""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from kngjax.core.arrays import float64
from kngjax.core.owner_only import OwnerOnly
from kngjax.data.records import Records


class Shards(OwnerOnly):
    """Rows for the devices of a mesh, for `mechanism.prepare` in research; made by `kngjax.shard`. Private."""

    def __init__(self, X: Any, y: Any, mesh: Mesh):
        self.X, self.y, self.mesh = X, y, mesh

    def __repr__(self) -> str:
        return f"<Shards of records over {self.mesh.size} devices; private>"

    def spread_rows(self, records: Records) -> Records:
        """Returns the records as float64 arrays whose rows are spread over the mesh.

        Every device holds equally many rows, the last ones padded with zeros where n does not divide: with x = 0 the
        predictor is 0 for every θ, so that such a row adds nothing to a gradient s·x, and a constant to the loss. The
        bandwidth by which a chain for quantiles scales its start sees those rows: they change where the chain starts,
        and not its limit.
        """
        padding = -records.num_records % self.mesh.size
        sharding = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names))

        def spread(array: Any) -> Array:
            return jax.device_put(np.pad(array, [(0, padding), *[(0, 0)] * (array.ndim - 1)]), sharding)

        with float64():
            return Records(spread(np.asarray(records.x)), spread(np.asarray(records.y)))


def shard(X: Any = None, y: Any = None, mesh: Mesh | None = None) -> Shards:
    """Spreads the rows of records over devices of this host, for `mechanism.prepare` in research.

    Sufficient statistics are the same to the bit as those of one device; other values are the same up to rounding,
    since their sums are added in another order.

    **Arguments:**

    - `X`, `y`: the rows, as in `kngjax.data.prepare`. Private.
    - `mesh`: the devices, with Auto axes; rows are spread over all of its axes. None for all devices.

    Prepared data of losses without a sufficient statistic are float64 arrays on the devices: set `jax_enable_x64`
    before you compute with them yourself.

    Raises TypeError for what is no mesh, ValueError for Explicit axes and for devices of other processes.
    """
    if mesh is None:
        # Of several processes this mesh is refused below: each would release its own rows alone, in silence.
        mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(AxisType.Auto,))
    if not isinstance(mesh, Mesh):
        raise TypeError(f"mesh must be a jax.sharding.Mesh, not a {type(mesh).__name__}")
    if any(kind is not AxisType.Auto for kind in mesh.axis_types):
        raise ValueError(
            "the mesh must have Auto axes: jax.make_mesh(shape, names, axis_types=(jax.sharding.AxisType.Auto,))"
        )
    if {device.process_index for device in mesh.devices.flat} != {jax.process_index()}:
        raise ValueError(
            "the mesh has devices of other processes, and rows are spread over those of one: keep all rows on one host "
            "and give a mesh of its jax.local_devices(), or read them in passes, kngjax.stream"
        )
    return Shards(X, y, mesh)
