"""Boxes of u that overlap in their faces alone: their ends are float64 numbers, and halves share the one between."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kngjax.core.verified import NEXT_TO_ZERO
from kngjax.sensitivity.in_fractions import DomainRange

_MARGIN = 2.0**-40
UNSEEN, ENDS = -1, -2


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """Private. **Arguments:** `lower`, `upper`: their ends. `floors`: at most ‖G‖ on each. `middles`: about it at the
    middle. `which`: what is known of a box that contains it has this number; `UNSEEN` if only rays tell of it,
    `ENDS` if the ends of its scores do.
    """

    lower: Float[np.ndarray, "boxes dimension"]
    upper: Float[np.ndarray, "boxes dimension"]
    floors: Float[np.ndarray, " boxes"]
    middles: Float[np.ndarray, " boxes"]
    which: Int[np.ndarray, " boxes"]

    def __repr__(self) -> str:
        return "<Boxes; OWNER ONLY>"

    @staticmethod
    def between(ends: Sequence[tuple[np.ndarray, np.ndarray]], floor: float = 0.0) -> "Boxes":
        """Boxes with these ends, on which ‖G‖ is at least so much."""
        lower, upper = (np.array([one[side] for one in ends]) for side in (0, 1))
        count = len(ends)
        return Boxes(lower, upper, np.full(count, floor), np.full(count, np.inf), np.full(count, UNSEEN))

    @staticmethod
    def join(parts: Sequence["Boxes"]) -> "Boxes":
        """All boxes of several collections, in order."""
        return Boxes(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))

    def at(self, indices: Any) -> "Boxes":
        """Some of the boxes, by index or by a mask."""
        return Boxes(*(getattr(self, name)[indices] for name in _NAMES))

    def without(self, indices: np.ndarray) -> "Boxes":
        """All but those of these indices."""
        kept = np.ones(self.floors.size, dtype=bool)
        kept[indices] = False
        return self.at(kept)

    @property
    def centres(self) -> Float[np.ndarray, "boxes dimension"]:
        """About their middles."""
        return 0.5 * self.lower + 0.5 * self.upper

    @property
    def halves(self) -> Float[np.ndarray, "boxes dimension"]:
        """At least as far as they reach from `centres`."""
        centres = self.centres
        return np.maximum(self.upper - centres, centres - self.lower) * (1.0 + _MARGIN) + NEXT_TO_ZERO

    def log_volumes(self) -> Float[np.ndarray, " boxes"]:
        """About their logarithms."""
        return np.log(self.upper - self.lower).sum(axis=1)

    def halved(self, axes: Int[np.ndarray, " boxes"]) -> "Boxes":
        """Two halves of each along this axis; what no float64 number halves is left as it is, and finished."""
        rows = np.arange(axes.size)
        cuts = 0.5 * self.lower[rows, axes] + 0.5 * self.upper[rows, axes]
        cut = (cuts > self.lower[rows, axes]) & (cuts < self.upper[rows, axes])
        whole, both = self.at(~cut), self.at(cut)
        rows, axes, cuts = np.arange(both.floors.size), axes[cut], cuts[cut]
        lower, upper = both.lower.copy(), both.upper.copy()
        lower[rows, axes], upper[rows, axes] = cuts, cuts
        finished = dataclasses.replace(whole, middles=whole.floors)
        return Boxes.join([finished, _with_ends(both, both.lower, upper), _with_ends(both, lower, both.upper)])


_NAMES = ("lower", "upper", "floors", "middles", "which")


def _with_ends(boxes: Boxes, lower: np.ndarray, upper: np.ndarray) -> Boxes:
    return Boxes(lower, upper, boxes.floors, boxes.middles, boxes.which)


def slabs(
    inner: tuple[np.ndarray, np.ndarray], outer: tuple[np.ndarray, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The ends of at most 2d boxes that fill what is in the outer box and not in the inner one within it."""
    low, high, found = outer[0].copy(), outer[1].copy(), []
    for axis in range(low.size):
        for start, stop in ((low[axis], inner[0][axis]), (inner[1][axis], high[axis])):
            if start < stop:
                ends = low.copy(), high.copy()
                ends[0][axis], ends[1][axis] = start, stop
                found.append(ends)
        low[axis], high[axis] = inner[0][axis], inner[1][axis]
    return found


def may_meet(domain: DomainRange, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """False where Θ certainly has no point with θ_j between these."""
    low, high = (np.array([float(side[k]) for side in domain.sides]) for k in (0, 1))
    found = np.all((lower <= high) & (upper >= low), axis=1)
    if domain.size is None:
        return found
    least = np.maximum(np.maximum(lower, -upper), 0.0)
    total = (least if domain.power == 1 else np.square(least)).sum(axis=1)
    return found & ~(total * (1.0 - _MARGIN) - NEXT_TO_ZERO > float(domain.size) * (1.0 + _MARGIN))
