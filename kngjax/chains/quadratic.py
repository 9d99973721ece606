"""Quadratic losses in standard form: whitened coordinates y = T(θ - θ̂) in which a score is a plain norm.

With ∇ℓ = Aθ - b and θ̂ = A^{-1}b the score of KNG is ‖A(θ - θ̂)‖_K, that of the exponential mechanism
½(θ - θ̂)'A(θ - θ̂) above its smallest value. T takes up A and the parameters of the norm.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kngjax.chains.target import Target
from kngjax.core.arrays import Vector
from kngjax.data.records import QuadraticSummary
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import L2


class QuadraticForm(NamedTuple):
    """score(θ) = ‖y‖ for KNG and smallest_score + ½‖y‖² for the exponential mechanism, with y = T(θ - θ̂).

    **Arguments:** `centre`: θ̂. `transform`: T. `inverse`: T^{-1}. `log_determinant`: log |det T|. `norm`: of y, the
    mechanism's in its standard form. `smallest_score`. `sound`: whether A is
    far enough from singular for T^{-1} to be relied upon; where it is not A has a ridge of the size of its rounding.
    """

    centre: Float[Array, " dimension"]
    transform: Float[Array, "dimension dimension"]
    inverse: Float[Array, "dimension dimension"]
    log_determinant: Float[Array, ""]
    norm: AbstractNorm
    smallest_score: Float[Array, ""]
    sound: Bool[Array, ""]

    def images(self, theta: Float[Array, "*points dimension"]) -> Float[Array, "*points dimension"]:
        """y of each θ."""
        return (theta - jnp.broadcast_to(self.centre, theta.shape)) @ self.transform.T

    def points(self, images: Float[Array, "*points dimension"]) -> Float[Array, "*points dimension"]:
        """θ of each y."""
        steps = images @ self.inverse.T
        return jnp.broadcast_to(self.centre, steps.shape) + steps


def quadratic_form(target: Target) -> QuadraticForm:
    """Returns the standard form of a target with a `QuadraticSummary`; O(d³), once."""
    data = target.data
    assert isinstance(data, QuadraticSummary)
    dimension, gram, moment = target.dimension, jnp.asarray(data.gram), jnp.asarray(data.moment)
    diagonal = jnp.diagonal(jnp.linalg.cholesky(gram))
    sound = jnp.all(jnp.isfinite(diagonal)) & (jnp.min(diagonal) > 1e-6 * jnp.max(diagonal))
    # A singular A may round to one that is not positive definite.
    ridge = jnp.where(sound, 0.0, 1e-13 * jnp.max(jnp.diagonal(gram)) + 1e-100)
    factor = jnp.linalg.cholesky(gram + ridge * jnp.eye(dimension))
    centre = jax.scipy.linalg.cho_solve((factor, True), moment)
    log_diagonal = jnp.sum(jnp.log(jnp.diagonal(factor)))
    lower_inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(dimension), lower=True)
    if target.norm is None:
        # Where A is singular the smallest loss is not known; 0 bounds it from below.
        smallest = jnp.where(sound, target.loss.value(centre, data), 0.0)
        return QuadraticForm(centre, factor.T, lower_inverse.T, log_diagonal, L2(), smallest, sound)
    transform, inverse = gram + ridge * jnp.eye(dimension), lower_inverse.T @ lower_inverse
    transform, inverse, log_scale = target.norm.standardise(transform, inverse)
    norm, log_determinant = target.norm.standard, 2.0 * log_diagonal + log_scale
    return QuadraticForm(centre, transform, inverse, log_determinant, norm, jnp.zeros(()), sound)


def support(target: Target, direction: Vector) -> Float[Array, ""]:
    """σ(s) = sup {s'θ : θ ∈ Θ}, infinite if Θ is unbounded; so 1_Θ(θ) ≤ exp(σ(s) - s'θ) for every s."""
    return jnp.asarray(target.domain.linear_interval(direction, direction)[1])
