"""Records as losses take them, with weights or without."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.data.records import Data, Records, WeightedRecords

Rows = Records | WeightedRecords


def of_each(function: Callable[[Any, Any], Array], predictors: Array, records: Rows) -> Float[Array, " records"]:
    """A function of η_i and y_i for each record, times the record's weight."""
    return records.times_weights(jax.vmap(function)(predictors, jnp.asarray(records.rows.y)))


def require_rows(data: Data) -> Rows:
    """The data if they are records, with weights or without; raises TypeError for a summary."""
    return data if isinstance(data, WeightedRecords) else require_records(data)


def require_records(data: Data) -> Records:
    """The data if they are records without weights; raises TypeError for anything else."""
    if not isinstance(data, Records):
        raise TypeError(
            f"this loss needs the records, not a {type(data).__name__}: prepare the data with a mechanism of this loss"
        )
    return data
