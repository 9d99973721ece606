"""Scores of the check loss on cones from a point where many hyperplanes X_i'k = Y_i meet.

See `ConeScore`.
"""

import numpy as np

from kngjax.releases.lattice.check_records import EXACT, MOST_ASKED, CheckRecords, in_passes, products, totals
from kngjax.releases.lattice.cones import Cones
from kngjax.releases.lattice.scores import AbstractScore, LatticeBoxes, outward


class ConeScore(AbstractScore):
    """Scores of G = Σ_i X_i(D·1{Y_i ≤ X_i'k} - N), as `QuantileScore`, on boxes of `Cones` from an apex p.

    A heap of equal responses, as of zeros, has its hyperplanes meet in a point p. Around it the law lies in narrow
    cones from p: a box of k that is as narrow as one of them is as short, and it takes many, while a box of a direction
    and a distance is as long as its cone. Along it a record with Y_i = X_i'p keeps its sign, however far k is.

    Signs on a box of face a, n = n_a: with δ = k - p and v = nδ/j, which lies between the box's ends of directions,
    n·X_i'δ = j·X_i'v, and X_i'v lies between two sums, L of the smaller and H of the larger of X_ib times either end:
    whole numbers, exact in float64 since Σ_b |X_ib|(n_b + 1) < 2^53 is asked for. A record with r = Y_i - X_i'p rises,
    Y_i ≤ X_i'k, on all of the box if j·L ≥ n·r at the nearest j, at the farthest where L < 0, and at no point of it if
    j·H < n·r at the farthest, at the nearest where H < 0. Rounding these products does not reverse their order, and
    leaves it strict where it matters: if a record falls at some k of the box then j·L ≤ n·X_i'δ ≤ n·r - n, and floats
    about n·r lie less than n apart, since |r| < 2^52 - 1, as Y_i and X_i'p are whole, at most the plan's ρ for p in Θ,
    and 2ρ is below 2^52. At the apex j is 0, and all is exact.

    Bounds on a box: of G as in `CheckRecords.gradients`, and by ‖G‖ ≥ G'v/‖v‖_* for v along its middle; X_i'v is L + H
    if v is the sum of both ends of directions, but for a rounding by a share of 2^-53.

    **Arguments:** `cones`: for which `holds` is true.
    """

    def __init__(self, records: CheckRecords, cones: Cones):
        assert records.norm is not None
        self._records, self._cones, self._norm = records, cones, records.norm
        self._residuals = records.responses - records.features @ cones.apex
        sides = cones.sides.astype(float)
        self._importance = np.concatenate([[0.0, 1.0 / np.max(sides)], 1.0 / sides])

    @staticmethod
    def holds(records: CheckRecords, cones: Cones) -> bool:
        """Whether float64 holds X_i'v."""
        sizes = zip(records.largest.tolist(), cones.sides.tolist(), strict=True)
        return sum(int(size) * (side + 1) for size, side in sizes) < EXACT

    @property
    def coordinates(self):
        return self._cones

    def near(self, domain, rate):
        return self

    @property
    def origin(self):
        return self._cones.of(self._cones.apex[None])[0]

    def importance(self):
        return self._importance

    def spread(self, boxes):
        rows = [some[:: len(some) // MOST_ASKED + 1] for some in boxes.rows]
        numbers, entries = np.array([len(some) for some in rows]), np.concatenate(rows)
        columns, counts = self._records.columns[:, entries], self._records.counts[entries]
        least, most = self._ranges(boxes.low, boxes.high, columns, numbers)
        # Farther along a ray those whose hyperplane goes through the apex keep their signs.
        along = np.abs(least + most) / 2.0 * (self._residuals[entries] != 0.0)
        far = boxes.high[:, 1:2]
        changes = totals([along * counts, *(np.abs(column) * counts for column in columns)], numbers)
        changes[:, 1:] *= np.where(self._cones.faces(boxes.low), 0, far)
        return np.column_stack([np.zeros(len(rows)), changes])

    def beyond(self, low, high, within=None):
        # Cones go as far as Θ.
        return None

    def whole(self, low, high):
        everything, number = np.arange(len(self._residuals)), len(low)
        return self.parts(low, high, [everything] * number, np.zeros((number, len(self._records.columns))))

    def parts(self, low, high, rows, sums):
        return in_passes(self._pass, low, high, rows, sums)

    def _ranges(self, low, high, columns, numbers):
        """Between what X_i'v lies, for so many consecutive records of each box."""
        least, most = np.zeros(len(columns[0])), np.zeros(len(columns[0]))
        for column, first, last in zip(columns, *(ends.T for ends in self._cones.directions(low, high)), strict=True):
            one = column * np.repeat(first.astype(float), numbers)
            other = column * np.repeat(last.astype(float), numbers)
            if self._records.is_signed:
                one, other = np.minimum(one, other), np.maximum(one, other)
            least += one
            most += other
        return least, most

    def _pass(self, low, high, rows, sums):
        records, entries, numbers = self._records, np.concatenate(rows), np.array([len(some) for some in rows])
        near, far = (np.repeat(ends[:, 1].astype(float), numbers) for ends in (low, high))
        sides = self._cones.sides[low[:, 0]].astype(float)
        columns = [column.take(entries) for column in records.columns]
        least, most = self._ranges(low, high, columns, numbers)
        goal = self._residuals.take(entries) * np.repeat(sides, numbers)
        rises = np.minimum(least * near, least * far) >= goal
        falls = np.maximum(most * near, most * far) < goal
        is_open = ~(rises | falls)
        opened, closed = np.flatnonzero(is_open), np.flatnonzero(~is_open)
        in_open = np.bincount(np.repeat(np.arange(len(rows)), numbers)[opened], minlength=len(rows))
        sums = sums + records.pieces(entries.take(closed), rises.take(closed), numbers - in_open)
        entries = entries.take(opened)
        lower, upper = records.gradients(sums, entries, in_open)
        first, last = self._cones.directions(low, high)
        turns = least.take(opened) + most.take(opened)
        along = records.along(sums, first + last, entries, turns, in_open, np.zeros(len(rows)))
        # Where most places of a box would be rejected, one of them mostly shows it.
        points, _ = self._cones.somewhere(low, high)
        predicted = products([column.take(opened) for column in columns], points, in_open)
        is_below = predicted >= records.responses.take(entries)
        about = self._norm.about(np.abs(sums + records.pieces(entries, is_below, in_open)))
        kept = np.split(entries, np.cumsum(in_open)[:-1])
        # A box of one place has one point at most, which is the one that was tried.
        is_one = ~np.any(self._cones.divisible(low, high), axis=1)
        lower = np.where(is_one, outward(about, about)[0], np.maximum(lower, along))
        return LatticeBoxes(low, high, lower, upper, about, kept, sums)

    def at(self, point, rows, sums):
        return self._records.at(point, rows, sums)
