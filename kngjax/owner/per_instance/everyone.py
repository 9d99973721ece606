"""Privacy of everyone: the largest ε over all records that the bounds admit, were one to join the data."""

import itertools
import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from kngjax.core.arrays import float64
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.bounds import Bounds
from kngjax.data.records import Records, prepare
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.owner.per_instance.chunks import by_chunks
from kngjax.owner.per_instance.pairs_of_laws import PosteriorPair, ShiftPair
from kngjax.owner.per_instance.ridge import Influence, RidgeFit
from kngjax.sensitivity.gradients import feature_radius

_MOST_VERTICES = 4096
_GRID, _ROUNDS = 513, 3
# A bound is rounded outward by this factor.
_OUTWARD = 1.0 + 1e-9
# The response that stands for an unbounded one: a bounded score has reached its limit there.
_FAR = 1e12


@owner_only
class ForAll(OwnerOnly):
    """Bounds sup ε over the records (x, y) within the bounds that might join these data. Owner-only.

    **Arguments:** `attained`: the largest ε found, of a record that the bounds admit: the supremum is at least that.
    `bound`: the supremum is at most that; infinite where no bound is known. `method`: which records were tried.
    """

    attained: float
    bound: float
    method: str
    instead: ClassVar[str] = "its numbers, for the owner, are attained and bound"


def candidates(
    bounds: Bounds, loss: AbstractPredictorLoss, directions: np.ndarray, most: int = _MOST_VERTICES
) -> tuple[Records, str]:
    """Returns vertices of the bounds as records, all of them or those farthest along ±`directions`, at both ends of y.

    **Arguments:** `directions`: shape (directions, d). `most`: vertices, beyond which not all are tried.
    """
    with float64():
        blocks = [np.array(block) for block in bounds.feature_blocks(directions.shape[1])]
    if math.prod(len(block) for block in blocks) <= most:
        points, method = list(_vertices(blocks)), "all vertices"
    else:
        points, method = list(_farthest(blocks, directions)), "the vertices farthest along some directions"
    low, high = response_ends(bounds, loss)
    columns = np.array(points)[:, int(bounds.intercept) :]
    response = np.repeat([low, high], len(columns))
    # Clip by `prepare`: corners of the box of blocks may lie outside the hull.
    records = prepare(bounds, np.vstack([columns, columns]) if bounds.columns != 0 else None, response)
    return records, f"{method} of the bounds of x at both ends of y"


def response_ends(bounds: Bounds, loss: AbstractPredictorLoss) -> tuple[float, float]:
    """Returns the extreme responses: what the loss knows of them, else what is as good as infinite."""
    lower, upper = loss.response_interval(bounds) or (-_FAR, _FAR)
    return float(lower), float(upper)


def _vertices(blocks: list[np.ndarray]) -> Iterator[np.ndarray]:
    return (np.concatenate(points) for points in itertools.product(*blocks))


def _farthest(blocks: list[np.ndarray], directions: np.ndarray) -> Iterator[np.ndarray]:
    starts = np.cumsum([block.shape[1] for block in blocks])[:-1]
    for direction in np.vstack([directions, -directions]):
        parts = zip(blocks, np.split(direction, starts), strict=True)
        yield np.concatenate([block[np.argmax(block @ part)] for block, part in parts])


def directions(fit: RidgeFit) -> np.ndarray:
    """Returns directions in which leverages and predictions are large: the eigenvectors of H^{-1}, and θ̂."""
    return np.vstack([np.linalg.eigh(fit.factor @ fit.factor.T)[1].T, fit.theta])


def predictor_interval(bounds: Bounds, theta: np.ndarray) -> tuple[float, float]:
    """Returns the range of x'θ̂ over the bounds: linear, so block by block."""
    with float64():
        blocks = [np.array(block) for block in bounds.feature_blocks(len(theta))]
    parts = np.split(theta, np.cumsum([block.shape[1] for block in blocks])[:-1])
    values = [block @ part for block, part in zip(blocks, parts, strict=True)]
    return sum(float(value.min()) for value in values), sum(float(value.max()) for value in values)


def largest_residual(bounds: Bounds, theta: np.ndarray) -> float:
    """sup |y - x'θ̂| over the bounds, attained, since x and y vary independently."""
    lowest, highest = predictor_interval(bounds, theta)
    assert bounds.y_lower is not None
    assert bounds.y_upper is not None
    return max(float(bounds.y_upper) - lowest, highest - float(bounds.y_lower), 0.0)


def posterior_bound(
    bounds: Bounds, fit: RidgeFit, gamma: float, tried: Influence, log_delta: float, complete: bool
) -> float:
    """Returns the largest ε of OPS over μ ≤ sup μ and |r| ≤ sup |r|, on a grid of μ that closes in.

    sup μ is that of the vertices if all were tried, since μ is convex in x, and X²/λ_min(H) else. ε increases with |r|.
    """
    most = float(np.max(tried.leverage)) if complete else _radius(bounds, fit) ** 2 / _least_eigenvalue(fit)
    residual = largest_residual(bounds, fit.theta)
    grid = most * np.logspace(-8.0, 0.0, _GRID)
    largest = 0.0
    for _ in range(_ROUNDS):
        full = np.full_like(grid, residual)
        values = by_chunks(
            PosteriorPair.epsilon, PosteriorPair(grid, full, np.full_like(grid, gamma)), np.float64(log_delta)
        )
        best = int(np.argmax(values))
        largest = max(largest, float(values[best]))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)], _GRID)
    # The maximum may lie between two points of the last grid, whose steps are a part in 10⁶.
    return largest * _OUTWARD


def shift_bound(
    bounds: Bounds, fit: RidgeFit, gamma: float, tried: Influence, log_delta: float, complete: bool
) -> float:
    """ε of the largest √γ‖H^{-1}x‖·|r|/(1+μ), with v = ‖H^{-1}x‖ ≤ sup v, |r| ≤ sup |r| and μ ≥ λ_min(H)v²."""
    least = _least_eigenvalue(fit)
    most = float(np.max(tried.spread)) if complete else _radius(bounds, fit) / least
    spread = min(most, 1.0 / math.sqrt(least))
    shift = math.sqrt(gamma) * largest_residual(bounds, fit.theta) * spread / (1.0 + least * spread**2)
    return float(by_chunks(ShiftPair.epsilon, ShiftPair(np.array([shift])), np.float64(log_delta))[0]) * _OUTWARD


def smooth_shift_bound(
    bounds: Bounds, loss: AbstractPredictorLoss, theta: np.ndarray, regularization: float, gamma: float
) -> float:
    """√γ·sup|s|·X/λ: ∇J' = sx at θ̂ and J' is λ-strongly convex, so its minimiser is that near."""
    with float64():
        interval = loss.score_interval(predictor_interval(bounds, theta), loss.response_interval(bounds))
        score = max(abs(float(end)) for end in interval)
        return math.sqrt(gamma) * score * float(feature_radius(bounds, len(theta))) / regularization * _OUTWARD


def _least_eigenvalue(fit: RidgeFit) -> float:
    return float(np.linalg.eigvalsh(fit.factor @ fit.factor.T)[0])


def _radius(bounds: Bounds, fit: RidgeFit) -> float:
    with float64():
        return float(feature_radius(bounds, len(fit.theta)))
