"""Records of the check loss in whole numbers: what sums of them add to gradients and losses, by the signs they have."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kngjax.draws.lattice.runs import Runs, consecutive, first_above, sums_before, totals
from kngjax.draws.lattice.scores import GradientNorm, LatticeBoxes, levels, outward

# With at most _FEWEST open records every pattern of their signs is tried; with at most _FEW, if one weighs at least
# 1/_FEWEST of them all, every pattern of the _HEAVY heaviest ones.
_FEWEST, _FEW, _HEAVY = 3, 64, 5
# Runs of boxes that are looked at in one pass, or those of one box: some 250 bytes each; and passes at a time.
_RUNS_A_PASS, _MOST_THREADS = 2**17, 8
# The most open runs of a box that are asked along which axes they leave a score unknown.
MOST_ASKED = 128
# Whole numbers up to it are exact in float64.
EXACT = 2**53
# More than the relative error of a sum of eight products in float64, all signs taken as the same.
ROUNDING = 2.0**-48


class Open(NamedTuple):
    """Runs of records that boxes leave open.

    **Arguments:** `places`: of each run the place of the run that it is part of. `kinds`, `counts`: which X
    theirs is, and of how many records. Each of shape (runs,).
    """

    runs: Runs
    places: Int[np.ndarray, " runs"]
    kinds: Int[np.ndarray, " runs"]
    counts: Float[np.ndarray, " runs"]


class CheckRecords:
    """Records that differ, by X and then Y, and how often each is there: whole numbers in float64 (`QuantileScore`).

    Records add X times slopes to gradients and losses. The sum of a run follows from sums up to each record, without a
    look at any record. So the work grows with the number of different X, which is small in many tables.

    **Arguments:** as of `QuantileScore`.
    """

    def __init__(
        self, features, responses, tau: Fraction, norm: GradientNorm | None, weight: int, counts=None, largest=None
    ):
        records, counts = counted(np.column_stack([features, responses]), counts)
        self.responses, self.counts = records[:, -1].astype(np.float64), counts.astype(np.float64)
        # X's that differ, column by column: they lie side by side in memory.
        starts = _first_of_each(records[:, :-1])
        self.columns = np.ascontiguousarray(records[starts, :-1].T.astype(np.float64))
        stops = np.append(starts[1:], len(records))[: len(starts)]
        self.everything = np.stack([starts, stops])
        self.kinds = np.repeat(np.arange(len(starts)), stops - starts)
        self.is_signed = bool(np.any(self.columns < 0))
        self.largest = np.max(np.abs(self.columns), axis=1, initial=0.0) if largest is None else largest
        self.is_null = self.largest == 0.0
        self.rise, self.fall = float(tau.denominator - tau.numerator), -float(tau.numerator)
        self.tau, self.norm, self.weight = tau, norm, weight
        # How many there are before each place, and without a norm what their Y add up to.
        self.before = sums_before(self.counts)
        self._responses_before = sums_before(self.counts * self.responses) if norm is None else None

    @property
    def features(self) -> Float[np.ndarray, "records dimension"]:
        """X of each record."""
        return self.columns.T[self.kinds]

    def open(self, runs: Runs, places: np.ndarray | None = None) -> Open:
        """Looks up X and the number of records of these runs, which are all or have these places among others."""
        counts = self.before.take(runs.stops) - self.before.take(runs.starts)
        places = np.arange(len(counts)) if places is None else places
        return Open(runs, places, self.kinds.take(runs.starts), counts)

    def divide(self, runs: Runs, values, ends) -> tuple[Open, np.ndarray]:
        """Returns the records that neither rise nor fall on all of their box, and what the others add.

        **Arguments:** `values`: of each record, in their order within runs. `ends`: of each run two, the first no more
        than the second: records rise whose value is at most the first, and fall above the second. Shape (2, runs).
        """
        first, last = first_above(values, runs.starts, runs.stops, ends)
        boxes = np.repeat(np.arange(len(runs.numbers)), runs.numbers)
        some = np.flatnonzero((first > runs.starts) | (last < runs.stops))
        closed = np.bincount(boxes.take(some), minlength=len(runs.numbers))
        sums = self._added(runs.starts.take(some), first.take(some), last.take(some), runs.stops.take(some), closed)
        opened = np.flatnonzero(first < last)
        numbers = np.bincount(boxes.take(opened), minlength=len(runs.numbers))
        return self.open(Runs(first.take(opened), last.take(opened), numbers), opened), sums

    def pieces(self, runs: Runs, bounds) -> np.ndarray:
        """Computes the linear piece of the loss in which those of a run's records rise whose Y is at most the bound."""
        rising = first_above(self.responses, runs.starts, runs.stops, bounds)
        return self._added(runs.starts, rising, rising, runs.stops, runs.numbers)

    def _added(self, starts, rising, falling, stops, numbers) -> np.ndarray:
        """Slopes of a linear piece of the loss on each box: records up to `rising` rise, and fall from `falling` on.

        Without a norm, what they add to Y follows: with one nothing asks for it.
        """
        kinds = self.kinds.take(starts)

        def sloped(before):
            rises, falls = before.take(rising) - before.take(starts), before.take(stops) - before.take(falling)
            return self.rise * rises + self.fall * falls

        slopes = sloped(self.before)
        parts = [column.take(kinds) * slopes for column in self.columns]
        return totals(parts if self._responses_before is None else [*parts, sloped(self._responses_before)], numbers)

    def gradients(self, sums, opened: Open):
        """Bounds the norm from below on each box, by the sums of closed records and by the open ones."""
        assert self.norm is not None
        runs, _, kinds, counts = opened
        lower, sizes = self.norm.about_least(*self._between(sums, kinds, counts, runs.numbers)), runs.sizes()
        few = np.flatnonzero((sizes > 0) & (sizes <= _FEW))
        if few.size == 0:
            return lower
        entries, sizes = runs.on(few).records(), sizes[few]
        counts = self.counts.take(entries)
        largest = np.maximum.reduceat(counts, np.cumsum(sizes) - sizes)
        is_few, total = sizes <= _FEWEST, totals([counts], sizes)[:, 0]
        is_uneven = ~is_few & (_FEWEST * largest >= total)
        for boxes, heavy in ((np.flatnonzero(is_few), _FEWEST), (np.flatnonzero(is_uneven), _HEAVY)):
            if boxes.size:
                some = consecutive((np.cumsum(sizes) - sizes)[boxes], sizes[boxes])
                lower[few[boxes]] = self._of_patterns(sums[few[boxes]], entries[some], sizes[boxes], heavy)
        return lower

    def _between(self, closed, kinds, counts, numbers):
        """Returns bounds between which G lies, with open records of these X's, so many of each."""
        some = [column.take(kinds) * counts for column in self.columns]
        added = totals(some, numbers)
        if not self.is_signed:
            return closed + self.fall * added, closed + self.rise * added
        # Halves of even numbers.
        middle = (self.rise + self.fall) * added
        spread = (self.rise - self.fall) * totals([np.abs(column) for column in some], numbers)
        return closed + (middle - spread) / 2.0, closed + (middle + spread) / 2.0

    def _of_patterns(self, closed, entries, numbers, most_heavy):
        """Bounds the norm from below on boxes of few open records, by every pattern of signs of the heaviest ones."""
        assert self.norm is not None
        box = np.repeat(np.arange(len(numbers)), numbers)
        rank = consecutive(np.zeros(len(numbers), np.int64), numbers)
        some = self.columns.T[self.kinds[entries]] * self.counts[entries][:, None]
        order = np.lexsort((-self.norm.about(np.abs(some)), box))
        some, entries, is_heavy = some[order], entries[order], rank < most_heavy
        heavy = np.zeros((len(numbers), most_heavy, len(self.columns)))
        heavy[box[is_heavy], rank[is_heavy]] = some[is_heavy]
        light = entries[~is_heavy]
        left = self.kinds.take(light), self.counts.take(light), np.maximum(numbers - most_heavy, 0)
        least, most = self._between(closed, *left)
        patterns = np.array(list(itertools.product((self.rise, self.fall), repeat=most_heavy)))
        steps = np.einsum("pr,brd->pbd", patterns, heavy)
        lower = self.norm.about_least(
            (least + steps).reshape(-1, len(self.columns)), (most + steps).reshape(-1, len(self.columns))
        )
        return np.min(lower.reshape(len(patterns), -1), axis=0)

    def along(self, closed, vectors, opened: Open, turns, errors):
        """Bounds R·‖G‖ from below on each box, along any v, as ‖G‖ ≥ G'v/‖v‖_*.

        An open record adds one of two multiples of X_i'v.

        **Arguments:** `closed`: sums of the other records. `vectors`: v, of each box, halves of whole numbers. `turns`:
        X_i'v of each run; `errors`: how far these may be from it, on each box.
        """
        runs, _, _, counts = opened
        least = np.minimum(self.rise * turns, self.fall * turns) * counts
        found = totals([least, counts], runs.numbers)
        parts = closed * vectors
        rounding = ROUNDING * np.sum(np.abs(parts), axis=1) + (self.rise - self.fall) * errors * found[:, 1]
        return self.ratios(np.sum(parts, axis=1) - rounding, -found[:, 0], np.abs(vectors))

    def ratios(self, rises, apart, sizes):
        """Bounds R·‖G‖ from below where G'v ≥ `rises` - `apart`, a rounded sum of one number a run, none negative.

        These may be sums of a few dozen roundings: fewer in all than n + 1000.

        **Arguments:** `sizes`: |v| or more. Along columns of zeros G is 0, so that v may be taken as 0 there.
        """
        assert self.norm is not None
        away = self.norm.dual(np.where(self.is_null, 0.0, sizes))
        rises = np.maximum(rises - apart * (1.0 + (len(self.responses) + 1000) * 2.0**-52), 0.0)
        # 0 is below every score, also where floats have no number for the rest.
        is_known = (rises > 0.0) & np.isfinite(away)
        ratio = np.divide(rises, np.maximum(away, np.finfo(float).tiny), out=np.zeros(len(rises)), where=is_known)
        return outward(np.where(np.isfinite(ratio), ratio, 0.0))

    def loss(self, point) -> float:
        """Computes D times the loss at k, rounded."""
        residuals = self.responses - self.features @ point
        return float(-residuals * np.where(residuals <= 0, self.rise, self.fall) @ self.counts)

    def at(self, point, runs: Int[np.ndarray, "2 runs"], sums) -> int:
        """Returns the score of k, of the records of these runs and the sums of all others."""
        starts, stops = runs
        predicted = self.columns.T[self.kinds[starts]] @ point
        one = Runs(starts, stops, np.array([len(starts)]))
        added = (sums + self.pieces(one, predicted)[0]).astype(np.int64)
        if self.norm is not None:
            return int(self.norm(np.abs(added)))
        return int(levels(int(np.sum(added[:-1] * point) - added[-1]), self.weight))


