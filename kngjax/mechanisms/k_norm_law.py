"""The law of what is released with K-norm noise, means and sums alike, and what is known of that noise."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.arrays import Vector, float64
from kngjax.data.records import Data, QuadraticSummary
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.geometry.scaled_norms import AbstractScaledNoise
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.sensitivity import sums


class AbstractKNormLaw(AbstractDirectMechanism):
    """Draws θ with density ∝ exp(-(ε/Δ)‖Σx - θ‖_K), or of means ∝ exp(-(nε/Δ)‖x̄ - θ‖_K): pure ε.

    `statistic`: "sum" or "mean". Δ is the most by which a record changes Σx in the norm.
    """

    statistic: eqx.AbstractVar[str]
    # Its minimiser is the mean.
    loss: ClassVar[SquaredDistanceLoss] = SquaredDistanceLoss()
    has_regressors: ClassVar[bool] = False

    @property
    def noise(self) -> "KNormNoise":
        # No record tells how far a sum of these records lies from a sum of others.
        return KNormNoise(self, has_known_error=not self._is_sum)

    @property
    def _is_sum(self) -> bool:
        return self.statistic == "sum"

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return sums.sum_changes(self.bounds, self.adjacency, dimension)

    @abc.abstractmethod
    def score_norm(self, dimension: int) -> AbstractNorm:
        """The norm of the noise."""

    @abc.abstractmethod
    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ of Σx; runs under jit."""

    @abc.abstractmethod
    def noise_in_fractions(self, dimension: int, num_records: int) -> AbstractScaledNoise | None:
        """Δ/(nε), of a sum Δ/ε, in the norm, without rounding; None where it is not known so."""

    def _rate(self, summary: QuadraticSummary) -> Float[Array, ""]:
        count = 1.0 if self._is_sum else summary.count
        return count * self.epsilon / self.sensitivity_value(summary.dimension)

    def _location(self, summary: QuadraticSummary) -> Float[Array, " dimension"]:
        """Σx or x̄."""
        return jnp.asarray(summary.moment) / (1.0 if self._is_sum else summary.count)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -(nε/Δ)·‖x̄ - θ‖_K - log ∫, normalised; of a sum alike. Private: a function of the data."""
        summary = self._own(data, QuadraticSummary)
        norm, rate = self.score_norm(summary.dimension), self._rate(summary)
        return -rate * norm(self._location(summary) - jnp.asarray(theta)) - k_norm_log_mass(
            norm, rate, summary.dimension
        )

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """x̄ + z, or Σx + z, with z from the K-norm density."""
        summary = self._own(data, QuadraticSummary)
        norm = self.score_norm(summary.dimension)
        noise = k_norm_noise(norm, key, self._rate(summary), (num_draws,), summary.dimension)
        return jnp.broadcast_to(self._location(summary), noise.shape) + noise, jnp.asarray(True)


class KNormNoise(AbstractNoiseFacts):
    """Says what is known of the noise: all, as it does not depend on the records."""

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """Gives the exact law of the error from K-norm noise of rate ε/Δ on Σx, whatever the records are."""
        return self._law(len(hessian)).expected(hessian)._replace(is_exact=True)

    def of_gradient(self, dimension: int) -> GradientNoise:
        """nθ̃ - Σx is the noise itself, of rate ε/Δ."""
        if self.mechanism._is_sum:
            raise ValueError("the likelihood of a release is served for means, not for sums: statistic='mean'")
        return self._law(dimension)

    def _law(self, dimension: int) -> GradientNoise:
        with float64():
            rate = float(self.mechanism.epsilon) / float(self.mechanism.sensitivity_value(dimension))
            return GradientNoise(self.mechanism.score_norm(dimension), rate, 0.0, None)

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """Centres a sum on 0, with the most that one record changes it as its size; a mean within its bounds.

        Nothing else is public of a sum of n records.
        """
        if not self.mechanism._is_sum:
            return super().typical_values(dimension)
        return np.zeros(dimension), np.asarray(self.mechanism._changes(dimension))

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"] | None:
        """Gives the standard deviation of the noise on each coordinate, where its law is known in fractions."""
        count = 1 if self.mechanism._is_sum else num_records
        noise = self.mechanism.noise_in_fractions(dimension, count) if count else None
        return None if noise is None else noise.deviations

    def least(self, dimension: int, num_records: int | None) -> Any:
        """Δ/(nε), of a sum Δ/ε, times how far the unit ball reaches in each coordinate: the scale of Laplace noise."""
        norm = self.mechanism.score_norm(dimension)
        rate = (1 if self.mechanism._is_sum else num_records or 0) * float(self.mechanism.epsilon)
        extents = np.array([float(norm.dual(axis)) for axis in np.eye(dimension)])
        return extents * (float(self.mechanism.sensitivity_value(dimension)) / rate if rate else 0.0)
