"""What a loss is: a function of θ and one record, its gradient, and declared facts about them.

The loss of the data is ℓ_n(θ; D) = Σ_i ℓ(θ; record_i), a sum and never a mean, which `block_sums` adds up. In
regression ℓ is ρ(x'θ, y) and one record's gradient is s·x with the scalar score s = ∂ρ/∂η, η = x'θ, so all that a
sensitivity proof needs is the interval that s can lie in. Means and medians have losses of the distance between θ and
the record itself.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Vector, block_sums, record_sums, weighted_gram
from kngjax.core.errors import UnfitType
from kngjax.core.representation import ShownAsTyped
from kngjax.data import cells
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.missing import DROP
from kngjax.data.records import Data, Records
from kngjax.data.streams import RECORDS_NEEDED

Number = Float[Array, ""] | Float[np.ndarray, ""] | float
Interval = tuple[Number, Number]


class AbstractLoss(ShownAsTyped, eqx.Module):
    """A loss ℓ(θ; record) of one record, summed over the records."""

    needs_response_bounds: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = True
    has_response: ClassVar[bool] = True
    score_is_piecewise_constant: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False

    @abc.abstractmethod
    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """ℓ_n(θ; D)."""

    @abc.abstractmethod
    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        """∇ℓ_n(θ; D), shape (d,)."""

    @abc.abstractmethod
    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """∇²ℓ_n(θ; D), shape (d, d)."""

    @abc.abstractmethod
    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """The gradient of each record, shape (n, d)."""

    @property
    def reads_text(self) -> bool:
        """Whether responses are text by what was declared."""
        return False

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """What the loss models, of each cell by itself; NaN where a cell has no meaning for it."""
        return cells.numbers(column)

    def check_bounds(self, bounds: Bounds) -> None:
        """Raises ValueError where public bounds would change what responses mean, or a policy names no response."""
        policy = bounds.missing_y
        if policy is not None and policy != DROP and np.isnan(self.responses([policy])).any():
            raise ValueError(f"missing_y = {policy!r} is no response of {type(self).__name__}")

    def summarise(self, records: Records) -> Data:
        """The least that the loss needs of the records: a sufficient statistic where there is one."""
        return records

    def sums(self, records: Records) -> ExactSums:
        """The sums of a sufficient statistic, exactly; raises UnfitType for a loss that has none."""
        raise UnfitType(RECORDS_NEEDED)


class AbstractPredictorLoss(AbstractLoss):
    """A loss ρ(η, y) of one record, convex in the linear predictor η = x'θ."""

    @abc.abstractmethod
    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        """ρ(η, y) of one record."""

    @abc.abstractmethod
    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        """s = ∂ρ/∂η of one record; its gradient is s·x."""

    @abc.abstractmethod
    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        """∂²ρ/∂η² of one record."""

    @abc.abstractmethod
    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        """[a, b] that contains the score for every η and y in these intervals; the reason is in the docstring."""

    @abc.abstractmethod
    def value_interval(self, predictor: Interval, response: Interval) -> Interval:
        """The range of ρ over η and y in these intervals."""

    @abc.abstractmethod
    def curvature_bound(self, predictor: Interval) -> Number:
        """The largest ∂²ρ/∂η² over η in this interval and any y, where it exists; the reason is in the docstring."""

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        records = require_records(data)
        return self.value_at(records.predictors(theta), records)

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        records = require_records(data)
        return self.gradient_at(records.predictors(theta), records)

    def value_at(self, predictors: Array, records: Records) -> Float[Array, ""]:
        """Σ_i ρ(η_i, y_i) from the linear predictors η_i, shape (n,)."""
        return block_sums(jnp.sum, (jax.vmap(self.record_value)(predictors, jnp.asarray(records.y)),))

    def gradient_at(self, predictors: Array, records: Records) -> Float[Array, " dimension"]:
        """Σ_i s_i x_i from the linear predictors, shape (n,)."""
        return record_sums(jax.vmap(self.record_score)(predictors, jnp.asarray(records.y)), records.x)

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i ρ''_i x_i x_i'."""
        records = require_records(data)
        curvatures = jax.vmap(self.record_curvature)(records.predictors(theta), jnp.asarray(records.y))
        return weighted_gram(curvatures, records.x)

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """s_i x_i."""
        records = require_records(data)
        scores = jax.vmap(self.record_score)(records.predictors(theta), jnp.asarray(records.y))
        return jnp.asarray(records.x) * scores[:, None]


class AbstractResidualLoss(AbstractPredictorLoss):
    """A loss of the residual r = y - η alone, convex in r."""

    @abc.abstractmethod
    def residual_value(self, residual: Number) -> Float[Array, ""]:
        """ρ(r)."""

    @abc.abstractmethod
    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        """dρ/dr, so that the score is its negative."""

    @abc.abstractmethod
    def residual_minimiser(self) -> Number:
        """The r at which ρ is smallest."""

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return self.residual_value(response - predictor)

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return -self.residual_slope(response - predictor)

    def value_interval(self, predictor: Interval, response: Interval) -> Interval:
        """Largest at an end of the residual's range, by convexity; smallest at the minimiser or the end nearest it."""
        lower, upper = response[0] - predictor[1], response[1] - predictor[0]
        ends = jnp.maximum(self.residual_value(lower), self.residual_value(upper))
        return self.residual_value(jnp.clip(self.residual_minimiser(), lower, upper)), ends


def require_records(data: Data) -> Records:
    """The data if they are records; raises TypeError for a summary."""
    if not isinstance(data, Records):
        raise TypeError(
            f"this loss needs the records, not a {type(data).__name__}: prepare the data with a mechanism of this loss"
        )
    return data
