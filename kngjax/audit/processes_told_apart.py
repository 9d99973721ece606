"""The black-box audit of quantile processes: all curves of two neighbouring data sets told apart, by draws alone."""

import dataclasses
import random
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.audit.cells import bound_by_cells
from kngjax.core.randomness import research_key
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import Box
from kngjax.releases.curves.halving import Curves, Halving
from kngjax.releases.curves.joint import Joint
from kngjax.releases.curves.levels import Node
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.releases.lattice.envelope import Envelope
from kngjax.releases.lattice.lattice import Lattice
from kngjax.releases.lattice.problems import WholeRecords
from kngjax.samplers.chains.gradient_space import GradientSpace

# A chain of few records hardly moves by solutions of equations: most proposals come from the base measure.
FEW_RECORDS = GradientSpace(mixture=0.9)
# Kept draws of a chain that repeat the one before, beyond which they are not taken for independent.
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
    release. Joint ones are every `thinning`-th position of one chain a data set, curves and T: an independence chain,
    whose positions depend on one another only as long as no proposal is taken. So the bound holds for its law up to
    what is left of that, and for the density up to the chain's own error.

    **Arguments:** `made`: how curves are drawn, joint ones of smooth bins. `first`, `second`: pairs (X, y) of few
    records, neighbours by the adjacency, made up. `num_draws`: for each data set. `confidence`: the probability, over
    draws, that ε is at least the bound. `sampler`, `thinning`: of joint draws.

    Raises RuntimeError if more than one in a thousand joint draws repeats the one before.
    """
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
    given = Bounds(y=(0.0, 1.0)), Box(0.0, 1.0)
    rest = 6.0, Adjacency.ADD_REMOVE, 1
    # Boxes are halved until hardly a proposal is rejected: many draws of few records are quicker so.
    coarse = Lattice(data_digits=4, theta_digits=2, expected_proposals=1.5)

    def pair(*numbers: float) -> tuple[tuple, tuple]:
        return (None, np.array(numbers)), (None, np.array(numbers[1:]))

    yield "curves by halving", Halving.of((0.25, 0.5, 0.75), *given, *rest, 64, coarse), *pair(0.1, 0.9)
    located = LocationScale.of((0.3, 0.6), *given, *rest, 64, coarse)
    yield "curves as location and scale", located, *pair(1.0, 0.0, 0.375, 0.375)
    yield "curves in one draw", Joint.of((0.05, 0.2), *given, 2.0, *rest[1:], None, 0.05), *pair(0.5)


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
        repeated = np.mean(np.all(curves[1:] == curves[:-1], axis=1))
        if repeated > _MOST_REPEATED:
            raise RuntimeError(
                f"{100 * repeated:.2g}% of the draws repeat the one before, and a bound needs independent ones: name "
                "a larger thinning, or a sampler with more proposals from the base measure"
            )
        return np.concatenate([curves, found.totals[thinning - 1 :: thinning]], axis=1)

    return draws


def keeping(made: Halving | LocationScale) -> Any:
    """The same, which keeps every envelope that it draws from: of few records on a coarse lattice there are few."""
    kept: dict[Hashable, Envelope] = {}

    def asked(name: Hashable, make: Callable[[], Envelope]) -> Envelope:
        if name not in kept:
            kept[name] = make()
        return kept[name]

    if isinstance(made, Halving):

        def envelope(node: Node, records: WholeRecords, curves: Curves) -> Envelope:
            beside = (None if index is None else curves[index].tobytes() for index in (node.below, node.above))
            name = (node.index, *_name(made.members(node, records, curves)), *beside)
            return asked(name, lambda: made.envelope(node, records, curves))

        return _with(dataclasses.replace(made), envelope=envelope)

    def location_envelope(records: WholeRecords) -> Envelope:
        return asked(_name(records), lambda: made.location_envelope(records))

    def scale_envelope(records: WholeRecords, location: np.ndarray) -> Envelope:
        return asked((*_name(records), location.tobytes()), lambda: made.scale_envelope(records, location))

    copy = dataclasses.replace(made, quantiles=keeping(made.quantiles))
    return _with(copy, location_envelope=location_envelope, scale_envelope=scale_envelope)


def _with(copy: Any, **methods: Callable[..., Envelope]) -> Any:
    """Its own methods in place of those of its class; frozen as it is."""
    for name, method in methods.items():
        object.__setattr__(copy, name, method)
    return copy


def _name(records: WholeRecords) -> tuple[bytes, bytes]:
    return records.x.tobytes(), records.y.tobytes()
