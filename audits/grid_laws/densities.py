"""KNG on grids, whose density is a function of the gradient of the loss: cases with scores as papers have them.

Record i has one column that is not 0, j(i). Coordinate j of the gradient is Σ_{j(i) = j} s(x_ijθ_j, y_i)x_ij, and one
record for another changes it by no more than twice the largest |s|, as |x| ≤ 1. So the density of KNG in its own norm
is ∝ exp(-(ε/2)·max_j|g_j|) with g_j that sum over that change.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import scipy.special

from audits.grid_laws.cells import Floats, Score, cell_edges, level_masses, root
from audits.grid_laws.laws import CellLaw, Law
from kngjax.data.bounds import Bounds
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.quadratic_draws import QuadraticDraw
from kngjax.draws.shell_draws import ShellDraw
from kngjax.geometry.domains import Box
from kngjax.losses.base import AbstractLoss
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.losses.expectile import ExpectileLoss
from kngjax.losses.huber import HuberLoss, PseudoHuberLoss
from kngjax.losses.logistic import LogisticLoss
from kngjax.losses.poisson import CappedPoissonLoss, PoissonLoss
from kngjax.losses.smoothed_quantile import SmoothedQuantileLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.kng import KNG


class Kind(NamedTuple):
    """A loss. **Arguments:** `score`: of η and y. `largest`: |s|, for |η| ≤ the first. `responses`: public ends of y.
    `kinks`: residuals η - y at which the score is not analytic. `bends`: η at which it is not.
    """

    loss: AbstractLoss
    score: Callable[[Floats, Floats], Floats]
    largest: Callable[[float], float]
    responses: tuple[float, float] | None = None
    kinks: tuple[float, ...] = ()
    bends: tuple[float, ...] = ()


def _pseudo_huber(k: float) -> Kind:
    return Kind(PseudoHuberLoss(k), lambda eta, y: (eta - y) / np.sqrt(1.0 + ((eta - y) / k) ** 2), lambda _: k)


def _smoothed(tau: float, h: float, kernel: Literal["logistic", "gaussian"] = "logistic") -> Kind:
    below = {"logistic": scipy.special.expit, "gaussian": scipy.special.ndtr}[kernel]
    loss = SmoothedQuantileLoss(tau, h, kernel)
    return Kind(loss, lambda eta, y: below((eta - y) / h) - tau, lambda _: max(tau, 1.0 - tau))


def _poisson(most: float, limit: float | None = None) -> Kind:
    cap = np.inf if limit is None else limit
    return Kind(
        PoissonLoss() if limit is None else CappedPoissonLoss(limit),
        lambda eta, y: np.exp(np.minimum(eta, cap)) - y,
        lambda reach: max(np.exp(min(reach, cap)), most - np.exp(-reach)),
        (0.0, most),
        bends=() if limit is None else (limit,),
    )


_LOGISTIC = Kind(LogisticLoss(), lambda eta, y: scipy.special.expit(eta) - y, lambda _: 1.0, (0.0, 1.0))
_SQUARED = Kind(SquaredLoss(), lambda eta, y: eta - y, lambda reach: reach + 1.0, (-1.0, 1.0))
# A record's score is θ - x.
_MEAN = Kind(SquaredDistanceLoss(), lambda eta, y: eta - y, lambda _: 1.0)
SMOOTH = {
    "pseudo-Huber": _pseudo_huber(0.3),
    "Huber": Kind(HuberLoss(0.4), lambda eta, y: np.clip(eta - y, -0.4, 0.4), lambda _: 0.4, kinks=(-0.4, 0.4)),
    "logistic": _LOGISTIC,
    "Poisson": _poisson(2.0),
    # Residuals of up to 2 on the steep side.
    "expectile": Kind(
        ExpectileLoss(0.8),
        lambda eta, y: 2.0 * np.where(eta > y, 0.2, 0.8) * (eta - y),
        lambda reach: 1.6 * (reach + 2.0),
        (0.0, 2.0),
        (0.0,),
    ),
    "smoothed quantile": _smoothed(0.3, 0.2),
    "Gaussian kernel": _smoothed(0.3, 0.2, "gaussian"),
    "capped Poisson": _poisson(0.7, 0.3),
}
# Wide enough for public facts to lead to draws in the space of gradients.
_SHELLS = {
    "pseudo-Huber": _pseudo_huber(2.0),
    "logistic": _LOGISTIC,
    "Poisson": _poisson(3.0),
    "smoothed quantile": _smoothed(0.7, 1.0),
}


def records(kind: Kind, count: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X with one column a record, and y within the bounds that it has."""
    generator = np.random.default_rng(seed)
    x, places = np.zeros((count, dimension)), np.arange(count) % dimension
    x[np.arange(count), places] = generator.uniform(-1.0, 1.0, count)
    predictor = x.sum(axis=1) * np.linspace(0.4, -0.2, dimension)[places]
    low, high = kind.responses or (-9.0, 9.0)
    if isinstance(kind.loss, LogisticLoss):
        return x, (generator.uniform(size=count) < scipy.special.expit(2.0 * predictor)) * 1.0
    if isinstance(kind.loss, PoissonLoss | CappedPoissonLoss):
        return x, np.clip(generator.poisson(np.exp(predictor)), low, high).astype(float)
    return x, np.clip(predictor + 0.3 * generator.standard_normal(count), low, high)


