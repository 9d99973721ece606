"""Where the law of a check score is about, and how wide: by a fit in floats, on which speed alone rests."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_FITS, _STEPS = 15, 8
# In logarithms: by so much more than a law's volume is less than Θ's it is to fall within its window.
_FALL = 2.0


class Fit(NamedTuple):
    """An estimate of k, and how dense records are about it: Σ f_i and Σ f_i X_i X_i', f_i the density of Y_i there."""

    estimate: Float[np.ndarray, " dimension"]
    density: float
    curvature: Float[np.ndarray, "dimension dimension"]


class Records(NamedTuple):
    """Records that differ. **Arguments:** `x`: X. `y`: Y. `counts`: how often each is there. All whole."""

    x: Float[np.ndarray, "records dimension"]
    y: Float[np.ndarray, " records"]
    counts: Float[np.ndarray, " records"]


def fit_of(
    records: Records, slopes: tuple[float, float], falls: Callable[[np.ndarray], np.ndarray], reach: float
) -> Fit | None:
    """By a few reweighted least squares, and Newton's steps; None where it fails, as it may for any reason.

    The density is that of a window of residuals about 0, in which n^⅔ of n records lie or as many as let the law fall:
    fewer of them than `falls` needs to outweigh the volume of Θ do not hold it within the window, and where all do not,
    the window is as wide as Θ.

    **Arguments:** `slopes`: D - N and N. `falls`: by how much one record lowers the log-density at these distances.
    `reach`: the largest |X'k|.
    """
    with np.errstate(all="ignore"):
        try:
            found = _fit(records, *slopes, falls, max(reach, 1.0))
        except np.linalg.LinAlgError:
            return None
    is_sound = np.all(np.isfinite(found.estimate)) and np.isfinite(found.density) and np.all(np.isfinite(found[2]))
    return found if is_sound else None


def _fit(records, rise, fall, falls, reach) -> Fit:
    x, y, counts = records
    dimension = x.shape[1]
    scales = np.maximum(np.max(np.abs(x), axis=0), 1.0)
    design, weights = x / scales, counts.copy()
    estimate, residuals, width = np.zeros(dimension), y, 1.0
    for _ in range(_FITS):
        gram = (weights[:, None] * design).T @ design
        # No direction is without: least squares of the least length.
        gram += 1e-9 * np.trace(gram) * np.eye(dimension)
        estimate = np.linalg.solve(gram, design.T @ (weights * y))
        residuals = y - design @ estimate
        width = _window(np.abs(residuals), counts, falls, reach)
        weights = counts * np.where(residuals > 0, fall, rise) / np.maximum(np.abs(residuals), width)
    inside = np.abs(residuals) <= width
    shares = counts[inside] / (2.0 * width)
    # A little of all rows, so that no direction is without.
    rest = 1e-3 * np.sum(shares) / np.sum(counts)
    curvature = (shares[:, None] * design[inside]).T @ design[inside] + rest * (counts[:, None] * design).T @ design
    inverse = np.linalg.pinv((rise + fall) * curvature)
    # Newton's steps, as long as they make the gradient smaller.
    best, length = estimate, np.inf
    for _ in range(_STEPS):
        gradient = (counts * np.where(y <= design @ estimate, rise, -fall)) @ design
        if not (size := float(gradient @ inverse @ gradient)) < length:
            break
        best, length = estimate, size
        estimate = estimate - inverse @ gradient
    return Fit(best / scales, float(np.sum(shares)), curvature * scales[:, None] * scales)


def _window(sizes, counts, falls, reach) -> float:
    order = np.argsort(sizes)
    sizes, within = np.clip(sizes[order], 1.0, reach), np.cumsum(counts[order])
    is_enough = within >= within[-1] ** (2.0 / 3.0)
    is_enough &= within * falls(sizes) >= np.log(reach / sizes) + _FALL
    return float(sizes[np.argmax(is_enough)]) if np.any(is_enough) else reach
