"""Tilted noise: the laws of y ∈ R^d with densities ∝ exp(-c‖y‖ - h'y), drawn by inversion from uniform variables.

A norm that knows its own has `has_tilts`. Where a law is drawn from a function above the density, that function's mass
and the log-ratio of the two at each draw come with it.
"""

import abc
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar, Vector
from kngjax.core.modules import AbstractModule
from kngjax.geometry import level_law, segments

Uniforms = Float[Array, "draws uniforms"]
Draws = tuple[Float[Array, "draws dimension"], Float[Array, " draws"]]


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


class TiltedMaximumLaw(AbstractTiltedLaw):
    """∝ exp(-c‖y‖_∞ - h'y): a level t ≥ ‖y‖_∞ from tangents above its density (`level_law`), then exponentials."""

    tangents: level_law.LevelTangents

    def __init__(self, rate: Scalar, tilt: Vector):
        self.rate, self.tilt, self.tangents = rate, tilt, level_law.level_law(rate, tilt)

    @property
    def log_mass(self) -> Float[Array, ""]:
        return jax.scipy.special.logsumexp(self.tangents.log_masses)

    def draw(self, uniforms: Uniforms) -> Draws:
        shape = uniforms.shape[0], self.tilt.shape[0]
        tilts = jnp.broadcast_to(self.tilt, shape)
        levels, log_ratios = level_law.draw_levels(self.tangents, self.rate, self.tilt, uniforms[:, :2])
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
