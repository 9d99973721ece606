"""Finds where hyperplanes X_i'k = Y_i of a heap of equal responses meet; speed alone rests on it."""

import numpy as np
from jaxtyping import Int

from kngjax.draws.lattice.check_records import CheckRecords
from kngjax.draws.lattice.units import DomainLattice

# A heap of such a share of all records, with so many features that differ.
_LARGE = 0.25
_FEWEST_KINDS = 64


def apex_of(
    records: CheckRecords, domain: DomainLattice, other: Int[np.ndarray, " dimension"]
) -> Int[np.ndarray, " dimension"] | None:
    """Finds a k at or near which a large heap's hyperplanes meet, if the loss is no higher there than at `other`.

    Responses of one value are X_i'k for all features if k is 0 but for a constant column; zeros are without one too.
    """
    values, kinds = np.unique(records.responses, return_inverse=True)
    if not values.size:
        return None
    numbers = np.bincount(kinds, records.counts)
    most = int(np.argmax(numbers))
    is_large = numbers[most] >= _LARGE * np.sum(numbers) and np.count_nonzero(kinds == most) >= _FEWEST_KINDS
    constant = np.flatnonzero((np.ptp(records.features, axis=0) == 0.0) & ~records.is_null)
    if not is_large or (values[most] != 0.0 and not constant.size):
        return None
    found = np.zeros(len(records.columns))
    if values[most] != 0.0:
        found[constant[0]] = values[most] / records.features[0, constant[0]]
    apex = domain.nearest(found)
    return apex if records.loss(apex) <= records.loss(other) else None
