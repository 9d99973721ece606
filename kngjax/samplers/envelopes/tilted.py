"""The inverse envelope and its tilts: θ = θ̂ + T^{-1}y with y from exp(-c‖y‖ - h'y), which may lean towards Θ.

For every s, 1_Θ(θ) ≤ exp(σ(s) - s'θ) with σ the support function of Θ, so with h = T'^{-1}s
f(θ) ≤ exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y). Its mass is log-convex in s, and at s = 0 it is that of plain K-norm (or
normal) noise about θ̂: the best as long as θ̂ lies well inside of Θ.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax._arrays import Scalar, Vector
from kngjax.norms import L1, L2, AbstractNorm, LInf, k_norm_log_mass, k_norm_noise
from kngjax.samplers.envelopes import level_law, segments
from kngjax.samplers.envelopes.base import AbstractEnvelope, Proposals, excess, fitted
from kngjax.samplers.quadratic import QuadraticForm, support
from kngjax.target import Target

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
    norm: AbstractNorm | None, rate: Scalar, tilt: Vector, key: PRNGKeyArray, number: int
) -> Proposals:
    """Draws whose density is above exp(-c‖y‖ - h'y) or in proportion to it, and the log of the one over the other.

    l_inf: a level, then independent exponentials. l1: asymmetric Laplace coordinates. l2: exp(-c|y|) is a mixture of
    N(0, τI) with τ from Gamma((d+1)/2, c²/2), which the tilt turns into N(-τh, τI) with τ from
    Gamma((d+1)/2, (c² - |h|²)/2).
    """
    dimension = tilt.shape[0]
    shape, none = (number, dimension), jnp.zeros(number)
    if norm is None:
        return jax.random.normal(key, shape) / jnp.sqrt(rate) - jnp.broadcast_to(tilt / rate, shape), none
    if isinstance(norm, L1):
        uniforms = jax.random.uniform(key, (2, *shape))
        # The densities of the two sides have rates c + h_j and c - h_j.
        positive = uniforms[0] * 2.0 * rate < jnp.broadcast_to(rate - tilt, shape)
        sizes = -jnp.log1p(-uniforms[1])
        sides = jnp.broadcast_to(rate + tilt, shape), jnp.broadcast_to(rate - tilt, shape)
        return jnp.where(positive, sizes / sides[0], -sizes / sides[1]), none
    if isinstance(norm, L2):
        normals = jax.random.normal(key, (number, 2 * dimension + 1))
        variances = jnp.sum(normals[:, dimension:] ** 2, axis=1, keepdims=True) / (rate**2 - tilt @ tilt)
        return jnp.sqrt(variances) * normals[:, :dimension] - variances * jnp.broadcast_to(tilt, shape), none
    assert isinstance(norm, LInf)
    uniforms = jax.random.uniform(key, (number, dimension + 2))
    law = level_law.level_law(rate, tilt)
    levels, log_ratios = level_law.draw_levels(law, rate, tilt, uniforms[:, :2])
    levels, sizes = jnp.broadcast_to(levels[:, None], shape), jnp.broadcast_to(jnp.abs(tilt), shape)
    steps = segments.distance(uniforms[:, 2:], sizes, 2.0 * levels) - levels
    return jnp.where(jnp.broadcast_to(tilt, shape) < 0, -steps, steps), log_ratios


class TiltedInverse(AbstractEnvelope):
    """exp(σ(s) - s'θ̂)·exp(-c‖y‖ - h'y), or the same with ½|y|² for ‖y‖.

    **Arguments:** `log_mass`: M = σ(s) - s'θ̂ + log ∫exp(-c‖y‖ - h'y) dy - log |det T|. `direction`: s. `tilt`: h.
    """

    log_mass: Float[Array, ""]
    direction: Float[Array, " dimension"]
    tilt: Float[Array, " dimension"]

    @classmethod
    def of(cls, target: Target, form: QuadraticForm, direction: Vector | None = None) -> "TiltedInverse":
        """The envelope for this s, None for 0. A mass that is not known beforehand is infinite: no norm's tilt."""
        dimension, norm = target.dimension, _noise_norm(target, form)
        direction = jnp.zeros(dimension) if direction is None else direction
        tilt = direction @ form.inverse
        offset = -form.log_determinant
        if not can_tilt(norm):
            tilt, direction = jnp.zeros(dimension), jnp.zeros(dimension)
            noise = k_norm_log_mass(form.norm, target.rate, dimension)
        elif isinstance(norm, LInf):
            law = level_law.level_law(target.rate, tilt)
            noise = jax.scipy.special.logsumexp(law.log_masses)
        else:
            noise = tilted_log_mass(norm, target.rate, tilt)
        offset += jnp.where(jnp.any(direction != 0), support(target, direction) - direction @ form.centre, 0.0)
        known = form.sound & jnp.isfinite(noise + offset)
        return cls(jnp.where(known, noise + offset, jnp.inf), direction, tilt)

    @classmethod
    def fit(cls, target: Target, form: QuadraticForm, wanted: Bool[Array, ""]) -> "TiltedInverse":
        """The envelope with about the least mass if it is wanted, else that of s = 0.

        s is λ(p - P(p)) with P the projection onto Θ: a normal of Θ at P(p), so that the corners of σ, where the
        least mass often is, are easy to reach. The search starts at p = θ̂; for θ̂ in Θ no tilt is better than none.
        """
        norm = _noise_norm(target, form)
        if not (can_tilt(norm) and target.domain.is_uniform):
            return cls.of(target, form)
        outside = ~target.domain.contains(form.centre)
        normal = form.centre - target.domain.project(form.centre)
        width = jnp.linalg.norm(normal)
        # Normal noise has the covariance (cT'T)^{-1}: with no more curvature than that the best λ would be this.
        first = target.rate * width**2 / jnp.sum(jnp.square(normal @ form.inverse))
        if norm is not None:
            largest = LARGEST_TILT * target.rate / norm.dual(normal @ form.inverse)
            first = 0.25 * largest

        def direction(parameters):
            log_scale, shift = parameters
            point = form.centre + shift * width
            direction = jnp.exp(log_scale) * first * (point - target.domain.project(point))
            if norm is None:
                return direction
            size = norm.dual(direction @ form.inverse) / (LARGEST_TILT * target.rate)
            return direction / jnp.maximum(size, 1.0)

        def log_mass(parameters):
            s = direction(parameters)
            return support(target, s) - s @ form.centre + tilted_log_mass(norm, target.rate, s @ form.inverse)

        start = (jnp.zeros(()), jnp.zeros(target.dimension))
        parameters = fitted(log_mass, start, wanted & outside, NUM_STEPS, 0.1)
        plain, leaning = cls.of(target, form), cls.of(target, form, direction(parameters))
        better = wanted & outside & (leaning.log_mass < plain.log_mass)
        return jax.tree.map(lambda one, other: jnp.where(better, one, other), leaning, plain)

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, number: int) -> Proposals:
        norm = _noise_norm(target, form)
        if can_tilt(norm):
            noise, log_acceptance = tilted_noise(norm, target.rate, self.tilt, key, number)
        else:
            noise = k_norm_noise(form.norm, key, target.rate, (number,), target.dimension)
            log_acceptance = jnp.zeros(number)
        theta = form.points(noise)
        inside = jax.vmap(target.domain.contains)(theta)
        leaning = jnp.any(self.direction != 0)
        slack = jnp.where(leaning, support(target, self.direction), 0.0) - theta @ self.direction
        log_acceptance -= jnp.maximum(slack, 0.0)
        if target.norm is not None:
            log_acceptance -= excess(target, form, theta)
        return theta, jnp.where(inside, log_acceptance, -jnp.inf)


def _noise_norm(target: Target, form: QuadraticForm) -> AbstractNorm | None:
    return None if target.norm is None else form.norm
