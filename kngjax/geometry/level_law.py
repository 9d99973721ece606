"""The level t of a tilted l_inf law: with density ∝ exp(-ct)·Π_j 2 sinh(h_j t)/h_j on t > 0, Σ|h_j| < c.

exp(-c‖y‖_∞ - h'y) = ∫_{t > ‖y‖_∞} c·exp(-ct - h'y) dt, so given t the y_j are independent exponentials on [-t, t], and
t has this density. With a = |h| and κ = c - Σa_j it is exp(-κt)·Π_j (1 - exp(-2a_j t))/a_j, and that of v = log t is
log-concave, so tangents lie above it: their maximum is a mixture of exponential segments.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.bisection import bisect
from kngjax.geometry import segments

NUM_TANGENTS = 24
# Standard deviations of v between the outer tangents and the mode.
REACH = 6.0
NUM_HALVINGS = 40
NUM_NODES = 96


class LevelTangents(NamedTuple):
    """Tangents at v = `anchors` with `heights` and `slopes`, each the highest between two of the `edges`.

    `log_masses`: of the tangents' segments.
    """

    anchors: Float[Array, " tangents"]
    heights: Float[Array, " tangents"]
    slopes: Float[Array, " tangents"]
    edges: Float[Array, " edges"]
    log_masses: Float[Array, " tangents"]


def log_density(log_level: Float[Array, "*levels"], rate: Scalar, tilt: Vector) -> Float[Array, "*levels"]:
    """Returns the log-density of v = log t, up to no constant: its integral is ∫ exp(-c‖y‖_∞ - h'y) dy."""
    sizes = jnp.abs(tilt)
    level = jnp.exp(log_level)[..., None]
    falls = 2.0 * jnp.broadcast_to(sizes, (*log_level.shape, sizes.shape[0])) * level
    flat = falls < 1e-12
    safe = jnp.where(flat, 1.0, falls)
    # (1 - e^{-2at})/a = 2t·(1 - e^{-x})/x with x = 2at.
    logs = jnp.log(2.0 * level) + jnp.where(flat, 0.0, jnp.log(-jnp.expm1(-safe)) - jnp.log(safe))
    return jnp.log(rate) - (rate - jnp.sum(sizes)) * level[..., 0] + jnp.sum(logs, axis=-1) + log_level


def _slope_and_curvature(log_level: Float[Array, "*levels"], rate: Scalar, tilt: Vector):
    sizes = jnp.abs(tilt)
    level = jnp.exp(log_level)[..., None]
    falls = 2.0 * jnp.broadcast_to(sizes, (*log_level.shape, sizes.shape[0])) * level
    flat = falls < 1e-12
    ratios = jnp.where(flat, 1.0, falls / jnp.where(flat, 1.0, jnp.expm1(jnp.minimum(falls, 700.0))))
    decay = (rate - jnp.sum(sizes)) * level[..., 0]
    slope = 1.0 - decay + jnp.sum(ratios, axis=-1)
    return slope, -decay + jnp.sum(jnp.where(flat, 0.0, ratios * (1.0 - falls - ratios)), axis=-1)


def level_law(rate: Scalar, tilt: Vector) -> LevelTangents:
    """Returns the tangents; for Σ|h_j| < c.

    The slope of the log-density of v is between 1 - κt and d + 1 - κt, so its mode is between 1/κ and (d + 1)/κ.
    """
    gap = rate - jnp.sum(jnp.abs(tilt))
    low, high = -jnp.log(gap), jnp.log(tilt.shape[0] + 1.0) - jnp.log(gap)

    def rises(log_level):
        return _slope_and_curvature(log_level, rate, tilt)[0] > 0

    mode = bisect(rises, low, high, NUM_HALVINGS)[0]
    deviation = 1.0 / jnp.sqrt(-_slope_and_curvature(mode, rate, tilt)[1])
    # An even number: none of them is at the mode, where a tangent would be flat.
    anchors = mode + deviation * jnp.linspace(-REACH, REACH, NUM_TANGENTS)
    heights, slopes = log_density(anchors, rate, tilt), _slope_and_curvature(anchors, rate, tilt)[0]
    at_zero = heights - slopes * anchors
    crossings = (at_zero[1:] - at_zero[:-1]) / (slopes[:-1] - slopes[1:])
    edges = jnp.concatenate([jnp.full(1, -jnp.inf), crossings, jnp.full(1, jnp.inf)])
    tops = heights + slopes * (jnp.where(slopes > 0, edges[1:], edges[:-1]) - anchors)
    log_masses = tops + segments.log_mass(jnp.abs(slopes), jnp.diff(edges))
    return LevelTangents(anchors, heights, slopes, edges, log_masses)


def draw_levels(
    law: LevelTangents, rate: Scalar, tilt: Vector, uniforms: Float[Array, "draws 2"]
) -> tuple[Float[Array, " draws"], Float[Array, " draws"]]:
    """t of draws from the tangents, and the log of the density over the tangent at each, at most 0."""
    cumulative = jnp.cumsum(jnp.exp(law.log_masses - jnp.max(law.log_masses)))
    piece = jnp.searchsorted(cumulative, uniforms[:, 0] * cumulative[-1], side="right")
    piece = jnp.minimum(piece, NUM_TANGENTS - 1)
    slope, left, right = law.slopes[piece], law.edges[piece], law.edges[piece + 1]
    log_level = segments.draw(uniforms[:, 1], slope, left, right)
    tangent = law.heights[piece] + slope * (log_level - law.anchors[piece])
    return jnp.exp(log_level), jnp.minimum(log_density(log_level, rate, tilt) - tangent, 0.0)


def log_mass(rate: Scalar, tilt: Vector) -> Float[Array, ""]:
    """log ∫ exp(-c‖y‖_∞ - h'y) dy by the trapezoid rule, to some percent: for a fit alone, smooth in h."""
    dimension, gap = tilt.shape[0], rate - jnp.sum(jnp.abs(tilt))
    fraction = jnp.linspace(0.0, 1.0, NUM_NODES)
    low, high = jnp.log(0.05 * dimension) - jnp.log(rate), jnp.log(3.0 * (dimension + 3.0)) - jnp.log(gap)
    values = log_density(low + fraction * (high - low), rate, tilt)
    return jax.scipy.special.logsumexp(values) + jnp.log((high - low) / (NUM_NODES - 1.0))
