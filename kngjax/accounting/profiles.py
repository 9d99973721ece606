"""Computes ε at δ and δ at ε of a guarantee, by what its kind rests on: `Guarantee.at` argues it. Imports no JAX."""

import functools
from typing import Any

from kngjax.accounting import conversions, nearness
from kngjax.accounting.composition import Sums
from kngjax.accounting.kinds import Kind


def at(guarantee: Any, asked: conversions.Asked, given: float) -> float:
    """Computes ε at δ, or δ at ε, rounded outward; infinite, or 1, where nothing better is known there."""
    match guarantee.kind:
        case Kind.BOUNDED_RANGE:
            return conversions.OF_BOUNDED_RANGE[asked](guarantee.epsilon, given)
        case Kind.ZCDP:
            return conversions.OF_ZCDP[asked](guarantee.rho, given)
        case Kind.GAUSSIAN:
            return conversions.OF_GAUSSIAN[asked](guarantee.mu, given)
        case Kind.COMPOSED | Kind.NEAR:
            by_sums = Sums.of(guarantee.parts or ((guarantee, 1),)).at(asked, given)
            ideal, distance = guarantee.apart()
            of_ideal = functools.partial(at, ideal, asked)
            return min(by_sums, nearness.CONVERSIONS[asked](of_ideal, distance, given)) if distance else by_sums
    return conversions.OF_STATED[asked]((guarantee.epsilon, guarantee.delta), given)
