"""Boxes of u that overlap in their faces alone: their ends are float64 numbers, and halves share the one between."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kngjax.core.verified import NEXT_TO_ZERO
from kngjax.draws.boxes.box_coordinates import BoxCoordinates
from kngjax.geometry.shapes import Shape

_MARGIN = 2.0**-40
# Points of a box of which it is looked whether they are in Θ, and of how many boxes at a time.
_POINTS, _AT_A_TIME = 32, 2**16
_ROOTS = (1.618033988749895, 1.324717957244746, 1.2207440846057596, 1.1673039782614187)
UNSEEN, ENDS = -1, -2


class BoundedBoxes(NamedTuple):
    """Holds boxes of u with floors of ‖G‖. Private.

    **Arguments:** `lower`, `upper`: their ends. `floors`: at most ‖G‖ on each. `middles`: about ‖G‖ at the middle.
    `which`: the number of the bounds over a box that contains it; `UNSEEN` if only rays tell of it, `ENDS` if the ends
    of its scores do. `shares`: about how much of each lies in Θ.
    """

    lower: Float[np.ndarray, "boxes dimension"]
    upper: Float[np.ndarray, "boxes dimension"]
    floors: Float[np.ndarray, " boxes"]
    middles: Float[np.ndarray, " boxes"]
    which: Int[np.ndarray, " boxes"]
    shares: Float[np.ndarray, " boxes"]

    def __repr__(self) -> str:
        return "<BoundedBoxes; OWNER ONLY>"

    @staticmethod
    def between(ends: Sequence[tuple[np.ndarray, np.ndarray]], floor: float = 0.0) -> "BoundedBoxes":
        """Boxes with these ends, on which ‖G‖ is at least so much."""
        lower, upper = (np.array([one[side] for one in ends]) for side in (0, 1))
        count = len(ends)
        known = np.full(count, floor), np.full(count, np.inf), np.full(count, UNSEEN), np.ones(count)
        return BoundedBoxes(lower, upper, *known)

    @staticmethod
    def join(parts: Sequence["BoundedBoxes"]) -> "BoundedBoxes":
        """Joins the boxes of several collections, in order."""
        return BoundedBoxes(*map(np.concatenate, zip(*parts, strict=True)))

    def at(self, indices: Any) -> "BoundedBoxes":
        """Selects some of the boxes, by index or by a mask."""
        return BoundedBoxes(*(part[indices] for part in self))

    def without(self, indices: np.ndarray) -> "BoundedBoxes":
        """Selects all boxes but those of these indices."""
        kept = np.ones(self.floors.size, dtype=bool)
        kept[indices] = False
        return self.at(kept)

    @property
    def centres(self) -> Float[np.ndarray, "boxes dimension"]:
        """Computes the middles of the boxes, rounded."""
        return 0.5 * self.lower + 0.5 * self.upper

    @property
    def halves(self) -> Float[np.ndarray, "boxes dimension"]:
        """Bounds how far the boxes reach from `centres`."""
        centres = self.centres
        return np.maximum(self.upper - centres, centres - self.lower) * (1.0 + _MARGIN) + NEXT_TO_ZERO

    def log_volumes(self) -> Float[np.ndarray, " boxes"]:
        """Computes the logarithms of the boxes' volumes, rounded."""
        return np.log(self.upper - self.lower).sum(axis=1)

    def halved(self, axes: Int[np.ndarray, " boxes"]) -> "BoundedBoxes":
        """Two halves of each along this axis; what no float64 number halves is left as it is, and finished."""
        rows = np.arange(axes.size)
        cuts = 0.5 * self.lower[rows, axes] + 0.5 * self.upper[rows, axes]
        cut = (cuts > self.lower[rows, axes]) & (cuts < self.upper[rows, axes])
        whole, both = self.at(~cut), self.at(cut)
        rows, axes, cuts = np.arange(both.floors.size), axes[cut], cuts[cut]
        lower, upper = both.lower.copy(), both.upper.copy()
        lower[rows, axes], upper[rows, axes] = cuts, cuts
        finished = whole._replace(middles=whole.floors, shares=np.ones_like(whole.shares))
        return BoundedBoxes.join([finished, both._replace(upper=upper), both._replace(lower=lower)])


def shares_inside(domain: Shape, coordinates: BoxCoordinates, boxes: BoundedBoxes) -> Float[np.ndarray, " boxes"]:
    """Estimates how much of each box lies in Θ, by some of its points; at least half of one of them."""
    centres, halves = boxes.centres, boxes.halves
    shares = np.ones(len(centres))
    open_ones = np.flatnonzero(~domain.about_holds(*coordinates.hull(centres, halves)))
    step = max(1, _AT_A_TIME // _POINTS)
    dimension = centres.shape[1]
    # Multiples of the powers of one number, the root of x^(d+1) = x + 1, are spread evenly.
    steps = _ROOTS[dimension - 1] ** -np.arange(1.0, dimension + 1.0)
    spread = 2.0 * ((0.5 + np.outer(np.arange(_POINTS), steps)) % 1.0) - 1.0
    for start in range(0, open_ones.size, step):
        some = open_ones[start : start + step]
        places = (centres[some][:, None] + halves[some][:, None] * spread) @ coordinates.matrix.T + coordinates.centre
        inside = domain.about_holds(*[places.reshape(-1, dimension)] * 2)
        shares[some] = np.maximum(inside.reshape(-1, _POINTS).mean(axis=1), 0.5 / _POINTS)
    return shares


def crossing_axes(domain: Shape, coordinates: BoxCoordinates, boxes: BoundedBoxes) -> Int[np.ndarray, " boxes"]:
    """Chooses the axis along which each box reaches farthest in those coordinates of θ that cross Θ's border."""
    moves = np.abs(coordinates.matrix) * boxes.halves[:, None, :]
    lower, upper = coordinates.hull(boxes.centres, boxes.halves)
    low, high = domain.lower, domain.upper
    # The border of a ball is one of all coordinates.
    crossing = (lower < low) | (upper > high) if domain.size is None else np.ones_like(lower, dtype=bool)
    parts = moves / (high - low)[:, None] if domain.size is not None else moves / moves.sum(axis=2, keepdims=True)
    return np.argmax(np.where(crossing[:, :, None], parts, 0.0).sum(axis=1), axis=1)
