"""The pairs of laws that a mechanism has with and without one person, each by the few numbers that matter.

Every field has shape (n,), one number a person, or () where it is the same for all. The profiles are the larger of both
directions, log δ(D‖D') and log δ(D'‖D).
"""

import abc
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.modules import AbstractModule
from kngjax.core.owner_only import OwnerOnly, without_fields
from kngjax.mechanisms.noise import gaussian_profiles, objective_profiles
from kngjax.owner.per_instance.chunks import CHUNK

Numbers = Any


class AbstractPair(OwnerOnly, AbstractModule):
    """Two laws that differ by one person.

    `largest_chunk`: how many people may be in work at a time, by the numbers that a profile holds of each.
    """

    largest_chunk: ClassVar[int] = CHUNK
    instead: ClassVar[str] = "the owner keeps the report by its save_for_owner"

    @abc.abstractmethod
    def log_delta(self, epsilon: Any) -> Float[Array, "..."]:
        """log δ(ε), the larger of the two directions; elementwise."""

    @abc.abstractmethod
    def renyi(self, alpha: Any) -> Float[Array, "..."]:
        """Returns the larger Rényi divergence of order α > 1 of the two directions; elementwise."""

    @abc.abstractmethod
    def _first_guess(self, log_delta: Any) -> Float[Array, "..."]:
        """About the ε that belongs to δ, rather above it."""

    def epsilon(self, log_delta: Any) -> Float[Array, "..."]:
        """Returns the smallest ε with log δ(ε) ≤ log δ, rounded outward; elementwise."""
        return gaussian_profiles.epsilon_at(self.log_delta, log_delta, self._first_guess(log_delta))


@without_fields
class PosteriorPair(AbstractPair):
    """N(θ̂, (γH)^{-1}) and N(θ̂', (γH')^{-1}): OPS, and output perturbation in the metric of the Hessian.

    **Arguments:** `leverage`, `residual`: μ ≥ 0 and r, out of sample. `gamma`: γ > 0.
    """

    leverage: Numbers
    residual: Numbers
    gamma: Numbers

    def log_delta(self, epsilon: Any) -> Float[Array, "..."]:
        return gaussian_profiles.posterior_sample_log_delta(epsilon, self.leverage, self.residual, self.gamma)

    def renyi(self, alpha: Any) -> Float[Array, "..."]:
        return gaussian_profiles.posterior_sample_renyi(alpha, self.leverage, self.residual, self.gamma)

    def _first_guess(self, log_delta: Any) -> Float[Array, "..."]:
        return gaussian_profiles.posterior_sample_epsilon_bound(
            jnp.exp(log_delta), self.leverage, self.residual, self.gamma
        )


@without_fields
class ShiftPair(AbstractPair):
    """N(θ̂, I/γ) and N(θ̂', I/γ): one fixed covariance, a Gaussian mechanism.

    **Arguments:** `shift`: √γ‖θ̂' - θ̂‖_2.
    """

    shift: Numbers

    def log_delta(self, epsilon: Any) -> Float[Array, "..."]:
        return gaussian_profiles.gaussian_log_delta(epsilon, self.shift)

    def renyi(self, alpha: Any) -> Float[Array, "..."]:
        return gaussian_profiles.gaussian_renyi(alpha, self.shift)

    def _first_guess(self, log_delta: Any) -> Float[Array, "..."]:
        # P(L > ε) ≤ e^{-(ε - s²/2)²/(2s²)}.
        shift = jnp.asarray(self.shift)
        return 0.5 * jnp.square(shift) + shift * jnp.sqrt(-2.0 * log_delta)


@without_fields
class ObjectivePair(AbstractPair):
    """N(θ̂, σ²H^{-2}) and N(θ̂', σ²H'^{-2}): ridge regression with N(0, σ²I) noise in its objective.

    **Arguments:** `leverage`, `residual`: μ and r, out of sample. `length`: ‖x‖_2. `spread`: ‖H^{-1}x‖_2 with H of the
    smaller data set. `deviation`: σ.
    """

    # Some hundreds of nodes a person.
    largest_chunk: ClassVar[int] = 512

    leverage: Numbers
    residual: Numbers
    length: Numbers
    spread: Numbers
    deviation: Numbers

    def _numbers(self) -> tuple[Any, ...]:
        return self.leverage, self.residual, self.length, self.spread, self.deviation

    def log_delta(self, epsilon: Any) -> Float[Array, "..."]:
        return objective_profiles.objective_log_delta(epsilon, *self._numbers())

    def renyi(self, alpha: Any) -> Float[Array, "..."]:
        return objective_profiles.objective_renyi(alpha, *self._numbers())

    def _first_guess(self, log_delta: Any) -> Float[Array, "..."]:
        # With one covariance for both laws the means would be |x||r|/((1+μ)σ) apart.
        shift = jnp.abs(self.residual) * self.length / self.deviation
        tail = jnp.sqrt(-2.0 * log_delta)
        return 0.5 * jnp.square(shift) + shift * tail + self.leverage * (1.0 + tail)
