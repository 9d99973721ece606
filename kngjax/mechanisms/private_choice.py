"""A private choice among candidates, by the losses that each record has with each of them."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar
from kngjax.data.bounds import Bounds
from kngjax.losses.distance import GeometricMedianLoss
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.sensitivity import loss_changes
from kngjax.sensitivity.gradients import Sensitivity


class PrivateChoice(AbstractMechanism):
    """Chooses candidate k with P(k) ∝ exp(-c Σ_i l_ki), l_ki in [0, 1] the loss of record i with candidate k.

    This is the exponential mechanism (McSherry and Talwar 2007). c is ε/2 under replace, and ε under add_remove, where
    one record more moves all sums the same way (`kngjax.sensitivity.loss_changes`). It has ε-bounded range. Proof:
    `docs/proofs/kng.md`. The value has a 1 for the chosen candidate and a 0 for every other. With K candidates the
    chosen sum exceeds the least by more than (log K + t)/c with probability at most e^-t.

    Candidates must be fixed before the losses are looked at, or be released at their own cost from other records.

    **Arguments:**

    - `bounds`: of the losses, (0, 1) for each candidate by name, `Bounds(x={"a": (0, 1), "b": (0, 1)},
        intercept=False)`. Losses are clipped to them.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove".

    Everything here is public. Raises ValueError for other bounds.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)

    # It stands in to say that there is no response, and that records are not summed: each is rounded by itself first.
    loss: ClassVar[GeometricMedianLoss] = GeometricMedianLoss()
    proofs: ClassVar[tuple[str, ...]] = ("kng",)

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)

    def __check_init__(self):
        self._check_parts()
        lower, upper = self.bounds.x_lower, self.bounds.x_upper
        if lower is None or np.any(np.asarray(lower) != 0.0) or np.any(np.asarray(upper) != 1.0):
            raise ValueError("losses of candidates lie in [0, 1]: give Bounds(x={'a': (0, 1), ...}, intercept=False)")

    @property
    def guarantee(self) -> Guarantee:
        """ε-bounded-range."""
        return Guarantee.bounded_range(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        return loss_changes.explain_loss_changes(self.adjacency)
