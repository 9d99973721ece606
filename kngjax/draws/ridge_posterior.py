"""Ridge regressions with noise whose covariance follows the data, with every rounding in their proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.balls import ball_of
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid, cell_of
from kngjax.draws.linear_algebra import dot
from kngjax.draws.noises import StandardNormalNoise
from kngjax.draws.posterior_in_balls import RidgeSettings, is_private, is_private_in_objective
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.output_perturbation import OutputPerturbation
from kngjax.mechanisms.posterior_sample import PosteriorSample
from kngjax.sensitivity.moments_in_fractions import SquaredRadii

# The squares of the largest noise and of the largest θ̂ stay below this power of two: both are float64 numbers then.
_LARGEST = 1800

Rows = list[list[arb]]


class RidgeNoise(NamedTuple):
    """The law N(H^{-1}X'y, σ²H^{-p}) with H = X'X + λI. **Arguments:** `ridge`: λ > 0. `variance`: σ². `power`: p."""

    ridge: Fraction
    variance: Fraction
    power: Literal[1, 2]


@dataclasses.dataclass(frozen=True)
class NoisyPosterior(AbstractDraw):
    """A draw from N(θ̂, H^{-p}/γ) with θ̂ = H^{-1}X'y, rounded once. **Arguments:** `noise`: of it. `grid`: what to."""

    mechanism: PosteriorSample | OutputPerturbation
    noise: RidgeNoise
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (PosteriorSample, OutputPerturbation)
    rounding: ClassVar[str] = (
        "Sums over records are exact; what follows is computed in balls that contain it, "
        "and rounded once, to the nearest multiple of a public power of two, as real arithmetic would round it."
    )

    @classmethod
    def of(cls, mechanism: PosteriorSample | OutputPerturbation, facts: Schema) -> "NoisyPosterior | None":
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
    """Returns a mechanism's float64 numbers as fractions; None where bounds are known to float64 alone.

    **Arguments:** `ridge`, `gamma`: λ and γ.
    """
    radii = SquaredRadii.of(bounds, dimension)
    exact_ridge, exact_gamma = (Fraction(float(number)) for number in (ridge, gamma))
    # `max_records` bounds the larger neighbour; one of its records is the one that comes or goes.
    if radii is None or exact_gamma <= 0:
        return None
    return RidgeSettings(radii, exact_ridge, exact_gamma, int(max_records) - 1)


def draw_ridge(sums: ExactSums, noise: RidgeNoise, grid: Grid, bits: Bits) -> list[int]:
    """Returns the cell of a draw in real arithmetic: what is proved of functions of such a draw holds of the cell.

    With LL' = H, L lower triangular, and z standard normal it is L'^{-1}(L^{-1}X'y + σz), or for p = 2
    L'^{-1}L^{-1}(X'y + σz). As λ > 0 some number of digits tells that every pivot of H is positive.

    **Arguments:** `sums`: X'X and X'y, private. `bits`: fair and independent.
    """

    def places(normals: list[arb]) -> list[arb]:
        factor, deviation = _cholesky(sums, noise.ridge), ball_of(noise.variance).sqrt()
        moments = [ball_of(number) for number in sums.moment]
        if noise.power == 2:
            moments = [moment + deviation * z for moment, z in zip(moments, normals, strict=True)]
        whitened = _solve(factor, moments)
        if noise.power == 1:
            whitened = [middle + deviation * z for middle, z in zip(whitened, normals, strict=True)]
        return _solve_transposed(factor, whitened)

    return cell_of(grid, StandardNormalNoise(sums.dimension, bits).balls, places)


def ridge_estimate(sums: ExactSums, ridge: Fraction) -> list[arb]:
    """H^{-1}X'y in balls; no numbers where too few digits leave it open whether H is positive definite. Private."""
    factor = _cholesky(sums, ridge)
    return _solve_transposed(factor, _solve(factor, [ball_of(number) for number in sums.moment]))


def _cholesky(sums: ExactSums, ridge: Fraction) -> Rows:
    """L by rows, in balls: no numbers where too few digits leave it open whether a pivot is positive."""
    rows: Rows = []
    for index, numbers in enumerate(sums.gram):
        row: list[arb] = []
        for number, earlier in zip(numbers, rows, strict=False):
            row.append((ball_of(number) - dot(row, earlier)) / earlier[-1])
        row.append((ball_of(numbers[index] + ridge) - dot(row, row)).sqrt())
        rows.append(row)
    return rows


def _solve(factor: Rows, right: list[arb]) -> list[arb]:
    """L^{-1}v."""
    found: list[arb] = []
    for row, number in zip(factor, right, strict=True):
        found.append((number - dot(row, found)) / row[-1])
    return found


def _solve_transposed(factor: Rows, right: list[arb]) -> list[arb]:
    """L'^{-1}v."""
    left = list(right)
    for index in reversed(range(len(left))):
        *row, pivot = factor[index]
        left[index] /= pivot
        for column, entry in enumerate(row):
            left[column] -= entry * left[index]
    return left
