"""The volume of the norm's ball, and the mass of an ideal envelope: what others are measured by."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.chains.target import Target


def log_ball_volume(target: Target) -> Float[Array, ""]:
    """log of the volume of {z : c‖z‖_K ≤ 1}."""
    assert target.norm is not None
    return target.norm.log_volume(target.dimension) - target.dimension * jnp.log(target.rate)


def log_core_mass(target: Target, log_determinant: Array) -> Float[Array, ""]:
    """log of ∫ exp(-c‖z‖_K) dz/det H₀ = d!·vol(K)/(c^d det H₀): what the mass would be if the Hessian were constant."""
    return math.lgamma(target.dimension + 1) + log_ball_volume(target) - log_determinant


def farthest_length(target: Target, log_determinant: Array) -> Float[Array, ""]:
    """Returns the c‖z‖_K beyond which even all of Θ adds next to nothing to the mass."""
    excess = target.domain.log_volume(target.dimension) - log_core_mass(target, log_determinant)
    return jnp.maximum(excess, 0.0) + 3.0 * target.dimension + 25.0
