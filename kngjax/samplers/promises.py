"""What a sampler can promise of the law of its draws, and what that makes of the mechanism's ε. Imports no JAX.

The mechanism's law f is ε-DP. A sampler draws from a law μ that is f or is known to be near it, for every data set:

- *exact*: μ = f, hence (ε, 0).
- *mixture*: μ = (1 - a)f + aρ, hence (ε - log(1 - a), a), for
  μ(S) ≤ e^ε f'(S) + a ≤ e^ε μ'(S)/(1 - a) + a. So is a search that gives up with probability at most a and then takes
  its draw from anywhere, and a chain with P(x, ·) ≥ p·f after t steps, a = (1 - p)^t.
- *truncated*: a mixture whose ρ is the base measure, the same for all data. Where the log-density varies by R at most
  over Θ, ρ ≤ e^R f', so μ ≤ (e^ε + a·e^R)f' ≤ (e^ε + a·e^R)/(1 - a)·μ': pure ε' = log[(e^ε + a·e^R)/(1 - a)].
- *sup_norm*: |dμ/df - 1| ≤ ξ < 1, hence pure ε + log((1 + ξ)/(1 - ξ)). After t steps of a chain with P(x, ·) ≥
  p·f from a law with dμ_0/df ≤ W: ξ = (1 - p)^t max(W - 1, 1) (Holden 1998).
- *total_variation*: |μ - f| ≤ η, hence (ε, (1 + e^ε)η).
- *purified*: such a draw, replaced by a uniform one of Θ with probability ω, plus K-norm noise of scale λ: if Θ is a
  K-ball of radius B and η ≤ ω(D/4B)^d, pure ε + 2D/λ (after Lin et al. 2025; our constants).
- *estimated*: η was estimated on these data, by couplings or weights. Evidence for the owner, and no proof: δ is
  unknown. *none*: nothing is known of a finite run: δ is unknown.

All in real arithmetic. How long the draw took depends on the data, whatever the sampler: it must not be published.
"""

import dataclasses
import math
from typing import Any, Literal, get_args

PromiseKind = Literal["exact", "mixture", "truncated", "sup_norm", "total_variation", "purified", "estimated", "none"]

# Bound on the relative rounding error of a logarithm and a sum; results are rounded outward by it.
_ROUNDING = 1e-14


@dataclasses.dataclass(frozen=True)
class Promise:
    """How near the law of a draw is to the mechanism's, for every data set, and why.

    **Arguments:**

    - `kind`: see `kngjax.samplers.promises`.
    - `distance`: a, ξ or η of the kind; the estimate of η for "estimated", D/λ for "purified", 0 for "exact".
    - `log_range`: R of "truncated".
    - `reason`: the derivation, from public numbers alone.

    Raises ValueError for a distance that is none of the kind's.
    """

    kind: PromiseKind
    distance: float = 0.0
    log_range: float = 0.0
    reason: str = ""

    def __post_init__(self):
        if self.kind not in get_args(PromiseKind):
            raise ValueError(f"kind must be one of {', '.join(get_args(PromiseKind))}, got {self.kind!r}")
        largest = math.inf if self.kind == "purified" else 1.0
        if not 0.0 <= self.distance <= largest:
            raise ValueError(f"the distance of a promise must lie between 0 and {largest:g}, got {self.distance}")
        if not self.log_range >= 0.0:
            raise ValueError(f"log_range must be at least 0, got {self.log_range}")

    @classmethod
    def of_minorised_chain(cls, share: float, num_steps: int, reason: str) -> "Promise":
        """The promise of t steps of a chain with P(x, ·) ≥ p·f from anywhere: a mixture with a = (1 - p)^t.

        None where that leaves more than half to chance, since it then says nothing worth stating.

        **Arguments:** `share`: p, public. `num_steps`: t, public. `reason`: why P(x, ·) ≥ p·f.
        """
        left = math.exp(num_steps * math.log1p(-share)) * (1.0 + num_steps * _ROUNDING) if share < 1.0 else 0.0
        if not left <= 0.5:
            return NONE
        return cls("mixture", left, reason=f"{reason}; after {num_steps} steps the share {left:.3g} is left to chance")

    @property
    def is_exact(self) -> bool:
        """Whether the draw follows the mechanism's law itself."""
        return self.kind == "exact"

    @property
    def is_proved(self) -> bool:
        """Whether (ε, δ) of this very draw follow."""
        return self.kind not in ("estimated", "none")

    def cost(self, epsilon: float) -> tuple[float, float]:
        """(ε', δ') of a draw if the mechanism's law is ε-DP, rounded outward; (inf, NaN) where nothing is proved."""
        distance = self.distance
        match self.kind:
            case "exact":
                return epsilon, 0.0
            case "mixture" if distance < 1.0:
                return _outward(epsilon - math.log1p(-distance)), distance
            case "truncated" if distance < 1.0:
                # log(e^ε + a·e^R) without overflow.
                larger, smaller = sorted((epsilon, _log(distance) + self.log_range), reverse=True)
                return _outward(larger + math.log1p(math.exp(smaller - larger)) - math.log1p(-distance)), 0.0
            case "sup_norm" if distance < 1.0:
                return _outward(epsilon + math.log1p(distance) - math.log1p(-distance)), 0.0
            case "total_variation":
                return epsilon, min(1.0, _outward((1.0 + math.exp(min(epsilon, 700.0))) * distance))
            case "purified":
                return _outward(epsilon + 2.0 * distance), 0.0
        return math.inf, math.nan

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return dataclasses.asdict(self)


EXACT = Promise("exact")
NONE = Promise("none")


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _outward(value: float) -> float:
    return math.nextafter(value * (1.0 + _ROUNDING), math.inf)
