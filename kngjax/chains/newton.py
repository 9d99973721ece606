"""The point at which the gradient of the loss has a given value, by damped Newton steps from a common start."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kngjax.chains.limit_law import sound_hessian
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, block_sums
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss

# In units of c‖·‖_K, so errors of a log-density: where the iteration may stop, and what counts as a solution.
_GOAL, _TOLERANCE = 1e-8, 1e-6
_MAX_EVALUATIONS = 80
_SMALLEST_DAMPING = 1e-10
_RECORDS_OF_A_GRADIENT = 1024
# A search for the minimiser has so many rounds at most, and each tries these parts of a Newton step.
_MOST_ROUNDS, _PARTS = 40, 8.0 ** -np.arange(6.0)


class Point(NamedTuple):
    """A point with ∇ℓ, shape (d,), and L^{-1} with LL' = ∇²ℓ, NaN where that is not positive definite."""

    theta: Float[Array, " dimension"]
    gradient: Float[Array, " dimension"]
    inverse_factor: Float[Array, "dimension dimension"]


class Solution(NamedTuple):
    """Holds the result of `solve`.

    **Arguments:** `point`: the last iterate. `found`: whether it is a solution in Θ. `unsettled`: whether neither a
    solution nor a proof that there is none in Θ was found. `num_evaluations`: of the gradient and the Hessian.
    """

    point: Point
    found: Bool[Array, ""]
    unsettled: Bool[Array, ""]
    num_evaluations: Int[Array, ""]


class _Iteration(NamedTuple):
    point: Point
    damping: Float[Array, ""]
    num_evaluations: Int[Array, ""]
    is_separated: Bool[Array, ""]
    is_finished: Bool[Array, ""]


def evaluate(target: Target, theta: Vector) -> Point:
    """∇ℓ and the inverse factor of ∇²ℓ = Σ_i ρ''_i x_i x_i' at θ.

    The Hessian is the product of the curvatures with a table of the products x_ij x_ik, made anew for every block of
    records: mapped over many θ that is one matrix product, and memory stays bounded whatever n.
    """
    loss, data, theta = target.loss, target.data, jnp.asarray(theta)
    if not isinstance(data, Records):
        return point_of(theta, loss.gradient(theta, data), loss.hessian(theta, data))
    assert isinstance(loss, AbstractPredictorLoss)
    dimension = data.dimension
    rows, columns = np.triu_indices(dimension)
    places = np.zeros((dimension, dimension), int)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)

    def terms(x, y):
        predictors = x @ theta
        gradient = jax.vmap(loss.record_score)(predictors, y) @ x
        return gradient, jax.vmap(loss.record_curvature)(predictors, y) @ (x[:, rows] * x[:, columns])

    found, packed = block_sums(terms, (data.x, data.y), records_a_block(rows.size))
    return point_of(theta, found, packed[places])


def gradient(target: Target, theta: Vector) -> Float[Array, " dimension"]:
    """∇ℓ at θ alone, over blocks of records few enough that what a batch of θ makes of one stays in a cache."""
    loss, data, theta = target.loss, target.data, jnp.asarray(theta)
    if not isinstance(data, Records):
        return loss.gradient(theta, data)
    assert isinstance(loss, AbstractPredictorLoss)

    def terms(x, y):
        return jax.vmap(loss.record_score)(x @ theta, y) @ x

    return block_sums(terms, (data.x, data.y), _RECORDS_OF_A_GRADIENT)


