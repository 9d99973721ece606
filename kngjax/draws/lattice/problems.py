"""Makes whole scores on a public lattice from a mechanism and its records."""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from kngjax.core.arrays import float64
from kngjax.core.balls import power_of_two
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records
from kngjax.draws.lattice.check_scores import QuantileScore
from kngjax.draws.lattice.lattice_plan import LatticePlan
from kngjax.draws.lattice.lattice_sums import sums_of, whole_features
from kngjax.draws.lattice.scores import WEIGHT_UNITS, AbstractScore, GradientNorm, QuadraticScore
from kngjax.draws.lattice.units import on_lattice
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.preparation import TOO_MANY_RECORDS
from kngjax.sensitivity import in_fractions

# Scores are divided by a norm of the gradient, or by a whole weight of the loss.
Divisor = GradientNorm | int


def score_of(mechanism: AbstractDensityMechanism, data: Records | ExactSums, plan: LatticePlan) -> AbstractScore:
    """Returns the whole score of prepared records, or of their sums on their lattice. Private."""
    if in_fractions.kind_of(mechanism.loss) == "check":
        assert isinstance(data, Records)
        return _quantile_score(mechanism, data, plan)
    sums = data if isinstance(data, ExactSums) else sums_of(data, plan, mechanism.loss.has_response)
    if in_fractions.kind_of(mechanism.loss) == "distances":
        return _mean_score(mechanism, sums, plan)
    shift = 2 ** (plan.response - plan.unit)
    moment, squares = sums.moment * shift, sums.squares * shift**2
    return _quadratic_score(divisor_of(mechanism, plan), sums.gram, moment, squares)


def _mean_score(mechanism, sums: ExactSums, plan: LatticePlan) -> QuadraticScore:
    """∇ℓ = nθ - Σx, and 2ℓ = n|θ|² - 2θ'Σx + Σ|x|²."""
    dimension = sums.dimension
    shifts = np.array([2 ** (exponent - plan.unit) for exponent in plan.exponents], object)
    squares = sum(int(size) * shift**2 for size, shift in zip(sums.gram.diagonal(), shifts, strict=True))
    gram = np.array([[sums.count * (row == column) for column in range(dimension)] for row in range(dimension)], object)
    return _quadratic_score(divisor_of(mechanism, plan), gram, sums.moment * shifts, squares)


def _quadratic_score(divisor: Divisor, gram, moment, squares: int) -> QuadraticScore:
    if isinstance(divisor, GradientNorm):
        return QuadraticScore(gram, moment, squares, norm=divisor)
    return QuadraticScore(gram, moment, squares, weight=divisor)


def _quantile_score(mechanism, data: Records, plan: LatticePlan) -> QuantileScore:
    divisor = divisor_of(mechanism, plan)
    if isinstance(divisor, GradientNorm):
        return check_score(mechanism, whole_records(data, plan), plan)
    responses = on_lattice(np.asarray(data.y, np.float64), plan.unit)
    return QuantileScore(whole_features(data, plan), responses, in_fractions.level(mechanism.loss), weight=divisor)


class WholeRecords(NamedTuple):
    """X and Y of records on their lattices, for KNG with a check loss. Private.

    Whether Y ≤ X'k is asked of whole numbers of 64 bits, one record by itself.
    """

    x: Int[np.ndarray, "records dimension"]
    y: Int[np.ndarray, " records"]

    def at(self, places: np.ndarray) -> "WholeRecords":
        """Selects some of the records."""
        return WholeRecords(self.x[places], self.y[places])

    def are_above(self, point: Int[np.ndarray, " dimension"]) -> Bool[np.ndarray, " records"]:
        """Marks the records with Y > X'k."""
        return self.y > self.x @ point


def whole_records(data: Records, plan: LatticePlan) -> WholeRecords:
    """Rounds each prepared record to its lattice by itself. Private."""
    # Beyond what any x'θ reaches a response has one sign, however far it is.
    end = math.ldexp(plan.reach, plan.unit)
    responses = np.clip(np.asarray(data.y, np.float64), -end, end)
    return WholeRecords(whole_features(data, plan), on_lattice(responses, plan.unit))


def prepared(
    mechanism: AbstractDensityMechanism, X: Any, y: Any, plan: LatticePlan, most: int, dither_key: Any = None
) -> WholeRecords:
    """Prepares records as the mechanism does, and rounds each to its lattice by itself. Private.

    Raises RuntimeError for more than `most` of them.
    """
    records = mechanism.intake.records(X, y, dither_key=dither_key)
    if records.num_records > most:
        raise RuntimeError(TOO_MANY_RECORDS)
    with float64():
        return whole_records(records, plan)


def check_score(mechanism: AbstractDensityMechanism, records: WholeRecords, plan: LatticePlan) -> QuantileScore:
    """Returns the score of KNG with a check loss. Private."""
    divisor = divisor_of(mechanism, plan)
    assert isinstance(divisor, GradientNorm)
    return QuantileScore(records.x, records.y, in_fractions.level(mechanism.loss), norm=divisor)


def divisor_of(mechanism: AbstractDensityMechanism, plan: LatticePlan) -> Divisor:
    """W: at least what one record can change the whole gradient by, in its norm, or the whole loss. Public.

    For a quantile loss they are D times the gradient and the loss, τ = N/D; for a quadratic loss the gradient,
    coordinate j in units of 2^(a_j + e), and twice the loss, in units of 2^(2e); for means a_j = 0.

    Raises ValueError if no record within the rounded bounds can change anything.
    """
    loss, adjacency, ranges = mechanism.loss, mechanism.adjacency, plan.ranges
    # The gradient's units and that of the loss.
    factor, units, unit = 1, [exponent + plan.unit for exponent in plan.exponents], 2 * plan.unit
    if in_fractions.kind_of(loss) == "check":
        factor, units, unit = in_fractions.level(loss).denominator, list(plan.exponents), plan.unit
    elif in_fractions.kind_of(loss) == "distances":
        units = [plan.unit for _ in plan.exponents]
    if mechanism.exponent.scored_by == "loss":
        times = factor if in_fractions.kind_of(loss) == "check" else 2
        return _whole(times * in_fractions.value_sensitivity(loss, ranges, adjacency), unit)
    if mechanism.exponent.given_norm is None:
        return GradientNorm(_wholes(factor, in_fractions.gradient_changes(loss, ranges, adjacency), units))
    norm = mechanism.exponent.given_norm.in_fractions(len(units))
    assert norm is not None
    change = in_fractions.gradient_sensitivity(loss, ranges, adjacency, norm)
    if norm.kind != "maximum":
        least = min(units)
        scales = np.array([2 ** (unit - least) for unit in units], object)
        return GradientNorm(np.array(_whole(factor * change, least), object), scales, norm.kind == "length")
    return GradientNorm(_wholes(factor, [change * weight for weight in norm.weights], units))


def _wholes(factor: int, changes: list[Fraction], units: list[int]) -> np.ndarray:
    return np.array([_whole(factor * change, unit) for change, unit in zip(changes, units, strict=True)], object)


def _whole(change: Fraction, unit: int) -> int:
    """The least whole number of units of 2^unit/WEIGHT_UNITS that is at least this."""
    if change <= 0:
        raise ValueError(
            "on the lattice of these digits one record can change nothing: give bounds of some width, or more "
            "data_digits"
        )
    return math.ceil(change / power_of_two(unit) * WEIGHT_UNITS)
