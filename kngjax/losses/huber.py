"""Huber's loss and its smooth form: robust regression with no bound on the response."""

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, parameter
from kngjax.losses.base import AbstractResidualLoss, CurvatureFacts, Interval, Number
from kngjax.losses.public_numbers import check_positive, check_width, whole_sizes
from kngjax.losses.smooth_scores import PseudoHuberScore
from kngjax.losses.verified_scores import HuberScore, number


class AbstractThresholdLoss(AbstractResidualLoss):
    """A loss that turns from quadratic to linear about |r| = k: its score lies in [-k, k], and its curvature in [0, 1].

    `k`: the threshold, from 1e-100 to 1e100 in the units of y. Public.
    """

    k: Scalar = eqx.field(converter=parameter)

    target: ClassVar[str] = "mean"

    def __check_init__(self):
        check_width("the threshold k", self.k)

    def residual_minimiser(self) -> Number:
        return 0.0

    def curvature_bound(self, predictor: Interval) -> Number:
        """1: ρ'' is 1 for |r| < k and 0 beyond; or (1 + (r/k)²)^(-3/2), which is largest at r = 0."""
        return 1.0

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        return -jnp.asarray(self.k), jnp.asarray(self.k)


class HuberLoss(AbstractThresholdLoss):
    """ρ(r) = ½r² for |r| ≤ k, k|r| - ½k² beyond; score -clip(r, -k, k).

    Score interval: [-k, k] by the clip, whatever y and θ: only x needs bounds.

    **Arguments:** `k`: the threshold, from 1e-100 to 1e100 in the units of y. Public.
    """

    def verified_score(self) -> HuberScore:
        return HuberScore(number(self.k))

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        clipped = self.residual_slope(residual)
        return clipped * (residual - 0.5 * clipped)

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        return jnp.clip(jnp.asarray(residual), -self.k, self.k)

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return jnp.where(jnp.abs(response - predictor) <= self.k, 1.0, 0.0)


class PseudoHuberLoss(AbstractThresholdLoss):
    """ρ(r) = k²(√(1 + (r/k)²) - 1); score -r/√(1 + (r/k)²).

    Score interval: |r|/√(1 + (r/k)²) increases to its limit k, so s ∈ [-k, k], whatever y and θ: only x needs
    bounds. Smooth and strictly convex. With t = 1/(1 + (r/k)²) ρ''² + (s/k)⁴ is t³ + (1 - t)², which is convex and so
    largest at the ends of [0, 1], where it is 1.

    **Arguments:** `k`: where the loss turns from quadratic to linear, positive, in the units of y. Public.
    """

    is_smooth: ClassVar[bool] = True
    has_curvature_facts: ClassVar[bool] = True

    @staticmethod
    def public_threshold(num_records: int, dimension: int, scale: float, epsilon: float) -> float:
        """k = scale·max(½, ε√n/(10d)), from public facts alone: KNG's noise is then half of the sampling error.

        A larger k makes the estimate more like least squares, and the noise of KNG larger. Under replace and for
        features within [-1, 1], the noise of a coordinate of the gradient has a deviation of about 4kd/(√3·ε), and the
        gradient itself one of about ½·scale·√n. The rule makes their ratio ½. A k below half of the scale reduces noise
        little. `experiments.linear` measures both on three tables.

        **Arguments:** `num_records`: n under replace; a public guess of it under add_remove. `dimension`: d, with the
        intercept. `scale`: a public guess of the standard deviation of responses about the regression, in the units of
        y. `epsilon`: of the mechanism. A wrong guess costs accuracy and no privacy. A scale that is computed from the
        data voids the guarantee, and so does such an n under add_remove.
        """
        count, size = whole_sizes(num_records, dimension)
        check_positive("scale", scale)
        check_positive("epsilon", epsilon)
        return float(scale) * max(0.5, float(epsilon) * math.sqrt(count) / (10.0 * size))

    def verified_score(self) -> PseudoHuberScore:
        return PseudoHuberScore(number(self.k))

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        # r²/(√(1 + (r/k)²) + 1) does not cancel for small residuals nor, in this order, overflow for large ones.
        residual = jnp.asarray(residual)
        return residual * (residual / (jnp.hypot(self.k, residual) / self.k + 1.0))

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        residual = jnp.asarray(residual)
        return residual * (self.k / jnp.hypot(self.k, residual))

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        # A cube costs a tenth of a power of -3/2.
        return (self.k / jnp.hypot(self.k, jnp.asarray(response - predictor))) ** 3

    def curvature_facts(self, predictor: Number, response: Number, reach: Number) -> CurvatureFacts:
        """log ρ'' = -(3/2)·log(1 + T/k²) is convex in T = r², and T(u) = r² - 2ru + u².

        So its tangent in T at r² bounds it below: a = 3r/(k² + r²) and m = 3/(k² + r²). ρ'' is even in r and falls with
        |r|, so its mean over a segment of length U is least on the one that leads away from 0, where with p = |r|/k and
        q = p + U/k it is (p + q)/(√(1 + p²)√(1 + q²)(q√(1 + p²) + p√(1 + q²))), without cancellation. |ρ'''| =
        3(|r|/k²)(1 + (r/k)²)^(-5/2) is largest at r = k/2, where it is (3/2)(4/5)^(5/2)/k < .85866/k.
        """
        # A residual beyond 1e100·k counts as that: its record has no curvature to speak of.
        scaled = jnp.clip(jnp.asarray(response - predictor) / self.k, -1e100, 1e100)
        near, far = jnp.abs(scaled), jnp.abs(scaled) + reach / self.k
        at_near, at_far = jnp.hypot(1.0, near), jnp.hypot(1.0, far)
        share = 1.0 / (at_near * at_near)
        mean = (near + far) / (at_near * at_far * (far * at_near + near * at_far))
        third = jnp.full_like(scaled, 0.85866) / self.k
        return CurvatureFacts(3.0 * scaled * share / self.k, 3.0 * share / self.k**2, mean, third)

    def bound_determinant(self, change: Number, dimension: int) -> Number:
        """(3d/2)·log(1 + 2x/(3d)): Jensen's inequality on Σ(h_i/d)·(3/2)·log(1 + (T_i(u) - T_i)/(k² + T_i))."""
        scale = 1.5 * dimension
        return scale * jnp.log1p(jnp.maximum(jnp.asarray(change) / scale, -1.0 + 1e-9))
