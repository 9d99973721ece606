"""From a mechanism and its records to whole scores on a public lattice."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from kngjax import norms
from kngjax import sensitivity as room
from kngjax.data import Records
from kngjax.lattice.plans import Plan, level
from kngjax.lattice.scores import WEIGHT_UNITS, AbstractScore, GradientNorm, QuadraticScore, QuantileScore
from kngjax.lattice.units import on_lattice
from kngjax.losses import QuantileLoss, SquaredDistanceLoss
from kngjax.mechanisms import KNG, AbstractDensityMechanism

# Sensitivities are computed in float64 with a relative error far below this, and enlarged by it.
_ENLARGED = 1 + Fraction(1, 2**40)


def score_of(mechanism: AbstractDensityMechanism, records: Records, plan: Plan) -> AbstractScore:
    """The whole score of these records, which the mechanism prepared. Private. Call it in float64."""
    features, responses = np.asarray(records.x, np.float64), np.asarray(records.y, np.float64)
    sides = zip(features.T, plan.places, *plan.bounds.features(features.shape[1]), strict=True)
    # Rounding is monotone and stays within the rounded bounds; whole numbers are held to them all the same.
    x = np.column_stack(
        [
            np.clip(on_lattice(column, place), on_lattice(lower, place), on_lattice(upper, place))
            for column, place, lower, upper in sides
        ]
    )
    if isinstance(mechanism.loss, QuantileLoss):
        return _quantile_score(mechanism, x, responses, plan)
    if isinstance(mechanism.loss, SquaredDistanceLoss):
        return _mean_score(mechanism, x, plan)
    y = on_lattice(responses, plan.response)[:, None]
    shift = 2 ** (plan.response - plan.unit)
    moment, squares = _products(x, y)[:, 0] * shift, int(_products(y, y)[0, 0]) * shift**2
    return _quadratic_score(mechanism, plan, _products(x, x), moment, squares, [a + plan.unit for a in plan.places])


def _mean_score(mechanism, x: np.ndarray, plan: Plan) -> QuadraticScore:
    """∇ℓ = nθ - Σx, and 2ℓ = n|θ|² - 2θ'Σx + Σ|x|²."""
    dimension = x.shape[1]
    shifts = np.array([2 ** (place - plan.unit) for place in plan.places], object)
    moment = _products(x, np.ones((len(x), 1), np.int64))[:, 0] * shifts
    squares = sum(int(size) * shift**2 for size, shift in zip(_products(x, x).diagonal(), shifts, strict=True))
    gram = np.array([[len(x) * (row == column) for column in range(dimension)] for row in range(dimension)], object)
    return _quadratic_score(mechanism, plan, gram, moment, squares, [plan.unit] * dimension)


def _quadratic_score(mechanism, plan: Plan, gram, moment, squares: int, units: list[int]) -> QuadraticScore:
    if isinstance(mechanism, KNG):
        return QuadraticScore(gram, moment, squares, norm=_norm(mechanism, plan, units, 1))
    # Of twice the loss, which is whole.
    return QuadraticScore(gram, moment, squares, weight=_whole(2 * _value_change(mechanism, plan), 2 * plan.unit))


def _quantile_score(mechanism, x: np.ndarray, responses: np.ndarray, plan: Plan) -> QuantileScore:
    tau = level(mechanism.loss)
    if isinstance(mechanism, KNG):
        # Beyond what any x'θ reaches a response has one sign, however far it is.
        end = math.ldexp(plan.reach, plan.unit)
        y = on_lattice(np.clip(responses, -end, end), plan.unit)
        return QuantileScore(x, y, tau, norm=_norm(mechanism, plan, list(plan.places), tau.denominator))
    weight = _whole(tau.denominator * _value_change(mechanism, plan), plan.unit)
    return QuantileScore(x, on_lattice(responses, plan.unit), tau, weight=weight)


def _norm(mechanism: KNG, plan: Plan, units: list[int], factor: int) -> GradientNorm:
    """Of G, whose jth entry is `factor` times the gradient's in units of 2^units_j."""
    loss, bounds, reach, adjacency = mechanism.loss, plan.bounds, mechanism.domain, mechanism.adjacency
    dimension = len(units)
    if mechanism.norm is None:
        changes = np.asarray(room.gradient_changes(loss, bounds, reach, adjacency, dimension))
        return GradientNorm(_wholes(factor * changes, units))
    change = float(room.gradient_sensitivity(loss, bounds, reach, adjacency, mechanism.norm, dimension))
    if isinstance(mechanism.norm, norms.L1):
        least = min(units)
        scales = np.array([2 ** (unit - least) for unit in units], object)
        return GradientNorm(np.array(_whole(factor * change, least), object), scales)
    weights = (
        np.asarray(mechanism.norm.weights) if isinstance(mechanism.norm, norms.WeightedLInf) else np.ones(dimension)
    )
    return GradientNorm(_wholes(factor * change * weights, units))


def _value_change(mechanism: AbstractDensityMechanism, plan: Plan) -> float:
    dimension = len(plan.places)
    return float(room.value_sensitivity(mechanism.loss, plan.bounds, mechanism.domain, mechanism.adjacency, dimension))


def _wholes(changes: Any, units: list[int]) -> np.ndarray:
    return np.array([_whole(change, unit) for change, unit in zip(changes, units, strict=True)], object)


def _whole(change: Any, unit: int) -> int:
    """A whole number of units of 2^unit/WEIGHT_UNITS that is certainly at least this."""
    if not (change > 0 and math.isfinite(change)):
        raise ValueError("one record can change nothing, or without limit: check the bounds and the domain")
    return math.ceil(Fraction(float(change)) / Fraction(2) ** unit * _ENLARGED * WEIGHT_UNITS)


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left'right of whole numbers, exactly, as Python's: blocks of rows in float64, summed as whole numbers."""
    sizes = [max(int(np.max(np.abs(side), initial=1)), 1) for side in (left, right)]
    block = max(1, 2**53 // (sizes[0] * sizes[1]))
    total = np.zeros((left.shape[1], right.shape[1]), object)
    for start in range(0, len(left), block):
        rows = slice(start, start + block)
        part = left[rows].T.astype(np.float64) @ right[rows].astype(np.float64)
        total = total + np.array(part.astype(np.int64).tolist(), object)
    return total
