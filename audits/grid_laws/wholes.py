"""Mechanisms that release whole numbers, one of some candidates, or two ends: cases with laws by hand."""

from collections.abc import Callable
from functools import partial

import numpy as np

from audits.grid_laws.cells import Floats, independent
from audits.grid_laws.laws import CellLaw
from kngjax.data.bounds import Bounds
from kngjax.data.weights import with_weights
from kngjax.draws.exact_choice import ExactChoice
from kngjax.draws.exact_interval import ExactInterval
from kngjax.draws.noisy_counts import NoisyCounts
from kngjax.mechanisms.geometric import GeometricMechanism
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.mechanisms.quantile_interval import QuantileInterval

_EPSILON = 1.5


def _counts(adjacency: str, rate: float) -> CellLaw:
    """P(z) ∝ exp(-rate·|z|) about each count: one record changes two counts under replace, and else one."""
    counts, reach, ratio = [4, 0, 9], 5, np.exp(-rate)
    numbers = np.arange(-reach, reach + 1)
    masses = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(numbers)
    # All numbers beyond a side: Σ_{z > r} of a geometric series.
    masses[[0, -1]] /= 1.0 - ratio
    inner = np.arange(-reach, reach) + 0.5
    edges = [np.concatenate([[-np.inf], count + inner, [np.inf]]) for count in counts]
    mechanism = GeometricMechanism(Bounds(y=(0, 2)), _EPSILON, adjacency)
    cells = np.repeat([0.0, 1.0, 2.0], counts)
    return CellLaw(mechanism, cells, None, NoisyCounts, edges, independent(masses, masses, masses))


def _sums_of_weights(adjacency: str, rate: float) -> CellLaw:
    """P(z) ∝ exp(-rate·|z|/m) about the sums of weights up to 4, in units of 2^-17, of which 4 is m = 2^19."""
    unit, most, totals = 2.0**-17, 2**19, [6.5, 0.0, 40.0]
    # Ends of cells half a unit beyond multiples of m/3, where P(z ≤ k) is 1 - q^(k + 1)/(1 + q), or q^-k/(1 + q) below.
    numbers = most // 3 * np.arange(-9, 10)
    beyond = np.exp(-rate / most * np.where(numbers >= 0, numbers + 1, -numbers)) / (1.0 + np.exp(-rate / most))
    below = np.concatenate([[0.0], np.where(numbers >= 0, 1.0 - beyond, beyond), [1.0]])
    edges = [np.concatenate([[-np.inf], total + unit * (numbers + 0.5), [np.inf]]) for total in totals]
    mechanism = GeometricMechanism(Bounds(y=(0, 2), weight=4.0), _EPSILON, adjacency)
    records = with_weights(np.array([0.0, 0.0, *[2.0] * 10]), [2.5, 99.0, *[4.0] * 10])
    return CellLaw(mechanism, records, None, NoisyCounts, edges, independent(*[np.diff(below)] * 3))


def _choice(adjacency: str, rate: float) -> CellLaw:
    """P(k) ∝ exp(-rate·Σ_i l_ki), of losses that are eighths."""
    losses = np.random.default_rng(5).integers(0, 9, (12, 3)) / 8.0
    weights = np.exp(-rate * losses.sum(axis=0))
    probabilities: Floats = np.zeros((2, 2, 2))
    for place, weight in zip(np.eye(3, dtype=int).tolist(), weights / weights.sum(), strict=True):
        probabilities[tuple(place)] = weight
    bounds = Bounds({f"candidate {k}": (0.0, 1.0) for k in range(3)}, intercept=False)
    edges = [np.array([-0.5, 0.5, 1.5])] * 3
    return CellLaw(PrivateChoice(bounds, _EPSILON, adjacency), losses, None, ExactChoice, edges, probabilities)


def _interval(adjacency: str, change: float | None) -> CellLaw:
    """exp(-(ε/2)·(|a| + |b - a| + |b|)/Δ) on the pairs of gaps, half of a square where both ends share one.

    An exchanged record moves the sum by 2; one more by 2(1 - p), with the smallest share p between the levels.
    """
    values, stated = np.array([1, 2, 2, 3, 5, 9, 11, 12, 12, 15]) / 16.0, 8
    known = None if adjacency == "replace" else stated
    mechanism = QuantileInterval(0.5, Bounds(y=(0.0, 1.0)), _EPSILON, adjacency, num_records=known, force=True)
    count = len(values) if known is None else stated
    levels = np.array(mechanism.ranks(count)) / count
    change = 2.0 * (1.0 - np.min(np.diff([0.0, *levels, 1.0]))) if change is None else change
    # What is equal to a value lies above it.
    edges = np.array([0.0, *(np.unique(values) - 2.0**-45), 1.0])
    ranks = np.searchsorted(values, edges[:-1] + 2.0**-40, side="right")
    a, b = (ranks - len(values) * level for level in levels)
    scores = np.abs(a)[:, None] + np.abs(b[None, :] - a[:, None]) + np.abs(b)[None, :]
    lengths = np.diff(edges)
    masses = np.outer(lengths, lengths) * np.exp(-_EPSILON / 2.0 * scores / change)
    masses = np.triu(masses) - np.diag(np.diag(masses)) / 2.0
    return CellLaw(mechanism, values, None, ExactInterval, [edges, edges], masses / masses.sum())


CASES: dict[str, Callable[[], CellLaw]] = {
    "counts, add_remove": partial(_counts, "add_remove", _EPSILON),
    "counts, replace": partial(_counts, "replace", _EPSILON / 2.0),
    "sums of weights, add_remove": partial(_sums_of_weights, "add_remove", _EPSILON),
    "sums of weights, replace": partial(_sums_of_weights, "replace", _EPSILON / 2.0),
    "choice, add_remove": partial(_choice, "add_remove", _EPSILON),
    "choice, replace": partial(_choice, "replace", _EPSILON / 2.0),
    "interval, add_remove": partial(_interval, "add_remove", None),
    "interval, replace": partial(_interval, "replace", 2.0),
}
