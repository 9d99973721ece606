"""By how much one record can change a score on the lattice: in fractions, from the rounded bounds and the lattice of Θ.

These are the suprema of `kngjax.sensitivity.gradients` over the records and parameters that a lattice has. Scores are
divided by them, so they may not be too small by anything: float64 loses all digits where the ends of an interval
cancel, as those of x'θ - y do for Θ and y far from 0. Nothing is rounded here but the square root of the l2 ball, which
is rounded up.

With s ∈ [a, b], x_j ∈ [l_j, u_j] and an absolute norm, ‖s·x - s'·x'‖ is convex in each of s, s', x_j, x'_j by itself,
hence largest where all of them are ends, and for given s and s' the coordinates are largest one by one:

    replace:     max over s, s' ∈ {a, b} of ‖v‖,  v_j = max |s·x - s'·x'| over x, x' ∈ {l_j, u_j}
    add_remove:  max over s ∈ {a, b} of ‖v‖,      v_j = max |s·x| over x ∈ {l_j, u_j}

The loss ρ is convex in the residual r and least at r = 0, so on [r_l, r_u] it is largest at an end and least at the
number nearest to 0; the squared distance likewise, coordinate by coordinate.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from kngjax.accounting.guarantees import Adjacency
from kngjax.geometry.abstract_norms import NormInFractions
from kngjax.losses.base import AbstractLoss
from kngjax.releases.lattice.units import DomainLattice, Interval, scale

# Binary digits of a square root.
_ROOT_BITS = 64


class Ranges(NamedTuple):
    """What records and parameters of a lattice lie in, exactly. Public.

    **Arguments:** `features`: [l_j, u_j], the intercept's [1, 1] first. `response`: [y_l, y_u], or None where nothing
    bounds it. `domain`: Θ.
    """

    features: list[Interval]
    response: Interval | None
    domain: DomainLattice


def kind_of(loss: AbstractLoss) -> str:
    """Which of the losses it is that whole numbers hold."""
    assert loss.whole_score is not None
    return loss.whole_score.kind


def level(loss: AbstractLoss) -> Fraction:
    """τ = N/D of a check loss."""
    assert loss.whole_score is not None
    return loss.whole_score.level


def predictor_interval(ranges: Ranges) -> Interval:
    """[p, q] that contains every x'θ: its least and largest for a box, Hölder's ± r·max |x_j| or ± r·|x| for a ball."""
    domain = ranges.domain
    if domain.radius is None:
        products = [
            [x * theta for x in feature for theta in side]
            for feature, side in zip(ranges.features, domain.intervals, strict=True)
        ]
        return sum(map(min, products), Fraction(0)), sum(map(max, products), Fraction(0))
    sizes = [max(abs(lower), abs(upper)) for lower, upper in ranges.features]
    radius = domain.radius * scale(min(domain.exponents)) ** domain.power
    reach = radius * max(sizes) if domain.power == 1 else root_upward(radius * sum(size**2 for size in sizes))
    return -reach, reach


def gradient_changes(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> list[Fraction]:
    """w: the most that coordinate j of the gradient changes by between neighbours, one a coefficient."""
    return [max(sizes) for sizes in zip(*_changes(loss, ranges, adjacency), strict=True)]


def gradient_sensitivity(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency, norm: NormInFractions) -> Fraction:
    """Δ: the most that the gradient changes by in this norm."""
    return max(norm(sizes) for sizes in _changes(loss, ranges, adjacency))


def value_sensitivity(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> Fraction:
    """The range of one record's loss (replace), or half of it (add_remove), where constants cancel."""
    if kind_of(loss) == "distances":
        differences = _differences(ranges)
        most = sum((max(end**2 for end in ends) for ends in differences), Fraction(0)) / 2
        least = sum((_nearest(ends) ** 2 for ends in differences), Fraction(0)) / 2
    else:
        assert ranges.response is not None
        (first, last), (lower, upper) = predictor_interval(ranges), ranges.response
        residuals = lower - last, upper - first
        most, least = max(_value(loss, end) for end in residuals), _value(loss, _nearest(residuals))
    return (most - least) / (1 if adjacency is Adjacency.REPLACE else 2)


def root_upward(value: Fraction) -> Fraction:
    """At least √value, by a relative excess below 2^-63."""
    if value == 0:
        return value
    # So that value·4^shift has 128 binary digits before the point.
    shift = max(0, _ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    whole = math.ceil(value * 4**shift)
    return Fraction(math.isqrt(whole - 1) + 1, 2**shift)


def _changes(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> list[list[Fraction]]:
    """Vectors v ≥ 0: no change of the gradient is longer than the longest of them, in any absolute norm."""
    exchange = adjacency is Adjacency.REPLACE
    if kind_of(loss) == "distances":
        # θ - x: exchanging a record takes θ out.
        if exchange:
            return [[upper - lower for lower, upper in ranges.features]]
        return [[max(abs(end) for end in ends) for ends in _differences(ranges)]]
    scores = _score_interval(loss, ranges)
    if exchange:
        return [
            [max(abs(s * x - other * z) for x in ends for z in ends) for ends in ranges.features]
            for s in scores
            for other in scores
        ]
    return [[max(abs(s * x) for x in ends) for ends in ranges.features] for s in scores]


def _score_interval(loss: AbstractLoss, ranges: Ranges) -> Interval:
    """[a, b] that contains the score s of every record: a gradient is s·x."""
    if kind_of(loss) == "check":
        tau = level(loss)
        return -tau, 1 - tau
    assert ranges.response is not None
    (first, last), (lower, upper) = predictor_interval(ranges), ranges.response
    return first - upper, last - lower


def _differences(ranges: Ranges) -> list[Interval]:
    """The least and the largest θ_j - x_j, over the smallest box around Θ."""
    pairs = zip(ranges.domain.intervals, ranges.features, strict=True)
    return [(first - upper, last - lower) for (first, last), (lower, upper) in pairs]


def _value(loss: AbstractLoss, residual: Fraction) -> Fraction:
    if kind_of(loss) == "check":
        return residual * (level(loss) - (residual <= 0))
    return residual**2 / 2


def _nearest(ends: Interval) -> Fraction:
    """Their interval's number nearest to 0."""
    return min(max(Fraction(0), ends[0]), ends[1])
