"""Bounds one record's change of the gradient in fractions, from bounds and domains without rounding.

With s ∈ [a, b], x_j ∈ [l_j, u_j] and an absolute norm, ‖s·x - s'·x'‖ is convex in each of s, s', x_j, x'_j by itself,
hence largest where all of them are ends, and for given s and s' the coordinates are largest one by one:

    replace:     max over s, s' ∈ {a, b} of ‖v‖,  v_j = max |s·x - s'·x'| over x, x' ∈ {l_j, u_j}
    add_remove:  max over s ∈ {a, b} of ‖v‖,      v_j = max |s·x| over x ∈ {l_j, u_j}

These are the suprema of `kngjax.sensitivity.gradients`.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from kngjax.accounting.guarantees import Adjacency
from kngjax.data.bounds import Bounds
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.base import AbstractPredictorLoss, AbstractVerifiedScore
from kngjax.sensitivity import weighted

Interval = tuple[Fraction, Fraction]


class RecordFacts(NamedTuple):
    """Holds proved facts about one record's gradient s·x and Hessian cxx', the weight included. Public.

    **Arguments:** `features`: [l_j, u_j] ∋ x_j, the intercept's [1, 1] first. `score`: [a, b] ∋ s. `curvature`: at
    least every c. `scores`: s itself without a weight, continued by tangents beyond Θ. `response`, `predictor`:
    intervals that contain y and x'θ; None where nothing bounds them. `weight`: W, None where records have no weights.
    """

    features: list[Interval]
    score: Interval
    curvature: Fraction
    scores: AbstractVerifiedScore
    response: Interval | None
    predictor: Interval | None
    weight: Fraction | None

    @classmethod
    def of(
        cls, loss: AbstractPredictorLoss, bounds: Bounds, domain: AbstractDomain | None, dimension: int
    ) -> "RecordFacts | None":
        """None for a hull, a domain without a simple shape, and a loss whose score is not verified or not bounded."""
        scores = loss.verified_score()
        if scores is None or bounds.hull is not None:
            return None
        features, response, predictor = feature_intervals(bounds, dimension), response_interval(bounds), None
        if domain is not None:
            shape = domain.exact_shape(dimension)
            if shape is None:
                return None
            predictor = shape.linear_interval(features)
            scores = scores.extended(predictor)
        score, curvature = scores.interval(predictor, response), scores.largest_slope(predictor)
        if score is None or curvature is None:
            return None
        largest = weighted.largest_in_fractions(bounds)
        score, curvature = weighted.of_weighted_in_fractions(score, largest), curvature * (largest or 1)
        return cls(features, score, curvature, scores, response, predictor, largest)

    def changes(self, adjacency: Adjacency) -> list[list[Fraction]]:
        """Returns vectors v ≥ 0, the longest of which bounds every change of the gradient in any absolute norm."""
        return changes_of_products(self.score, self.features, adjacency)

    @property
    def largest_square(self) -> Fraction:
        """Bounds |x|² from above."""
        return sum((max(lower**2, upper**2) for lower, upper in self.features), Fraction(0))


def changes_of_products(
    score: Sequence[Fraction], features: Sequence[Interval], adjacency: Adjacency
) -> list[list[Fraction]]:
    """The vectors v of this module's head, for gradients s·x: each pair of scores in one order, each end once."""
    scores, sides = list(dict.fromkeys(score)), [set(ends) for ends in features]
    if adjacency is Adjacency.REPLACE:
        return [
            [max(abs(s * x - other * z) for x in ends for z in ends) for ends in sides]
            for s, other in itertools.combinations_with_replacement(scores, 2)
        ]
    return [[max(abs(s * x) for x in ends) for ends in sides] for s in scores]


def gradient_noise(changes: list[list[Fraction]], norm: AbstractNorm | None, rate: Fraction) -> ScaledNorm | None:
    """Noise with density ∝ exp(-(rate/Δ)·‖z‖), Δ the longest of these changes; None for norms that have no such noise.

    Without a norm it is that of the smallest box about all of them, for which Δ = 1.
    """
    if norm is None:
        return ScaledNorm("maximum", tuple(max(sizes) for sizes in zip(*changes, strict=True)), 1 / rate**2)
    noises = [norm.noise_in_fractions(sizes, rate) for sizes in changes]
    return None if None in noises else max(filter(None, noises), key=lambda noise: noise.scale_squared)


def feature_intervals(bounds: Bounds, dimension: int) -> list[Interval]:
    """[l_j, u_j] of the box of features, the intercept's [1, 1] first."""
    return [(Fraction(lower), Fraction(upper)) for lower, upper in bounds.sides(dimension).T.tolist()]


def response_interval(bounds: Bounds) -> Interval | None:
    """[y_l, y_u]; None where nothing bounds the response."""
    if bounds.y_lower is None or bounds.y_upper is None:
        return None
    return Fraction(float(bounds.y_lower)), Fraction(float(bounds.y_upper))
