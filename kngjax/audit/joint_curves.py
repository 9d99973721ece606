"""Audits of the joint density of several curves: the law of θ with T integrated out, of one coefficient, by cells.

Without smoothing the sums in the bins are constant while no curve passes a record. With one coefficient and x > 0 a
curve passes record i at y_i/x_i, so that these ratios cut Θ^m into cells on which the density of θ is constant.
"""

import itertools
import math
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled, programs_run_once
from kngjax.samplers.curves_target import CurvesTarget

Bins = Callable[[CurvesTarget, np.ndarray], np.ndarray]
LogMass = Callable[[float, np.ndarray, np.ndarray], float]


def curves_loss(
    first: CurvesTarget,
    second: CurvesTarget,
    *,
    bins: Bins | None = None,
    log_mass: LogMass | None = None,
    may_cross: bool = False,
) -> float:
    """max |log f(θ)/f'(θ)| of two data sets of one column x > 0, over all θ, up to rounding: the ε that they need.

    **Arguments:** `first`, `second`: of `Box`, without smoothing, alike but for the records. To audit another law:
    `bins`, what takes θ, shape (cells, m, 1), to H, shape (cells, m + 1, 1); `log_mass`, log ∫ exp(-c·score) dT of
    c·‖1‖, π and H, both of shape (m + 1,); `may_cross`, whether curves do.
    """
    number = len(np.asarray(first.levels))
    with float64():
        lower, upper = (float(end) for end in first.domain.linear_interval(np.ones(1), np.ones(1)))
    passed = [np.asarray(one.data.y) / np.asarray(one.data.x)[:, 0] for one in (first, second)]
    inside = [ratio for ratio in np.concatenate(passed) if lower < ratio < upper]
    edges = np.unique([lower, upper, *inside])
    middles, lengths = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)
    gaps = range(len(lengths))
    cells = list(
        itertools.product(gaps, repeat=number) if may_cross else itertools.combinations_with_replacement(gaps, number)
    )
    shared = [1 if may_cross else math.prod(math.factorial(cell.count(gap)) for gap in set(cell)) for cell in cells]
    volumes = np.array([math.prod(lengths[list(cell)]) for cell in cells]) / np.array(shared)
    curves = np.array([middles[list(cell)] for cell in cells])[:, :, None]
    logs = []
    for one in (first, second):
        found = (_bins if bins is None else bins)(one, curves)
        with float64():
            unit, shares = float(one.rate) * float(one.norm(np.ones(1))), np.asarray(one.shares)
        integral = _log_mass if log_mass is None else log_mass
        masses = np.array([integral(unit, shares, row[:, 0]) for row in found])
        logs.append(masses - np.logaddexp.reduce(masses + np.log(volumes)))
    return float(np.max(np.abs(logs[0] - logs[1])))


def _bins(target: CurvesTarget, curves: np.ndarray) -> np.ndarray:
    with float64(), programs_run_once():
        return np.asarray(_compiled_bins(target, curves))


@Compiled
def _compiled_bins(target, curves):
    return jax.vmap(target.bins)(curves)


def _log_mass(unit: float, shares: Float[np.ndarray, " bins"], sums: Float[np.ndarray, " bins"]) -> float:
    """log ∫ exp(-c·Σ_k |H_k - π_k T|) dT: of an exponent that is linear between the H_k/π_k."""
    knots = np.sort(sums / shares)
    levels = np.array([unit * np.sum(np.abs(sums - shares * knot)) for knot in knots])
    # Beyond the outer knots the exponent grows by c·Σ_k π_k = c for each unit of T.
    parts = [-levels[0] - math.log(unit), -levels[-1] - math.log(unit)]
    for low, high, here, there in zip(knots[:-1], knots[1:], levels[:-1], levels[1:], strict=True):
        if high > low:
            fall = abs(there - here)
            mean = 1.0 if fall < 1e-9 else -math.expm1(-fall) / fall
            parts.append(math.log((high - low) * mean) - min(here, there))
    return float(np.logaddexp.reduce(parts))
