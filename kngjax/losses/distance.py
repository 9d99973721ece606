"""Losses of the distance between θ and a record x ∈ R^d: the squared distance for means, the distance for medians."""

from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.core.arrays import Vector, block_sums, is_traced, parameter, weighted_gram
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums, column_sums, square_sum, weighted_gram_of
from kngjax.data.records import Data, QuadraticSummary, Records, WeightedRecords
from kngjax.geometry.reach import Reach
from kngjax.losses.base import AbstractLoss, Ends, Interval, Rows, WholeScore, require_rows
from kngjax.losses.estimates import geometric_median
from kngjax.losses.quantile import QuantileLoss


def _steps(bounds: Bounds, reach: Reach, dimension: int) -> tuple[Array, Array]:
    """The smallest and the largest θ_j - x_j over Θ and the bounds, each of shape (d,)."""
    lower, upper = bounds.features(dimension)
    smallest, largest = jax.vmap(lambda axis: reach.linear_interval(axis, axis))(jnp.eye(dimension))
    return smallest - upper, largest - lower


def _squared_distances(bounds: Bounds, reach: Reach, dimension: int) -> tuple[Array, Array]:
    """The smallest and the largest ‖θ - x‖² over the box about Θ and the bounds."""
    first, last = _steps(bounds, reach, dimension)
    farthest = jnp.maximum(jnp.abs(first), jnp.abs(last))
    return jnp.sum(jnp.square(jnp.clip(0.0, first, last))), jnp.sum(jnp.square(farthest))


class SquaredDistanceLoss(AbstractLoss):
    """ℓ(θ; x) = ½‖x - θ‖_2²; one record's gradient is θ - x, and ∇ℓ_n = nθ - Σx: the mean minimises it.

    Two records' gradients differ by x' - x, whatever θ is. For x in the box [l, u] an exchange moves coordinate j by at
    most u_j - l_j. One record more moves it by θ_j - x_j, so add_remove needs a bounded Θ. Reimherr and Awan (2019,
    section 4.1) take the full square, and print the sensitivity 2r where ‖x‖ ≤ r gives 4r; their final density is
    right.
    """

    has_response: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = True
    gradient_slope: ClassVar[float | None] = 1.0
    takes_weights: ClassVar[bool] = True

    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """θ - x, or under replace, where θ cancels and the sign is of no matter, x."""
        return bounds.features(dimension) if adjacency is Adjacency.REPLACE else _steps(bounds, reach, dimension)

    def range_depends_on_theta(self, adjacency: Adjacency) -> bool:
        return adjacency is Adjacency.ADD_REMOVE

    def score_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Interval:
        """x' - x as if every score were 1."""
        if adjacency is Adjacency.REPLACE:
            return 1.0, 1.0
        return super().score_range(bounds, reach, adjacency, dimension)

    def why_no_points(self, adjacency: Adjacency) -> str | None:
        if adjacency is Adjacency.REPLACE:
            return None
        return "the changes of a mean under add_remove fill a box, which norm=None takes as the ball"

    def describe_gradient(self, adjacency: Adjacency, score: tuple[float, float] | None) -> tuple[str, str]:
        exchange = adjacency is Adjacency.REPLACE
        most = "u_j - l_j, the width of the bounds" if exchange else "the largest |theta_j - x_j| over Theta"
        return "theta - x, so", most

    def why_no_ridge(self) -> str:
        return "objective perturbation is for regression; for a mean take KNG, or under replace KNormMechanism"

    def proved_instead(self, dimension: int, is_uniform: bool) -> str:
        return "under replace KNormMechanism(...) is proved and estimates the same mean"

    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        nearest, farthest = _squared_distances(bounds, reach, dimension)
        return 0.5 * nearest, 0.5 * farthest

    @property
    def whole_score(self) -> WholeScore:
        return WholeScore("distances")

    def sums(self, records: Rows, *, has_squares: bool = True) -> ExactSums:
        """(n, nI, Σx, Σ‖x‖²), exactly: the quadratic ½nθ'θ - θ'Σx + ½Σ‖x‖². With weights (n, ΣwI, Σwx, Σw‖x‖²).

        **Arguments:** `has_squares`: whether the last is needed; else it may be 0.
        """
        x = np.asarray(records.rows.x)
        if isinstance(records, WeightedRecords):
            table = weighted_gram_of(np.column_stack([np.ones(len(x)), x]), np.asarray(records.weights))
            identity = np.eye(x.shape[1], dtype=int).astype(object)
            return ExactSums(records.num_records, table[0, 0] * identity, table[0, 1:], table.diagonal()[1:].sum())
        count, dimension = x.shape
        identity, squares = np.eye(dimension, dtype=int).astype(object), square_sum(x) if has_squares else Fraction(0)
        return ExactSums(count, count * identity, column_sums(x), squares)

    def summarise(self, records: Rows) -> QuadraticSummary:
        """(n, nI, Σx, Σ‖x‖²), each correctly rounded; in compiled simulations in blocks."""
        x = records.rows.x
        if not is_traced(x):
            return self.sums(records).summary()
        count, dimension = x.shape
        weights = records.times_weights(jnp.ones((count,)))

        def add(x, w):
            products = w[:, None] * x
            return jnp.sum(w), jnp.sum(products, axis=0), jnp.sum(products * x, axis=0)

        total, moment, squares = block_sums(add, (x, weights))
        return QuadraticSummary(parameter(float(count)), total * jnp.eye(dimension), moment, jnp.sum(squares))

    def _summary(self, data: Data) -> QuadraticSummary:
        return data if isinstance(data, QuadraticSummary) else self.summarise(require_rows(data))

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        summary = self._summary(data)
        return summary.value(theta, summary.gradient(theta))

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        """nθ - Σx."""
        return self._summary(data).gradient(theta)

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """nI."""
        return jnp.asarray(self._summary(data).gram)

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """w_i(θ - x_i)."""
        records = require_rows(data)
        x = jnp.asarray(records.rows.x)
        weights = records.times_weights(jnp.ones(x.shape[0]))
        return weights[:, None] * (jnp.broadcast_to(jnp.asarray(theta), x.shape) - x)


