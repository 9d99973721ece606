"""Envelopes of lattice mechanisms: boxes with lower bounds of the score, refined until rejection is cheap."""

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np

from kngjax.draws.finite import LevelLaw, below, happens
from kngjax.draws.lattice.regions import CurveRegion
from kngjax.draws.lattice.scores import AbstractScore, LatticeBoxes
from kngjax.draws.lattice.surroundings import first_boxes
from kngjax.draws.lattice.units import DomainLattice
from kngjax.draws.refinement import refine
from kngjax.draws.uniforms import Bits

_MOST_SPLIT = 4096
# One in so many boxes is split before all are looked at again, which takes about as long.
_FEWEST_SPLIT = 64
# Bounds that differ by less in log-density count as one level: fewer levels are summed.
_LEVEL = 1.0 / 64.0
_MOST_LEVELS = 2**40
# Fewer proposals are not worth more boxes. A proposal costs as much as a few boxes, or as to look at so many runs of
# records on boxes.
_FEWEST_PROPOSALS, _BOXES_A_PROPOSAL, _RUNS_A_PROPOSAL = 32.0, 4, 4096


class LatticeEnvelope:
    """Draws k ∈ Θ with P(k) ∝ exp(-rate·s(k)), exactly, by rejection from Σ_boxes 1{k ∈ box}·exp(-rate·lower bound).

    A box is drawn with probability ∝ number of its places·exp(-rate·lower), a place of it uniformly, and kept with
    probability exp(-rate·(s - lower)) if it is a point in Θ: every point is kept with the same multiple of
    exp(-rate·s), whatever the boxes are. So the boxes may depend on the data, and floating point may choose them, and
    so may the coordinates m that they are boxes of: each point is in one box, one place of it (`AbstractCoordinates`).

    That needs lower ≤ s, which `QuadraticScore`, `QuantileScore` and `ConeScore` prove of theirs for all data, in whole
    numbers and rounding outward. It is checked all the same, so that an error in the program would fail and not draw
    from another law.

    **Arguments:** `score`, `domain`: of the lattice points. `rate`: c. `target`: boxes are halved until about so many
    proposals are expected a draw, or None, until proposals cost about as much as boxes did. `most_boxes`: or until
    there are so many. `region`: a part of Θ, not empty: k is drawn in it, as if all others were rejected.
    """

    def __init__(
        self,
        score: AbstractScore,
        domain: DomainLattice,
        rate: Fraction,
        target: float | None,
        most_boxes: int,
        region: CurveRegion | None = None,
    ):
        self._domain, self._rate, self._region = domain, rate, region
        self._score = score.near(domain, float(rate))
        self._coordinates, self._importance = self._score.coordinates, self._score.importance()
        whole = first_boxes(self._score, domain, float(rate))
        whole = self._tried(whole.at(np.flatnonzero(self._may_hold(whole.low, whole.high))))

        self._looked_at = 0

        def enough(acceptance: float, number: int) -> bool:
            cost = max(number / _BOXES_A_PROPOSAL, self._looked_at / _RUNS_A_PROPOSAL)
            return acceptance * (target or max(_FEWEST_PROPOSALS, cost)) >= 1.0

        def at_a_time(number: int) -> tuple[int, int]:
            return 1 + number // _FEWEST_SPLIT, _MOST_SPLIT

        # At a time those that carry nine tenths of what may be missing.
        boxes, _ = refine(whole, self._masses, self._halve, enough, most_boxes, 0.9, at_a_time)
        step = min(2 ** max(math.floor(math.log2(_LEVEL / rate)), 0), _MOST_LEVELS)
        self._boxes = boxes._replace(lower=boxes.lower // step * step)
        values, number = np.unique(self._boxes.lower, return_inverse=True)
        order = np.argsort(number, kind="stable")
        self._members = np.split(order, np.cumsum(np.bincount(number))[:-1])
        sizes = self._coordinates.sizes(self._boxes.low, self._boxes.high)
        # For each level: how many places its first boxes have together.
        self._points = [list(itertools.accumulate(sizes[box] for box in members)) for members in self._members]
        self._law = LevelLaw([int(level) for level in values], [points[-1] for points in self._points], rate)

    def draw(self, bits: Bits) -> np.ndarray:
        """k, shape (d,). It tries until it succeeds: a limit would make failure an output that depends on the data."""
        while True:
            level, boxes = self._law.draw(bits), self._boxes
            points = self._points[level]
            box = self._members[level][bisect.bisect_right(points, below(points[-1], bits))]
            point = self._coordinates.draw(boxes.low[box], boxes.high[box], bits)
            if point is None or not self._holds_each(point[None])[0]:
                continue
            excess = self._score.at(point, boxes.runs[box], boxes.sums[box]) - int(boxes.lower[box])
            if excess < 0:
                # No data lead here, see above.
                raise AssertionError("a bound of the score does not hold")
            if happens(self._rate * excess, bits):
                return point

    def _masses(self, boxes: LatticeBoxes) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds of the boxes' masses and about their excess, relative to the largest; in floats."""
        rate = float(self._rate)
        lower = boxes.lower.astype(float)
        upper = self._coordinates.log_sizes(boxes.low, boxes.high) - rate * lower
        masses = np.exp(upper - np.max(upper))
        excess = -np.expm1(-rate * np.maximum(boxes.middle - lower, 0.0)) * masses
        # A box of one place is not halved.
        return masses, np.where(np.any(self._coordinates.divisible(boxes.low, boxes.high), axis=1), excess, 0.0)

    def _tried(self, boxes: LatticeBoxes) -> LatticeBoxes:
        """Counts a trial proposal outside of Θ as rejected, like those of too high a score."""
        points, are_there = self._coordinates.somewhere(boxes.low, boxes.high)
        is_outside = ~are_there | self._domain.misses(points, points)
        if self._region is not None:
            is_outside |= ~self._region.contains_each(points)
        return boxes._replace(middle=np.where(is_outside, np.inf, boxes.middle))

    def _directions(self, boxes: LatticeBoxes) -> np.ndarray:
        """Measures how uncertain scores on these boxes are along each axis, over its steps; 0 for an undivided axis.

        Where no axis is uncertain, or the box reaches out of Θ, it is halved as the law is wide.
        """
        divisible = self._coordinates.divisible(boxes.low, boxes.high)
        spread = np.where(divisible, self._score.spread(boxes), 0.0)
        is_known = np.isfinite(boxes.middle) & np.any(spread > 0.0, axis=1)
        return np.where(is_known[:, None], spread, np.where(divisible, self._importance, 0.0))

    def _may_hold(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Marks the boxes that may have a point in Θ; for a box of one place this is decided, as it has no halves."""
        found = self._coordinates.may_hold(low, high) & ~self._domain.misses(*self._coordinates.extremes(low, high))
        if self._region is not None:
            found &= ~self._region.misses(self._coordinates, low, high)
        single = np.flatnonzero(found)
        single = single[~np.any(self._coordinates.divisible(low[single], high[single]), axis=1)]
        points, _ = self._coordinates.somewhere(low[single], high[single])
        found[single] = self._holds_each(points)
        return found

    def _holds_each(self, points: np.ndarray) -> np.ndarray:
        """Marks the k that lie in Θ, and in the region."""
        found = self._domain.contains_each(points)
        return found if self._region is None else found & self._region.contains_each(points)

    def _halve(self, boxes: LatticeBoxes, chosen: np.ndarray) -> LatticeBoxes:
        low, high = boxes.low[chosen], boxes.high[chosen]
        axis = np.argmax((high - low) * self._directions(boxes.at(chosen)), axis=1)
        here = np.arange(chosen.size)
        middle = low[here, axis] + (high[here, axis] - low[here, axis]) // 2
        left_high, right_low = high.copy(), low.copy()
        left_high[here, axis], right_low[here, axis] = middle, middle + 1
        lows, highs = np.concatenate([low, right_low]), np.concatenate([left_high, high])
        parents = np.concatenate([chosen, chosen])
        inside = self._may_hold(lows, highs)
        lows, highs, parents = lows[inside], highs[inside], parents[inside]
        is_kept = np.ones(len(boxes.runs), bool)
        is_kept[chosen] = False
        others = boxes.at(np.flatnonzero(is_kept))
        if parents.size == 0:
            return others
        runs = [boxes.runs[box] for box in parents]
        self._looked_at += sum(some.shape[1] for some in runs)
        parts = self._score.parts(lows, highs, runs, boxes.sums[parents])
        # A bound on a box holds on its parts.
        return others.join(self._tried(parts)._replace(lower=np.maximum(parts.lower, boxes.lower[parents])))
