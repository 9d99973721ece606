"""Losses of a regression: functions of the linear predictor η = x'θ, of the response, and of the row x where asked for.

One record's gradient is s·x with the score s = ∂ρ/∂η, so that sums over records and sensitivities follow from functions
of one record.
"""

import abc
import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import Vector, block_sums, record_sums, weighted_gram
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data
from kngjax.geometry.reach import Reach
from kngjax.losses.abstract_loss import AbstractLoss as AbstractLoss
from kngjax.losses.abstract_loss import Ends as Ends
from kngjax.losses.abstract_loss import Interval as Interval
from kngjax.losses.abstract_loss import Number as Number
from kngjax.losses.abstract_loss import Rows as Rows
from kngjax.losses.abstract_loss import WholeScore as WholeScore
from kngjax.losses.abstract_loss import require_records as require_records
from kngjax.losses.abstract_loss import require_rows as require_rows
from kngjax.losses.verified_scores import AbstractVerifiedScore


class AbstractRowLoss(AbstractLoss):
    """A loss ρ(η, y, x) of one record, which sees the row of features x besides the linear predictor η = x'θ.

    Its gradient is s·x with s = ∂ρ/∂η. A scale, a level or an offset may be any public function of x. ρ need not be
    convex. Sensitivities rest on `score_interval` over all rows within the bounds.

    KNG and the exponential mechanism take such a loss, with weights too, and Markov chains draw from them. Every other
    mechanism and draw needs an `AbstractPredictorLoss`, ρ(η, y), and refuses it. A class that declares facts for those
    is refused too.
    """

    takes_weights: ClassVar[bool] = True
    _facts_without_rows: ClassVar[tuple[str, ...]] = (
        "is_quadratic",
        "is_half_square",
        "is_smooth",
        "has_curvature_facts",
        "score_is_piecewise_constant",
        "is_homogeneous",
    )

    def __init_subclass__(cls, **settings: Any):
        super().__init_subclass__(**settings)
        if declared := [name for name in cls._facts_without_rows if getattr(cls, name)]:
            raise TypeError(
                f"{cls.__name__} sees the row of features, and what serves {', '.join(declared)} does not: leave it out"
            )

    @abc.abstractmethod
    def record_value(self, predictor: Number, response: Number, *row: Vector) -> Float[Array, ""]:
        """ρ(η, y, x) of one record; x of shape (d,), the intercept's 1 first, within the bounds."""

    def record_score(self, predictor: Number, response: Number, *row: Vector) -> Float[Array, ""]:
        """s = ∂ρ/∂η of one record, by default by JAX; its gradient is s·x."""
        return jax.grad(self.record_value)(jnp.asarray(predictor, float), response, *row)

    def record_curvature(self, predictor: Number, response: Number, *row: Vector) -> Float[Array, ""]:
        """∂²ρ/∂η² of one record, by default by JAX."""
        return jax.grad(self.record_score)(jnp.asarray(predictor, float), response, *row)

    @abc.abstractmethod
    def score_interval(self, predictor: Interval, response: Interval | None, *rows: Ends) -> Interval:
        """[a, b] that contains the score for every η and y in these intervals, and every x between these two rows."""

    def value_interval(self, predictor: Interval, response: Interval, *rows: Ends) -> Interval:
        """Gives numbers between which ρ lies; infinite ones, by default, say that nothing is known."""
        return -jnp.inf, jnp.inf

    def _seen(self, row: Any) -> tuple[Any, ...]:
        return (row,)

    def _of_each(self, function: Any, predictors: Array, records: Rows) -> Float[Array, " records"]:
        """A function of each record, times the record's weight."""
        seen = self._seen(jnp.asarray(records.rows.x))
        return records.times_weights(jax.vmap(function)(predictors, jnp.asarray(records.rows.y), *seen))

    def score_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Interval:
        rows = bounds.features(dimension)
        return self.score_interval(reach.linear_interval(*rows), self.response_interval(bounds), *self._seen(rows))

    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """The smallest and the largest of a·l_j, a·u_j, b·l_j, b·u_j, with s ∈ [a, b] and x_j ∈ [l_j, u_j]."""
        return products(self.score_range(bounds, reach, adjacency, dimension), bounds.features(dimension))

    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        response = self.response_interval(bounds)
        if response is None:
            raise ValueError(f"the range of {type(self).__name__} needs Bounds(..., y=(lower, upper))")
        rows = bounds.features(dimension)
        return self.value_interval(reach.linear_interval(*rows), response, *self._seen(rows))

    def why_no_points(self, adjacency: Adjacency) -> None:
        return None

    def why_no_ridge(self) -> str | None:
        return (
            "objective perturbation is proved for losses that see no features but in x'theta, and "
            f"{type(self).__name__} does. Take KNG"
        )

    def proved_instead(self, dimension: int, is_uniform: bool) -> str | None:
        return (
            "where x sets a scale sigma(x) alone, a loss of x'theta has proved releases of records (x/sigma(x), "
            "y/sigma(x)): see docs/weights.md"
        )

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        records = require_rows(data)
        return self.value_at(records.predictors(theta), records)

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        records = require_rows(data)
        return self.gradient_at(records.predictors(theta), records)

    def value_at(self, predictors: Array, records: Rows) -> Float[Array, ""]:
        """Σ_i w_i ρ(η_i, y_i) from the linear predictors η_i, shape (n,)."""
        return block_sums(jnp.sum, (self._of_each(self.record_value, predictors, records),))

    def gradient_at(self, predictors: Array, records: Rows) -> Float[Array, " dimension"]:
        """Σ_i w_i s_i x_i from the linear predictors, shape (n,)."""
        return record_sums(self._of_each(self.record_score, predictors, records), records.rows.x)

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i w_i ρ''_i x_i x_i'."""
        records = require_rows(data)
        return weighted_gram(self._of_each(self.record_curvature, records.predictors(theta), records), records.rows.x)

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """w_i s_i x_i."""
        records = require_rows(data)
        scores = self._of_each(self.record_score, records.predictors(theta), records)
        return jnp.asarray(records.rows.x) * scores[:, None]


