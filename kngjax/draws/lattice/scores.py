"""Scores of the lattice mechanism: whole numbers that one record changes by at most `RESOLUTION`, with bounds on boxes.

A score is a sum over the records in whole numbers, divided by how much one record can change it and rounded down to a
multiple of 1/RESOLUTION: if |a - b| ≤ W then |⌊R·a/W⌋ - ⌊R·b/W⌋| ≤ R for a whole R. Nothing else is rounded. Levels are
Python's whole numbers: under add_remove nothing public bounds the number of records, nor the largest level.
"""

import abc
import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kngjax.draws.lattice.coordinates import LatticeCoordinates, round_frame
from kngjax.draws.lattice.units import DomainLattice

# Levels a unit of sensitivity: a finer one changes log-probabilities by less than ε/8192.
RESOLUTION = 2**12

# Weights are whole multiples of a part of the score's unit, so that rounding them up costs nothing to speak of.
WEIGHT_UNITS = 2**30

# Levels that are computed in float64 are moved outward by this share: more than their roundings, which are fewer than
# 32 of 2^-53 each.
_OUTWARD = 2.0**-48


class LatticeBoxes(NamedTuple):
    """Boxes low ≤ m(k) ≤ high of lattice points with whole bounds of the score on them, and what scores keep.

    `lower` ≤ score(k) for every k in Θ with m(k) in the box, for all data: each score proves it of its own. The draw is
    exact because of it.

    **Arguments:** `low`, `high`: shape (boxes, numbers), of `AbstractCoordinates`. `lower`: shape (boxes,). `middle`:
    about the score at the middle of the box, on which nothing rests. `runs`: of each box the records whose part of the
    score is not linear on it, from and before which (see `Runs`). `sums`: shape (boxes, ...), of the others.
    """

    low: Int[np.ndarray, "boxes dimension"]
    high: Int[np.ndarray, "boxes dimension"]
    lower: np.ndarray
    middle: Float[np.ndarray, " boxes"]
    runs: list[np.ndarray]
    sums: np.ndarray

    def at(self, indices: np.ndarray) -> "LatticeBoxes":
        """Selects some of the boxes."""
        low, high, lower, middle, sums = (part[indices] for part in (*self[:4], self.sums))
        return LatticeBoxes(low, high, lower, middle, [self.runs[index] for index in indices], sums)

    def join(self, *others: "LatticeBoxes") -> "LatticeBoxes":
        """Joins these boxes and others."""
        all_of_them = (self, *others)
        low, high, lower, middle, sums = (
            np.concatenate(parts) for parts in zip(*((*boxes[:4], boxes.sums) for boxes in all_of_them), strict=True)
        )
        return LatticeBoxes(low, high, lower, middle, [runs for boxes in all_of_them for runs in boxes.runs], sums)


