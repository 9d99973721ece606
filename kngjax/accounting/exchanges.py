"""From one record more or less to one record for another. Imports no JAX."""

from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact import exactly, with_both_orders
from kngjax.accounting.kinds import FACTORS, Kind

_LOST = "(1 + e^epsilon)*delta reaches 1 for an exchanged record: nothing is left of this guarantee under 'replace'"


def exchanged(guarantee: Any) -> Any:
    """A guarantee for 'add_remove' as one for 'replace': see `Guarantee.to_replace`, which argues it."""
    made, replace = type(guarantee), Adjacency.REPLACE
    match guarantee.kind:
        case Kind.COMPOSED:
            whole = made.counted((exchanged(part), count) for part, count in guarantee.parts)
            return _as_stated(guarantee, made.counted(guarantee.parts), whole)
        case Kind.NEAR:
            whole = exchanged(guarantee.ideal).within(guarantee.exact_distance)
            return _as_stated(guarantee, guarantee.ideal.within(guarantee.exact_distance), whole)
        case Kind.ZCDP:
            return made.zcdp(4 * guarantee.exact_rho, replace, None, guarantee.exact_delta)
        case Kind.GAUSSIAN:
            bare = made(Kind.GAUSSIAN, replace, None, guarantee.exact_delta, 4 * guarantee.exact_rho)
            return bare.stated(guarantee.exact_delta)
        case Kind.PROFILE:
            twice = [
                (2 * exactly(high), with_both_orders(exactly(high), exactly(low))) for high, low in guarantee.table
            ]
            kept = [row for place, row in enumerate(twice) if row[1] < min([1, *(low for _, low in twice[:place])])]
            if not kept:
                raise ValueError(_LOST)
            return made.profile(kept, replace, guarantee.exact_delta)
        case kind if kind in FACTORS:
            make = made.pure if kind is Kind.PURE else made.bounded_range
            return make(2 * guarantee.exact_epsilon, replace)
    delta: Fraction = with_both_orders(guarantee.exact_epsilon, guarantee.exact_delta)
    if delta >= 1:
        raise ValueError(_LOST)
    return made.approximate(2 * guarantee.exact_epsilon, delta, replace)


def _as_stated(guarantee: Any, bare: Any, made: Any) -> Any:
    """What was stated at some δ of its own is stated there again."""
    stated = (guarantee.exact_epsilon, guarantee.exact_delta) != (bare.exact_epsilon, bare.exact_delta)
    return made.stated(guarantee.exact_delta) if stated else made
