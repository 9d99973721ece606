"""Exponential laws on segments, of which piecewise log-linear densities are mixtures: their masses and draws."""

import jax.numpy as jnp
from jaxtyping import Array, Float

# A density whose logarithm falls by less than this over a segment is constant up to rounding.
_FLAT = 1e-12


def log_mass(rate: Float[Array, "*pieces"], length: Float[Array, "*pieces"]) -> Float[Array, "*pieces"]:
    """log ∫_0^length exp(-rate·x) dx for rate ≥ 0; -inf for a segment of no length."""
    fall = jnp.where(rate > 0, rate * length, 0.0)
    flat = fall < _FLAT
    steep = jnp.log(-jnp.expm1(-jnp.where(flat, 1.0, fall))) - jnp.log(jnp.where(flat, 1.0, rate))
    occupied = length > 0
    return jnp.where(occupied, jnp.where(flat, jnp.log(jnp.where(flat & occupied, length, 1.0)), steep), -jnp.inf)


def distance(
    uniform: Float[Array, "*draws"], rate: Float[Array, "*draws"], length: Float[Array, "*draws"]
) -> Float[Array, "*draws"]:
    """Draws from the density ∝ exp(-rate·x) on [0, length] by inversion of a uniform variable."""
    fall = jnp.where(rate > 0, rate * length, 0.0)
    flat = fall < _FLAT
    return jnp.where(flat, uniform * length, -jnp.log1p(uniform * jnp.expm1(-fall)) / jnp.where(flat, 1.0, rate))


def draw(
    uniform: Float[Array, "*draws"],
    slope: Float[Array, "*draws"],
    left: Float[Array, "*draws"],
    right: Float[Array, "*draws"],
) -> Float[Array, "*draws"]:
    """Draws from the density ∝ exp(slope·x) on [left, right] with a uniform variable, from the higher end on."""
    step = distance(uniform, jnp.abs(slope), right - left)
    return jnp.where(slope > 0, right - step, left + step)
