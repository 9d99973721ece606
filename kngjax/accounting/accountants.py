"""Bounds the cost of releases whose numbers were all fixed beforehand, by several accountants. Imports no JAX.

`Guarantee.composed` adds up ε, δ and ρ, and needs no such plan.
"""

import math

from kngjax.accounting.conversions import zcdp_epsilon, zcdp_epsilon_textbook
from kngjax.accounting.guarantees import Guarantee, Kind

_SLACK = 1e-12


def advanced_epsilon(guarantee: Guarantee, delta: float) -> float:
    """ε at δ by advanced composition: min(Σε_k, Σ ε_k tanh(ε_k/2) + √(2 log(1/δ')Σε_k²)), rounded outward.

    With 1 - δ = (1-δ')Π(1-δ_k). An (ε, δ)-DP release reveals everything with probability δ and else a biased coin
    of log-odds ±ε: its privacy loss has a mean of at most ε tanh(ε/2) and a range of 2ε, and the bound is the
    inequality of Azuma and Hoeffding (Kairouz, Oh and Viswanath 2015, Theorem 3.5; Dwork, Rothblum and Vadhan 2010 have
    ε(e^ε - 1)).

    **Arguments:** `guarantee`: one or a composition, of finite (ε, δ) each. `delta`: in (0, 1). Infinite where δ is not
    more than what the δ_k use up and not what `guarantee.delta` is.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    parts = [(part.epsilon, part.delta, count) for part, count in guarantee.parts or ((guarantee, 1),)]
    if not all(math.isfinite(epsilon) for epsilon, _, _ in parts):
        return math.inf
    simple = guarantee.epsilon if delta >= guarantee.delta else math.inf
    log_kept = sum(count * math.log1p(-low) for _, low, count in parts)
    slack = -math.expm1(math.log1p(-delta) - log_kept) * (1.0 - _SLACK)
    if slack <= 0.0:
        return simple
    mean = sum(count * epsilon * math.tanh(0.5 * epsilon) for epsilon, _, count in parts)
    spread = math.sqrt(-2.0 * math.log(slack) * sum(count * epsilon**2 for epsilon, _, count in parts))
    return min(simple, (mean + spread) * (1.0 + _SLACK))


def compare(guarantee: Guarantee, delta: float, pld: bool = False) -> dict[str, float]:
    """ε at δ of a composition under each accountant, in nats; those that cannot bound it are infinite.

    `at`: `guarantee.at(delta=delta)`, the best of the sums of all that is known. `basic`: Σε. `advanced`: see
    `advanced_epsilon`. `zcdp_of_pure`, `zcdp_of_pure_textbook`: Σρ with ρ = ε²/2 if all are pure and no more is used.
    `pld_of_pure`, `pld`: by dp-accounting, without and with what bounded range adds to pure ε. `zcdp`,
    `zcdp_textbook`: Σρ with what is known of each, ρ = ε²/8 for bounded range. The textbook converts ρ to
    ρ + 2√(ρ log(1/δ)), the others optimally.

    **Arguments:** `delta`: in (0, 1). `pld`: whether to run dp-accounting, an extra; ImportError without it.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    parts = guarantee.parts or ((guarantee, 1),)
    generic = Guarantee.composed([part for one, count in parts for part in [_drop_bounded_range(one)] * count])
    is_pure = all(one.kind in (Kind.PURE, Kind.BOUNDED_RANGE) for one, _ in parts)
    epsilons = {
        "at": guarantee.at(delta=delta),
        "basic": guarantee.epsilon if delta >= guarantee.delta else math.inf,
        "advanced": advanced_epsilon(guarantee, delta),
    }
    for name, which in (("zcdp_of_pure", generic), ("zcdp", guarantee)):
        rho = math.inf if which.rho is None or (which is generic and not is_pure) else which.rho
        epsilons[f"{name}_textbook"] = zcdp_epsilon_textbook(rho, delta) if rho < math.inf else math.inf
        epsilons[name] = zcdp_epsilon(rho, delta) if rho < math.inf else math.inf
    if pld:
        epsilons["pld_of_pure"] = float(generic.to_pld().get_epsilon_for_delta(delta))
        epsilons["pld"] = float(guarantee.to_pld().get_epsilon_for_delta(delta))
    return epsilons


def _drop_bounded_range(guarantee: Guarantee) -> Guarantee:
    """The guarantee without what bounded range adds to pure ε-DP."""
    if guarantee.kind is not Kind.BOUNDED_RANGE or guarantee.exact_epsilon is None:
        return guarantee
    return Guarantee.pure(guarantee.exact_epsilon, guarantee.adjacency).of(guarantee.unit)
