"""The black-box audit of curves by halving: all curves of two neighbouring data sets are told apart by draws alone."""

import dataclasses
import random
from collections.abc import Hashable

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.black_box import check_neighbours, epsilon_lower_bound, log_ratio_bound
from kngjax.data.bounds import Bounds
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.lattice.problems import WholeRecords
from kngjax.geometry.domains import Box
from kngjax.releases.curves.halving import Curves, Halving
from kngjax.releases.curves.levels import Node

# Of k coordinates, none with few values, each is cut into 256^(1/k) parts: about so many cells, or 2^k of k > 8.
_CELLS = 256
# Numbers of which a coordinate takes no more are counted one by one.
_FEW_VALUES = 64

Draws = Float[np.ndarray, "draws dimension"]


def black_box_of_process(
    made: Halving, first: tuple, second: tuple, *, seed: int = 0, num_draws: int = 2000, confidence: float = 0.999
) -> tuple[float, float]:
    """Bounds ε of all that a process releases from below, by log(P(A)/Q(A)) of a set A of outcomes; tells the claim.

    There are two attacks, that of `kngjax.audit.black_box` and that of `bound_by_cells`, and they share 1 - confidence:
    half of the draws choose A, the other half bounds P(A) and Q(A) (Clopper and Pearson). Each is a whole exact draw on
    the lattice, as of a release.

    **Arguments:** `made`: how curves are drawn. `first`, `second`: pairs (X, y) of few records, neighbours by the
    adjacency, made up. `num_draws`: for each data set. `confidence`: the probability, over draws, that ε is at least
    the bound.

    Raises ValueError for data sets that, clipped, are no neighbours.
    """
    without_dither = eqx.tree_at(lambda first: first.bounds, made.first, made.first.bounds.without_dither())
    check_neighbours(
        without_dither.intake.records(*first), without_dither.intake.records(*second), made.guarantee.adjacency
    )
    draws = []
    for side, pair in enumerate((first, second)):
        bits, kept, records = random.Random(f"{seed} {side}").getrandbits, keeping(made), made.prepare(*pair)
        draws.append(np.array([kept.draw(records, bits).reshape(-1) for _ in range(num_draws)]))
    each = (1.0 + confidence) / 2.0
    one, other = draws
    return max(epsilon_lower_bound(one, other, 0.0, each), bound_by_cells(one, other, each)), made.guarantee.epsilon


def worst_pair() -> tuple[Halving, tuple, tuple]:
    """A process of numbers on [0, 1], and neighbours that are told apart better than others.

    They were found among those of few records, on a coarse lattice, by enumerated laws: a record more at .1 beside .9.
    """
    numbers = np.array([0.1, 0.9])
    return process_of_numbers(6.0), (None, numbers), (None, numbers[1:])


def process_of_numbers(epsilon: float, adjacency: Adjacency = Adjacency.ADD_REMOVE, most: int = 64) -> Halving:
    """Curves of numbers on [0, 1] that are drawn quickly, on a coarse lattice.

    **Arguments:** `epsilon`: in nats. `most`: a number that n does not exceed.
    """
    # Boxes are halved until hardly a proposal is rejected: many draws of few records are quicker so.
    coarse = Lattice(data_digits=4, theta_digits=2, expected_proposals=1.5)
    return Halving.of((0.25, 0.5, 0.75), Bounds(y=(0.0, 1.0)), Box(0.0, 1.0), epsilon, adjacency, 1, most, coarse)


