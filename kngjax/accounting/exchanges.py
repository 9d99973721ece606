"""Guarantees of one record, converted to several: an exchange is one removed and one added. Imports no JAX."""

from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import with_both_orders
from kngjax.accounting.kinds import FACTORS, Kind

_LOST = "(1 + e^epsilon)*delta reaches 1 for an exchanged record: nothing is left of this guarantee under 'replace'"
_LOST_OF_SEVERAL = "delta reaches 1 where that many records differ: nothing is left of this guarantee"


def convert_to_replace(guarantee: Any) -> Any:
    """A guarantee for 'add_remove' as one for 'replace': two steps, from a data set to that in between, and on."""
    return _of_steps(guarantee, 2, Adjacency.REPLACE, _LOST)


def of_records(guarantee: Any, number: int) -> Any:
    """Bounds what a release tells of data sets that k records make different, by its guarantee of one record.

    With P_0, ..., P_k the laws on the way: log-ratios add up, and so do their ranges, hence kε for pure ε and ε-bounded
    range. P_0(A) ≤ e^ε P_1(A) + δ ≤ e^ε(e^ε P_2(A) + δ) + δ and so on, hence (kε, (1 + e^ε + ... + e^{(k-1)ε})δ) for
    (ε, δ). k²ρ for ρ-zCDP (Bun and Steinke 2016, Proposition 1.9), kμ for μ-Gaussian DP
    (Dong, Roth and Su 2022, Theorem 2.14). Of a composition each part by itself; a law near another stays as near, as
    it does on every data set. What was stated at a δ of its own is stated there again.

    **Arguments:** `guarantee`: none of `Guarantee.parallel` with a distance, which is that of two groups alone, and k
    records may lie in more. `number`: k, at least 1. Raises ValueError where that δ reaches 1.
    """
    several = _of_steps(guarantee, number, guarantee.adjacency, _LOST_OF_SEVERAL) if number > 1 else guarantee
    return several.of(guarantee.unit)


def _of_steps(guarantee: Any, number: int, adjacency: Adjacency, lost: str) -> Any:
    kind_of = type(guarantee)
    match guarantee.kind:
        case Kind.COMPOSED:
            whole = kind_of.counted(
                (_of_steps(part, number, adjacency, lost), count) for part, count in guarantee.parts
            )
            return _restate(guarantee, kind_of.counted(guarantee.parts), whole)
        case Kind.NEAR:
            whole = _of_steps(guarantee.ideal, number, adjacency, lost).within(guarantee.exact_distance)
            return _restate(guarantee, guarantee.ideal.within(guarantee.exact_distance), whole)
        case Kind.ZCDP | Kind.GAUSSIAN:
            bare = kind_of(guarantee.kind, adjacency, None, guarantee.exact_delta, number**2 * guarantee.exact_rho)
            return bare.stated(guarantee.exact_delta)
        case kind if kind in FACTORS:
            make = kind_of.pure if kind is Kind.PURE else kind_of.bounded_range
            return make(number * guarantee.exact_epsilon, adjacency)
    delta = _with_orders(guarantee.exact_epsilon, guarantee.exact_delta, number)
    if delta >= 1:
        raise ValueError(lost)
    return kind_of.approximate(number * guarantee.exact_epsilon, delta, adjacency)


def _with_orders(epsilon: Fraction, delta: Fraction, number: int) -> Fraction:
    """S_k = (1 + e^ε + ... + e^{(k-1)ε})δ, rounded outward; at least 1 where it reaches that.

    It is found in log k steps: S_{2m} = (1 + e^{mε})S_m, and S_k = S_{k-1} + e^{(k-1)ε}δ for odd k.
    """
    if number == 1 or delta == 0 or delta >= 1:
        return delta
    half = _with_orders(epsilon, delta, number // 2)
    total = with_both_orders(number // 2 * epsilon, half)
    return total if number % 2 == 0 else total + with_both_orders((number - 1) * epsilon, delta) - delta


def _restate(guarantee: Any, bare: Any, converted: Any) -> Any:
    """The converted guarantee, stated at the δ at which the original was stated, where that is a δ of its own."""
    stated = (guarantee.exact_epsilon, guarantee.exact_delta) != (bare.exact_epsilon, bare.exact_delta)
    return converted.stated(guarantee.exact_delta) if stated else converted
