"""Probabilities of cells, to a dozen digits, by formulas that know nothing of how mechanisms draw.

Where each record has one column that is not 0, coordinate j of the gradient of the loss is a function g_j of θ_j alone,
and increases. Then ∫ exp(-max_j|g_j|) over a product of intervals C_j is, by its levels,

    ∫_0^∞ e^{-t} Π_j |{θ_j ∈ C_j: |g_j(θ_j)| ≤ t}| dt,

whose integrand is analytic but where t is some |g_j| at an end of an interval, or at a kink of g_j.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
from jaxtyping import Float, Int

Floats = Float[np.ndarray, "..."]
Score = Callable[[Floats], Floats]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# e^-60 of the mass is left out, and pieces are no longer than this.
_FARTHEST, _LONGEST = 60.0, 0.5
_HALVINGS = 60
# Fewer are expected in no cell, so that the law of the statistic is that of chi-square far out.
_FEWEST = 20.0


def cell_edges(middle: float, reach: int, exponent: int, low: float, high: float) -> Floats:
    """Finds where numbers of [low, high] are rounded to another multiple of 2^e: about the middle, and the two ends."""
    unit = 2.0**exponent
    first = round(middle / unit) - reach
    inner = (np.arange(first, first + 2 * reach + 1) + 0.5) * unit
    return np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])


def level_masses(
    scores: Sequence[Score], edges: Sequence[Floats], kinks: Sequence[Sequence[float]] | None = None
) -> Floats:
    """Probabilities of the products of intervals for a density ∝ exp(-max_j|g_j(θ_j)|) on their union.

    **Arguments:** `scores`: g, each increasing. `edges`: of the intervals of each coordinate, increasing and finite.
    `kinks`: where the g_j are not analytic.
    """
    points = [np.append(ends, extra) for ends, extra in zip(edges, kinks or [[]] * len(edges), strict=True)]
    levels = np.unique(np.concatenate([np.abs(g(at)) for g, at in zip(scores, points, strict=True)]))
    start = max(_least(g, ends) for g, ends in zip(scores, edges, strict=True))
    ends = np.append(start, levels[(levels > start) & (levels < start + _FARTHEST)])
    ends = np.append(ends, start + _FARTHEST)
    parts = [np.linspace(a, b, 2 + int((b - a) / _LONGEST)) for a, b in itertools.pairwise(ends)]
    places = np.unique(np.concatenate(parts))
    half = np.diff(places) / 2.0
    nodes = ((places[:-1] + half)[:, None] + half[:, None] * _NODES).ravel()
    masses = np.exp(start - nodes) * (half[:, None] * _WEIGHTS).ravel()
    masses = masses.reshape(-1, *[1] * len(scores))
    for axis, (g, cells) in enumerate(zip(scores, edges, strict=True)):
        upper, lower = (_inverse(g, sign * nodes, cells[0], cells[-1]) for sign in (1.0, -1.0))
        lengths = np.diff(np.minimum(upper[:, None], cells), axis=1) - np.diff(
            np.minimum(lower[:, None], cells), axis=1
        )
        shape = [len(nodes), *[1] * len(scores)]
        shape[axis + 1] = len(cells) - 1
        masses = masses * lengths.reshape(shape)
    total = masses.sum(axis=0)
    return total / total.sum()


def normal_masses(edges: Floats, mean: float, deviation: float) -> Floats:
    """Computes N(mean, deviation²) of the intervals between these edges, which may be infinite."""
    places = (edges - mean) / deviation
    # From the side where both tails are small.
    below, above = scipy.special.ndtr(places), scipy.special.ndtr(-places)
    return np.where(places[:-1] > 0.0, above[:-1] - above[1:], below[1:] - below[:-1])


def independent(*masses: Floats) -> Floats:
    """The joint probabilities of independent numbers."""
    joint = np.ones(())
    for each in masses:
        joint = np.multiply.outer(joint, each)
    return joint


def frequencies(values: Float[np.ndarray, "draws dimension"], edges: Sequence[Floats]) -> Int[np.ndarray, "..."]:
    """How many lie in each product of intervals; of the shape of the probabilities."""
    shape = tuple(len(ends) - 1 for ends in edges)
    places = [np.searchsorted(ends[1:-1], column, side="right") for column, ends in zip(values.T, edges, strict=True)]
    return np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape))).reshape(shape)


def chi_square(counts: Int[np.ndarray, "..."], probabilities: Floats) -> float:
    """The p-value of counts in cells that cover everything. Cells are taken together until each is expected often."""
    order = np.argsort(probabilities, axis=None)
    observed, chances = np.ravel(counts)[order].astype(float), np.ravel(probabilities)[order]
    if np.any(observed[chances <= 0.0] > 0.0) or abs(chances.sum() - 1.0) > 1e-9:
        return 0.0
    starts, expected = [0], 0.0
    for place, chance in enumerate(chances[:-1]):
        expected += observed.sum() * chance
        if expected >= _FEWEST:
            starts, expected = [*starts, place + 1], 0.0
    if len(starts) > 1 and observed.sum() * chances[starts[-1] :].sum() < _FEWEST:
        starts.pop()
    if len(starts) < 2:
        raise ValueError("too few draws for these cells")
    observed, expected = (np.add.reduceat(each, starts) for each in (observed, observed.sum() * chances))
    return float(scipy.stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(starts) - 1))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Finds the root of an increasing function, as nearly as float64 tells."""
    return float(scipy.optimize.brentq(function, low, high, xtol=1e-15))  # pyright: ignore[reportArgumentType]


def _least(score: Score, edges: Floats) -> float:
    """min |g| over the interval."""
    low, high = score(edges[[0, -1]])
    return float(max(low, -high, 0.0))


def _inverse(score: Score, values: Floats, low: float, high: float) -> Floats:
    """θ in [low, high] with g(θ) next to the value, by halving."""
    lower, upper = np.full(values.shape, low), np.full(values.shape, high)
    for _ in range(_HALVINGS):
        middle = (lower + upper) / 2.0
        is_below = score(middle) < values
        lower, upper = np.where(is_below, middle, lower), np.where(is_below, upper, middle)
    return (lower + upper) / 2.0
