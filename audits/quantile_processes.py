"""Audits of quantile processes: the law of all curves together, by outcomes, and curves replayed on a neighbour.

Laws are enumerated on coarse lattices by the code that draws.
"""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np

from audits.lattices import points_of, scores_of
from audits.replay import Replay
from kngjax.accounting.exact_costs import exactly
from kngjax.draws.lattice.lattice import Problem
from kngjax.draws.lattice.problems import WholeRecords
from kngjax.releases.curves.halving import Curves, Halving
from kngjax.releases.curves.levels import Node

# By k of each level's curve, in increasing order of levels, the logarithm of its probability.
Law = dict[tuple[tuple[int, ...], ...], float]
NodeLaw = dict[tuple[int, ...], float]
# How far apart, over what that may cost, and of how many points.
Found = tuple[Fraction, int]


class ProcessLaws:
    """The laws of all curves of some data sets, on a lattice of at most 2^20 points; else ValueError.

    What is drawn of the same records between the same curves is enumerated once.

    **Arguments:** `halving`: how curves are drawn.
    """

    def __init__(self, halving: Halving):
        self.halving = halving
        self._known: dict[Any, NodeLaw] = {}

    def law(self, X: Any, y: Any) -> Law:
        """Enumerates the outcomes that these records give a probability, with its logarithm. Private."""
        records = self.halving.prepare(X, y)
        curves: list[tuple[dict[int, np.ndarray], float]] = [({}, 0.0)]
        for nodes in self.halving.depths:
            curves = [
                (drawn | {node.index: np.array(point) for node, (point, _) in zip(nodes, points, strict=True)}, total)
                for drawn, logarithm in curves
                for points in itertools.product(*(self.of_node(node, records, drawn).items() for node in nodes))
                for total in [logarithm + sum(part for _, part in points)]
            ]
        return {
            tuple(tuple(drawn[index].tolist()) for index in range(len(drawn))): logarithm for drawn, logarithm in curves
        }

    def of_node(self, node: Node, records: WholeRecords, curves: Curves) -> NodeLaw:
        """Enumerates the law of one curve given those that were drawn before. Private."""
        members = self.halving.members(node, records, curves)
        rows = sorted(np.column_stack(members).tolist())
        beside = (None if index is None else curves[index].tolist() for index in (node.below, node.above))
        name = str((node.index, rows, *beside))
        if name not in self._known:
            self._known[name] = self._enumerated(node, members, curves)
        return self._known[name]

    def _enumerated(self, node: Node, members: WholeRecords, curves: Curves) -> NodeLaw:
        problem, region = self.halving.problem(node, members), self.halving.region(node, curves)
        points = [point for point in points_of(problem.domain) if region is None or region.contains(point)]
        masses = np.array([-float(problem.rate * score) for score in scores_of(problem, points)])
        total = float(np.logaddexp.reduce(masses))
        return {tuple(map(int, point)): float(mass) - total for point, mass in zip(points, masses, strict=True)}


def process_loss(first: Law, second: Law) -> float:
    """max |log P(outcome)/P'(outcome)|; infinite if one of them can have what the other cannot."""
    if first.keys() != second.keys():
        return math.inf
    return max(abs(logarithm - second[outcome]) for outcome, logarithm in first.items())


def replayed_process(
    halving: Halving, first: Any, second: Any, *, seed: int = 0, num_draws: int = 4, num_points: int = 40
) -> Replay:
    """How far apart the densities of curves are on two neighbours at their farthest, over what each depth may cost.

    Curves are drawn on the first data set and replayed on the second: given those of lower depths, each node's 2c|s -
    s'| at its own curve and at others on the lattice of Θ, added up over the nodes of a depth, over its ε. At most 1,
    without a rounding. Both data sets go the way of a release, through validation, clipping and rounding.

    **Arguments:** `first`, `second`: pairs (X, y), neighbours by the adjacency, made up.
    """
    generator, bits = np.random.default_rng(seed), random.Random(seed).getrandbits
    both = [halving.prepare(*pair) for pair in (first, second)]
    found = [_replayed(halving, both, generator, bits, num_points) for _ in range(num_draws)]
    return Replay(float(max(ratio for ratio, _ in found)), sum(tried for _, tried in found), 0.0)


def _replayed(halving: Halving, both: list[WholeRecords], generator: Any, bits: Any, num_points: int) -> Found:
    worst, tried = Fraction(0), 0
    curves = halving.draw_points(both[0], bits)
    for nodes in halving.depths:
        changes = Fraction(0)
        for node in nodes:
            problems = [halving.problem(node, halving.members(node, one, curves)) for one in both]
            change, number = _change(problems, curves[node.index], generator, num_points)
            changes, tried = changes + change, tried + number
        worst = max(worst, changes / exactly(halving.of_depth(nodes).epsilon))
    return worst, tried


def _change(problems: list[Problem], drawn: np.ndarray, generator: Any, num_points: int) -> Found:
    """2c|s - s'| at its largest, of the drawn point and of others, and how many these are."""
    domain = problems[0].domain
    points = np.vstack([drawn, generator.integers(domain.low, domain.high + 1, (num_points, len(domain.low)))])
    points = points[domain.contains_each(points)]
    here, there = (scores_of(problem, points) for problem in problems)
    change = 2 * problems[0].rate * max(abs(one - other) for one, other in zip(here, there, strict=True))
    return change, len(points)
