"""Guarantees in words. Imports no JAX."""

import math
from typing import Any

from kngjax.accounting.kinds import Kind

# δ at which a sentence says what follows, where the guarantee states none.
_EXAMPLE = 1e-6


def sentence(guarantee: Any) -> str:
    """A guarantee in one sentence, with its numbers; what its adjacency means is at the end."""
    return f"{_law(guarantee)}, for any {guarantee.adjacency.pairs}"


def _law(guarantee: Any) -> str:
    epsilon, delta, rho = guarantee.epsilon, guarantee.delta, guarantee.rho
    match guarantee.kind:
        case Kind.PURE:
            return f"pure {epsilon:g}-differential privacy, and {rho:.6g}-zCDP (rho = epsilon^2/2)"
        case Kind.BOUNDED_RANGE:
            return f"pure {epsilon:g}-differential privacy, and {rho:.6g}-zCDP (bounded range, rho = epsilon^2/8)"
        case Kind.ZCDP:
            return f"{rho:.6g}-zCDP, hence {_stated(guarantee)} (optimal Renyi conversion)"
        case Kind.GAUSSIAN:
            return f"{guarantee.mu:.6g}-Gaussian differential privacy, hence {rho:.6g}-zCDP and {_stated(guarantee)}"
        case Kind.PROFILE:
            first, last = guarantee.table[0], guarantee.table[-1]
            ends = f"({first[0]:g}, {first[1]:g}) to ({last[0]:g}, {last[1]:g})"
            return f"a privacy profile with {len(guarantee.table)} rows from {ends}, hence {_stated(guarantee)}"
        case Kind.COMPOSED:
            return _composition(guarantee)
    return f"({epsilon:g}, {delta:g})-differential privacy"


def _stated(guarantee: Any) -> str:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if not math.isfinite(epsilon):
        delta = max(2.0 * delta, _EXAMPLE)
        epsilon = guarantee.at(delta=delta)
    if not math.isfinite(epsilon):
        return f"no finite epsilon at delta = {delta:g}"
    return f"({epsilon:.6g}, {delta:g})-differential privacy"


def _composition(guarantee: Any) -> str:
    count = sum(number for _, number in guarantee.parts)
    what = f"sums over the {count} parts" if count else "sums over the parts"
    rho = "" if guarantee.rho is None else f"{guarantee.rho:.6g}-zCDP"
    if guarantee.delta == 0.0 and math.isfinite(guarantee.epsilon):
        law = f"pure {guarantee.epsilon:g}-differential privacy, and {rho} ({what})"
        converted = guarantee.at(delta=_EXAMPLE)
        better = converted < guarantee.epsilon * (1.0 - 1e-3)
        return law + (f", hence ({converted:.6g}, {_EXAMPLE:g})-differential privacy" if better else "")
    return ", and ".join(part for part in (rho, f"{_stated(guarantee)} ({what})") if part)
