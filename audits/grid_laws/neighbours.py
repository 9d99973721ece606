"""Neighbours at corners of the bounds beside the noise of releases on grids, in fractions: nothing is rounded.

Each ratio is of squares: of how far one record moves what noise is added to, or changes the exponent of a density,
over the most that the guarantee allows. Above 1 it would be broken.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from kngjax.accounting.exact_costs import exactly
from kngjax.data.bounds import Bounds
from kngjax.data.weights import with_weights
from kngjax.draws.choice import proved_draw
from kngjax.geometry.domains import Box
from kngjax.losses.huber import HuberLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.ada_ssp import AdaSSP
from kngjax.mechanisms.block_sums import BlockSums
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.output_perturbation import OutputPerturbation

_COLUMNS = np.array([-0.3, 0.1]), np.array([0.7, 0.9])
_BOUNDS, _OPEN = Bounds(x=_COLUMNS, y=(-0.4, 1.3), intercept=False), Bounds(x=_COLUMNS, intercept=False)
_LINE = Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False)
_WEIGHTED = Bounds(x=([-1.0], [1.0]), y=(-1.0, 1.0), intercept=False, weight=3.0)
_THETA = Box([-0.7, -0.2], [0.3, 0.9])


def worst_ratios() -> Iterator[tuple[str, Fraction]]:
    """Names each kind of release, with the largest of its squared ratios."""
    yield "means by K-norm noise", _of_means()
    yield "KNG, squared", _of_scores()
    yield "KNG, Huber", _of_steps()
    yield "AdaSSP", _of_moments()
    yield "AdaSSP with weights", _of_weighted_moments()
    yield "output, squared", _of_minimisers()
    for adjacency in ("replace", "add_remove"):
        yield f"sums in blocks, {adjacency}", _of_blocks(adjacency)


def _records(dimension: int = 2) -> list[tuple[float, ...]]:
    """Corners of the bounds."""
    if dimension == 1:
        return list(itertools.product((-1.0, 1.0), (-1.0, 1.0)))
    return list(itertools.product(*zip(*(side.tolist() for side in _COLUMNS), strict=True), (-0.4, 1.3)))


def _tables(shared: list[tuple[float, ...]], records: list[tuple[float, ...]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Makes tables of some shared records and one more; the last has the shared ones alone."""
    tables = [np.array([*shared, one]) for one in records] + [np.array(shared)]
    return [(table[:, :-1], table[:, -1]) for table in tables]


def _way(mechanism: Any, x: Any, y: np.ndarray | None) -> Any:
    way = proved_draw(mechanism, mechanism.intake.check_schema(x, y))
    assert way is not None
    return way


def _hidden(mechanism: Any) -> Fraction:
    """s² = 2ρ."""
    return 2 * mechanism.guarantee.exact_rho


def _longest(noise: Any, moves: list[Fraction]) -> Fraction:
    """The square of a length in the largest coordinate, in units of the noise."""
    return max((move / weight) ** 2 for move, weight in zip(moves, noise.weights, strict=True)) / noise.scale_squared


def _of_means() -> Fraction:
    mechanism, found = KNormMechanism(_OPEN, 0.3, "replace"), Fraction(0)
    tables = _tables(_records()[:3], _records())[:-1]
    for (x, _), (other, _) in itertools.combinations(tables, 2):
        way = _way(mechanism, x, None)
        places = (way.location(way.prepare(one, None)) for one in (x, other))
        moves = [a - b for a, b in zip(*places, strict=True)]
        found = max(found, _longest(mechanism.noise_in_fractions(2, len(x)), moves))
    return found / exactly(0.3) ** 2


def _of_blocks(adjacency: str) -> Fraction:
    """Records at corners of the bounds, which mostly have more of exclusive columns than one, and far beyond them."""
    columns = Bounds(x=([0.0, 0.0, -0.3, -0.2, 0.1], [0.7, 2.0, 0.1, 0.9, 0.9]), intercept=False)
    mechanism = BlockSums(columns, 0.3, adjacency, [(0, 1), (3, 2)])
    rows = np.array([*itertools.product((0.0, 9.0), (0.0, 2.0), (-0.3, 0.1), (-9.0, 0.0, 0.9), (0.1,))])
    noise, found = mechanism.noise_in_fractions(5, 1), Fraction(0)
    for move in _moves(mechanism, rows, adjacency):
        shares = [step / weight for step, weight in zip(move, noise.weights, strict=True)]
        for kind, block in noise.blocks:
            sides = [sum(max(sign * shares[j], Fraction(0)) for j in block) for sign in (1, -1)]
            found = max(found, Fraction(max(sides) if kind == "exchange" else sum(sides)))
    return found**2 / noise.scale_squared / exactly(0.3) ** 2


