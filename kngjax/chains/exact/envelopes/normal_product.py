"""The product envelope of the exponential mechanism: independent coordinates, each normal on two pieces.

With Q = cA, D its diagonal and κ the smallest eigenvalue of D^{-½}QD^{-½}, Q is at least κD, and R = Q - κD is positive
semidefinite, so ½δ'Qδ ≥ ½κδ'Dδ + m'Rδ - ½m'Rm for every m. With 1_Θ(θ) ≤ exp(σ(r·1) - r·‖θ‖_1) for r ≥ 0 and Θ in its
bounding box f is below a constant times a product of factors exp(-½κD_jδ_j² - (Rm)_jδ_j - r|θ_j|), δ = θ - θ̂.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.chains.exact.envelopes.base import AbstractEnvelope, Proposals, Uniforms, fit_parameters
from kngjax.chains.exact.envelopes.exponential_product import bounding_box
from kngjax.chains.quadratic import QuadraticForm, support
from kngjax.chains.target import Target
from kngjax.core.arrays import Scalar, Vector
from kngjax.geometry import segments

NUM_STEPS = 150
# Beyond so many deviations a normal tail is drawn through the exponential that is tangent to it, which is above it.
FAR = 6.0


class NormalPieces(NamedTuple):
    """Two pieces a coordinate, the sides of 0, in units of each normal law: from `near` to `near + lengths` deviations.

    `near`: of the end nearer to the mean, at least 0 where the mean is outside. `signs`: whether the piece runs away
    from its `means` upwards or, mirrored, downwards. `log_masses`: of the factor, or of what is drawn for it.
    """

    means: Float[Array, "2 dimension"]
    near: Float[Array, "2 dimension"]
    lengths: Float[Array, "2 dimension"]
    signs: Float[Array, "2 dimension"]
    log_masses: Float[Array, "2 dimension"]


def pieces_of(
    form: QuadraticForm, edges: Float[Array, "3 dimension"], curvatures: Vector, slopes: Vector, pull: Scalar
) -> NormalPieces:
    """Returns the factors between the edges, for q = κD and v = Rm."""
    shape = (2, edges.shape[1])
    centre, curvatures = jnp.broadcast_to(form.centre, shape), jnp.broadcast_to(curvatures, shape)
    slopes = jnp.broadcast_to(slopes, shape) + pull * jnp.sign(edges[:-1] + edges[1:])
    # -½q(θ - θ̂)² - v(θ - θ̂) = -½q(θ - mean)² + ½v²/q, and r|θ_j| is ±r(θ_j - θ̂_j) ± rθ̂_j.
    means = centre - slopes / curvatures
    heights = 0.5 * slopes**2 / curvatures - pull * jnp.sign(edges[:-1] + edges[1:]) * centre
    scales = jnp.sqrt(curvatures)
    left, right = (edges[:-1] - means) * scales, (edges[1:] - means) * scales
    mirrored = left + right < 0
    near, far = jnp.where(mirrored, -right, left), jnp.where(mirrored, -left, right)
    log_masses = heights - jnp.log(scales) + _log_mass(near, far - near)
    return NormalPieces(means, near, far - near, jnp.where(mirrored, -1.0, 1.0), log_masses)


class NormalProduct(AbstractEnvelope):
    """The product of normal pieces for one m and r.

    **Arguments:** `log_mass`: M. `curvatures`: κD. `rest`: R. `tangent`: m. `pull`: r. `pieces`: of the factors.
    """

    log_mass: Float[Array, ""]
    curvatures: Float[Array, " dimension"]
    rest: Float[Array, "dimension dimension"]
    tangent: Float[Array, " dimension"]
    pull: Scalar
    pieces: NormalPieces

    @classmethod
    def fit(cls, target: Target, form: QuadraticForm, wanted: Bool[Array, ""]) -> "NormalProduct":
        """Returns the envelope with about the least mass if it is wanted, else one that must not be used."""
        dimension = target.dimension
        precision = target.rate * form.transform.T @ form.transform
        roots = jnp.sqrt(jnp.diagonal(precision))
        least = jnp.linalg.eigvalsh(precision / (roots[:, None] * roots[None]))[0]
        # Less what rounding may have added to the eigenvalue.
        kappa = least - 1e-9 - 1e-13 * dimension
        known = wanted & form.sound & (kappa > 0)
        curvatures = jnp.where(known, kappa, 1.0) * roots**2
        rest = precision - jnp.diag(curvatures)
        lower, upper = bounding_box(target)
        edges = jnp.stack([lower, jnp.clip(jnp.zeros_like(lower), lower, upper), upper])
        extent, reach = support(target, jnp.ones(dimension)), upper - lower
        pulls = float(target.domain.is_sign_symmetric)

        def build(parameters):
            shift, log_pull = parameters
            tangent, pull = shift * reach, pulls * jnp.exp(log_pull)
            pieces = pieces_of(form, edges, curvatures, rest @ tangent, pull)
            sums = jax.scipy.special.logsumexp(pieces.log_masses, axis=0)
            log_mass = 0.5 * tangent @ rest @ tangent + jnp.sum(sums) + pull * extent
            return cls(log_mass, curvatures, rest, tangent, pull, pieces)

        start = ((target.domain.project(form.centre) - form.centre) / reach, jnp.log(2.0 * dimension / jnp.mean(reach)))
        best = build(fit_parameters(lambda parameters: build(parameters).log_mass, start, known, NUM_STEPS, 0.05))
        log_mass = jnp.where(known & jnp.isfinite(best.log_mass), best.log_mass, jnp.inf)
        return cls(log_mass, curvatures, rest, best.tangent, best.pull, best.pieces)

    def propose(self, target: Target, form: QuadraticForm, key: PRNGKeyArray, uniforms: Uniforms) -> Proposals:
        number, dimension = uniforms.shape[0], target.dimension
        pieces = self.pieces
        weights = jax.nn.softmax(pieces.log_masses, axis=0)
        piece = (uniforms[:, :dimension] > jnp.broadcast_to(weights[0], (number, dimension))).astype(int)
        means, near, lengths, signs, _ = (jnp.take_along_axis(table, piece, axis=0) for table in pieces)
        deviations, log_ratios = _draw(uniforms[:, dimension : 2 * dimension], near, lengths)
        theta = means + signs * deviations / jnp.sqrt(jnp.broadcast_to(self.curvatures, means.shape))
        inside = jax.vmap(target.domain.contains)(theta)
        gaps = theta - jnp.broadcast_to(form.centre + self.tangent, theta.shape)
        # ½δ'Qδ less its minorant is ½(δ - m)'R(δ - m).
        slack = 0.5 * jnp.sum((gaps @ self.rest) * gaps, axis=1)
        outer = self.pull * (support(target, jnp.ones(dimension)) - jnp.sum(jnp.abs(theta), axis=1))
        log_acceptance = jnp.sum(log_ratios, axis=1) - jnp.maximum(slack, 0.0) - jnp.maximum(outer, 0.0)
        return theta, jnp.where(inside, log_acceptance, -jnp.inf)


def _log_mass(near: Array, length: Array) -> Array:
    """log ∫ exp(-½x²) dx over [near, near + length], or of the tangent exponential above it where near is far."""
    occupied = length > 0
    normal_near, some = jnp.minimum(near, FAR), jnp.where(occupied, length, 1.0)
    normal = 0.5 * jnp.log(2.0 * jnp.pi) + jnp.log(ndtr(-normal_near) - ndtr(-normal_near - some))
    tail = -0.5 * jnp.maximum(near, FAR) ** 2 + segments.log_mass(jnp.maximum(near, FAR), some)
    return jnp.where(occupied, jnp.where(near > FAR, tail, normal), -jnp.inf)


def _draw(uniform: Array, near: Array, length: Array) -> tuple[Array, Array]:
    """A draw from what `_log_mass` is the mass of, and the log of exp(-½x²) over it."""
    normal_near = jnp.minimum(near, FAR)
    # x with Φ(-x) between Φ(-near) and Φ(-far).
    upper, lower = ndtr(-normal_near), ndtr(-normal_near - length)
    tails = upper + uniform * (lower - upper)
    normal = jnp.clip(-ndtri(tails), normal_near, normal_near + length)
    step = segments.distance(uniform, jnp.maximum(near, FAR), length)
    return jnp.where(near > FAR, near + step, normal), jnp.where(near > FAR, -0.5 * step**2, 0.0)
