"""Sums of records on a public lattice: whole numbers, the same to the bit in any order and any division into parts."""

import numpy as np
from jaxtyping import Int

from kngjax.data.exact_sums import ExactSums, products
from kngjax.data.records import Records
from kngjax.draws.lattice.lattice_plan import LatticePlan
from kngjax.draws.lattice.units import on_lattice


def sums_of(records: Records, plan: LatticePlan, has_response: bool) -> ExactSums:
    """n, X'X, X'y and y'y of these records, which the mechanism prepared, in units of their lattices. Private.

    y = 1 where the model has no response.
    """
    x = whole_features(records, plan)
    y = np.ones((len(x), 1), np.int64)
    if has_response:
        y = on_lattice(np.asarray(records.y), plan.response)[:, None]
    return ExactSums(len(x), products(x, x), products(x, y)[:, 0], int(products(y, y)[0, 0]))


def whole_features(records: Records, plan: LatticePlan) -> Int[np.ndarray, "records dimension"]:
    """Returns the features on their lattices, within the rounded bounds. Private."""
    features = np.asarray(records.x, np.float64)
    # Rounding is monotone and stays within the rounded bounds; whole numbers are held to them all the same.
    columns = [
        np.clip(on_lattice(column, exponent, plan.of_persons), *ends)
        for column, exponent, ends in zip(features.T, plan.exponents, plan.features, strict=True)
    ]
    return np.column_stack(columns)
