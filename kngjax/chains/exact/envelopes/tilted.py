"""The inverse envelope and its tilts: θ = θ̂ + T^{-1}y with y from exp(-c‖y‖ - h'y), which may lean towards Θ.

For every s, 1_Θ(θ) ≤ exp(σ(s) - s'θ) with σ the support function of Θ, so with h = T'^{-1}s
f(θ) ≤ exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y). Its mass is log-convex in s, and at s = 0 it is that of plain K-norm (or
normal) noise about θ̂: the best as long as θ̂ lies well inside of Θ.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.exact.envelopes.base import AbstractEnvelope, Proposals, Uniforms, excess, fit_parameters
from kngjax.chains.quadratic import QuadraticForm, support
from kngjax.chains.target import Target
from kngjax.core.arrays import Scalar, Vector
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.geometry.tilts import AbstractTiltedLaw, TiltedNormal

NUM_STEPS = 200
# Fits stay within this share of ‖h‖_* = c, where the tilted law has no mass.
LARGEST_TILT = 0.98


def can_tilt(norm: AbstractNorm | None) -> bool:
    """Tells whether tilted noise is known for this norm of y; None means normal noise."""
    return norm is None or norm.has_tilts


def tilted_law(norm: AbstractNorm | None, rate: Scalar, tilt: Vector) -> AbstractTiltedLaw:
    """Returns the law of y with density ∝ exp(-c‖y‖ - h'y) for ‖h‖_* < c, or ∝ exp(-½c|y|² - h'y)."""
    return TiltedNormal(rate, tilt) if norm is None else norm.tilted_law(rate, tilt)


def tilted_log_mass(norm: AbstractNorm | None, rate: Scalar, tilt: Vector) -> Float[Array, ""]:
    """log ∫ exp(-c‖y‖ - h'y) dy or log ∫ exp(-½c|y|² - h'y) dy, to some percent and smooth in h."""
    return TiltedNormal(rate, tilt).log_mass if norm is None else norm.tilted_log_mass(rate, tilt)


class TiltedInverse(AbstractEnvelope):
    """exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y), or the same with ½|y|² for ‖y‖.

    **Arguments:** `log_mass`: M = σ(s) - s'θ̂ + log ∫exp(-c‖y‖ - h'y) dy - log |det T|. `direction`: s. `law`: of y;
    None for norms whose tilted noise is not known.
    """

    log_mass: Float[Array, ""]
    direction: Float[Array, " dimension"]
    law: AbstractTiltedLaw | None

    @classmethod
    def of(cls, target: Target, form: QuadraticForm, direction: Vector | None = None) -> "TiltedInverse":
        """Returns the envelope for this s, None for 0: the only one for norms whose tilted noise is not known."""
        dimension, norm = target.dimension, _noise_norm(target, form)
        if direction is None or not can_tilt(norm):
            direction = jnp.zeros(dimension)
        law = tilted_law(norm, target.rate, direction @ form.inverse) if can_tilt(norm) else None
        noise = k_norm_log_mass(form.norm, target.rate, dimension) if law is None else law.log_mass
        log_mass = noise - form.log_determinant + support(target, direction) - direction @ form.centre
        return cls(jnp.where(form.sound & jnp.isfinite(log_mass), log_mass, jnp.inf), direction, law)

    @classmethod
    def fit(cls, target: Target, form: QuadraticForm, wanted: Bool[Array, ""]) -> "TiltedInverse":
        """Returns the envelope with about the least mass if it is wanted, else that of s = 0.

        The search starts at a multiple of θ̂ - P(θ̂), with P the projection onto Θ. For θ̂ in Θ s = 0 is the best.
        """
        norm = _noise_norm(target, form)
        if not can_tilt(norm):
            return cls.of(target, form)
        wanted = wanted & ~target.domain.contains(form.centre)
        normal = form.centre - target.domain.project(form.centre)
        normal = jnp.where(wanted, normal, 1.0)
        # With normal noise of the covariance (cT'T)^{-1} the best multiple of the normal is this.
        first = target.rate * (normal @ normal) / jnp.sum(jnp.square(normal @ form.inverse)) * normal
        if norm is not None:
            first = 0.25 * target.rate / norm.dual(normal @ form.inverse) * normal
        scale = jnp.max(jnp.abs(first))

        def direction(parameters):
            candidate = first + scale * parameters
            if norm is None:
                return candidate
            size = norm.dual(candidate @ form.inverse) / (LARGEST_TILT * target.rate)
            return candidate / jnp.maximum(size, 1.0)

        def log_mass(parameters):
            s = direction(parameters)
            return support(target, s) - s @ form.centre + tilted_log_mass(norm, target.rate, s @ form.inverse)

        parameters = fit_parameters(log_mass, jnp.zeros(target.dimension), wanted, NUM_STEPS, 0.1)
        return cls.of(target, form, jnp.where(wanted, direction(parameters), 0.0))

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        if self.law is None:
            noise = k_norm_noise(form.norm, key, target.rate, uniforms.shape[:1], target.dimension)
            log_acceptance = jnp.zeros(uniforms.shape[0])
        else:
            noise, log_acceptance = self.law.draw(uniforms)
        theta = form.points(noise)
        inside = jax.vmap(target.domain.contains)(theta)
        log_acceptance -= jnp.maximum(support(target, self.direction) - theta @ self.direction, 0.0)
        if target.norm is not None:
            log_acceptance -= excess(target, form, theta)
        return theta, jnp.where(inside, log_acceptance, -jnp.inf)


def _noise_norm(target: Target, form: QuadraticForm) -> AbstractNorm | None:
    return None if target.norm is None else form.norm
