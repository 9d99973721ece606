"""A loss is a function of θ and one record, with its gradient and declared facts about both.

The loss of the data is ℓ_n(θ; D) = Σ_i ℓ(θ; record_i), a sum and never a mean, which `block_sums` adds up. In
regression ℓ is ρ(x'θ, y) and one record's gradient is s·x with the scalar score s = ∂ρ/∂η, η = x'θ, so all that a
sensitivity proof needs is the interval that s can lie in. Means and medians have losses of the distance between θ and
the record itself.
"""

import abc
import dataclasses
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import Vector, block_sums, float64, record_sums, weighted_gram
from kngjax.core.compiling import Compiled
from kngjax.core.errors import UnfitType
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.data import cells
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.missing import DROP
from kngjax.data.records import Data
from kngjax.geometry.reach import Reach, SinglePoint
from kngjax.losses.estimates import trust_region
from kngjax.losses.record_scores import RecordScores as RecordScores
from kngjax.losses.rows import Rows as Rows
from kngjax.losses.rows import of_each
from kngjax.losses.rows import require_records as require_records
from kngjax.losses.rows import require_rows as require_rows
from kngjax.losses.smooth_scores import NO_WEIGHT as NO_WEIGHT
from kngjax.losses.smooth_scores import AbstractSmoothScore
from kngjax.losses.smooth_scores import ScoresAndWeights as ScoresAndWeights
from kngjax.losses.smooth_scores import Tangents as Tangents
from kngjax.losses.verified_scores import AbstractVerifiedScore

Number = Float[Array, ""] | Float[np.ndarray, ""] | float
Interval = tuple[Number, Number]
Ends = tuple[Vector, Vector]


class WholeScore(NamedTuple):
    """A loss that sums of whole numbers hold: "check", ρ_τ(y - x'θ), "residuals", ½(y - x'θ)², "distances", ½|θ - x|².

    **Arguments:** `level`: τ of the check loss, the decimal number that it prints as.
    """

    kind: Literal["check", "residuals", "distances"]
    level: Fraction = Fraction(0)


