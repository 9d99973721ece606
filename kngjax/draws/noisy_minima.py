"""Output perturbation with every rounding in its proof: a verified minimiser plus exact noise, rounded once.

Any θ̃ with |∇J(θ̃)| ≤ τ lies within τ/λ of θ̂, as J is λ-strongly convex. So whatever search finds one, and whatever it
depends on, θ̃ of neighbours differ by at most Δ = (sup |∇ℓ_n(θ; D') - ∇ℓ_n(θ; D)| + 2τ)/λ, and N(θ̃, (Δ/s)²I) hides
that for a shift s of which the profile of Gaussian noise is certainly met. τ is public, and the search goes on, with
more digits if need be, until balls tell that its gradient is at most that.
"""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact import exactly
from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.draws.base import AbstractDraw
from kngjax.draws.cells import Grid, draw_cell
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.draws.uniforms import Bits
from kngjax.geometry.abstract_norms import Noise
from kngjax.geometry.norms import L2
from kngjax.losses.verified_scores import AbstractVerifiedScore, number
from kngjax.mechanisms.noise.calibration import certified_shift_squared
from kngjax.mechanisms.output_perturbation import TOLERANCE, OutputPerturbation
from kngjax.sensitivity.record_facts import RecordFacts, gradient_noise


@dataclasses.dataclass(frozen=True)
class NoisyMinimum(AbstractDraw):
    """θ̃ + N(0, (Δ/s)²I), rounded once, of a loss with bounded gradients.

    **Arguments:** `noise`: the normal numbers. `tolerance_squared`: τ². `scores`: the loss's. `largest`: at least the
    largest eigenvalue of one record's Hessian. `grid`: what to.
    """

    mechanism: Any
    noise: Noise
    tolerance_squared: Fraction
    scores: AbstractVerifiedScore
    largest: Fraction
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (OutputPerturbation,)

    @classmethod
    def of(cls, mechanism: Any, facts: Facts) -> "NoisyMinimum | None":
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
        noise = Noise("normal", (Fraction(1),) * facts.dimension, variance)
        grid = Grid.for_noise(noise)
        if grid is None:
            return None
        largest = known.curvature * known.largest_square
        return cls(mechanism, noise, change.scale_squared * spare**2, known.scores, largest, grid)

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} That the minimiser is within the tolerance is proved with every rounding; the "
            "noise is computed in balls that contain it, and the sum rounded once, to the nearest multiple of a public "
            "power of two, as real arithmetic would round it."
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ()

    def prepare(self, X: Any, y: Any) -> Objective:
        with float64():
            records = self.mechanism.prepare(X, y)
        return Objective.of(records, self.scores, Fraction(number(self.mechanism.regularization)), self.largest)

    def draw(self, data: Objective, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.grid.values(draw_cell(self.location(data), self.noise, self.grid, bits))

    def location(self, data: Objective) -> list[Fraction]:
        """θ̃. Private."""
        return CertifiedMinimizer(data).near(self.tolerance_squared)
