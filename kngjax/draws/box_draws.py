"""KNG with smooth losses of few coefficients, drawn with every rounding in its proof."""

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.gathering import in_one_order
from kngjax.data.records import WeightedRecords
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.boxes.box_coordinates import coordinates_for
from kngjax.draws.boxes.box_rejection import cover_of, draw
from kngjax.draws.boxes.cover import Cover
from kngjax.draws.boxes.record_sums import RecordSums
from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic.bodies import AbstractBody
from kngjax.draws.smooth_facts import SmoothFacts
from kngjax.draws.uniforms import Bits
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.base import AbstractPredictorLoss, AbstractVerifiedScore
from kngjax.losses.record_scores import RecordScores
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.kng import KNG

# Boxes serve so many coefficients.
_MOST_COEFFICIENTS = 4
# Public numbers lie within 2^±120.
_MODERATE = 120
# A score may be so many times as steep as one that rises evenly over all of Θ. What is steeper is next to a jump,
# about which no boxes of float64 numbers are small enough.
_STEEPEST = 2**30
# All records may jump within one slab that is as much thinner than Θ as scores are steep, and ‖G‖ by up to nε/2 there:
# as many boxes lie along it as the (d - 1)-th power of that, or of what it adds to the density. In logarithms.
_MOST_ALONG = {1: 0.0, 2: 14.0, 3: 15.0, 4: 18.0}


@dataclasses.dataclass(frozen=True)
class BoxDraw(AbstractDraw):
    """θ with density ∝ exp(-(ε/2Δ)·‖Σs_i x_i‖) on Θ, rounded once to a grid 2^40 times finer than Θ, and into Θ.

    ε is the decimal number that it prints as, and Δ is a fraction. A draw ends with probability 1 for all records; how
    long it takes depends on them.

    **Arguments:** `noise`: with density ∝ exp(-(ε/2Δ)·‖z‖). `scores`: s. `body`: Θ. `grid`: what θ is rounded to.
    `log_along`: the logarithm of about how many boxes the worst records may need where scores are steep. Public.
    """

    mechanism: AbstractDensityMechanism
    noise: ScaledNorm
    scores: AbstractVerifiedScore
    body: AbstractBody
    grid: Grid
    log_along: float

    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (KNG,)
    kind: ClassVar[str] = "BoxDraw"
    rounding: ClassVar[str] = (
        "An exact draw by rejection from boxes, of which every decision is taken as real arithmetic would take it, "
        "rounded once, to a multiple of a public power of two next to it in the domain."
    )

    @classmethod
    def of(cls, mechanism: KNG, facts: Schema) -> "BoxDraw | None":
        """Plans the draw for KNG with one sensitivity; None where Θ, bounds, norm or loss are not verified."""
        known = SmoothFacts.of(mechanism, facts) if facts.dimension <= _MOST_COEFFICIENTS else None
        if known is None or not known.are_moderate(_MODERATE):
            return None
        log_along = _log_along(known, float(mechanism.epsilon), facts)
        if log_along > _MOST_ALONG[facts.dimension]:
            return None
        return cls(mechanism, known.noise, known.known.scores, known.body, known.body.grid(), log_along)

    @property
    def duration(self) -> str:
        return ("up to some seconds", "some seconds", "up to minutes")[max(len(self.grid.exponents) - 2, 0)]

    def prepare(self, X: Any, y: Any) -> "BoxedRecords":
        with float64():
            records = in_one_order(self.mechanism.intake.rows(X, y))
        weights = np.asarray(records.weights, np.float64) if isinstance(records, WeightedRecords) else None
        return BoxedRecords(np.asarray(records.rows.x, np.float64), np.asarray(records.rows.y, np.float64), weights)

    def draw(self, data: "BoxedRecords", bits: Bits) -> Float[np.ndarray, " dimension"]:
        if data.found is None:
            sums = self._sums(data)
            data.found = sums, cover_of(sums, self.noise, self.body)
        sums, cover = data.found
        return self.grid.values(draw(cover, sums, self.noise, self.body, self.grid, bits))

    def _sums(self, data: "BoxedRecords") -> RecordSums:
        loss = self.mechanism.loss
        assert isinstance(loss, AbstractPredictorLoss)
        # Without tangents, where nothing is proved.
        plain = loss.verified_score()
        plainly, scores = (RecordScores(one, data.y, data.weights) for one in (plain or self.scores, self.scores))
        coordinates = coordinates_for(data.x, plainly, self.noise, self.body)
        with np.errstate(all="ignore"):
            return RecordSums(data.x, scores, coordinates)


def _log_along(known: SmoothFacts, epsilon: float, facts: Schema) -> float:
    """Measures how many boxes lie along a slab where all scores jump, in logarithms; infinite where it is too thin."""
    dimension, one = facts.dimension, known.known
    assert one.predictor is not None
    lowest, highest = one.predictor
    rise = one.score[1] - one.score[0]
    steepness = float(one.curvature * (highest - lowest) / rise) if rise else 1.0
    # Under replace alone is their number public.
    count = math.inf if facts.num_records is None else facts.num_records
    along = min(math.log(max(steepness, 1.0)), count * epsilon / 2.0)
    return math.inf if steepness > _STEEPEST else (dimension - 1) * along


@dataclasses.dataclass(eq=False, repr=False)
class BoxedRecords:
    """Records, and what draws of them found. Private. **Arguments:** `found`: their sums, and boxes that cover Θ."""

    x: Float[np.ndarray, "records dimension"]
    y: Float[np.ndarray, " records"]
    weights: Float[np.ndarray, " records"] | None = None
    found: tuple[RecordSums, Cover] | None = None

    def __repr__(self) -> str:
        return "<BoxedRecords; OWNER ONLY>"
