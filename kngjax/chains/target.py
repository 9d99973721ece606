"""Tells a sampler all that it may know of a mechanism: a log-density, its domain, and the structure of its loss."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.modules import AbstractModule
from kngjax.data.records import Data
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss
from kngjax.sensitivity.pointwise import PointwiseSensitivity


class Target(AbstractModule):
    """log f(θ) = -rate·score(θ; D) + log ν(θ), up to a constant; holds private data.

    **Arguments:**

    - `loss`, `data`: what the score is computed from.
    - `domain`: Θ with its base measure ν.
    - `norm`: the score is ‖∇ℓ_n(θ; D)‖_K in this norm, or ℓ_n(θ; D) itself if it is None.
    - `rate`: c = ε/(2Δ), in units of 1/score.
    - `pointwise`: where Δ depends on θ, how the score does; on a bounded Θ it is then never below ‖∇ℓ_n(θ; D)‖_K.
    """

    loss: AbstractLoss
    data: Data
    domain: AbstractDomain
    norm: AbstractNorm | None
    rate: Scalar
    pointwise: PointwiseSensitivity | None = None

    @property
    def dimension(self) -> int:
        return self.data.dimension

    @property
    def is_piecewise_constant(self) -> bool:
        """Tells whether the density, on a uniform domain, takes finitely many values; its gradient is then useless."""
        return self.norm is not None and self.loss.gradient_is_piecewise_constant(self.dimension)

    @property
    def is_piecewise_linear(self) -> bool:
        """Tells whether along every line the log-density is linear between finitely many known breakpoints."""
        return self.loss.score_is_piecewise_constant and self.domain.is_uniform

    def score_from_gradient(self, gradient: Vector, theta: Vector) -> Float[Array, ""]:
        """Returns the score of KNG from the gradient at θ."""
        assert self.norm is not None
        return self.norm_at(theta)(gradient)

    def norm_at(self, theta: Vector) -> AbstractNorm:
        """Returns the norm of the gradient at θ that is the score of KNG."""
        assert self.norm is not None
        return self.norm if self.pointwise is None else self.pointwise.norm_at(theta)

    def score(self, theta: Vector) -> Float[Array, ""]:
        """‖∇ℓ_n(θ; D)‖_K or ℓ_n(θ; D)."""
        if self.norm is None:
            return self.loss.value(theta, self.data)
        return self.score_from_gradient(self.loss.gradient(theta, self.data), theta)

    def log_density(self, theta: Vector) -> Float[Array, ""]:
        """log f(θ) up to a constant; -inf outside Θ."""
        return -self.rate * self.score(theta) + self.domain.log_density(theta)

    def unconstrained_log_density(self, unconstrained: Vector) -> Float[Array, ""]:
        """log f of θ = bijector(u) plus the log-determinant of the Jacobian: the density of u ∈ R^d."""
        bijector = self.domain.bijector(self.dimension)
        theta = bijector(jnp.asarray(unconstrained))
        # Rounding may put bijector(u) on the boundary, where a membership test would make a wall of -inf.
        within = self.domain.interior_point(self.dimension) if self.domain.is_uniform else theta
        log_base = self.domain.distribution(self.dimension).log_prob(within)
        jacobian = bijector.log_abs_det_jacobian(unconstrained, theta)
        return -self.rate * self.score(theta) + log_base + jacobian
