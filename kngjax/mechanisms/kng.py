"""The K-norm gradient mechanism (Reimherr and Awan 2019, Theorem 3.1)."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kngjax import sensitivity as room
from kngjax._arrays import Scalar, float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import Bounds
from kngjax.domains import AbstractDomain
from kngjax.losses import AbstractLoss
from kngjax.mechanisms.base import AbstractDensityMechanism, checked_epsilon, required
from kngjax.norms import AbstractNorm


class KNG(AbstractDensityMechanism):
    """Draws θ with density f(θ) ∝ exp(-ε/(2Δ)·‖∇ℓ_n(θ; D)‖_K) ν(θ).

    ‖∇ℓ_n(θ; D)‖_K/Δ changes by at most 1 between neighbouring data sets, so f is the density of an exponential
    mechanism of sensitivity 1: ε-DP and (ε²/8)-zCDP (Reimherr and Awan 2019, Theorem 3.1; the theorem states
    integrability for the density without ε/2, here ν is a probability and the exponent is never positive).

    **Arguments:**

    - `loss`: ℓ of one record.
    - `bounds`: public bounds of one record.
    - `domain`: Θ with its base measure ν. Public.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove". Required.
    - `norm`: ‖·‖_K; None means the weighted l_inf norm whose unit ball is the box of possible gradient changes, for
        which Δ = 1. It is never worse than plain l_inf.

    Raises ValueError where a proof would fail: no domain, no bounds that the loss needs, an infinite sensitivity.
    """

    loss: AbstractLoss
    bounds: Bounds
    domain: AbstractDomain
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None

    def __init__(
        self,
        loss: AbstractLoss | None = None,
        bounds: Bounds | None = None,
        domain: AbstractDomain | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.loss = required("loss", loss)
        self.bounds = required("bounds", bounds)
        self.domain = required("domain", domain)
        self.epsilon = checked_epsilon(required("epsilon", epsilon), allow_large_epsilon)
        self.adjacency = Adjacency.parse(adjacency)
        self.norm = norm

    def __check_init__(self):
        self._check()

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return room.gradient_changes(self.loss, self.bounds, self.domain, self.adjacency, dimension)

    def score_norm(self, dimension: int) -> AbstractNorm:
        return room.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        return room.gradient_sensitivity(self.loss, self._changes(dimension), self.adjacency, self.norm)

    def sensitivity_for(self, dimension: int) -> room.Sensitivity:
        with float64():
            changes, norm = np.asarray(self._changes(dimension)), self.score_norm(dimension)
            value = float(self.sensitivity_value(dimension))
            derivation = room.explain_gradient_sensitivity(
                self.loss, self.bounds, self.domain, self.adjacency, norm, changes, value
            )
        return room.Sensitivity(value, derivation)
