"""How near the law of a drawn value is to its mechanism's, as certificates state it. Imports no JAX.

The mechanism's law f is ε-DP, and the value is drawn from a law μ:

- *exact*: μ = f in real arithmetic, hence (ε, 0).
- *none*: μ is that of a Markov chain after finitely many sweeps, of which nothing is known: δ is unknown.
- *mixture*: μ = (1 - a)f + aρ, hence (ε - log(1 - a), a), for
  μ(S) ≤ e^ε f'(S) + a ≤ e^ε μ'(S)/(1 - a) + a. No release says it any more; certificates of older ones do, of chains
  with P(x, ·) ≥ p·f after t steps, a = (1 - p)^t.

How long the draw took depends on the data, whatever the sampler: it must not be published.
"""

import dataclasses
import math
from typing import Literal, get_args

PromiseKind = Literal["exact", "mixture", "none"]

# Bound on the relative rounding error of a logarithm and a sum; results are rounded outward by it.
_ROUNDING = 1e-14


@dataclasses.dataclass(frozen=True)
class Promise:
    """How near the law of a draw is to the mechanism's, for every data set, and why.

    **Arguments:**

    - `kind`: "exact", "none", or "mixture" in certificates of older releases.
    - `distance`: a of "mixture", else 0.
    - `log_range`: 0, which certificates keep.
    - `reason`: the derivation of "mixture", from public numbers alone.

    Raises ValueError for another kind, and for a distance that is no probability.
    """

    kind: PromiseKind
    distance: float = 0.0
    log_range: float = 0.0
    reason: str = ""

    def __post_init__(self):
        if self.kind not in get_args(PromiseKind):
            raise ValueError(f"kind must be one of {', '.join(get_args(PromiseKind))}, got {self.kind!r}")
        if not 0.0 <= self.distance <= 1.0:
            raise ValueError(f"the distance of a promise must lie between 0 and 1, got {self.distance}")

    @property
    def is_exact(self) -> bool:
        """Whether the draw follows the mechanism's law itself."""
        return self.kind == "exact"

    def cost(self, epsilon: float) -> tuple[float, float]:
        """(ε', δ') of a draw if the mechanism's law is ε-DP, rounded outward; (inf, NaN) where nothing is proved."""
        if self.is_exact:
            return epsilon, 0.0
        if self.kind == "mixture" and self.distance < 1.0:
            larger = (epsilon - math.log1p(-self.distance)) * (1.0 + _ROUNDING)
            return math.nextafter(larger, math.inf), self.distance
        return math.inf, math.nan


EXACT = Promise("exact")
NONE = Promise("none")
