"""Parts of a lattice of Θ between two curves: which points lie there is decided in whole numbers."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from kngjax.core.balls import power_of_two
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from kngjax.draws.lattice.places import AbstractCoordinates

Point = Int[np.ndarray, " dimension"]
# Below it sums of products are whole numbers of 64 bits.
_LARGEST = 2**61
# More than the relative error of a sum of a few products in float64.
_ROUNDING = 2.0**-46


class CurveRegion:
    """The lattice points k with v'θ_below ≤ v'θ ≤ v'θ_above at every vertex v of a polytope, and so at all its points.

    θ_j = k_j·2^(e_j). A vertex's numbers are those of its floats, so that v'(θ - θ_below) is a whole number a'(k -
    k_below) in a unit of the vertices: no inequality is decided by rounding. With θ_below ≤ θ_above on the polytope
    both ends are points of it, and it is never empty. It is convex.

    **Arguments:** all public. `vertices`: of shape (number, d). `exponents`: e. `below`, `above`: k of the two curves;
    None where there is none.
    """

    def __init__(self, vertices: np.ndarray, exponents: Sequence[int], below: Point | None, above: Point | None):
        rows = _whole_rows(np.asarray(vertices, np.float64), exponents)
        sides = [(sign, k) for sign, k in ((1, below), (-1, above)) if k is not None]
        self._rows = np.array([[sign * a for a in row] for sign, _ in sides for row in rows], object)
        self._rows = self._rows.reshape(-1, len(exponents))
        self._least = np.array([sign * _product(row, k) for sign, k in sides for row in rows], object)

    def contains(self, point: Point) -> bool:
        """Tells whether k lies in the region."""
        return bool(self.contains_each(point[None])[0])

    def contains_each(self, points: Int[np.ndarray, "points dimension"]) -> Bool[np.ndarray, " points"]:
        """Marks the k that lie in the region."""
        largest = np.max(np.abs(points), initial=0)
        sizes = np.sum(np.abs(self._rows), axis=1) * int(largest) + np.abs(self._least)
        kind: Any = np.int64 if np.all(sizes < _LARGEST) else object
        found = points.astype(kind) @ self._rows.T.astype(kind) >= self._least.astype(kind)
        return np.all(found.astype(bool), axis=1)

    def misses(self, coordinates: AbstractCoordinates, low: np.ndarray, high: np.ndarray) -> Bool[np.ndarray, " boxes"]:
        """Marks boxes low ≤ m ≤ high of these coordinates that certainly miss the region. Not all such are found."""
        rows = self._rows
        if isinstance(coordinates, LatticeCoordinates):
            rows = rows @ coordinates.matrix.astype(object)
        else:
            low, high = coordinates.extremes(low, high)
        # An inequality's own units, so that no product leaves float64's range.
        scales = [max(int(np.max(np.abs(row))), 1) for row in rows]
        turned = np.array([[float(Fraction(a, scale)) for a in row] for row, scale in zip(rows, scales, strict=True)])
        least = np.array([float(Fraction(a, scale)) for a, scale in zip(self._least, scales, strict=True)])
        found = np.zeros(len(low), bool)
        for row, end in zip(turned, least, strict=True):
            most = np.sum(np.maximum(row * low, row * high), axis=1)
            size = np.sum(np.abs(row) * np.maximum(np.abs(low), np.abs(high)), axis=1) + abs(end)
            found |= most < end - _ROUNDING * size
        return found


def vertices_of(blocks: Sequence[Any]) -> np.ndarray:
    """Returns the vertices of a product of polytopes, shape (number, d). **Arguments:** `blocks`: those of each."""
    parts = [np.unique(np.asarray(block, np.float64), axis=0) for block in blocks]
    return np.array([np.concatenate(rows) for rows in itertools.product(*parts)])


def _whole_rows(vertices: np.ndarray, exponents: Sequence[int]) -> list[list[int]]:
    """Computes for each vertex v whole numbers a with a_j in proportion to v_j·2^(e_j)."""
    found = []
    for vertex in vertices.tolist():
        products = [
            Fraction(number) * power_of_two(exponent) for number, exponent in zip(vertex, exponents, strict=True)
        ]
        unit = math.lcm(*(product.denominator for product in products))
        whole = [int(product * unit) for product in products]
        common = math.gcd(*whole) or 1
        found.append([number // common for number in whole])
    return found


def _product(row: Sequence[int], point: Point) -> int:
    return sum(a * int(k) for a, k in zip(row, point, strict=True))
