"""Losses of the distance between θ and a record x ∈ R^d: the squared distance for means, the distance for medians."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import Vector, block_sums, is_traced, parameter, weighted_gram
from kngjax.data.exact_sums import ExactSums, column_sums, square_sum
from kngjax.data.records import Data, QuadraticSummary, Records
from kngjax.losses.base import AbstractLoss, require_records
from kngjax.losses.quantile import QuantileLoss


class SquaredDistanceLoss(AbstractLoss):
    """ℓ(θ; x) = ½‖x - θ‖_2²; one record's gradient is θ - x, and ∇ℓ_n = nθ - Σx: the mean minimises it.

    Two records' gradients differ by x' - x, whatever θ: for x in the box [l, u] coordinate j moves by at most u_j - l_j
    (replace). One record more moves it by θ_j - x_j, which needs a bounded Θ (add_remove). Reimherr and Awan (2019,
    section 4.1) take the full square, whose gradient differs by 2(x' - x), and print 2r for its sensitivity where
    ‖x‖ ≤ r gives 4r; their final density is right.
    """

    has_response: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = True

    def sums(self, records: Records) -> ExactSums:
        """(n, nI, Σx, Σ‖x‖²), exactly: the quadratic ½nθ'θ - θ'Σx + ½Σ‖x‖²."""
        x = np.asarray(records.x)
        count, dimension = x.shape
        return ExactSums(count, count * np.eye(dimension, dtype=int).astype(object), column_sums(x), square_sum(x))

    def summarise(self, records: Records) -> QuadraticSummary:
        """(n, nI, Σx, Σ‖x‖²), each correctly rounded; in compiled simulations in blocks."""
        x = records.x
        if not is_traced(x):
            return self.sums(records).summary()
        count, dimension = x.shape
        moment, squares = block_sums(lambda rows: (jnp.sum(rows, axis=0), jnp.sum(rows * rows, axis=0)), (x,))
        return QuadraticSummary(parameter(float(count)), parameter(count * np.eye(dimension)), moment, jnp.sum(squares))

    def _summary(self, data: Data) -> QuadraticSummary:
        return data if isinstance(data, QuadraticSummary) else self.summarise(require_records(data))

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
        """θ - x_i."""
        x = jnp.asarray(require_records(data).x)
        return jnp.broadcast_to(jnp.asarray(theta), x.shape) - x


class GeometricMedianLoss(AbstractLoss):
    """ℓ(θ; x) = ‖x - θ‖_2; one record's gradient is (θ - x)/‖θ - x‖_2: the geometric median minimises it.

    Every record's gradient has length 1 (0 at θ = x, a null set), so two of them differ by at most 2 in the l2 norm
    (replace) and one of them counts 1 (add_remove), whatever the data: no bound on x enters the proof, though `Bounds`
    asks for one and clips to it, so choose it generously. Θ must be bounded, since the gradient norm is (Reimherr and
    Awan 2019, section 4.4, who leave the base measure open). With one coordinate this is the check loss at τ = ½,
    doubled.
    """

    has_response: ClassVar[bool] = False
    value_needs_response_bounds: ClassVar[bool] = False

    def record_gradients(self, theta: Vector, data: Data) -> Float[Array, "records dimension"]:
        """(θ - x_i)/‖θ - x_i‖, or 0 at θ = x_i."""
        x = jnp.asarray(require_records(data).x)
        steps = jnp.broadcast_to(jnp.asarray(theta), x.shape) - x
        square = jnp.sum(jnp.square(steps), axis=1, keepdims=True)
        here = square == 0.0
        return jnp.where(here, 0.0, steps / jnp.sqrt(jnp.where(here, 1.0, square)))

    def gradient(self, theta: Vector, data: Data) -> Float[Array, " dimension"]:
        return block_sums(lambda rows: jnp.sum(rows, axis=0), (self.record_gradients(theta, data),))

    def value(self, theta: Vector, data: Data) -> Float[Array, ""]:
        x = jnp.asarray(require_records(data).x)
        return block_sums(jnp.sum, (jnp.linalg.norm(x - jnp.broadcast_to(jnp.asarray(theta), x.shape), axis=1),))

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i (I - u_i u_i')/‖θ - x_i‖ with u_i the direction; for d = 1, where that is 0, the check loss's estimate.

        Distances below a thousandth of their mean count as that: the sum has no finite variance in the plane.
        """
        x = jnp.asarray(require_records(data).x)
        if x.shape[0] == 0:
            return jnp.zeros((x.shape[1], x.shape[1]))
        if x.shape[1] == 1:
            line = Records(jnp.ones_like(x), x[:, 0])
            return 2.0 * QuantileLoss(0.5).hessian(theta, line)
        distances = jnp.linalg.norm(x - jnp.broadcast_to(jnp.asarray(theta), x.shape), axis=1)
        weights = 1.0 / jnp.maximum(distances, 1e-3 * block_sums(jnp.sum, (distances,)) / x.shape[0])
        directions = self.record_gradients(theta, data)
        return block_sums(jnp.sum, (weights,)) * jnp.eye(x.shape[1]) - weighted_gram(weights, directions)
