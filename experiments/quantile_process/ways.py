"""Five ways to release curves of several levels for one ε, many draws of each at once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import kngjax as kng
from experiments.quantile_process.nodes import DOMAIN, Node, NotDrawn, Part, expansion, node_of, weighted
from experiments.quantile_process.tables import Table

ADJACENCY = "replace"
# Of joint draws: proposals that are discarded, and those that are kept; of fewer accepted ones nothing is said.
_WARM_UP, _KEPT, _LEAST_ACCEPTED = 100, 20, 0.1
# Residuals are held to so many scales, and a scale to the least one, as the library does.
_MOST_SCALES, _LEAST_SCALE = 16.0, (DOMAIN[1] - DOMAIN[0]) * 2.0**-12
_CLEAR = 4.0
# A point inside of one curve's side lies so many scales away from it.
_ASIDE = 0.05

Records = list[tuple[np.ndarray, np.ndarray]]


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

    def process(self, order: str) -> kng.QuantileProcess:
        """The library's plan."""
        given = self.levels, self.table.bounds, kng.Box(*DOMAIN), self.epsilon, ADJACENCY, order
        if order != "joint":
            return kng.QuantileProcess(*given)
        width = kng.SmoothedQuantileLoss.public_bandwidth(0.5, len(self.table.y), self.dimension, self.table.scale)
        return kng.QuantileProcess(*given, bandwidth=width)

    def node(self, level: float, epsilon: float) -> Node:
        """KNG of all records."""
        return node_of(self.table.bounds, level, epsilon, ADJACENCY, self.dimension)

    def is_clear(self, nodes: list[Node]) -> bool:
        """The public rule of `QuantileProcess.refusal`: a level has four times its noise, in records, beyond it."""
        n = len(self.table.y)
        return all(min(node.tau, 1.0 - node.tau) * n >= _CLEAR * node.noise for node in nodes)


class Drawn(NamedTuple):
    """**Arguments:** `curves`: shape (D, m, d). `effective`: the share of candidates that count, or are accepted."""

    curves: np.ndarray
    effective: float


class Way(NamedTuple):
    """**Arguments:** `is_clear`: of a cell, by public facts. `draw`: so many draws. `law`: how they follow the
    mechanism's law. `most`: coefficients up to which draws are made here, as the cone of curves that do not cross has
    too many corners beyond, and exact ones are of four."""

    is_clear: Callable[[Cell], bool]
    draw: Callable[[Cell, int, np.random.Generator], Drawn]
    law: str
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
    """By the tree of the library's certificate."""
    certificate = cell.process("halving").certify(cell.table.columns, cell.table.y)
    records, table = [(cell.table.x, cell.table.y)] * count, cell.table
    starts = np.repeat(cell.fits[:, None], count, axis=1)
    given = certificate.sampler["parts"], table.bounds, table.vertices, records, starts, cell.candidates
    return _by_halves(*given, table.scale, DOMAIN[1], random)


