"""Which lattices: a function of the mechanism and of how many records there may be, all of it public."""

import contextlib
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kngjax import sensitivity as room
from kngjax.accounting.exact import exactly
from kngjax.bounds import Bounds
from kngjax.lattice.units import DomainLattice, exponent_of, on_lattice, rounded_bounds
from kngjax.losses import QuantileLoss, SquaredDistanceLoss
from kngjax.mechanisms import KNG, AbstractDensityMechanism

# Whole numbers below 2^53 are exact in float64; one bit is for the doubled middles of boxes.
_LARGEST = 2**52
_DIGITS = range(20, 7, -1)


class Plan(NamedTuple):
    """Lattices of the records and of Θ.

    With x_ij = X_ij·2^(a_j) and θ_j = k_j·2^(e - a_j) the predictors are X'k in units of 2^e, whatever the units of the
    columns.

    **Arguments:** `places`: a, one a feature. `unit`: e. `response`: the exponent of the lattice of y. `domain`: of θ.
    `bounds`: of the records after rounding. `reach`: at least |X'k| of every record and every k, in units of 2^e.
    `largest_sum`: at least every sum over the records that rides in float64. `digits`: of the records and of θ.
    """

    places: tuple[int, ...]
    unit: int
    response: int
    domain: DomainLattice
    bounds: Bounds
    reach: int
    largest_sum: int
    digits: tuple[int, int]


def plan_for(
    mechanism: AbstractDensityMechanism, dimension: int, num_records: int, data: int | None, theta: int | None
) -> Plan:
    """The plan with so many binary digits, of features and responses relative to their bounds, and of θ relative to Θ.

    None takes 20 and two more for θ, or as many as sums of so many records leave. Raises ValueError if the sums do not
    stay below 2^52.
    """
    for most in _DIGITS:
        # Beyond 2^62 units there is no plan.
        with contextlib.suppress(OverflowError):
            plan = _plan(mechanism, dimension, num_records, data or most, theta or most + 2)
            if plan.largest_sum < _LARGEST:
                return plan
        if data and theta:
            break
    raise ValueError(
        f"exact sums of {num_records} records are too large for 52 binary digits: take fewer data_digits and "
        "theta_digits, a tau of fewer decimals, features and domain of less different scales, or under add_remove "
        "a smaller max_records"
    )


def _plan(mechanism, dimension, num_records, data, theta) -> Plan:
    loss, bounds = mechanism.loss, mechanism.bounds
    sizes = np.max(np.abs([np.asarray(side, np.float64) for side in bounds.features(dimension)]), axis=0)
    places = tuple(exponent_of(float(size)) - data for size in sizes)
    widths = [exponent_of(float(width)) - theta for width in np.asarray(mechanism.domain.widths(dimension))]
    if isinstance(loss, SquaredDistanceLoss):
        # One unit for every coefficient, no coarser than any lattice.
        unit = min(*widths, *places)
        domain = DomainLattice.of(mechanism.domain, [unit] * dimension)
        return Plan(places, unit, unit, domain, rounded_bounds(bounds, places, None), 0, domain.largest, (data, theta))
    unit = response = min(width + place for width, place in zip(widths, places, strict=True))
    ends = room.response_interval(bounds)
    if not isinstance(loss, QuantileLoss):
        response = exponent_of(max(abs(float(end)) for end in ends)) - data
        unit = min(unit, response)
    domain = DomainLattice.of(mechanism.domain, [unit - place for place in places])
    rounded = rounded_bounds(bounds, places, response)
    reach = int(
        sum(
            side * (1 + math.ceil(math.ldexp(float(size), -place)))
            for side, size, place in zip(domain.sides, sizes, places, strict=True)
        )
    )
    if not isinstance(loss, QuantileLoss):
        return Plan(places, unit, response, domain, rounded, reach, domain.largest, (data, theta))
    parts = denominator(loss)
    sums = num_records * parts * (2**data + 1)
    if not isinstance(mechanism, KNG):
        sums = num_records * parts * (reach + max(abs(int(on_lattice(end, unit))) for end in ends) + 1)
    return Plan(places, unit, response, domain, rounded, reach, max(sums, 2 * reach), (data, theta))


def denominator(loss: QuantileLoss) -> int:
    """D of τ = N/D, the decimal number that τ prints as."""
    return level(loss).denominator


def level(loss: QuantileLoss) -> Fraction:
    """τ = N/D, the decimal number that it prints as."""
    return exactly(float(loss.tau), "tau")