def _coordinate(kind: Kind, x: np.ndarray, y: np.ndarray, axis: int, times: float) -> Score:
    rows = np.ones(len(x), bool) if kind is _MEAN else x[:, axis] != 0.0
    column, response = (np.ones(len(x)), x[:, axis]) if kind is _MEAN else (x[rows, axis], y[rows])

    def g(theta: Floats) -> Floats:
        return times * (kind.score(theta[..., None] * column, response) * column).sum(axis=-1)

    return g


def scores(kind: Kind, x: np.ndarray, y: np.ndarray, reach: float, epsilon: float) -> list[Score]:
    """(ε/2)·g_j for each coordinate. **Arguments:** `reach`: of |x'θ| on Θ."""
    times = epsilon / 2.0 / (2.0 * kind.largest(reach))
    return [_coordinate(kind, x, y, axis, times) for axis in range(x.shape[1])]


def _kinks(kind: Kind, x: np.ndarray, y: np.ndarray, axis: int) -> list[float]:
    rows = x[:, axis] != 0.0
    if kind is _MEAN:
        return []
    places = [(y[rows] + r) / x[rows, axis] for r in kind.kinks] + [eta / x[rows, axis] for eta in kind.bends]
    return [place for each in places for place in each.tolist()]


def _mechanism(kind: Kind, domain: Box, epsilon: float, dimension: int) -> KNG:
    has_bounds = kind.responses is not None and not isinstance(kind.loss, LogisticLoss)
    columns = [-1.0] * dimension, [1.0] * dimension
    bounds = Bounds(x=columns, y=kind.responses if has_bounds else None, intercept=False)
    return KNG(kind.loss, bounds, domain, epsilon, "replace", allow_large_epsilon=True)


def _case(kind: Kind, drawn_by: type, sides: tuple[float, float], count: int, dimension: int, epsilon: float) -> Law:
    """In cells of an eighth over all of a box."""
    x, y = records(kind, count, dimension, count)
    mechanism = _mechanism(kind, Box([sides[0]] * dimension, [sides[1]] * dimension), epsilon, dimension)
    edges = [cell_edges(0.0, 99, -3, *sides)] * min(dimension, 2) + [np.array(sides)] * (dimension - 2)
    given = scores(kind, x, y, dimension * max(map(abs, sides)), epsilon)
    chances = level_masses(given, edges, [_kinks(kind, x, y, axis) for axis in range(dimension)])
    response = y if kind.loss.has_response else None
    return CellLaw(mechanism, x, response, drawn_by, edges, chances, -3)


def _in_shells(name: str) -> Law:
    """Five coefficients, two of them in cells about where the density is largest, close to an end of Θ for one."""
    kind, dimension, epsilon, exponent = _SHELLS[name], 5, 100.0, -8
    # The public rule asks for more records where scores may be large.
    count = 1500 if name == "Poisson" else 900
    x, y = records(kind, count, dimension, 5)
    free = [_coordinate(kind, x, y, axis, 1.0) for axis in range(dimension)]
    middles = [root(lambda t, g=g: float(g(np.array([t]))[0]), -2.0, 2.0) for g in free]
    sides = np.array([[m - 0.15, m + 0.15] for m in middles])
    sides[1, 1] = middles[1] + 0.005
    domain = Box(sides[:, 0], sides[:, 1])
    given = scores(kind, x, y, float(np.abs(sides).max(axis=1).sum()), epsilon)
    edges = [
        cell_edges(m, 12, exponent, *side) if axis < 2 else side
        for axis, (m, side) in enumerate(zip(middles, sides, strict=True))
    ]
    mechanism = _mechanism(kind, domain, epsilon, dimension)
    return CellLaw(mechanism, x, y, ShellDraw, edges, level_masses(given, edges), exponent)


CASES: dict[str, Callable[[], Law]] = {
    "KNG, squared, by noise": partial(_case, _SQUARED, QuadraticDraw, (-1.0, 1.5), 80, 2, 30.0),
    "KNG, squared, by the domain": partial(_case, _SQUARED, QuadraticDraw, (-1.0, 1.5), 20, 2, 4.0),
    "KNG, squared, outside of the domain": partial(_case, _SQUARED, QuadraticDraw, (0.25, 1.25), 80, 2, 8.0),
    "KNG, squared, 5 coefficients": partial(_case, _SQUARED, QuadraticDraw, (-1.0, 1.5), 200, 5, 90.0),
    "KNG, means": partial(_case, _MEAN, QuadraticDraw, (-0.75, 0.75), 12, 2, 2.0),
    **{
        f"KNG, {name}, boxes, {dimension}": partial(_case, kind, BoxDraw, (-0.5, 1.5), 12 * dimension, dimension, 4.0)
        for dimension, (name, kind) in zip((2, 1, 2, 1, 1, 2, 1, 1), SMOOTH.items(), strict=True)
    },
    **{f"KNG, {name}, shells, 5": partial(_in_shells, name) for name in _SHELLS},
}
