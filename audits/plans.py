"""Audits of plans of several releases: sums of a covariance replayed on a neighbour, and all parts told apart together.

What a plan releases is drawn here from bits that are given, by the ways that releases take, so that an audit can be
repeated.
"""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.guarantees import Guarantee
from kngjax.audit.black_box import epsilon_lower_bound
from kngjax.audit.replay import Replay
from kngjax.core.randomness import research_key
from kngjax.data.exact_sums import nearest
from kngjax.data.schema import Schema
from kngjax.draws.choice import proved_draw
from kngjax.inference import groups_of_records as groups
from kngjax.inference.groups_of_records import Groups
from kngjax.inference.interval_plans import SumsPlan
from kngjax.inference.with_intervals import WithIntervals

Pair = tuple[Any, Any]
Bits = Callable[[int], int]


def replayed_covariance(
    plan: WithIntervals, first: Pair, second: Pair, *, seed: int = 0, num_points: int = 40
) -> Replay:
    """By how much the sums of a covariance differ on two neighbours at their largest, over what their noise hides.

    With K-norm noise that is ‖T(θ) - T'(θ)‖_K over ε of the sums, with Gaussian noise its length in deviations over μ:
    at most 1, whatever θ̃ is released. Both data sets go the way of a release, through validation, clipping, and exact
    sums, at θ drawn evenly from the domain, and at its corners.

    **Arguments:** `first`, `second`: pairs (X, y), neighbours by the mechanism's adjacency, made up. Raises TypeError
    for a plan without sums.
    """
    pairs = first, second
    counts = [len(y) for _, y in pairs]
    making = plan.making(plan.adjacency.public_count(counts[0]))
    if not isinstance(making, SumsPlan):
        raise TypeError("groups have no sums to replay: audit them by audits.plans.black_box_of_plan")
    generator = np.random.default_rng(seed)
    middle, half = making.mechanism.noise.typical_values(making.dimension)
    places = np.vstack([generator.uniform(-1.0, 1.0, (num_points, making.dimension)), np.ones(making.dimension)])
    places = np.vstack([places, -places[-1], np.zeros(making.dimension)])
    both, summing = [_records(making, pair) for pair in pairs], making.summing
    lengths = []
    for theta in middle + half * places:
        columns = (making.covariance.columns(one, theta, making.curvature, plan.adjacency) for one in both)
        first_sums, second_sums = (summing.intake.exact_sums(one).moment for one in columns)
        lengths.append(_length(making, summing, nearest(first_sums - second_sums)))
    return Replay(max(lengths) / making.budget, len(places))


def _records(making: SumsPlan, pair: Pair) -> Any:
    return making.mechanism.intake.rows(*pair, dither_key=research_key(0))


def _length(making: SumsPlan, summing: Any, moves: Float[np.ndarray, " columns"]) -> float:
    """In units of the noise."""
    if making.covariance.is_gaussian:
        return float(np.linalg.norm(moves / summing.noise.deviations(len(moves), None)))
    noise = summing.noise_in_fractions(len(moves), 1)
    return float(np.max(np.abs(moves) / np.array([float(weight) for weight in noise.weights]))) / math.sqrt(
        noise.scale_squared
    )


def black_box_of_plan(
    plan: WithIntervals,
    first: Pair,
    second: Pair,
    *,
    seed: int = 0,
    num_draws: int = 2000,
    delta: float = 0.0,
    confidence: float = 0.999,
) -> tuple[float, float]:
    """A lower bound on ε at δ of all that a plan releases together, and what is claimed of its mechanism there.

    The attack is that of `kngjax.audit.black_box` on the numbers of all parts. The claim is the guarantee of the plan's
    mechanism at its whole ε, with Gaussian noise its ρ: whatever the plan divides, it may not cost more.

    **Arguments:** as of `black_box`. `first`, `second`: pairs (X, y) of few records, for draws are made one by one.
    """
    bits = random.Random(seed).getrandbits
    one, other = (np.array(list(_draws(plan, pair, num_draws, bits))) for pair in (first, second))
    claimed = plan.mechanism.guarantee
    if getattr(plan.covariance, "is_gaussian", False):
        assert claimed.exact_rho is not None
        claimed = Guarantee.zcdp(claimed.exact_rho, claimed.adjacency)
    return epsilon_lower_bound(one, other, delta, confidence), claimed.at(delta=delta)


def _draws(plan: WithIntervals, pair: Pair, number: int, bits: Bits) -> Any:
    """Draws all that a plan releases, number by number."""
    if isinstance(plan.covariance, Groups):
        yield from _draws_of_groups(plan, pair, number, bits)
        return
    count = plan.adjacency.public_count(len(pair[1]))
    making = plan.making(count)
    assert isinstance(making, SumsPlan)
    estimate, records, summing = _way(making.mechanism, pair), _records(making, pair), making.summing
    curvature, adjacency = making.curvature, making.mechanism.adjacency
    way = proved_draw(summing, Schema(summing.dimension, count, None))
    assert way is not None
    for _ in range(number):
        theta = estimate(bits)
        columns = making.covariance.columns(records, theta, curvature, adjacency)
        yield np.concatenate([theta, way.draw_alone(way.prepare(columns, None), bits)])


def _draws_of_groups(plan: WithIntervals, pair: Pair, number: int, bits: Bits) -> Any:
    """Draws the parts of groups, however small: that they are large is asked for accuracy alone."""
    ways: dict[bytes, Callable[[Bits], np.ndarray]] = {}
    for _ in range(number):
        parts, drawn = groups.split_records(*pair, plan.covariance.number or groups.FEWEST, plan.adjacency), []
        for part in parts:
            # Few records are divided in few ways.
            name = np.column_stack(part).tobytes()
            if name not in ways:
                ways[name] = _way(plan.mechanism, part)
            drawn.append(ways[name](bits))
        yield np.concatenate(drawn)


def _way(mechanism: Any, pair: Pair) -> Callable[[Bits], np.ndarray]:
    """Draws of the estimate, of records that are prepared once."""
    way = proved_draw(mechanism, mechanism.intake.check_schema(*pair))
    if way is None:
        raise TypeError(f"{type(mechanism).__name__} is not drawn on a grid of these records: take others")
    data = way.prepare(*pair)
    return lambda bits: way.draw_alone(data, bits)
