"""The inverse envelope and its tilts: θ = θ̂ + T^{-1}y with y from exp(-c‖y‖ - h'y), which may lean towards Θ.

For every s, 1_Θ(θ) ≤ exp(σ(s) - s'θ) with σ the support function of Θ, so with h = T'^{-1}s
f(θ) ≤ exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y). Its mass is log-convex in s, and at s = 0 it is that of plain K-norm (or
normal) noise about θ̂: the best as long as θ̂ lies well inside of Θ.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Scalar, Vector
from kngjax.geometry.norms import L1, L2, AbstractNorm, LInf, k_norm_log_mass, k_norm_noise
from kngjax.samplers.exact.envelopes import level_law, segments
from kngjax.samplers.exact.envelopes.base import AbstractEnvelope, Proposals, Uniforms, excess, fitted, normals
from kngjax.samplers.exact.envelopes.level_law import LevelTangents
from kngjax.samplers.quadratic import QuadraticForm, support
from kngjax.samplers.target import Target

NUM_STEPS = 200
# Of the way to where the tilted law has no mass: fits stay within it.
LARGEST_TILT = 0.98


def can_tilt(norm: AbstractNorm | None) -> bool:
    """Whether tilted noise is known for this norm of y; None means normal noise."""
    return norm is None or isinstance(norm, LInf | L1 | L2)


def tilted_log_mass(norm: AbstractNorm | None, rate: Scalar, tilt: Vector) -> Float[Array, ""]:
    """log ∫ exp(-c‖y‖ - h'y) dy for ‖h‖_* < c, or log ∫ exp(-½c|y|² - h'y) dy.

    Of l_inf by quadrature, see `level_law`; of l1 it is Σ_j log(2c/(c² - h_j²)); of l2 the Fourier transform of
    exp(-c|y|) continued: log(2^d π^((d-1)/2) Γ((d+1)/2)·c/(c² - |h|²)^((d+1)/2)); of a normal ½d log(2π/c) + |h|²/(2c).
    """
    dimension = tilt.shape[0]
    if norm is None:
        return 0.5 * dimension * jnp.log(2.0 * math.pi / rate) + 0.5 * tilt @ tilt / rate
    if isinstance(norm, L1):
        return jnp.sum(jnp.log(2.0 * rate) - jnp.log(rate**2 - tilt**2))
    if isinstance(norm, L2):
        half = 0.5 * (dimension + 1.0)
        constant = dimension * math.log(2.0) + (half - 1.0) * math.log(math.pi) + math.lgamma(half)
        return constant + jnp.log(rate) - half * jnp.log(rate**2 - tilt @ tilt)
    assert isinstance(norm, LInf)
    return level_law.log_mass(rate, tilt)


def tilted_noise(
    norm: AbstractNorm | None, rate: Scalar, tilt: Vector, law: LevelTangents | None, uniforms: Uniforms
) -> Proposals:
    """Draws of y from exp(-c‖y‖ - h'y) or from a law above it, and the log of the one over the other.

    l_inf: a level, then independent exponentials. l1: asymmetric Laplace coordinates. l2: exp(-c|y|) is a mixture of
    N(0, τI) with τ from Gamma((d+1)/2, c²/2), which the tilt turns into N(-τh, τI) with τ from
    Gamma((d+1)/2, (c² - |h|²)/2).
    """
    number, dimension = uniforms.shape[0], tilt.shape[0]
    shape, none = (number, dimension), jnp.zeros(number)
    tilts = jnp.broadcast_to(tilt, shape)
    if norm is None:
        return normals(uniforms[:, :dimension]) / jnp.sqrt(rate) - tilts / rate, none
    if isinstance(norm, L1):
        # The densities fall at the rates c + h_j above 0 and c - h_j below.
        above = uniforms[:, :dimension] * 2.0 * rate < rate - tilts
        sizes = -jnp.log1p(-uniforms[:, dimension : 2 * dimension])
        return jnp.where(above, sizes / (rate + tilts), -sizes / (rate - tilts)), none
    if isinstance(norm, L2):
        directions = normals(uniforms[:, : 2 * dimension + 1])
        variances = jnp.sum(directions[:, dimension:] ** 2, axis=1, keepdims=True) / (rate**2 - tilt @ tilt)
        return jnp.sqrt(variances) * directions[:, :dimension] - variances * tilts, none
    assert law is not None
    levels, log_ratios = level_law.draw_levels(law, rate, tilt, uniforms[:, :2])
    levels = jnp.broadcast_to(levels[:, None], shape)
    steps = segments.distance(uniforms[:, 2 : dimension + 2], jnp.abs(tilts), 2.0 * levels) - levels
    return jnp.where(tilts < 0, -steps, steps), log_ratios


class TiltedInverse(AbstractEnvelope):
    """exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y), or the same with ½|y|² for ‖y‖.

    **Arguments:** `log_mass`: M = σ(s) - s'θ̂ + log ∫exp(-c‖y‖ - h'y) dy - log |det T|. `direction`: s. `tilt`: h.
    `law`: of the level, for l_inf.
    """

    log_mass: Float[Array, ""]
    direction: Float[Array, " dimension"]
    tilt: Float[Array, " dimension"]
    law: LevelTangents | None

    @classmethod
    def of(cls, target: Target, form: QuadraticForm, direction: Vector | None = None) -> "TiltedInverse":
        """The envelope for this s, None for 0: the only one for norms whose tilted noise is not known."""
        dimension, norm = target.dimension, _noise_norm(target, form)
        if direction is None or not can_tilt(norm):
            direction = jnp.zeros(dimension)
        tilt, law = direction @ form.inverse, None
        if isinstance(norm, LInf):
            law = level_law.level_law(target.rate, tilt)
            noise = jax.scipy.special.logsumexp(law.log_masses)
        elif can_tilt(norm):
            noise = tilted_log_mass(norm, target.rate, tilt)
        else:
            noise = k_norm_log_mass(form.norm, target.rate, dimension)
        log_mass = noise - form.log_determinant + support(target, direction) - direction @ form.centre
        return cls(jnp.where(form.sound & jnp.isfinite(log_mass), log_mass, jnp.inf), direction, tilt, law)

    @classmethod
    def fit(cls, target: Target, form: QuadraticForm, wanted: Bool[Array, ""]) -> "TiltedInverse":
        """The envelope with about the least mass if it is wanted, else that of s = 0.

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
            found = first + scale * parameters
            if norm is None:
                return found
            size = norm.dual(found @ form.inverse) / (LARGEST_TILT * target.rate)
            return found / jnp.maximum(size, 1.0)

        def log_mass(parameters):
            s = direction(parameters)
            return support(target, s) - s @ form.centre + tilted_log_mass(norm, target.rate, s @ form.inverse)

        parameters = fitted(log_mass, jnp.zeros(target.dimension), wanted, NUM_STEPS, 0.1)
        return cls.of(target, form, jnp.where(wanted, direction(parameters), 0.0))

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        norm = _noise_norm(target, form)
        if can_tilt(norm):
            noise, log_acceptance = tilted_noise(norm, target.rate, self.tilt, self.law, uniforms)
        else:
            noise = k_norm_noise(form.norm, key, target.rate, uniforms.shape[:1], target.dimension)
            log_acceptance = jnp.zeros(uniforms.shape[0])
        theta = form.points(noise)
        inside = jax.vmap(target.domain.contains)(theta)
        log_acceptance -= jnp.maximum(support(target, self.direction) - theta @ self.direction, 0.0)
        if target.norm is not None:
            log_acceptance -= excess(target, form, theta)
        return theta, jnp.where(inside, log_acceptance, -jnp.inf)


def _noise_norm(target: Target, form: QuadraticForm) -> AbstractNorm | None:
    return None if target.norm is None else form.norm
