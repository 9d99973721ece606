"""Gram matrices of records plus Gaussian noise, with every rounding in the proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.base import AbstractDraw
from kngjax.draws.noisy_matrices import NoisyNumbers
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.gaussian_moments import GaussianMoments


@dataclasses.dataclass(frozen=True)
class NoisyGrams(AbstractDraw):
    """Gram matrices plus noise, each number rounded once to its grid. Public.

    **Arguments:** `diagonal`, `above`: the noise on the diagonals of all matrices, and above them.
    """

    mechanism: GaussianMoments
    diagonal: NoisyNumbers
    above: NoisyNumbers
    serves: ClassVar[tuple[type, ...]] = (GaussianMoments,)

    @classmethod
    def of(cls, mechanism: GaussianMoments, facts: Facts) -> "NoisyGrams | None":
        """Returns the draw; None where float64 has no such noise."""
        size, variance = mechanism.size, mechanism.variance
        diagonal = NoisyNumbers.of("gaussian", variance, mechanism.blocks * size)
        above = NoisyNumbers.of("gaussian", variance / 2, mechanism.blocks * (size * (size - 1) // 2))
        return None if diagonal is None or above is None else cls(mechanism, diagonal, above)

    @property
    def settings(self) -> dict[str, Any]:
        """The exponents of the grids of diagonals and, if there is anything, of what is above them."""
        parts = (self.diagonal, self.above)
        return {"type": "Direct", "grid_exponents": [part.grid.exponents[0] for part in parts if part.grid.exponents]}

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} They are computed in balls that contain them, and each is rounded once, to the "
            "nearest multiple of a public power of two, as real arithmetic would round it."
        )

    def prepare(self, X: Any, y: Any) -> ExactSums:
        with float64():
            return self.mechanism.exact_sums(X, y)

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        rows, columns = np.triu_indices(self.mechanism.size)
        is_diagonal = np.tile(rows == columns, self.mechanism.blocks)
        value = np.zeros(len(is_diagonal))
        for part, where in ((self.diagonal, is_diagonal), (self.above, ~is_diagonal)):
            value[where] = part.draw([Fraction(number) for number in data.moment[where]], bits)
        return value
