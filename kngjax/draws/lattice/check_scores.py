"""Scores of the check loss on a lattice: records that keep their sign on a box are summed once, the others sought.

See `QuantileScore`.
"""

from fractions import Fraction

import numpy as np

from kngjax.draws.lattice.check_records import EXACT, MOST_ASKED, ROUNDING, CheckRecords, in_passes
from kngjax.draws.lattice.cone_scores import ConeScore
from kngjax.draws.lattice.cones import Cones
from kngjax.draws.lattice.coordinates import LatticeCoordinates, round_frame
from kngjax.draws.lattice.fits import DistinctRecords, Fit, ScoreDensity, fit_of
from kngjax.draws.lattice.heaps import apex_of
from kngjax.draws.lattice.places import somewhere
from kngjax.draws.lattice.runs import Runs, first_above, products, sums_away, totals
from kngjax.draws.lattice.scores import (
    RESOLUTION,
    WEIGHT_UNITS,
    AbstractScore,
    GradientNorm,
    LatticeBoxes,
    outward,
)

# Rays times runs that are asked at a time, so that signs stay close at hand.
_LOOKS_A_TIME = 2**18


class QuantileScore(AbstractScore):
    """Scores of the check loss: G = Σ_i X_i(D·1{Y_i ≤ X_i'k} - N), or Σ_i D·ρ_τ(Y_i - X_i'k), with τ = N/D.

    On a box a record whose residual keeps its sign there adds a constant to G and a linear function to the loss: such
    records are kept as sums, and only the others, open ones, are asked again. Among records of one X, in the order of
    Y, the first ones have Y_i ≤ X_i'k on all of the box, the last ones nowhere on it, and those between are open:
    bisection finds where they start and stop. Equal records are one, counted: on a box where few are open every pattern
    of their signs is tried, since bounds for each by itself would let ties cancel that cannot.

    Bounds on a box: `sums` holds the share of the records that are not open, the same for every k of the box or linear
    in k, hence least at ends of its sides. An open record adds D - N or -N times X_i to G, whatever k: coordinate by
    coordinate between the two sums where each record takes the smaller and the larger, and exactly one of the patterns.
    And along one v, from the origin of the coordinates to the middle of the box: ‖G‖ ≥ G'v/‖v‖_*. Far from the origin
    this is more, as features cancel along a law's long axes, where open records weigh little in G'v. An open record
    adds at least 0 to the loss. So no score in a box is below `lower`.

    Sums are of whole numbers in float64, exact below 2^53 in any order: `docs/proofs/check-scores.md`.

    **Arguments:** `features`: X, shape (n, d). `responses`: Y, shape (n,), in the units of X'k. `tau`: N/D. `norm`: of
    G, for KNG; None for the exponential mechanism. `weight`: at least what one record changes the loss by, in whole
    units of 1/WEIGHT_UNITS. `counts`: how often each record is there; None: once. `largest`: at least the largest
    |X_ij| of each column; None: that of these records.
    """

    def __init__(
        self, features, responses, tau: Fraction, norm: GradientNorm | None = None, weight=1, counts=None, largest=None
    ):
        self._records = CheckRecords(features, responses, tau, norm, weight, counts, largest)
        dimension = len(self._records.columns)
        # What records that are not here add.
        self._closed = np.zeros((1, dimension)) if norm is not None else np.zeros((1, dimension + 1), np.int64)
        self._place(LatticeCoordinates.own(dimension), np.zeros(dimension, np.int64))
        self._importance, self._curvature = np.ones(dimension), np.zeros((dimension, dimension))

    def _place(self, coordinates: LatticeCoordinates, origin: np.ndarray) -> None:
        self._coordinates = coordinates
        self._origin = coordinates.inverse @ origin
        self._moves = coordinates.matrix.T @ self._records.columns
        self._largest = np.max(np.abs(self._moves), axis=1, initial=0.0)
        # X'k₀, before which record of each X it is, and by how much more or less records between there and any weigh.
        records, (starts, stops) = self._records, self._records.everything
        self._at_origin = records.columns.T @ origin
        self._turn = first_above(records.responses, starts, stops, self._at_origin)
        changes = np.abs(records.responses - self._at_origin[records.kinds]) * records.counts
        longest = int(np.max(stops - starts, initial=0))
        self._apart = (records.rise - records.fall) * sums_away(changes, self._turn[records.kinds], longest)

    def near(self, domain, rate):
        records, steps, dimension = self._records, self._records.rise - self._records.fall, len(self._origin)
        # By how much a record changes the log-density at most, or that of the loss where its residual changes by 1.
        if records.norm is None:
            each = steps * rate * RESOLUTION * (WEIGHT_UNITS / records.weight)
        else:
            each = steps * rate * float(np.max(records.norm.about(np.abs(records.columns.T)), initial=0.0))
        fit = fit_of(
            DistinctRecords(records.features, records.responses, records.counts),
            ScoreDensity((records.rise, -records.fall), each, records.norm is not None),
            domain,
        )
        if fit is None:
            fit = Fit(np.zeros(dimension), 0.0, np.zeros((dimension, dimension)))
        estimate = domain.nearest(fit.estimate)
        cones = None if records.norm is None else _cones(records, domain, estimate)
        if cones is not None:
            return ConeScore(records, cones)
        placed = object.__new__(QuantileScore)
        vars(placed).update(vars(self))
        with np.errstate(all="ignore"):
            # With so many open records bounds differ by 1 in the log-density.
            form = fit.curvature * (each if records.norm is None else fit.density * (each / 2.0) ** 2)
            coordinates, placed._importance = round_frame(form, domain, records.largest)
        placed._curvature = steps * fit.curvature
        placed._place(coordinates, estimate)
        return placed

    @property
    def curvature(self) -> np.ndarray:
        """Estimates by how much G changes as k does, of a score that is `near`."""
        return self._curvature

    def spread(self, boxes):
        found, numbers = np.zeros(boxes.low.shape), np.array([some.shape[1] for some in boxes.runs])
        # Many are spread like all of them.
        few = np.flatnonzero((numbers > 0) & (numbers <= MOST_ASKED))
        if few.size:
            opened = self._records.open(Runs.of([boxes.runs[box] for box in few]))
            changes = [np.abs(move[opened.kinds]) * opened.counts for move in self._moves]
            found[few] = totals(changes, opened.runs.numbers)
        return found

    def whole(self, low, high):
        return self.parts(low[None], high[None], [self._records.everything], self._closed)

    def parts(self, low, high, runs, sums):
        return in_passes(self._pass, low, high, runs, sums)

    def _pass(self, low, high, runs, sums):
        records, given = self._records, Runs.of(runs)
        kinds = records.kinds.take(given.starts)
        moves = [move.take(kinds) for move in self._moves]
        # The middle of the predictors on the box, and how far they are from it.
        middle, away = (low + high) / 2.0, (high - low) / 2.0
        predicted, reach = (
            products(moves, middle, given.numbers),
            products(list(map(np.abs, moves)), away, given.numbers),
        )
        errors = self._errors(middle, away)
        if np.any(errors):
            reach = reach + np.repeat(errors, given.numbers)
        opened, held = records.divide(given, records.responses, np.stack([predicted - reach, predicted + reach]))
        sums, predicted = sums + held.astype(sums.dtype), predicted.take(opened.places)
        if records.norm is None:
            above = sums + records.pieces(opened.runs, predicted)
            return LatticeBoxes(low, high, *self._of_losses(low, high, sums, above), opened.runs.apart(), sums)
        # v, and X_i'v; v = 0, of which nothing is known, where float64 does not hold it.
        vectors = (low + high - 2 * self._origin) @ self._coordinates.matrix.T
        vectors = np.where(np.all(np.abs(vectors) < EXACT, axis=1)[:, None], vectors, 0) / 2.0
        turns = predicted - self._at_origin.take(opened.kinds)
        along = records.along(sums, vectors, opened, turns, errors)
        lower = np.maximum(records.gradients(sums, opened), along)
        # Where most points of a box would be rejected, one somewhere in it mostly shows it.
        points = products([move.take(opened.places) for move in moves], somewhere(low, high), opened.runs.numbers)
        about = records.norm.about(np.abs(sums + records.pieces(opened.runs, points)))
        return LatticeBoxes(low, high, lower, about, opened.runs.apart(), sums)

    def _errors(self, middle, away):
        """Bounds the joint error of products with each box's middle and with half its sides: 0 where they are exact."""
        size = (np.abs(middle) + away) @ self._largest
        return np.where(size < EXACT / 4, 0.0, size * ROUNDING)

    def beyond(self, low, high, within=None):
        """Bounds the score from below at all k with p = k₀ + t(k - k₀) in a box for a t in (0, 1]; None if unknown.

        By convexity ℓ(k) - ℓ(k₀) ≥ (ℓ(p) - ℓ(k₀))/t, and ‖k - k₀‖_* is ‖p - k₀‖_*/t: what bounds the ratio of the two
        at p bounds ‖G(k)‖, as ℓ is convex and G one of its slopes at k, so that ℓ(k₀) ≥ ℓ(k) + G'(k₀ - k).
        """
        records = self._records
        if records.norm is None:
            return None
        runs, sums = (records.everything, self._closed[0]) if within is None else (within.runs[0], within.sums[0])
        (starts, stops), kinds = np.ascontiguousarray(runs), records.kinds.take(runs[0])
        moves, columns = (part.take(kinds, axis=1) for part in (self._moves, records.columns))
        turn, before = self._turn.take(kinds), records.before.take(starts)
        falling = records.fall * (columns @ (records.before.take(stops) - before)) + sums
        found = np.zeros(len(low), np.int64)
        rays = max(_LOOKS_A_TIME // max(len(starts), 1), 1)
        # By einsum, as threads of products wait for others.
        for first in range(0, len(low), rays):
            some = slice(first, first + rays)
            points = [np.clip(self._origin, low[some], high[some]), (low[some] + high[some]) // 2]
            for point in points[: 1 + bool(np.any(points[0] != points[1]))]:
                predicted = np.einsum("pj,ji->pi", point.astype(np.float64), moves)
                rising = first_above(records.responses, starts, stops, predicted)
                # Whole numbers, exact in whatever order.
                added = np.einsum("pi,ji->pj", records.before.take(rising) - before, columns)
                slopes = falling + (records.rise - records.fall) * added
                apart = self._apart.take(rising - (rising > turn), mode="clip")
                apart = np.einsum("pi,pi->p", apart, (rising != turn).astype(np.float64))
                found[some] = np.maximum(found[some], self._of_rays(low[some], high[some], slopes, apart))
        return found

    def _of_rays(self, low, high, slopes, apart):
        """Bounds (ℓ(p) - ℓ(k₀))/‖p - k₀‖_* from below on boxes, by a linear function below ℓ, at k₀ by so much."""
        matrix, sides = self._coordinates.matrix, (high - low).astype(np.float64)
        doubled = (low + high - 2 * self._origin) @ matrix.T
        extent = np.abs(doubled) + sides @ np.abs(matrix).T
        rise = np.sum(slopes * doubled, axis=1) - np.sum(np.abs(slopes @ matrix) * sides, axis=1)
        rounding = ROUNDING * np.sum(np.abs(slopes) * extent, axis=1)
        return self._records.ratios(rise - rounding, 2 * apart, extent)

    def _of_losses(self, low, high, sums, middle):
        """Bounds the loss from below on each box: closed records are linear, open ones lie above either piece."""
        least, above = self._below(low, high, sums), self._below(low, high, middle)
        factor = RESOLUTION * WEIGHT_UNITS / self._records.weight
        # A piece of an open record is at least 0, and at least what continues its sign in the middle.
        lower = outward(np.maximum(np.maximum(least, above), 0.0) * factor)
        doubled = (low + high) @ self._coordinates.matrix.T
        about = np.sum(middle[:, :-1] * doubled, axis=1) / 2 - middle[:, -1]
        along = np.einsum("ia,ij,ja->a", self._coordinates.matrix, self._curvature, self._coordinates.matrix)
        about = np.maximum(about, 0.0) + (high - low) ** 2.0 @ along / 24.0
        return lower, about * factor

    def _below(self, low, high, sums):
        """Bounds a sum of linear functions of k from below on boxes."""
        slopes, matrix = sums[:, :-1].astype(np.float64), self._coordinates.matrix
        doubled, sides = ((low + high) @ matrix.T).astype(np.float64), (high - low).astype(np.float64)
        middle = np.sum(slopes * doubled, axis=1) / 2 - sums[:, -1]
        spread = np.sum(np.abs(slopes @ matrix) * sides, axis=1) / 2
        size = np.sum(np.abs(slopes) * (np.abs(doubled) + sides @ np.abs(matrix).T), axis=1) + np.abs(sums[:, -1])
        return middle - spread - ROUNDING * size

    def at(self, point, runs, sums):
        return self._records.at(point, runs, sums)


def _cones(records: CheckRecords, domain, estimate) -> Cones | None:
    """Builds cones from a heap's apex; None unless it is a better estimate and float64 holds their whole numbers."""
    apex = apex_of(records, domain, estimate)
    cones = None if apex is None else Cones.over(apex, domain.low, domain.high)
    return cones if cones is not None and ConeScore.holds(records, cones) else None
