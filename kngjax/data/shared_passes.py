"""Groups of records that share passes: sums of all groups are made at once, as long as they ask for the same."""

import functools
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kngjax.data.work import Add, Total, Work


class SharedPasses:
    """Keeps what one pass made of all groups of records, for those that ask for the same. Private.

    Groups are asked one after another. Sums of all of them are made at once, and so are the first looks of searches.
    Where searches part ways every group takes its own passes from there on.

    **Arguments:** `at`: how many steps are common to all. `steps`: the step of each group that comes then.
    """

    def __init__(self, at: int, steps: tuple[Callable[[Any], Any], ...]):
        self._at, self._steps = at, steps
        self._kept: list[tuple[bytes, Total]] = []
        self._asked, self._most = [0] * len(steps), math.inf

    def total(self, place: int, work: Work, passed: Callable[[Work], Total]) -> Total:
        """Makes, or finds, the total of the group at this place. **Arguments:** `passed`: takes a pass."""
        number, later = self._asked[place], work.steps[self._at + 1 :]
        self._asked[place] += 1
        key = pickle.dumps((later, work.summarise, work.add))
        if number == len(self._kept) and number < self._most:
            summarise = functools.partial(_of_each, [(step, *later) for step in self._steps], work.summarise)
            add = functools.partial(_added_each, work.add)
            every = work._replace(steps=work.steps[: self._at], summarise=summarise, add=add)
            self._kept.append((key, passed(every)))
        if number >= len(self._kept) or self._kept[number][0] != key:
            self._most = min(self._most, number)
            return passed(work)
        total = self._kept[number][1]
        if total.sum is None:
            return total
        own, total.sum[place] = total.sum[place], None
        return own if total.marks is None else Total(total.count, own.sum, total.marks)


class Group(NamedTuple):
    """Tells which of several groups of records some passes are over. Private."""

    shared: SharedPasses
    place: int

    def total(self, work: Work, passed: Callable[[Work], Total]) -> Total:
        """Makes, or finds, the total of this group."""
        return self.shared.total(self.place, work, passed)


def _of_each(groups: Sequence[Sequence[Callable[[Any], Any]]], summarise: Callable[[Any], Total], batch: Any) -> Total:
    """Summarises each group of a batch."""
    made = [summarise(functools.reduce(lambda one, step: step(one), steps, batch)) for steps in groups]
    return Total(0, made)


def _added_each(add: Add, one: list[Total], two: list[Total]) -> list[Total]:
    return [first.plus(second, add) for first, second in zip(one, two, strict=True)]
