"""Runs of records: those of one X whose Y are consecutive; found, counted and summed without a look at each record."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int


class Runs(NamedTuple):
    """Records from `starts` to before `stops`: so many runs one after another for each box, none of them empty.

    Records are sorted by X and then by Y. So where a record's sign is told by Y alone, as on a box, those of one X that
    leave it open are one run.

    **Arguments:** `starts`, `stops`: shape (runs,). `numbers`: of runs, shape (boxes,).
    """

    starts: Int[np.ndarray, " runs"]
    stops: Int[np.ndarray, " runs"]
    numbers: Int[np.ndarray, " boxes"]

    @classmethod
    def of(cls, boxes: list[np.ndarray]) -> "Runs":
        """Joins the runs of each box, given in shape (2, runs)."""
        starts, stops = np.concatenate(boxes, axis=1)
        return cls(starts, stops, np.array([some.shape[1] for some in boxes]))

    def apart(self) -> list[np.ndarray]:
        """Separates the runs of each box, in shape (2, runs)."""
        return np.split(np.stack([self.starts, self.stops]), np.cumsum(self.numbers)[:-1], axis=1)

    def sizes(self) -> Int[np.ndarray, " boxes"]:
        """Counts the records of each box."""
        return totals([self.stops - self.starts], self.numbers)[:, 0].astype(np.int64)

    def on(self, boxes: Int[np.ndarray, " some"]) -> "Runs":
        """Selects the runs of some boxes."""
        numbers = self.numbers[boxes]
        places = consecutive((np.cumsum(self.numbers) - self.numbers)[boxes], numbers)
        return Runs(self.starts[places], self.stops[places], numbers)

    def records(self) -> Int[np.ndarray, " records"]:
        """Lists the records of all runs, box by box."""
        return consecutive(self.starts, self.stops - self.starts)


def consecutive(starts, numbers):
    """Lists for each start s with number m the numbers s, s + 1, …, s + m - 1, one after another."""
    before = np.cumsum(numbers) - numbers
    return np.arange(np.sum(numbers)) + np.repeat(starts - before, numbers)


def first_above(values, starts, stops, bounds) -> Int[np.ndarray, "*bounds runs"]:
    """Finds the first place of each run with a value above the run's bound, or the run's end, for several bounds.

    It bisects, in steps that are powers of two. Runs may be empty; within a run values are in increasing order.

    **Arguments:** `bounds`: shape (..., runs).
    """
    found, step = starts, 1 << int(np.max(stops - starts, initial=0)).bit_length() >> 1
    while step:
        last = found + (step - 1)
        is_farther = values.take(last, mode="clip") <= bounds
        is_farther &= last < stops
        found = found + (is_farther if step == 1 else is_farther * step)
        step >>= 1
    return np.broadcast_to(found, bounds.shape)


def sums_before(values: np.ndarray) -> np.ndarray:
    """Returns the sum of all values before each place, and last that of all values."""
    return np.concatenate([np.zeros(1), np.cumsum(values)])


def sums_away(values, origins, longest: int):
    """Sums values from each run's origin to each of its records, the record included.

    Sums above an origin begin with the first record above it, and sums below with the last record below. Values are at
    least 0, and each sum has few terms, so that its error is small beside itself and not beside the sums of others.

    **Arguments:** `origins`: of each record that of its run. `longest`: at least as many as any run has.
    """
    place = np.arange(len(values))
    is_above = place >= origins
    above, below = np.where(is_above, values, 0.0), np.where(is_above, 0.0, values)
    away_above, away_below = place - origins, origins - 1 - place
    step = 1
    while step < longest:
        above[step:] += np.where(away_above[step:] >= step, above[:-step], 0.0)
        below[:-step] += np.where(away_below[:-step] >= step, below[step:], 0.0)
        step *= 2
    return np.where(is_above, above, below)


def products(columns, vectors, numbers):
    """Computes inner products of so many consecutive entries each with one vector; column by column, which is fast."""
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
