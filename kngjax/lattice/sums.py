"""Sums of records on a public lattice: whole numbers, the same to the bit in any order and any division into parts."""

import json
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from kngjax._owner_only import OwnerOnly, owner_only
from kngjax.data import Records
from kngjax.lattice.plans import Plan
from kngjax.lattice.units import on_lattice
from kngjax.refusals import UnfitShape

Wholes = Shaped[np.ndarray, "..."]


@owner_only
class WholeSums(OwnerOnly):
    """All that a quadratic loss needs of records on their lattice, whatever their number. Private.

    **Arguments:** `count`: n; `gram`: X'X, shape (d, d), in units of 2^(a_i + a_j); `moment`: X'y, shape (d,), y = 1
    where the model has no response; `squares`: y'y. All are Python's whole numbers.
    """

    count: int
    gram: Wholes
    moment: Wholes
    squares: int

    @property
    def dimension(self) -> int:
        return len(self.moment)

    @property
    def num_records(self) -> int:
        """n; public under replace alone."""
        return self.count

    def __add__(self, other: "WholeSums") -> "WholeSums":
        """The sums of both sets of records together, which may not overlap; raises for another d."""
        if self.dimension != other.dimension:
            raise UnfitShape("the parts of the records have different numbers of columns")
        pairs = zip(_parts(self), _parts(other), strict=True)
        return WholeSums(*(one + two for one, two in pairs))

    def to_text(self) -> str:
        """For the other processes of one release; `from_text` reads it. Private."""
        return json.dumps([self.count, self.gram.tolist(), self.moment.tolist(), self.squares])

    @classmethod
    def from_text(cls, text: str) -> "WholeSums":
        count, gram, moment, squares = json.loads(text)
        return cls(count, np.array(gram, object), np.array(moment, object), squares)


def _parts(sums: WholeSums) -> tuple[Any, ...]:
    return sums.count, sums.gram, sums.moment, sums.squares


def sums_of(records: Records, plan: Plan, has_response: bool) -> WholeSums:
    """The sums of these records, which the mechanism prepared. Private."""
    x = whole_features(records, plan)
    y = np.ones((len(x), 1), np.int64)
    if has_response:
        y = on_lattice(np.asarray(records.y), plan.response)[:, None]
    return WholeSums(len(x), products(x, x), products(x, y)[:, 0], int(products(y, y)[0, 0]))


def whole_features(records: Records, plan: Plan) -> Int[np.ndarray, "records dimension"]:
    """The features on their lattices, within the rounded bounds. Private."""
    features = np.asarray(records.x, np.float64)
    # Rounding is monotone and stays within the rounded bounds; whole numbers are held to them all the same.
    columns = [
        np.clip(on_lattice(column, place), *ends)
        for column, place, ends in zip(features.T, plan.places, plan.features, strict=True)
    ]
    return np.column_stack(columns)


def products(left: Int[np.ndarray, "records left"], right: Int[np.ndarray, "records right"]) -> Wholes:
    """left'right, exactly, as Python's whole numbers: blocks of rows in float64, summed as whole numbers."""
    sizes = [max(int(np.max(np.abs(side), initial=1)), 1) for side in (left, right)]
    block = 2**53 // (sizes[0] * sizes[1])
    if block == 0:
        # Not even one product is exact in float64.
        return left.T.astype(object) @ right.astype(object)
    total = np.zeros((left.shape[1], right.shape[1]), object)
    for start in range(0, len(left), block):
        rows = slice(start, start + block)
        part = left[rows].T.astype(np.float64) @ right[rows].astype(np.float64)
        total = total + np.array(part.astype(np.int64).tolist(), object)
    return total
