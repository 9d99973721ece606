"""Statistics of the records plus noise, with every rounding in the proof: what all such draws have in common."""

import abc
import dataclasses
import functools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.accounting.gaussian_in_balls import is_hidden
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.arrays import float64
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid, draw_cell
from kngjax.draws.uniforms import Bits
from kngjax.geometry.scaled_norms import AbstractScaledNoise, ScaledNorm
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.k_norm import KNormMechanism

Kind = Literal["gaussian", "laplace"]


def normal_noise(variance: Fraction, number: int) -> ScaledNorm:
    """Returns the law of independent normal numbers of one variance."""
    return ScaledNorm("normal", (Fraction(1),) * number, variance)


def certified_shift_squared(guarantee: Guarantee) -> Fraction | None:
    """s² of s-Gaussian DP if balls certify the (ε, δ) that it is stated at; None where they do not.

    **Arguments:** `guarantee`: of `gaussian_guarantee`. s is the number that it states, ρ = s²/2.
    """
    assert guarantee.exact_rho is not None
    assert guarantee.exact_epsilon is not None
    squared = 2 * guarantee.exact_rho
    return squared if is_hidden(squared, guarantee.exact_epsilon, guarantee.exact_delta) else None


class NoisyNumbers(NamedTuple):
    """Independent noise of one size on several numbers, rounded once. Public. **Arguments:** `grid`: what to."""

    noise: ScaledNorm
    grid: Grid

    @classmethod
    def of(cls, kind: Kind, scale_squared: Fraction, number: int) -> "NoisyNumbers | None":
        """Makes normal noise of variance λ² or Laplace noise of scale λ; None if float64 may have no such numbers."""
        noise = normal_noise(scale_squared, number)
        noise = noise if kind == "gaussian" else dataclasses.replace(noise, kind="sum")
        grid = Grid.for_noise(noise)
        return None if grid is None else cls(noise, grid)

    def draw(self, location: Iterable[Any], bits: Bits) -> Float[np.ndarray, " numbers"]:
        """Adds noise to the private location. **Arguments:** `location`: whole numbers and fractions."""
        cell = draw_cell([Fraction(number) for number in location], self.noise, self.grid, bits)
        return self.grid.values(cell)


@dataclasses.dataclass(frozen=True)
class AbstractNoisySum(AbstractDraw):
    """Draws T(D) + z, rounded once, for a statistic T that is a vector of fractions.

    A subclass says which noise its mechanism needs, in `of`, and computes T, in `location`.

    **Arguments:** `noise`: of z. `grid`: what the sum is rounded to. Both public.
    """

    mechanism: Any
    noise: AbstractScaledNoise
    grid: Grid
    takes_weights: ClassVar[bool] = True

    @classmethod
    def with_noise(cls, mechanism: Any, noise: AbstractScaledNoise | None, *more: Any) -> Any:
        """Chooses the grid; None without noise, or where float64 has no such numbers."""
        if noise is None or (grid := Grid.for_noise(noise)) is None:
            return None
        return cls(mechanism, noise, grid, *more)

    @abc.abstractmethod
    def location(self, data: Any) -> list[Fraction]:
        """Computes T without rounding. Private."""

    def noise_for(self, data: Any) -> AbstractScaledNoise:
        """Returns the noise on the statistic of these records: always the same, unless n is public and scales it."""
        return self.noise

    def draw(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.grid.values(draw_cell(self.location(data), self.noise_for(data), self.grid, bits))


class NoisyMean(AbstractNoisySum):
    """x̄ or Σx, of columns or of their products, plus K-norm noise. The grid is that of a mean of one record."""

    serves: ClassVar[tuple[type, ...]] = (KNormMechanism, BlockSums)
    rounding: ClassVar[str] = (
        "It is computed in balls that contain it, and rounded once, to the nearest multiple of a public power of two, "
        "as real arithmetic would round it."
    )

    @classmethod
    def of(cls, mechanism: KNormMechanism | BlockSums, facts: Schema) -> "NoisyMean | None":
        """Returns the draw; None where the norm of the noise is not known in fractions."""
        return cls.with_noise(mechanism, mechanism.noise_in_fractions(facts.dimension, 1))

    def prepare(self, X: Any, y: Any) -> ExactSums:
        mechanism = self.mechanism
        if not isinstance(mechanism, KNormMechanism):
            return super().prepare(X, y)
        with float64():
            return mechanism.intake.sums_by(functools.partial(mechanism.loss.sums, has_squares=False), X, y)

    def location(self, data: ExactSums) -> list[Fraction]:
        return [Fraction(total) / self._divisor(data) for total in data.moment]

    def noise_for(self, data: ExactSums) -> AbstractScaledNoise:
        return self.noise.scaled(Fraction(1, self._divisor(data) ** 2))

    def _divisor(self, data: ExactSums) -> int:
        return 1 if self.mechanism.statistic == "sum" else data.count
