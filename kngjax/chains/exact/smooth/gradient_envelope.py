"""An envelope of the density of z = ∇ℓ(θ): shells in the space of gradients, and beyond them pieces of Θ.

For strictly convex ℓ the map θ ↦ z = ∇ℓ(θ) is one to one, and for θ from exp(-c‖∇ℓ(θ)‖_K)·1_Θ the density of z is
∝ exp(-c‖z‖_K)/det H(θ(z)) on ∇ℓ(Θ). With t = c‖z‖_K the envelope is

- on the shell t_{k-1} ≤ t < t_k: exp(E_k - t_{k-1})/det H₀, constant, with E_k = sup E over the shell, see
  `kngjax.chains.exact.smooth.gradient_certificate`; z is t/c times a point of the unit sphere of the norm, from the law
  of its cone, with t^d uniform. Its mass is vol(K)c^{-d}(t_k^d - t_{k-1}^d) times that;
- for t ≥ t_K, in the space of θ: on {ρ_{g-1} ≤ |θ - θ₀|_{H₀} < ρ_g}, and on Θ beyond the last, exp(-T_g) with T_g the
  larger of t_K and of the least t there, c(M(ρ_{g-1}) - N₀)/ν.

K and the number of pieces are those with the least mass.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.chains.exact.smooth.gradient_certificate import GradientCertificate, bound_from_lengths
from kngjax.chains.exact.smooth.sizes import farthest_length, log_ball_volume, log_core_mass
from kngjax.chains.newton import log_determinant
from kngjax.chains.target import Target
from kngjax.losses.base import AbstractPredictorLoss

NUM_SHELLS = 1000
# Added to the heights of shells: more than float64 loses of a logarithm.
MARGIN = 1e-6
# The K that are tried: so many shells more each time. Beyond such a mass no search ends.
_STRIDE, _MOST_LOG_MASS = 5, 700.0


class Envelope(NamedTuple):
    """The chosen shells and pieces. Private.

    **Arguments:** `certificate`. `edges`: t_0 = 0, ..., t_K. `heights`: E_1, ..., E_K. `radii`: ρ_0 = 0, ..., ρ_G, the
    inner ends of the pieces, the last of which is the rest of Θ. `floors`: T_g. `log_masses`: of the K shells, then of
    the pieces. `log_excess`: log of their sum, in units of what it would be if the Hessian were constant, which is
    about the log of proposals a draw where n is large; infinite where nothing is known. Shells and pieces are filled up
    to one number with copies of the last that have no mass, so that programs serve other data too.
    """

    certificate: GradientCertificate
    edges: Float[Array, " edges"]
    heights: Float[Array, " shells"]
    radii: Float[Array, " pieces"]
    floors: Float[Array, " pieces"]
    log_masses: Float[Array, " components"]
    log_excess: Float[Array, ""]


def build(target: Target, certificate: GradientCertificate) -> Envelope:
    """Returns the envelope of the least mass; that which is uniform on Θ where nothing is known. Under jit and vmap."""
    dimension, log_determinant_here = target.dimension, log_determinant(certificate.point)
    log_core, log_volume = log_core_mass(target, log_determinant_here), target.domain.log_volume(dimension)
    edges = jnp.linspace(0.0, farthest_length(target, log_determinant_here), NUM_SHELLS + 1)
    log_edges = jnp.log(edges)
    heights = _heights(target, certificate, edges[1:] / target.rate) + MARGIN
    log_widths = dimension * log_edges[1:] + jnp.log1p(-jnp.exp(dimension * (log_edges[:-1] - log_edges[1:])))
    log_shells = log_ball_volume(target) - log_determinant_here + log_widths + heights - edges[:-1]
    radii, floors, log_rings = rings(target, certificate)
    # For some K, and each number of pieces, the mass within the shells and that beyond.
    inner = jnp.append(0.0, jnp.cumsum(_share(log_shells - log_core)))[::_STRIDE]
    heights_beyond = jnp.maximum(edges[::_STRIDE, None], floors[None, :])
    of_rings = _share((log_rings - log_core)[None] - heights_beyond[:, :-1])
    # Sums of the first rings, 0, 1, ... of them.
    beyond = of_rings @ jnp.triu(jnp.ones((floors.size - 1, floors.size)), k=1)
    total = inner[:, None] + beyond + _share(log_volume - log_core - heights_beyond)
    total = jnp.where(jnp.isfinite(radii)[None] & ~jnp.isnan(total), total, jnp.inf)
    step, ring = jnp.unravel_index(jnp.argmin(total), total.shape)
    shell = _STRIDE * step

    pieces, shells = jnp.arange(radii.size), jnp.arange(NUM_SHELLS)
    floors = jnp.maximum(edges[shell], floors[jnp.minimum(pieces, ring)])
    log_pieces = jnp.where(pieces < ring, jnp.append(log_rings, 0.0), log_volume) - floors
    log_masses = jnp.concatenate(
        [jnp.where(shells < shell, log_shells, -jnp.inf), jnp.where(pieces <= ring, log_pieces, -jnp.inf)]
    )
    excess = jax.nn.logsumexp(log_masses) - log_core
    return Envelope(
        certificate,
        edges[jnp.minimum(jnp.arange(NUM_SHELLS + 1), shell)],
        jnp.where(shells < shell, heights, 0.0),
        radii[jnp.minimum(pieces, ring)],
        floors,
        log_masses,
        jnp.where(jnp.isfinite(certificate.spread), excess, jnp.inf),
    )


def _share(log_mass: Array) -> Array:
    """A mass in units of the core's, whose logarithm this is; neither 0 nor infinite, which no other would outweigh."""
    return jnp.exp(jnp.clip(log_mass, -_MOST_LOG_MASS, _MOST_LOG_MASS))


