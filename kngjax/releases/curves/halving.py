"""How curves of several levels are drawn by recursive halving, on one lattice, with every rounding in the proof."""

import dataclasses
import math
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kngjax.accounting.exact_costs import exactly, inward
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.accounting.parallel import in_parallel
from kngjax.core.arrays import float64
from kngjax.core.balls import DEFAULT_DIGITS, precision
from kngjax.core.representation import describe
from kngjax.data.bounds import Bounds
from kngjax.draws.base import PROVED
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.lattice import Lattice, Problem, rate_of
from kngjax.draws.lattice.lattice_plan import LatticePlan
from kngjax.draws.lattice.problems import WholeRecords, check_score, prepared
from kngjax.draws.lattice.regions import CurveRegion, vertices_of
from kngjax.draws.uniforms import Bits
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms.kng import KNG
from kngjax.releases.curves.levels import Node, tree_of
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity

# By the index of its level, k of each curve that is drawn.
Curves = Mapping[int, Int[np.ndarray, " dimension"]]


@dataclasses.dataclass(frozen=True, eq=False)
class Halving:
    """Draws of `kngjax.QuantileProcess` by recursive halving: whole numbers decide all of it. All of it is public.

    **Arguments:** `depths`: the nodes of the tree. `mechanisms`: of each level, KNG at its relative level. `settings`:
    of the lattice, the same for all levels, and `plans`: what it is for each, which have one lattice of records and one
    of Θ. `vertices`: of the polytope of the bounds. `dimension`: d. `most`: a number that n does not exceed.
    """

    depths: tuple[tuple[Node, ...], ...]
    mechanisms: tuple[KNG, ...]
    settings: Lattice
    plans: tuple[LatticePlan, ...]
    vertices: Float[np.ndarray, "vertices dimension"]
    dimension: int
    most: int

    @classmethod
    def of(
        cls,
        levels: Any,
        bounds: Bounds,
        domain: AbstractDomain,
        epsilon: float,
        adjacency: Adjacency,
        dimension: int,
        most: int,
        settings: Lattice | None = None,
    ) -> "Halving":
        """Plans the nodes.

        **Arguments:** as of `kngjax.QuantileProcess`. `settings`: of the lattice, None for the finest that serves.

        Raises ValueError for what no lattice serves, in words.
        """
        depths = tree_of([exactly(float(level), "levels") for level in levels])
        mechanisms = {
            node.index: KNG(
                QuantileLoss(float(node.relative)),
                bounds if node.depth == 0 else bounds.over_groups(len(nodes)),
                domain,
                budget_of(node.depth, len(depths), epsilon, adjacency),
                adjacency_of(node.depth, adjacency),
                allow_large_epsilon=True,
            )
            for nodes in depths
            for node in nodes
        }
        ordered = tuple(mechanisms[index] for index in range(len(mechanisms)))
        given = dataclasses.replace(settings or Lattice(), max_records=most)
        # One lattice for all levels, the coarsest: so that a curve is a point of the region beside it.
        digits = [given.plan(mechanism, dimension, most).digits for mechanism in ordered]
        data, theta = (min(each) for each in zip(*digits, strict=True))
        made = dataclasses.replace(given, data_digits=data, theta_digits=theta)
        plans = tuple(made.plan(mechanism, dimension, most) for mechanism in ordered)
        with float64():
            vertices = vertices_of(bounds.feature_blocks(dimension))
        return cls(depths, ordered, made, plans, vertices, dimension, most)

    @property
    def guarantee(self) -> Guarantee:
        """States the guarantee of all curves: depths compose, and the nodes of one depth are in parallel."""
        return Guarantee.composed([self.of_depth(nodes) for nodes in self.depths])

    def of_depth(self, nodes: tuple[Node, ...]) -> Guarantee:
        """States the guarantee of the curves of one depth, given those before."""
        first, *others = nodes
        adjacency = self.first.adjacency
        if first.depth == 0:
            return self.mechanisms[first.index].guarantee
        together = in_parallel([self.mechanisms[node.index].guarantee for node in (first, *others)], shared=True)
        return together.to_replace() if adjacency is Adjacency.REPLACE else together

    @property
    def sensitivity(self) -> Sensitivity:
        """States the sensitivity of each node's score in its own norm, and how the nodes share ε."""
        bounds, adjacency = self.first.bounds, self.first.adjacency
        said = (_OF_PERSONS if bounds.of_persons else _DERIVATIONS)[adjacency]
        return Sensitivity(1.0, said.format(depths=len(self.depths), unit=bounds.protects))

    def noise(self, node: Node) -> float:
        """Returns the deviation of the noise on a node's number of records below its curve, if Θ does not bind.

        K-norm noise of density ∝ exp(-ε'/2·max_j |z_j|/w_j) has w_j·(2/ε')√((d + 1)(d + 2)/3) in each coordinate.
        """
        mechanism, d = self.mechanisms[node.index], self.dimension
        (change,) = _changes([float(node.relative)], mechanism)
        return change * 2.0 / float(mechanism.epsilon) * math.sqrt((d + 1) * (d + 2) / 3.0)

    def whole_noises(self) -> dict[int, float]:
        """Returns the deviation of each node's noise with that of its neighbours: R = Z + t·R_above + (1 - t)·R_below.

        The records of a node lie between two curves. Noise of the upper curve adds records, of which the part t should
        lie below the node's own curve; noise of the lower curve takes records away.
        """
        size = len(self.mechanisms)
        shares: dict[int | None, np.ndarray] = {None: np.zeros(size)}
        for node in self._nodes:
            own = self.noise(node) * np.eye(size)[node.index]
            t = float(node.relative)
            shares[node.index] = own + t * shares[node.above] + (1.0 - t) * shares[node.below]
        return {index: float(np.linalg.norm(row)) for index, row in shares.items() if index is not None}

    def stand_ins(self, levels: Any) -> list[KNG]:
        """Makes for previews, at each level, a KNG of all records with the noise of that curve; none of these is drawn.

        Its rate is ε'w(τ)/w(t) for the noise of the curve's own node, less for what it has from the curves beside it.
        Noise of θ is H^{-1} times that of the score, and H at a curve is the same of the records about it and of all.
        """
        whole, found = self.whole_noises(), {}
        for node in self._nodes:
            mechanism, level = self.mechanisms[node.index], levels[node.index]
            own, of_level = _changes([float(node.relative), level], mechanism)
            epsilon = float(mechanism.epsilon) * of_level / own * self.noise(node) / whole[node.index]
            given = mechanism.bounds, mechanism.domain, epsilon, mechanism.adjacency
            found[node.index] = KNG(QuantileLoss(level), *given, allow_large_epsilon=True)
        return [found[index] for index in range(len(found))]

    @property
    def noises(self) -> list[float]:
        """Returns the noise of each level, in increasing order of the levels."""
        return [self.noise(node) for node in self._in_order]

    @property
    def _in_order(self) -> list[Node]:
        """Lists the nodes, in increasing order of their levels."""
        return sorted(self._nodes, key=lambda node: node.index)

    @property
    def _nodes(self) -> list[Node]:
        return [node for nodes in self.depths for node in nodes]

    def sampler(self, levels: Any) -> dict[str, Any]:
        """Describes the draw for a certificate, JSON-ready: with mechanism, price and assurance of each curve."""
        parts = [
            {
                "level": levels[node.index],
                "depth": node.depth,
                "between": [None if index is None else levels[index] for index in (node.below, node.above)],
                "relative_level": float(node.relative),
                "mechanism": "KNG with QuantileLoss",
                "adjacency": str(self.mechanisms[node.index].adjacency),
                "epsilon": float(self.mechanisms[node.index].epsilon),
                "assurance": PROVED,
            }
            for node in self._in_order
        ]
        return {**describe(self.settings), "parts": parts}

    @property
    def first(self) -> KNG:
        """Returns the mechanism of the first curve, which is of all records and decides which are admitted."""
        return self.mechanisms[self.depths[0][0].index]

    def prepare(self, X: Any, y: Any, *, dither_key: Any = None) -> WholeRecords:
        """Validates and clips records, and rounds them to the lattice, each by itself. Private.

        Raises RuntimeError for more than `most` of them.
        """
        return prepared(self.first, X, y, self.plans[0], self.most, dither_key)

    def members(self, node: Node, records: WholeRecords, curves: Curves) -> WholeRecords:
        """Selects this node's records: those with as many drawn curves below y as lie below the node. Private.

        Whatever the curves are, a record is in one node of a depth at most; rows of a person may be in several.
        """
        places = np.zeros(len(records.y), np.int64)
        for nodes in self.depths[: node.depth]:
            for earlier in nodes:
                places += records.are_above(curves[earlier.index])
        return records.at(places == node.rank)

    def problem(self, node: Node, members: WholeRecords) -> Problem:
        """Returns the problem of this node's records on the lattice. Private."""
        mechanism, plan = self.mechanisms[node.index], self.plans[node.index]
        return Problem(check_score(mechanism, members, plan), plan.domain, rate_of(mechanism))

    def region(self, node: Node, curves: Curves) -> CurveRegion | None:
        """Returns the part of Θ between neighbouring curves, on the polytope of the public bounds; None for all."""
        if node.below is None and node.above is None:
            return None
        beside = (None if index is None else curves[index] for index in (node.below, node.above))
        return CurveRegion(self.vertices, self.plans[0].domain.exponents, *beside)

    def envelope(self, node: Node, records: WholeRecords, curves: Curves) -> LatticeEnvelope:
        """Makes the envelope from which a curve is drawn. Private."""
        problem = self.problem(node, self.members(node, records, curves))
        return self.settings.envelope(problem, self.region(node, curves))

    def draw(self, records: WholeRecords, bits: Bits = secrets.randbits) -> Float[np.ndarray, "levels dimension"]:
        """Draws all curves, in increasing order of their levels; no draw is given up.

        **Arguments:** `bits`: fair and independent; those of the operating system for whatever is published.
        """
        curves, domain = self.draw_points(records, bits), self.plans[0].domain
        return np.array([domain.values(curves[index]) for index in range(len(curves))])

    def draw_points(self, records: WholeRecords, bits: Bits) -> Curves:
        """Draws all curves as points of the lattice, by the index of their node."""
        curves: dict[int, np.ndarray] = {}
        with precision(DEFAULT_DIGITS):
            for nodes in self.depths:
                curves.update({node.index: self.envelope(node, records, curves).draw(bits) for node in nodes})
        return curves