def records_a_block(num_products: int) -> int:
    """Returns how many records make a table of products with about a million entries."""
    return int(np.clip(2**20 // num_products, 2**8, 2**14))


def point_of(theta: Array, gradient: Array, hessian: Array) -> Point:
    """Returns a point from its gradient and its Hessian."""
    # The inverse, and not a solve where one is needed: two LAPACK calls on large batches that XLA may run at the same
    # time have deadlocked on CPUs (jax 0.10.2); here each waits for the one before.
    factor = jnp.linalg.cholesky(hessian)
    return Point(theta, gradient, jax.scipy.linalg.solve_triangular(factor, jnp.eye(theta.shape[0]), lower=True))


def log_determinant(point: Point) -> Float[Array, ""]:
    """log det ∇²ℓ, NaN where it is not positive definite to working accuracy."""
    return -2.0 * jnp.sum(jnp.log(jnp.diagonal(point.inverse_factor)))


def solve(target: Target, start: Point, value: Vector, at: Callable[[Vector], Point] | None = None) -> Solution:
    """Returns the θ ∈ Θ with ∇ℓ(θ) = value, if there is one; or with G(θ) = value for another gradient.

    Newton steps, halved until |L^{-1}(∇ℓ - value)| falls, with LL' the Hessian at the step's foot: a test that no
    linear change of basis alters (Deuflhard 2011, chapter 3). Gradients alone decide, since sums of losses lose their
    digits to a single wild response. Small steps follow the segment from ∇ℓ(start) to the value, which lies in the
    image of ∇ℓ if its ends do: the image is convex.

    There is no solution in Θ if (∇ℓ(θ_k) - value)'(θ - θ_k) > 0 for all θ ∈ Θ at some θ_k, since ∇ℓ is monotone.

    **Arguments:** `start`: whose inverse factor must be finite. `value`: shape (d,). `at`: G and its Hessian at a
    point, if it is not ∇ℓ: the gradient of a function that is strictly convex on a convex set, NaN beyond.
    """
    assert target.norm is not None
    if at is None:
        at = functools.partial(evaluate, target)
    norm, domain = target.norm, target.domain

    def error(gradient):
        return target.rate * norm(gradient - value)

    def advance(iteration: _Iteration) -> _Iteration:
        foot, damping = iteration.point, iteration.damping
        residual = foot.gradient - value
        scaled = foot.inverse_factor @ residual
        step = -scaled @ foot.inverse_factor
        trial = at(foot.theta + damping * step)
        rest = trial.gradient - value
        progress = jnp.linalg.norm(foot.inverse_factor @ rest)
        accept = progress <= (1.0 - 0.25 * damping) * jnp.linalg.norm(scaled)
        accept &= jnp.all(jnp.isfinite(trial.inverse_factor))
        smallest = domain.linear_interval(rest, rest)[0]
        level = rest @ trial.theta
        is_separated = smallest - level > 1e-9 * (jnp.abs(rest) @ jnp.abs(trial.theta) + jnp.abs(smallest))
        is_separated &= jnp.isfinite(smallest)
        point = jax.tree.map(lambda new, old: jnp.where(accept, new, old), trial, foot)
        damping = jnp.where(accept, 1.0, 0.5 * damping)
        # No progress from a solution is rounding; from elsewhere it is a point of no return.
        is_finished = (error(point.gradient) <= jnp.where(accept, _GOAL, _TOLERANCE)) | (damping < _SMALLEST_DAMPING)
        return _Iteration(point, damping, iteration.num_evaluations + 1, is_separated, is_finished | is_separated)

    def is_unfinished(iteration: _Iteration) -> Bool[Array, ""]:
        return ~iteration.is_finished & (iteration.num_evaluations < _MAX_EVALUATIONS)

    no = jnp.zeros((), bool)
    begun = _Iteration(start, jnp.ones(()), jnp.zeros((), int), no, error(start.gradient) <= _GOAL)
    ended = jax.lax.while_loop(is_unfinished, advance, begun)
    is_solution = error(ended.point.gradient) <= _TOLERANCE
    found = is_solution & domain.contains(ended.point.theta)
    return Solution(ended.point, found, ~is_solution & ~ended.is_separated, ended.num_evaluations)


class _Descent(NamedTuple):
    theta: Float[Array, " dimension"]
    value: Float[Array, ""]
    num_rounds: Int[Array, ""]
    is_finished: Bool[Array, ""]


def descend(target: Target) -> Float[Array, " dimension"]:
    """θ̂, about, within a traced program: Newton steps from 0, each as long a part of one as lowers ℓ_n most. Private.

    It is about where chains start, in the place of the estimate that is found on the host. Where the Hessian is itself
    an estimate, as that of the quantile loss, steps end near the minimiser of ℓ_n and not at it; where a Newton step
    would raise ℓ_n, as of a loss that is not convex, it goes down the gradient.
    """
    loss, data = target.loss, target.data

    def value(theta):
        found = loss.value(theta, data)
        return jnp.where(jnp.isfinite(found), found, jnp.inf)

    def advance(descent: _Descent) -> _Descent:
        slope, hessian = loss.gradient(descent.theta, data), sound_hessian(target, descent.theta)
        scales = jnp.maximum(jnp.abs(jnp.diagonal(hessian)), jnp.finfo(hessian.dtype).tiny)
        # No LAPACK call, which might run beside another one: see `point_of`.
        step, _ = jax.scipy.sparse.linalg.cg(
            lambda vector: hessian @ vector, -slope, maxiter=2 * target.dimension, M=lambda vector: vector / scales
        )
        falls = jnp.all(jnp.isfinite(step)) & (step @ slope < 0.0)
        step = jnp.where(falls, step, -slope / (jnp.max(scales) * target.dimension))
        trials = descent.theta[None] + _PARTS[:, None] * step[None]
        values = jax.lax.map(value, trials)
        best = jnp.argmin(values)
        least = jnp.where(jnp.isinf(descent.value), 0.0, 1e3 * jnp.finfo(values.dtype).eps * jnp.abs(descent.value))
        better = descent.value - values[best] > least
        theta = jnp.where(better, trials[best], descent.theta)
        return _Descent(theta, jnp.where(better, values[best], descent.value), descent.num_rounds + 1, ~better)

    def is_unfinished(descent: _Descent) -> Bool[Array, ""]:
        return ~descent.is_finished & (descent.num_rounds < _MOST_ROUNDS)

    start = jnp.zeros(target.dimension)
    begun = _Descent(start, value(start), jnp.zeros((), int), jnp.zeros((), bool))
    return jax.lax.while_loop(is_unfinished, advance, begun).theta
