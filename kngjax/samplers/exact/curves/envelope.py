"""An envelope of the joint density of curves: shells in the space of gradients, and beyond them pieces of Θ^m.

As in `kngjax.samplers.chains.gradient_space_of_curves`, η_k = H_k(θ) - π_k T takes (θ, T) one to one to R^D, D =
(m + 1)d, with the determinant ∏_j det ∇²ℓ(θ_j). Level j alone solves ∇ℓ_{τ_j}(θ_j) = z_j = Σ_k a_jk η_k, with a_jk =
1 - τ_j for k < j and -τ_j beyond. With r = c·Σ_k ‖η_k‖_K the density of η is ∝ exp(-r)/∏_j det H_j(θ_j(z_j)) where all
θ_j are in Θ and in order. Each level has its own certificate about a point θ_j⁰
(`kngjax.samplers.exact.smooth.certificate`, which defines C, N, ν, N₀, b, M and z⁰), which bounds log det H_j⁰ -
log det H_j(θ_j(z_j)) by E_j(z_j) wherever θ_j(z_j) ∈ Θ. So the envelope is

- *on the shell* t_{k-1} ≤ r < t_k: exp(E_k - t_{k-1})/∏_j det H_j⁰, E_k ≥ Σ_j E_j on it. Its mass is that times
  (d!·vol(K)/c^d)^{m+1}·(t_k^D - t_{k-1}^D)/D!, as ∫ exp(-r) dη = (d!·vol(K)/c^d)^{m+1} = D!·vol{r < 1}. There η is
  r/c times independent K-norm noises over the sum of their norms, r^D uniform.

  *E_k.* Let R = t_k/c. ‖z_j‖ ≤ R·max_k |a_jk|, so C_j of E_j is at most its value at N = ν_j R max_k |a_jk| + N_j⁰.
  With these C_j held, Σ_j ½C_j|z_j - z_j⁰|² - b_j'(z_j - z_j⁰), |·| in the metric of (H_j⁰)⁻¹, is convex in η, and
  largest on Σ_k ‖η_k‖ ≤ R where one η_k alone is not zero:

      E_k ≤ max_k Σ_j [½C_j(ν_j|a_jk|R + N_j⁰)² + |a_jk|R‖b_j‖_* + |b_j'z_j⁰|],   and ≤ Σ_j sup over Θ of E_j.

- *beyond*, r ≥ t_K, in the space of (θ, T): by thresholds t_K = s_0 < s_1 < ... Where |θ_j - θ_j⁰| ≥ ρ in the metric of
  H_j⁰, c‖z_j‖ ≥ c(M_j(ρ) - N_j⁰)/ν_j, and r ≥ c‖z_j‖/max_k |a_jk|. Let ρ_jg be the least radius of the certificate
  with c(M_j(ρ) - N_j⁰)/(ν_j max_k |a_jk|) ≥ s_g, and R_jg the ellipsoid of that radius, or Θ where it has less volume
  or there is none. The piece g = 1, 2, ... has the θ_j in R_jg that are not all in R_j,g-1, where R_j0 is empty. So
  r ≥ s_{g-1} there, in the first piece because nothing below t_K is taken. As also r ≥ c‖S - T‖,

      exp(-r) ≤ exp(-(1 - a)s_{g-1})·exp(-a·c‖S - T‖),   a = min(1, d/s_{g-1}),

  whose mass is ∏_j vol(R_jg)·d!·vol(K)/(ac)^d·exp(-(1 - a)s_{g-1}): θ_j uniform, T is S less noise of rate ac.

Everything here may depend on the data: none of it changes the law of a draw.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.compiling import Compiled
from kngjax.samplers.curves_target import Curves, CurvesTarget
from kngjax.samplers.exact.smooth.certificate import NUM_RADII, Certificate, certify
from kngjax.samplers.exact.smooth.envelope import MARGIN, rings
from kngjax.samplers.exact.smooth.moments import is_affordable, least_curvatures
from kngjax.samplers.exact.smooth.search import ENOUGH_LOG_EXCESS
from kngjax.samplers.exact.smooth.sizes import log_ball_volume, log_domain_volume
from kngjax.samplers.newton import Point, evaluate, log_determinant

NUM_SHELLS, _STRIDE = 1000, 10


class CurvesEnvelope(NamedTuple):
    """The shells and pieces with the least mass. Private.

    **Arguments:** `certificates`: of the levels, with a leading axis. `edges`: t_0 = 0, t_1, ... `heights`: E_1, ...
    `last`: t_K. `floors`: s_{g-1} of each piece. `radii`: ρ_jg, shape (pieces, m), infinite for Θ. `inner`: those of
    the piece before, and -1 for the first, of which nothing is left out. `shares`: a. `log_masses`: of the shells, then
    of the pieces, -∞ for those that are not part of it. `log_excess`: log of their sum, in units of what it would be if
    Hessians were constant; infinite where nothing is known of a level.
    """

    certificates: Certificate
    edges: Float[np.ndarray, " edges"]
    heights: Float[np.ndarray, " shells"]
    last: float
    floors: Float[np.ndarray, " pieces"]
    radii: Float[np.ndarray, "pieces levels"]
    inner: Float[np.ndarray, "pieces levels"]
    shares: Float[np.ndarray, " pieces"]
    log_masses: Float[np.ndarray, " components"]
    log_excess: float


def multiples(levels: Array) -> Float[Array, "levels bins"]:
    """a_jk, with which z_j adds up η_k."""
    places = np.arange(levels.shape[0] + 1)
    return jnp.where(places[None] < places[1:, None], 1.0 - levels[:, None], -levels[:, None])


def prepare(target: CurvesTarget, centres: Curves) -> CurvesEnvelope:
    """The envelope about estimates of all levels, or any points. **Arguments:** `centres`: of each level."""
    number = len(target.levels)
    middle = np.asarray(target.domain.interior_point(target.dimension))
    thetas = np.where(np.all(np.isfinite(centres), axis=1, keepdims=True), centres, middle)
    points = _points(target, jnp.asarray(thetas))
    length = _Sizes.of(target, points).farthest
    unknown = np.full((number, NUM_RADII), -np.inf)
    certificates = _certificates(target, points, length, unknown)
    envelope = build(target, certificates)
    # A better bound pays where the envelope is far above the density.
    if not (ENOUGH_LOG_EXCESS < envelope.log_excess < np.inf and is_affordable(target.of_one)):
        return envelope
    averages = unknown.copy()
    for place in range(number):
        one = jax.tree.map(lambda leaf, place=place: leaf[place], certificates)
        # Where float64 overflows nothing is certain; that a release fails must not tell of it.
        try:
            with np.errstate(all="ignore"):
                averages[place] = least_curvatures(target.of_one, one)
        except (np.linalg.LinAlgError, ValueError):
            continue
    return build(target, _certificates(target, points, length, averages))


# Where nothing is known bounds are infinite, and so are sums of them: a warning would tell of the data.
@np.errstate(all="ignore")
def build(target: CurvesTarget, certificates: Certificate) -> CurvesEnvelope:
    """From the certificates of the levels."""
    sizes = _Sizes.of(target, certificates.point)
    edges = np.linspace(0.0, sizes.farthest, NUM_SHELLS + 1)
    heights = _heights(target, certificates, edges[1:]) + MARGIN
    d, log_core = sizes.dimension, sizes.log_core
    size = d * (len(sizes.log_determinants) + 1)
    log_edges = size * np.log(edges)
    log_shells = log_edges[1:] + np.log1p(-np.exp(log_edges[:-1] - log_edges[1:])) - math.lgamma(size + 1)
    log_shells += log_core + heights - edges[:-1]

    thresholds = edges[::_STRIDE]
    radii, log_volumes = _regions(target, certificates, thresholds[1:], sizes)
    floors = thresholds[:-1]
    shares = np.minimum(1.0, d / np.maximum(floors, d))
    log_pieces = log_volumes.sum(axis=1) + sizes.log_noise - d * np.log(shares) - (1.0 - shares) * floors
    is_all = np.all(np.isinf(radii), axis=1)
    log_pieces = np.where(np.arange(len(is_all)) <= np.argmax(is_all), log_pieces, -np.inf)

    inside = np.append(-np.inf, np.logaddexp.accumulate(log_shells))[: len(edges) - 1 : _STRIDE]
    beyond = np.logaddexp.accumulate(log_pieces[::-1])[::-1]
    total = np.where(np.isnan(inside + beyond) | np.isneginf(beyond), np.inf, np.logaddexp(inside, beyond))
    first = int(np.argmin(total))
    inner = np.vstack([np.full((1, radii.shape[1]), -1.0), radii[:-1]])
    inner[first] = -1.0
    log_masses = np.concatenate(
        [
            np.where(np.arange(NUM_SHELLS) < first * _STRIDE, log_shells, -np.inf),
            np.where(np.arange(len(floors)) >= first, log_pieces, -np.inf),
        ]
    )
    excess = float(total[first] - log_core)
    excess = excess if np.all(np.isfinite(certificates.spread)) else np.inf
    last = float(thresholds[first])
    return CurvesEnvelope(certificates, edges, heights, last, floors, radii, inner, shares, log_masses, excess)


class _Sizes(NamedTuple):
    """**Arguments:** `log_noise`: log of d!·vol(K)/c^d. `log_core`: of the mass if Hessians were constant."""

    dimension: int
    log_determinants: np.ndarray
    log_noise: float
    log_domain: float
    log_core: float

    @classmethod
    def of(cls, target: CurvesTarget, points: Point) -> "_Sizes":
        determinants = np.asarray(_log_determinants(points))
        d, one = target.dimension, target.of_one
        log_noise = math.lgamma(d + 1) + float(log_ball_volume(one))
        log_core = (len(determinants) + 1) * log_noise - float(determinants.sum())
        return cls(d, determinants, log_noise, float(log_domain_volume(one)), log_core)

    @property
    def farthest(self) -> float:
        """The r beyond which even all of Θ^m adds next to nothing to the mass: on it no law depends, only time."""
        # Of a singular Hessian nothing is known, and nothing needs to be reached.
        excess = np.nan_to_num(np.maximum(self.log_domain + self.log_determinants - self.log_noise, 0.0))
        return float(np.sum(excess)) + 5.0 * self.dimension * (len(self.log_determinants) + 1) + 25.0


def _heights(target: CurvesTarget, certificates: Certificate, lengths: np.ndarray) -> np.ndarray:
    """E_k of the shells that end at these r."""
    weights = np.abs(multiples(jnp.asarray(target.levels)))
    far = lengths[:, None] / float(target.rate)
    linear = np.asarray(_dual(target, jnp.asarray(certificates.tilt)))
    here = np.abs(np.sum(np.asarray(certificates.tilt) * np.asarray(certificates.point.gradient), axis=1))
    spread, offset = np.asarray(certificates.spread), np.asarray(certificates.offset)
    farthest = far * (weights.max(axis=1) * spread) + offset
    curvature = np.column_stack(
        [
            np.append(known, np.inf)[np.searchsorted(at, farthest[:, place], side="right")]
            for place, (known, at) in enumerate(
                zip(np.asarray(certificates.curvatures), np.asarray(certificates.levels), strict=True)
            )
        ]
    )
    # Shape (shells, m, bins).
    reach = far[:, :, None] * (weights * spread[:, None]) + offset[None, :, None]
    change = (
        0.5 * curvature[:, :, None] * reach**2 + far[:, :, None] * (weights * linear[:, None]) + here[None, :, None]
    )
    return np.minimum(np.max(np.sum(change, axis=1), axis=1), np.sum(np.asarray(certificates.everywhere)))


def _regions(
    target: CurvesTarget, certificates: Certificate, thresholds: np.ndarray, sizes: _Sizes
) -> tuple[np.ndarray, np.ndarray]:
    """ρ_jg and log vol(R_jg), shape (pieces, m)."""
    farthest = np.abs(np.asarray(multiples(jnp.asarray(target.levels)))).max(axis=1)
    d = sizes.dimension
    log_ball = 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1.0)
    radii, volumes = [], []
    for place, most in enumerate(farthest):
        one = jax.tree.map(lambda leaf, place=place: leaf[place], certificates)
        known, floors, _ = (np.asarray(part) for part in _rings(target.of_one, one))
        # Increasing, and infinite beyond what is known.
        found = np.append(known, np.inf)[np.searchsorted(floors / most, thresholds)]
        volume = log_ball + d * np.log(found) - 0.5 * sizes.log_determinants[place]
        is_all = ~(volume < sizes.log_domain)
        # The last piece is all that is left.
        is_all[-1] = True
        radii.append(np.where(is_all, np.inf, found))
        volumes.append(np.where(is_all, sizes.log_domain, volume))
    return np.array(radii).T, np.array(volumes).T


_rings = Compiled(rings)


@Compiled
def _points(target: CurvesTarget, thetas: Array) -> Point:
    """With the gradients of the levels, which are less by the shifts, and the Hessians, which are those at ½."""
    found = jax.lax.map(lambda theta: evaluate(target.of_one, theta), thetas)
    return found._replace(gradient=found.gradient - target.shifts())


@Compiled
def _log_determinants(points: Point) -> Array:
    return jax.vmap(log_determinant)(points)


@Compiled
def _dual(target: CurvesTarget, tilts: Array) -> Array:
    return jax.vmap(target.norm.dual)(tilts)


@Compiled
def _certified(target: CurvesTarget, point: Point, length: Array, averages: Array) -> Certificate:
    return certify(target.of_one, point, averages, length)


def _certificates(target: CurvesTarget, points: Point, length: float, averages: np.ndarray) -> Certificate:
    found = []
    for place, known in enumerate(averages):
        point = jax.tree.map(lambda leaf, place=place: leaf[place], points)
        found.append(jax.tree.map(np.asarray, _certified(target, point, jnp.asarray(length), jnp.asarray(known))))
    return jax.tree.map(lambda *parts: np.stack(parts), *found)
