"""KNG with smooth losses of many coefficients, drawn in the space of gradients with every rounding in its proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.core.balls import precision, upper_end
from kngjax.data.admission import Facts
from kngjax.draws.base import AbstractDraw
from kngjax.draws.cells import Grid
from kngjax.draws.shells.sets_in_balls import ScaledNormInBalls, ShapeInBalls
from kngjax.draws.shells.shell_certificate import certify
from kngjax.draws.shells.shell_envelope import ShellEnvelope, build
from kngjax.draws.shells.shell_records import ShellRecords
from kngjax.draws.shells.shell_search import ShellProblem, draw
from kngjax.draws.shells.solutions import estimate
from kngjax.draws.smooth_facts import SmoothFacts
from kngjax.draws.uniforms import Bits
from kngjax.geometry.abstract_norms import Noise
from kngjax.geometry.domains import ExactShape
from kngjax.losses.base import AbstractResidualLoss, AbstractSmoothScore
from kngjax.losses.poisson import PoissonLoss
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.samplers.advice import GRADIENTS_UNASKED

# Cells are so many binary digits finer than the least that KNG's noise can be for any records. Float64 knows draws to
# some 2^-12 of such a cell, and few need more digits.
_DIGITS = 10
# Digits for the numbers of the envelope, of which float64 keeps 53.
_PRECISION = 128
# Where the log-density varies by no more, at least one in e^6 proposals is accepted; each costs as much as many in
# float64.
_LITTLE_RANGE = 6.0
# The least n·ε/d² over the width of residuals, in units in which scores bend: measured with dummies of 1%.
UNITS_A_WIDTH = 700
# Largest scores of Poisson regression that take no more records than other losses: measured with dummies of 1%.
_LARGE_SCORE = 2
# Public numbers lie within 2^±100.
_MODERATE = 100


@dataclasses.dataclass(frozen=True)
class ShellDraw(AbstractDraw):
    """θ with density ∝ exp(-(ε/2Δ)·‖Σs_i x_i‖) on Θ, rounded once to a public grid.

    ε is the decimal number that it prints as, and Δ is a fraction. A draw ends with probability 1 for all records; how
    long it takes depends on them, as it does of `Exact`, whose envelope it is.

    **Arguments:** `noise`: with density ∝ exp(-(ε/2Δ)·‖z‖). `score`: s, and how its slope changes. `shape`: Θ. `grid`:
    what θ is rounded to.
    """

    mechanism: AbstractDensityMechanism
    noise: Noise
    score: AbstractSmoothScore
    shape: ExactShape
    grid: Grid
    serves: ClassVar[tuple[type, ...]] = (KNG,)

    @classmethod
    def of(cls, mechanism: KNG, facts: Facts) -> "ShellDraw | None":
        """Returns the draw where public facts show that it serves; None elsewhere.

        Replace is needed, under which n is public, and the n·ε that `samplers.advice` asks of draws in the space of
        gradients, whatever the records; or a density that varies little over Θ. A proposal costs as much as thousands
        in float64 and the envelope is looser, so the rule demands more records than there.
        Losses of residuals are taken from n·ε/d² = 700·L·w on, with L the steepness of the score, 1.5/k or 1/h, and w
        the width of the bounds of y, or of x'θ over Θ where y has none; Poisson regression from so many times more as
        its largest score is above 2, as its noise grows with that. At the ends of these rules few proposals make a
        draw with dummies of 1%, and responses that scatter evenly over all of the width: at half of them e^12 were
        needed with k a twentieth of it.
        """
        count, dimension = facts.num_records, facts.dimension
        if count is None or mechanism.adjacency is not Adjacency.REPLACE or not mechanism.domain.is_uniform:
            return None
        known = None if mechanism.intake.weights_enter_loss else SmoothFacts.of(mechanism, facts)
        if known is None:
            return None
        score = known.loss.smooth_score()
        if score is None or not known.are_moderate(_MODERATE, [score.steepness]):
            return None
        information = exactly(float(mechanism.epsilon)) * count / dimension**2
        enough = information >= GRADIENTS_UNASKED * _spread_of_scores(known)
        enough = enough and information >= UNITS_A_WIDTH * _widths(known, score)
        if not enough and mechanism.exponent.log_range(dimension, count) > _LITTLE_RANGE:
            return None
        return cls(mechanism, known.noise, score, known.shape, grid_for(known, count))

    @property
    def settings(self) -> dict[str, Any]:
        return {"type": "ShellDraw", "grid_exponents": list(self.grid.exponents)}

    @property
    def method(self) -> str:
        return (
            "Rejection in the space of gradients. All that decides is computed in balls that contain it, and the draw "
            "is rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
        )

    @property
    def sets(self) -> tuple[ScaledNormInBalls, ShapeInBalls]:
        """‖·‖ and Θ."""
        return ScaledNormInBalls(self.noise), ShapeInBalls(self.shape)

    def prepare(self, X: Any, y: Any) -> ShellRecords:
        with float64():
            records = self.mechanism.intake.records(X, y)
        return ShellRecords.of(np.asarray(records.x, np.float64), np.asarray(records.y, np.float64), self.score)

    def envelope(self, records: ShellRecords) -> ShellEnvelope:
        """Builds the envelope of less mass: about an estimate, or about where Θ ends on the way to it. Private."""
        gauge, region = self.sets
        with precision(_PRECISION), np.errstate(all="ignore"):
            found = estimate(records)
            within = region.nearby(found)
            places = [found] if np.array_equal(within, found) else [found, within]
            certificates = [certify(records, gauge, region, one) for one in places]
            return min((build(one, gauge, region) for one in certificates), key=lambda made: made.log_mass)

    def draw(self, data: ShellRecords, bits: Bits) -> Float[np.ndarray, " dimension"]:
        with np.errstate(all="ignore"):
            cell = draw(ShellProblem(data, *self.sets), self.envelope(data), self.grid, bits)
        return self.grid.values(cell)


def _spread_of_scores(known: SmoothFacts) -> Fraction:
    """Compares the largest score with that at which GRADIENTS_UNASKED is measured: counts may have any."""
    if not isinstance(known.loss, PoissonLoss):
        return Fraction(1)
    return max(Fraction(1), max(map(abs, known.known.score)) / _LARGE_SCORE)


def _widths(known: SmoothFacts, score: AbstractSmoothScore) -> Fraction:
    """Compares how widely residuals may scatter with the width on which a score bends; 0 where there are none."""
    if not isinstance(known.loss, AbstractResidualLoss):
        return Fraction(0)
    interval = known.known.response or known.known.predictor
    assert interval is not None
    return (interval[1] - interval[0]) * Fraction(score.steepness)


def grid_for(known: SmoothFacts, count: int) -> Grid:
    """h_j with 2^10·h_j about a_j/(n·c·max|x_j|²), or 2^-40 of Θ if that is more.

    Where a_j is the scale of the noise in the gradient, c bounds every ρ'', and so n·c·max|x_j|² bounds H_jj.
    """
    with precision(_PRECISION):
        scales = [upper_end(scale) for scale in ScaledNormInBalls(known.noise).scales]
    least = [scale / (count * known.known.curvature * size**2) for scale, size in zip(scales, known.sizes, strict=True)]
    coarsest = known.body.grid().exponents
    return Grid(tuple(max(_power(one) - _DIGITS, most) for one, most in zip(least, coarsest, strict=True)))


def _power(number: Fraction) -> int:
    return number.numerator.bit_length() - number.denominator.bit_length()
