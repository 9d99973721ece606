"""Scores of the lattice mechanism: whole numbers that one record changes by at most `RESOLUTION`, with bounds on boxes.

A score is a sum over the records in whole numbers, divided by how much one record can change it and rounded down to a
multiple of 1/RESOLUTION: if |a - b| ≤ W then |⌊R·a/W⌋ - ⌊R·b/W⌋| ≤ R for a whole R. Nothing else is rounded. Levels are
Python's whole numbers: under add_remove nothing public bounds the number of records, nor the largest level.
"""

import abc
import itertools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

# Levels a unit of sensitivity: a finer one changes log-probabilities by less than ε/8192.
RESOLUTION = 2**12

# Weights are whole multiples of a part of the score's unit, so that rounding them up costs nothing to speak of.
WEIGHT_UNITS = 2**30

# Rows times boxes that are looked at in one pass.
_ROWS_A_PASS = 2**15

# Up to so many open records every pattern of their signs is tried.
_MOST_PATTERNS = 3


class LatticeBoxes(NamedTuple):
    """Boxes low ≤ k ≤ high of lattice points with whole bounds of the score on them, and what scores keep of each.

    `lower` ≤ score(k) for every whole k in the box, for all data: each score proves it of its own. The draw is exact
    because of it.

    **Arguments:** `low`, `high`: shape (boxes, d). `lower`, `upper`: shape (boxes,). `rows`: of each box the records
    whose part of the score is not linear on it. `sums`: shape (boxes, ...), of the others.
    """

    low: Int[np.ndarray, "boxes dimension"]
    high: Int[np.ndarray, "boxes dimension"]
    lower: np.ndarray
    upper: np.ndarray
    rows: list[np.ndarray]
    sums: np.ndarray

    def at(self, indices: np.ndarray) -> "LatticeBoxes":
        """Some of them."""
        low, high, lower, upper, sums = (part[indices] for part in (*self[:4], self.sums))
        return LatticeBoxes(low, high, lower, upper, [self.rows[index] for index in indices], sums)

    def join(self, *others: "LatticeBoxes") -> "LatticeBoxes":
        """These and others."""
        all_of_them = (self, *others)
        low, high, lower, upper, sums = (
            np.concatenate(parts) for parts in zip(*((*boxes[:4], boxes.sums) for boxes in all_of_them), strict=True)
        )
        return LatticeBoxes(low, high, lower, upper, [rows for boxes in all_of_them for rows in boxes.rows], sums)


class AbstractScore(abc.ABC):
    """A score on lattice points k of Z^d."""

    @abc.abstractmethod
    def whole(self, low: np.ndarray, high: np.ndarray) -> LatticeBoxes:
        """The one box from low to high, each of shape (d,)."""

    @abc.abstractmethod
    def parts(self, low: np.ndarray, high: np.ndarray, rows: list[np.ndarray], sums: np.ndarray) -> LatticeBoxes:
        """Boxes within boxes whose `rows` and `sums` are given."""

    @abc.abstractmethod
    def at(self, point: np.ndarray, rows: np.ndarray, sums: np.ndarray) -> int:
        """The score of k, shape (d,), in a box with these rows and sums."""

    @abc.abstractmethod
    def importance(self) -> np.ndarray:
        """About how much the score changes when each k_j grows by 1: which side of a box to halve."""


