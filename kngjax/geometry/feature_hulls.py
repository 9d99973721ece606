"""Public polytopes that contain every record's features: for columns that are functions of one another.

The powers (t, t², ...) of a column fill a curve and not a box, and of the 0/1 columns of a category one at most is 1.
A box promises too little of them, and noise is added for records that cannot be. A `FeatureHull` is the promise that
the features lie in a convex polytope; `kngjax.data.prepare` keeps it, record by record.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from kngjax.core.arrays import is_traced, parameter
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.geometry.hulls import Rows, checked_points, hull_about_zero

# By how much, relative to its size, the polytope that is enforced exceeds the declared one: rounding moves features
# that lie on its boundary. The sensitivity is that of a polytope which exceeds it by as much again.
SLACK = 1e-9
_derived = {"derived": True}


class FeatureHull(ShownAsTyped, AbstractModule):
    """A convex hull of public points, or a product of such hulls, that contains every record's features.

    **Arguments:** `blocks`: for each block of columns, in their order and without the intercept, the vertices, shape
    (m, columns of the block); for one column its lower and its upper bound will do. A record's features must lie in
    the product of the blocks' hulls. Everything here is public.

    Blocks are multiplied with `*`: `FeatureHull.powers(2, 0.0, 1.0) * FeatureHull([[0.0], [18.0]])`. Raises
    ValueError for vertices in a plane, for a hull that is far from 0 and narrow, and beyond six columns a block
    unless there is one vertex more than columns.
    """

    blocks: tuple[Rows, ...]
    centres: tuple[Rows, ...] = eqx.field(metadata=_derived)
    facets: tuple[Rows, ...] = eqx.field(metadata=_derived)

    def __init__(self, *blocks: Any):
        if not blocks:
            raise ValueError("a FeatureHull needs vertices, an array of shape (number, columns), for each block")
        if is_traced(*blocks):
            raise TypeError("a FeatureHull is made on the host, from numbers: make it outside of jit and pass it in")
        vertices, centres, facets = [], [], []
        for block in blocks:
            points = np.unique(checked_points("vertices", block), axis=0)
            while True:
                # About the mean of the points that are kept, so that the vertices alone make the same hull again.
                centre = points.mean(axis=0, keepdims=True)
                hull = hull_about_zero("vertices about their mean", points - centre)
                if len(hull.indices) == len(points):
                    break
                points = points[np.sort(hull.indices)]
            # What is moved inside is rounded, relative to its size, and may not leave the polytope about the declared.
            if np.max(np.abs(hull.facets) @ np.max(np.abs(points), axis=0)) * 2.0**-52 > 0.25 * SLACK:
                raise ValueError(
                    "the vertices lie so far from 0, next to the hull's width, that rounding would move records out of "
                    "it: subtract a public number from the columns"
                )
            vertices.append(points)
            centres.append(centre)
            facets.append(hull.facets)
        self.blocks, self.centres, self.facets = (tuple(map(parameter, part)) for part in (vertices, centres, facets))

    @classmethod
    def powers(cls, degree: int, lower: float, upper: float, pieces: int = 4) -> "FeatureHull":
        """Returns a polytope around {(t, t², ..., t^degree) : lower ≤ t ≤ upper}, see `moment_curve`."""
        return cls(moment_curve(degree, lower, upper, pieces))

    @classmethod
    def intervals(cls, lower: Any, upper: Any) -> "FeatureHull":
        """Returns the box lower ≤ x ≤ upper, a block for each column. **Arguments:** shapes (columns,)."""
        sides = zip(np.atleast_1d(lower), np.atleast_1d(upper), strict=True)
        return cls(*(np.array([[low], [high]]) for low, high in sides))

    def __mul__(self, other: "FeatureHull") -> "FeatureHull":
        return FeatureHull(*self.blocks, *other.blocks)

    @property
    def columns(self) -> int:
        """Returns the number of columns, without the intercept."""
        return sum(block.shape[-1] for block in self.blocks)

    @property
    def vertices(self) -> Rows:
        """Returns the vertices of the product, shape (product of the blocks' numbers, columns)."""
        return np.array([np.concatenate(rows) for rows in itertools.product(*self.blocks)])

    @property
    def centre(self) -> Float[np.ndarray, " columns"]:
        """Returns a public point inside, shape (columns,), towards which `move_inside` moves what lies outside."""
        return np.concatenate(self.centres, axis=-1)[0]

    @property
    def box(self) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
        """Returns the smallest and the largest value of each column."""
        lower = np.concatenate([block.min(axis=0) for block in self.blocks])
        return lower, np.concatenate([block.max(axis=0) for block in self.blocks])

    @property
    def outer_blocks(self) -> tuple[Rows, ...]:
        """Returns the vertices that a sensitivity is computed from: those of a polytope around the enforced one."""
        pairs = zip(self.blocks, self.centres, strict=True)
        return tuple(centre + (1.0 + 2.0 * SLACK) * (block - centre) for block, centre in pairs)

    def outside(self, columns: Float[np.ndarray, "records columns"]) -> Bool[np.ndarray, " records"]:
        """Marks the private rows, shape (n, columns), that lie outside; for the data owner only."""
        return np.any([lengths > 1.0 + SLACK for lengths, _, _ in self._lengths(columns)], axis=0)

    def move_inside(self, columns: Float[np.ndarray, "records columns"]) -> Float[np.ndarray, "records columns"]:
        """Moves rows, shape (n, columns), that lie outside of the polytope into it, towards the centre, block by block.

        Each record is moved by itself, so that the sensitivity cannot rise, and rows of the declared polytope stay. No
        number x leaves the interval between x and the centre's c: x - c, rounded, over a length above 1 + SLACK,
        rounded again, is no longer than x - c, and rounding c plus that quotient keeps the order.
        """
        blocks = []
        for lengths, part, centre in self._lengths(columns):
            moved = centre + (part - centre) / np.maximum(lengths, 1.0)[:, None]
            blocks.append(np.where((lengths > 1.0 + SLACK)[:, None], moved, part))
        return np.concatenate(blocks, axis=1)

    def _lengths(self, columns: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each block how far its rows are from the centre, 1 being the boundary, then the rows and the centre."""
        starts = np.cumsum([block.shape[-1] for block in self.blocks])[:-1]
        found = []
        for part, centre, facets in zip(np.split(columns, starts, axis=1), self.centres, self.facets, strict=True):
            # Column by column: a product of matrices may round a row by how many others there are.
            steps, lengths = (part - centre).T, np.zeros(len(part))
            for facet in facets:
                reach = sum(slope * step for slope, step in zip(facet, steps, strict=True))
                np.maximum(lengths, reach, out=lengths)
            found.append((lengths, part, centre))
        return found


def moment_curve(degree: int, lower: float, upper: float, pieces: int = 4) -> Rows:
    """Returns points whose hull contains (t, t², ..., t^degree) for every lower ≤ t ≤ upper, shape (m, degree).

    On each of the `pieces` equal parts [α, β] the curve is a Bézier curve, Σ_i B_i(t) c_i with Bernstein polynomials
    B_i ≥ 0 that sum to 1, and so in the hull of its control points c_i: coordinate k of c_i is the mean of the products
    of k among the p numbers α (p - i times) and β (i times), p the degree. More pieces make a tighter hull with more
    vertices.

    **Arguments:** `degree`: p ≥ 1, at most 6 unless there is one piece. `lower`, `upper`, `pieces`: public.
    """
    if degree < 1 or pieces < 1 or not (lower < upper and math.isfinite(upper - lower)):
        raise ValueError(
            f"powers need degree ≥ 1, pieces ≥ 1 and finite lower < upper, got degree {degree}, pieces {pieces} and "
            f"the range ({lower}, {upper})"
        )
    binomials = np.array([math.comb(degree, power) for power in range(1, degree + 1)], dtype=float)
    points = []
    for start, stop in itertools.pairwise(np.linspace(lower, upper, pieces + 1)):
        for ends in range(degree + 1):
            # The coefficients of Π_j (z + a_j) are the elementary symmetric polynomials of the numbers a_j.
            symmetric = np.poly([-start] * (degree - ends) + [-stop] * ends)
            points.append(symmetric[1:] / binomials)
    return np.unique(points, axis=0)
