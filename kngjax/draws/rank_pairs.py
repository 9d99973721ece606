"""Exact draws of two ordered numbers by their ranks among sorted values: whole numbers, and bits as they are needed.

For k1 ≤ k2 from a finite set, P(k1, k2) ∝ exp(-c·s), with i(k) = #{values ≤ k}, a = D·i(k1) - C1, b = D·i(k2) - C2 for
whole C1 < C2, and

    s = max(0, a, b) - min(0, a, b), which is half of |a| + |b - a| + |b|.

Pairs are divided by s into blocks of some c⁻¹, each of which is a union of disjoint rectangles of indices i(k1), i(k2):

- min(0, a, b) = a < 0: for each such index of k1 those of k2 with a ≤ b ≤ a + t, less those with b ≤ a + t';
- min(0, a, b) = b < a, b < 0: the same with k1 and k2 exchanged;
- min(0, a, b) = 0: 0 ≤ a, b ≤ t, less 0 ≤ a, b ≤ t'.

So their points are counted in whole numbers. A block is drawn with probability ∝ count·exp(-c·least s), a point of it
uniformly, and kept with probability exp(-c(s - least s)) if k1 ≤ k2: rejection, exact whatever the values are. With
k1 > k2, a pair has no smaller s than (k2, k1) has, so that at least half of what is drawn is in order.
"""

import bisect
import functools
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from kngjax.draws.finite import LevelLaw, below, happens
from kngjax.draws.uniforms import Bits

# Blocks are so wide that a point of one is kept with probability 1/2 or more.
_WIDTH = Fraction(7, 10)
# Beyond the first blocks all is one: it is proposed with probability e^-8 or less of what they have, and costs little.
_SPARE = 8.0

Whole = Int[np.ndarray, "..."]


class Rectangles(NamedTuple):
    """Disjoint sets of pairs of indices, first_low ≤ i1 ≤ first_high and second_low ≤ i2 ≤ second_high each."""

    first_low: Whole
    first_high: Whole
    second_low: Whole
    second_high: Whole


