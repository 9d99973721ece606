"""Curvatures and squared scores of records at a public θ, as rows of bounded numbers whose sums are released.

At the released θ̃ of an M-estimator the interval needs H = Σw_i x_i x_i' and J = Σs_i² x_i x_i', w = ρ''(x'θ̃, y) and
s = ρ'(x'θ̃, y). θ̃ is public by then, so that (w xx', s² xx') is a function of one record by itself, computed element
by element from +, -, *, / and square roots; it is clipped to public bounds where the sums are released
(`kngjax.KNormMechanism`), whose proof needs no more than that.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.records import Records, WeightedRecords
from kngjax.geometry.reach import SinglePoint
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.sensitivity import weighted

Floats = Float[np.ndarray, "..."]
_LARGEST = float(np.finfo(np.float64).max)


@dataclasses.dataclass(frozen=True)
class RecordCurvature:
    """Computes w and s² of records at θ, each divided by a public bound. Public.

    **Arguments:** `loss`: ρ. `bounds`: of records, with their largest weight. `bandwidth`: h for a score that jumps,
    whose w is 1{|y - x'θ| ≤ h}·J/(2h), J the jump; None for others.
    """

    loss: Any
    bounds: Bounds
    bandwidth: float | None = None

    def units(self, theta: Float[np.ndarray, " dimension"]) -> tuple[float, float]:
        """Bounds w and s² of a record within the bounds at θ; float64 may be off by its last digits.

        Finite at every θ, as the budget of the sums is spent by then: of what is beyond float64, like squared scores of
        Poisson's loss at x'θ > 355, the largest number that is not.
        """
        loss, bounds = self.loss, self.bounds
        with float64():
            predictor = SinglePoint(theta).linear_interval(*bounds.features(len(theta)))
            ends = loss.score_interval(predictor, loss.response_interval(bounds))
            score = max(abs(float(np.asarray(end))) for end in ends)
            if self.bandwidth is not None:
                curvature = abs(float(np.asarray(loss.score_step()[1]))) / (2.0 * self.bandwidth)
            else:
                curvature = float(np.asarray(loss.curvature_bound(predictor)))
        largest = weighted.largest(bounds)
        # Rows of persons have weights of their own where curvatures are summed.
        curvature, score = (1.0 if bounds.of_persons else largest) * curvature, largest * score
        return min(curvature, _LARGEST), min(score * score, _LARGEST)

    @np.errstate(over="ignore", invalid="ignore")
    def of(
        self,
        records: Records | WeightedRecords,
        theta: Float[np.ndarray, " dimension"],
        units: tuple[float, float] | None = None,
    ) -> tuple[Floats, Floats]:
        """Computes w and s² of each record over `units`, within [0, 1]; with weights ωw and ω²s². Private.

        With persons it returns w and s of each row, without weights; s is over the root of the unit of all k votes.

        **Arguments:** `units`: those at θ, where they are known.
        """
        x, y = np.asarray(records.rows.x, np.float64), np.asarray(records.rows.y, np.float64)
        predictor = np.zeros(len(x))
        # Column by column, so that what is computed of a record does not depend on where it stands.
        for column, coefficient in zip(x.T, theta.tolist(), strict=True):
            predictor = predictor + column * coefficient
        largest, of_persons, units = weighted.largest(self.bounds), self.bounds.of_persons, units or self.units(theta)
        curvature_unit, square_unit = (max(unit, np.finfo(np.float64).tiny) for unit in units)
        curvature_unit, square_unit = curvature_unit / (1.0 if of_persons else largest), square_unit / largest**2
        none = np.zeros_like(predictor)
        if self.bandwidth is not None:
            step = [float(np.asarray(number)) for number in self.loss.score_step()]
            score = np.where(predictor >= y, step[0] + step[1], step[0])
            curvature = np.where(np.abs(y - predictor) <= self.bandwidth, curvature_unit, 0.0)
        else:
            verified = self.loss.verified_score()
            assert verified is not None
            score, _ = verified.floats(predictor, none, y)
            least, most = verified.slopes(predictor, none, y)
            curvature = least + 0.5 * (most - least)
        shares = _share(curvature, curvature_unit), _share(score * score, square_unit)
        if of_persons:
            return shares[0], np.copysign(np.sqrt(shares[1]), score) / largest
        if isinstance(records, Records):
            return shares
        weights = np.clip(np.asarray(records.weights, np.float64) / largest, 0.0, 1.0)
        return shares[0] * weights, shares[1] * weights * weights


def _share(numbers: Floats, unit: float) -> Floats:
    """Divides numbers by their unit, within [0, 1]; 1 where float64 has no quotient."""
    shares = numbers / unit
    np.clip(shares, 0.0, 1.0, out=shares)
    shares[np.isnan(shares)] = 1.0
    return shares


def can_serve(loss: Any) -> bool:
    """Tells whether w and s² of the loss are known here."""
    if not isinstance(loss, AbstractPredictorLoss):
        return False
    return loss.score_is_piecewise_constant or loss.verified_score() is not None
