"""The check loss of quantile regression."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm as normal
from jaxtyping import Array, Float

from kngjax.accounting.exact_costs import exactly
from kngjax.core.arrays import Scalar, Vector, block_sums, parameter, weighted_gram
from kngjax.data.records import Data, Records
from kngjax.losses.base import AbstractResidualLoss, Interval, Number, WholeScore, require_records
from kngjax.losses.estimates import quantile_regression
from kngjax.losses.public_numbers import check_level


def _standard_deviation(values: Array) -> Array:
    count = values.shape[0]
    mean = block_sums(jnp.sum, (values,)) / count
    return jnp.sqrt(block_sums(jnp.sum, (jnp.square(values - mean),)) / count)


class AbstractLevelLoss(AbstractResidualLoss):
    """A loss of a quantile: its score is a probability less the level τ, and so lies in [-τ, 1-τ].

    `tau`: τ, strictly between 0 and 1. Public.
    """

    tau: Scalar = eqx.field(converter=parameter)

    def __check_init__(self):
        check_level(self.tau)

    @property
    def target(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(self.tau)

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        return -jnp.asarray(self.tau), 1.0 - jnp.asarray(self.tau)


class QuantileLoss(AbstractLevelLoss):
    """ρ_τ(r) = r(τ - 1{r ≤ 0}) with r = y - x'θ; one record's gradient is (1{y ≤ x'θ} - τ)·x.

    Score interval: the indicator is 0 or 1, so s ∈ [-τ, 1-τ], whatever y and θ: only x needs bounds. For
    features in [-1, 1] two records' gradients can differ by 2·max(τ, 1-τ): both lie on the same side of the plane
    and their features have opposite signs. Reimherr and Awan (2019, section 4.5) print 2(1-τ)C_X, which at τ = .9
    makes the true ε nine times the claimed one. With a weight w ≥ 0 a record counts as (wx, wy) does, since
    w·ρ_τ(r) = ρ_τ(w·r).

    **Arguments:** `tau`: the quantile level, strictly between 0 and 1. Public.
    """

    score_is_piecewise_constant: ClassVar[bool] = True
    is_homogeneous: ClassVar[bool] = True

    @property
    def whole_score(self) -> WholeScore:
        return WholeScore("check", exactly(float(self.tau), "tau"))

    def residual_value(self, residual: Number) -> Float[Array, ""]:
        return residual * (self.tau - jnp.where(jnp.asarray(residual) <= 0, 1.0, 0.0))

    def residual_slope(self, residual: Number) -> Float[Array, ""]:
        return self.tau - jnp.where(jnp.asarray(residual) <= 0, 1.0, 0.0)

    def residual_minimiser(self) -> Number:
        return 0.0

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        """0 almost everywhere; `hessian` estimates the curvature of the expected loss instead."""
        return jnp.zeros_like(predictor)

    def curvature_bound(self, predictor: Interval) -> Number:
        """∞: the score jumps at η = y, so no number bounds its slope."""
        return jnp.inf

    def score_step(self) -> Interval:
        return -jnp.asarray(self.tau), jnp.asarray(1.0)

    def proved_instead(self, dimension: int, is_uniform: bool) -> str:
        return (
            "ObjectivePerturbation(SmoothedQuantileLoss(tau, bandwidth), ...) is proved for any number of "
            "coefficients; its bias: it estimates the quantile of y plus logistic noise of that scale"
        )

    def minimise(self, records: Records) -> Float[np.ndarray, " dimension"]:
        """Solves linear programmes on the rows that matter."""
        return quantile_regression(np.asarray(records.x), np.asarray(records.y), float(self.tau))

    def hessian(self, theta: Vector, data: Data) -> Float[Array, "dimension dimension"]:
        """Σ_i f̂_i x_i x_i' with Powell's kernel estimate of the residual density at 0 (Koenker 2005, section 3.4.2).

        The bandwidth is min(s, IQR/1.34)·(Φ^{-1}(τ + h) - Φ^{-1}(τ - h)) of the residuals with Hall and Sheather's
        h = n^{-1/3} z^{2/3} (1.5 φ(q)²/(2q² + 1))^{1/3}, q = Φ^{-1}(τ), z = Φ^{-1}(.975). A matter of tuning and of
        standard errors: no guarantee and no exact sampler rests on it.
        """
        records = require_records(data)
        residuals = jnp.asarray(records.y) - records.predictors(theta)
        quartiles = jnp.quantile(residuals, jnp.array([0.25, 0.75]))
        spread = jnp.fmin(_standard_deviation(residuals), (quartiles[1] - quartiles[0]) / 1.34)
        quantile = normal.ppf(self.tau)
        shape = 1.5 * normal.pdf(quantile) ** 2 / (2.0 * quantile**2 + 1.0)
        half_width = (normal.ppf(0.975) ** 2 * shape / residuals.shape[0]) ** (1.0 / 3.0)
        levels = jnp.clip(jnp.stack([self.tau - half_width, self.tau + half_width]), 1e-3, 1.0 - 1e-3)
        bandwidth = jnp.maximum(spread, 1e-8) * jnp.diff(normal.ppf(levels))[0]
        weights = normal.pdf(residuals / bandwidth) / bandwidth
        return weighted_gram(weights, records.x)
