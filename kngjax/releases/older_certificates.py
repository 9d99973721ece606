"""Reads what certificates of older releases say in the words of today's, and never says more of them. No JAX.

Older names of assurances, and a *mixture*: releases by chains with P(x, ·) ≥ p·f, of which t steps follow a law
μ = (1 - a)f + aρ with a = (1 - p)^t. Where f is ε-DP that costs (ε - log(1 - a), a), for
μ(S) ≤ e^ε f'(S) + a ≤ e^ε μ'(S)/(1 - a) + a. No chain is released so any more, and the assurance of these is "none".
"""

import dataclasses
import math
from typing import Any

from kngjax.draws.base import IN_REALS, NONE, PROVED

# The nearest of today's that says no more.
_ASSURANCES = {
    **{name: name for name in (PROVED, IN_REALS, NONE)},
    "exact_with_rounding": PROVED,
    "exact_in_reals": IN_REALS,
    "mixture": NONE,
}
# Bound on the relative rounding error of a logarithm and a sum; results are rounded outward by it.
_ROUNDING = 1e-14


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Bounds how far the law of an older draw by a chain is from the mechanism's, for every data set.

    **Arguments:** `distance`: a. `reason`: its derivation, from public numbers alone. Raises ValueError for a distance
    that is no probability.
    """

    distance: float
    reason: str = ""

    def __post_init__(self):
        if not 0.0 <= self.distance <= 1.0:
            raise ValueError(f"the distance of a mixture must lie between 0 and 1, got {self.distance}")

    def cost(self, epsilon: float) -> tuple[float, float]:
        """Returns (ε', δ') of a draw if the mechanism's law is ε-DP, rounded outward; infinite ε' without proof."""
        if self.distance == 1.0:
            return math.inf, 1.0
        larger = (epsilon - math.log1p(-self.distance)) * (1.0 + _ROUNDING)
        return math.nextafter(larger, math.inf), self.distance


def renewed(fields: dict[str, Any]) -> dict[str, Any]:
    """Translates the fields of a certificate, as a dictionary, into those that certificates have today.

    Raises ValueError for an assurance that no certificate has had.
    """
    fields = dict(fields)
    promise, assurance = fields.pop("promise", {"kind": "exact"}), _today(fields["assurance"])
    fields["assurance"] = assurance if promise["kind"] == "exact" else NONE
    if promise["kind"] == "mixture":
        fields["mixture"] = {"distance": promise["distance"], "reason": promise["reason"]}
    # Of quantile curves each part has its own.
    return fields | {"sampler": _renamed(fields["sampler"])}


def _renamed(settings: Any) -> Any:
    """Rewrites a sampler's settings, and those of its parts, with today's names of assurances."""
    if isinstance(settings, list):
        return [_renamed(part) for part in settings]
    if not isinstance(settings, dict):
        return settings
    return {name: _today(one) if name == "assurance" else _renamed(one) for name, one in settings.items()}


def _today(name: Any) -> str:
    if name not in _ASSURANCES:
        raise ValueError(f"the assurance of a certificate is one of {', '.join(_ASSURANCES)}, and not {name!r}")
    return _ASSURANCES[name]