def _moves(mechanism: Any, rows: np.ndarray, adjacency: str) -> list[np.ndarray]:
    """How sums change when a record comes, or is exchanged for another, beside one that stays."""
    stays = rows[:1] / 2.0
    way = _way(mechanism, stays, None)
    sums = [way.prepare(np.vstack([stays, row]), None).moment for row in rows]
    if adjacency == "replace":
        return [one - other for one, other in itertools.combinations(sums, 2)]
    fewer = way.prepare(stays, None).moment
    return [one - fewer for one in sums]


def _of_scores() -> Fraction:
    """Bounds how X'Xθ - X'y changes at corners of Θ: half of ε is for the density, and half for its total."""
    mechanism, found = KNG(SquaredLoss(), _BOUNDS, _THETA, 0.4, "add_remove"), Fraction(0)
    *more, less = _tables(_records()[:3], _records())
    way = _way(mechanism, *less)
    fewer = way.prepare(*less)
    for table in more:
        sums = way.prepare(*table)
        gram, moment = sums.gram - fewer.gram, sums.moment - fewer.moment
        for theta in itertools.product(*way.body.shape.sides):
            moves = [
                sum(a * t for a, t in zip(row, theta, strict=True)) - b for row, b in zip(gram, moment, strict=True)
            ]
            found = max(found, _longest(way.noise, moves))
    return found / (exactly(0.4) / 2) ** 2


def _of_steps() -> Fraction:
    """Huber's score is ±k for responses far off, so that an exchange of (x, -∞) for (x, ∞) moves Σs_i x_i by 2kx."""
    mechanism = KNG(HuberLoss(0.3), _OPEN, _THETA, 0.4, "replace")
    noise = _way(mechanism, np.zeros((1, 2)), np.zeros(1)).noise
    largest = [max(map(Fraction, map(float, side))) for side in zip(*map(np.abs, _COLUMNS), strict=True)]
    return _longest(noise, [2 * Fraction(0.3) * x for x in largest]) / (exactly(0.4) / 2) ** 2


def moment_variances(way: Any) -> list[Fraction]:
    """Lists the variances of noise on λ_min, X'y, the diagonal of X'X and what is above it. Public."""
    parts = (way.least, way.moment, way.matrix.diagonal, way.matrix.above)
    return [part.noise.scale_squared for part in parts]


def moments_alone(way: Any, data: Any) -> tuple[list[Any], ...]:
    """Lists the moments without noise in the order of their variances. Private."""
    least, moment, matrix = way.moments(data)
    return [least], list(moment), list(np.diag(matrix)), list(matrix[np.triu_indices(len(matrix), 1)])


def _of_moments() -> Fraction:
    """By normal noise that hides a shift of s deviations, s² = 2ρ."""
    mechanism, found = AdaSSP(_LINE, 0.5, 1e-6, "add_remove"), Fraction(0)
    *more, less = _tables([(1.0, 1.0)], _records(1))
    way = _way(mechanism, *less)
    fewer, variances = moments_alone(way, way.prepare(*less)), moment_variances(way)[:3]
    for table in more:
        parts = zip(moments_alone(way, way.prepare(*table)), fewer, variances, strict=False)
        found = max(found, sum(((a[0] - b[0]) ** 2 / size for a, b, size in parts), Fraction(0)))
    return found / _hidden(mechanism)


def _of_weighted_moments() -> Fraction:
    """Bounds how noisy moments change by one record more, with a weight up to 3, or one that is too large."""
    mechanism, found = AdaSSP(_WEIGHTED, 0.5, 1e-6, "add_remove"), Fraction(0)
    one = with_weights(np.ones((1, 1)), [0.5]), np.ones(1)
    way = _way(mechanism, *one)
    fewer, variances = moments_alone(way, way.prepare(*one)), moment_variances(way)[:3]
    for (feature, response), weight in itertools.product(_records(1), (0.0, 1.7, 3.0, 50.0)):
        more = with_weights(np.array([[1.0], [feature]]), [0.5, weight]), np.array([1.0, response])
        parts = zip(moments_alone(way, way.prepare(*more)), fewer, variances, strict=False)
        found = max(found, sum(((a[0] - b[0]) ** 2 / size for a, b, size in parts), Fraction(0)))
    return found / _hidden(mechanism)


def _of_minimisers() -> Fraction:
    """Ridge regression of (a, 1) many times, and (1, -1) once: for some a near to the worst."""
    mechanism = OutputPerturbation(SquaredLoss(), _LINE, 60.0, 1.0, 1e-3, "add_remove", max_records=200)
    found = Fraction(0)
    for size in np.linspace(0.02, 1.0, 50).tolist():
        more, less = _tables([(size, 1.0)] * 199, [(1.0, -1.0)])
        way = _way(mechanism, *less)
        (one,), (other,) = (way.location(way.prepare(*table)) for table in (more, less))
        found = max(found, (one - other) ** 2 / way.noise.scale_squared)
    return found / _hidden(mechanism)
