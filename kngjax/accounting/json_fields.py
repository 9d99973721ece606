"""Guarantees as JSON. Imports no JAX."""

import math
from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency
from kngjax.accounting.exact_costs import exactly, outward
from kngjax.accounting.kinds import Kind


def fields_of(guarantee: Any) -> dict[str, Any]:
    """A guarantee's numbers as floats, rounded outward, with what these cannot say as fractions under "exactly"."""
    numbers = {"epsilon": guarantee.exact_epsilon, "delta": guarantee.exact_delta, "rho": guarantee.exact_rho}
    if guarantee.exact_distance:
        numbers["distance"] = guarantee.exact_distance
    floats = {name: None if number is None else outward(number) for name, number in numbers.items()}
    inexact = {
        name: str(number)
        for name, number in numbers.items()
        if number is not None and exactly(outward(number)) != number
    }
    fields: dict[str, Any] = {"kind": str(guarantee.kind), **floats, "adjacency": str(guarantee.adjacency)}
    if guarantee.unit != RECORD:
        fields["unit"] = guarantee.unit
    if inexact and not guarantee.parts:
        fields["exactly"] = inexact
    if guarantee.kind is Kind.GAUSSIAN:
        fields["mu"] = guarantee.mu
    if guarantee.ideal is not None:
        fields["ideal"] = guarantee.ideal.to_dict()
    if guarantee.parts:
        fields["parts"] = [{**part.to_dict(), "count": count} for part, count in guarantee.parts]
    return fields


def rebuild(kind_of: type, fields: dict[str, Any]) -> Any:
    """The guarantee of a record, by the constructor of its kind, which checks that the numbers follow from each other.

    **Arguments:** `kind_of`: the class `Guarantee`. Raises ValueError for a record whose numbers do not fit together.
    """
    if fields.get("kind") not in list(Kind):
        raise ValueError("this is no guarantee: kind, epsilon and rho do not fit together")
    kind, adjacency, unit = Kind(fields["kind"]), Adjacency.parse(fields["adjacency"]), fields.get("unit", RECORD)
    unfit = f"the numbers of a {kind} guarantee do not fit together"
    try:
        guarantee = _build(kind_of, kind, adjacency, fields)
        if not isinstance(unit, str) or ((guarantee.parts or guarantee.ideal) and guarantee.unit != unit):
            raise ValueError("what it is made of protects another unit")
        guarantee = guarantee.of(unit)
    except ValueError as error:
        raise ValueError(f"{unfit}: {error}") from None
    if guarantee.kind is not kind:
        # An earlier release wrote the composition as its sums alone.
        return guarantee
    names = ("epsilon", "delta", "rho", "mu", "distance")
    record = guarantee.to_dict()
    written = (kind, adjacency, *(fields.get(name) for name in names))
    rebuilt_numbers = (guarantee.kind, guarantee.adjacency, *(record.get(name) for name in names))
    if not all(_agree(one, two) for one, two in zip(written, rebuilt_numbers, strict=True)):
        raise ValueError(unfit)
    return guarantee


def _build(kind_of: Any, kind: Kind, adjacency: Adjacency, fields: dict[str, Any]) -> Any:
    numbers = {name: fields.get(name) for name in ("epsilon", "delta", "rho", "distance")}
    exact = {name: None if number is None else exactly(number, name) for name, number in numbers.items()}
    exact |= {name: Fraction(text) for name, text in fields.get("exactly", {}).items()}
    epsilon, delta, rho = exact["epsilon"], exact["delta"], exact["rho"]
    match kind:
        case Kind.PURE if epsilon is not None:
            # Earlier releases wrote ρ as float64 arithmetic gave it.
            return kind_of.pure(epsilon, adjacency)
        case Kind.BOUNDED_RANGE if epsilon is not None:
            return kind_of.bounded_range(epsilon, adjacency)
        case Kind.APPROXIMATE if epsilon is not None and delta is not None:
            return kind_of.approximate(epsilon, delta, adjacency)
        case Kind.ZCDP | Kind.GAUSSIAN if delta is not None and rho is not None:
            return kind_of(kind, adjacency, None, delta, rho).stated(delta, epsilon)
        case Kind.NEAR if delta is not None and exact.get("distance"):
            near = rebuild(kind_of, fields["ideal"]).within(exact["distance"])
            return near if _states(near, fields) else near.stated(delta, epsilon)
    if kind is not Kind.COMPOSED:
        raise ValueError("what its kind needs is missing")
    if not fields.get("parts") and delta is not None:
        return _from_sums(kind_of, adjacency, epsilon, delta, rho)
    counts = [int(record["count"]) for record in fields["parts"]]
    if min(counts) < 1:
        raise ValueError("a composition counts each part at least once")
    parts = [rebuild(kind_of, record) for record in fields["parts"]]
    guarantee = kind_of.counted(zip(parts, counts, strict=True))
    return guarantee if _states(guarantee, fields) else guarantee.stated(delta, epsilon)


def _from_sums(kind_of: Any, adjacency: Adjacency, epsilon: Fraction | None, delta: Fraction, rho: Any) -> Any:
    """The guarantee of a composition that an earlier release wrote as its sums alone: its ε and δ, without a ρ.

    How small ρ may be depends on the parts, which it does not name.
    """
    if epsilon is None or (delta == 0) != (rho is not None) or (rho is not None and rho > epsilon**2 / 2):
        raise ValueError("a composition names its parts")
    return kind_of.approximate(epsilon, delta, adjacency) if delta else kind_of.pure(epsilon, adjacency)


def _states(guarantee: Any, fields: dict[str, Any]) -> bool:
    epsilon = math.inf if fields["epsilon"] is None else float(fields["epsilon"])
    return guarantee.epsilon == epsilon and guarantee.delta == fields["delta"]


def _agree(one: Any, two: Any) -> bool:
    """Whether two entries of records say the same; floats up to the rounding of float64 arithmetic."""
    if isinstance(one, int | float) and isinstance(two, int | float):
        return math.isclose(one, two)
    return one == two
