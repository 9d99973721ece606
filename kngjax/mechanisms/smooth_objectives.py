"""Objectives with smooth losses and a ridge: gradients and Hessians in float64 whose every rounding is bounded.

J(θ) = ℓ_n(θ; D) + (γ/2)θ'θ + b'θ over R^d, with ∇J(θ) = Σs_i x_i + γθ + b, each s_i times the record's weight where
there are weights, and s_i risen by at most as much as
`AbstractVerifiedScore.slopes` says. A sum of m products, in any order and fused or not, errs by at most
γ_m = mu/(1 - mu) of the sum of their sizes, u = 2^-53 (Higham 2002, section 3.1). So predictors err by
γ_d Σ_j|x_ij θ_j|, from which the loss bounds the errors of scores; sums over 32 records err by γ_32 Σ|s_i x_ij|, and
`math.fsum` adds those up without error. Bounds are widened by far more than what is rounded in computing them.
"""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.verified import NEXT_TO_ZERO, UNIT, sum_error
from kngjax.data.records import WeightedRecords
from kngjax.losses.record_scores import RecordScores
from kngjax.losses.rows import Rows
from kngjax.losses.verified_scores import AbstractVerifiedScore

# Rows whose products are added up in float64.
_ROWS = 32
# More than the roundings of a bound's sums over up to 2^30 records.
_WIDER = 1.0 + 2.0**-20


@owner_only
class Objective(OwnerOnly):
    """J but for its linear term. Private.

    **Arguments:** `x`: features. `scores`: s of these records, which have responses and perhaps weights. `ridge`:
    γ > 0. `largest`: at least the largest eigenvalue of one record's Hessian.
    """

    x: Float[np.ndarray, "records dimension"]
    sizes: Float[np.ndarray, "records dimension"]
    scores: RecordScores
    ridge: Fraction
    largest: Fraction

    @classmethod
    def of(cls, records: Rows, scores: AbstractVerifiedScore, ridge: Fraction, largest: Fraction) -> "Objective":
        # Rows of zeros add nothing.
        x, y = np.asarray(records.rows.x, np.float64), np.asarray(records.rows.y, np.float64)
        more = -len(y) % _ROWS
        x = np.ascontiguousarray(np.concatenate([x, np.zeros((more, x.shape[1]))]))
        weights = np.asarray(records.weights, np.float64) if isinstance(records, WeightedRecords) else None
        y, weights = (None if part is None else np.concatenate([part, np.zeros(more)]) for part in (y, weights))
        assert y is not None
        return cls(x, np.abs(x), RecordScores(scores, y, weights), ridge, largest)

    def one_in(self, number: int) -> "Objective":
        """About J over this number, of every so-many-th record."""
        scores = self.scores.one_in(number)
        return Objective(self.x[::number], self.sizes[::number], scores, self.ridge / number, self.largest)

    @property
    def dimension(self) -> int:
        return self.x.shape[1]

    def gradient(self, theta: Float[np.ndarray, " dimension"]) -> tuple[np.ndarray, np.ndarray]:
        """Σs_i x_i and how far it may be off: NaN or infinite where float64 cannot tell."""
        predictor, error = self._predictors(theta)
        with np.errstate(invalid="ignore", over="ignore"):
            score, off = self.scores.floats(predictor, error)
            weight = (off + sum_error(_ROWS) * np.abs(score)) * _WIDER
            bound = (weight @ self.sizes) * _WIDER + NEXT_TO_ZERO
            blocks = np.matmul(score.reshape(-1, 1, _ROWS), self.x.reshape(-1, _ROWS, self.dimension))[:, 0, :]
        if not (np.all(np.isfinite(blocks)) and np.all(np.isfinite(bound))):
            return np.full(self.dimension, np.nan), np.full(self.dimension, np.nan)
        total = np.array([math.fsum(column) for column in blocks.T.tolist()])
        return total, bound + 2.0 * UNIT * np.abs(total)

    def slopes(self, theta: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σq_i x_i x_i' for slopes over the box of this radius: its middle, and how far entries may be off."""
        predictor, error = self._predictors(theta)
        with np.errstate(invalid="ignore", over="ignore"):
            least, most = self.scores.slopes(predictor, (error + self.sizes @ radius) * _WIDER)
            middle = 0.5 * (least + most)
            # Of the 8 roundings one is of the middle, one of its product with x, and two are of products with weights.
            off = (0.5 * (most - least) + sum_error(len(self.x) + 8) * middle) * _WIDER
            return (self.x * middle[:, None]).T @ self.x, (
                self.sizes * off[:, None]
            ).T @ self.sizes * _WIDER + NEXT_TO_ZERO

    def _predictors(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(invalid="ignore", over="ignore"):
            error = sum_error(self.dimension) * (self.sizes @ np.abs(theta)) * _WIDER + NEXT_TO_ZERO
            return self.x @ theta, error
