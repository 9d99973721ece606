"""AdaOPS with every rounding in its proof: its three stages, each rounded to a public grid."""

import dataclasses
from fractions import Fraction
from typing import ClassVar, NamedTuple

import jax
import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of, power_of_two, precision, upper_end
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.eigenvalues import nearest_multiple
from kngjax.draws.grid_cells import Grid, cell_of, draw_cell
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.noisy_sums import normal_noise
from kngjax.draws.ridge_posterior import RidgeNoise, draw_ridge, ridge_estimate
from kngjax.draws.stages_in_balls import StagePlan, gamma_within, keeps_budget
from kngjax.draws.uniforms import Bits
from kngjax.geometry.scaled_norms import norm_in_balls
from kngjax.mechanisms.ada_ops import LEAST_RIDGE, AdaOPS
from kngjax.sensitivity.moments_in_fractions import SquaredRadii, eigenvalue_step, rounded_eigenvalue_change

# log L is rounded to multiples of 2^-60, and θ to about 2^-60 of Y/X: the noise depends on the data, and is not known
# in public, but far larger than that for any number of records that fits a computer.
_FINENESS = 60
# Digits of numbers that are computed from rounded ones.
_DIGITS = 256


class ExactTuning(NamedTuple):
    """Holds the values that the first two stages choose: functions of rounded numbers, which the proof covers beside θ.

    **Arguments:** `ridge`, `curvature`, `bound`, `gamma`: as of `kngjax.mechanisms.ada_ops.Tuning`.
    """

    ridge: Fraction
    curvature: Fraction
    bound: Fraction
    gamma: Fraction


@dataclasses.dataclass(frozen=True)
class NoisyAdaOPS(AbstractDraw):
    """The three stages of `AdaOPS`, each drawn in real arithmetic and rounded once; what follows takes it as it is.

    The proof is that of `AdaOPS`, of the joint law of three rounded numbers:

    1. λ_min is replaced by the nearest multiple of r, of sensitivity S = r⌈X²/r⌉, with noise of deviation S/s₁, on
       multiples of g₁. Rounding raises it by (r + g₁)/2 at most, which is subtracted from λ̃.
    2. a is a fraction, a little above log(1 + X²/h), and log L has half of its grid's unit more, so that rounding
       cannot lower it.
    3. γ is a fraction, and D_α ≤ R for it by balls.

    λ and γ are functions of the first two of these numbers and of public ones, so that a release publishes them too,
    as the float64 numbers nearest to them: `ridge` and `gamma`.

    **Arguments:** `radii`: X² and Y². `plan`: in fractions; balls confirm that it keeps the budget. `step`: r.
    `eigenvalue_grid`, `grid`: of the first stage and of θ. All public.
    """

    mechanism: AdaOPS
    radii: SquaredRadii
    plan: StagePlan
    least_ridge: Fraction
    step: Fraction
    eigenvalue_grid: Grid
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (AdaOPS,)
    rounding: ClassVar[str] = (
        "Each of the three stages is computed in balls that contain it, and rounded once, "
        "to the nearest multiple of a public power of two, as real arithmetic would round it; the next one takes "
        "the rounded number as it is. The ridge and the scale are made of the first two, and published."
    )

    @classmethod
    def of(cls, mechanism: AdaOPS, facts: Schema) -> "NoisyAdaOPS | None":
        """Plans the three stages of AdaOPS for d coefficients; None where balls do not confirm the budget."""
        dimension = facts.dimension
        with float64():
            found = jax.tree.map(lambda number: Fraction(float(number)), mechanism.plan(dimension))
        radii = SquaredRadii.of(mechanism.bounds, dimension)
        if radii is None:
            return None
        shift = radii.features / found.eigenvalue_deviation
        plan = StagePlan(found.order, found.budget, shift, found.bound_shift, found.tail, found.least_curvature)
        if not keeps_budget(plan, radii.features, mechanism.guarantee):
            return None
        step = eigenvalue_step(radii)
        eigenvalue_grid = Grid.for_squares([(rounded_eigenvalue_change(radii, step) / shift) ** 2])
        grid = Grid((_size(radii.response / radii.features) // 2 - _FINENESS,) * dimension)
        if eigenvalue_grid is None:
            return None
        return cls(mechanism, radii, plan, Fraction(LEAST_RIDGE) * radii.features, step, eigenvalue_grid, grid)

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        return {"ridge": (), "gamma": ()}

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.draw_all(data, bits)[: data.dimension]

    def draw_all(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " numbers"]:
        tuned = self.tuning(data, bits)
        theta = self.grid.values(draw_ridge(data, RidgeNoise(tuned.ridge, 1 / tuned.gamma, 1), self.grid, bits))
        return np.concatenate([theta, [float(tuned.ridge), float(tuned.gamma)]])

    def tuning(self, data: ExactSums, bits: Bits) -> ExactTuning:
        """λ, h, L and γ by the first two stages. Private: for tests."""
        lower = max(self._draw_eigenvalue(data, bits), Fraction(0))
        ridge = max(self.plan.least_curvature - lower, self.least_ridge)
        curvature = ridge + lower
        bound = self._draw_bound(data, ridge, curvature, bits)
        gamma = gamma_within(self.plan, self.radii.features / curvature, bound)
        return ExactTuning(ridge, curvature, bound, gamma)

    def _draw_eigenvalue(self, data: ExactSums, bits: Bits) -> Fraction:
        """λ̃: at most λ_min of the smaller neighbour but for a probability of Φ(-z)."""
        change = rounded_eigenvalue_change(self.radii, self.step)
        deviation = change / self.plan.eigenvalue_shift
        location = [self.step * nearest_multiple(data.gram, self.step)]
        cell = draw_cell(location, normal_noise(deviation**2, 1), self.eigenvalue_grid, bits)
        (noisy,) = self.eigenvalue_grid.exact_values(cell)
        rounding = (self.step + power_of_two(self.eigenvalue_grid.exponents[0])) / 2
        return noisy - change - self.plan.tail * deviation - rounding

    def _draw_bound(self, data: ExactSums, ridge: Fraction, curvature: Fraction, bits: Bits) -> Fraction:
        """L: at least Y + X‖θ̂_λ‖ of the smaller neighbour but for a probability of Φ(-z)."""
        with precision(_DIGITS):
            change = upper_end(ball_of(self.radii.features / curvature).log1p())
        deviation, grid = change / self.plan.bound_shift, Grid((-_FINENESS,))

        def places(normals: list[arb]) -> list[arb]:
            length = norm_in_balls("length", ridge_estimate(data, ridge))
            largest = ball_of(self.radii.response).sqrt() + ball_of(self.radii.features).sqrt() * length
            return [largest.log() + ball_of(deviation) * normals[0]]

        (noisy,) = grid.exact_values(cell_of(grid, StandardNormalNoise(1, bits).balls, places))
        with precision(_DIGITS):
            raised = noisy + power_of_two(-_FINENESS) / 2 + change + self.plan.tail * deviation
            return upper_end(ball_of(raised).exp())


def _size(number: Fraction) -> int:
    """Estimates log₂ of a positive number."""
    return number.numerator.bit_length() - number.denominator.bit_length()
