"""Bounds the change of a score by one record in fractions, for releases with every rounding in their proof.

These are the suprema of `kngjax.sensitivity.gradients` over records and parameters with fractions as bounds. Scores are
divided by them, so they must not be too small by any amount. Float64 would lose all digits where the ends of an
interval cancel, as for x'θ - y with Θ and y far from 0. Nothing is rounded here except square roots, which are rounded
up.

Changes of gradients s·x with s ∈ [a, b] and x_j ∈ [l_j, u_j] are those of `kngjax.sensitivity.record_facts`.

The loss ρ is convex in the residual r and least at r = 0, so on [r_l, r_u] it is largest at an end and least at the
number nearest to 0; the squared distance likewise, coordinate by coordinate.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from kngjax.accounting.guarantees import Adjacency
from kngjax.data.bounds import Bounds
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.losses.base import AbstractLoss
from kngjax.sensitivity import weighted
from kngjax.sensitivity.record_facts import Interval, changes_of_products, feature_intervals, response_interval


class Ranges(NamedTuple):
    """Holds the exact ranges in which records and parameters lie. Public.

    **Arguments:** `features`: [l_j, u_j], the intercept's [1, 1] first. `response`: [y_l, y_u], or None where nothing
    bounds it. `domain`: Θ. `weight`: W, the largest weight of a record; None where records have none.
    """

    features: list[Interval]
    response: Interval | None
    domain: Shape
    weight: Fraction | None = None

    @classmethod
    def of(cls, bounds: Bounds, shape: Shape) -> "Ranges":
        """Takes the ranges of bounds without a hull, and of Θ."""
        features = feature_intervals(bounds, len(shape.sides))
        return cls(features, response_interval(bounds), shape, weighted.largest_in_fractions(bounds))

    @property
    def residuals(self) -> Interval:
        """The least and the largest y - x'θ."""
        assert self.response is not None
        (first, last), (lower, upper) = self.domain.linear_interval(self.features), self.response
        return lower - last, upper - first


def kind_of(loss: AbstractLoss) -> str:
    """Names the kind of a loss that is computed in whole numbers."""
    assert loss.whole_score is not None
    return loss.whole_score.kind


def level(loss: AbstractLoss) -> Fraction:
    """τ = N/D of a check loss."""
    assert loss.whole_score is not None
    return loss.whole_score.level


def gradient_changes(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> list[Fraction]:
    """w: the most that coordinate j of the gradient changes by between neighbours, one a coefficient."""
    return [max(sizes) for sizes in zip(*change_vectors(loss, ranges, adjacency), strict=True)]


def gradient_sensitivity(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency, norm: ScaledNorm) -> Fraction:
    """Δ: the most that the gradient changes by in this norm."""
    return max(norm.in_fractions(sizes) for sizes in change_vectors(loss, ranges, adjacency))


def value_sensitivity(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> Fraction:
    """W times the range of one record's loss (replace), or half of it (add_remove), where constants cancel."""
    if kind_of(loss) == "distances":
        differences = _differences(ranges)
        most = sum((max(end**2 for end in ends) for ends in differences), Fraction(0)) / 2
        least = sum((_nearest(ends) ** 2 for ends in differences), Fraction(0)) / 2
    else:
        residuals = ranges.residuals
        most, least = max(_value(loss, end) for end in residuals), _value(loss, _nearest(residuals))
    return (ranges.weight or 1) * (most - least) / (1 if adjacency is Adjacency.REPLACE else 2)


def joint_quantile_sensitivity(levels: Sequence[Fraction], adjacency: Adjacency) -> Fraction:
    """Δ of the joint score of several quantiles, as `gradients.joint_quantile_sensitivity` proves it."""
    if adjacency is Adjacency.REPLACE:
        return Fraction(2)
    ends = (Fraction(0), *levels, Fraction(1))
    return 2 * (1 - min(high - low for low, high in itertools.pairwise(ends)))


def change_vectors(loss: AbstractLoss, ranges: Ranges, adjacency: Adjacency) -> list[list[Fraction]]:
    """Returns vectors v ≥ 0, the longest of which bounds every change of the gradient in any absolute norm."""
    if kind_of(loss) == "distances":
        weight, moves = ranges.weight or 1, [max(map(abs, ends)) for ends in _differences(ranges)]
        if adjacency is Adjacency.ADD_REMOVE:
            return [[weight * move for move in moves]]
        # θ - x: exchanging a record takes θ out, but for weights that differ.
        widths = [upper - lower for lower, upper in ranges.features]
        if ranges.weight is None:
            return [widths]
        return [[weight * max(width, move) for width, move in zip(widths, moves, strict=True)]]
    return changes_of_products(_score_interval(loss, ranges), ranges.features, adjacency)


def _score_interval(loss: AbstractLoss, ranges: Ranges) -> Interval:
    """[a, b] that contains the score s of every record, its weight included: a gradient is s·x."""
    if kind_of(loss) == "check":
        tau = level(loss)
        return weighted.of_weighted_in_fractions((-tau, 1 - tau), ranges.weight)
    least, most = ranges.residuals
    return weighted.of_weighted_in_fractions((-most, -least), ranges.weight)


def _differences(ranges: Ranges) -> list[Interval]:
    """The least and the largest θ_j - x_j, over the smallest box around Θ."""
    pairs = zip(ranges.domain.sides, ranges.features, strict=True)
    return [(first - upper, last - lower) for (first, last), (lower, upper) in pairs]


def _value(loss: AbstractLoss, residual: Fraction) -> Fraction:
    if kind_of(loss) == "check":
        return residual * (level(loss) - (residual <= 0))
    return residual**2 / 2


def _nearest(ends: Interval) -> Fraction:
    """Their interval's number nearest to 0."""
    return min(max(Fraction(0), ends[0]), ends[1])
