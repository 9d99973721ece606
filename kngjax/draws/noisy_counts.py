"""Counts plus geometric noise, which are whole numbers, decided as real arithmetic decides."""

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of
from kngjax.data.records import Counts
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid
from kngjax.draws.uniforms import Bits, Uniform, decided
from kngjax.mechanisms.geometric import GeometricMechanism


@dataclasses.dataclass(frozen=True)
class NoisyCounts(AbstractDraw):
    """Counts plus whole noise, of which nothing is rounded. **Arguments:** `grid`: of whole numbers of u."""

    mechanism: GeometricMechanism
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (GeometricMechanism,)

    @classmethod
    def of(cls, mechanism: GeometricMechanism, facts: Schema) -> "NoisyCounts":
        """Returns the draw on multiples of the mechanism's unit, a power of two."""
        return cls(mechanism, Grid((round(math.log2(mechanism.unit)),) * facts.dimension))

    @property
    def settings(self) -> dict[str, Any]:
        # One grid for all numbers.
        return {"type": "Direct", "grid_exponents": [self.grid.exponents[0]]}

    @property
    def method(self) -> str:
        what = "" if self.mechanism.bounds.weight is None else f" of units of {self.mechanism.unit:g}"
        return f"{self.mechanism.method} Counts and noise are whole numbers{what}, and no rounding enters their law."

    def prepare(self, X: Any, y: Any) -> Counts:
        with float64():
            counts = self.mechanism.prepare(X, y)
        assert isinstance(counts, Counts)
        return counts

    def draw(self, data: Counts, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.grid.values(self.wholes(data, bits))

    def wholes(self, data: Counts, bits: Bits) -> list[int]:
        """Draws the noisy counts once, as whole numbers of the unit u."""
        rate = exactly(float(self.mechanism.epsilon)) / self.mechanism.change
        counts = (np.asarray(data.counts) / self.mechanism.unit).tolist()
        return [int(count) + draw_two_sided_geometric(rate, bits) for count in counts]


def draw_two_sided_geometric(rate: Fraction, bits: Bits) -> int:
    """z with P(z) = (1 - q)/(1 + q)·q^|z| over the whole numbers, q = exp(-rate): the difference of two geometric ones.

    P(G_1 - G_2 = z) = Σ_k (1 - q)²·q^(2k + |z|) = (1 - q)²/(1 - q²)·q^|z|.

    **Arguments:** `rate`: positive, public. `bits`: fair and independent.
    """
    return _geometric(rate, bits) - _geometric(rate, bits)


def _geometric(rate: Fraction, bits: Bits) -> int:
    """G = ⌊-log U/rate⌋ with P(G ≥ k) = P(U ≤ exp(-rate·k)) = q^k."""
    uniform = Uniform(bits)

    def attempt(digits: int) -> int | None:
        place = -uniform.ball(digits).log() / ball_of(rate)
        number = place.floor().unique_fmpz() if place.is_finite() else None
        return None if number is None else int(number)

    return decided(attempt)
