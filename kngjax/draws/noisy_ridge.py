"""A ridge regression of exact sums plus Gaussian noise, with every rounding in its proof."""

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import fmpz_mat
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.data.admission import Facts
from kngjax.data.exact_sums import ExactSums
from kngjax.draws.base import AbstractDraw
from kngjax.draws.cells import Grid, draw_cell
from kngjax.draws.uniforms import Bits
from kngjax.geometry.abstract_norms import Noise
from kngjax.mechanisms.noise.calibration import certified_shift_squared
from kngjax.mechanisms.output_perturbation import OutputPerturbation
from kngjax.sensitivity.moments_in_fractions import SquaredRadii, ridge_change


@dataclasses.dataclass(frozen=True)
class NoisyRidge(AbstractDraw):
    """(X'X + λI)^{-1}X'y + N(0, (Δ/s)²I), rounded once.

    Δ is a fraction that no change by a record exceeds, and s what the mechanism's guarantee states: balls certify that
    it is hidden. The solution of the whole numbers that the sums are made of is a fraction, without rounding.

    **Arguments:** `regularization`: λ. `noise`, `grid`: public.
    """

    mechanism: Any
    regularization: Fraction
    noise: Noise
    grid: Grid
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (OutputPerturbation,)

    @classmethod
    def of(cls, mechanism: Any, facts: Facts) -> "NoisyRidge | None":
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
        noise = Noise("normal", (Fraction(1),) * facts.dimension, change**2 / shift_squared)
        grid = Grid.for_noise(noise)
        return None if grid is None else cls(mechanism, ridge, noise, grid)

    @property
    def method(self) -> str:
        return (
            f"{self.mechanism.method} The minimiser is a fraction without rounding; with the noise it is computed in "
            "balls that contain it, and rounded once, to the nearest multiple of a public power of two, as real "
            "arithmetic would round it."
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.grid.values(draw_cell(self.location(data), self.noise, self.grid, bits))

    def location(self, sums: ExactSums) -> list[Fraction]:
        """(X'X + λI)^{-1}X'y. Private."""
        d = sums.dimension
        rows = [[Fraction(entry) for entry in row] for row in sums.gram]
        for index, row in enumerate(rows):
            row[index] += self.regularization
        moment = [Fraction(entry) for entry in sums.moment]
        # In whole numbers: all are multiples of a power of two.
        unit = math.lcm(*(entry.denominator for row in (*rows, moment) for entry in row))
        matrix = fmpz_mat(d, d, [int(entry * unit) for row in rows for entry in row])
        solution = matrix.solve(fmpz_mat(d, 1, [int(entry * unit) for entry in moment]))
        return [Fraction(int(solution[index, 0].p), int(solution[index, 0].q)) for index in range(d)]
