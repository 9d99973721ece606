"""The black-box audit of curves by halving: all curves of two neighbouring data sets are told apart by draws alone."""

import random

import equinox as eqx
import numpy as np

from audits.cells import bound_by_cells
from audits.kept_envelopes import keeping
from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.black_box import check_neighbours, epsilon_lower_bound
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import Box
from kngjax.releases.curves.halving import Halving
from kngjax.releases.lattice.lattice import Lattice


def black_box_of_process(
    made: Halving, first: tuple, second: tuple, *, seed: int = 0, num_draws: int = 2000, confidence: float = 0.999
) -> tuple[float, float]:
    """A lower bound on ε of all that a process releases, log(P(A)/Q(A)) of a set A of outcomes, and what is claimed.

    There are two attacks, that of `kngjax.audit.black_box` and that of `audits.cells`, and they share
    1 - confidence: half of the draws choose A, the other half bounds P(A) and Q(A) (Clopper and Pearson). Each is a
    whole exact draw on the lattice, as of a release.

    **Arguments:** `made`: how curves are drawn. `first`, `second`: pairs (X, y) of few records, neighbours by the
    adjacency, made up. `num_draws`: for each data set. `confidence`: the probability, over draws, that ε is at least
    the bound.

    Raises ValueError for data sets that, clipped, are no neighbours.
    """
    without_dither = eqx.tree_at(lambda first: first.bounds, made.first, made.first.bounds.without_dither())
    check_neighbours(without_dither.records(*first), without_dither.records(*second), made.guarantee.adjacency)
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
