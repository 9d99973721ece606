"""The first boxes of an envelope: a core about the law's middle, and all that is farther out, bounded by rays."""

import math

import numpy as np

from kngjax.draws.lattice.scores import AbstractScore, LatticeBoxes
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.refinement import slabs

# In logarithms, of a law that is as wide as bounds of boxes are exact, and most are wider: what is not worth a box.
_NEGLIGIBLE = 4.0
# Ends of the core are sought from here outward, in the norm in which bounds miss the log-density by 1.
_NEAREST = 16.0
# Between so many cells of the faces are tried, as many as look at so many runs.
_FEWEST_CELLS, _MOST_CELLS, _MOST_LOOKS = 48, 256, 2**23
# So many cores, each twice as large as the one before.
_TRIES = 12


def first_boxes(score: AbstractScore, domain: DomainLattice, rate: float) -> LatticeBoxes:
    """Boxes that cover Θ: all of it; or a core and at most 2d slabs, on which the score is above what rays say.

    A ray from k₀ to a point outside of the core goes through a face of it, in Θ, which is convex. So the least of what
    `beyond` says of cells that cover the faces in Θ is below the score on all slabs.
    """
    return surrounded(score, domain, rate)[0]


def surrounded(score: AbstractScore, domain: DomainLattice, rate: float) -> tuple[LatticeBoxes, bool]:
    """Makes the `first_boxes`, and says whether next to nothing of the law lies out of their core."""
    ends = score.coordinates.around(domain.low, domain.high)
    held = ends if score.held is None else score.held
    whole = score.whole(*ends)
    middle = score.origin
    if score.beyond(middle[None], middle[None]) is None:
        return whole, True
    point = score.coordinates.extremes(middle[None], middle[None])[0][0]
    wanted = _wanted(score, rate, ends) + rate * score.at(point, whole.runs[0], whole.sums[0])
    reach, lower = _reach(score, rate, held, wanted), 0
    for left in range(_TRIES, 0, -1):
        low, high = _core(score.origin, reach, held)
        if np.array_equal(low, ends[0]) and np.array_equal(high, ends[1]):
            return whole, True
        is_last = left == 1 or (np.array_equal(low, held[0]) and np.array_equal(high, held[1]))
        core = score.parts(low[None], high[None], whole.runs, whole.sums)
        lower = _beyond(score, domain, core, ends, wanted / rate, is_last)
        if is_last or lower >= wanted / rate:
            break
        reach = [2 * step for step in reach]
    # Each point once.
    lows, highs = map(np.array, zip((low, high), *slabs((low, high), ends, apart=1), strict=True))
    inside = ~domain.misses(*score.coordinates.extremes(lows, highs))
    lows, highs = lows[inside], highs[inside]
    number = len(lows)
    boxes = score.parts(lows, highs, whole.runs * number, np.repeat(whole.sums, number, axis=0))
    is_core = np.all((lows == low) & (highs == high), axis=1)
    boxes = boxes._replace(lower=np.where(is_core, boxes.lower, np.maximum(boxes.lower, lower)))
    return boxes, lower >= wanted / rate


def _wanted(score, rate, ends) -> float:
    """Returns by how much all log-densities outside the core are to be below that of the middle."""
    log_points = np.sum(np.log((ends[1] - ends[0] + 1).astype(float)))
    log_law = -np.sum(np.log(np.maximum(score.importance(), np.finfo(float).tiny)))
    return max(float(log_points - log_law), 0.0) + _NEGLIGIBLE


def _reach(score, rate, ends, goal) -> list[int]:
    """Finds how far along each axis rays say enough, on both sides, or where Θ ends."""
    origin, found = score.origin, []
    for axis, unit in enumerate(score.importance()):
        widest = int(ends[1][axis]) - int(ends[0][axis])
        step = min(math.ceil(_NEAREST / unit), widest)
        while step < widest:
            points = np.stack([origin, origin])
            points[:, axis] += np.array([-step, step])
            outside = (points < ends[0]) | (points > ends[1])
            bounds = score.beyond(points, points)
            if np.all(outside.any(axis=1) | (rate * bounds.astype(float) >= goal)):
                break
            step *= 2
        found.append(step)
    return found


def _core(origin, reach, ends):
    """The box of m that reaches so far from the origin, within Θ's."""
    pairs = [
        (max(int(low), int(middle) - step), min(int(high), int(middle) + step))
        for middle, step, low, high in zip(origin, reach, *ends, strict=True)
    ]
    low, high = np.array(pairs, np.int64).T
    return low, high


def _beyond(score, domain, core: LatticeBoxes, ends, wanted, is_last: bool) -> int:
    """Bounds the score from below on all rays through the core's faces, as well as wanted or as a few cells can.

    It is 0, unless this is the last core, where one ray says less than wanted: no cell on its way can say more.
    """
    lowest, tried = np.inf, 0
    most = min(max(_FEWEST_CELLS, _MOST_LOOKS // max(core.runs[0].shape[1], 1)), _MOST_CELLS)
    lows, highs = [], []
    for axis in range(len(ends[0])):
        for end, other in zip((core.low[0], core.high[0]), ends, strict=True):
            if end[axis] != other[axis]:
                low, high = core.low[0].copy(), core.high[0].copy()
                low[axis] = high[axis] = end[axis]
                lows.append(low)
                highs.append(high)
    low, high = np.array(lows), np.array(highs)
    while len(low):
        inside = ~domain.misses(*score.coordinates.extremes(low, high))
        low, high = low[inside], high[inside]
        points = (low + high) // 2
        points = points[~domain.misses(*[points @ score.coordinates.matrix.T] * 2)]
        if not is_last and np.any(score.beyond(points, points, core).astype(float) < wanted):
            return 0
        found = score.beyond(low, high, core)
        tried += len(low)
        short = found.astype(float) < wanted
        if tried > most:
            short[:] = False
        lowest = min(lowest, *(int(bound) for bound in found[~short])) if np.any(~short) else lowest
        low, high = _halved(low[short], high[short], score.importance())
    return 0 if math.isinf(lowest) else int(lowest)


def _halved(low, high, importance):
    """Two halves of each cell, with a face in common, so that they cover what lies between whole numbers too."""
    for _ in range(max(len(importance) - 1, 1)):
        rows, axis = np.arange(len(low)), np.argmax((high - low) * importance, axis=1)
        middle = low[rows, axis] + (high[rows, axis] - low[rows, axis]) // 2
        left, right = high.copy(), low.copy()
        left[rows, axis] = right[rows, axis] = middle
        low, high = np.concatenate([low, right]), np.concatenate([left, high])
    return low, high
