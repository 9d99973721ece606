"""Output perturbation with every rounding in its proof: a minimiser plus exact noise, rounded once.

Ridge regression has a fraction as minimiser of exact sums. For losses with bounded gradients a search finds it:
any θ̃ with |∇J(θ̃)| ≤ τ lies within τ/λ of θ̂, as J is λ-strongly convex. So whatever search finds one, and whatever it
depends on, θ̃ of neighbours differ by at most Δ = (sup |∇ℓ_n(θ; D') - ∇ℓ_n(θ; D)| + 2τ)/λ, and N(θ̃, (Δ/s)²I) hides
that for a shift s of which the profile of Gaussian noise is certainly met. τ is public, and the search goes on, with
more digits if need be, until balls tell that its gradient is at most that.
"""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import float64
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.linear_algebra import fractions_of, rational
from kngjax.draws.minima.objectives_by_passes import ObjectiveByPasses, objective_of
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.draws.noisy_sums import AbstractNoisySum, certified_shift_squared, normal_noise
from kngjax.geometry.norms import L2
from kngjax.losses.verified_scores import AbstractVerifiedScore, number
from kngjax.mechanisms.output_perturbation import TOLERANCE, OutputPerturbation
from kngjax.sensitivity.moments_in_fractions import SquaredRadii, ridge_change
from kngjax.sensitivity.record_facts import RecordFacts, gradient_noise


@dataclasses.dataclass(frozen=True)
class NoisyRidge(AbstractNoisySum):
    """(X'X + λI)^{-1}X'y + N(0, (Δ/s)²I), rounded once.

    Δ is a fraction that no change by a record exceeds, and s what the mechanism's guarantee states: balls certify that
    it is hidden. The solution of the whole numbers that the sums are made of is a fraction, without rounding.

    **Arguments:** `regularization`: λ.
    """

    regularization: Fraction
    serves: ClassVar[tuple[type, ...]] = (OutputPerturbation,)
    rounding: ClassVar[str] = (
        "The minimiser is a fraction without rounding; with the noise it is computed in balls that contain it, and "
        "rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
    )

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> "NoisyRidge | None":
        """Calibrates output perturbation for ridge regression with noise of fixed covariance; None without a proof.

        An exchange is a removal and an addition beside at most `max_records` - 1 others.
        """
        if not mechanism.loss.is_half_square or mechanism.metric != "identity":
            return None
        shift_squared = certified_shift_squared(mechanism.guarantee)
        radii = SquaredRadii.of(mechanism.bounds, facts.dimension)
        if shift_squared is None or radii is None:
            return None
        ridge, others = Fraction(float(mechanism.regularization)), Fraction(float(mechanism.max_records)) - 1
        exchanges = 2 if mechanism.adjacency is Adjacency.REPLACE else 1
        change = exchanges * ridge_change(radii, ridge, others)
        return cls.with_noise(mechanism, normal_noise(change**2 / shift_squared, facts.dimension), ridge)

    def location(self, data: ExactSums) -> list[Fraction]:
        """(X'X + λI)^{-1}X'y. Private."""
        rows = [[Fraction(entry) for entry in row] for row in data.gram]
        for index, row in enumerate(rows):
            row[index] += self.regularization
        solution = rational(rows).solve(rational([[entry] for entry in data.moment]))
        return [entry for (entry,) in fractions_of(solution)]


@dataclasses.dataclass(frozen=True)
class NoisyMinimum(AbstractNoisySum):
    """θ̃ + N(0, (Δ/s)²I), rounded once, of a loss with bounded gradients.

    **Arguments:** `tolerance_squared`: τ². `scores`: the loss's. `largest`: at least the largest eigenvalue of one
    record's Hessian.
    """

    tolerance_squared: Fraction
    scores: AbstractVerifiedScore
    largest: Fraction
    serves: ClassVar[tuple[type, ...]] = (OutputPerturbation,)
    rounding: ClassVar[str] = (
        "That the minimiser is within the tolerance is proved with every rounding; the noise is computed in balls that "
        "contain it, and the sum rounded once, to the nearest multiple of a public power of two, as real arithmetic "
        "would round it."
    )

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> "NoisyMinimum | None":
        """Calibrates the noise; None where Δ is not known in fractions, or it is not certain that noise hides s."""
        if mechanism.loss.is_half_square:
            return None
        known = RecordFacts.of(mechanism.loss, mechanism.bounds, None, facts.dimension)
        shift_squared = certified_shift_squared(mechanism.guarantee)
        if known is None or shift_squared is None:
            return None
        change = gradient_noise(known.changes(mechanism.adjacency), L2(), Fraction(1))
        assert change is not None
        spare, ridge = exactly(TOLERANCE), Fraction(number(mechanism.regularization))
        variance = change.scale_squared * ((1 + 2 * spare) / ridge) ** 2 / shift_squared
        noise, largest = normal_noise(variance, facts.dimension), known.curvature * known.largest_square
        return cls.with_noise(mechanism, noise, change.scale_squared * spare**2, known.scores, largest)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ()

    def prepare(self, X: Any, y: Any) -> Objective | ObjectiveByPasses:
        ridge = Fraction(number(self.mechanism.regularization))
        with float64():
            return objective_of(self.mechanism, X, y, self.scores, ridge, self.largest)

    def location(self, data: Objective | ObjectiveByPasses) -> list[Fraction]:
        """θ̃. Private."""
        return CertifiedMinimizer(data).near(self.tolerance_squared)