class AbstractLoss(ShownAsTyped, AbstractModule):
    """A loss ℓ(θ; record) of one record, summed over the records, with the facts that others rest on.

    Facts without an argument:

    - `has_response`: whether a record has a response besides its features.
    - `needs_response_bounds`: whether one record's gradient is bounded only where y is; `value_needs_response_bounds`:
      whether its value is.
    - `is_quadratic`: whether `summarise` gives a `QuadraticSummary`, so that ℓ_n = ½θ'Gθ - m'θ + ½s.
    - `is_half_square`: whether ℓ is ½(y - x'θ)² and no other quadratic, so that with ½λ|θ|² it is ridge regression.
    - `is_smooth`: whether ρ'' is positive for every η and continuously differentiable, so that on a design of full rank
      ∇ℓ_n is one to one, with the determinant of the Hessian as its Jacobian. Huber's loss is not: its gradient is
      constant wherever all records are outliers.
    - `has_curvature_facts`: whether a smooth loss of x'θ proves `curvature_facts`, for exact draws in any dimension.
    - `score_is_piecewise_constant`: whether ∂ρ/∂η is constant but for one jump, at η = y (see `score_step`).
    - `gradient_length`: the Euclidean length of every record's gradient where its direction is free, None elsewhere.
    - `is_homogeneous`: whether ρ(wη, wy) = w·ρ(η, y) for every w ≥ 0, so that a weighted record is (wx, wy).
    - `takes_weights`: whether its sums honour `WeightedRecords`.
    - `gradient_slope`: c where one record's gradient is cθ less what depends on the record alone, None elsewhere.
    """

    needs_response_bounds: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = True
    has_response: ClassVar[bool] = True
    score_is_piecewise_constant: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    is_half_square: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = False
    has_curvature_facts: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    gradient_length: ClassVar[float | None] = None
    gradient_slope: ClassVar[float | None] = None

    @property
    def whole_score(self) -> WholeScore | None:
        """Gives the form in which a lattice computes the loss without rounding; None where that is not built."""
        return None

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

    @abc.abstractmethod
    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """(m, M), each of shape (d,): every record's gradient lies between them for every θ ∈ Θ.

        Under replace up to what all records share at the same θ, since an exchange cancels it.
        """

    @abc.abstractmethod
    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        """Two numbers between which ℓ of every record within the bounds lies for every θ ∈ Θ."""

    def gradient_range_at(self, theta: Vector, bounds: Bounds, adjacency: Adjacency) -> Ends:
        """`gradient_range` at this θ alone."""
        return self.gradient_range(bounds, SinglePoint(theta), adjacency, theta.shape[0])

    def range_depends_on_theta(self, adjacency: Adjacency) -> bool:
        """Whether `gradient_range_at` varies with θ; where one record's gradient is bounded for every θ it does not."""
        return self.needs_response_bounds

    def score_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Interval:
        """[a, b] ∋ s where one record's gradient is s·x, under replace but for its sign and what all records share.

        Raises TypeError where it is not: where `why_no_points` says why.
        """
        raise TypeError(f"one record's gradient under {type(self).__name__} is no multiple of its features")

    def why_no_points(self, adjacency: Adjacency) -> str | None:
        """Why the extreme points of all changes of ∇ℓ_n are not listed; None where they are, by `score_range`."""
        return (
            f"the changes of {type(self).__name__} have no known extreme points: norm=None takes the box around them "
            "as the ball"
        )

    def describe_gradient(self, adjacency: Adjacency, score: tuple[float, float] | None) -> tuple[str, str]:
        """Describes in words one record's gradient, and how far neighbours' gradients are apart in coordinate j.

        **Arguments:** `score`: `score_range` in numbers, where there is one.
        """
        most = "w_j = M_j - m_j" if adjacency is Adjacency.REPLACE else "w_j = max(|m_j|, |M_j|)"
        if score is None:
            return "in [m_j, M_j] in coordinate j;", most
        what = f"s*x with the score s in [{score[0]:.6g}, {score[1]:.6g}], so its coordinate j lies in [m_j, M_j] by"
        return f"{what} the bounds of x;", most

    def why_no_ridge(self) -> str | None:
        """Why no ridge makes objective perturbation with this loss private; None where one does."""
        return (
            f"one record's Hessian under {type(self).__name__} is not of rank one and bounded, so that no ridge makes "
            "up for it. Take KNG"
        )

    def proved_instead(self, dimension: int, is_uniform: bool) -> str | None:
        """A mechanism beside KNG that is proved and estimates the same or nearly so, in words; None if there is none.

        **Arguments:** `dimension`: d. `is_uniform`: whether Θ has the uniform base measure.
        """
        return None

    def gradient_is_piecewise_constant(self, dimension: int) -> bool:
        """Whether ∇ℓ_n takes finitely many values, so that its derivatives say nothing."""
        return self.score_is_piecewise_constant

    def response_interval(self, bounds: Bounds) -> Any:
        """The interval that every response lies in, None if there is none."""
        return None if bounds.y_lower is None else (bounds.y_lower, bounds.y_upper)

    def minimise(self, records: Rows) -> Float[np.ndarray, " dimension"]:
        """argmin ℓ_n over all of R^d, on the host. Private."""
        with float64():
            return trust_region(
                lambda theta: _value_and_gradient(theta, self, records),
                lambda theta: _hessian(theta, self, records),
                records.dimension,
                1e-9 * records.num_records,
            )

    @property
    def reads_text(self) -> bool:
        """Whether responses are text by what was declared."""
        return False

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """Reads each cell by itself as a response that the loss models; NaN where a cell has no meaning for it."""
        return cells.numbers(column)

    def check_bounds(self, bounds: Bounds) -> None:
        """Raises ValueError where public bounds would change what responses mean, or a policy names no response."""
        policy = bounds.missing_y
        if policy is not None and policy != DROP and np.isnan(self.responses([policy])).any():
            raise ValueError(f"missing_y = {policy!r} is no response of {type(self).__name__}")

    def summarise(self, records: Rows) -> Data:
        """The least that the loss needs of the records: a sufficient statistic where there is one."""
        return records

    def sums(self, records: Rows) -> ExactSums:
        """The sums of a sufficient statistic, exactly; raises UnfitType for a loss that has none."""
        raise UnfitType(f"{type(self).__name__} has no sufficient statistic: take a mechanism of the moments")


