"""How far the minimiser of a smooth loss moves when one person leaves or joins the data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kngjax.core.arrays import float64, parameter
from kngjax.data.records import Records
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.minimisers import tilted_minimiser
from kngjax.owner.per_instance.chunks import CHUNK, by_chunks

METHODS = ("exact", "first_order")
# Linear predictors that are held at a time, people times records.
_LARGEST_BLOCK = 2**22
_MOST_STEPS = 40
# Lengths of a step relative to the whole move: at the first the search ends, up to the second it has converged.
_END, _CONVERGED = 1e-12, 1e-9
# A few rounding errors, relative to the sum of the lengths of the gradients.
_ROUNDING = 1e-14


class Moves(NamedTuple):
    """Holds how people move the minimiser: owner-only.

    **Arguments:** `move`: θ̂' - θ̂ of the larger data set less the smaller, shape (n, d). `leverage`: cx'H^{-1}x with
    the curvature c of this person's loss, out of sample to first order, shape (n,). `residual`: -s, the negative score
    at θ̂ of the data as they are, shape (n,).
    """

    move: np.ndarray
    leverage: np.ndarray
    residual: np.ndarray


def minimiser(loss: AbstractPredictorLoss, records: Records, regularization: Any) -> np.ndarray:
    """argmin ℓ_n(θ) + ½λ‖θ‖² to rounding, shape (d,); ValueError where it was not found. Owner-only."""
    with float64():
        theta, succeeded = _refit(loss, records.x, records.y, parameter(regularization))
        theta, succeeded = np.array(theta), bool(succeeded)
    if not succeeded:
        raise ValueError(
            "the minimiser of the regularised loss was not found to working precision: give a larger regularization, "
            "or scale the columns to similar public bounds"
        )
    return theta


def moves(
    loss: AbstractPredictorLoss,
    records: Records,
    regularization: Any,
    theta: np.ndarray,
    targets: Records | None = None,
    method: str = "exact",
) -> Moves:
    """θ̂' - θ̂ for each person, in the data (`targets` None: as they leave) or outside of them (as they join).

    "exact" solves Σ_j [s_j(θ̂+Δ) - s_j(θ̂)]x_j + λΔ ± s(θ̂+Δ)x = 0 by Newton's method from Δ = 0 with the Hessian at
    θ̂, which one person changes by a matrix of rank one; a step costs O(nd) a person, and a few reach rounding. Where
    they do not, the loss is fitted anew. "first_order" is H^{-1}∇ℓ(θ̂; z), an approximation at O(d²) a person that
    forgets the person's own curvature.

    **Arguments:** `theta`: θ̂ of the data, from `minimiser`. Raises ValueError for other methods, and where a new fit
    failed.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    people = records if targets is None else targets
    chunk = CHUNK
    if method == "exact":
        chunk = max(1, min(chunk, _LARGEST_BLOCK // records.y.shape[0]))
    regularization = parameter(regularization)
    sign = -1.0 if targets is None else 1.0
    with float64():
        factor = np.array(_factor(loss, records, theta, regularization))
    shared = (loss, records, theta, regularization, factor, sign, method == "exact")
    results = by_chunks(_move, (np.asarray(people.x), np.asarray(people.y)), shared, chunk)
    move = results["move"]
    for person in np.flatnonzero(~results["converged"]):
        x, y = np.asarray(records.x), np.asarray(records.y)
        if targets is None:
            # A row of zeros has no influence, and keeps the shape: no other program is compiled.
            x = np.where((np.arange(len(y)) == person)[:, None], 0.0, x)
        else:
            x, y = np.vstack([x, targets.x[person]]), np.append(y, targets.y[person])
        move[person] = minimiser(loss, Records(x, y), regularization) - theta
    return Moves(sign * move, results["leverage"], results["residual"])


@jax.jit
def _refit(loss, x, y, regularization):
    records = Records(jnp.asarray(x), jnp.asarray(y))
    origin = jnp.zeros(records.dimension)
    scores = jax.vmap(loss.record_score)(records.x @ origin, records.y)
    tolerance = _ROUNDING * jnp.sum(jnp.abs(scores) * jnp.linalg.norm(records.x, axis=1))
    # A minimiser at the origin has a gradient of rounding errors alone.
    return tilted_minimiser(loss, records, regularization, origin, jnp.maximum(tolerance, 1e-14))


@jax.jit
def _factor(loss, records, theta, regularization):
    hessian = loss.hessian(theta, records) + regularization * jnp.eye(records.dimension)
    return jnp.linalg.cholesky(hessian)


def _move(people: Any, shared: Any) -> dict[str, jax.Array]:
    """Moves with the sign of what happens: a leaving person's is θ̂_{-i} - θ̂."""
    (x, y), (loss, records, theta, regularization, factor, sign, exact) = people, shared
    design, response = jnp.asarray(records.x), jnp.asarray(records.y)
    score, curvature = jax.vmap(loss.record_score), jax.vmap(loss.record_curvature)
    predictors, person_predictors = design @ theta, x @ theta
    standing = score(predictors, response)
    curvatures = curvature(person_predictors, y)
    solved = jax.scipy.linalg.cho_solve((factor, True), x.T).T
    leverage = curvatures * jnp.sum(x * solved, axis=1)
    first_order = -sign * score(person_predictors, y)[:, None] * solved
    results = {
        "leverage": leverage if sign > 0 else leverage / (1.0 - leverage),
        "residual": -score(person_predictors, y),
    }
    if not exact:
        return results | {"move": first_order, "converged": jnp.ones(len(y), dtype=bool)}

    def step(state):
        move, _, count = state
        changed = jax.vmap(lambda predictor: score(predictor, response) - standing, in_axes=1, out_axes=1)(
            predictors[:, None] + design @ move.T
        )
        slope = (design.T @ changed).T + regularization * move
        slope += sign * score(person_predictors + jnp.sum(x * move, axis=1), y)[:, None] * x
        # (H ± cxx')^{-1} by the formula of Sherman and Morrison.
        direction = jax.scipy.linalg.cho_solve((factor, True), slope.T).T
        part = sign * curvatures * jnp.sum(x * direction, axis=1) / (1.0 + sign * leverage)
        direction -= part[:, None] * solved
        new = move - direction
        return new, jnp.linalg.norm(direction, axis=1) / (jnp.linalg.norm(new, axis=1) + 1e-300), count + 1

    # A person without any score leaves no trace: 0/1e-300 is no move at all.
    move, relative, _ = jax.lax.while_loop(
        lambda state: jnp.any(state[1] > _END) & (state[2] < _MOST_STEPS),
        step,
        (jnp.zeros_like(x), jnp.full(len(y), jnp.inf), 0),
    )
    return results | {"move": move, "converged": relative <= _CONVERGED}