def rings(target: Target, certificate: GradientCertificate) -> tuple[Array, Array, Array]:
    """ρ_0 = 0, ρ_1, ..., the least t from each outwards, and the log volumes between one and the next.

    Unknown radii are infinite, and last.
    """
    order, dimension = jnp.argsort(certificate.radii), target.dimension
    radii = jnp.append(0.0, certificate.radii[order])
    slack = (certificate.reached[order] - certificate.offset) * target.rate / certificate.spread
    slack = jnp.where(jnp.isfinite(radii[1:]), jnp.maximum(slack * (1.0 - 1e-9), 0.0), 0.0)
    floors = jax.lax.cummax(jnp.append(0.0, slack))
    log_ball = 0.5 * dimension * math.log(math.pi) - math.lgamma(0.5 * dimension + 1.0)
    log_radii = dimension * jnp.log(radii)
    log_steps = jnp.where(jnp.isfinite(radii[1:]), log_radii[:-1] - log_radii[1:], -jnp.inf)
    log_rings = log_radii[1:] + jnp.log1p(-jnp.exp(jnp.minimum(log_steps, -1e-12)))
    return radii, floors, log_ball - 0.5 * log_determinant(certificate.point) + log_rings


def _heights(target: Target, certificate: GradientCertificate, lengths: Array) -> Array:
    """sup E over the shells that end at these ‖z‖_K: there -b'(z - z₀) ≤ ‖b‖_*‖z‖ + |b'z₀| and N ≤ ν‖z‖ + N₀."""
    assert target.norm is not None
    assert isinstance(target.loss, AbstractPredictorLoss)
    tilt, loss = jnp.asarray(certificate.tilt), target.loss
    linear = lengths * target.norm.dual(tilt) + jnp.abs(tilt @ certificate.point.gradient)
    farthest = lengths * certificate.spread + certificate.offset
    return jax.vmap(lambda part, length: bound_from_lengths(certificate, loss, part, length))(linear, farthest)
