"""The Poisson loss with log link: regression of bounded counts."""

import abc
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, is_traced, parameter
from kngjax.data.bounds import Bounds
from kngjax.losses.base import AbstractPredictorLoss, CurvatureFacts, Interval, Number
from kngjax.losses.smooth_scores import PoissonScore
from kngjax.losses.verified_scores import AbstractVerifiedScore, number

# Of η: one event in 160,000 records. Where the loss goes on by its tangents, fewer digits are lost the nearer the ends.
_LEAST, _MOST = -12.0, 700.0


class AbstractPoissonLoss(AbstractPredictorLoss):
    """ρ(η, y) = e^c(1 + η - c) - yη with c the number nearest to η in an interval: e^η - yη there, a tangent beyond."""

    needs_response_bounds: ClassVar[bool] = True

    @abc.abstractmethod
    def _nearest(self, predictor: Number) -> Array:
        """Finds c."""

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"]:
        """Makes counts whose mean is a tenth of their bound."""
        assert bounds.y_upper is not None
        return np.random.default_rng(0).poisson(0.1 * float(bounds.y_upper), count).astype(np.float64)

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        # An infinite η is its own nearest number; elsewhere both parts have their derivatives.
        beyond = jnp.where(jnp.isinf(nearest), 0.0, predictor - nearest)
        return jnp.exp(nearest) * (1.0 + beyond) - response * predictor

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.exp(self._nearest(predictor)) - response

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        return jnp.where(jnp.abs(predictor - nearest) > 0.0, 0.0, jnp.exp(nearest))

    def curvature_bound(self, predictor: Interval) -> Number:
        """e^c at the upper end of η, since it is increasing."""
        return jnp.exp(self._nearest(predictor[1]))

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        assert response is not None
        least, most = (jnp.exp(self._nearest(end)) for end in predictor)
        return least - response[1], most - response[0]

    def value_interval(self, predictor: Interval, response: Interval) -> Interval:
        """Takes the largest ρ at a corner, since ρ is convex in η and linear in y; the least there or at η = log y."""
        ends = [self.record_value(eta, y) for eta in predictor for y in response]
        troughs = [self.record_value(jnp.clip(jnp.log(jnp.maximum(y, 1e-300)), *predictor), y) for y in response]
        return jnp.min(jnp.stack(ends + troughs)), jnp.max(jnp.stack(ends))

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Numbers that are not negative; fractions have a likelihood of this form too."""
        numbers = super().responses(column)
        return np.where(numbers < 0, np.nan, numbers)

    def check_bounds(self, bounds: Bounds) -> None:
        super().check_bounds(bounds)
        if bounds.y_lower is not None and not is_traced(bounds.y_lower) and float(bounds.y_lower) < 0.0:
            raise ValueError(
                f"{type(self).__name__} has no negative responses, and these bounds of y promise some: give "
                "Bounds(..., y=(0, upper))"
            )


class PoissonLoss(AbstractPoissonLoss):
    """ρ(η, y) = e^η - yη for counts y ∈ [y_l, y_u]; score e^η - y.

    Score interval: e^η is increasing, so s ∈ [e^η_l - y_u, e^η_u - y_l]. It needs bounds on x, y and Θ, and grows
    exponentially with the range of x'θ: choose a small Θ. A negative response counts as missing, so 0 ≤ y_l.
    """

    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def verified_score(self) -> PoissonScore:
        return PoissonScore()

    def _nearest(self, predictor: Number) -> Array:
        return jnp.asarray(predictor)

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """log ρ'' = η is linear: a = 1 and m = 0.

        ρ'' rises with η, so its mean is least downwards, e^η(1 - e^-U)/U, and ρ''' = ρ'' is at most e^(η + U).
        """
        weight = jnp.exp(jnp.asarray(predictor) + 0.0 * response)
        mean, third = weight * -jnp.expm1(-reach) / reach, weight * jnp.exp(jnp.asarray(reach))
        return CurvatureFacts(jnp.ones_like(weight), jnp.zeros_like(weight), mean, third)


class CappedPoissonLoss(AbstractPoissonLoss):
    """ρ(η, y) = e^η - yη for η ≤ c, and beyond it the tangent there, e^c(1 + η - c) - yη; score e^min(η, c) - y.

    The loss is convex and once differentiable. Score interval: s ∈ [-y_u, e^c - y_l], and ρ'' ≤ e^c, for all x and θ.
    So no Θ is needed. If no mean exceeds e^c, the estimate is that of `PoissonLoss`.

    Below η = -12 the loss follows its tangent too: a mean of fewer than one event in 160,000 records counts as 0.

    **Arguments:** `limit`: c, the logarithm of the largest mean, above -12 and at most 700. Public.
    """

    limit: Scalar = eqx.field(converter=parameter)

    def __check_init__(self):
        if is_traced(self.limit):
            return
        if np.ndim(self.limit) != 0 or not _LEAST < float(self.limit) <= _MOST:
            raise ValueError(f"limit must be one number, the logarithm of the largest mean, like 3.0, not {self.limit}")

    def verified_score(self) -> AbstractVerifiedScore:
        return PoissonScore().extended((Fraction(_LEAST), Fraction(number(self.limit))))

    def _nearest(self, predictor: Number) -> Array:
        return jnp.clip(jnp.asarray(predictor), _LEAST, self.limit)
