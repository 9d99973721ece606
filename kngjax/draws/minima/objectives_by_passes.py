"""Objectives whose records rest elsewhere: each look at J is a pass that adds up what batches of records give.

What batches give is that of `kngjax.draws.minima.smooth_objectives`: middles in float64, and how far they may be off. A
sum of two middles is rounded to the nearest number, so it errs by at most u = 2^-53 of itself, which bounds grow by. So
balls of the whole contain what they contain in memory, though their last digits are others, and the cell of the grid
that a minimiser lies in is the same.
"""

import functools
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly
from kngjax.core.verified import UNIT
from kngjax.data.gathering import gathered, parts_of
from kngjax.data.passes import Passes
from kngjax.data.records import Records, WeightedRecords
from kngjax.draws.minima.newton_searches import LAST_STEP, float_search, step_length
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.losses.verified_scores import AbstractVerifiedScore

# More than the roundings of what a bound of a sum of two middles is added up from.
_WIDER = 1.0 + 2.0**-40
# Rows of a batch, and of all, with which a search begins.
_OF_A_BATCH, _AT_MOST = 64, 2048
# Relatively: a step so short is taken as it is.
_SHORT = 1e-5
# Most steps, and most places along one: what is found later is not worth a pass.
_MOST_STEPS, _MOST_PLACES = 64, 16
# A slope that is less than this part of the sizes that it is a sum of may be nothing but rounding.
_ROUNDED = 2.0**-50
Balls = tuple[np.ndarray, np.ndarray]


