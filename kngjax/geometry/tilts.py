"""Tilted noise: the laws of y ∈ R^d with densities ∝ exp(-c‖y‖ - h'y), drawn by inversion from uniform variables.

A norm that knows its own has `has_tilts`. Where a law is drawn from a function above the density, that function's mass
and the log-ratio of the two at each draw come with it.
"""

import abc
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.bisection import bisect
from kngjax.core.modules import AbstractModule
from kngjax.geometry import segments

Uniforms = Float[Array, "draws uniforms"]
Draws = tuple[Float[Array, "draws dimension"], Float[Array, " draws"]]

NUM_TANGENTS = 24
# Standard deviations of v between the outer tangents and the mode.
REACH = 6.0
NUM_HALVINGS = 40
NUM_NODES = 96


def num_uniforms(dimension: int) -> int:
    """Counts the uniform variables that a draw of tilted noise may use."""
    return 2 * dimension + 2


class AbstractTiltedLaw(AbstractModule):
    """A function of y ∈ R^d that is nowhere below exp(-c‖y‖ - h'y) and is drawn from by inversion.

    **Arguments:** `rate`: c. `tilt`: h, shape (d,), with ‖h‖_* < c.
    """

    rate: Scalar
    tilt: Vector

    @property
    @abc.abstractmethod
    def log_mass(self) -> Float[Array, ""]:
        """Returns the log of the function's integral."""

    @abc.abstractmethod
    def draw(self, uniforms: Uniforms) -> Draws:
        """Makes a draw of each row of `num_uniforms(d)` uniform variables, with log(density/function)."""


class TiltedLaplace(AbstractTiltedLaw):
    """∝ exp(-c‖y‖_1 - h'y): independent asymmetric Laplace coordinates, of mass Π_j 2c/(c² - h_j²)."""

    @property
    def log_mass(self) -> Float[Array, ""]:
        return jnp.sum(jnp.log(2.0 * self.rate) - jnp.log(self.rate**2 - self.tilt**2))

    def draw(self, uniforms: Uniforms) -> Draws:
        number, dimension = uniforms.shape[0], self.tilt.shape[0]
        tilts = jnp.broadcast_to(self.tilt, (number, dimension))
        # The density falls at the rates c + h_j above 0 and c - h_j below.
        is_above = uniforms[:, :dimension] * 2.0 * self.rate < self.rate - tilts
        sizes = -jnp.log1p(-uniforms[:, dimension : 2 * dimension])
        return jnp.where(is_above, sizes / (self.rate + tilts), -sizes / (self.rate - tilts)), jnp.zeros(number)


class TiltedRadial(AbstractTiltedLaw):
    """∝ exp(-c‖y‖_2 - h'y): a normal mixture, of mass 2^d π^((d-1)/2) Γ((d+1)/2)·c/(c² - |h|²)^((d+1)/2).

    exp(-c|y|) is a mixture of N(0, τI) with τ from Gamma((d+1)/2, c²/2), which the tilt turns into N(-τh, τI) with τ
    from Gamma((d+1)/2, (c² - |h|²)/2). The mass is the Fourier transform of exp(-c|y|), continued.
    """

    @property
    def log_mass(self) -> Float[Array, ""]:
        dimension = self.tilt.shape[0]
        half = 0.5 * (dimension + 1.0)
        constant = dimension * math.log(2.0) + (half - 1.0) * math.log(math.pi) + math.lgamma(half)
        return constant + jnp.log(self.rate) - half * jnp.log(self.rate**2 - self.tilt @ self.tilt)

    def draw(self, uniforms: Uniforms) -> Draws:
        number, dimension = uniforms.shape[0], self.tilt.shape[0]
        tilts = jnp.broadcast_to(self.tilt, (number, dimension))
        normals = _normals(uniforms[:, : 2 * dimension + 1])
        squares = jnp.sum(normals[:, dimension:] ** 2, axis=1, keepdims=True)
        variances = squares / (self.rate**2 - self.tilt @ self.tilt)
        return jnp.sqrt(variances) * normals[:, :dimension] - variances * tilts, jnp.zeros(number)


class LevelTangents(NamedTuple):
    """Tangents at v = `anchors` with `heights` and `slopes`, each the highest between two of the `edges`.

    `log_masses`: of the tangents' segments.
    """

    anchors: Float[Array, " tangents"]
    heights: Float[Array, " tangents"]
    slopes: Float[Array, " tangents"]
    edges: Float[Array, " edges"]
    log_masses: Float[Array, " tangents"]


def _falls(log_level: Float[Array, "*levels"], tilt: Vector) -> tuple[Array, Array, Array, Array]:
    """|h|, t, 2t|h_j| of each coordinate, and where that is 0 but for rounding."""
    sizes = jnp.abs(tilt)
    level = jnp.exp(log_level)[..., None]
    falls = 2.0 * jnp.broadcast_to(sizes, (*log_level.shape, sizes.shape[0])) * level
    flat = falls < 1e-12
    return sizes, level, falls, flat


