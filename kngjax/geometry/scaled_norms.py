"""Norms of whole boxes, sums and lengths, with weights and a scale: in fractions, in balls, and in bounded floats."""

import abc
import dataclasses
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.accounting.exact_costs import root_upward
from kngjax.core.balls import ball_of, largest, precision, square, upper_end

# More than the roundings of a norm's few operations, and than what is lost next to 0.
_MARGIN, _NEXT_TO_ZERO = 2.0**-40, 2.0**-1000
_DIGITS = 128
# The kind of the dual norm.
DUAL = {"maximum": "sum", "sum": "maximum", "length": "length"}


class AbstractScaledNoise(abc.ABC):
    """Noise with density ∝ exp(-‖z/w‖/λ) for some norm, or normal noise, of which w and λ² are exact. Public."""

    weights: tuple[Fraction, ...]
    scale_squared: Fraction

    @property
    def is_everywhere(self) -> bool:
        """Tells whether there is noise in each coordinate."""
        return self.scale_squared > 0 and all(weight > 0 for weight in self.weights)

    def scaled(self, squared: Fraction) -> Any:
        """Multiplies λ² by this number, of a law of the same class."""
        same: Any = self
        return dataclasses.replace(same, scale_squared=self.scale_squared * squared)

    @property
    def ball_scales(self) -> list[arb]:
        """a_j = λw_j in balls, at the precision that is set."""
        root = ball_of(self.scale_squared).sqrt()
        return [root * ball_of(weight) for weight in self.weights]

    @property
    @abc.abstractmethod
    def mean_squares(self) -> Float[np.ndarray, " dimension"]:
        """E (z_j/(λw_j))² of each coordinate."""

    @property
    def deviations(self) -> Float[np.ndarray, " dimension"]:
        """Returns the standard deviation of each coordinate."""
        weights = np.array([float(weight) for weight in self.weights])
        return weights * np.sqrt(float(self.scale_squared) * self.mean_squares)


@dataclasses.dataclass(frozen=True)
class ScaledNorm(AbstractScaledNoise):
    """‖z/w‖/λ with (z/w)_j = z_j/w_j, and the noise of density ∝ exp(-‖z/w‖/λ), or of independent N(0, λ²w_j²).

    Public, and without rounding. It is asked in fractions, in balls, and in floats with the side that a proof needs.

    **Arguments:** `kind`: of ‖·‖: the largest |·|, their sum, or the length; or "normal" noise. `weights`: w.
    `scale_squared`: λ², since lengths have roots.
    """

    kind: Literal["maximum", "sum", "length", "normal"]
    weights: tuple[Fraction, ...]
    scale_squared: Fraction = Fraction(1)

    @property
    def mean_squares(self) -> Float[np.ndarray, " dimension"]:
        """2 of independent coordinates with the density ∝ e^-|z|, else those of a radius times a point.

        In a cube the radius is a sum of d + 1 exponential numbers, E r² = (d + 1)(d + 2), and a coordinate of the point
        has the mean square 1/3. On a sphere E r² is d(d + 1), and a coordinate's mean square 1/d.
        """
        dimension = len(self.weights)
        squares = {
            "sum": 2.0,
            "maximum": (dimension + 1) * (dimension + 2) / 3.0,
            "length": dimension + 1.0,
            "normal": 1.0,
        }
        return np.full(dimension, squares[self.kind])

    def of(self, coordinates: Sequence[int]) -> "ScaledNorm":
        """Restricts the norm to some coordinates, with the same kind and scale."""
        return dataclasses.replace(self, weights=tuple(self.weights[one] for one in coordinates))

    def squared(self, sizes: Sequence[Fraction]) -> Fraction:
        """‖v/w‖² of |v_j|, one a coordinate, without rounding and λ."""
        if self.kind == "length":
            pairs = zip(sizes, self.weights, strict=True)
            return sum(((size / weight) ** 2 for size, weight in pairs), Fraction(0))
        return self.in_fractions(sizes) ** 2

    def in_fractions(self, sizes: Sequence[Fraction]) -> Fraction:
        """‖v/w‖ of |v_j| without rounding and λ; a length is rounded up, by less than 2^-63 of it."""
        if self.kind == "length":
            return root_upward(self.squared(sizes))
        shares = [size / weight for size, weight in zip(sizes, self.weights, strict=True)]
        return max(shares) if self.kind == "maximum" else sum(shares, Fraction(0))

    def __call__(self, z: Sequence[arb]) -> arb:
        """‖z/w‖/λ in balls."""
        return norm_in_balls(self.kind, [one / scale for one, scale in zip(z, self.ball_scales, strict=True)])

    def dual(self, slope: Sequence[arb]) -> arb:
        """sup {b'z : ‖z/w‖ ≤ λ} in balls."""
        return norm_in_balls(DUAL[self.kind], [b * a for b, a in zip(slope, self.ball_scales, strict=True)])

    @functools.cached_property
    def scales(self) -> Float[np.ndarray, " dimension"]:
        """a_j = λw_j, rounded up."""
        with precision(_DIGITS):
            return np.array([_float_above(scale) for scale in self.ball_scales])

    def below(self, sizes: Float[np.ndarray, "*boxes dimension"]) -> Float[np.ndarray, "*boxes"]:
        """Bounds the norm from below for all z with |z_j| at least these; 0 where float64 does not know them."""
        found = self.about(sizes) * (1.0 - _MARGIN) - _NEXT_TO_ZERO
        return np.where(np.isfinite(found), np.maximum(found, 0.0), 0.0)

    def about(self, sizes: Float[np.ndarray, "*boxes dimension"]) -> Float[np.ndarray, "*boxes"]:
        """Computes about the norm from the |z_j|."""
        shares = sizes / self.scales
        if self.kind == "maximum":
            return np.asarray(shares.max(axis=-1))
        return np.asarray(shares.sum(axis=-1) if self.kind == "sum" else np.sqrt(np.square(shares).sum(axis=-1)))

    def above(self, sizes: Float[np.ndarray, " dimension"]) -> float:
        """Bounds the norm from above for all z with |z_j| at most these."""
        with precision(_DIGITS):
            return _float_above(self([arb(one) for one in sizes.tolist()]))

    def largest_form(self, matrix: arb_mat) -> arb:
        """Bounds sup {z'Pz : ‖z/w‖ ≤ λ} from above for a positive semidefinite P."""
        scales = self.ball_scales
        rows = matrix.tolist()
        sizes = [
            [abs(p) * a * b for p, b in zip(row, scales, strict=True)] for row, a in zip(rows, scales, strict=True)
        ]
        if self.kind == "maximum":
            return sum((sum(row, arb(0)) for row in sizes), arb(0))
        own = [row[j] for j, row in enumerate(sizes)]
        # Convex, and so largest at a corner of the cross-polytope; eigenvalues are at most the trace.
        return largest(own) if self.kind == "sum" else sum(own, arb(0))


def norm_in_balls(kind: str, numbers: Sequence[arb]) -> arb:
    """Computes the largest |·|, their sum, or for every other kind the length: at least 0."""
    sizes = [abs(one) for one in numbers]
    if kind == "maximum":
        return largest([arb(0), *sizes])
    # Balls of what is next to 0 would reach below it.
    return sum(sizes, arb(0)) if kind == "sum" else sum(map(square, sizes), arb(0)).nonnegative_part().sqrt()


def _float_above(ball: arb) -> float:
    return float(np.nextafter(float(upper_end(ball)), np.inf)) if ball.is_finite() else math.inf
