"""The logistic loss of binary regression."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.losses.base import AbstractPredictorLoss, Interval, Number


class LogisticLoss(AbstractPredictorLoss):
    """ρ(η, y) = log(1 + e^η) - yη for y ∈ {0, 1}; score σ(η) - y.

    Score interval: σ ∈ (0, 1) and y ∈ {0, 1}, so s ∈ [-1, 1], whatever θ: only x needs bounds.
    """

    value_needs_response_bounds: ClassVar[bool] = False

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jax.nn.softplus(predictor) - response * predictor

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jax.nn.sigmoid(predictor) - response

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        probability = jax.nn.sigmoid(predictor)
        return probability * (1.0 - probability)

    def curvature_bound(self, predictor: Interval) -> Number:
        """1/4: σ(1 - σ) is largest at σ = ½."""
        return 0.25

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        return jnp.asarray(-1.0), jnp.asarray(1.0)

    def value_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        """ρ is log(1 + e^-η) for y = 1 and log(1 + e^η) for y = 0: monotone in η, so extreme at the ends."""
        signed = jnp.stack([jnp.asarray(end) for end in (*predictor, -predictor[0], -predictor[1])])
        return jax.nn.softplus(jnp.min(signed)), jax.nn.softplus(jnp.max(signed))

    def check_response(self, response: np.ndarray) -> None:
        if not np.all((response == 0) | (response == 1)):
            raise ValueError("the logistic loss needs responses 0 and 1: recode y by a public rule before the call")
