"""Gradients of smooth losses over boxes, from their records, with every rounding bounded.

θ = θ₀ + Mu, with θ₀ and M the float64 numbers that they are, z_i = M'x_i, and s_i the score of a record, which rises
by at least l_i and at most m_i times as much as its predictor x_i'θ₀ + z_i'u, from c to any u with |u - c| ≤ h, so that

    G(u) - G(c) = Σ q_i x_i z_i'(u - c)  for some q_i ∈ [l_i, m_i]   there.

A sum of m products, in any order and fused or not, errs by at most γ_m = mu/(1 - mu) of the sum of their sizes,
u = 2^-53 (Higham 2002, section 3.1). All that x_i'θ₀ + z_i'u is made of passes 2d + 3 roundings at most, and so it errs
by γ_{2d+3} Σ_j|x_ij|(|θ₀|_j + Σ_l|M_jl u_l|). Bounds are widened by far more than what is rounded in computing them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.verified import NEXT_TO_ZERO, UNIT, sum_error
from kngjax.draws.boxes.box_coordinates import BoxCoordinates
from kngjax.draws.linear_algebra import times
from kngjax.losses.record_scores import RecordScores

_WIDER = 1.0 + 2.0**-20
# So many numbers of a table stay in a processor's cache.
_AT_A_TIME = 2**16


class Slopes(NamedTuple):
    """Holds bounds on G over some boxes. Private.

    **Arguments:** `centres`, `halves`: the boxes. `gradient`: G(c), but for at most `error`. `matrix`: G(u) - G(c) is
    this matrix times u - c, but for at most `off` times |u - c|.
    """

    centres: Float[np.ndarray, "boxes dimension"]
    halves: Float[np.ndarray, "boxes dimension"]
    gradient: Float[np.ndarray, "boxes dimension"]
    error: Float[np.ndarray, "boxes dimension"]
    matrix: Float[np.ndarray, "boxes dimension dimension"]
    off: Float[np.ndarray, "boxes dimension dimension"]

    def __repr__(self) -> str:
        return "<Slopes; OWNER ONLY>"

    @staticmethod
    def join(parts: list["Slopes"]) -> "Slopes":
        return Slopes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def sizes(self, which: np.ndarray, centres: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, ...]:
        """Bounds |G_j| from below over boxes within these, with its mean, its variation and the error of all that.

        **Arguments:** `which`: the numbers of the boxes here that contain those.
        """
        gradient, error, matrix, off = (part[which] for part in (self.gradient, self.error, self.matrix, self.off))
        away = centres - self.centres[which]
        moves, sizes = np.matmul(matrix, away[:, :, None])[:, :, 0], np.abs(matrix)
        middle = np.abs(gradient + moves)
        varied = np.matmul(sizes, halves[:, :, None])[:, :, 0]
        unknown = np.matmul(off, (np.abs(away) + halves)[:, :, None])[:, :, 0] + error
        rounded = sum_error(away.shape[1] + 4) * (
            np.abs(gradient) + np.matmul(sizes, np.abs(away)[:, :, None])[:, :, 0] + varied + unknown
        )
        least = middle - (varied + unknown + rounded) * _WIDER - NEXT_TO_ZERO
        return least, _average(middle, varied), varied, unknown


class RecordSums:
    """Records in these coordinates. Private."""

    def __init__(self, x: np.ndarray, scores: RecordScores, coordinates: BoxCoordinates):
        self.x, self.scores, self.coordinates = x, scores, coordinates
        self.sizes = np.abs(x)
        # With room for roundings of middles, of weights, and of products.
        self._error = sum_error(len(x) + 4 * x.shape[1] + 8)
        rounded = sum_error(2 * x.shape[1] + 3) * _WIDER
        self._start, self._moves = x @ coordinates.centre, x @ coordinates.matrix
        # Bounds on |x|'|M|, and on |x'M|.
        spread = (self.sizes @ np.abs(coordinates.matrix)) * _WIDER
        self._reach = (np.abs(self._moves) + rounded * spread) * _WIDER
        self._doubt = np.concatenate(
            [rounded * (self.sizes @ np.abs(coordinates.centre))[:, None], rounded * spread], axis=1
        )
        self._total = self.sizes.T @ spread * _WIDER

    def __repr__(self) -> str:
        return "<RecordSums; OWNER ONLY>"

    @property
    def dimension(self) -> int:
        return self.x.shape[1]

    def over(self, centres: np.ndarray, halves: np.ndarray) -> Slopes:
        """Bounds G over these boxes."""
        step = max(1, _AT_A_TIME // max(1, self.x.size))
        parts = [self._over(centres[k : k + step], halves[k : k + step]) for k in range(0, len(centres), step)]
        return parts[0] if len(parts) == 1 else Slopes.join(parts)

    def _over(self, centres: np.ndarray, halves: np.ndarray) -> Slopes:
        predictor, error = self._predictors(centres)
        score, off = self.scores.floats(predictor, error)
        least, most = self.scores.secants(predictor, error, halves @ self._reach.T * _WIDER)
        middle, apart = 0.5 * (least + most), 0.5 * (most - least) * _WIDER
        bound = ((off + self._error * np.abs(score)) @ self.sizes) * _WIDER + NEXT_TO_ZERO
        matrix = np.matmul(self.x.T * middle[:, None, :], self._moves)
        unknown = np.matmul(self.sizes.T * apart[:, None, :], self._reach) * _WIDER
        largest = np.max(most, axis=1, initial=0.0)[:, None, None]
        return Slopes(
            centres, halves, score @ self.x, bound, matrix, unknown + self._error * largest * self._total + NEXT_TO_ZERO
        )

    def least(self, centres: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds |G_j| from below over these boxes, with its mean, from the ends of scores, which are monotone."""
        step = max(1, _AT_A_TIME // max(1, self.x.size))
        parts = [self._least(centres[k : k + step], halves[k : k + step]) for k in range(0, len(centres), step)]
        least, average = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return least, average

    def _least(self, centres: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        predictor, error = self._predictors(centres)
        radius = halves @ self._reach.T * _WIDER
        low, off = self.scores.floats(predictor - radius, (error + UNIT * np.abs(predictor - radius)) * _WIDER)
        high, more = self.scores.floats(predictor + radius, (error + UNIT * np.abs(predictor + radius)) * _WIDER)
        middle, apart = 0.5 * (low + high), 0.5 * (high - low) + np.maximum(off, more)
        spread = ((apart + self._error * np.abs(middle)) * _WIDER) @ self.sizes * _WIDER + NEXT_TO_ZERO
        size = np.abs(middle @ self.x)
        return size - spread, _average(size, spread)

    def _predictors(self, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x'θ(c), and how far it may be off."""
        factors = np.concatenate([np.ones((len(centres), 1)), np.abs(centres)], axis=1)
        return self._start + centres @ self._moves.T, factors @ self._doubt.T * _WIDER + NEXT_TO_ZERO

    def lowest_form(self, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ l_i z_i z_i' for the least slopes from θ₀ within {|u| ≤ h}, and how far its entries may be off."""
        error = self._doubt[:, 0] * _WIDER + NEXT_TO_ZERO
        least = self.scores.secants(self._start, error, self._reach @ half * _WIDER)[0]
        off = self._error * np.max(least, initial=0.0) * (np.abs(self.coordinates.matrix).T @ self._total)
        return (self._moves.T * least) @ self._moves, off * _WIDER + NEXT_TO_ZERO

    def gradient(self, theta: Sequence[arb]) -> list[arb]:
        """G, for every θ in these balls, in float64."""
        middles = np.array([float(one.mid()) for one in theta])
        away = np.array([float((t - arb(one)).abs_upper()) for t, one in zip(theta, middles.tolist(), strict=True)])
        error = sum_error(self.dimension) * (self.sizes @ np.abs(middles)) + self.sizes @ (away * _WIDER)
        score, off = self.scores.floats(self.x @ middles, error * _WIDER + NEXT_TO_ZERO)
        bound = ((off + self._error * np.abs(score)) @ self.sizes) * _WIDER + NEXT_TO_ZERO
        return [arb(one, two) for one, two in zip((score @ self.x).tolist(), bound.tolist(), strict=True)]

    def gradient_in_balls(self, theta: Sequence[arb]) -> list[arb]:
        """G, record by record in balls of the digits that are set."""
        table = arb_mat(len(self.x), self.dimension, self.x.ravel().tolist())
        scores = self.scores.balls(times(table, theta))
        return (arb_mat(1, len(scores), scores) * table).entries()


def _average(middle: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Averages |m + st| over t uniform on [-1, 1]."""
    return np.where(middle < spread, 0.5 * (middle * middle / spread + spread), middle)