def level_log_density(log_level: Float[Array, "*levels"], rate: Scalar, tilt: Vector) -> Float[Array, "*levels"]:
    """Returns the log-density of v = log t, up to no constant: its integral is ∫ exp(-c‖y‖_∞ - h'y) dy."""
    sizes, level, falls, flat = _falls(log_level, tilt)
    safe = jnp.where(flat, 1.0, falls)
    # (1 - e^{-2at})/a = 2t·(1 - e^{-x})/x with x = 2at.
    logs = jnp.log(2.0 * level) + jnp.where(flat, 0.0, jnp.log(-jnp.expm1(-safe)) - jnp.log(safe))
    return jnp.log(rate) - (rate - jnp.sum(sizes)) * level[..., 0] + jnp.sum(logs, axis=-1) + log_level


def _slope_and_curvature(log_level: Float[Array, "*levels"], rate: Scalar, tilt: Vector):
    sizes, level, falls, flat = _falls(log_level, tilt)
    ratios = jnp.where(flat, 1.0, falls / jnp.where(flat, 1.0, jnp.expm1(jnp.minimum(falls, 700.0))))
    decay = (rate - jnp.sum(sizes)) * level[..., 0]
    slope = 1.0 - decay + jnp.sum(ratios, axis=-1)
    return slope, -decay + jnp.sum(jnp.where(flat, 0.0, ratios * (1.0 - falls - ratios)), axis=-1)


def level_law(rate: Scalar, tilt: Vector) -> LevelTangents:
    """Returns the tangents of the level t: with density ∝ exp(-ct)·Π_j 2 sinh(h_j t)/h_j on t > 0, for Σ|h_j| < c.

    exp(-c‖y‖_∞ - h'y) = ∫_{t > ‖y‖_∞} c·exp(-ct - h'y) dt, so given t the y_j are independent exponentials on [-t, t],
    and t has this density. With a = |h| and κ = c - Σa_j it is exp(-κt)·Π_j (1 - exp(-2a_j t))/a_j, and that of
    v = log t is log-concave, so tangents lie above it: their maximum is a mixture of exponential segments.
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
    heights, slopes = level_log_density(anchors, rate, tilt), _slope_and_curvature(anchors, rate, tilt)[0]
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
    return jnp.exp(log_level), jnp.minimum(level_log_density(log_level, rate, tilt) - tangent, 0.0)


def level_log_mass(rate: Scalar, tilt: Vector) -> Float[Array, ""]:
    """log ∫ exp(-c‖y‖_∞ - h'y) dy by the trapezoid rule, to some percent: for a fit alone, smooth in h."""
    dimension, gap = tilt.shape[0], rate - jnp.sum(jnp.abs(tilt))
    fraction = jnp.linspace(0.0, 1.0, NUM_NODES)
    low, high = jnp.log(0.05 * dimension) - jnp.log(rate), jnp.log(3.0 * (dimension + 3.0)) - jnp.log(gap)
    values = level_log_density(low + fraction * (high - low), rate, tilt)
    return jax.scipy.special.logsumexp(values) + jnp.log((high - low) / (NUM_NODES - 1.0))


class TiltedMaximumLaw(AbstractTiltedLaw):
    """∝ exp(-c‖y‖_∞ - h'y): a level t ≥ ‖y‖_∞ from tangents above its density (`level_law`), then exponentials."""

    tangents: LevelTangents

    def __init__(self, rate: Scalar, tilt: Vector):
        self.rate, self.tilt, self.tangents = rate, tilt, level_law(rate, tilt)

    @property
    def log_mass(self) -> Float[Array, ""]:
        return jax.scipy.special.logsumexp(self.tangents.log_masses)

    def draw(self, uniforms: Uniforms) -> Draws:
        shape = uniforms.shape[0], self.tilt.shape[0]
        tilts = jnp.broadcast_to(self.tilt, shape)
        levels, log_ratios = draw_levels(self.tangents, self.rate, self.tilt, uniforms[:, :2])
        levels = jnp.broadcast_to(levels[:, None], shape)
        steps = segments.distance(uniforms[:, 2 : shape[1] + 2], jnp.abs(tilts), 2.0 * levels) - levels
        return jnp.where(tilts < 0, -steps, steps), log_ratios


class TiltedNormal(AbstractTiltedLaw):
    """∝ exp(-½c|y|² - h'y), which is N(-h/c, I/c), of mass (2π/c)^(d/2) exp(|h|²/(2c)): for any h."""

    @property
    def log_mass(self) -> Float[Array, ""]:
        square = self.tilt @ self.tilt
        return 0.5 * self.tilt.shape[0] * jnp.log(2.0 * math.pi / self.rate) + 0.5 * square / self.rate

    def draw(self, uniforms: Uniforms) -> Draws:
        number, dimension = uniforms.shape[0], self.tilt.shape[0]
        tilts = jnp.broadcast_to(self.tilt, (number, dimension))
        return _normals(uniforms[:, :dimension]) / jnp.sqrt(self.rate) - tilts / self.rate, jnp.zeros(number)


def _normals(uniforms: Float[Array, "*draws"]) -> Float[Array, "*draws"]:
    """Standard normal variables by inversion."""
    least = jnp.nextafter(-jnp.ones_like(uniforms), jnp.zeros_like(uniforms))
    return math.sqrt(2.0) * jax.scipy.special.erfinv(jnp.maximum(2.0 * uniforms - 1.0, least))
