"""Ridge regressions with noise whose covariance follows the data, with every rounding in their proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from kngjax.data.admission import Facts
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.base import AbstractDraw
from kngjax.draws.cells import Grid
from kngjax.draws.gaussians import RidgeNoise, draw_ridge
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.noise.objective_in_balls import is_private_in_objective
from kngjax.mechanisms.noise.posterior_in_balls import RidgeSettings, is_private
from kngjax.mechanisms.output_perturbation import OutputPerturbation
from kngjax.mechanisms.posterior_sample import PosteriorSample
from kngjax.sensitivity.moments_in_fractions import SquaredRadii

# The squares of the largest noise and of the largest θ̂ stay below this power of two: both are float64 numbers then.
_LARGEST = 1800


@dataclasses.dataclass(frozen=True)
class NoisyPosterior(AbstractDraw):
    """A draw from N(θ̂, H^{-p}/γ) with θ̂ = H^{-1}X'y, rounded once. **Arguments:** `noise`: of it. `grid`: what to."""

    mechanism: PosteriorSample | OutputPerturbation
    noise: RidgeNoise
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (PosteriorSample, OutputPerturbation)

    @classmethod
    def of(cls, mechanism: PosteriorSample | OutputPerturbation, facts: Facts) -> "NoisyPosterior | None":
        """Returns the draw; None where balls do not confirm what float64 found, or float64 has no such numbers."""
        confirmed = _confirmed(mechanism, facts.dimension)
        return None if confirmed is None else cls.at(mechanism, *confirmed, facts.dimension)

    @classmethod
    def at(
        cls,
        mechanism: PosteriorSample | OutputPerturbation,
        settings: RidgeSettings,
        power: Literal[1, 2],
        dimension: int,
    ) -> "NoisyPosterior | None":
        """Returns the draw for d coefficients at these settings; None where float64 may not have such numbers.

        The grid is much finer than the least noise: no eigenvalue of H is larger than λ + NX², with N = `max_records`.
        Nothing else rests on that. The largest noise has λ in its place, and |θ̂|² ≤ NY²/(4λ).
        """
        variance, count, ridge = 1 / settings.gamma, settings.others + 1, settings.ridge
        x, y = settings.radii
        grid = Grid.for_squares([variance / (ridge + count * x) ** power] * dimension)
        is_moderate = max(variance / ridge**power, count * y / ridge) < Fraction(2) ** _LARGEST
        return None if grid is None or not is_moderate else cls(mechanism, RidgeNoise(ridge, variance, power), grid)

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} Sums over records are exact; what follows is computed in balls that contain it, "
            "and rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.grid.values(draw_ridge(data, self.noise, self.grid, bits))


def _confirmed(
    mechanism: PosteriorSample | OutputPerturbation, dimension: int
) -> tuple[RidgeSettings, Literal[1, 2]] | None:
    """Returns the settings and the power p that balls confirm for the guarantee; None where they confirm none."""
    confirm, power = is_private, 1
    if isinstance(mechanism, OutputPerturbation):
        if not mechanism.loss.is_half_square or mechanism.metric == "identity":
            return None
        if mechanism.metric != "hessian":
            confirm, power = is_private_in_objective, 2
    gamma, guarantee = mechanism.known_gamma(dimension), mechanism.guarantee_for(dimension)
    settings = ridge_settings(mechanism.bounds, mechanism.regularization, gamma, mechanism.max_records, dimension)
    return None if settings is None or not confirm(settings, guarantee) else (settings, power)


def ridge_settings(bounds: Bounds, ridge: Any, gamma: Any, max_records: Any, dimension: int) -> RidgeSettings | None:
    """The float64 numbers of a mechanism as the fractions that they are; None where bounds are known to float64 alone.

    **Arguments:** `ridge`, `gamma`: λ and γ.
    """
    radii = SquaredRadii.of(bounds, dimension)
    exact_ridge, exact_gamma = (Fraction(float(number)) for number in (ridge, gamma))
    # `max_records` bounds the larger neighbour; one of its records is the one that comes or goes.
    if radii is None or exact_gamma <= 0:
        return None
    return RidgeSettings(radii, exact_ridge, exact_gamma, int(max_records) - 1)
