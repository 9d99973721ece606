"""Sums and means of columns, or of their products, plus K-norm noise, with every rounding in the proof."""

import dataclasses
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.data.admission import Facts
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.base import AbstractDraw
from kngjax.draws.cells import Grid, draw_cell
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.design_moments import DesignMoments
from kngjax.mechanisms.k_norm import KNormMechanism


@dataclasses.dataclass(frozen=True)
class NoisyMean(AbstractDraw):
    """x̄ or Σx plus noise, rounded once. **Arguments:** `grid`: what to."""

    mechanism: KNormMechanism
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (KNormMechanism,)

    @classmethod
    def of(cls, mechanism: KNormMechanism, facts: Facts) -> "NoisyMean | None":
        """Returns the draw; None where the norm of the noise is not known in fractions."""
        noise = mechanism.noise_in_fractions(facts.dimension, 1)
        grid = None if noise is None else Grid.for_noise(noise)
        return None if grid is None else cls(mechanism, grid)

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} It is computed in balls that contain it, and rounded once, to the nearest "
            "multiple of a public power of two, as real arithmetic would round it."
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        noise = self.mechanism.noise_in_fractions(data.dimension, data.count)
        assert noise is not None
        return self.grid.values(draw_cell(self.location(data), noise, self.grid, bits))

    def location(self, totals: ExactSums) -> list[Fraction]:
        """x̄ or Σx."""
        count = 1 if self.mechanism.statistic == "sum" else totals.count
        return [Fraction(total) / count for total in totals.moment]


@dataclasses.dataclass(frozen=True)
class NoisyDesign(AbstractDraw):
    """Sums of products plus noise, rounded once. **Arguments:** `grid`: what to. `summing`: whose noise it is."""

    mechanism: DesignMoments
    grid: Grid
    summing: KNormMechanism
    serves: ClassVar[tuple[type, ...]] = (DesignMoments,)

    @classmethod
    def of(cls, mechanism: DesignMoments, facts: Facts) -> "NoisyDesign | None":
        """Returns the draw of the sums' own mechanism; None where that has none."""
        inner = NoisyMean.of(mechanism.summing, Facts(mechanism.dimension, facts.num_records, None))
        return None if inner is None else cls(mechanism, inner.grid, mechanism.summing)

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} They are computed in balls that contain them, and rounded once, to the nearest "
            "multiple of a public power of two, as real arithmetic would round it."
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return NoisyMean(self.summing, self.grid).draw(data, bits)
