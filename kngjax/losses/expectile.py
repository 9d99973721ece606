"""The asymmetric least squares of expectile regression."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, parameter
from kngjax.losses.base import AbstractResidualLoss, Interval, Number
from kngjax.losses.public_numbers import check_level
from kngjax.losses.verified_scores import ExpectileScore, number


class ExpectileLoss(AbstractResidualLoss):
    """ρ(r) = |τ - 1{r < 0}|·r² with r = y - x'θ (Newey and Powell 1987); at τ = ½ it is the squared loss ½r².

    Its slope is 2wr, with w = τ for r ≥ 0 and w = 1-τ for r < 0. The slope is continuous, since it is 0 at r = 0, and
    increasing, since w > 0. So ρ is strictly convex.

    Score interval: s = -2wr decreases in r, and r = y - η lies in [y_l - η_u, y_u - η_l], so s lies between its values
    at these ends. It needs bounds on x, y and Θ.

    Curvature: ρ'' is 2τ for r > 0 and 2(1-τ) for r < 0, at most 2·max(τ, 1-τ). It jumps at r = 0, so the loss is not
    `is_smooth`. Its gradient is Lipschitz, which is enough for objective perturbation.

    **Arguments:** `tau`: the expectile's level, strictly between 0 and 1. Public.
    """

    tau: Scalar = eqx.field(converter=parameter)

    needs_response_bounds: ClassVar[bool] = True

    def __check_init__(self):
        if np.ndim(self.tau):
            raise ValueError(f"tau must lie strictly between 0 and 1, and be one number, got {self.tau}")
        check_level(self.tau)

    def verified_score(self) -> ExpectileScore:
        return ExpectileScore(number(self.tau))

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        return 0.5 * jnp.asarray(residual) * self.residual_slope(residual)

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        return self.record_curvature(0.0, residual) * jnp.asarray(residual)

    def residual_minimiser(self) -> Number:
        return 0.0

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return 2.0 * jnp.where(jnp.asarray(response - predictor) < 0, 1.0 - self.tau, self.tau)

    def curvature_bound(self, predictor: Interval) -> Number:
        """2·max(τ, 1-τ), the larger of the two values that ρ'' has."""
        return 2.0 * jnp.maximum(self.tau, 1.0 - self.tau)

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        assert response is not None
        return self.record_score(predictor[0], response[1]), self.record_score(predictor[1], response[0])
