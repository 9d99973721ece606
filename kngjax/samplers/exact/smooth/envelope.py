"""An envelope of the density of z = ∇ℓ(θ): shells in the space of gradients, and beyond them pieces of Θ.

For strictly convex ℓ the map θ ↦ z = ∇ℓ(θ) is one to one, and for θ from exp(-c‖∇ℓ(θ)‖_K)·1_Θ the density of z is
∝ exp(-c‖z‖_K)/det H(θ(z)) on ∇ℓ(Θ). With t = c‖z‖_K the envelope is

- on the shell t_{k-1} ≤ t < t_k: exp(E_k - t_{k-1})/det H₀, constant, with E_k = sup E over the shell, see
  `kngjax.samplers.exact.smooth.certificate`; z is t/c times a point of the unit sphere of the norm, from the law of
  its cone, with t^d uniform. Its mass is vol(K)c^{-d}(t_k^d - t_{k-1}^d) times that;
- for t ≥ t_K, in the space of θ: on {ρ_{g-1} ≤ |θ - θ₀|_{H₀} < ρ_g}, and on Θ beyond the last, exp(-T_g) with T_g the
  larger of t_K and of the least t there, c(M(ρ_{g-1}) - N₀)/ν.

K and the number of pieces are those with the least mass.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.compiling import Compiled
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.exact.smooth.certificate import Certificate, bound_from_lengths
from kngjax.samplers.target import Target

_NUM_SHELLS = 1000
# Added to the heights of shells: more than float64 loses of a logarithm.
MARGIN = 1e-6


class Envelope(NamedTuple):
    """The chosen shells and pieces. Private.

    **Arguments:** `certificate`. `edges`: t_0 = 0, ..., t_K. `heights`: E_1, ..., E_K. `radii`: ρ_0 = 0, ..., ρ_G, the
    inner ends of the pieces, the last of which is the rest of Θ. `floors`: T_g. `log_masses`: of the K shells, then of
    the pieces. Shells and pieces are filled up to one number with copies of the last that have no mass, so that
    programs serve other data too.
    """

    certificate: Certificate
    edges: Float[np.ndarray, " edges"]
    heights: Float[np.ndarray, " shells"]
    radii: Float[np.ndarray, " pieces"]
    floors: Float[np.ndarray, " pieces"]
    log_masses: Float[np.ndarray, " components"]

    @property
    def has_shells(self) -> bool:
        return bool(np.isfinite(self.log_masses[: self.heights.size]).any())

    def log_excess(self, target: Target) -> float:
        """Log of the mass, in units of what it would be if the Hessian were constant; infinite where nothing is known.

        The density's own mass is about one such unit where n is large, so that this is the log of proposals a draw.
        """
        if not np.isfinite(self.certificate.spread):
            return math.inf
        return float(np.logaddexp.reduce(self.log_masses)) - log_core_mass(target, self.certificate.log_determinant)


def log_core_mass(target: Target, log_determinant: float) -> float:
    """log of ∫ exp(-c‖z‖_K) dz/det H₀ = d!·vol(K)/(c^d det H₀): what the mass would be if the Hessian were constant."""
    return math.lgamma(target.dimension + 1) + _log_ball_volume(target) - log_determinant


def log_domain_volume(target: Target) -> float:
    """log of the volume of Θ, which has the uniform measure."""
    return float(_log_volumes(target)[1])


def _log_ball_volume(target: Target) -> float:
    """log of the volume of {z : c‖z‖_K ≤ 1}."""
    return float(_log_volumes(target)[0]) - target.dimension * math.log(float(target.rate))


def farthest_length(target: Target, log_determinant: float) -> float:
    """The c‖z‖_K beyond which even all of Θ adds next to nothing to the mass."""
    excess = log_domain_volume(target) - log_core_mass(target, log_determinant)
    return max(excess, 0.0) + 3.0 * target.dimension + 25.0


def build(target: Target, certificate: Certificate) -> Envelope:
    """The envelope of the least mass."""
    rate, dimension = float(target.rate), target.dimension
    log_determinant = certificate.log_determinant
    log_ball = _log_ball_volume(target) - log_determinant
    edges = np.linspace(0.0, farthest_length(target, log_determinant), _NUM_SHELLS + 1)
    with np.errstate(divide="ignore"):
        log_edges = np.log(edges)
    heights = np.array(_heights(target, certificate, edges[1:] / rate)) + MARGIN
    log_widths = dimension * log_edges[1:] + np.log1p(-np.exp(dimension * (log_edges[:-1] - log_edges[1:])))
    log_shells = log_ball + log_widths + heights - edges[:-1]
    inner = np.concatenate([[-np.inf], np.logaddexp.accumulate(log_shells)])
    radii, floors, log_rings = _rings(target, certificate)
    log_volume = log_domain_volume(target)
    # For each K and each number of pieces the mass beyond the shells.
    heights_beyond = np.maximum(edges[:, None], floors[None, :])
    rings = np.logaddexp.accumulate(
        np.concatenate([np.full((edges.size, 1), -np.inf), log_rings[None, :] - heights_beyond[:, :-1]], axis=1), axis=1
    )
    total = np.logaddexp(inner[:, None], np.logaddexp(rings, log_volume - heights_beyond))
    shell, ring = np.unravel_index(np.argmin(total), total.shape)
    floors = np.maximum(edges[shell], floors[: ring + 1])
    beyond = np.append(log_rings[:ring] - floors[:-1], log_volume - floors[-1])
    return _envelope(certificate, edges[: shell + 1], heights[:shell], radii[: ring + 1], floors, log_shells, beyond)


def uniform(target: Target, certificate: Certificate) -> Envelope:
    """The envelope that is all of Θ."""
    start, nothing = np.zeros(1), np.zeros(0)
    return _envelope(certificate, start, nothing, start, start, nothing, np.array([log_domain_volume(target)]))


def _envelope(certificate, edges, heights, radii, floors, log_shells, log_pieces) -> Envelope:
    num_pieces = certificate.radii.size + 1

    def filled(values: np.ndarray, length: int, value: float) -> np.ndarray:
        return np.append(values, np.full(length - values.size, value))

    shells = filled(log_shells[: heights.size], _NUM_SHELLS, -np.inf)
    return Envelope(
        certificate,
        filled(edges, _NUM_SHELLS + 1, edges[-1]),
        filled(heights, _NUM_SHELLS, 0.0),
        filled(radii, num_pieces, radii[-1]),
        filled(floors, num_pieces, floors[-1]),
        np.append(shells, filled(log_pieces, num_pieces, -np.inf)),
    )


def _rings(target: Target, certificate: Certificate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ρ_0 = 0, ρ_1, ..., the least t from each outwards, and the log volumes between one and the next."""
    known = np.isfinite(certificate.radii)
    order = np.argsort(certificate.radii[known])
    radii = np.append(0.0, certificate.radii[known][order])
    slack = (certificate.reached[known][order] - certificate.offset) * float(target.rate) / certificate.spread
    floors = np.maximum.accumulate(np.append(0.0, np.maximum(slack * (1.0 - 1e-9), 0.0)))
    useful = np.append(True, np.diff(floors) > 1e-3)
    radii, floors, dimension = radii[useful], floors[useful], target.dimension
    log_ball = 0.5 * dimension * math.log(math.pi) - math.lgamma(0.5 * dimension + 1.0)
    with np.errstate(divide="ignore"):
        log_radii = dimension * np.log(radii)
    log_rings = log_radii[1:] + np.log1p(-np.exp(np.minimum(log_radii[:-1] - log_radii[1:], -1e-12)))
    return radii, floors, log_ball - 0.5 * certificate.log_determinant + log_rings


@Compiled
def _log_volumes(target: Target) -> tuple[Array, Array]:
    """log of the volume of the norm's ball, and of Θ."""
    assert target.norm is not None
    domain, dimension = target.domain, target.dimension
    return target.norm.log_volume(dimension), -domain.log_density(domain.interior_point(dimension))


@Compiled
def _heights(target: Target, certificate: Certificate, lengths: Array) -> Array:
    """sup E over the shells that end at these ‖z‖_K: there -b'(z - z₀) ≤ ‖b‖_*‖z‖ + |b'z₀| and N ≤ ν‖z‖ + N₀."""
    assert target.norm is not None
    assert isinstance(target.loss, AbstractPredictorLoss)
    tilt, loss = jnp.asarray(certificate.tilt), target.loss
    linear = lengths * target.norm.dual(tilt) + jnp.abs(tilt @ certificate.point.gradient)
    farthest = lengths * certificate.spread + certificate.offset
    return jax.vmap(lambda part, length: bound_from_lengths(certificate, loss, part, length))(linear, farthest)
