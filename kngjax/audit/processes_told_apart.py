"""The black-box audit of quantile processes: all curves of two neighbouring data sets told apart, by draws alone."""

import random
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.black_box import check_neighbours, epsilon_lower_bound
from kngjax.audit.cells import bound_by_cells
from kngjax.audit.kept_envelopes import keeping
from kngjax.core.randomness import research_key
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import Box
from kngjax.releases.curves.halving import Halving
from kngjax.releases.curves.joint import Joint
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.releases.lattice.lattice import Lattice
from kngjax.samplers.chains.gradient_space import GradientSpace

# A chain of few records hardly moves by solutions of equations: most proposals come from the base measure.
FEW_RECORDS = GradientSpace(mixture=0.9)
# The share of a chain's kept draws that repeat the one before, beyond which they are not taken for independent.
_MOST_REPEATED = 1e-3

Draws = Float[np.ndarray, "draws numbers"]


def black_box_of_process(
    made: Halving | Joint | LocationScale,
    first: tuple,
    second: tuple,
    *,
    seed: int = 0,
    num_draws: int = 2000,
    confidence: float = 0.999,
    sampler: GradientSpace = FEW_RECORDS,
    thinning: int = 20,
) -> tuple[float, float]:
    """A lower bound on ε of all that a process releases, log(P(A)/Q(A)) of a set A of outcomes, and what is claimed.

    There are two attacks, that of `kngjax.audit.black_box` and that of `kngjax.audit.cells`, and they share
    1 - confidence: half of the draws choose A, the other half bounds P(A) and Q(A) (Clopper and Pearson), which takes
    independent draws. By halving, and as location and scale, each is a whole exact draw on the lattice, as of a
    release. Joint ones are every `thinning`-th position of one chain a data set, curves and T. Of an independence chain
    each step forgets the position with probability at least 1/W, W the largest of f/q with both normalised, so that
    what is left of it after k steps is at most (1 - 1/W)^k. W is not computed: the share of draws that repeat the one
    before, which is checked, is evidence of how much is left, and no bound of it. So of joint draws the confidence is
    up to what is left.

    **Arguments:** `made`: how curves are drawn, joint ones of smooth bins. `first`, `second`: pairs (X, y) of few
    records, neighbours by the adjacency, made up. `num_draws`: for each data set. `confidence`: the probability, over
    draws, that ε is at least the bound. `sampler`, `thinning`: of joint draws.

    Raises ValueError for data sets that, clipped, are no neighbours, and RuntimeError if more than one joint draw, and
    more than one in a thousand, repeats the one before.
    """
    without_dither = eqx.tree_at(lambda first: first.bounds, made.first, made.first.bounds.without_dither())
    check_neighbours(without_dither.records(*first), without_dither.records(*second), made.guarantee.adjacency)
    draws = _chain(made, sampler, num_draws, thinning) if isinstance(made, Joint) else _exact(made, num_draws)
    one, other = (draws(pair, seed, side) for side, pair in enumerate((first, second)))
    each = (1.0 + confidence) / 2.0
    bound = max(epsilon_lower_bound(one, other, 0.0, each), bound_by_cells(one, other, each))
    return bound, made.guarantee.epsilon


def worst_pairs() -> Iterator[tuple[str, Halving | Joint | LocationScale, tuple, tuple]]:
    """Of each order its name, a process of numbers on [0, 1], and neighbours that are told apart better than others.

    They were found among those of few records, on a coarse lattice by enumerated laws; joint ones by the law without
    smoothing, and among ten settings by draws: a record more at .1, at 1, and at .5 beside none.
    """

    def pair(*numbers: float) -> tuple[tuple, tuple]:
        return (None, np.array(numbers)), (None, np.array(numbers[1:]))

    yield "curves by halving", process_of_numbers("halving", 6.0), *pair(0.1, 0.9)
    located = process_of_numbers("location_scale", 6.0)
    yield "curves as location and scale", located, *pair(1.0, 0.0, 0.375, 0.375)
    yield "curves in one draw", process_of_numbers("joint", 2.0), *pair(0.5)


def process_of_numbers(
    order: str, epsilon: float, adjacency: Adjacency = Adjacency.ADD_REMOVE, most: int = 64
) -> Halving | Joint | LocationScale:
    """Curves of numbers on [0, 1] that are drawn quickly: on a coarse lattice, and joint ones of bins .05 wide.

    **Arguments:** `order`: "halving", "location_scale" or "joint". `epsilon`: in nats. `most`: a number that n does not
    exceed, of exact draws.
    """
    given = Bounds(y=(0.0, 1.0)), Box(0.0, 1.0), epsilon, adjacency, 1
    if order == "joint":
        return Joint.of((0.05, 0.2), *given, None, 0.05)
    # Boxes are halved until hardly a proposal is rejected: many draws of few records are quicker so.
    coarse = Lattice(data_digits=4, theta_digits=2, expected_proposals=1.5)
    if order == "halving":
        return Halving.of((0.25, 0.5, 0.75), *given, most, coarse)
    return LocationScale.of((0.3, 0.6), *given, most, coarse)


def _exact(made: Halving | LocationScale, number: int) -> Callable[[tuple, int, int], Draws]:
    def draws(pair: tuple, seed: int, side: int) -> Draws:
        bits, kept = random.Random(f"{seed} {side}").getrandbits, keeping(made)
        records = made.prepare(*pair)
        return np.array([kept.draw(records, bits).reshape(-1) for _ in range(number)])

    return draws


def _chain(joint: Joint, sampler: GradientSpace, number: int, thinning: int) -> Callable[[tuple, int, int], Draws]:
    def draws(pair: tuple, seed: int, side: int) -> Draws:
        key = jax.random.fold_in(research_key(seed), side)
        found = joint.draws(joint.prepare(*pair), sampler, key, number * thinning)
        curves = found.curves.reshape(number * thinning, -1)[thinning - 1 :: thinning]
        repeated = int(np.sum(np.all(curves[1:] == curves[:-1], axis=1)))
        if repeated > max(1, _MOST_REPEATED * len(curves)):
            raise RuntimeError(
                f"{repeated} of {len(curves)} draws repeat the one before, and a bound needs independent ones: name "
                "a larger thinning, or a sampler with more proposals from the base measure"
            )
        return np.concatenate([curves, found.totals[thinning - 1 :: thinning]], axis=1)

    return draws