class RankPairs:
    """P(k1, k2) as above, for given values. Private.

    **Arguments:** `values`: sorted whole numbers from `low` to `high`, shape (n,). `low`, `high`: of k. `unit`: D.
    `centres`: C1 < C2. `rate`: c > 0. Products of D and n are at most 2^60, and so are `centres`.
    """

    def __init__(
        self,
        values: Int[np.ndarray, " records"],
        low: int,
        high: int,
        unit: int,
        centres: tuple[int, int],
        rate: Fraction,
    ):
        self._values, self._unit, self._centres, self._rate = values, unit, centres, rate
        # The first k with at least i values up to it, i = 0, ..., n + 1.
        self._first = np.concatenate([[low], values, [high + 1]]).astype(np.int64)
        # No pair has a larger s, and below are no larger numbers, however small c is.
        self._most = 2 * max(abs(unit * index - centre) for centre in centres for index in (0, len(values)))
        width = min(max(int(_WIDTH / rate), 1), self._most + 1)
        blocks, counts, left = self._first_blocks(width, (high - low + 1) ** 2)
        # All that is left is one block.
        blocks.append((blocks[-1][1], max(self._most, blocks[-1][1])))
        counts.append(left)
        counted = [(block, count) for block, count in zip(blocks, counts, strict=True) if count > 0]
        self._blocks = [block for block, _ in counted]
        self._law = LevelLaw([block[0] + 1 for block in self._blocks], [count for _, count in counted], rate)
        self._of_block = functools.lru_cache(maxsize=64)(self._points)

    def draw(self, bits: Bits) -> tuple[int, int]:
        """(k1, k2). It tries until it succeeds: a limit would make failure an output that depends on the data."""
        while True:
            block = self._blocks[self._law.draw(bits)]
            rectangles, reached = self._of_block(block)
            place = bisect.bisect_right(reached, below(reached[-1], bits))
            first_low, first_high, second_low, second_high = (int(part[place]) for part in rectangles)
            first, second = self._within(first_low, first_high, bits), self._within(second_low, second_high, bits)
            excess = self.score(first, second) - (block[0] + 1)
            if not 0 <= excess < block[1] - block[0]:
                # No data lead here, see above.
                raise AssertionError("a pair is not in its block")
            if first <= second and happens(self._rate * excess, bits):
                return first, second

    def score(self, first: int, second: int) -> int:
        """s of a pair."""
        ranks = np.searchsorted(self._values, [first, second], side="right")
        a, b = (self._unit * int(rank) - centre for rank, centre in zip(ranks, self._centres, strict=True))
        return max(0, a, b) - min(0, a, b)

    def _least(self) -> int:
        """The least s of all pairs."""
        high = 1
        while not self._count(-1, high):
            high *= 2
        return bisect.bisect_left(range(high), True, key=lambda score: self._count(-1, score) > 0)

    def _within(self, low: int, high: int, bits: Bits) -> int:
        """A uniform k with low ≤ i(k) ≤ high."""
        start, stop = int(self._first[low]), int(self._first[high + 1])
        return start + below(stop - start, bits)

    def _first_blocks(self, width: int, left: int) -> tuple[list[tuple[int, int]], list[int], int]:
        """Blocks until the others carry little, as far as floats tell; how many pairs each has, and how many are left.

        **Arguments:** `left`: of how many pairs in all.
        """
        stop, rate = self._least(), float(self._rate)
        blocks: list[tuple[int, int]] = []
        counts: list[int] = []
        held = -math.inf
        while left and not (blocks and math.log(left) - rate * stop < held - _SPARE):
            blocks.append((stop - 1, stop - 1 + width))
            counts.append(self._count(*blocks[-1]))
            if counts[-1]:
                held = np.logaddexp(held, math.log(counts[-1]) - rate * stop)
            left, stop = left - counts[-1], stop + width
        return blocks, counts, left

    def _count(self, inner: int, outer: int) -> int:
        """Counts the pairs with inner < s ≤ outer."""
        return int(sum(self._sizes(self._rectangles(inner, outer))))

    def _points(self, block: tuple[int, int]) -> tuple[Rectangles, list[int]]:
        """The rectangles of a block that have points, and how many the first ones have together."""
        rectangles = self._rectangles(*block)
        sizes = self._sizes(rectangles)
        kept = [place for place, size in enumerate(sizes) if size]
        reached = list(itertools.accumulate(sizes[place] for place in kept))
        return Rectangles(*(part[kept] for part in rectangles)), reached

    def _sizes(self, rectangles: Rectangles) -> list[int]:
        """Counts the pairs that each rectangle holds, in Python's whole numbers."""
        firsts = self._first[rectangles.first_high + 1] - self._first[rectangles.first_low]
        seconds = self._first[rectangles.second_high + 1] - self._first[rectangles.second_low]
        return [one * other for one, other in zip(firsts.tolist(), seconds.tolist(), strict=True)]

    def _rectangles(self, inner: int, outer: int) -> Rectangles:
        """Divides the pairs with inner < s ≤ outer into disjoint rectangles."""
        parts, (inner, outer) = [], (min(inner, self._most), min(outer, self._most))
        for place, of_least in enumerate(self._centres):
            of_other = self._centres[1 - place]
            low, high = self._indices(of_least, -outer, -1)
            least = np.arange(low, high + 1)
            values = self._unit * least - of_least
            # Where a = b the first counts as the least.
            start = values + np.where(-values <= inner, inner + 1, place)
            others = self._indices(of_other, start, values + outer)
            sides = (least, least, *others)
            parts.append(sides if place == 0 else (*others, least, least))
        inside, around = (0, inner), (inner + 1, outer)
        for first, second in ((around, (0, outer)), (inside, around)):
            ends = (*self._indices(self._centres[0], *first), *self._indices(self._centres[1], *second))
            parts.append(tuple(np.array([end]) for end in ends))
        found = Rectangles(*(np.concatenate(sides) for sides in zip(*parts, strict=True)))
        is_filled = (found.first_low <= found.first_high) & (found.second_low <= found.second_high)
        return Rectangles(*(part[is_filled] for part in found))

    def _indices(self, centre: int, least: Any, most: Any) -> tuple[Any, Any]:
        """The first and the last index i with least ≤ D·i - C ≤ most; the first is above the last where none is."""
        return (
            np.maximum(-((-(least + centre)) // self._unit), 0),
            np.minimum((most + centre) // self._unit, len(self._values)),
        )
