"""Guarantees for one record more or less, converted to one record exchanged for another. Imports no JAX."""

from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import exactly, with_both_orders
from kngjax.accounting.kinds import FACTORS, Kind

_LOST = "(1 + e^epsilon)*delta reaches 1 for an exchanged record: nothing is left of this guarantee under 'replace'"


def convert_to_replace(guarantee: Any) -> Any:
    """A guarantee for 'add_remove' as one for 'replace'.

    An exchange is a removal and an addition. Let P_0, P_1, P_2 be the laws before, in between and after. Log-ratios and
    their ranges add up, so pure ε and ε-bounded range become 2ε. P_0(A) ≤ e^ε P_1(A) + δ ≤ e^ε(e^ε P_2(A) + δ) + δ, so
    (ε, δ) and every row of a table become (2ε, (1 + e^ε)δ). ρ-zCDP becomes 4ρ (Bun and Steinke 2016, Proposition 1.9
    for groups of two), and μ-Gaussian DP 2μ (Dong, Roth and Su 2022, Theorem 2.14). The parts of a composition are
    converted one by one. A law near another stays as near, since it is near on every data set. A guarantee that was
    stated at a δ of its own is stated there again.
    """
    kind_of, replace = type(guarantee), Adjacency.REPLACE
    match guarantee.kind:
        case Kind.COMPOSED:
            whole = kind_of.counted((convert_to_replace(part), count) for part, count in guarantee.parts)
            return _restate(guarantee, kind_of.counted(guarantee.parts), whole)
        case Kind.NEAR:
            whole = convert_to_replace(guarantee.ideal).within(guarantee.exact_distance)
            return _restate(guarantee, guarantee.ideal.within(guarantee.exact_distance), whole)
        case Kind.ZCDP:
            return kind_of.zcdp(4 * guarantee.exact_rho, replace, None, guarantee.exact_delta)
        case Kind.GAUSSIAN:
            bare = kind_of(Kind.GAUSSIAN, replace, None, guarantee.exact_delta, 4 * guarantee.exact_rho)
            return bare.stated(guarantee.exact_delta)
        case Kind.PROFILE:
            twice = [
                (2 * exactly(high), with_both_orders(exactly(high), exactly(low))) for high, low in guarantee.table
            ]
            rows = [row for index, row in enumerate(twice) if row[1] < min([1, *(low for _, low in twice[:index])])]
            if not rows:
                raise ValueError(_LOST)
            return kind_of.profile(rows, replace, guarantee.exact_delta)
        case kind if kind in FACTORS:
            make = kind_of.pure if kind is Kind.PURE else kind_of.bounded_range
            return make(2 * guarantee.exact_epsilon, replace)
    delta: Fraction = with_both_orders(guarantee.exact_epsilon, guarantee.exact_delta)
    if delta >= 1:
        raise ValueError(_LOST)
    return kind_of.approximate(2 * guarantee.exact_epsilon, delta, replace)


def _restate(guarantee: Any, bare: Any, converted: Any) -> Any:
    """The converted guarantee, stated at the δ at which the original was stated, where that is a δ of its own."""
    stated = (guarantee.exact_epsilon, guarantee.exact_delta) != (bare.exact_epsilon, bare.exact_delta)
    return converted.stated(guarantee.exact_delta) if stated else converted
