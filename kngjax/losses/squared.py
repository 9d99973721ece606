"""The squared loss ½r²: linear regression from a sufficient statistic."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import Vector, block_sums, is_traced, parameter
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums, gram, weighted_gram_of
from kngjax.data.records import Data, QuadraticSummary, WeightedRecords
from kngjax.losses.base import AbstractResidualLoss, Ends, Interval, Number, Rows, WholeScore
from kngjax.losses.verified_scores import SquaredScore


class SquaredLoss(AbstractResidualLoss):
    """ρ(r) = ½r² with r = y - x'θ; ∇ℓ_n = X'Xθ - X'y.

    Score interval: s = η - y, so with η ∈ [η_l, η_u] and y ∈ [y_l, y_u] it lies in [η_l - y_u, η_u - y_l]: ±(Y + B)
    for |y| ≤ Y and |x'θ| ≤ B. It needs bounds on x, y and Θ. Reimherr and Awan (2019, equation 1) print
    ε/(8(1+B)) for the half gradient with Y = 1. ε/(4(1+B)) is ε-DP, so the printed one spends half of ε.
    """

    needs_response_bounds: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True
    is_half_square: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = True
    target: ClassVar[str] = "mean"

    @property
    def whole_score(self) -> WholeScore:
        return WholeScore("residuals")

    def verified_score(self) -> SquaredScore:
        return SquaredScore()

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        return 0.5 * jnp.square(residual)

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        return jnp.asarray(residual)

    def residual_minimiser(self) -> Number:
        return 0.0

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.ones_like(predictor)

    def curvature_bound(self, predictor: Interval) -> Number:
        """1, which ρ'' is everywhere."""
        return 1.0

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        assert response is not None
        return predictor[0] - response[1], predictor[1] - response[0]

    def gradient_range_at(self, theta: Vector, bounds: Bounds, adjacency: Adjacency) -> Ends:
        """Coordinate j is (v + θ_j x_j)x_j with v = Σ_{k≠j} θ_k x_k - y in an interval that does not depend on x_j.

        Linear in v and quadratic in x_j, so its range is exact. For |x_j| ≤ 1 and |y| ≤ Y it is M(a_j, θ_j) +
        M(a_j, -θ_j) wide, with a_j = Y + Σ_{k≠j}|θ_k| and M(a, b) = a - b for b ≤ a/2, a²/(4b) beyond.
        """
        lower, upper = bounds.features(theta.shape[0])
        ends = jnp.stack([lower * theta, upper * theta])
        smallest, largest = jnp.min(ends, axis=0), jnp.max(ends, axis=0)
        least, most = self.response_interval(bounds)
        others = [jnp.sum(smallest) - smallest - most, jnp.sum(largest) - largest - least]
        curved = jnp.where(theta == 0, 1.0, theta)
        turns = [jnp.clip(jnp.where(theta == 0, lower, -v / (2.0 * curved)), lower, upper) for v in others]
        values = jnp.stack([(v + theta * x) * x for v in others for x in (lower, upper, *turns)])
        return jnp.min(values, axis=0), jnp.max(values, axis=0)

    def sums(self, records: Rows) -> ExactSums:
        """(n, X'X, X'y, y'y), exactly; with weights of records each sum but n is of w times what it is of."""
        rows = records.rows
        columns = np.column_stack([np.asarray(rows.x), np.asarray(rows.y)])
        has_weights = isinstance(records, WeightedRecords)
        table = weighted_gram_of(columns, np.asarray(records.weights)) if has_weights else gram(columns)
        return ExactSums(records.num_records, table[:-1, :-1], table[:-1, -1], table[-1, -1])

    def summarise(self, records: Rows) -> QuadraticSummary:
        """(n, X'X, X'y, y'y), each correctly rounded; in compiled simulations in blocks."""
        x, y = records.rows.x, records.rows.y
        if not is_traced(x, y):
            return self.sums(records).summary()
        weights = records.times_weights(jnp.ones_like(y))
        sums = block_sums(lambda x, y, w: (x.T @ (w[:, None] * x), x.T @ (w * y), (w * y) @ y), (x, y, weights))
        return QuadraticSummary(parameter(float(y.shape[0])), *sums)

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        if isinstance(data, QuadraticSummary):
            return data.value(theta, data.gradient(theta))
        return super().value(theta, data)

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        """X'Xθ - X'y."""
        return data.gradient(theta) if isinstance(data, QuadraticSummary) else super().gradient(theta, data)

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """X'X."""
        return jnp.asarray(data.gram) if isinstance(data, QuadraticSummary) else super().hessian(theta, data)
