"""Computes ε at δ and δ at ε of a guarantee, by what its kind rests on: `Guarantee.at` argues it. Imports no JAX."""

import functools
from typing import Any

from kngjax.accounting import conversions, nearness
from kngjax.accounting.composition import Sums
from kngjax.accounting.kinds import Kind


def epsilon_at(guarantee: Any, delta: float) -> float:
    """Computes ε at δ, rounded outward; infinite where nothing finite is known there."""
    match guarantee.kind:
        case Kind.BOUNDED_RANGE:
            return conversions.bounded_range_epsilon(guarantee.epsilon, delta)
        case Kind.ZCDP:
            return conversions.zcdp_epsilon(guarantee.rho, delta)
        case Kind.GAUSSIAN:
            return conversions.gaussian_epsilon(guarantee.mu, delta)
        case Kind.COMPOSED | Kind.NEAR:
            by_sums = Sums.of(guarantee.parts or ((guarantee, 1),)).epsilon_at(delta)
            ideal, distance = guarantee.apart()
            of_ideal = functools.partial(epsilon_at, ideal)
            return min(by_sums, nearness.epsilon_at(of_ideal, distance, delta)) if distance else by_sums
    return conversions.table_epsilon(_rows(guarantee), delta)


def delta_at(guarantee: Any, epsilon: float) -> float:
    """Computes δ at ε, rounded outward; 1 where nothing better is known there."""
    match guarantee.kind:
        case Kind.BOUNDED_RANGE:
            return conversions.bounded_range_delta(guarantee.epsilon, epsilon)
        case Kind.ZCDP:
            return conversions.zcdp_delta(guarantee.rho, epsilon)
        case Kind.GAUSSIAN:
            return conversions.gaussian_delta(guarantee.mu, epsilon)
        case Kind.COMPOSED | Kind.NEAR:
            by_sums = Sums.of(guarantee.parts or ((guarantee, 1),)).delta_at(epsilon)
            ideal, distance = guarantee.apart()
            of_ideal = functools.partial(delta_at, ideal)
            return min(by_sums, nearness.delta_at(of_ideal, distance, epsilon)) if distance else by_sums
    return conversions.table_delta(_rows(guarantee), epsilon)


def _rows(guarantee: Any) -> conversions.Table:
    return guarantee.table or ((guarantee.epsilon, guarantee.delta),)
