"""Records of the check loss in whole numbers: what sums of them add to gradients and losses, by the signs they have."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np

from kngjax.releases.lattice.scores import GradientNorm, LatticeBoxes, levels, outward

# Of up to so many open records every pattern of their signs is tried; of more, if one is at least such a part of them,
# of so many that weigh most.
_FEWEST, _FEW, _HEAVY = 3, 64, 5
# Rows times boxes that are looked at in one pass, or those of one box: some 250 bytes each; and passes at a time.
_ROWS_A_PASS, _MOST_THREADS = 2**17, 8
# Of so many open records it is asked along which axes they leave a score unknown.
MOST_ASKED = 128
# Whole numbers up to it are exact in float64.
EXACT = 2**53
# More than the relative error of a sum of eight products in float64, all signs taken as the same.
ROUNDING = 2.0**-48


class CheckRecords:
    """Records that differ, and how often each is there; whole numbers in float64 (see `QuantileScore`).

    **Arguments:** as of `QuantileScore`.
    """

    def __init__(self, features, responses, tau: Fraction, norm: GradientNorm | None, weight: int):
        records, counts = _counted(np.column_stack([features, responses]))
        self.features, self.responses = records[:, :-1].astype(np.float64), records[:, -1].astype(np.float64)
        self.counts = counts.astype(np.float64)
        # Columns lie side by side in memory, for passes over some of the records.
        self.columns = np.ascontiguousarray(self.features.T)
        self.is_signed = bool(np.any(self.features < 0))
        self.is_null = ~np.any(self.features, axis=0)
        self.largest = np.max(np.abs(self.features), axis=0, initial=0.0)
        self.rise, self.fall = float(tau.denominator - tau.numerator), -float(tau.numerator)
        self.norm, self.weight = norm, weight
        self.weighted = self.columns * self.counts
        # What each record adds to a linear piece of the loss, falling and then rising: slopes, and what they add to Y.
        parts = [*self.weighted, *([self.counts * self.responses] if norm is None else [])]
        self._pieces = [np.stack([self.fall * part, self.rise * part], axis=1).ravel() for part in parts]

    def pieces(self, entries, rises, numbers):
        """Slopes of a linear piece of the loss on each box, of so many of these records, by their signs.

        Without a norm, what they add to Y follows: with one nothing asks for it.
        """
        places = 2 * entries + rises
        return totals([piece.take(places) for piece in self._pieces], numbers)

    def gradients(self, sums, entries, numbers):
        """Bounds of the norm on each box, of the sums of closed records and its open ones."""
        assert self.norm is not None
        least, most = self._between(sums, entries, numbers)
        lower, upper = self.norm.about_between(least, most)
        counts, is_filled, largest = self.counts.take(entries), numbers > 0, np.zeros(len(numbers))
        if np.any(is_filled):
            largest[is_filled] = np.maximum.reduceat(counts, (np.cumsum(numbers) - numbers)[is_filled])
        is_few, total = is_filled & (numbers <= _FEWEST), totals([counts], numbers)[:, 0]
        is_uneven = (numbers > _FEWEST) & (numbers <= _FEW) & (_FEWEST * largest >= total)
        for boxes, heavy in ((np.flatnonzero(is_few), _FEWEST), (np.flatnonzero(is_uneven), _HEAVY)):
            if boxes.size:
                lower[boxes], upper[boxes] = self._of_patterns(sums[boxes], entries, numbers, boxes, heavy)
        return lower, upper

    def _between(self, closed, entries, numbers):
        some = [column.take(entries) for column in self.weighted]
        added = totals(some, numbers)
        if not self.is_signed:
            return closed + self.fall * added, closed + self.rise * added
        # Halves of even numbers.
        middle = (self.rise + self.fall) * added
        spread = (self.rise - self.fall) * totals([np.abs(column) for column in some], numbers)
        return closed + (middle - spread) / 2.0, closed + (middle + spread) / 2.0

    def _of_patterns(self, closed, entries, numbers, few, most_heavy):
        """The same of some boxes, by every pattern of the signs of those open records that weigh most in each."""
        assert self.norm is not None
        starts, numbers = (np.cumsum(numbers) - numbers)[few], numbers[few]
        box = np.repeat(np.arange(len(few)), numbers)
        rank = np.arange(len(box)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        entries = entries[np.repeat(starts, numbers) + rank]
        some = self.weighted.T[entries]
        order = np.lexsort((-self.norm.about(np.abs(some)), box))
        some, entries, is_heavy = some[order], entries[order], rank < most_heavy
        heavy = np.zeros((len(few), most_heavy, len(self.columns)))
        heavy[box[is_heavy], rank[is_heavy]] = some[is_heavy]
        least, most = self._between(closed, entries[~is_heavy], np.maximum(numbers - most_heavy, 0))
        patterns = np.array(list(itertools.product((self.rise, self.fall), repeat=most_heavy)))
        steps = np.einsum("pr,brd->pbd", patterns, heavy)
        bounds = self.norm.about_between(
            (least + steps).reshape(-1, len(self.columns)), (most + steps).reshape(-1, len(self.columns))
        )
        lower, upper = (bound.reshape(len(patterns), -1) for bound in bounds)
        return np.min(lower, axis=0), np.max(upper, axis=0)

    def along(self, closed, vectors, entries, turns, numbers, errors):
        """Below R·‖G‖ on each box: ‖G‖ ≥ G'v/‖v‖_* for any v, and an open record adds one of two multiples of X_i'v.

        **Arguments:** `closed`: sums of the other records. `vectors`: v, of each box, whole. `turns`: X_i'v of each
        open record; `errors`: how far these may be from it, on each box.
        """
        counts, vectors = self.counts.take(entries), vectors.astype(np.float64)
        least = np.minimum(self.rise * turns, self.fall * turns) * counts
        found = totals([least, counts], numbers)
        parts = closed * vectors
        rounding = ROUNDING * np.sum(np.abs(parts), axis=1) + (self.rise - self.fall) * errors * found[:, 1]
        return self.ratios(np.sum(parts, axis=1) - rounding, -found[:, 0], np.abs(vectors))

    def ratios(self, rises, apart, sizes):
        """Below R·‖G‖ where G'v ≥ `rises` - `apart`, which is a rounded sum of one number a record, none negative.

        **Arguments:** `sizes`: |v| or more. Along columns of zeros G is 0, so that v may be taken as 0 there.
        """
        assert self.norm is not None
        away = self.norm.dual(np.where(self.is_null, 0.0, sizes))
        rises = np.maximum(rises - apart * (1.0 + (len(self.features) + 1000) * 2.0**-52), 0.0)
        # 0 is below every score, also where floats have no number for the rest.
        is_known = (rises > 0.0) & np.isfinite(away)
        ratio = np.divide(rises, np.maximum(away, np.finfo(float).tiny), out=np.zeros(len(rises)), where=is_known)
        return outward(np.where(np.isfinite(ratio), ratio, 0.0), np.zeros(1))[0]

    def loss(self, point) -> float:
        """About D times the loss at k."""
        residuals = self.responses - self.features @ point
        return float(-residuals * np.where(residuals <= 0, self.rise, self.fall) @ self.counts)

    def at(self, point, rows, sums) -> int:
        """The score of k, of these records and the sums of all others."""
        x = self.features[rows]
        residuals = self.responses[rows] - x @ point
        slopes = self.counts[rows] * np.where(residuals <= 0, self.rise, self.fall)
        if self.norm is not None:
            return int(self.norm(np.abs((sums + slopes @ x).astype(np.int64))))
        value = int(np.sum(sums[:-1] * point) - sums[-1]) - int(slopes @ residuals)
        return int(levels(value, self.weight))


def _counted(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The records that differ, and how often each is there."""
    order = np.lexsort(records.T[::-1])
    records = records[order]
    first = np.ones(len(records), bool)
    first[1:] = np.any(records[1:] != records[:-1], axis=1)
    starts = np.flatnonzero(first)
    return records[starts], np.diff(np.append(starts, len(records)))


