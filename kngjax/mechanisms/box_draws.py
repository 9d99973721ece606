"""KNG with smooth losses of few coefficients, drawn with every rounding in its proof."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.admission import Facts
from kngjax.data.records import Records
from kngjax.geometry.abstract_norms import Noise
from kngjax.losses.base import AbstractPredictorLoss, AbstractVerifiedScore
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.grid_draws import AbstractGridDraw
from kngjax.mechanisms.smooth_facts import SmoothFacts
from kngjax.samplers.grid.boxes.coordinates import coordinates_for
from kngjax.samplers.grid.boxes.draws import draw
from kngjax.samplers.grid.boxes.gauges import Gauge
from kngjax.samplers.grid.boxes.sums import RecordSums
from kngjax.samplers.grid.cells import Grid
from kngjax.samplers.grid.quadratic.bodies import AbstractBody
from kngjax.samplers.grid.uniforms import Bits

# Boxes serve so many coefficients.
_MOST_COEFFICIENTS = 4
# Public numbers lie within 2^±120.
_MODERATE = 120


@dataclasses.dataclass(frozen=True)
class BoxDraw(AbstractGridDraw):
    """θ with density ∝ exp(-(ε/2Δ)·‖Σs_i x_i‖) on Θ, rounded once to a grid 2^40 times finer than Θ, and into Θ.

    ε is the decimal number that it prints as, and Δ is a fraction. A draw ends with probability 1 for all records; how
    long it takes depends on them.

    **Arguments:** `noise`: with density ∝ exp(-(ε/2Δ)·‖z‖). `scores`: s. `body`: Θ. `grid`: what θ is rounded to.
    """

    mechanism: AbstractDensityMechanism
    noise: Noise
    scores: AbstractVerifiedScore
    body: AbstractBody
    grid: Grid

    @classmethod
    def of(cls, mechanism: AbstractDensityMechanism, facts: Facts) -> "BoxDraw | None":
        """For KNG with one sensitivity; None where Θ, the bounds, the norm or the loss are not verified."""
        known = SmoothFacts.of(mechanism, facts) if facts.dimension <= _MOST_COEFFICIENTS else None
        if known is None or not known.are_moderate(_MODERATE):
            return None
        return cls(mechanism, known.noise, known.known.scores, known.body, known.body.grid())

    @property
    def settings(self) -> dict[str, Any]:
        return {"type": "BoxDraw", "grid_exponents": list(self.grid.exponents)}

    @property
    def method(self) -> str:
        return (
            "An exact draw by rejection from boxes, of which every decision is taken as real arithmetic would take it, "
            "rounded once, to a multiple of a public power of two next to it in the domain."
        )

    def prepare(self, X: Any, y: Any) -> Records:
        with float64():
            records = self.mechanism.records(X, y)
        return Records(np.asarray(records.x, np.float64), np.asarray(records.y, np.float64))

    def draw(self, data: Records, bits: Bits) -> Float[np.ndarray, " dimension"]:
        gauge = Gauge(self.noise)
        loss = self.mechanism.loss
        assert isinstance(loss, AbstractPredictorLoss)
        # Without tangents, where nothing is proved.
        plain = loss.verified_score()
        x, y = np.asarray(data.x), np.asarray(data.y)
        coordinates = coordinates_for(x, y, plain or self.scores, gauge.scales, self.body)
        with np.errstate(all="ignore"):
            sums = RecordSums(x, y, self.scores, coordinates)
        return self.grid.values(draw(sums, gauge, self.body, self.grid, bits))
