"""Guarantees as JSON. Imports no JAX."""

import math
from typing import Any

from kngjax.accounting.exact import exactly, outward
from kngjax.accounting.kinds import Kind


def fields_of(guarantee: Any) -> dict[str, Any]:
    """A guarantee's numbers as floats, rounded outward, with what these cannot say as fractions under "exactly"."""
    numbers = {"epsilon": guarantee.exact_epsilon, "delta": guarantee.exact_delta, "rho": guarantee.exact_rho}
    floats = {name: None if number is None else outward(number) for name, number in numbers.items()}
    inexact = {
        name: str(number)
        for name, number in numbers.items()
        if number is not None and exactly(outward(number)) != number
    }
    fields: dict[str, Any] = {"kind": str(guarantee.kind), **floats, "adjacency": str(guarantee.adjacency)}
    if inexact and not guarantee.parts:
        fields["exactly"] = inexact
    if guarantee.kind is Kind.GAUSSIAN:
        fields["mu"] = guarantee.mu
    if guarantee.table:
        fields["table"] = [list(row) for row in guarantee.table]
    if guarantee.parts:
        fields["parts"] = [{**part.to_dict(), "count": count} for part, count in guarantee.parts]
    return fields


def alike(one: Any, two: Any) -> bool:
    """Whether two entries of records say the same; floats up to the rounding of float64 arithmetic."""
    if isinstance(one, int | float) and isinstance(two, int | float):
        return math.isclose(one, two)
    return one == two
