"""Refinement of an envelope that is constant on boxes: one rule for boxes of real numbers and of lattice points."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from jaxtyping import Float

Boxes = TypeVar("Boxes")
Masses = Float[np.ndarray, " boxes"]


def refine(
    boxes: Boxes,
    masses: Callable[[Boxes], tuple[Masses, Masses]],
    halve: Callable[[Boxes, np.ndarray], Boxes],
    enough: Callable[[float, int], bool],
    most_boxes: int,
    share: float,
    at_a_time: Callable[[int], tuple[int, int]],
) -> tuple[Boxes, float]:
    """Halves the boxes that carry most of the excess until proposals are accepted often enough.

    **Arguments:** `masses`: of some boxes, the envelope's mass on each, and about how much of it exceeds the density's,
    both relative to one number. `halve`: of boxes and the indices of some, the boxes with these replaced by their
    halves. `enough`: whether a share that is accepted, about, by so many boxes needs no more. `most_boxes`: at which it
    stops in any case, as it does where no box has any excess. `share`: of the excess, on the boxes that are halved
    before masses are computed anew; `at_a_time`: of so many boxes the fewest and the most of them.

    **Returns** the boxes, and the share of their proposals that is accepted, about.
    """
    while True:
        envelope, excess = masses(boxes)
        missing = excess.sum()
        acceptance = 1.0 - float(missing / envelope.sum())
        if enough(acceptance, envelope.size) or envelope.size >= most_boxes or not missing > 0.0:
            return boxes, acceptance
        order = np.argsort(-excess)[: np.count_nonzero(excess > 0.0)]
        number = int(np.searchsorted(np.cumsum(excess[order]), share * missing)) + 1
        boxes = halve(boxes, order[: int(np.clip(number, *at_a_time(envelope.size)))])


def slabs(
    inner: tuple[np.ndarray, np.ndarray], outer: tuple[np.ndarray, np.ndarray], apart: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the ends of at most 2d boxes that fill what is in the outer box and not in the inner one within it.

    **Arguments:** `apart`: 0 for real numbers, where boxes share faces, and 1 for whole ones, each in one box.
    """
    low, high, found = outer[0].copy(), outer[1].copy(), []
    for axis in range(low.size):
        for start, stop in ((low[axis], inner[0][axis] - apart), (inner[1][axis] + apart, high[axis])):
            if start < stop + apart:
                ends = low.copy(), high.copy()
                ends[0][axis], ends[1][axis] = start, stop
                found.append(ends)
        low[axis], high[axis] = inner[0][axis], inner[1][axis]
    return found