def in_passes(bounds: Callable[..., LatticeBoxes], low, high, rows, sums) -> LatticeBoxes:
    """Bounds of boxes, of about `_ROWS_A_PASS` rows times boxes at a time, several side by side: NumPy lets threads."""
    passes = np.cumsum([len(some) for some in rows]) // _ROWS_A_PASS
    edges = [*np.unique(passes, return_index=True)[1].tolist(), len(rows)]

    def bounds_between(first: int, last: int) -> LatticeBoxes:
        return bounds(low[first:last], high[first:last], rows[first:last], sums[first:last])

    if len(edges) <= 2:
        return bounds_between(0, len(rows))
    with ThreadPoolExecutor(min(len(edges) - 1, os.cpu_count() or 1, _MOST_THREADS)) as pool:
        first, *others = pool.map(bounds_between, edges[:-1], edges[1:])
    return first.join(*others)


def products(columns, vectors, numbers):
    """Of so many consecutive records each with a vector of its own; columns one by one, which is fast."""
    vectors = vectors.astype(np.float64)
    total = columns[0] * np.repeat(vectors[:, 0], numbers)
    for place in range(1, len(columns)):
        total += columns[place] * np.repeat(vectors[:, place], numbers)
    return total


def totals(columns, numbers):
    """Sums of so many consecutive entries each, none for none."""
    found, filled = np.zeros((len(numbers), len(columns))), np.flatnonzero(numbers)
    starts = (np.cumsum(numbers) - numbers)[filled]
    for place, column in enumerate(columns if filled.size else ()):
        found[filled, place] = np.add.reduceat(column, starts)
    return found
