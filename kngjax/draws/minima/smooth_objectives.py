"""Objectives with smooth losses and a ridge: gradients and Hessians in float64 whose every rounding is bounded.

J(θ) = ℓ_n(θ; D) + (γ/2)θ'θ + b'θ over R^d, with ∇J(θ) = Σs_i x_i + γθ + b, each s_i times the record's weight where
there are weights, and s_i risen by at most as much as
`AbstractVerifiedScore.slopes` says. A sum of m products, in any order and fused or not, errs by at most
γ_m = mu/(1 - mu) of the sum of their sizes, u = 2^-53 (Higham 2002, section 3.1). So predictors err by
γ_d Σ_j|x_ij θ_j|, from which the loss bounds the errors of scores; sums over 32 records err by γ_32 Σ|s_i x_ij|, and
`math.fsum` adds those up without error. Bounds are widened by far more than what is rounded in computing them.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.core.verified import NEXT_TO_ZERO, UNIT, sum_error
from kngjax.data.records import WeightedRecords
from kngjax.losses.base import Rows
from kngjax.losses.record_scores import RecordScores
from kngjax.losses.verified_scores import AbstractVerifiedScore

# Rows whose products are added up in float64.
_ROWS = 32
# Rows in a processor's cache: blocks of those.
_AT_A_TIME = 256 * _ROWS
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
        x, y = np.ascontiguousarray(records.rows.x, np.float64), np.asarray(records.rows.y, np.float64)
        weights = np.asarray(records.weights, np.float64) if isinstance(records, WeightedRecords) else None
        if more := -len(y) % _ROWS:
            # Rows of zeros add nothing.
            x = np.concatenate([x, np.zeros((more, x.shape[1]))])
            y, weights = (None if part is None else np.concatenate([part, np.zeros(more)]) for part in (y, weights))
            assert y is not None
        return cls(x, np.abs(x), RecordScores(scores, y, weights), ridge, largest)

    def one_in(self, number: int) -> "Objective":
        """Approximates J over this number, by one record in so many."""
        scores = self.scores.rows(slice(None, None, number))
        return Objective(self.x[::number], self.sizes[::number], scores, self.ridge / number, self.largest)

    @property
    def dimension(self) -> int:
        return self.x.shape[1]

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, RecordScores]]:
        """x, |x| and scores of so many rows that they stay in a processor's cache with what is made of them."""
        for start in range(0, len(self.x), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            yield self.x[part], self.sizes[part], self.scores.rows(part)

    def gradient(self, theta: Float[np.ndarray, " dimension"]) -> tuple[np.ndarray, np.ndarray]:
        """Σs_i x_i and how far it may be off: NaN or infinite where float64 cannot tell."""
        blocks, bound = [np.zeros((0, self.dimension))], np.full(self.dimension, NEXT_TO_ZERO)
        with np.errstate(invalid="ignore", over="ignore"):
            for x, sizes, scores in self.parts():
                score, off = scores.floats(*_predictors(x, sizes, theta))
                weight = (off + sum_error(_ROWS) * np.abs(score)) * _WIDER
                bound += (weight @ sizes) * _WIDER
                blocks.append(np.matmul(score.reshape(-1, 1, _ROWS), x.reshape(-1, _ROWS, self.dimension))[:, 0, :])
        together = np.concatenate(blocks)
        if not (np.all(np.isfinite(together)) and np.all(np.isfinite(bound))):
            return np.full(self.dimension, np.nan), np.full(self.dimension, np.nan)
        total = np.array([math.fsum(column) for column in together.T.tolist()])
        return total, bound + 2.0 * UNIT * np.abs(total)

    def slopes(self, theta: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σq_i x_i x_i' for slopes over the box of this radius: its middle, and how far entries may be off."""
        found, bound = np.zeros((2, self.dimension, self.dimension))
        bound += NEXT_TO_ZERO
        with np.errstate(invalid="ignore", over="ignore"):
            for x, sizes, scores in self.parts():
                predictor, error = _predictors(x, sizes, theta)
                least, most = scores.slopes(predictor, (error + sizes @ radius) * _WIDER)
                middle = 0.5 * (least + most)
                # Of the 8 roundings one is of the middle, one of its product with x, and two are of products with
                # weights.
                off = (0.5 * (most - least) + sum_error(len(self.x) + 8) * middle) * _WIDER
                found += (x * middle[:, None]).T @ x
                bound += (sizes * off[:, None]).T @ sizes * _WIDER
        return found, bound

    def about(
        self, theta: np.ndarray, with_hessian: bool = False
    ) -> tuple[Float[np.ndarray, " dimension"], np.ndarray | None]:
        """Σs_i x_i + γθ, and the Hessian if asked for, of whose errors nothing is known."""
        ridge = float(self.ridge)
        gradient, hessian = ridge * theta, ridge * np.eye(self.dimension) if with_hessian else None
        with np.errstate(invalid="ignore", over="ignore"):
            for x, _, scores in self.parts():
                predictor, nothing = x @ theta, np.zeros(len(x))
                gradient = gradient + scores.floats(predictor, nothing)[0] @ x
                if hessian is not None:
                    least, most = scores.slopes(predictor, nothing)
                    hessian += (x * (0.5 * (least + most))[:, None]).T @ x
        return gradient, hessian


def _predictors(x: np.ndarray, sizes: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x'θ of each record, and how far it may be off."""
    return x @ theta, sum_error(x.shape[1]) * (sizes @ np.abs(theta)) * _WIDER + NEXT_TO_ZERO
