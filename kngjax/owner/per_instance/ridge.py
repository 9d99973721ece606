"""How each person of a ridge regression influences it: leverage, residual and lengths, by one Cholesky factor."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from kngjax.core.arrays import Matrix, Vector
from kngjax.owner.per_instance.chunks import by_chunks
from kngjax.owner.per_instance.pairs_of_laws import AbstractPair, ObjectivePair, PosteriorPair, ShiftPair

METRICS = ("identity", "hessian", "hessian_squared")
# The least 1 - μ': a smaller one has lost nine digits by cancellation.
_LEAST_REMAINDER = 1e-9
_SINGULAR = (
    "X'X + regularization*I is singular to working precision: give a larger regularization, or scale the columns to "
    "similar public bounds"
)


class RidgeFit(NamedTuple):
    """Holds a ridge fit: owner-only. **Arguments:** `theta`: θ̂ = H^{-1}X'y, shape (d,); `factor`: L with LL' = H = X'X
    + λI, (d, d).
    """

    theta: np.ndarray
    factor: np.ndarray


class Influence(NamedTuple):
    """Holds how each person influences a ridge regression on the data without that person. Owner-only.

    **Arguments:** `leverage`: μ = x'H^{-1}x; `residual`: r = y - x'θ̂; `length`: ‖x‖_2; `spread`: ‖H^{-1}x‖_2.
    """

    leverage: np.ndarray
    residual: np.ndarray
    length: np.ndarray
    spread: np.ndarray


def design(gram: Matrix, moment: Vector, regularization: Any) -> RidgeFit:
    """θ̂ and the Cholesky factor of X'X + λI; ValueError where that is not positive definite in float64."""
    precision = np.asarray(gram, dtype=np.float64) + float(regularization) * np.eye(len(moment))
    spectrum = np.linalg.eigvalsh(precision)
    if not spectrum[0] > len(moment) * np.finfo(np.float64).eps * spectrum[-1]:
        raise ValueError(_SINGULAR)
    factor = scipy.linalg.cholesky(precision, lower=True)
    return RidgeFit(scipy.linalg.cho_solve((factor, True), np.asarray(moment, dtype=np.float64)), factor)


def influences(x: Any, y: Any, fit: RidgeFit, inside: bool) -> Influence:
    """μ, r, ‖x‖ and ‖H^{-1}x‖ of each person with respect to the data without that person.

    For people inside of the data H is that of all, and their in-sample μ', r' give by the formula of Sherman and
    Morrison μ = μ'/(1-μ'), r = r'/(1-μ') and H_{-i}^{-1}x = H^{-1}x/(1-μ').

    **Arguments:** `x`, `y`: of shapes (n, d) and (n,). `fit`: of the data. `inside`: whether they are in them.
    Raises ValueError where what is left without somebody is singular to working precision.
    """
    numbers = by_chunks(_influence, (np.asarray(x), np.asarray(y)), (fit, inside))
    if not np.all(numbers.pop("remainder") > _LEAST_REMAINDER):
        raise ValueError(_SINGULAR + "; without one of its people it is")
    return Influence(**numbers)


def _influence(people: Any, shared: Any) -> dict[str, jax.Array]:
    (x, y), (fit, inside) = people, shared
    solved = jax.scipy.linalg.cho_solve((fit.factor, True), x.T).T
    leverage = jnp.sum(x * solved, axis=1)
    remainder = 1.0 - leverage if inside else jnp.ones_like(leverage)
    return {
        "leverage": leverage / remainder,
        "residual": (y - x @ fit.theta) / remainder,
        "length": jnp.linalg.norm(x, axis=1),
        "spread": jnp.linalg.norm(solved, axis=1) / remainder,
        "remainder": remainder,
    }


def change(influence: Influence) -> np.ndarray:
    """‖θ̂' - θ̂‖_2 = ‖H^{-1}x‖·|r|/(1+μ), shape (n,): Lemma 13 of Wang (2019), for linear models an identity."""
    return influence.spread * np.abs(influence.residual) / (1.0 + influence.leverage)


def posterior_sample(influence: Influence, gamma: Any) -> PosteriorPair:
    """Returns the laws of OPS, N(θ̂, (γH)^{-1}), with and without each person. **Arguments:** `gamma`: γ > 0."""
    return PosteriorPair(influence.leverage, influence.residual, np.float64(gamma))


def objective_perturbation(influence: Influence, deviation: Any) -> ObjectivePair:
    """Returns the laws of argmin ½‖y - Xθ‖² + ½λ|θ|² - b'θ, b ~ N(0, σ²I). **Arguments:** `deviation`: σ > 0."""
    return ObjectivePair(
        influence.leverage, influence.residual, influence.length, influence.spread, np.float64(deviation)
    )


def output_perturbation(influence: Influence, gamma: Any, metric: str = "identity") -> AbstractPair:
    """Returns the laws of θ̂ + N(0, A^{-1}/γ) with and without each person.

    A = I is a Gaussian mechanism of shift √γ‖θ̂' - θ̂‖_2, A = H is OPS, and A = H² objective perturbation with σ² =
    1/γ; H depends on the data, so that the covariance tells of a person too.

    **Arguments:** `gamma`: γ > 0. `metric`: A, "identity", "hessian" or "hessian_squared".
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if metric == "hessian":
        return posterior_sample(influence, gamma)
    if metric == "hessian_squared":
        return objective_perturbation(influence, 1.0 / np.sqrt(gamma))
    return ShiftPair(np.sqrt(gamma) * change(influence))
