"""How far released curves are from the fit without privacy."""

from typing import NamedTuple

import numpy as np

# Records at a time, of which every curve has a value.
_BLOCK = 2**14


class Truth(NamedTuple):
    """**Arguments:** `levels`: τ, shape (m,). `fits`: θ̂ of each, shape (m, d). `x`, `y`: all records, x with the
    intercept. `rows`: of x, those whose values are compared. `vertices`: of the public polytope of x.
    """

    levels: np.ndarray
    fits: np.ndarray
    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    vertices: np.ndarray


class Measures(NamedTuple):
    """**Arguments:** `error`: the mean over rows and levels of |Q̃ - Q̂|, in the units of y, with curves sorted at each
    row. `crossing`: the share of pairs of neighbours among the curves, as they were drawn, that cross somewhere on the
    polytope. `crps`: by what share of it the check loss of sorted curves exceeds that of the fit, on average
    over levels and records: twice that average is the continuous ranked probability score once levels are many.
    """

    error: float
    crossing: float
    crps: float


def measure(truth: Truth, curves: np.ndarray, loss: float) -> Measures:
    """Of one draw, shape (m, d). **Arguments:** `loss`: `mean_check_loss` of the fits."""
    error = np.mean(np.abs(_sorted(truth.rows, curves) - _sorted(truth.rows, truth.fits)))
    gaps = np.min(np.diff(curves @ truth.vertices.T, axis=0), axis=1)
    # Curves that touch do not cross, and their values at a vertex are rounded.
    crossing = np.mean(gaps < -1e-9 * np.max(np.abs(curves)))
    return Measures(float(error), float(crossing), mean_check_loss(truth, curves) / loss - 1.0)


def mean_check_loss(truth: Truth, curves: np.ndarray) -> float:
    """The mean of (τ - 1{y ≤ q})(y - q) over records and levels, q sorted for each record."""
    total = 0.0
    for first in range(0, len(truth.y), _BLOCK):
        rest = truth.y[first : first + _BLOCK, None] - _sorted(truth.x[first : first + _BLOCK], curves)
        # max(τr, (τ - 1)r) = r(τ - ½) + |r|/2.
        total += float(np.sum(rest, axis=0) @ (truth.levels - 0.5)) + 0.5 * float(np.sum(np.abs(rest)))
    return total / (len(truth.y) * len(truth.levels))


def _sorted(x: np.ndarray, curves: np.ndarray) -> np.ndarray:
    return np.sort(x @ curves.T, axis=1)
