"""Mechanisms that add Gaussian noise to the minimiser of a regularised loss."""

import abc
from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Scalar
from kngjax.data.records import Data, QuadraticSummary
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import NormalNoise
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.sensitivity import moments

Metric = Literal["identity", "hessian", "hessian_squared"]


class AbstractGaussianMechanism(AbstractDirectMechanism):
    """θ̂ + N(0, A^{-1}/γ) with θ̂ = argmin ℓ_n(θ; D) + ½λ|θ|²: its change by one record is known.

    `regularization`: λ. `metric`: A, "identity" for I, "hessian" for H = ∇²ℓ_n + λI or "hessian_squared" for H².
    `max_records`: a public number that n does not exceed, or None where none is needed.
    """

    regularization: eqx.AbstractVar[Scalar]
    metric: eqx.AbstractVar[str]
    max_records: eqx.AbstractVar[Scalar | None]

    @abc.abstractmethod
    def gamma_for(self, dimension: int) -> Float[Array, ""]:
        """γ for d coefficients, 0 or NaN if there is none; runs under jit."""

    @abc.abstractmethod
    def known_gamma(self, dimension: int) -> float:
        """γ for d coefficients, computed once."""

    @abc.abstractmethod
    def epsilon_at(self, delta: Any, dimension: int | None = None) -> float | None:
        """The smallest ε that is proved at this δ, whatever the data; None where none is.

        **Arguments:** `dimension`: d, where scalar bounds leave it open.
        """

    @property
    def noise(self) -> AbstractNoiseFacts:
        return GaussianNoise(self)

    @property
    def power(self) -> Literal[0, 1, 2]:
        """p with A = H^p."""
        powers: dict[str, Literal[0, 1, 2]] = {"identity": 0, "hessian": 1, "hessian_squared": 2}
        return powers[self.metric]

    def precision(self, data: Data) -> Float[Array, "dimension dimension"]:
        """H = X'X + λI of ridge regression. Private."""
        return jnp.asarray(self._own(data, QuadraticSummary).gram) + self.regularization * jnp.eye(data.dimension)

    def minimiser(self, data: Data) -> tuple[Float[Array, " dimension"], Bool[Array, ""]]:
        """θ̂ of ridge regression, NaN if it was not found, and whether it was. Private."""
        theta = jnp.linalg.solve(self.precision(data), jnp.asarray(self._own(data, QuadraticSummary).moment))
        return theta, jnp.all(jnp.isfinite(theta))

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """θ̂ + (γA)^{-1/2}z with z standard normal."""
        theta, succeeded = self.minimiser(data)
        gamma = self.gamma_for(data.dimension)
        succeeded &= jnp.isfinite(gamma) & (gamma > 0.0)
        if self.max_records is not None:
            count = data.count if isinstance(data, QuadraticSummary) else data.num_records
            succeeded &= jnp.asarray(count <= self.max_records)
        noise = jax.random.normal(key, (data.dimension, num_draws)) / jnp.sqrt(gamma)
        if self.power:
            factor = jnp.linalg.cholesky(self.precision(data))
            if self.power == 1:
                noise = jax.scipy.linalg.solve_triangular(factor, noise, lower=True, trans=1)
            else:
                noise = jax.scipy.linalg.cho_solve((factor, True), noise)
        return (theta[:, None] + noise).T, succeeded & jnp.all(jnp.isfinite(noise))


class GaussianNoise(AbstractNoiseFacts):
    """Says what is known of the noise, which is on the minimiser, and of what the ridge takes."""

    def least(self, dimension: int, num_records: int | None) -> Any:
        """(γA)^{-1/2}; where A depends on the data, at the largest eigenvalue that X'X of `max_records` can have."""
        mechanism = self.mechanism
        radius = float(moments.feature_radius(mechanism.bounds, dimension))
        largest = float(mechanism.regularization) + float(mechanism.max_records or 0.0) * radius**2
        return np.full(dimension, (mechanism.known_gamma(dimension) * largest**mechanism.power) ** -0.5)

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """N(0, A^{-1}/γ) about the minimiser with the ridge λ."""
        return self.of_error(len(hessian), {}).expected(hessian)

    def of_error(self, dimension: int, published: Mapping[str, np.ndarray]) -> NormalNoise:
        """(H + λI)(θ̃ - θ̂) of noise N(0, A^{-1}/γ) on θ̂, A a power of H + λI."""
        mechanism = self.mechanism
        return NormalNoise(mechanism.known_gamma(dimension), 2 - mechanism.power, float(mechanism.regularization))
