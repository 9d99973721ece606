"""Minimisers under jit and vmap: of strongly convex quadratics over Θ, exactly, and of smooth losses with a ridge.

They serve mechanisms whose law is that of a minimiser: each says whether it succeeded, and returns NaN where its
criterion is not met.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from kngjax.core.arrays import Matrix, Scalar, Vector
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss

MAX_NEWTON_STEPS = 200
# How often a Newton step is halved at most; the whole step is tried first.
NUM_HALVINGS = 40
# Residuals in units of the rounding error: at the first the search stops, beyond the second it has failed.
WITHIN_ROUNDING = 32.0
TOO_FAR = 4096.0
# The largest number of records times searches in one batch, so that a batch fits into a processor's cache.
LARGEST_BATCH = 2**14

# What the guarantee of a mechanism assumes of a minimiser that a search stopped at.
WITHIN_TOLERANCE = (
    "the gradient of the objective is at most the tolerance where the search stopped, as computed in float64; a search "
    "that misses it releases nothing, and that it did is not covered"
)

Minimiser = tuple[Float[Array, " dimension"], Bool[Array, ""]]


class _NewtonIterate(NamedTuple):
    theta: Float[Array, " dimension"]
    residual: Float[Array, ""]
    num_steps: Int[Array, ""]


def quadratic_minimiser(domain: AbstractDomain, matrix: Matrix, vector: Vector) -> Minimiser:
    """argmin {½θ'Mθ - v'θ : θ ∈ Θ} to machine precision, NaN if it was missed, and whether it was found.

    θ is the minimiser if and only if F(θ) = θ - P(θ - t∇f(θ)) = 0, with P the projection onto Θ and t > 0. For
    t‖M‖ < 1 the forward-backward envelope φ(θ) = min {f(θ) + ∇f(θ)'(z - θ) + |z - θ|²/(2t) : z ∈ Θ} has the gradient
    (I - tM)F(θ)/t, is strongly convex, and is least at the same θ (Patrinos and Bemporad 2013). So Newton's method on
    F, damped until φ falls, converges from everywhere; over a box or an l1 ball φ is piecewise quadratic, and it ends
    at the solution itself once it has found the face. Some ten steps of O(d³), also where M is singular but for a
    ridge.

    **Arguments:** `domain`: a convex Θ with a Euclidean projection. `matrix`: M, symmetric positive definite, shape
    (d, d). `vector`: v, shape (d,).
    """
    matrix, vector = jnp.asarray(matrix), jnp.asarray(vector)
    dimension = vector.shape[0]
    # The largest row sum is at least the largest eigenvalue.
    step = 0.95 / jnp.max(jnp.sum(jnp.abs(matrix), axis=1))
    identity = jnp.eye(dimension)
    shrink = identity - step * matrix
    shifted = step * vector
    scales = 0.5 ** jnp.arange(NUM_HALVINGS)

    def image(theta):
        return domain.project(shrink @ theta + shifted)

    def residual(theta):
        return jnp.linalg.norm(theta - image(theta))

    def envelope(theta):
        slope, move = matrix @ theta - vector, image(theta) - theta
        return 0.5 * theta @ (slope - vector) + slope @ move + move @ move / (2.0 * step)

    def advance(search):
        theta = search.theta
        fixed = image(theta)
        jacobian = jax.jacfwd(domain.project)(shrink @ theta + shifted)
        direction = jnp.linalg.solve(identity - jacobian @ shrink, fixed - theta)
        descent = (theta - fixed) @ (shrink @ direction) / step
        trials = jax.vmap(lambda scale: theta + scale * direction)(scales)
        residuals = jax.vmap(residual)(trials)
        lower = jax.vmap(envelope)(trials) <= envelope(theta) + 1e-4 * scales * descent
        # Close to the solution differences of φ are lost in rounding, those of F are not.
        accepted = lower | (residuals <= 0.5 * search.residual)
        first = jnp.argmax(accepted)
        any_accepted = jnp.any(accepted)
        new = jnp.where(any_accepted, trials[first], fixed)
        return _NewtonIterate(new, jnp.where(any_accepted, residuals[first], residual(fixed)), search.num_steps + 1)

    start = domain.project(jnp.linalg.solve(matrix, vector))
    rounding = jnp.finfo(vector.dtype).eps * (jnp.linalg.norm(start) + jnp.linalg.norm(shifted))
    search = jax.lax.while_loop(
        lambda search: (search.residual > WITHIN_ROUNDING * rounding) & (search.num_steps < MAX_NEWTON_STEPS),
        advance,
        _NewtonIterate(start, residual(start), jnp.asarray(0)),
    )
    # One more image lies in Θ, and within rounding of the solution.
    return _mask_failure(image(search.theta), search.residual <= TOO_FAR * rounding)


def tilted_minimiser(
    loss: AbstractLoss, data: Data, ridge: Scalar, tilt: Vector, tolerance: Scalar, centre: Vector | None = None
) -> Minimiser:
    """θ with ‖∇J(θ)‖_2 ≤ tolerance, J(θ) = ℓ_n(θ; D) + (γ/2)|θ - c|² + b'θ on R^d, NaN if it was missed, and whether.

    J is γ-strongly convex, so θ is within tolerance/γ of its minimiser. Newton's method from c, halving the step until
    J still falls at its end (∇J'direction ≤ 0) or ‖∇J‖ is half of the least so far. It compares gradients and never
    values of J, whose differences are lost in rounding long before gradients of 1e-8 (at n = 1e6, or with one response
    of 1e300). About five steps of O(nd²); with quasi-Newton steps there are fewer operations in one and up to twenty
    times as many of them where features are correlated.

    **Arguments:** `loss`: convex, with a gradient and a Hessian almost everywhere. `ridge`: γ > 0. `tilt`: b of shape
    (d,). `tolerance`: in the units of the gradient. `centre`: c, None for 0.
    """
    tilt = jnp.asarray(tilt)
    start = jnp.zeros_like(tilt) if centre is None else jnp.asarray(centre)
    identity = jnp.eye(tilt.shape[0])

    def slope(theta):
        return loss.gradient(theta, data) + ridge * (theta - start) + tilt

    def advance(state):
        theta, gradient, least, num_steps = state
        direction = -jnp.linalg.solve(loss.hessian(theta, data) + ridge * identity, gradient)

        def too_far(trial):
            _, end, halvings = trial
            return (end @ direction > 0.0) & (jnp.linalg.norm(end) > 0.5 * least) & (halvings < NUM_HALVINGS)

        def halve(trial):
            scale = 0.5 * trial[0]
            return scale, slope(theta + scale * direction), trial[2] + 1

        whole = jnp.ones_like(least), slope(theta + direction), jnp.asarray(0)
        scale, end, _ = jax.lax.while_loop(too_far, halve, whole)
        return theta + scale * direction, end, jnp.minimum(least, jnp.linalg.norm(end)), num_steps + 1

    gradient = slope(start)
    theta, gradient, _, _ = jax.lax.while_loop(
        lambda state: (jnp.linalg.norm(state[1]) > tolerance) & (state[3] < MAX_NEWTON_STEPS),
        advance,
        (start, gradient, jnp.linalg.norm(gradient), jnp.asarray(0)),
    )
    return _mask_failure(theta, jnp.linalg.norm(gradient) <= tolerance)


def tilted_minimisers(
    loss: AbstractLoss,
    data: Records | WeightedRecords,
    ridge: Scalar,
    tilts: Float[Array, "searches dimension"],
    tolerance: Scalar,
    centre: Vector | None = None,
) -> tuple[Float[Array, "searches dimension"], Bool[Array, " searches"]]:
    """`tilted_minimiser` for each b, in batches."""
    largest = max(1, min(len(tilts), LARGEST_BATCH // max(1, data.num_records)))
    # The batch divides the number of searches: a remainder would be compiled as a second program.
    batch = next(size for size in range(largest, 0, -1) if len(tilts) % size == 0)
    return jax.lax.map(
        lambda tilt: tilted_minimiser(loss, data, ridge, tilt, tolerance, centre), tilts, batch_size=batch
    )


def _mask_failure(theta: Array, succeeded: Array) -> Minimiser:
    # Comparisons with NaN are false, so what is no number has not succeeded.
    return jnp.where(succeeded, theta, jnp.nan), succeeded