def counted(records: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the records that differ, in one order, and how often each is there. Private.

    **Arguments:** `counts`: how often each of these records is there; None: once.
    """
    # Sorts of one column are fast, and fewer keys merge parts that are sorted.
    differ = [column for column in records.T[::-1] if np.any(column != column[:1])]
    if counts is None and len(differ) <= 1:
        records = np.sort(records, axis=0)
    else:
        order = np.lexsort(differ or records.T)
        records, counts = records[order], None if counts is None else counts[order]
    starts = _first_of_each(records)
    places = np.append(starts, len(records))
    return records[starts], np.diff(places if counts is None else sums_before(counts)[places])


def _first_of_each(sorted_rows: np.ndarray) -> np.ndarray:
    """Finds the places where rows differ from those before them."""
    is_first = np.ones(len(sorted_rows), bool)
    is_first[1:] = np.any(sorted_rows[1:] != sorted_rows[:-1], axis=1)
    return np.flatnonzero(is_first)


def in_passes(bounds: Callable[..., LatticeBoxes], low, high, runs, sums) -> LatticeBoxes:
    """Bounds of boxes, of about `_RUNS_A_PASS` runs at a time, several passes side by side: NumPy lets threads."""
    passes = np.cumsum([some.shape[1] for some in runs]) // _RUNS_A_PASS
    edges = [*np.unique(passes, return_index=True)[1].tolist(), len(runs)]

    def bounds_between(first: int, last: int) -> LatticeBoxes:
        return bounds(low[first:last], high[first:last], runs[first:last], sums[first:last])

    if len(edges) <= 2:
        return bounds_between(0, len(runs))
    with ThreadPoolExecutor(min(len(edges) - 1, os.cpu_count() or 1, _MOST_THREADS)) as pool:
        first, *others = pool.map(bounds_between, edges[:-1], edges[1:])
    return first.join(*others)
