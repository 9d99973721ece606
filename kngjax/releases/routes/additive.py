"""The additive route: an exact statistic plus noise of real arithmetic, rounded once to a public grid."""

import dataclasses
import secrets
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.exact_sums import ExactSums
from kngjax.data.processes import Processes
from kngjax.mechanisms.additive import AbstractAdditiveMechanism
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import EXACT_ARITHMETIC, Certificate
from kngjax.releases.chains import require_sampler
from kngjax.releases.grid.cells import Grid, draw_cell
from kngjax.releases.routes.base import AbstractRoute

ROUNDED_ONCE = (
    "It is computed in balls that contain it, and rounded once, to the nearest multiple of a public power of two, as "
    "real arithmetic would round it."
)


@dataclasses.dataclass(frozen=True)
class AdditiveRoute(AbstractRoute):
    """One draw of statistic and noise. **Arguments:** as for `AbstractRoute.admits`; `grid`: what it is rounded to."""

    mechanism: AbstractAdditiveMechanism
    facts: Facts
    grid: Grid

    @classmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "AdditiveRoute | None":
        if not isinstance(mechanism, AbstractAdditiveMechanism):
            return None
        require_sampler(mechanism, sampler)
        noise = mechanism.noise_in_fractions(facts.dimension, 1)
        grid = None if noise is None else Grid.for_noise(noise)
        return None if grid is None else cls(mechanism, facts, grid)

    def certify(self) -> Certificate:
        return Certificate.of(
            self.mechanism,
            self.facts,
            {"type": "Direct", "grid_exponents": list(self.grid.exponents)},
            f"{self.mechanism.method} {ROUNDED_ONCE}",
            is_rounded=False,
            assumptions=(*EXACT_ARITHMETIC, *self.mechanism.assumptions),
            failures=self.mechanism.failures,
        )

    def prepare(self, X: Any, y: Any) -> ExactSums:
        with float64():
            return self.mechanism.exact_sums(X, y)

    def draw(self, data: ExactSums, processes: Processes, progress: bool | None) -> Float[np.ndarray, " dimension"]:
        def on_grid() -> Float[np.ndarray, " dimension"]:
            noise = self.mechanism.noise_in_fractions(self.facts.dimension, data.count)
            assert noise is not None
            return self.grid.values(draw_cell(self.mechanism.location(data), noise, self.grid, secrets.randbits))

        value = processes.on_first(on_grid)
        return np.zeros(self.facts.dimension) if value is None else value
