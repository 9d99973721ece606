"""The Poisson loss with log link: regression of bounded counts."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import is_traced
from kngjax.data.bounds import Bounds
from kngjax.losses.base import AbstractPredictorLoss, CurvatureFacts, Interval, Number
from kngjax.losses.smooth_scores import SmoothPoisson
from kngjax.losses.verified_scores import PoissonScore


class PoissonLoss(AbstractPredictorLoss):
    """ρ(η, y) = e^η - yη for counts y ∈ [y_l, y_u]; score e^η - y.

    Score interval: e^η is increasing, so s ∈ [e^η_l - y_u, e^η_u - y_l]: it needs bounds on x, y and Θ, and grows
    exponentially with the reach of x'θ, so choose Θ tight. A negative response counts as missing, so 0 ≤ y_l.
    """

    needs_response_bounds: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def verified_score(self) -> PoissonScore:
        return PoissonScore()

    def smooth_score(self) -> SmoothPoisson:
        return SmoothPoisson()

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"]:
        """Counts of mean a tenth of their bound."""
        assert bounds.y_upper is not None
        return np.random.default_rng(0).poisson(0.1 * float(bounds.y_upper), count).astype(np.float64)

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.exp(predictor) - response * predictor

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.exp(predictor) - response

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.exp(predictor)

    def curvature_bound(self, predictor: Interval) -> Number:
        """e^η at the upper end of η: it is increasing."""
        return jnp.exp(predictor[1])

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """log ρ'' = η is linear: a = 1 and m = 0.

        ρ'' rises with η, so its mean is least downwards, e^η(1 - e^-U)/U, and ρ''' = ρ'' is at most e^(η + U).
        """
        weight = jnp.exp(jnp.asarray(predictor) + 0.0 * response)
        mean, third = weight * -jnp.expm1(-reach) / reach, weight * jnp.exp(jnp.asarray(reach))
        return CurvatureFacts(jnp.ones_like(weight), jnp.zeros_like(weight), mean, third)

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        assert response is not None
        return jnp.exp(predictor[0]) - response[1], jnp.exp(predictor[1]) - response[0]

    def value_interval(self, predictor: Interval, response: Interval) -> Interval:
        """Convex in η, linear in y: largest at a corner. Its minimum over η is concave in y: least at an end of y."""
        ends = [self.record_value(eta, y) for eta in predictor for y in response]
        troughs = [self.record_value(jnp.clip(jnp.log(jnp.maximum(y, 1e-300)), *predictor), y) for y in response]
        return jnp.min(jnp.stack(troughs)), jnp.max(jnp.stack(ends))

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Numbers that are not negative; fractions have a likelihood of this form too."""
        counts = super().responses(column)
        return np.where(counts < 0, np.nan, counts)

    def check_bounds(self, bounds: Bounds) -> None:
        super().check_bounds(bounds)
        if bounds.y_lower is not None and not is_traced(bounds.y_lower) and float(bounds.y_lower) < 0.0:
            raise ValueError(
                "the Poisson loss has no negative responses, and these bounds of y promise some: give y=(0, upper)"
            )
