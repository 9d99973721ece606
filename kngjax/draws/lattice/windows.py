"""Keeps of many records of a check loss those that straddle a window of lattice points, and sums of the others."""

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt64

from kngjax.data.marks import mixed
from kngjax.data.passes import Passes
from kngjax.data.records import Records
from kngjax.draws.lattice.check_records import EXACT, ROUNDING, CheckRecords, counted
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from kngjax.draws.lattice.lattice_plan import LatticePlan
from kngjax.draws.lattice.problems import WholeRecords, whole_records
from kngjax.draws.lattice.runs import Runs
from kngjax.draws.lattice.units import DomainLattice
from kngjax.mechanisms.preparation import AbstractIntake

# So many records that differ are kept as they are; of more, so many are a sample.
FEW = 2**16
# Records of a table in memory that are looked at in one go.
_BLOCK = 2**18
# After so many looks at all records for points out of a window all of them are kept.
_MOST_LOOKS = 16
# Most of Newton's steps to the middle of a window.
_STEPS = 8

# Adds up what a function that can be pickled makes of parts of all records.
Look = Callable[[Callable[[WholeRecords], Any], Callable[[Any, Any], Any]], Any]


class Sample(NamedTuple):
    """Holds records that differ, those of the smallest `mixed` numbers: the same in any order of all. Private.

    **Arguments:** `number`: how many records there are in all. `largest`: the largest |X_ij| of all in each column.
    `marks`: the sample's numbers. `rows`: X and Y. `counts`: how often each row is there.
    """

    number: int
    largest: Float[np.ndarray, " dimension"]
    marks: UInt64[np.ndarray, " rows"]
    rows: Int[np.ndarray, "rows columns"]
    counts: Int[np.ndarray, " rows"]

    def plus(self, other: "Sample") -> "Sample":
        """Samples two sets of records together."""
        marks, rows, counts = (np.concatenate(pair) for pair in zip(self[2:], other[2:], strict=True))
        largest = np.maximum(self.largest, other.largest)
        return Sample(self.number + other.number, largest, marks, rows, counts)._cut()

    def _cut(self) -> "Sample":
        """Leaves the smallest numbers, each with all of its records, and each record once."""
        number, largest, marks, rows, counts = self
        # Of few more than FEW next to always more than FEW differ.
        for size in (FEW + FEW // 8, len(marks)):
            ordered = np.sort(np.partition(marks, size)[:size] if size < len(marks) else marks)
            distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
            if len(distinct) > FEW:
                break
        if len(distinct) > FEW:
            is_kept = marks <= distinct[FEW - 1]
            marks, rows, counts = marks[is_kept], rows[is_kept], counts[is_kept]
        if min(len(distinct), FEW) < len(marks):
            rows, counts = counted(rows, counts)
            marks = mixed([rows])
        return Sample(number, largest, marks, rows, counts.astype(np.int64))


def sample(records: WholeRecords) -> Sample:
    """Samples records. Private."""
    rows, number = np.column_stack([records.x, records.y]), len(records.y)
    largest = np.max(np.abs(records.x), axis=0, initial=0).astype(np.float64)
    return Sample(number, largest, mixed([rows]), rows, np.ones(number, np.int64))._cut()


class Window(NamedTuple):
    """Lattice points k = Um with low ≤ m ≤ high. Private, as the data chose it.

    **Arguments:** `matrix`: U. `error`: at least the joint rounding of X_i'U times the middle and times half the sides,
    of every record; 0 where they are exact.
    """

    matrix: Int[np.ndarray, "dimension dimension"]
    low: Int[np.ndarray, " dimension"]
    high: Int[np.ndarray, " dimension"]
    error: float

    @classmethod
    def of(cls, coordinates: LatticeCoordinates, low: np.ndarray, high: np.ndarray, largest: np.ndarray) -> "Window":
        """Builds a window.

        With u = 2^-53, d ≤ 4 and size ≥ Σ_j |X_i|'|U|_j·max|m_j|: X_i'U in d products and sums, times the middle, or
        half the sides, in d more, err by at most 2d·u(1 + 8u)·size each, and their difference by 2u·size: less than 19u
        in all, and `ROUNDING` is 32u. Below 2^51 the numbers are halves of whole ones, and exact.

        **Arguments:** `largest`: at least the largest |X_ij| of all records in each column.
        """
        size = float(np.maximum(np.abs(low), np.abs(high)) @ (np.abs(coordinates.matrix).T @ largest))
        return cls(coordinates.matrix, low, high, 0.0 if size < EXACT / 4 else size * ROUNDING)

    @classmethod
    def at(cls, point: np.ndarray) -> "Window":
        """Builds the window of one k in Θ, which no record straddles: X'k is exact."""
        return cls(np.eye(len(point), dtype=np.int64), point, point, 0.0)

    @classmethod
    def of_all(cls, dimension: int) -> "Window":
        """Builds a window that every record counts as straddling."""
        return cls.at(np.zeros(dimension, np.int64))._replace(error=np.inf)


class Divided(NamedTuple):
    """Holds what a window makes of records. Private.

    **Arguments:** `sums`: Σ X_i of those with Y_i ≤ X_i'k for all k of the window, and of those with Y_i > X_i'k for
    all. `rows`, `counts`: X and Y of the others, and how often each is there.
    """

    sums: Float[np.ndarray, "2 dimension"]
    rows: Float[np.ndarray, "rows columns"]
    counts: Float[np.ndarray, " rows"] | Int[np.ndarray, " rows"]

    def plus(self, other: "Divided") -> "Divided":
        """Joins two sets of records."""
        rows, counts = np.concatenate([self.rows, other.rows]), np.concatenate([self.counts, other.counts])
        return Divided(self.sums + other.sums, *counted(rows, counts))

    def gradient(self, tau: Fraction) -> Float[np.ndarray, " dimension"]:
        """Computes what records that do not straddle the window add to G."""
        return np.array([tau.denominator - tau.numerator, -tau.numerator], np.float64) @ self.sums


def divided(windows: list[Window], records: WholeRecords) -> list[Divided]:
    """Divides records by each window. All sums are of whole numbers that float64 holds, as on boxes. Private."""
    x, y = records.x.astype(np.float64), records.y.astype(np.float64)
    return [_divided(window, x, y) for window in windows]


def _divided(window: Window, x: np.ndarray, y: np.ndarray) -> Divided:
    moves = x @ window.matrix.astype(np.float64)
    predicted = moves @ ((window.low + window.high) / 2.0)
    reach = np.abs(moves, out=moves) @ ((window.high - window.low) / 2.0) + window.error
    signs = np.stack([y <= predicted - reach, y > predicted + reach])
    is_open = ~np.any(signs, axis=0)
    return Divided(signs.astype(np.float64) @ x, *counted(np.column_stack([x[is_open], y[is_open]])))


def added(one: list[Divided], two: list[Divided]) -> list[Divided]:
    """Joins what windows make of two sets of records."""
    return [first.plus(second) for first, second in zip(one, two, strict=True)]


class WindowScore(QuantileScore):
    """Scores of all records, of those that straddle a window and the sums of others, placed within it.

    On boxes within the window they are all that `QuantileScore` needs. Elsewhere `parts` says 0, rays through the
    window are what bounds the score, and the score of a point takes a look at all records, which are kept if that is
    often: `docs/proofs/lattice.md`.

    **Arguments:** `near`: of a sample, placed. `window`: in its coordinates. `found`: what the window makes of all
    records. `middle`: a k in Θ at which the score is about least, in the window. `look`: at all records. `domain`: Θ.
    """

    def __init__(
        self, near: QuantileScore, window: Window, found: Divided, middle: np.ndarray, look: Look, domain: DomainLattice
    ):
        tau, norm, largest = near._records.tau, near._records.norm, near._records.largest
        super().__init__(found.rows[:, :-1], found.rows[:, -1], tau, norm, 1, found.counts, largest)
        self._closed, self._look, self._window = found.gradient(tau)[None], look, window
        self._looks, self._full = 0, None
        self._importance, self._curvature = near.importance(), near.curvature
        self._place(near.coordinates, self._centred(near, middle, domain))

    def _centred(self, near: QuantileScore, point: np.ndarray, domain: DomainLattice) -> np.ndarray:
        """Takes Newton's steps in the window and Θ from this k, as long as they make the gradient smaller."""
        records, inverse = self._records, np.linalg.pinv(near.curvature)
        turned, ends = near.coordinates, (self._window.low.astype(float), self._window.high.astype(float))
        starts, stops = records.everything
        runs = Runs(starts, stops, np.array([len(starts)]))
        best, length = point, np.inf
        for _ in range(_STEPS):
            slopes = self._closed[0] + records.pieces(runs, records.columns.T[records.kinds[starts]] @ point)[0]
            size = float(slopes @ inverse @ slopes)
            # From a k out of Θ rays to its points would go through faces out of Θ.
            if not (size < length and domain.contains(point)):
                break
            best, length = point, size
            place = np.clip(np.rint(turned.inverse @ (point - inverse @ slopes)), *ends).astype(np.int64)
            point = turned.matrix @ np.clip(place, self._window.low, self._window.high)
        return best

    def near(self, domain, rate):
        return self

    @property
    def held(self):
        return self._window.low, self._window.high

    def parts(self, low, high, runs, sums):
        made = super().parts(low, high, runs, sums)
        inside = self._holds(low, high)
        runs = [one if is_in else other for one, other, is_in in zip(made.runs, runs, inside, strict=True)]
        lower, middle = np.where(inside, made.lower, 0), np.where(inside, made.middle, 0.0)
        return made._replace(lower=lower, middle=middle, runs=runs, sums=np.where(inside[:, None], made.sums, sums))

    def at(self, point, runs, sums):
        place = (self._coordinates.inverse @ point)[None]
        if self._holds(place, place)[0]:
            return super().at(point, runs, sums)
        tau, norm = self._records.tau, self._records.norm
        assert norm is not None
        if self._full is None:
            self._looks += 1
            asked = Window.at(point) if self._looks < _MOST_LOOKS else Window.of_all(len(point))
            (found,) = self._look(functools.partial(divided, [asked]), added)
            if self._looks < _MOST_LOOKS:
                return int(norm(np.abs(found.gradient(tau).astype(np.int64))))
            self._full = CheckRecords(found.rows[:, :-1], found.rows[:, -1], tau, norm, 1, found.counts)
        return self._full.at(point, self._full.everything, np.zeros(len(point)))

    def _holds(self, low, high):
        return np.all((low >= self._window.low) & (high <= self._window.high), axis=1)


def look_here(records: WholeRecords) -> Look:
    """Looks at records in memory, in blocks."""

    def look(of, add):
        places = (slice(start, start + _BLOCK) for start in range(0, len(records.y), _BLOCK))
        return functools.reduce(add, (of(WholeRecords(records.x[some], records.y[some])) for some in places))

    return look


def look_there(intake: AbstractIntake, X: Passes, plan: LatticePlan) -> Look:
    """Looks at records in passes, which make None where there is no batch."""

    def look(of, add):
        return intake.total(X, functools.partial(_of_records, of, plan), add)

    return look


def sampled_there(intake: AbstractIntake, X: Passes, plan: LatticePlan) -> tuple[int, Sample] | None:
    """Counts records, of persons these, and samples records, in one pass; None where there is no batch."""
    return intake.total(X, functools.partial(_sampled, plan), _sampled_together)


def _sampled(plan: LatticePlan, records: Records) -> tuple[int, Sample]:
    return records.num_records, sample(whole_records(records, plan))


def _sampled_together(one: tuple[int, Sample], two: tuple[int, Sample]) -> tuple[int, Sample]:
    return one[0] + two[0], one[1].plus(two[1])


def _of_records(of: Callable[[WholeRecords], Any], plan: LatticePlan, records: Records) -> Any:
    return of(whole_records(records, plan))