class CurvatureFacts(NamedTuple):
    """Holds proved bounds on ρ''(η + u) for one record, with w = ρ''(η) > 0.

    **Arguments:** `slope`, `bend`: a and m ≥ 0 with log ρ''(η + u) ≥ log w + au - ½mu² for every real u. `mean`: at
    most (s(η + u) - s(η))/u for 0 < |u| ≤ reach, the mean of ρ'' between η and η + u. `third`: at least |ρ'''(η + u)|
    for |u| ≤ reach.
    """

    slope: Array
    bend: Array
    mean: Array
    third: Array


class AbstractPredictorLoss(AbstractLoss):
    """A loss ρ(η, y) of one record, convex in the linear predictor η = x'θ; w·ρ(η, y) of a record with weight w."""

    takes_weights: ClassVar[bool] = True

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
        """The score with every rounding bounded, from numbers as they are in float64; None where that is not built."""
        return None

    def smooth_score(self) -> AbstractSmoothScore | None:
        """Gives the score and ρ'' as draws in the space of gradients need them; None where that is not built."""
        return None

    def usual_responses(self, bounds: Bounds, count: int) -> Float[np.ndarray, " responses"] | None:
        """Made-up responses about a regression without slopes; None where they are it plus residuals. Public."""
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

    def score_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Interval:
        predictor = reach.linear_interval(*bounds.features(dimension))
        return self.score_interval(predictor, self.response_interval(bounds))

    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """The smallest and the largest of a·l_j, a·u_j, b·l_j, b·u_j, with s ∈ [a, b] and x_j ∈ [l_j, u_j]."""
        return products(self.score_range(bounds, reach, adjacency, dimension), bounds.features(dimension))

    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        response = self.response_interval(bounds)
        if response is None:
            raise ValueError(f"the range of {type(self).__name__} needs Bounds(..., y=(lower, upper))")
        return self.value_interval(reach.linear_interval(*bounds.features(dimension)), response)

    def why_no_points(self, adjacency: Adjacency) -> None:
        return None

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
        return f"{made}{where} is proved for any number of coefficients"

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        records = require_rows(data)
        return self.value_at(records.predictors(theta), records)

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        records = require_rows(data)
        return self.gradient_at(records.predictors(theta), records)

    def value_at(self, predictors: Array, records: Rows) -> Float[Array, ""]:
        """Σ_i w_i ρ(η_i, y_i) from the linear predictors η_i, shape (n,)."""
        return block_sums(jnp.sum, (of_each(self.record_value, predictors, records),))

    def gradient_at(self, predictors: Array, records: Rows) -> Float[Array, " dimension"]:
        """Σ_i w_i s_i x_i from the linear predictors, shape (n,)."""
        return record_sums(of_each(self.record_score, predictors, records), records.rows.x)

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i w_i ρ''_i x_i x_i'."""
        records = require_rows(data)
        return weighted_gram(of_each(self.record_curvature, records.predictors(theta), records), records.rows.x)

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """w_i s_i x_i."""
        records = require_rows(data)
        scores = of_each(self.record_score, records.predictors(theta), records)
        return jnp.asarray(records.rows.x) * scores[:, None]


class AbstractResidualLoss(AbstractPredictorLoss):
    """A loss of the residual r = y - η alone, convex in r."""

    @property
    def target(self) -> Any:
        """Names what the minimiser estimates: "mean", the level of a quantile, or None for a target of its own."""
        return None

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


def products(first: Interval, second: Ends) -> Ends:
    """The smallest and the largest product of a number of each interval: of ends."""
    ends = jnp.stack([one * other for one in first for other in second])
    return jnp.min(ends, axis=0), jnp.max(ends, axis=0)


@Compiled
def _value_and_gradient(theta, loss, data):
    return loss.value(theta, data), loss.gradient(theta, data)


@Compiled
def _hessian(theta, loss, data):
    return loss.hessian(theta, data)
