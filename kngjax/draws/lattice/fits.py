"""Estimates where the law of a check score lies, and how wide it is, by a fit in floats: speed alone rests on it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.draws.lattice.units import DomainLattice

_FITS, _STEPS = 15, 8
# In logarithms: by so much more than a law's volume is less than Θ's it is to fall within its window.
_FALL = 2.0


class Fit(NamedTuple):
    """An estimate of k, and how dense records are about it: Σ f_i and Σ f_i X_i X_i', f_i the density of Y_i there."""

    estimate: Float[np.ndarray, " dimension"]
    density: float
    curvature: Float[np.ndarray, "dimension dimension"]


class DistinctRecords(NamedTuple):
    """Records that differ. **Arguments:** `x`: X. `y`: Y. `counts`: how often each is there. All whole."""

    x: Float[np.ndarray, "records dimension"]
    y: Float[np.ndarray, " records"]
    counts: Float[np.ndarray, " records"]


class ScoreDensity(NamedTuple):
    """exp(-c·score). **Arguments:** `slopes`: D - N and N. `each`: by how much the log-density falls as one record of
    full size changes its sign, or for the loss, moves by 1. `is_of_gradients`: which of them.
    """

    slopes: tuple[float, float]
    each: float
    is_of_gradients: bool

    def falls(self, residuals: np.ndarray, counts: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """Estimates how far the log-density falls from its highest where all predictors move by these widths.

        It is the smaller fall of up and down. A heap of equal records may leave the density as high on one side,
        however far that goes.
        """
        found = self._of_signs if self.is_of_gradients else self._of_distances
        up, down, least = found(residuals, counts, widths, self.slopes[1] / sum(self.slopes))
        return self.each * (np.minimum(up, down) - least)

    def _of_signs(self, residuals, counts, widths, share):
        """Computes |records at or below a move - their share| at moves up and down, and at the best move.

        Residuals are counted between widths, and sorted only where the best move lies: all numbers are whole.
        """
        number, beyond = len(widths), np.searchsorted(widths, np.abs(residuals))
        slots = np.where(residuals < 0, number - beyond, number + 1 + beyond)
        below = np.concatenate([np.zeros(1), np.cumsum(np.bincount(slots, counts, 2 * number + 2))])
        goal = share * below[-1]
        best = int(np.searchsorted(below[1:-1], goal))
        some = np.flatnonzero(slots == best)
        order = some[np.argsort(residuals[some])]
        places, sums = residuals[order], below[best] + np.cumsum(counts[order])
        is_last = np.append(places[1:] != places[:-1], True)[: len(places)]
        moves = np.append(below[[best]], sums[is_last])
        up, down, tried = (np.abs(found - goal) for found in (below[number + 2 : -1], below[number:0:-1], moves))
        return up, down, np.min(tried)

    def _of_distances(self, residuals, counts, widths, share):
        """Computes the loss over its highest slope at moves up and down, and at the best move."""
        order = np.argsort(residuals)
        places, below = residuals[order], np.cumsum(counts[order])
        number = below[-1]
        # How many lie at or below a move, and how far they are above it together.
        below = np.concatenate([np.zeros(1), below])
        total = np.concatenate([np.zeros(1), np.cumsum(counts[order] * places)])

        def height(moves, found):
            beyond = below[found] * moves - total[found]
            return beyond - share * (number * moves - total[-1])

        is_first = np.append(True, places[1:] != places[:-1])
        firsts = np.flatnonzero(is_first)
        ends = np.append(firsts[1:], len(places))
        least = min(np.min(height(places[firsts], firsts)), np.min(height(places[firsts], ends)))
        up, down = np.searchsorted(places, widths, "right"), np.searchsorted(places, -widths, "left")
        return height(widths, up), height(-widths, down), least


def fit_of(records: DistinctRecords, density: ScoreDensity, domain: DomainLattice) -> Fit | None:
    """Fits k by a few reweighted least squares and Newton steps in Θ; None where that fails, as it may for any reason.

    The density of records is that of a window of residuals about 0, in which n^⅔ of n records lie, or as many as it
    takes for the law to fall by more than Θ has volume outside of it: fewer do not hold the law within the window, and
    where all do not, the window is as wide as Θ.
    """
    with np.errstate(all="ignore"):
        try:
            found = _fit(records, density, domain)
        except (ArithmeticError, ValueError):
            return None
    is_sound = np.isfinite(found.density) and all(np.all(np.isfinite(part)) for part in (found[0], found[2]))
    return found if is_sound else None


def _fit(records, density, domain) -> Fit:
    x, y, counts = records
    number, dimension = x.shape
    if number == 0:
        return Fit(np.zeros(dimension), 0.0, np.zeros((dimension, dimension)))
    rise, fall = density.slopes
    reach = max(float(np.max(np.abs(x), axis=0) @ np.array(domain.sides, float)), 1.0)

    def window(residuals):
        return _window(residuals, counts, density, reach)

    def within(point):
        return domain.nearest(point / scales) * scales if np.all(np.isfinite(point)) else point

    scales = np.maximum(np.max(np.abs(x), axis=0), 1.0)
    design, weights = x / scales, counts.copy()
    estimate = np.zeros(dimension)
    is_of_numbers = dimension == 1 and x[0, 0] == x[-1, 0] != 0.0
    if is_of_numbers:
        # Records of one X are in the order of Y: the quantile itself.
        reached = np.cumsum(counts)
        estimate[0] = y[np.searchsorted(reached, fall / (rise + fall) * reached[-1])] / design[0, 0]
    for _ in range(0 if is_of_numbers else _FITS):
        gram = _times(weights[:, None] * design, design)
        # No direction is without: least squares of the least length.
        gram += 1e-9 * np.trace(gram) * np.eye(dimension)
        estimate = np.linalg.solve(gram, _times(design, weights * y))
        residuals = y - design @ estimate
        width = window(residuals)
        weights = counts * np.where(residuals > 0, fall, rise) / np.maximum(np.abs(residuals), width)
    estimate = within(estimate)
    residuals = y - design @ estimate
    width = window(residuals)
    inside = np.abs(residuals) <= width
    shares = counts[inside] / (2.0 * width)
    # A little of all rows, so that no direction is without.
    rest = 1e-3 * np.sum(shares) / np.sum(counts)
    curvature = _times(shares[:, None] * design[inside], design[inside])
    curvature += rest * _times(counts[:, None] * design, design)
    inverse = np.linalg.pinv((rise + fall) * curvature)
    # Newton's steps, as long as they make the gradient smaller.
    best, length = estimate, np.inf
    for _ in range(_STEPS):
        gradient = _times(design, counts * np.where(y <= design @ estimate, rise, -fall))
        if not (size := float(gradient @ inverse @ gradient)) < length:
            break
        best, length = estimate, size
        estimate = within(estimate - inverse @ gradient)
    return Fit(best / scales, float(np.sum(shares)), curvature * scales[:, None] * scales)


def _times(design, others):
    """Multiplies a matrix, transposed, by another or a vector.

    With one column it is a dot product, for which BLAS starts threads that take longer to wait for than to multiply.
    """
    return np.einsum("ij,i...->j...", design, others) if design.shape[1] == 1 else design.T @ others


def _window(residuals, counts, density, reach) -> float:
    residuals = np.nan_to_num(residuals, nan=reach, posinf=reach, neginf=-reach)
    widths = np.append(2.0 ** np.arange(0.0, np.log2(reach), 0.25), reach)
    places = np.searchsorted(widths, np.minimum(np.abs(residuals), reach))
    within = np.cumsum(np.bincount(places, counts, len(widths)))
    is_enough = density.falls(residuals, counts, widths) >= np.log(reach / widths) + _FALL
    is_enough &= within >= np.sum(counts) ** (2.0 / 3.0)
    return float(widths[np.argmax(is_enough)]) if np.any(is_enough) else reach