class GradientNorm:
    """⌊R·‖G‖⌋ of a gradient in whole numbers: of max_j |G_j|/W_j, or with `scales` of Σ_j m_j|G_j|/W.

    **Arguments:** `weights`: W_j, or W, in whole units of 1/WEIGHT_UNITS: at least the change by one record. `scales`:
    m_j, whole numbers.
    """

    def __init__(self, weights, scales=None):
        self.weights = np.asarray(weights, object)
        self._scales = scales

    def __call__(self, sizes: np.ndarray) -> np.ndarray:
        """The levels of |G|, shape (..., d)."""
        if self._scales is None:
            return np.asarray(np.max(_levels(sizes, self.weights), axis=-1), object)
        return np.asarray(_levels(np.sum(sizes * self._scales, axis=-1), self.weights), object)

    def between(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest for low ≤ G ≤ high: norms grow with each |G_j|, and so does rounding down."""
        return self(np.maximum(np.maximum(low, -high), 0)), self(np.maximum(high, -low))


def _levels(total, weight):
    # In Python's whole numbers, since they do not fit into 64 bits.
    return np.asarray(total, object) * (RESOLUTION * WEIGHT_UNITS) // weight


class QuadraticScore(AbstractScore):
    """Scores of G = A k - b, or of q(k) = k'A k - 2b'k + s, in Python's whole numbers of any size.

    Bounds on a box, without rounding: each G_j is linear in k, so extreme at ends of the sides, by the signs of A_j. q
    is convex, since A is a Gram matrix, so above its tangent at the whole middle, which is linear; and q ≥ 0, as a sum
    of squares. Levels grow with |G| and with q, so `lower` is below all of the box.

    **Arguments:** `gram`: A, shape (d, d). `moment`: b. `squares`: s. `norm`: of G, for KNG; None for the exponential
    mechanism. `weight`: at least what one record changes the quadratic form by, in whole units of 1/WEIGHT_UNITS.
    """

    def __init__(self, gram, moment, squares=0, norm: GradientNorm | None = None, weight: int = 1):
        self._gram, self._moment, self._squares = _objects(gram), _objects(moment), int(squares)
        self._norm, self._weight = norm, int(weight)

    def whole(self, low, high):
        return self.parts(low[None], high[None], [np.empty(0, np.int64)], np.empty((1, 0), np.int64))

    def parts(self, low, high, rows, sums):
        lower, upper = self._bounds(_objects(low), _objects(high))
        return LatticeBoxes(low, high, lower, upper, rows, sums)

    def _bounds(self, low, high):
        if self._norm is not None:
            # Linear: extreme at the ends.
            up, down = np.maximum(self._gram, 0), np.minimum(self._gram, 0)
            return self._norm.between(
                low @ up.T + high @ down.T - self._moment, high @ up.T + low @ down.T - self._moment
            )
        # Convex: above its tangent at the middle, below its largest value at a corner.
        middle = (low + high) // 2
        slope = 2 * (middle @ self._gram - self._moment)
        value = self._form(middle)
        least = value + np.sum(np.minimum(slope * (low - middle), slope * (high - middle)), axis=-1)
        largest = np.maximum(high - middle, middle - low)
        most = value + np.sum(abs(slope) * largest, axis=-1) + np.sum(largest @ abs(self._gram) * largest, axis=-1)
        return tuple(_levels(np.maximum(end, 0), self._weight) for end in (least, most))

    def _form(self, point):
        return np.sum((point @ self._gram - 2 * self._moment) * point, axis=-1) + self._squares

    def at(self, point, rows, sums):
        point = _objects(point)
        if self._norm is not None:
            return int(self._norm(abs(point @ self._gram - self._moment)))
        return int(_levels(self._form(point), self._weight))

    def importance(self):
        weights = self._weight if self._norm is None else self._norm.weights
        return np.max(np.abs(self._gram.astype(float)) / np.asarray(weights, float), axis=-1).astype(float)


class QuantileScore(AbstractScore):
    """Scores of the check loss: G = Σ_i X_i(D·1{Y_i ≤ X_i'k} - N), or Σ_i D·ρ_τ(Y_i - X_i'k), with τ = N/D.

    On a box a record whose residual keeps its sign there adds a constant to G and a linear function to the loss: such
    records are kept as sums, and only the others, open ones, are looked at again. Equal records are one, counted: on a
    box where few are open every pattern of their signs is tried, since bounds for each by itself would let ties cancel
    that cannot.

    Bounds on a box: `sums` holds the share of the records that are not open, the same for every k of the box or linear
    in k, hence least at ends of its sides. An open record adds D - N or -N times X_i to G, whatever k: coordinate by
    coordinate between the two sums where each record takes the smaller and the larger, and exactly one of the patterns.
    To the loss it adds at least 0. So no score in a box is below `lower`.

    Whole numbers ride in float64, exact below 2^53 in any order of summation. With |X_ij| ≤ 2^a, |X_i'k| ≤ ρ, the
    plan's `reach`, and |Y_i| ≤ υ every sum and all its parts are below 2^53, since the plan keeps 2ρ and

        n·D·2^a for G, and n·D·(ρ + υ) for the loss, below 2^52:

    twice the middle of a box times X_i, X_i times its sides, and twice Y_i, which is moved to ±ρ for G, are at most 2ρ;
    slopes are below D, so sums of slopes times X_i, times k or times Y_i, are at most these two; and twice the largest
    share of open records, before it is halved, is at most 2n·D·(ρ + υ).

    **Arguments:** `features`: X, shape (n, d). `responses`: Y, shape (n,), in the units of X'k. `tau`: N/D. `norm`: of
    G, for KNG; None for the exponential mechanism. `weight`: at least what one record changes the loss by, in whole
    units of 1/WEIGHT_UNITS.
    """

    def __init__(self, features, responses, tau: Fraction, norm: GradientNorm | None = None, weight: int = 1):
        records, counts = np.unique(np.column_stack([features, responses]), axis=0, return_counts=True)
        self._features, self._responses = records[:, :-1].astype(np.float64), records[:, -1].astype(np.float64)
        self._counts = counts.astype(np.float64)
        self._rise, self._fall = float(tau.denominator - tau.numerator), -float(tau.numerator)
        self._norm, self._weight = norm, weight

    def whole(self, low, high):
        num_records, dimension = self._features.shape  # of those that differ
        sums = np.zeros((1, dimension + (self._norm is None)), np.int64)
        return self.parts(low[None], high[None], [np.arange(num_records)], sums)

    def parts(self, low, high, rows, sums):
        passes = np.cumsum([len(some) for some in rows]) // _ROWS_A_PASS
        edges = [*np.unique(passes, return_index=True)[1], len(rows)]
        first, *others = [self._pass(low[a:b], high[a:b], rows[a:b], sums[a:b]) for a, b in itertools.pairwise(edges)]
        return first.join(*others) if others else first

    def _pass(self, low, high, rows, sums):
        entries, counts = np.concatenate(rows), [len(some) for some in rows]
        box = np.repeat(np.arange(len(rows)), counts)
        x, y, copies = self._features[entries], self._responses[entries], self._counts[entries]
        # Twice the middle of the predictors on the box, and their range.
        middle, reach = _products(x, low + high, box), _products(np.abs(x), high - low, box)
        at_most, above = 2 * y <= middle - reach, 2 * y > middle + reach
        is_open = ~(at_most | above)
        slopes = copies * np.where(at_most, self._rise, np.where(above, self._fall, 0.0))
        columns = x if self._norm is not None else np.column_stack([x, y])
        sums = sums + _totals(slopes, columns, box, len(rows)).astype(np.int64)
        kept = np.split(entries[is_open], np.cumsum(np.bincount(box[is_open], minlength=len(rows)))[:-1])
        box, x, copies = box[is_open], x[is_open], copies[is_open]
        if self._norm is not None:
            lower, upper = self._of_gradients(sums, x * copies[:, None], box)
            return LatticeBoxes(low, high, lower, upper, kept, sums)
        ends = np.sort(np.stack([sums[:, :-1] * low, sums[:, :-1] * high]), axis=0)
        least, most = (np.sum(side, axis=1) - sums[:, -1] for side in ends)
        # A piece of an open record is at least 0.
        gap, reach = middle[is_open] - 2 * y[is_open], reach[is_open]
        farthest = copies * np.maximum(self._rise * (reach + gap), -self._fall * (reach - gap)) / 2
        most = most + np.ceil(_totals(farthest, np.ones((len(x), 1)), box, len(rows))[:, 0]).astype(np.int64)
        lower, upper = (_levels(np.maximum(end, 0), self._weight) for end in (least, most))
        return LatticeBoxes(low, high, lower, upper, kept, sums)

    def _of_gradients(self, sums, x, box):
        """Bounds of the norm on each box, of the sums of closed records and the features of open ones, all counted."""
        assert self._norm is not None
        ones, numbers = np.ones(len(x)), np.bincount(box, minlength=len(sums))
        signed, sizes = _totals(ones, x, box, len(sums)), _totals(ones, np.abs(x), box, len(sums))
        positive, negative = (sizes + signed) / 2, (sizes - signed) / 2
        least, most = self._fall * positive - self._rise * negative, self._rise * positive - self._fall * negative
        lower, upper = self._norm.between(*(sums + side.astype(np.int64) for side in (least, most)))
        starts = np.cumsum(numbers) - numbers
        for number in range(1, _MOST_PATTERNS + 1):
            few = np.flatnonzero(numbers == number)
            if few.size == 0:
                continue
            patterns = np.array(list(itertools.product((self._rise, self._fall), repeat=number)))
            steps = np.einsum("pr,brd->pbd", patterns, x[starts[few][:, None] + np.arange(number)])
            levels = self._norm(np.abs(sums[few] + steps.astype(np.int64)))
            lower[few], upper[few] = np.min(levels, axis=0), np.max(levels, axis=0)
        return lower, upper

    def at(self, point, rows, sums):
        x = self._features[rows]
        residuals = self._responses[rows] - x @ point
        slopes = self._counts[rows] * np.where(residuals <= 0, self._rise, self._fall)
        if self._norm is not None:
            return int(self._norm(np.abs(sums + (slopes @ x).astype(np.int64))))
        value = int(np.sum(sums[:-1] * point) - sums[-1]) - int(slopes @ residuals)
        return int(_levels(value, self._weight))

    def importance(self):
        # Without records nothing changes.
        return np.sum(np.abs(self._features), axis=0) / max(len(self._features), 1)


def _products(x, vectors, box):
    if len(vectors) == 1:
        return x @ vectors[0].astype(np.float64)
    return np.einsum("ij,ij->i", x, vectors.astype(np.float64)[box])


def _totals(weights, columns, box, num_boxes):
    if num_boxes == 1:
        return (weights @ columns)[None]
    return np.stack([np.bincount(box, weights * column, minlength=num_boxes) for column in columns.T], axis=1)


def _objects(values) -> np.ndarray:
    """The same as an array of Python's whole numbers."""
    return np.array(np.asarray(values).tolist(), dtype=object)
