"""Chooses the lattices from the mechanism and from how many records there may be, all of it public.

What is rounded here, and which way: exponents choose how fine a lattice is, and any would do. The ends of the bounds
are rounded as records are, by a monotone function, so that rounded records lie between rounded ends. The ends of Θ are
rounded inward, in fractions (`DomainLattice.of`). `reach` and `largest_sum` are sums of whole numbers, each at least
what it stands for. What scores are divided by is computed from all this in fractions,
`kngjax.sensitivity.in_fractions`.
"""

import contextlib
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kngjax.core.balls import power_of_two
from kngjax.draws.lattice.units import DomainLattice, exponent_of, on_lattice
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.sensitivity.in_fractions import Ranges, kind_of, level

# Whole numbers below 2^53 are exact in float64; one bit is for doubled middles and for halves, see `QuantileScore`.
_LARGEST = 2**52
_DIGITS = range(20, 7, -1)

# The least and the largest of some whole numbers.
Ends = tuple[int, int]


class LatticePlan(NamedTuple):
    """Lattices of the records and of Θ.

    With x_ij = X_ij·2^(a_j) and θ_j = k_j·2^(e - a_j) the predictors are X'k in units of 2^e, whatever the units of the
    columns.

    **Arguments:** `exponents`: a, one a feature. `unit`: e. `response`: the exponent of y's lattice. `domain`: of θ.
    `features`: the ends of the d features after rounding, in units of 2^(a_j). `responses`: those of y, in units of
    2^response; None where nothing bounds y. `reach`: more than |X'k| of every record and every k, in units of 2^e.
    `largest_sum`: at least every sum that `QuantileScore` needs below 2^52. `digits`: of the records and of θ.
    `of_persons`: whether features are shares of a person's, which are rounded toward 0, and their ends away from it.
    """

    exponents: tuple[int, ...]
    unit: int
    response: int
    domain: DomainLattice
    features: tuple[Ends, ...]
    responses: Ends | None
    reach: int
    largest_sum: int
    digits: tuple[int, int]
    of_persons: bool = False

    @property
    def ranges(self) -> Ranges:
        """Gives the ranges of records and θ, in own units. A hull of the bounds is left out, as records are rounded."""
        features = [
            (lower * power_of_two(exponent), upper * power_of_two(exponent))
            for (lower, upper), exponent in zip(self.features, self.exponents, strict=True)
        ]
        response = None
        if self.responses is not None:
            lower, upper = (end * power_of_two(self.response) for end in self.responses)
            response = lower, upper
        return Ranges(features, response, self.domain.range)


def lattice_plan_of(
    mechanism: AbstractDensityMechanism, dimension: int, num_records: int, data: int | None, theta: int | None
) -> LatticePlan:
    """Plans lattices with so many binary digits: of features and responses relative to bounds, of θ relative to Θ.

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


def _plan(mechanism, dimension, num_records, data, theta) -> LatticePlan:
    loss, bounds = mechanism.loss, mechanism.intake.bounds_of_rows(dimension)
    sides = bounds.sides(dimension)
    sizes = np.max(np.abs(sides), axis=0)
    exponents = tuple(exponent_of(float(size)) - data for size in sizes)
    of_persons = mechanism.bounds.of_persons
    features = tuple(
        (_away if of_persons else _rounded)(ends, exponent)
        for ends, exponent in zip(np.transpose(sides).tolist(), exponents, strict=True)
    )
    widths = [exponent_of(float(width)) - theta for width in np.asarray(mechanism.domain.widths(dimension))]
    if kind_of(loss) == "distances":
        # One unit for every coefficient, no coarser than any lattice.
        unit = min(*widths, *exponents)
        domain = DomainLattice.of(mechanism.domain, [unit] * dimension)
        return LatticePlan(exponents, unit, unit, domain, features, None, 0, domain.largest, (data, theta))
    unit = response = min(width + exponent for width, exponent in zip(widths, exponents, strict=True))
    ends = None if bounds.y_lower is None else (float(bounds.y_lower), float(bounds.y_upper))
    if kind_of(loss) != "check":
        assert ends is not None
        response = exponent_of(max(map(abs, ends))) - data
        unit = min(unit, response)
    domain = DomainLattice.of(mechanism.domain, [unit - exponent for exponent in exponents])
    # |X_ij| ≤ ⌈size/2^(a_j)⌉, which is whole; the 1 makes it less, so that a response beyond `reach` keeps its side.
    reach = sum(
        side * (1 + math.ceil(Fraction(float(size)) / power_of_two(exponent)))
        for side, size, exponent in zip(domain.sides, sizes, exponents, strict=True)
    )
    if kind_of(loss) != "check":
        responses = _rounded(ends, response)
        return LatticePlan(exponents, unit, response, domain, features, responses, reach, domain.largest, (data, theta))
    parts = level(loss).denominator
    if mechanism.exponent.scored_by == "gradient":
        # Records beyond `reach` are moved there, whatever the bounds of y.
        sums, responses = num_records * parts * (2**data + 2), None
    else:
        responses = _rounded(ends, unit)
        sums = num_records * parts * (reach + max(map(abs, responses)) + 1)
    largest = max(sums, 2 * reach)
    return LatticePlan(
        exponents, unit, response, domain, features, responses, reach, largest, (data, theta), of_persons
    )


def _away(ends, exponent: int) -> Ends:
    """The ends beyond which no sum of a person's shares lies, each of which is rounded toward 0.

    Row t has |X_t| ≤ fl(w_t|x_t|)/2^a ≤ w_t·s/2^a·(1 + 2^-53) with |x_t| ≤ s, and Σw_t ≤ W. With E = fl(W·s)/2^a, at
    most 2^50, all together stay below E·(1 + 2^-53)² < E + 1, and every part of them below its share of that:
    `docs/proofs/persons.md`.
    """
    made = [Fraction(float(end)) / power_of_two(exponent) for end in ends]
    lower, upper = (int(math.copysign(math.ceil(abs(end)) + 1, end)) if end else 0 for end in made)
    return lower, upper


def _rounded(ends, exponent: int) -> Ends:
    lower, upper = (int(on_lattice(end, exponent)) for end in ends)
    return lower, upper