def keeping(made: Halving) -> Halving:
    """Makes a process that keeps every envelope that it draws from, and so the records: for data sets that are made up.

    Of few records on a coarse lattice there are few envelopes, and many draws are quicker so. An envelope has no state
    that a draw changes: with the same bits it draws what a new one of the same records draws.

    **Arguments:** `made`: how curves are drawn.
    """
    kept: dict[Hashable, LatticeEnvelope] = {}

    def envelope(node: Node, records: WholeRecords, curves: Curves) -> LatticeEnvelope:
        beside = (None if index is None else curves[index].tobytes() for index in (node.below, node.above))
        members = made.members(node, records, curves)
        name = (node.index, members.x.tobytes(), members.y.tobytes(), *beside)
        if name not in kept:
            kept[name] = made.envelope(node, records, curves)
        return kept[name]

    copy = dataclasses.replace(made)
    # It is frozen.
    object.__setattr__(copy, "envelope", envelope)
    return copy


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the space of outcomes, by cuts of each coordinate: at its values where it has few, else at quantiles.

    All cells without a training draw are taken as one: there may be 65^k of k coordinates.

    **Arguments:** `cuts`: of each coordinate, in increasing order; a cell has its lower end. `known`: of the cells that
    have training draws how many cuts are at most as large as each coordinate, in lexicographic order.
    """

    cuts: tuple[Float[np.ndarray, " cuts"], ...]
    known: Int[np.ndarray, "cells dimension"]

    @classmethod
    def of(cls, draws: Draws) -> "Cells":
        """**Arguments:** `draws`: that choose the cuts, and are not those that a bound is computed of."""
        parts = max(2, round(_CELLS ** (1.0 / draws.shape[1])))
        cuts = []
        for column in draws.T:
            values = np.unique(column)
            few = len(values) <= _FEW_VALUES
            cuts.append(values if few else np.unique(np.quantile(column, np.arange(1, parts) / parts)))
        return cls(tuple(cuts), np.unique(_places(cuts, draws), axis=0))

    def counts(self, draws: Draws) -> Int[np.ndarray, " cells_and_rest"]:
        """How many of the draws are in each known cell, and at last how many are in none of them."""
        number = len(self.known)
        rows = np.concatenate([self.known, _places(self.cuts, draws)])
        distinct, rows_of = np.unique(rows, axis=0, return_inverse=True)
        cells = np.full(len(distinct), number)
        cells[rows_of.ravel()[:number]] = np.arange(number)
        return np.bincount(cells[rows_of.ravel()[number:]], minlength=number + 1)


def bound_by_cells(first: Draws, second: Draws, confidence: float) -> float:
    """max log(P(A)/Q(A)) over both orders of two laws, P(A) bounded from below and Q(A) from above, for a union A.

    From independent draws. Cells are put in the order of the ratio of their counts in the first half of the draws, and
    A is made of as many of them as bound ε best there; the second half bounds P(A) and Q(A) (Clopper and Pearson).

    **Arguments:** `confidence`: the probability, over draws, that ε is at least the bound; four confidence bounds share
    the rest.
    """
    half = min(len(first), len(second)) // 2
    cells = Cells.of(np.concatenate([first[:half], second[:half]]))
    trained = [cells.counts(one[:half]) for one in (first, second)]
    tested = [cells.counts(one[half:]) for one in (first, second)]
    risk, bounds = (1.0 - confidence) / 4.0, [0.0]
    for order in (0, 1):
        named, other = trained[order], trained[1 - order]
        places = np.argsort((other + 0.5) / (named + 0.5), kind="stable")
        found = log_ratio_bound(np.cumsum(named[places]), half, np.cumsum(other[places]), half, risk)
        chosen = places[: int(np.argmax(found)) + 1]
        named, other = tested[order], tested[1 - order]
        counts = (
            named[chosen].sum(keepdims=True),
            int(named.sum()),
            other[chosen].sum(keepdims=True),
            int(other.sum()),
        )
        bounds.append(float(log_ratio_bound(*counts, risk)[0]))
    return max(bounds)


def _places(cuts, draws: Draws) -> Int[np.ndarray, "draws dimension"]:
    """By coordinate how many cuts are at most as large."""
    columns = [np.searchsorted(ends, column, "right") for ends, column in zip(cuts, draws.T, strict=True)]
    return np.stack(columns, axis=1)
