"""The K-norm gradient mechanism (Reimherr and Awan 2019, Theorem 3.1)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax import sensitivity as room
from kngjax._arrays import Scalar, float64
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import Bounds
from kngjax.domains import AbstractDomain
from kngjax.losses import AbstractLoss
from kngjax.mechanisms.base import AbstractDensityMechanism, checked_epsilon, required
from kngjax.norms import AbstractNorm, WeightedLInf


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
        which Δ = 1. It is never worse than plain l_inf. The norm of the least ball for which Δ = 1 is
        `sensitivity_set(loss, bounds, domain, adjacency).hull()`, for up to six coefficients.

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
        return WeightedLInf(self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        if self.norm is not None:
            return room.largest_change(self.norm, self.loss, self.bounds, self.domain, self.adjacency, dimension)
        changes = self._changes(dimension)
        # 1 by the definition of the norm, which needs finite changes.
        return jnp.where(jnp.all(jnp.isfinite(changes) & (changes > 0)), 1.0, jnp.inf)

    def sensitivity_for(self, dimension: int) -> room.Sensitivity:
        with float64():
            changes = np.asarray(self._changes(dimension))
            value = float(self.sensitivity_value(dimension))
            ends = room.score_interval(self.loss, self.bounds, self.domain, dimension)
            score = float(ends[0]), float(ends[1])
            norm = self.score_norm(dimension)
            parts = self.loss, self.bounds, self.domain, self.adjacency
            points = None if self.norm is None else room.sensitivity_points(*parts, dimension)
        num_points = None if points is None else len(points)
        derivation = room.explain_gradient_sensitivity(norm, changes, score, self.adjacency, value, num_points)
        return room.Sensitivity(value, derivation)