class GeometricMedianLoss(AbstractLoss):
    """ℓ(θ; x) = ‖x - θ‖_2; one record's gradient is (θ - x)/‖θ - x‖_2: the geometric median minimises it.

    Every record's gradient has length 1 (0 at θ = x, a null set). So Δ = 2 in the l2 norm under replace, and 1 under
    add_remove. No bound on x enters the proof, but `Bounds` asks for one and clips to it: choose it generously. Θ must
    be bounded, since the gradient is (Reimherr and Awan 2019, section 4.4, leave the base measure open). With one
    coordinate this is twice the check loss at τ = ½. Weights in [0, W] multiply Δ by W (`kngjax.sensitivity.weighted`).
    """

    has_response: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = False
    gradient_length: ClassVar[float | None] = 1.0
    takes_weights: ClassVar[bool] = True

    def gradient_range(self, bounds: Bounds, reach: Reach, adjacency: Adjacency, dimension: int) -> Ends:
        """[-1, 1] in each coordinate, of a unit vector."""
        return -jnp.ones(dimension), jnp.ones(dimension)

    def why_no_points(self, adjacency: Adjacency) -> str:
        return "the changes of a geometric median fill a Euclidean ball, which norm=None takes as the ball"

    def why_no_ridge(self) -> str:
        return (
            f"one record's Hessian under {type(self).__name__} is of any size near the record and not of rank one, so "
            "that no ridge makes up for it. Take KNG"
        )

    def proved_instead(self, dimension: int, is_uniform: bool) -> str | None:
        return "PrivateQuantile(0.5, ...) is proved and exact" if dimension == 1 else None

    def gradient_is_piecewise_constant(self, dimension: int) -> bool:
        return dimension == 1

    def value_range(self, bounds: Bounds, reach: Reach, dimension: int) -> Interval:
        nearest, farthest = _squared_distances(bounds, reach, dimension)
        return jnp.sqrt(nearest), jnp.sqrt(farthest)

    def minimise(self, records: Rows) -> Float[np.ndarray, " dimension"]:
        """Iterates as Weiszfeld does."""
        weights = np.asarray(records.weights) if isinstance(records, WeightedRecords) else None
        return geometric_median(np.asarray(records.rows.x), weights)

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """w_i(θ - x_i)/‖θ - x_i‖, or 0 at θ = x_i."""
        records = require_rows(data)
        x = jnp.asarray(records.rows.x)
        steps = jnp.broadcast_to(jnp.asarray(theta), x.shape) - x
        square = jnp.sum(jnp.square(steps), axis=1, keepdims=True)
        here = square == 0.0
        directions = jnp.where(here, 0.0, steps / jnp.sqrt(jnp.where(here, 1.0, square)))
        return records.times_weights(jnp.ones(x.shape[0]))[:, None] * directions

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        return block_sums(lambda rows: jnp.sum(rows, axis=0), (self.record_gradients(theta, data),))

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        records = require_rows(data)
        return block_sums(jnp.sum, (records.times_weights(_distances(theta, records)),))

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i w_i(I - u_i u_i')/‖θ - x_i‖ with u_i the direction; that is 0 for d = 1: the check loss's estimate.

        Distances below a thousandth of their mean count as that: the sum has no finite variance in the plane.
        """
        records = require_rows(data)
        x = jnp.asarray(records.rows.x)
        if x.shape[0] == 0:
            return jnp.zeros((x.shape[1], x.shape[1]))
        if x.shape[1] == 1:
            line: Any = Records(jnp.ones_like(x), x[:, 0])
            if isinstance(records, WeightedRecords):
                # w|x - θ| is the loss of the record (w, wx).
                weights = jnp.asarray(records.weights)
                line = Records(weights[:, None], weights * x[:, 0])
            return 2.0 * QuantileLoss(0.5).hessian(theta, line)
        distances = _distances(theta, records)
        curvatures = 1.0 / jnp.maximum(distances, 1e-3 * block_sums(jnp.sum, (distances,)) / x.shape[0])
        curvatures = records.times_weights(curvatures)
        directions = self.record_gradients(theta, records.rows)
        return block_sums(jnp.sum, (curvatures,)) * jnp.eye(x.shape[1]) - weighted_gram(curvatures, directions)


def _distances(theta: Vector, records: Rows) -> Float[Array, " records"]:
    """‖x_i - θ‖_2."""
    x = jnp.asarray(records.rows.x)
    return jnp.linalg.norm(x - jnp.broadcast_to(jnp.asarray(theta), x.shape), axis=1)
