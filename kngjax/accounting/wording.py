"""Guarantees in words. Imports no JAX."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from kngjax.accounting.kinds import Kind

AMOUNTS = ("epsilon", "delta", "rho (zCDP)")
# δ at which a sentence says what follows, where the guarantee states none.
_EXAMPLE = 1e-6


def _show(cost: float) -> str:
    """At most six digits of a cost, of which none is lost: rounded upwards."""
    return f"{float(Decimal(repr(cost)).normalize(Context(6, ROUND_CEILING))):.6g}" if math.isfinite(cost) else "inf"


def sentence(guarantee: Any) -> str:
    """A guarantee in one sentence, with its numbers; what its adjacency means is at the end."""
    return f"{_describe(guarantee)}, for any {guarantee.adjacency.pairs(guarantee.unit)}"


def figures(guarantee: Any) -> list[tuple[str, str]]:
    """Names the numbers of a guarantee, each rounded upwards, and whom it protects; None says that none is proved."""
    if guarantee is None:
        return [("guarantee", "nothing is proved of a release")]
    budget = (guarantee.epsilon, guarantee.delta) if math.isfinite(guarantee.epsilon) else (None, None)
    numbers = zip((*AMOUNTS, "mu (Gaussian)"), (*budget, guarantee.rho, guarantee.mu), strict=True)
    known = [(name, _show(number)) for name, number in numbers if number is not None]
    return [*known, ("adjacency", guarantee.adjacency.value), ("unit", guarantee.unit)]


def amounts(guarantee: Any) -> tuple[str, ...]:
    """Writes what `AMOUNTS` names, each rounded upwards; dashes where nothing is proved, or there is none."""
    known = dict(figures(guarantee))
    return tuple(known.get(name, "-") for name in AMOUNTS)


def _describe(guarantee: Any) -> str:
    epsilon, delta, rho = guarantee.epsilon, guarantee.delta, guarantee.rho
    match guarantee.kind:
        case Kind.PURE:
            return f"pure {_show(epsilon)}-differential privacy, and {_show(rho)}-zCDP (rho = epsilon^2/2)"
        case Kind.BOUNDED_RANGE:
            return (
                f"pure {_show(epsilon)}-differential privacy, and {_show(rho)}-zCDP (bounded range, rho = epsilon^2/8)"
            )
        case Kind.ZCDP:
            return f"{_show(rho)}-zCDP, hence {_state(guarantee)} (optimal Renyi conversion)"
        case Kind.GAUSSIAN:
            return (
                f"{_show(guarantee.mu)}-Gaussian differential privacy, hence {_show(rho)}-zCDP and {_state(guarantee)}"
            )
        case Kind.COMPOSED:
            return _describe_composition(guarantee)
        case Kind.NEAR:
            ideal = _describe(guarantee.ideal)
            return f"{_state(guarantee)}, as it lies within {_show(guarantee.distance)} in total variation of {ideal}"
    return f"({_show(epsilon)}, {_show(delta)})-differential privacy"


def _state(guarantee: Any) -> str:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if not math.isfinite(epsilon) and 2.0 * delta < 1.0:
        delta = max(2.0 * delta, _EXAMPLE)
        epsilon = guarantee.at(delta=delta)
    if not math.isfinite(epsilon):
        return f"no finite epsilon at delta = {delta:g}"
    return f"({_show(epsilon)}, {_show(delta)})-differential privacy"


def _describe_composition(guarantee: Any) -> str:
    count = sum(number for _, number in guarantee.parts)
    what = f"sums over the {count} parts" if count else "sums over the parts"
    rho = "" if guarantee.rho is None else f"{_show(guarantee.rho)}-zCDP"
    if guarantee.delta == 0.0 and math.isfinite(guarantee.epsilon):
        law = f"pure {_show(guarantee.epsilon)}-differential privacy, and {rho} ({what})"
        converted = guarantee.at(delta=_EXAMPLE)
        better = converted < guarantee.epsilon * (1.0 - 1e-3)
        return law + (f", hence ({_show(converted)}, {_EXAMPLE:g})-differential privacy" if better else "")
    if guarantee.distance:
        what += f", which lie within {_show(guarantee.distance)} in total variation of laws of which more is known"
    return ", and ".join(part for part in (rho, f"{_state(guarantee)} ({what})") if part)
