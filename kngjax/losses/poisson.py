"""The Poisson loss with log link: regression of bounded counts."""

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


class PoissonLoss(AbstractPredictorLoss):
    """ρ(η, y) = e^η - yη for counts y ∈ [y_l, y_u]; score e^η - y.

    Score interval: e^η is increasing, so s ∈ [e^η_l - y_u, e^η_u - y_l]. It needs bounds on x, y and Θ, and grows
    exponentially with the range of x'θ: choose a small Θ. A negative response counts as missing, so 0 ≤ y_l.
    """

    needs_response_bounds: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    def verified_score(self) -> PoissonScore:
        return PoissonScore()

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"]:
        """Makes counts whose mean is a tenth of their bound."""
        return _usual(bounds, count)

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
        """Takes the largest ρ at a corner, since ρ is convex in η and linear in y, and the least at an end of y."""
        ends = [self.record_value(eta, y) for eta in predictor for y in response]
        troughs = [self.record_value(jnp.clip(jnp.log(jnp.maximum(y, 1e-300)), *predictor), y) for y in response]
        return jnp.min(jnp.stack(troughs)), jnp.max(jnp.stack(ends))

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Numbers that are not negative; fractions have a likelihood of this form too."""
        return _counts(super().responses(column))

    def check_bounds(self, bounds: Bounds) -> None:
        super().check_bounds(bounds)
        _check(self, bounds)


class CappedPoissonLoss(AbstractPredictorLoss):
    """ρ(η, y) = e^η - yη for η ≤ c, and beyond it the tangent there, e^c(1 + η - c) - yη; score e^min(η, c) - y.

    The loss is convex and once differentiable. Score interval: s ∈ [-y_u, e^c - y_l], and ρ'' ≤ e^c, for all x and θ.
    So no Θ is needed. If no mean exceeds e^c, the estimate is that of `PoissonLoss`.

    Below η = -12 the loss follows its tangent too: a mean of fewer than one event in 160,000 records counts as 0.

    **Arguments:** `limit`: c, the logarithm of the largest mean, above -12 and at most 700. Public.
    """

    limit: Scalar = eqx.field(converter=parameter)

    needs_response_bounds: ClassVar[bool] = True

    def __check_init__(self):
        if is_traced(self.limit):
            return
        if np.ndim(self.limit) != 0 or not _LEAST < float(self.limit) <= _MOST:
            raise ValueError(f"limit must be one number, the logarithm of the largest mean, like 3.0, not {self.limit}")

    def verified_score(self) -> AbstractVerifiedScore:
        return PoissonScore().extended((Fraction(_LEAST), Fraction(number(self.limit))))

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"]:
        """Makes counts whose mean is a tenth of their bound."""
        return _usual(bounds, count)

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        return jnp.exp(nearest) * (1.0 + predictor - nearest) - response * predictor

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.exp(self._nearest(predictor)) - response

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        return jnp.where(nearest == predictor, jnp.exp(nearest), 0.0)

    def curvature_bound(self, predictor: Interval) -> Number:
        """e^η at the upper end of η, and at most e^c."""
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
        """Reads counts as `PoissonLoss` does."""
        return _counts(super().responses(column))

    def check_bounds(self, bounds: Bounds) -> None:
        super().check_bounds(bounds)
        _check(self, bounds)

    def _nearest(self, predictor: Number) -> Array:
        return jnp.clip(jnp.asarray(predictor), _LEAST, self.limit)


def _usual(bounds: Bounds, count: int) -> np.ndarray:
    """Makes up counts of mean a tenth of their bound."""
    assert bounds.y_upper is not None
    return np.random.default_rng(0).poisson(0.1 * float(bounds.y_upper), count).astype(np.float64)


def _counts(column: np.ndarray) -> np.ndarray:
    return np.where(column < 0, np.nan, column)


def _check(loss: AbstractPredictorLoss, bounds: Bounds) -> None:
    if bounds.y_lower is not None and not is_traced(bounds.y_lower) and float(bounds.y_lower) < 0.0:
        raise ValueError(
            f"{type(loss).__name__} has no negative responses, and these bounds of y promise some: give "
            "Bounds(..., y=(0, upper))"
        )
