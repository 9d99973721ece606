"""Rigorous audits of lattice mechanisms: the exact loss of a pair of neighbours, enclosed in balls."""

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from flint import arb, fmpq
from jaxtyping import Float, Shaped

from kngjax.core.balls import precision
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.records import Records
from kngjax.draws.lattice.lattice import Lattice, Problem
from kngjax.draws.lattice.units import DomainLattice
from kngjax.mechanisms.density import AbstractDensityMechanism

_MOST_POINTS = 2**20
_BITS = 128


@owner_only
class LatticeLaw(OwnerOnly):
    """P(k) ∝ exp(-rate·score_k), whole: of one data set of finite records, which may have none. Private.

    **Arguments:** `theta`: shape (points, d). `scores`: shape (points,), Python's whole numbers. `rate`: c.
    """

    theta: Float[np.ndarray, "points dimension"]
    scores: Shaped[np.ndarray, " points"]
    rate: Fraction

    @property
    def probabilities(self) -> Float[np.ndarray, " points"]:
        """P in float64."""
        masses = np.exp(-float(self.rate) * (self.scores - np.min(self.scores)).astype(float))
        return masses / np.sum(masses)


def lattice_law(mechanism: AbstractDensityMechanism, records: Records, sampler: Lattice) -> LatticeLaw:
    """The law that `Lattice` draws from, point by point; by the code that draws.

    **Arguments:** `records`: from `mechanism.intake.records`. `sampler`: with so few theta_digits that Θ has at most
    2^20 points; else ValueError.
    """
    problem = sampler.problem(mechanism, records)
    points = points_of(problem.domain)
    scores = np.array(scores_of(problem, points), object)
    return LatticeLaw(np.array([problem.domain.values(point) for point in points]), scores, problem.rate)


def points_of(domain: DomainLattice) -> list[np.ndarray]:
    """Lists all points of Θ; raises ValueError for more than 2^20."""
    sides = [range(int(low), int(high) + 1) for low, high in zip(domain.low, domain.high, strict=True)]
    if (number := math.prod(map(len, sides))) > _MOST_POINTS:
        raise ValueError(f"the lattice has {number} points, more than 2^20: give Lattice fewer theta_digits")
    every = (np.array(point) for point in itertools.product(*sides))
    return [point for point in every if domain.contains(point)]


def scores_of(problem: Problem, points: Iterable[np.ndarray]) -> list[int]:
    """Computes the score of each point, by the code that draws. Private."""
    box = problem.score.whole(problem.domain.low, problem.domain.high)
    return [problem.score.at(point, box.runs[0], box.sums[0]) for point in points]


def lattice_loss(first: LatticeLaw, second: LatticeLaw) -> tuple[float, float]:
    """[a, b] that contains max_k |log P_D(k) - log P_D'(k)|, the privacy loss of this pair, whatever float64 does.

    Infinite if not both have the same points, since one then has what the other cannot have.
    """
    if not np.array_equal(first.theta, second.theta):
        return float("inf"), float("inf")
    with precision(_BITS):
        differences = [int(difference) for difference in second.scores - first.scores]
        rate = arb(fmpq(first.rate.numerator, first.rate.denominator))
        log_ratio = _log_normaliser(second) - _log_normaliser(first)
        losses = [abs(log_ratio + rate * end) for end in (max(differences), min(differences))]
        return max(float(loss.lower()) for loss in losses), max(float(loss.upper()) for loss in losses)


def lattice_spread(first: LatticeLaw, second: LatticeLaw) -> Fraction:
    """c·(max - min) over k of s_D'(k) - s_D(k), exactly: what is at most ε for all neighbours, and at least their loss.

    Both must have the same points.
    """
    differences = [int(difference) for difference in second.scores - first.scores]
    return first.rate * (max(differences) - min(differences))


def _log_normaliser(law: LatticeLaw) -> arb:
    levels, counts = np.unique(law.scores, return_counts=True)
    rate = arb(fmpq(law.rate.numerator, law.rate.denominator))
    total = sum(((-rate * int(level)).exp() * int(count) for level, count in zip(levels, counts, strict=True)), arb(0))
    return total.log()
