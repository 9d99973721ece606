"""Guarantees as JSON. Imports no JAX."""

import math
from fractions import Fraction
from typing import Any

from kngjax.accounting.adjacency import Adjacency
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


def rebuilt(kind_of: type, fields: dict[str, Any]) -> Any:
    """The guarantee of a record, by the constructor of its kind, which checks that the numbers follow from each other.

    **Arguments:** `kind_of`: the class `Guarantee`. Raises ValueError for a record whose numbers do not fit together.
    """
    if fields.get("kind") not in list(Kind):
        raise ValueError("this is no guarantee: kind, epsilon and rho do not fit together")
    kind, adjacency = Kind(fields["kind"]), Adjacency.parse(fields["adjacency"])
    unfit = f"the numbers of a {kind} guarantee do not fit together"
    try:
        made = _made(kind_of, kind, adjacency, fields)
    except ValueError as error:
        raise ValueError(f"{unfit}: {error}") from None
    given = (kind, adjacency, *(fields[name] for name in ("epsilon", "delta", "rho")), fields.get("mu"))
    mu = made.mu if kind is Kind.GAUSSIAN else None
    told = (made.kind, made.adjacency, *(made.to_dict()[name] for name in ("epsilon", "delta", "rho")), mu)
    if not all(_alike(one, two) for one, two in zip(given, told, strict=True)):
        raise ValueError(unfit)
    return made


def _made(kind_of: Any, kind: Kind, adjacency: Adjacency, fields: dict[str, Any]) -> Any:
    numbers = {name: fields[name] for name in ("epsilon", "delta", "rho")}
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
        case Kind.ZCDP | Kind.GAUSSIAN if delta is not None:
            return kind_of(kind, adjacency, None, delta, rho).stated(delta, epsilon)
        case Kind.PROFILE if delta is not None:
            return kind_of.profile(((low, high) for low, high in fields.get("table", ())), adjacency, delta)
    if not fields.get("parts"):
        # Earlier releases wrote a composition's sums alone.
        return kind_of(kind, adjacency, epsilon, delta, rho)
    counts = [int(record["count"]) for record in fields["parts"]]
    if min(counts) < 1:
        raise ValueError("a composition counts each part at least once")
    parts = [rebuilt(kind_of, record) for record in fields["parts"]]
    made = kind_of.counted(zip(parts, counts, strict=True))
    stated = math.inf if fields["epsilon"] is None else float(fields["epsilon"])
    if _alike(made.epsilon, stated) and _alike(made.delta, fields["delta"]):
        return made
    return made.stated(delta, epsilon)


def _alike(one: Any, two: Any) -> bool:
    """Whether two entries of records say the same; floats up to the rounding of float64 arithmetic."""
    if isinstance(one, int | float) and isinstance(two, int | float):
        return math.isclose(one, two)
    return one == two
