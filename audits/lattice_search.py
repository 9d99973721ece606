"""A search for neighbours that a lattice mechanism tells apart better than it may, where rounding is worst.

Settings are drawn at random: half of them with Θ and responses 2^40 to 2^48 widths away from 0, where float64 would
lose all digits of what one record can change, the others with every loss, norm and domain that `Lattice` serves; units
from tiny to huge, bounds that are no multiples of any spacing, 1 to 50 digits, levels of many decimals, both kinds of
neighbours. Among copies of some records one takes each corner of the bounds in turn, or is missing. The loss of each
pair is enclosed by balls, and its spread, which bounds the loss from above, is known exactly.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from audits.lattices import LatticeLaw, lattice_law, lattice_loss, lattice_spread
from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.data.bounds import Bounds
from kngjax.draws.lattice.lattice import Lattice
from kngjax.geometry import norms
from kngjax.geometry.domains import AbstractDomain, Box, L1Ball, L2Ball
from kngjax.losses.base import AbstractLoss
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.losses.quantile import QuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.exponential import ExponentialMechanism
from kngjax.mechanisms.kng import KNG

_EPSILONS = (0.3, 1.0, 4.7)


class LatticeSearch(NamedTuple):
    """Holds the findings of a search: all relative to ε, so that nothing may be above 1.

    **Arguments:** `pairs`: of neighbours that were compared. `loss`: the largest, an upper bound of it. `spread`: the
    largest, exactly. `refused`: settings for which there is no lattice, refused in words.
    """

    pairs: int
    loss: float
    spread: Fraction
    refused: int


def search_lattices(number: int, seed: int = 0) -> LatticeSearch:
    """The worst loss and spread of so many random settings, over ε.

    **Arguments:** `number`: of settings. `seed`: of what is tried; nothing that is released depends on it.
    """
    generator = np.random.default_rng(seed)
    pairs, loss, spread, refused = 0, 0.0, Fraction(0), 0
    for _ in range(number):
        mechanism, sampler = _setting(generator)
        epsilon = exactly(float(mechanism.epsilon))
        try:
            for records in _families(mechanism, generator):
                laws = [lattice_law(mechanism, mechanism.intake.records(*some), sampler) for some in records]
                for one, other in _pairs(mechanism, laws):
                    pairs, loss = pairs + 1, max(loss, lattice_loss(one, other)[1] / float(epsilon))
                    spread = max(spread, lattice_spread(one, other) / epsilon)
        except ValueError:
            refused += 1
    return LatticeSearch(pairs, loss, spread, refused)


def _setting(generator: np.random.Generator) -> tuple[AbstractDensityMechanism, Lattice]:
    """Everything public, at random."""
    choose: Any = generator.choice
    epsilon, adjacency = float(choose(_EPSILONS)), str(choose(["replace", "add_remove"]))
    width = 2.0 ** int(generator.integers(-30, 30))
    x = -generator.uniform(0.1, 1.0), generator.uniform(0.1, 1.0)
    theta_digits = int(choose([1, 2, 3]))
    if generator.random() < 0.5:
        # Corners of Θ on its lattice.
        far = float(choose([-1.0, 1.0])) * width * round(2.0 ** generator.uniform(40, 48))
        across = width * float(choose([0.125, 0.25, 0.5]))
        domain = Box([far, -across], [far + width, across])
        # What Θ and x reach: then one record's loss is the largest where another's is 0.
        reach = across * max(-x[0], x[1])
        y = (far - reach, far + width + reach)
        loss, sampler = _loss(generator, 1), Lattice(int(choose([46, 48, 50])), theta_digits)
    else:
        domain = _domain(generator, width)
        y = (-width * generator.uniform(0.1, 2.0), width * generator.uniform(0.1, 2.0))
        loss, digits = _loss(generator, 0), int(choose([1, 2, 3, 5, 20, 50]))
        sampler = Lattice(digits, theta_digits, max_records=2**12)
    bounds = Bounds(x=x, y=y)
    if not loss.has_response:
        bounds = Bounds(x={"first": y, "second": (x[0] * width, x[1] * width)}, intercept=False)
    if generator.random() < 0.5:
        return ExponentialMechanism(loss, bounds, domain, epsilon, adjacency), sampler
    norm = _NORMS[generator.integers(len(_NORMS))]
    return KNG(loss, bounds, domain, epsilon, adjacency, norm=norm), sampler


_NORMS = (None, norms.L1(), norms.LInf(), norms.WeightedLInf([0.3, 0.7]))


def _loss(generator: np.random.Generator, first: int) -> AbstractLoss:
    kind = generator.integers(first, 3)
    if kind == 0:
        tau = round(generator.uniform(0.02, 0.98), int(generator.integers(2, 6)))
        return QuantileLoss(float(tau))
    return SquaredLoss() if kind == 1 else SquaredDistanceLoss()


def _domain(generator: np.random.Generator, width: float) -> AbstractDomain:
    kind = generator.integers(3)
    if kind < 2:
        return [L1Ball, L2Ball][kind](width)
    across = width * generator.uniform(0.01, 1.0)
    return Box([-width * generator.uniform(0.1, 1.0), -across], [width * generator.uniform(0.1, 1.0), across * 0.9])


def _families(mechanism: AbstractDensityMechanism, generator: np.random.Generator) -> Iterator[list[Any]]:
    """Data sets that differ in their last record: each corner of the bounds, and under add_remove none."""
    bounds = mechanism.bounds
    sides = np.asarray(bounds.x_lower), np.asarray(bounds.x_upper)
    columns = zip(*(np.broadcast_to(side, (bounds.columns or 1,)) for side in sides), strict=True)
    ends = mechanism.loss.response_interval(bounds)
    responses = (0.0,) if ends is None else tuple(map(float, ends))
    corners = list(itertools.product(itertools.product(*columns), responses))
    last: list[Any] = [[corner] for corner in corners]
    if mechanism.adjacency is Adjacency.ADD_REMOVE:
        last.append([])
    for _ in range(2):
        common = [corners[place] for place in generator.integers(len(corners), size=2)]
        common = common * int(generator.choice([1, 30, 1000]))
        yield [_records(mechanism, [*common, *rows]) for rows in last]


def _pairs(mechanism: AbstractDensityMechanism, laws: list[LatticeLaw]) -> Iterator[tuple[LatticeLaw, LatticeLaw]]:
    if mechanism.adjacency is Adjacency.REPLACE:
        yield from itertools.combinations(laws, 2)
    else:
        yield from ((law, laws[-1]) for law in laws[:-1])


def _records(mechanism: AbstractDensityMechanism, rows: list[Any]) -> tuple[Any, Any]:
    X = np.array([x for x, _ in rows])
    return X, np.array([y for _, y in rows]) if mechanism.loss.has_response else None
