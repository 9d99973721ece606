"""Audits of plans of several releases: sums at a released value replayed on a neighbour, and all parts told apart.

What a plan releases is drawn here from bits that are given, by the ways that releases take, so that an audit can be
repeated.
"""

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from audits.replay import Replay
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.geometry.blocks import ScaledBlocks
from kngjax.inference.interval_plans import RegressionPlan
from kngjax.inference.with_intervals import WithIntervals
from kngjax.releases.release import Release, certify

Pair = tuple[Any, Any]
Bits = Callable[[int], int]


def replayed_sums(plan: WithIntervals, first: Pair, second: Pair, *, seed: int = 0, num_points: int = 40) -> Replay:
    """By how much the sums of a plan differ on two neighbours at their largest, over what their noise hides.

    Of H and of the variances it is ‖T(θ) - T'(θ)‖ in the norm of the noise, over the ε that its certificate says: at
    most 1, whatever θ̃ is released. Both data sets go the way of a release, through validation, clipping and exact
    sums, at θ drawn evenly from the domain, and at its corners. Directions of variances follow from an H that was
    drawn of the first.

    **Arguments:** `first`, `second`: pairs (X, y), neighbours by the mechanism's adjacency, made up. Raises TypeError
    for a plan without such sums.
    """
    making, audited = _making(plan, first), _Replayed(plan, first)
    generator = np.random.default_rng(seed)
    middle, half = making.mechanism.noise.typical_values(making.dimension)
    places = np.vstack([generator.uniform(-1.0, 1.0, (num_points, making.dimension)), np.ones(making.dimension)])
    places = np.vstack([places, -places[-1], np.zeros(making.dimension)])
    bits, ratios = random.Random(seed).getrandbits, []
    for theta in middle + half * places:
        parts = [audited.released(0, theta)]
        for place, summing in enumerate(audited.later):
            is_last = place == len(audited.later) - 1
            columns = making.columns(parts)
            one, other = (summing.intake.exact_sums(columns(pair)[0]).moment for pair in (first, second))
            ratios.append(_length(summing, (one - other).astype(float)) / making.epsilons[is_last])
            if not is_last:
                way = audited.way(summing)
                parts.append(audited.released(1, way.draw_alone(way.prepare(columns(first)[0], None), bits)))
    return Replay(max(ratios), len(places))


def _length(summing: Any, moves: Float[np.ndarray, " columns"]) -> float:
    """In units of the noise, of density proportional to e to the power of minus this length."""
    noise = summing.noise_in_fractions(len(moves), 1)
    shares = moves / np.array([float(weight) for weight in noise.weights])
    blocks = [(block.kind, block.columns) for block in noise.blocks] if isinstance(noise, ScaledBlocks) else []
    norms = [] if blocks else [np.abs(shares).max()]
    for kind, columns in blocks:
        above, below = (np.maximum(sign * shares[list(columns)], 0.0).sum() for sign in (1.0, -1.0))
        norms.append(max(above, below) if kind == "exchange" else above + below)
    return float(max(norms)) / float(noise.scale_squared) ** 0.5


def black_box_of_plan(
    plan: WithIntervals,
    first: Pair,
    second: Pair,
    *,
    seed: int = 0,
    num_draws: int = 2000,
    confidence: float = 0.999,
) -> tuple[float, float]:
    """A lower bound on ε of all that a plan releases together, and what is claimed of its mechanism.

    The attack is that of `kngjax.audit.black_box` on the numbers of all parts. The claim is the guarantee of the plan's
    mechanism at its whole ε: whatever the plan divides, it may not cost more.

    **Arguments:** as of `black_box`. `first`, `second`: pairs (X, y) of few records, for draws are made one by one.
    """
    bits = random.Random(seed).getrandbits
    one, other = (np.array(list(_draws(plan, pair, num_draws, bits))) for pair in (first, second))
    return epsilon_lower_bound(one, other, 0.0, confidence), plan.mechanism.guarantee.at(delta=0.0)


def _making(plan: WithIntervals, pair: Pair) -> RegressionPlan:
    making = plan.making(plan.adjacency.public_count(len(pair[1])))
    if not isinstance(making, RegressionPlan):
        raise TypeError("the plan has no sums at a released value to replay")
    return making


class _Replayed:
    """Draws the parts of a plan one after another, each given those before, from given bits."""

    def __init__(self, plan: WithIntervals, pair: Pair):
        self.making, self._pair = _making(plan, pair), pair
        self._ways: dict[int, Any] = {}
        self.later = self.making.later
        count = plan.adjacency.public_count(len(pair[1]))
        self._count = count
        self._certificates = [certify(self.making.mechanism, *pair)]
        for one in self.later:
            made = certify(one, np.zeros((len(pair[1]), one.dimension)))
            self._certificates.append(dataclasses.replace(made, num_records=count))

    def released(self, place: int, value: Float[np.ndarray, " numbers"]) -> Release:
        """Makes a release of these numbers."""
        return Release._of(np.asarray(value, np.float64), self._certificates[place])

    def way(self, summing: Any) -> Any:
        """Returns how this sum is drawn."""
        if id(summing) not in self._ways:
            self._ways[id(summing)] = proved_draw(summing, Schema(summing.dimension, self._count, None))
        return self._ways[id(summing)]

    def draws(self, number: int, bits: Bits) -> Iterator[Float[np.ndarray, " numbers"]]:
        """All numbers of all parts."""
        way = proved_draw(self.making.mechanism, self.making.mechanism.intake.check_schema(*self._pair))
        if way is None:
            raise TypeError(f"{type(self.making.mechanism).__name__} is not drawn on a grid of these records")
        data = way.prepare(*self._pair)
        for _ in range(number):
            parts = [self.released(0, way.draw_alone(data, bits))]
            for place, summing in enumerate(self.later):
                columns = self.making.columns(parts)(self._pair)[0]
                drawing = self.way(summing)
                parts.append(self.released(place + 1, drawing.draw_alone(drawing.prepare(columns, None), bits)))
            yield np.concatenate([part.value for part in parts])


def _draws(plan: WithIntervals, pair: Pair, number: int, bits: Bits) -> Iterator[Float[np.ndarray, " numbers"]]:
    return _Replayed(plan, pair).draws(number, bits)
