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
from kngjax.lattice.sums import WholeSums, sums_of, whole_features
from kngjax.lattice.units import on_lattice
from kngjax.losses import QuantileLoss, SquaredDistanceLoss
from kngjax.mechanisms import KNG, AbstractDensityMechanism

# Sensitivities are computed in float64 with a relative error far below this, and enlarged by it.
_ENLARGED = 1 + Fraction(1, 2**40)


def score_of(mechanism: AbstractDensityMechanism, data: Records | WholeSums, plan: Plan) -> AbstractScore:
    """The whole score of these records, which the mechanism prepared, or of their sums on the plan's lattice. Private.

    Call it in float64.
    """
    if isinstance(mechanism.loss, QuantileLoss):
        assert isinstance(data, Records)
        return _quantile_score(mechanism, whole_features(data, plan), np.asarray(data.y, np.float64), plan)
    sums = data if isinstance(data, WholeSums) else sums_of(data, plan, mechanism.loss.has_response)
    if isinstance(mechanism.loss, SquaredDistanceLoss):
        return _mean_score(mechanism, sums, plan)
    shift = 2 ** (plan.response - plan.unit)
    moment, squares = sums.moment * shift, sums.squares * shift**2
    return _quadratic_score(mechanism, plan, sums.gram, moment, squares, [a + plan.unit for a in plan.places])


def _mean_score(mechanism, sums: WholeSums, plan: Plan) -> QuadraticScore:
    """∇ℓ = nθ - Σx, and 2ℓ = n|θ|² - 2θ'Σx + Σ|x|²."""
    dimension = sums.dimension
    shifts = np.array([2 ** (place - plan.unit) for place in plan.places], object)
    squares = sum(int(size) * shift**2 for size, shift in zip(sums.gram.diagonal(), shifts, strict=True))
    gram = np.array([[sums.count * (row == column) for column in range(dimension)] for row in range(dimension)], object)
    return _quadratic_score(mechanism, plan, gram, sums.moment * shifts, squares, [plan.unit] * dimension)


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
