"""Audits of synthetic tables: how far apart the laws of all their releases are on two neighbouring tables.

Every release is made of the records alone, and of no other release, so that the law of all together is the product of
theirs: the largest logarithm of a ratio is the sum of the largest ones. Counts are enumerated by the mechanism that
draws them, curves on a coarse lattice by the code that draws them; both tables go the way of a release, cell by cell.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from audits.quantile_processes import ProcessLaws
from kngjax.core.arrays import float64
from kngjax.data.records import Counts
from kngjax.draws.lattice.lattice import Lattice
from kngjax.releases.curves.halving import Halving
from kngjax.study.synthesis.parts import CurvesPart, TablePart
from kngjax.study.synthesis.plans import SynthesisPlan

_COARSE = Lattice(data_digits=4, theta_digits=2)
_MOST_OUTCOMES = 2**16
# What a release says with which logarithm of its probability.
Law = dict[tuple[Any, ...], float]


class TableLaws:
    """The laws of the releases of a plan, those of counts within `reach` of 0 and n; ValueError for too many outcomes.

    **Arguments:** `plan`: of columns without terms. `num_records`: the most records of any table.
    """

    def __init__(self, plan: SynthesisPlan, num_records: int, reach: int = 2, lattice: Lattice = _COARSE):
        self.plan, self.num_records, self.reach, self.lattice = plan, num_records, reach, lattice
        self._known: dict[Any, Law] = {}
        self._processes: dict[str, ProcessLaws] = {}

    def losses(self, first: Any, second: Any) -> dict[str, tuple[float, float]]:
        """Finds the largest log P/P' and log P'/P of each release, on two frames. Made up, neighbours."""
        return losses_of(self.laws(first), self.laws(second))

    def loss(self, first: Any, second: Any) -> float:
        """The largest |log P/P'| of all releases together."""
        return max(map(sum, zip(*self.losses(first, second).values(), strict=True)))

    def laws(self, frame: Any) -> dict[str, Law]:
        """Enumerates the law of each release, by its label. Private."""
        values, rows = self.plan.read(frame), len(frame)
        return {part.label: self._law(part, *part.records(values, rows)) for part in self.plan.parts()}

    def _law(self, part: Any, x: Any, y: np.ndarray) -> Law:
        name = str((part.label, sorted(y.tolist())))
        if name not in self._known:
            counted = not isinstance(part, CurvesPart)
            self._known[name] = self._of_counts(part, y) if counted else self._process(part).law(x, y)
        return self._known[name]

    def _of_counts(self, part: Any, y: np.ndarray) -> Law:
        mechanism = part.mechanism
        cells = math.prod(part.shape) if isinstance(part, TablePart) else 1
        sides = [range(-self.reach, self.num_records + self.reach + 1)] * cells
        if math.prod(map(len, sides)) > _MOST_OUTCOMES:
            raise ValueError("the counts have more than 2^16 outcomes: take fewer cells or records")
        outcomes = list(itertools.product(*sides))
        with float64():
            data = mechanism.prepare(y=y)
            assert isinstance(data, Counts)
            masses = jax.vmap(mechanism.log_density, (0, None))(jnp.array(outcomes, float), data)
        return dict(zip(outcomes, np.asarray(masses).tolist(), strict=True))

    def _process(self, part: CurvesPart) -> ProcessLaws:
        if part.label not in self._processes:
            given = part.process
            made = given.levels, given.bounds, given.domain, given.epsilon, given.adjacency, 1
            self._processes[part.label] = ProcessLaws(Halving.of(*made, self.num_records, self.lattice))
        return self._processes[part.label]


def losses_of(first: dict[str, Law], second: dict[str, Law]) -> dict[str, tuple[float, float]]:
    """Finds the largest logarithm of each ratio of the two laws of each release."""
    return {label: _spread(first[label], second[label]) for label in first}


def _spread(first: Law, second: Law) -> tuple[float, float]:
    """The largest logarithms of both ratios; infinite if one law can have what the other cannot."""
    if first.keys() != second.keys():
        return math.inf, math.inf
    ratios = [mass - second[outcome] for outcome, mass in first.items()]
    return max(ratios), -min(ratios)