class CurvatureFacts(NamedTuple):
    """Holds proved bounds on ρ''(η + u) for one record, with w = ρ''(η) > 0.

    **Arguments:** `slope`, `bend`: a and m ≥ 0 with log ρ''(η + u) ≥ log w + au - ½mu² for every real u. `mean`: a
    lower bound of (s(η + u) - s(η))/u for 0 < |u| ≤ reach, the mean of ρ'' between η and η + u. `third`: bounds
    |ρ'''(η + u)| for |u| ≤ reach.
    """

    slope: Array
    bend: Array
    mean: Array
    third: Array


class AbstractPredictorLoss(AbstractRowLoss):
    """A loss ρ(η, y) of one record, convex in the linear predictor η = x'θ; w·ρ(η, y) of a record with weight w."""

    _facts_without_rows: ClassVar[tuple[str, ...]] = ()

    def _seen(self, row: Any) -> tuple[Any, ...]:
        return ()

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """The facts at one record, for changes of the predictor of at most `reach` > 0; the docstring proves them."""
        raise TypeError(f"{type(self).__name__} declares no facts of its curvature")

    def bound_determinant(self, change: Number, dimension: int) -> Number:
        """F(x) ≤ x, increasing, with log det H(θ₀) - log det H(θ) ≤ F(x) for x = Σ_i h_i (½m_i u_i² - a_i u_i).

        The weights h_i ≥ 0 are leverages, Σh_i = d, and u_i = x_i'(θ - θ₀); see
        `kngjax.chains.exact.smooth.gradient_certificate`. F is the identity unless a loss knows better.
        """
        return change

    def verified_score(self) -> AbstractVerifiedScore | None:
        """The score with every rounding bounded, from numbers as they are in float64; None where that is not built.

        Draws in the space of gradients need an `AbstractSmoothScore`, which also bounds how ρ'' changes.
        """
        return None

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"] | None:
        """Makes up responses about a regression without slopes; None where that plus residuals serves. Public."""
        return None

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
        """A Lipschitz constant of the score in η over this interval, for any y; infinite where the score jumps.

        It is the largest ∂²ρ/∂η² where that exists. The reason is in the docstring.
        """

    def score_step(self) -> Interval:
        """(s, J): the score is s where η < y and s + J where η ≥ y. Raises TypeError unless it is constant but there.

        Then log-densities are piecewise linear along every line of a uniform Θ, with known breakpoints.
        """
        raise TypeError(f"the score of {type(self).__name__} is not constant but for a jump")

    def why_no_ridge(self) -> str | None:
        if not self.score_is_piecewise_constant:
            return None
        return (
            f"{type(self).__name__} has a Hessian of zero almost everywhere and jumps elsewhere: it is not strongly "
            "convex in the data, and noise in the objective leaves gaps in what can be released. Take "
            "SmoothedQuantileLoss(tau, bandwidth) with a public bandwidth, or KNG"
        )

    def proved_instead(self, dimension: int, is_uniform: bool) -> str | None:
        if self.why_no_ridge() is not None:
            return None
        fields = ", ".join(field.name for field in dataclasses.fields(self) if field.default is dataclasses.MISSING)
        where = "" if is_uniform else " on L1Ball, L2Ball or Box"
        made = f"ObjectivePerturbation({type(self).__name__}({fields}), ...)"
        is_verified = type(self).verified_score is not AbstractPredictorLoss.verified_score
        rounding = "" if is_verified else ", with a small delta for the rounding of float64"
        return f"{made}{where} is proved for any number of coefficients{rounding}"


class AbstractResidualLoss(AbstractPredictorLoss):
    """A loss of the residual r = y - η alone, convex in r.

    `target`: what the minimiser estimates, "mean", the level of a quantile, or None for a target of its own.
    """

    target: ClassVar[Any] = None

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
        """Takes the largest value at an end of the residual's range, the least at the minimiser or the nearest end."""
        lower, upper = response[0] - predictor[1], response[1] - predictor[0]
        ends = jnp.maximum(self.residual_value(lower), self.residual_value(upper))
        return self.residual_value(jnp.clip(self.residual_minimiser(), lower, upper)), ends


def products(first: Interval, second: Ends) -> Ends:
    """The smallest and the largest product of a number of each interval: of ends."""
    ends = jnp.stack([one * other for one in first for other in second])
    return jnp.min(ends, axis=0), jnp.max(ends, axis=0)