class AbstractScore(abc.ABC):
    """A score on lattice points k of Z^d, with boxes in coordinates m of them: at first those of k itself."""

    _coordinates: Any
    _origin: Int[np.ndarray, " numbers"]
    _importance: Float[np.ndarray, " numbers"]

    def near(self, domain: DomainLattice, rate: float) -> "AbstractScore":
        """Moves boxes into coordinates in which exp(-rate·score) is about round on Θ; speed alone depends on them."""
        return self

    @property
    def coordinates(self) -> Any:
        """m(k): `AbstractCoordinates`."""
        return self._coordinates

    @property
    def origin(self) -> Int[np.ndarray, " dimension"]:
        """Returns about the m at which the score is least."""
        return self._origin

    @property
    def held(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the ends of the box of m out of which rays alone say what the score is; None for no such box."""
        return None

    def importance(self) -> np.ndarray:
        """Estimates how much the score changes when each m_j grows by 1, which tells what side of a box to halve."""
        return self._importance

    def spread(self, boxes: LatticeBoxes) -> np.ndarray:
        """Estimates how much of the score boxes leave unknown per step of each m_j; shape (boxes, numbers).

        0 where nothing is known of it.
        """
        return np.zeros(boxes.low.shape)

    def beyond(self, low: np.ndarray, high: np.ndarray, within: LatticeBoxes | None = None) -> np.ndarray | None:
        """Bounds the score from below on all rays from `origin`, from these boxes on; None if nothing is known.

        **Arguments:** `low`, `high`: shape (boxes, d). `within`: one box in which they and `origin` lie, None for any.
        """
        return None

    @abc.abstractmethod
    def whole(self, low: np.ndarray, high: np.ndarray) -> LatticeBoxes:
        """Bounds the score on the boxes of `coordinates.around`."""

    @abc.abstractmethod
    def parts(self, low: np.ndarray, high: np.ndarray, runs: list[np.ndarray], sums: np.ndarray) -> LatticeBoxes:
        """Boxes within boxes whose `runs` and `sums` are given."""

    @abc.abstractmethod
    def at(self, point: np.ndarray, runs: np.ndarray, sums: np.ndarray) -> int:
        """Returns the score of k in Θ, shape (d,), where k lies in a box with these runs and sums."""


class GradientNorm:
    """Computes ⌊R·‖G‖⌋ of a gradient in whole numbers.

    ‖G‖ is max_j |G_j|/W_j; with `scales` Σ_j m_j|G_j|/W, or (Σ_j m_j²G_j²)^½/W. For whole x and w, ⌊√x/w⌋ = ⌊⌊√x⌋/w⌋.

    **Arguments:** `weights`: W_j, or W, in whole units of 1/WEIGHT_UNITS: at least the change by one record. `scales`:
    m_j, whole numbers. `is_length`: whether it is the length.
    """

    def __init__(self, weights, scales=None, is_length: bool = False):
        self.weights = np.asarray(weights, object)
        self._scales, self._is_length = scales, is_length

    def __call__(self, sizes: np.ndarray) -> np.ndarray:
        """The levels of |G|, shape (..., d)."""
        if self._scales is None:
            return np.asarray(np.max(levels(sizes, self.weights), axis=-1), object)
        parts = sizes * self._scales
        if not self._is_length:
            return np.asarray(levels(np.sum(parts, axis=-1), self.weights), object)
        squares = np.sum((parts * (RESOLUTION * WEIGHT_UNITS)) ** 2, axis=-1)
        return np.asarray(np.frompyfunc(math.isqrt, 1, 1)(squares) // self.weights, object)

    @property
    def factors(self) -> Float[np.ndarray, " dimension"]:
        """Returns the factors of |G_j| before the largest, the sum or the length is taken; in floats."""
        unit = RESOLUTION * WEIGHT_UNITS
        if self._scales is None:
            return np.array([unit / int(weight) for weight in self.weights])
        return np.array([int(scale) * unit / int(self.weights) for scale in self._scales])

    def about(self, sizes: np.ndarray) -> Float[np.ndarray, "..."]:
        """R·‖G‖ in floats, of |G| < 2^53, shape (..., d)."""
        parts = sizes * self.factors
        if self._is_length:
            return np.sqrt(np.sum(parts**2, axis=-1))
        return np.asarray(np.max(parts, axis=-1) if self._scales is None else np.sum(parts, axis=-1))

    def dual(self, sizes: np.ndarray) -> Float[np.ndarray, "..."]:
        """Returns the least c with |G'v| ≤ c·R‖G‖ for all G, in floats, of |v| of shape (..., d).

        For a check loss factors are at most R where a record has X_j ≠ 0, and there |v_j| is 0 or at least ½: no square
        is next to 0.
        """
        parts = sizes / self.factors
        if self._is_length:
            return np.sqrt(np.sum(parts**2, axis=-1))
        return np.asarray(np.sum(parts, axis=-1) if self._scales is None else np.max(parts, axis=-1))

    def least(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Returns the smallest norm for low ≤ G ≤ high: norms grow with each |G_j|, and so does rounding down."""
        return self(np.maximum(np.maximum(low, -high), 0))

    def about_least(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Bounds the norm from below for low ≤ G ≤ high, of whole numbers below 2^53."""
        return outward(self.about(np.maximum(np.maximum(low, -high), 0.0)))


def levels(total, weight):
    """⌊R·total/W⌋, in Python's whole numbers, since they do not fit into 64 bits."""
    return np.asarray(total, object) * (RESOLUTION * WEIGHT_UNITS) // weight


def outward(values: np.ndarray) -> np.ndarray:
    """Whole numbers below these, which are nonnegative with a relative error below `_OUTWARD`."""
    return _whole(np.floor(values * (1.0 - _OUTWARD)))


def _whole(values: np.ndarray) -> np.ndarray:
    if np.all(values < 2.0**62):
        return values.astype(np.int64)
    return np.array([int(value) for value in values], object)


class QuadraticScore(AbstractScore):
    """Scores of G = A k - b, or of q(k) = k'A k - 2b'k + s, in Python's whole numbers of any size.

    Bounds on a box of m, without rounding: with k = Um each G_j is linear in m, so extreme at ends of the sides, by the
    signs of (AU)_j. q is convex, since A is a Gram matrix, so above its tangent at the whole middle, which is linear;
    and q ≥ 0, as a sum of squares. Levels grow with |G| and with q, so `lower` is below all of the box. Rays would say
    no more: bounds are as good however large boxes are.

    **Arguments:** `gram`: A, shape (d, d). `moment`: b. `squares`: s. `norm`: of G, for KNG; None for the exponential
    mechanism. `weight`: at least what one record changes the quadratic form by, in whole units of 1/WEIGHT_UNITS.
    `coordinates`: U, None for those of k.
    """

    def __init__(
        self,
        gram,
        moment,
        squares=0,
        norm: GradientNorm | None = None,
        weight: int = 1,
        coordinates: LatticeCoordinates | None = None,
    ):
        self._gram, self._moment, self._squares = _objects(gram), _objects(moment), int(squares)
        self._norm, self._weight = norm, int(weight)
        self._coordinates = LatticeCoordinates.own(len(self._moment)) if coordinates is None else coordinates
        self._origin, self._importance = np.zeros(len(self._moment), np.int64), np.ones(len(self._moment))
        matrix = _objects(self._coordinates.matrix)
        self._moves = self._gram @ matrix
        self._turned = matrix.T @ self._moves, matrix.T @ self._moment

    def near(self, domain, rate):
        if self._norm is not None:
            scaled = rate * self._norm.factors[:, None] * self._gram.astype(float)
            form = scaled.T @ scaled
        else:
            form = rate * RESOLUTION * (WEIGHT_UNITS / self._weight) * self._gram.astype(float)
        coordinates, importance = round_frame(form, domain)
        near = QuadraticScore(self._gram, self._moment, self._squares, self._norm, self._weight, coordinates)
        near._importance = importance
        return near

    def whole(self, low, high):
        return self.parts(low[None], high[None], [np.empty((2, 0), np.int64)], np.empty((1, 0), np.int64))

    def parts(self, low, high, runs, sums):
        lower, middle = self._bounds(_objects(low), _objects(high))
        return LatticeBoxes(low, high, lower, middle.astype(float), runs, sums)

    def _bounds(self, low, high):
        centre = (low + high) // 2
        if self._norm is not None:
            # Linear: extreme at the ends.
            up, down = np.maximum(self._moves, 0), np.minimum(self._moves, 0)
            least, most = (low @ up.T + high @ down.T - self._moment, high @ up.T + low @ down.T - self._moment)
            return self._norm.least(least, most), self._norm(abs(centre @ self._moves.T - self._moment))
        # Convex: above its tangent at the middle.
        gram, moment = self._turned
        slope = 2 * (centre @ gram - moment)
        value = np.sum((centre @ gram - 2 * moment) * centre, axis=-1) + self._squares
        least = value + np.sum(np.minimum(slope * (low - centre), slope * (high - centre)), axis=-1)
        return tuple(levels(np.maximum(level, 0), self._weight) for level in (least, value))

    def at(self, point, runs, sums):
        point = _objects(point)
        if self._norm is not None:
            return int(self._norm(abs(point @ self._gram - self._moment)))
        value = np.sum((point @ self._gram - 2 * self._moment) * point, axis=-1) + self._squares
        return int(levels(value, self._weight))


def _objects(values) -> np.ndarray:
    """Converts values to an array of Python's whole numbers."""
    return np.array(np.asarray(values).tolist(), dtype=object)
