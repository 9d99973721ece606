"""Scores of the check loss on a lattice: records that keep their sign on a box are summed once, the others looked at.

See `QuantileScore`.
"""

import itertools
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kngjax.releases.lattice.coordinates import Coordinates, round_frame
from kngjax.releases.lattice.fits import Density, Fit, Records, fit_of
from kngjax.releases.lattice.scores import (
    RESOLUTION,
    WEIGHT_UNITS,
    AbstractScore,
    GradientNorm,
    LatticeBoxes,
    levels,
    outward,
    somewhere,
)

# Rows times boxes that are looked at in one pass.
_ROWS_A_PASS = 2**15

# Up to so many open records every pattern of their signs is tried.
_MOST_PATTERNS = 3

# Of so many open records it is asked along which axes they leave a score unknown.
_FEW = 128

# Whole numbers up to it are exact in float64.
_EXACT = 2**53
# More than the relative error of a sum of eight products in float64, all signs taken as the same.
_ROUNDING = 2.0**-48


class _Some(NamedTuple):
    """Some of the records, in columns. **Arguments:** `is_below`, `apart`: as at the origin, see `QuantileScore`."""

    columns: list[np.ndarray]
    responses: np.ndarray
    counts: np.ndarray
    is_below: np.ndarray
    apart: np.ndarray


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

    X_i'k is at most ρ for k in Θ, and twice Y_i, which is moved to ±ρ for G, at most 2ρ; slopes are below D, so sums of
    slopes times X_i, times k or times Y_i, are at most these two; and twice the largest share of open records, before
    it is halved, is at most 2n·D·(ρ + υ).

    A box of m, k = Um, may reach beyond Θ. X_i'U is whole and below 2^53, or U is not taken. Twice the middle of a box
    times it, and it times the sides, are sums of d products: where they may exceed 2^52 a record counts as open unless
    it keeps its sign by more than their rounding; and so are the ends of the loss, which are moved outward by it.

    **Arguments:** `features`: X, shape (n, d). `responses`: Y, shape (n,), in the units of X'k. `tau`: N/D. `norm`: of
    G, for KNG; None for the exponential mechanism. `weight`: at least what one record changes the loss by, in whole
    units of 1/WEIGHT_UNITS.
    """

    def __init__(self, features, responses, tau: Fraction, norm: GradientNorm | None = None, weight: int = 1):
        records, counts = _counted(np.column_stack([features, responses]))
        self._features, self._responses = records[:, :-1].astype(np.float64), records[:, -1].astype(np.float64)
        self._counts = counts.astype(np.float64)
        # Columns lie side by side in memory, for passes over some of the records.
        self._columns = np.ascontiguousarray(self._features.T)
        self._is_signed = bool(np.any(self._features < 0))
        self._is_null = ~np.any(self._features, axis=0)
        self._rise, self._fall = float(tau.denominator - tau.numerator), -float(tau.numerator)
        self._norm, self._weight = norm, weight
        self._place(Coordinates.own(self._features.shape[1]), np.zeros(self._features.shape[1], np.int64))
        self._importance = np.ones(self._features.shape[1])
        self._curvature = np.zeros((self._features.shape[1], self._features.shape[1]))

    def _place(self, coordinates: Coordinates, origin: np.ndarray) -> None:
        self._coordinates, self._origin = coordinates, origin
        self._turned = coordinates.inverse @ origin
        self._moves = coordinates.matrix.T @ self._columns
        self._largest = np.max(np.abs(self._moves), axis=1, initial=0.0)
        # Where the residual at the origin is 0 or less, and how far either piece of the loss is from the other there.
        residuals = self._responses - self._features @ origin
        self._is_below = residuals <= 0
        self._apart = (self._rise - self._fall) * self._counts * np.abs(residuals)

    @property
    def coordinates(self):
        return self._coordinates

    def near(self, domain, rate):
        placed = object.__new__(QuantileScore)
        vars(placed).update(vars(self))
        steps, dimension = self._rise - self._fall, len(self._origin)
        entries = np.max(np.abs(self._features), axis=0, initial=0.0)
        # By how much a record changes the log-density at most, or that of the loss where its residual changes by 1.
        if self._norm is None:
            each = steps * rate * RESOLUTION * (WEIGHT_UNITS / self._weight)
        else:
            each = steps * rate * float(np.max(self._norm.about(np.abs(self._features)), initial=0.0))
        fit = fit_of(
            Records(self._features, self._responses, self._counts),
            Density((self._rise, -self._fall), each, self._norm is not None),
            domain,
        )
        if fit is None:
            fit = Fit(np.zeros(dimension), 0.0, np.zeros((dimension, dimension)))
        with np.errstate(all="ignore"):
            # Of so many open records bounds differ by 1 in the log-density.
            form = fit.curvature * (each if self._norm is None else fit.density * (each / 2.0) ** 2)
            coordinates, placed._importance = round_frame(form, domain, entries)
        placed._curvature = steps * fit.curvature
        placed._place(coordinates, domain.nearest(fit.estimate))
        return placed

    @property
    def origin(self):
        return self._turned

    def importance(self):
        return self._importance

    def spread(self, rows):
        numbers = np.array([len(some) for some in rows])
        # Many records are spread like all of them.
        found, few = np.zeros((len(rows), len(self._origin))), np.flatnonzero((numbers > 0) & (numbers <= _FEW))
        if few.size:
            entries = np.concatenate([rows[box] for box in few])
            counts = self._counts[entries]
            found[few] = _totals([np.abs(move[entries]) * counts for move in self._moves], numbers[few])
        return found

    def whole(self, low, high):
        num_records, dimension = self._features.shape  # of those that differ
        sums = np.zeros((1, dimension + 1), np.float64 if self._norm is not None else np.int64)
        return self.parts(low[None], high[None], [np.arange(num_records)], sums)

    def parts(self, low, high, rows, sums):
        passes = np.cumsum([len(some) for some in rows]) // _ROWS_A_PASS
        edges = [*np.unique(passes, return_index=True)[1], len(rows)]
        first, *others = [self._pass(low[a:b], high[a:b], rows[a:b], sums[a:b]) for a, b in itertools.pairwise(edges)]
        return first.join(*others) if others else first

    def _pass(self, low, high, rows, sums):
        entries, numbers = np.concatenate(rows), np.array([len(some) for some in rows])
        moves, y = [move[entries] for move in self._moves], self._responses[entries]
        # Twice the middle of the predictors on the box, and their range.
        doubled, sides = low + high, high - low
        middle = _products(moves, doubled, numbers)
        reach = _products([np.abs(move) for move in moves], sides, numbers)
        size = (np.abs(doubled) + sides).astype(np.float64) @ self._largest
        if np.any(size >= _EXACT / 2):
            reach = reach + np.repeat(np.where(size < _EXACT / 2, 0.0, size * _ROUNDING), numbers)
        gap = middle - 2 * y
        is_open = (gap < reach) & (gap >= -reach)
        opened, closed = np.flatnonzero(is_open), np.flatnonzero(~is_open)
        in_open = np.bincount(np.repeat(np.arange(len(rows)), numbers)[opened], minlength=len(rows))
        held = _totals(self._pieces(self._some(entries[closed]), gap[closed] >= 0), numbers - in_open)
        sums = sums + held.astype(sums.dtype)
        kept = np.split(entries[opened], np.cumsum(in_open)[:-1])
        gap, some = gap[opened], self._some(entries[opened])

        def piece(rises):
            return sums + _totals(self._pieces(some, rises), in_open)

        if self._norm is None:
            pieces = some.counts, gap, reach[opened]
            return LatticeBoxes(
                low, high, *self._of_losses(low, high, sums, piece(gap >= 0), pieces, in_open), kept, sums
            )
        # Any signs make a linear function below the loss: those of the point nearest to the origin.
        moves, y = [move[opened] for move in moves], some.responses
        rays = self._of_rays(low, high, piece(_products(moves, np.clip(self._turned, low, high), in_open) >= y))
        lower, upper = self._of_gradients(sums, [column * some.counts for column in some.columns], in_open)
        # Where most points of a box would be rejected, one somewhere in it mostly shows it.
        tried = piece(_products(moves, somewhere(low, high), in_open) >= y)
        about = self._norm.about(np.abs(tried[:, :-1]))
        return LatticeBoxes(low, high, np.maximum(lower, rays), upper, about, kept, sums)

    def _some(self, entries) -> "_Some":
        parts = (part[entries] for part in (self._responses, self._counts, self._is_below, self._apart))
        return _Some([column[entries] for column in self._columns], *parts)

    def _pieces(self, some: "_Some", rises):
        """What these records add to a linear piece of the loss, of the sign `rises`: slopes, and a constant.

        Of the loss it is what its slope adds to Y; of its change from the origin, how far the piece is below the loss
        there.
        """
        slopes = some.counts * np.where(rises, self._rise, self._fall)
        change = np.where(rises != some.is_below, some.apart, 0.0)
        last = slopes * some.responses if self._norm is None else change
        return [*(slopes * column for column in some.columns), last]

    def _of_gradients(self, sums, columns, numbers):
        """Bounds of the norm on each box, of the sums of closed records and the features of open ones, all counted."""
        assert self._norm is not None
        ends, closed = (self._rise, self._fall), sums[:, :-1]
        positive, negative = _totals([np.maximum(column, 0.0) for column in columns], numbers), 0.0
        if self._is_signed:
            negative = _totals([np.minimum(column, 0.0) for column in columns], numbers)
        least = closed + self._fall * positive + self._rise * negative
        most = closed + self._rise * positive + self._fall * negative
        lower, upper = self._norm.about_between(least, most)
        starts = np.cumsum(numbers) - numbers
        for number in range(1, _MOST_PATTERNS + 1):
            few = np.flatnonzero(numbers == number)
            if few.size == 0:
                continue
            patterns = np.array(list(itertools.product(ends, repeat=number)))
            places = starts[few][:, None] + np.arange(number)
            steps = np.einsum("pr,brd->pbd", patterns, np.stack([column[places] for column in columns], axis=-1))
            sizes = self._norm.about(np.abs(closed[few] + steps))
            lower[few], upper[few] = outward(np.min(sizes, axis=0), np.max(sizes, axis=0))
        return lower, upper

    def beyond(self, low, high, within=None):
        """Below the score at all k with p = k₀ + t(k - k₀) in a box, for a t in (0, 1]; or None where nothing is known.

        By convexity ℓ(k) - ℓ(k₀) ≥ (ℓ(p) - ℓ(k₀))/t, and ‖k - k₀‖_* is ‖p - k₀‖_*/t: what bounds the ratio of the two
        at p bounds ‖G(k)‖.
        """
        if self._norm is None:
            return None
        rows, sums = (slice(None), 0.0) if within is None else (within.rows[0], within.sums[0])
        moves, columns = self._moves[:, rows], self._columns[:, rows]
        y, counts, is_below, far = (part[rows] for part in (self._responses, self._counts, self._is_below, self._apart))
        found = np.zeros(len(low), np.int64)
        points = [np.clip(self._turned, low, high), (low + high) // 2]
        for point in points[: 1 + bool(np.any(points[0] != points[1]))]:
            rises = point.astype(np.float64) @ moves >= y
            slopes = np.where(rises, self._rise, self._fall) * counts
            apart = (rises != is_below) @ far
            found = np.maximum(found, self._of_rays(low, high, np.column_stack([slopes @ columns.T, apart]) + sums))
        return found

    def _of_rays(self, low, high, linear):
        """‖G‖ ≥ (ℓ(k) - ℓ(k₀))/‖k - k₀‖_*, with a linear function below the loss.

        k₀ = `origin`. ℓ is convex and G one of its slopes at k, so that ℓ(k₀) ≥ ℓ(k) + G'(k₀ - k). Along columns of
        zeros G is 0, so that k - k₀ may be taken as 0 there.
        """
        assert self._norm is not None
        slopes, matrix = linear[:, :-1], self._coordinates.matrix
        doubled = (low + high) @ matrix.T - 2 * self._origin
        sides = (high - low).astype(np.float64)
        extent = np.abs(doubled) + sides @ np.abs(matrix).T
        extent[:, self._is_null] = 0.0
        rise = np.sum(slopes * doubled, axis=1) - np.sum(np.abs(slopes @ matrix) * sides, axis=1)
        rounding = _ROUNDING * np.sum(np.abs(slopes) * extent, axis=1)
        apart = linear[:, -1] * (1.0 + (len(self._features) + 1000) * 2.0**-52)
        rise = np.maximum(rise / 2 - rounding - apart, 0.0)
        away = np.maximum(self._norm.dual(extent) / 2, np.finfo(float).tiny)
        # 0 is below every score, also where floats have no number for the rest.
        ratio = np.divide(rise, away, out=np.zeros(len(low)), where=(rise > 0.0) & np.isfinite(away))
        return outward(np.where(np.isfinite(ratio), ratio, 0.0), np.zeros(1))[0]

    def _of_losses(self, low, high, sums, middle, opened, numbers):
        """Bounds of the loss on each box: closed records are linear, and an open one is above either of its pieces."""
        copies, gap, reach = opened
        farthest = copies * np.maximum(self._rise * (reach + gap), -self._fall * (reach - gap)) / 2
        most = _totals([farthest], numbers)[:, 0] * (1.0 + _ROUNDING)
        (least, highest), (above, _) = self._linear(low, high, sums), self._linear(low, high, middle)
        factor = RESOLUTION * WEIGHT_UNITS / self._weight
        # A piece of an open record is at least 0, and at least what continues its sign in the middle.
        lower, upper = outward(*(np.maximum(end, 0.0) * factor for end in (np.maximum(least, above), highest + most)))
        doubled = (low + high) @ self._coordinates.matrix.T
        about = np.sum(middle[:, :-1] * doubled, axis=1) / 2 - middle[:, -1]
        along = np.einsum("ia,ij,ja->a", self._coordinates.matrix, self._curvature, self._coordinates.matrix)
        about = np.maximum(about, 0.0) + (high - low) ** 2.0 @ along / 24.0
        return lower, upper, about * factor

    def _linear(self, low, high, sums):
        """Below and above a sum of linear functions of k on boxes."""
        slopes, matrix = sums[:, :-1].astype(np.float64), self._coordinates.matrix
        doubled, sides = ((low + high) @ matrix.T).astype(np.float64), (high - low).astype(np.float64)
        middle = np.sum(slopes * doubled, axis=1) / 2 - sums[:, -1]
        spread = np.sum(np.abs(slopes @ matrix) * sides, axis=1) / 2
        size = np.sum(np.abs(slopes) * (np.abs(doubled) + sides @ np.abs(matrix).T), axis=1) + np.abs(sums[:, -1])
        return middle - spread - _ROUNDING * size, middle + spread + _ROUNDING * size

    def at(self, point, rows, sums):
        x = self._features[rows]
        residuals = self._responses[rows] - x @ point
        slopes = self._counts[rows] * np.where(residuals <= 0, self._rise, self._fall)
        if self._norm is not None:
            return int(self._norm(np.abs((sums[:-1] + slopes @ x).astype(np.int64))))
        value = int(np.sum(sums[:-1] * point) - sums[-1]) - int(slopes @ residuals)
        return int(levels(value, self._weight))


def _counted(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The records that differ, and how often each is there."""
    order = np.lexsort(records.T[::-1])
    records = records[order]
    first = np.ones(len(records), bool)
    first[1:] = np.any(records[1:] != records[:-1], axis=1)
    starts = np.flatnonzero(first)
    return records[starts], np.diff(np.append(starts, len(records)))


def _products(columns, vectors, numbers):
    """Of so many consecutive records each with a vector of its own; columns one by one, which is fast."""
    vectors = vectors.astype(np.float64)
    total = columns[0] * np.repeat(vectors[:, 0], numbers)
    for place in range(1, len(columns)):
        total += columns[place] * np.repeat(vectors[:, place], numbers)
    return total


def _totals(columns, numbers):
    """Sums of so many consecutive entries each, none for none."""
    totals, filled = np.zeros((len(numbers), len(columns))), np.flatnonzero(numbers)
    starts = (np.cumsum(numbers) - numbers)[filled]
    for place, column in enumerate(columns if filled.size else ()):
        totals[filled, place] = np.add.reduceat(column, starts)
    return totals
