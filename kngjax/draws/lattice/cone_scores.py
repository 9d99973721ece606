"""Scores of the check loss on cones from a point where many hyperplanes X_i'k = Y_i meet.

See `ConeScore`.
"""

import numpy as np

from kngjax.draws.lattice.check_records import EXACT, MOST_ASKED, ROUNDING, CheckRecords, in_passes
from kngjax.draws.lattice.cones import Cones
from kngjax.draws.lattice.runs import Runs, products, sums_before, totals
from kngjax.draws.lattice.scores import AbstractScore, LatticeBoxes, outward


class ConeScore(AbstractScore):
    """Scores of G = Σ_i X_i(D·1{Y_i ≤ X_i'k} - N), as `QuantileScore`, on boxes of `Cones` from an apex p.

    A heap of equal responses, as of zeros, has its hyperplanes meet in a point p. Around it the law lies in narrow
    cones from p: a box of k that is as narrow as one of them is as short, and it takes many, while a box of a direction
    and a distance is as long as its cone. Along it a record with Y_i = X_i'p keeps its sign, however far k is.

    Signs on a box of face a, n = n_a: with δ = k - p and v = nδ/j, which lies between the box's ends of directions,
    n·X_i'δ = j·X_i'v, and X_i'v lies between two sums, L of the smaller and H of the larger of X_ib times either end:
    whole numbers, exact in float64 since Σ_b |X_ib|(n_b + 1) < 2^53 is asked for. A record with r = Y_i - X_i'p rises,
    Y_i ≤ X_i'k, where r ≤ X_i'δ: on all of the box if r ≤ j·L/n at the nearest j, at the farthest where L < 0, and at
    no point of it if r > j·H/n at the farthest, at the nearest where H < 0. Both ends are moved outward by a share of
    themselves that is more than their roundings: r is exact, and ends of 0, as at the apex, stay what they are, so that
    signs of the heap are told however short the cone is.

    Bounds on a box: of G as in `CheckRecords.gradients`, and by ‖G‖ ≥ G'v/‖v‖_* for v along its middle; X_i'v is L + H
    if v is the sum of both ends of directions, but for a rounding by a share of 2^-53. Rays are not asked: cones go as
    far as Θ.

    **Arguments:** `cones`: for which `holds` is true.
    """

    def __init__(self, records: CheckRecords, cones: Cones):
        assert records.norm is not None
        self._records, self._coordinates, self._norm = records, cones, records.norm
        self._origin = cones.of(cones.apex[None])[0]
        self._residuals = records.responses - (records.columns.T @ cones.apex)[records.kinds]
        self._at_apex = sums_before(records.counts * (self._residuals == 0.0))
        sides = cones.sides.astype(float)
        self._importance = np.concatenate([[0.0, 1.0 / np.max(sides)], 1.0 / sides])

    @staticmethod
    def holds(records: CheckRecords, cones: Cones) -> bool:
        """Tells whether float64 holds X_i'v."""
        sizes = zip(records.largest.tolist(), cones.sides.tolist(), strict=True)
        return sum(int(size) * (side + 1) for size, side in sizes) < EXACT

    def spread(self, boxes):
        records = self._records
        some = records.open(Runs.of([runs[:, :: runs.shape[1] // MOST_ASKED + 1] for runs in boxes.runs]))
        runs, _, kinds, counts = some
        columns = records.columns[:, kinds]
        least, most = self._ranges(boxes.low, boxes.high, columns, runs.numbers)
        # Farther along a ray those whose hyperplane goes through the apex keep their signs.
        along = np.abs(least + most) / 2.0 * (counts - self._at_apex[runs.stops] + self._at_apex[runs.starts])
        far = boxes.high[:, 1:2]
        changes = totals([along, *(np.abs(column) * counts for column in columns)], runs.numbers)
        changes[:, 1:] *= np.where(self._coordinates.faces(boxes.low), 0, far)
        return np.column_stack([np.zeros(len(boxes.runs)), changes])

    def whole(self, low, high):
        number = len(low)
        return self.parts(
            low, high, [self._records.everything] * number, np.zeros((number, len(self._records.columns)))
        )

    def parts(self, low, high, runs, sums):
        return in_passes(self._pass, low, high, runs, sums)

    def _ranges(self, low, high, columns, numbers):
        """Returns bounds between which X_i'v lies, for so many consecutive runs of each box."""
        least, most = np.zeros(len(columns[0])), np.zeros(len(columns[0]))
        ends = self._coordinates.directions(low, high)
        for column, first, last in zip(columns, *(end.T for end in ends), strict=True):
            one = column * np.repeat(first.astype(float), numbers)
            other = column * np.repeat(last.astype(float), numbers)
            if self._records.is_signed:
                one, other = np.minimum(one, other), np.maximum(one, other)
            least += one
            most += other
        return least, most

    def _pass(self, low, high, runs, sums):
        records, given = self._records, Runs.of(runs)
        kinds = records.kinds.take(given.starts)
        near, far = (np.repeat(ends[:, 1].astype(float), given.numbers) for ends in (low, high))
        sides = np.repeat(self._coordinates.sides[low[:, 0]].astype(float), given.numbers)
        columns = [column.take(kinds) for column in records.columns]
        least, most = self._ranges(low, high, columns, given.numbers)
        rises, falls = np.minimum(least * near, least * far) / sides, np.maximum(most * near, most * far) / sides
        rises, falls = rises - ROUNDING * np.abs(rises), falls + ROUNDING * np.abs(falls)
        opened, held = records.divide(given, self._residuals, np.stack([rises, falls]))
        sums, place = sums + held, opened.places
        first, last = self._coordinates.directions(low, high)
        turns = least.take(place) + most.take(place)
        along = records.along(sums, first + last, opened, turns, np.zeros(len(runs)))
        lower = np.maximum(records.gradients(sums, opened), along)
        # Where most places of a box would be rejected, one of them mostly shows it.
        points, _ = self._coordinates.somewhere(low, high)
        predicted = products([column.take(place) for column in columns], points, opened.runs.numbers)
        about = self._norm.about(np.abs(sums + records.pieces(opened.runs, predicted)))
        # A box of one place has one point at most, which is the one that was tried.
        is_one = ~np.any(self._coordinates.divisible(low, high), axis=1)
        return LatticeBoxes(low, high, np.where(is_one, outward(about), lower), about, opened.runs.apart(), sums)

    def at(self, point, runs, sums):
        return self._records.at(point, runs, sums)
