"""Norms of gradients in float64, rounded to the side that a proof needs, and in balls."""

import math
from collections.abc import Sequence

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.core.balls import ball_of, largest, precision, upper_end
from kngjax.geometry.abstract_norms import Noise

# More than the roundings of a norm's few operations, and than what is lost next to 0.
_MARGIN, _NEXT_TO_ZERO = 2.0**-40, 2.0**-1000
_DIGITS = 128


class ScaledNorm:
    """‖z‖, of which the density is exp(-‖G(θ)‖). Public. **Arguments:** `noise`: with density ∝ exp(-‖z‖).

    ‖z‖ is the largest |z_j|/a_j, their sum, or the root of the sum of their squares.
    """

    def __init__(self, noise: Noise):
        self.noise = noise
        with precision(_DIGITS):
            self.scales = np.array([_float_above(scale) for scale in self._scales()])

    def _scales(self) -> list[arb]:
        root = ball_of(self.noise.scale_squared).sqrt()
        return [root * ball_of(weight) for weight in self.noise.weights]

    def __call__(self, z: Sequence[arb]) -> arb:
        """‖z‖."""
        sizes = [abs(one) / scale for one, scale in zip(z, self._scales(), strict=True)]
        if self.noise.kind == "maximum":
            return largest(sizes)
        if self.noise.kind == "sum":
            return sum(sizes, arb(0))
        return sum((size * size for size in sizes), arb(0)).nonnegative_part().sqrt()

    def below(self, sizes: Float[np.ndarray, "*boxes dimension"]) -> Float[np.ndarray, "*boxes"]:
        """Bounds ‖z‖ from below for all z with |z_j| at least these; 0 where float64 does not know them."""
        found = self.about(sizes) * (1.0 - _MARGIN) - _NEXT_TO_ZERO
        return np.where(np.isfinite(found), np.maximum(found, 0.0), 0.0)

    def about(self, sizes: Float[np.ndarray, "*boxes dimension"]) -> Float[np.ndarray, "*boxes"]:
        """Computes about ‖z‖ from the |z_j|."""
        return np.asarray(_norm(self.noise.kind, sizes / self.scales))

    def above(self, sizes: Float[np.ndarray, " dimension"]) -> float:
        """Bounds ‖z‖ from above for all z with |z_j| at most these."""
        with precision(_DIGITS):
            return _float_above(self([arb(one) for one in sizes.tolist()]))

    def largest_form(self, matrix: arb_mat) -> arb:
        """Bounds sup {z'Pz : ‖z‖ ≤ 1} from above for a positive semidefinite P."""
        scales = self._scales()
        rows = matrix.tolist()
        sizes = [
            [abs(p) * a * b for p, b in zip(row, scales, strict=True)] for row, a in zip(rows, scales, strict=True)
        ]
        if self.noise.kind == "maximum":
            return sum((sum(row, arb(0)) for row in sizes), arb(0))
        own = [row[j] for j, row in enumerate(sizes)]
        # Convex, and so largest at a corner of the cross-polytope; eigenvalues are at most the trace.
        return largest(own) if self.noise.kind == "sum" else sum(own, arb(0))


def _norm(kind: str, sizes: np.ndarray) -> np.ndarray | np.floating:
    if kind == "maximum":
        return sizes.max(axis=-1)
    return sizes.sum(axis=-1) if kind == "sum" else np.sqrt(np.square(sizes).sum(axis=-1))


def _float_above(ball: arb) -> float:
    return float(np.nextafter(float(upper_end(ball)), np.inf)) if ball.is_finite() else math.inf
