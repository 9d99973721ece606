"""Draws curves of several levels for one ε in three ways, many draws of each at once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng
from experiments.quantile_process.nodes import DOMAIN, Node, Part, expansion, node_of, weighted
from experiments.quantile_process.tables import Table

ADJACENCY = "replace"
_CLEAR = 4.0
# A point inside of one curve's side lies so many scales away from it.
_ASIDE = 0.05


class Cell(NamedTuple):
    """What is drawn.

    **Arguments:** `fits`: θ̂ of each level, shape (m, d). `candidates`: of a curve, a coefficient, tried in turn.
    """

    table: Table
    levels: tuple[float, ...]
    epsilon: float
    fits: np.ndarray
    candidates: Sequence[int]

    @property
    def dimension(self) -> int:
        """d."""
        return self.table.x.shape[1]

    def process(self) -> kng.QuantileProcess:
        """The library's plan."""
        return kng.QuantileProcess(self.levels, self.table.bounds, kng.Box(*DOMAIN), self.epsilon, ADJACENCY)

    def node(self, level: float, epsilon: float) -> Node:
        """KNG of all records."""
        return node_of(self.table.bounds, level, epsilon, ADJACENCY, self.dimension)

    def is_clear(self, nodes: list[Node]) -> bool:
        """The public rule of `QuantileProcess.refusal`: a level has four times its noise, in records, beyond it."""
        n = len(self.table.y)
        return all(min(node.tau, 1.0 - node.tau) * n >= _CLEAR * node.noise for node in nodes)


class Drawn(NamedTuple):
    """**Arguments:** `curves`: shape (D, m, d). `effective`: the share of candidates that count."""

    curves: np.ndarray
    effective: float


class Way(NamedTuple):
    """**Arguments:** `is_clear`: of a cell, by public facts. `draw`: so many draws. `most`: coefficients up to which
    draws are made here: the cone of curves that do not cross has too many corners beyond, and exact ones are of four.
    """

    is_clear: Callable[[Cell], bool]
    draw: Callable[[Cell, int, np.random.Generator], Drawn]
    most: int


def independent_nodes(cell: Cell) -> list[Node]:
    """KNG of each level at ε/m."""
    return [cell.node(level, cell.epsilon / len(cell.levels)) for level in cell.levels]


def independent(cell: Cell, count: int, random: np.random.Generator) -> Drawn:
    """Each level by itself; their curves may cross."""
    records, found = [(cell.table.x, cell.table.y)] * count, []
    for node, start in zip(independent_nodes(cell), cell.fits, strict=True):
        expansions = [expansion(node, *records[0], start)] * count
        found.append(weighted(node, records, expansions, None, cell.candidates, random))
    return _together(found)


def stepwise_nodes(cell: Cell) -> list[Node]:
    """KNG of the level in the middle at ε/2, and of the others at ε/(2(m - 1)) each."""
    m, middle = len(cell.levels), len(cell.levels) // 2
    shares = [1.0 / 2.0 if place == middle else 1.0 / (2.0 * (m - 1)) for place in range(m)]
    return [cell.node(level, cell.epsilon * share) for level, share in zip(cell.levels, shares, strict=True)]


def stepwise(cell: Cell, count: int, random: np.random.Generator) -> Drawn:
    """From the middle outwards, each level where it does not cross the one before."""
    records, nodes, vertices = [(cell.table.x, cell.table.y)] * count, stepwise_nodes(cell), cell.table.vertices
    middle, found = len(nodes) // 2, {}
    aside = _ASIDE * cell.table.scale * np.eye(cell.dimension)[0]
    for place in (middle, *range(middle + 1, len(nodes)), *range(middle - 1, -1, -1)):
        node, part = nodes[place], None
        if place > middle:
            below = found[place - 1][0]
            part = Part(vertices, below, None, below + aside)
        elif place < middle:
            above = found[place + 1][0]
            part = Part(vertices, None, above, above - aside)
        expansions = [expansion(node, *records[0], cell.fits[place])] * count
        found[place] = weighted(node, records, expansions, part, cell.candidates, random)
    return _together([found[place] for place in range(len(nodes))])


def halving(cell: Cell, count: int, random: np.random.Generator) -> Drawn:
    """By the tree of the library's certificate: each level of the records between the curves beside it."""
    table, parts = cell.table, cell.process().certify(cell.table.columns, cell.table.y).sampler["parts"]
    records = [(table.x, table.y)] * count
    places = {part["level"]: place for place, part in enumerate(parts)}
    found: dict[int, tuple[np.ndarray, float]] = {}
    aside = _ASIDE * table.scale * np.eye(cell.dimension)[0]
    for place, level in sorted(enumerate(parts), key=lambda each: each[1]["depth"]):
        node = node_of(table.bounds, level["relative_level"], level["epsilon"], level["adjacency"], cell.dimension)
        below, above = (None if end is None else found[places[end]][0] for end in level["between"])
        members, part = records, None
        if below is not None or above is not None:
            members = [
                _between(each, None if below is None else below[draw], None if above is None else above[draw])
                for draw, each in enumerate(records)
            ]
            sides = (above - aside) if below is None else (below + aside) if above is None else (below + above) / 2.0
            part = Part(table.vertices, below, above, sides)
        expansions = [expansion(node, *each, cell.fits[place]) for each in members]
        found[place] = weighted(node, members, expansions, part, cell.candidates, random)
    return _together([found[place] for place in range(len(parts))])


def _between(records: tuple[np.ndarray, np.ndarray], below: Any, above: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = records
    chosen = np.ones(len(y), bool)
    if below is not None:
        chosen &= y > x @ below
    if above is not None:
        chosen &= y <= x @ above
    return x[chosen], y[chosen]


def _together(found: list[tuple[np.ndarray, float]]) -> Drawn:
    """**Arguments:** `found`: of each level curves, shape (D, d), and the effective share of candidates."""
    curves, shares = zip(*found, strict=True)
    return Drawn(np.stack(curves, axis=1), min(shares))


WAYS = {
    "independent": Way(lambda cell: cell.is_clear(independent_nodes(cell)), independent, 12),
    "stepwise": Way(lambda cell: cell.is_clear(stepwise_nodes(cell)), stepwise, 4),
    "halving": Way(lambda cell: cell.process().refusal(len(cell.table.y)) is None, halving, 4),
}