class ObjectiveByPasses(OwnerOnly):
    """J but for its linear term, of records in passes; asked as `Objective` is. Private.

    **Arguments:** `mechanism`: that takes the records. `X`: the records, at least one. `few`: some of them, one in
    `every`, where a search begins. Others as of `Objective.of`.
    """

    def __init__(
        self,
        mechanism: Any,
        X: Passes,
        few: Records | WeightedRecords,
        every: float,
        scores: AbstractVerifiedScore,
        ridge: Fraction,
        largest: Fraction,
    ):
        self._mechanism, self._records, self._few, self._every = mechanism, X, few, every
        self._scores, self.ridge, self.largest = scores, ridge, largest
        self.dimension: int = mechanism.dimension
        self._last: tuple[np.ndarray, Any] | None = None

    def gradient(self, theta: Float[np.ndarray, " dimension"]) -> Balls:
        """Σs_i x_i and how far it may be off: NaN or infinite where float64 cannot tell."""
        return self._look(theta)[0]

    def slopes(self, theta: np.ndarray, radius: np.ndarray) -> Balls:
        """Σq_i x_i x_i' for slopes over the box of this radius: its middle, and how far entries may be off."""
        of = functools.partial(_slopes, self._scores, self.largest, theta, radius)
        return self._mechanism.intake.total(self._records, of, _add_balls)

    def about(self, theta: np.ndarray, with_hessian: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Σs_i x_i + γθ and the Hessian, of whose errors nothing is known."""
        (gradient, _), hessian = self._look(theta)
        ridge = float(self.ridge)
        return gradient + ridge * theta, hessian + ridge * np.eye(self.dimension)

    def _look(self, theta: np.ndarray) -> tuple[Balls, np.ndarray]:
        """Σs_i x_i in balls and the Hessian without its ridge, in one pass; what was looked at last is remembered."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            of = functools.partial(_look, self._scores, self.largest, theta)
            self._last = theta, self._mechanism.intake.total(self._records, of, _add_looks)
        return self._last[1]

    def search(self, tilt: np.ndarray, start: np.ndarray) -> Float[np.ndarray, " dimension"]:
        """Searches in float64 for the minimiser of J by Newton's method, a pass for each place that is looked at."""
        few = Objective.of(self._few, self._scores, self.ridge / Fraction(self._every), self.largest)
        theta = float_search(few, tilt / self._every, start)
        slope, hessian = self.about(theta)
        for _ in range(_MOST_STEPS):
            try:
                step = -np.linalg.solve(hessian, slope + tilt)
            except np.linalg.LinAlgError:
                break
            first, off = float((slope + tilt) @ step), self.gradient(theta)[1]
            # Where no step leads down it is as low as float64 can tell.
            rounded = (off + _ROUNDED * (np.abs(slope) + np.abs(tilt))) @ np.abs(step)
            if not (np.all(np.isfinite(step)) and first < -rounded):
                break
            found: dict[Fraction, tuple[np.ndarray, np.ndarray]] = {}

            def along(place: Fraction, theta=theta, step=step, found=found) -> float:
                if place not in found:
                    found[place] = self.about(theta + float(place) * step)
                return float((found[place][0] + tilt) @ step)

            size, reach = np.linalg.norm(step), np.linalg.norm(theta)
            if size <= LAST_STEP * reach:
                theta = theta + step
                break
            length = Fraction(1)
            # Where a step is short, what tells whether J is lower may be rounding alone.
            if abs(along(length)) > -first / 8 and size > _SHORT * reach:
                length = step_length(along, first, _MOST_PLACES)
            if length is None:
                break
            theta, (slope, hessian) = theta + float(length) * step, found[length]
        return theta if np.all(np.isfinite(theta)) else start

    def in_memory(self) -> Objective:
        """Gathers all records here: for the rare digits that float64 does not tell."""
        records = self._mechanism.prepare(self._records)
        return Objective.of(records, self._scores, self.ridge, self.largest)


def objective_of(
    mechanism: Any, X: Any, y: Any, scores: AbstractVerifiedScore, ridge: Fraction, largest: Fraction
) -> Objective | ObjectiveByPasses:
    """Prepares J of records, in passes over those that rest elsewhere and can be read again. Private.

    **Arguments:** as of `Objective`. Noise that records get as they are read would be another one in each pass. Raises
    as `mechanism.prepare` does, after one pass.
    """
    intake = mechanism.intake
    if not isinstance(X, Passes) or X.engine.is_read_once or mechanism.bounds.dither is not None:
        return Objective.of(mechanism.prepare(X, y), scores, ridge, largest)
    count, rows, parts = intake.total(X, _few, _fewer) or (0, 0, [])
    intake.check_count(count)
    if count == 0:
        intake.require_none_needed()
        return Objective.of(intake.rows_of_zeros(0, mechanism.dimension), scores, ridge, largest)
    few = gathered(parts)
    return ObjectiveByPasses(mechanism, X, few, rows / few.num_records, scores, ridge, largest)


def _few(records: Records | WeightedRecords) -> tuple[int, int, list[Any]]:
    """Counts records, or persons, and rows, and picks some."""
    rows = len(records.rows.y)
    every = max(1, rows // _OF_A_BATCH)
    # Copies, as views would keep whole batches in memory.
    return records.num_records, rows, [tuple(None if one is None else one[::every].copy() for one in parts_of(records))]


def _fewer(one: tuple[int, int, list[Any]], two: tuple[int, int, list[Any]]) -> tuple[int, int, list[Any]]:
    known = sum(len(y) for _, y, _ in one[2])
    return one[0] + two[0], one[1] + two[1], one[2] + (two[2] if known < _AT_MOST else [])


def _look(scores: Any, largest: Fraction, theta: np.ndarray, records: Any) -> tuple[Balls, np.ndarray]:
    objective = Objective.of(records, scores, Fraction(0), largest)
    _, hessian = objective.about(theta, with_hessian=True)
    assert hessian is not None
    return objective.gradient(theta), hessian


def _slopes(scores: Any, largest: Fraction, theta: np.ndarray, radius: np.ndarray, records: Any) -> Balls:
    return Objective.of(records, scores, Fraction(0), largest).slopes(theta, radius)


def _add_looks(one: tuple[Balls, np.ndarray], two: tuple[Balls, np.ndarray]) -> tuple[Balls, np.ndarray]:
    with np.errstate(invalid="ignore", over="ignore"):
        return _add_balls(one[0], two[0]), one[1] + two[1]


def _add_balls(one: Balls, two: Balls) -> Balls:
    with np.errstate(invalid="ignore", over="ignore"):
        middle = one[0] + two[0]
        return middle, (one[1] + two[1] + UNIT * np.abs(middle)) * _WIDER
