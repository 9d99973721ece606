"""Boxes in a few dimensions as arrays: halves of them, shells between two of them, cells of a face."""

import dataclasses
import itertools
from typing import Any

import numpy as np
from jaxtyping import Float, Int


@dataclasses.dataclass(frozen=True)
class Boxes:
    """Boxes {|u - centre| ≤ half} that overlap in their faces alone, with what is known of a score on each.

    **Arguments:** `centres`, `halves`: shape (boxes, d). `lower`: below the score. `middle`: about the score at the
    centre. `levels`: the number of the smallest region that contains the box.
    """

    centres: Float[np.ndarray, "boxes dimension"]
    halves: Float[np.ndarray, "boxes dimension"]
    lower: Float[np.ndarray, " boxes"]
    middle: Float[np.ndarray, " boxes"]
    levels: Int[np.ndarray, " boxes"]

    @staticmethod
    def one(centre: np.ndarray, half: np.ndarray, level: int, lower: float = -np.inf) -> "Boxes":
        """A single box."""
        return Boxes(centre[None], half[None], np.array([lower]), np.array([np.inf]), np.array([level]))

    @staticmethod
    def join(parts: list["Boxes"]) -> "Boxes":
        """All boxes of several collections, in order."""
        names = [field.name for field in dataclasses.fields(Boxes)]
        return Boxes(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def at(self, indices: Any) -> "Boxes":
        """Some of the boxes, by index or by a mask."""
        return Boxes(*(getattr(self, field.name)[indices] for field in dataclasses.fields(self)))

    def without(self, indices: np.ndarray) -> "Boxes":
        """All but those of these indices."""
        kept = np.ones(self.lower.size, dtype=bool)
        kept[indices] = False
        return self.at(kept)

    def log_volumes(self) -> Float[np.ndarray, " boxes"]:
        """Σ_j log 2h_j."""
        return np.sum(np.log(2.0 * self.halves), axis=1)


def halve(boxes: Boxes, scales: np.ndarray) -> Boxes:
    """Two halves of each box along its longest side; what was known of the whole is kept as known of the halves.

    **Arguments:** `scales`: shape (d,), in which sides are measured along each axis.
    """
    rows, longest = np.arange(boxes.lower.size), np.argmax(boxes.halves * scales, axis=1)
    halves, offsets = boxes.halves.copy(), np.zeros_like(boxes.halves)
    halves[rows, longest] *= 0.5
    offsets[rows, longest] = halves[rows, longest]
    sides = [dataclasses.replace(boxes, centres=boxes.centres + side * offsets, halves=halves) for side in (-1, 1)]
    return Boxes.join(sides)


def slabs(inner: Any, outer: Any, level: int, lower: float) -> Boxes:
    """At most 2d boxes that fill what is in the outer box and not in the inner one, which lies within it.

    One for each of the inner box's `faces`, whose bounds they have: what rounding alone leaves between two ends that
    are the same has no face, and gets no box.
    """
    low, high = outer.centre - outer.half, outer.centre + outer.half
    ends = inner.centre - inner.half, inner.centre + inner.half
    parts = []
    for axis in range(low.size):
        for side, start, stop in ((-1.0, low[axis], ends[0][axis]), (1.0, ends[1][axis], high[axis])):
            if _is_face(inner, outer, axis, side):
                side_low, side_high = low.copy(), high.copy()
                side_low[axis], side_high[axis] = start, stop
                parts.append(Boxes.one(0.5 * (side_low + side_high), 0.5 * (side_high - side_low), level, lower))
        low[axis], high[axis] = ends[0][axis], ends[1][axis]
    return Boxes.join(parts)


def faces(inner: Any, outer: Any) -> Boxes:
    """The faces of the inner box that lie within the outer one, as boxes without thickness."""
    parts = []
    for axis, side in itertools.product(range(inner.centre.size), (-1.0, 1.0)):
        if _is_face(inner, outer, axis, side):
            centre, half = inner.centre.copy(), inner.half.copy()
            centre[axis], half[axis] = inner.centre[axis] + side * inner.half[axis], 0.0
            parts.append(Boxes.one(centre, half, 0))
    return Boxes.join(parts)


def _is_face(inner: Any, outer: Any, axis: int, side: float) -> bool:
    """Whether this side of the inner box lies within the outer one, by more than rounding."""
    end, other = (box.centre[axis] + side * box.half[axis] for box in (inner, outer))
    return bool(side * (other - end) > 1e-12 * outer.half[axis])