def location_scale(cell: Cell, count: int, random: np.random.Generator) -> Drawn:
    """A location, a scale, and by halving the levels of residuals over it, with the library's shares of ε."""
    settings = cell.process("location_scale").certify(cell.table.columns, cell.table.y).sampler
    x, y, d = cell.table.x, cell.table.y, cell.dimension
    first = cell.node(0.5, settings["location"]["epsilon"])
    expansions = [expansion(first, x, y, cell.fits[len(cell.fits) // 2])] * count
    locations, share = weighted(first, [(x, y)] * count, expansions, None, cell.candidates, random)
    second = cell.node(0.5, settings["scale"]["epsilon"])
    sizes = [(x, np.abs(y - x @ theta)) for theta in locations]
    ones = np.eye(d)[0]
    expansions = [expansion(second, *each, ones * np.median(each[1])) for each in sizes]
    least, start = (np.tile(size * ones, (count, 1)) for size in (_LEAST_SCALE, cell.table.scale))
    part = Part(cell.table.vertices, least, None, start)
    scales, other = weighted(second, sizes, expansions, part, cell.candidates, random)
    numbers = [
        np.clip((y - x @ location) / (x @ scale), -_MOST_SCALES, _MOST_SCALES)
        for location, scale in zip(locations, scales, strict=True)
    ]
    column, ends = np.ones((len(y), 1)), kng.Bounds(y=(-_MOST_SCALES, _MOST_SCALES))
    starts = np.array([np.quantile(each, cell.levels) for each in numbers]).T[..., None]
    records = [(column, each) for each in numbers]
    given = settings["parts"], ends, np.ones((1, 1)), records, starts, cell.candidates
    found = _by_halves(*given, 1.0, _MOST_SCALES, random)
    curves = locations[:, None] + found.curves * scales[:, None]
    return Drawn(curves, min(share, other, found.effective))


def _by_halves(
    parts: list[dict[str, Any]],
    bounds: Any,
    vertices: np.ndarray,
    records: Records,
    starts: np.ndarray,
    candidates: Sequence[int],
    scale: float,
    reach: float,
    random: np.random.Generator,
) -> Drawn:
    """Each level of the records between the curves beside it, and between these.

    **Arguments:** `parts`: of a certificate. `records`: of each draw. `starts`: shape (m, D, d). `scale`: of y.
    `reach`: of Θ.
    """
    places = {part["level"]: place for place, part in enumerate(parts)}
    found: dict[int, tuple[np.ndarray, float]] = {}
    aside = _ASIDE * scale * np.eye(starts.shape[2])[0]
    for place, level in sorted(enumerate(parts), key=lambda each: each[1]["depth"]):
        node = node_of(bounds, level["relative_level"], level["epsilon"], level["adjacency"], starts.shape[2])
        below, above = (None if end is None else found[places[end]][0] for end in level["between"])
        members, part = records, None
        if below is not None or above is not None:
            members = [
                _between(each, None if below is None else below[draw], None if above is None else above[draw])
                for draw, each in enumerate(records)
            ]
            sides = (above - aside) if below is None else (below + aside) if above is None else (below + above) / 2.0
            part = Part(vertices, below, above, sides)
        expansions = [expansion(node, *each, start) for each, start in zip(members, starts[place], strict=True)]
        found[place] = weighted(node, members, expansions, part, candidates, random, reach)
    return _together([found[place] for place in range(len(parts))])


def _between(records: tuple[np.ndarray, np.ndarray], below: Any, above: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = records
    chosen = np.ones(len(y), bool)
    if below is not None:
        chosen &= y > x @ below
    if above is not None:
        chosen &= y <= x @ above
    return x[chosen], y[chosen]


def joint(cell: Cell, count: int, random: np.random.Generator) -> Drawn:
    """A chain of the library: 20 draws, whatever `count` is, as one of another length would be compiled anew.

    Raises NotDrawn where it hardly moves.
    """
    process = cell.process("joint")
    draws = process.sample(
        process.prepare(cell.table.columns, cell.table.y),
        key=kng.research_key(int(random.integers(2**31))),
        sampler=kng.GradientSpace(num_warmup=_WARM_UP),
        num_draws=_KEPT,
    )
    if draws.acceptance < _LEAST_ACCEPTED:
        raise NotDrawn("stuck", draws.acceptance)
    return Drawn(draws.curves, draws.acceptance)


def _together(found: list[tuple[np.ndarray, float]]) -> Drawn:
    """**Arguments:** `found`: of each level curves, shape (D, d), and the effective share of candidates."""
    curves, shares = zip(*found, strict=True)
    return Drawn(np.stack(curves, axis=1), min(shares))


def _admits(order: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.process(order).refusal(len(cell.table.y)) is None


WAYS = {
    "independent": Way(lambda cell: cell.is_clear(independent_nodes(cell)), independent, "weighted", 12),
    "stepwise": Way(lambda cell: cell.is_clear(stepwise_nodes(cell)), stepwise, "weighted", 4),
    "halving": Way(_admits("halving"), halving, "weighted", 4),
    "location_scale": Way(_admits("location_scale"), location_scale, "weighted", 4),
    "joint": Way(_admits("joint"), joint, "chain", 12),
}