def _changes(levels: list[float], mechanism: KNG) -> list[float]:
    """Bounds the change of a score at each level by one record, over the size of its features."""
    with float64():
        return np.asarray(gradients.quantile_changes(np.array(levels), mechanism.adjacency)).tolist()


def adjacency_of(depth: int, adjacency: Adjacency) -> Adjacency:
    """Returns the adjacency for a node: below the first depth its number of records is private."""
    return adjacency if depth == 0 else Adjacency.ADD_REMOVE


def budget_of(depth: int, depths: int, epsilon: float, adjacency: Adjacency) -> float:
    """Returns ε of each node at a depth: ε/L, or half of it where an exchanged record may change two; rounded down."""
    share = exactly(float(epsilon)) / depths
    return inward(share if depth == 0 or adjacency is Adjacency.ADD_REMOVE else share / 2)


_DERIVATIONS = {
    Adjacency.ADD_REMOVE: (
        "each curve is KNG, in the norm in which its own score has sensitivity 1, of the records between the curves "
        "drawn before; one record more or less changes one node of each of the {depths} depths, at epsilon/{depths}."
    ),
    Adjacency.REPLACE: (
        "each curve is KNG, in the norm in which its own score has sensitivity 1, of the records between the curves "
        "drawn before. The first one costs epsilon/{depths}; at each other of the {depths} depths an exchanged record "
        "leaves one node and enters another, or the same one, at half of epsilon/{depths} each."
    ),
}
_SHARED = (
    "each curve is KNG, in the norm in which its own score has sensitivity 1, of the rows between the curves drawn "
    "before, times their weights; the rows of one {unit} may be in several nodes of a depth, and their weights "
    "add up to one vote at most over these. "
)
_OF_PERSONS = {
    Adjacency.ADD_REMOVE: _SHARED
    + "One {unit} more or less changes the nodes of each of the {depths} depths by shares of epsilon/{depths}.",
    Adjacency.REPLACE: _SHARED
    + "The first one costs epsilon/{depths}; at each other of the {depths} depths an exchanged {unit} leaves nodes and "
    "enters nodes, by shares of half of epsilon/{depths} each.",
}
