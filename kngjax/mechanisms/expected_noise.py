"""Foresees how far a released value will lie from the estimate without privacy, to first order, by public facts."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.geometry.abstract_norms import AbstractNorm

# Draws that estimate the covariance of balls that are no boxes.
_DRAWS = 20_000


class ExpectedNoise(NamedTuple):
    """The law of θ̃ - θ̂ near θ̂, by its first two moments: covariance C, and mean -P(θ̂ - m).

    **Arguments:** `covariance`: C, shape (d, d). `pull`: P, shape (d, d): what a ridge takes of each coefficient, 0
    without one; m is where it pulls to. `is_exact`: whether this is the law whatever the records are. `tilt`: where θ̃
    solves ∇ℓ_n(θ) + γ(θ - m) = z, the covariance of z and γ. `towards`: m, None for 0. `growth`: where the noise is
    larger the larger θ is, and C is that of θ in the middle of what the bounds allow, by which factor deviations are
    larger of coefficients that explain responses which fill their bounds evenly by a column that does; else 1. `at`:
    there the covariance of a θ, shape (d,); else None.
    """

    covariance: Float[np.ndarray, "dimension dimension"]
    pull: Float[np.ndarray, "dimension dimension"]
    is_exact: bool = False
    tilt: tuple[np.ndarray, float] | None = None
    towards: Float[np.ndarray, " dimension"] | None = None
    growth: float = 1.0
    at: Callable[[np.ndarray], np.ndarray] | None = None

    @classmethod
    def of_gradient_noise(cls, hessian: np.ndarray, noise: np.ndarray, ridge: float = 0.0) -> "ExpectedNoise":
        """Returns the law of θ̃ - θ̂ from (H + γI)(θ̃ - θ̂) = z - γθ̂.

        **Arguments:** `noise`: the covariance of z. `ridge`: γ.
        """
        inverse = np.linalg.inv(hessian + ridge * np.eye(len(hessian)))
        return cls(inverse @ noise @ inverse, ridge * inverse)


def k_norm_covariance(norm: AbstractNorm, rate: float, dimension: int) -> Float[np.ndarray, "dimension dimension"]:
    """Cov z of z with density ∝ exp(-c‖z‖_K), which is Gamma(d + 1, c) times a uniform point of the ball.

    So it is (d + 1)(d + 2)/c² times the covariance of that point: w_j²/3 of a box; of other balls from fixed draws.
    """
    with float64():
        sides = norm.box_sides(dimension)
        if sides is not None:
            of_point = np.diag(np.square(np.asarray(sides, np.float64)) / 3.0)
        else:
            points = np.asarray(norm.draw_from_ball(jax.random.key(0), (_DRAWS,), dimension))
            of_point = points.T @ points / _DRAWS
    return (dimension + 1.0) * (dimension + 2.0) / rate**2 * of_point


def laplace_bridge_variances(rate: float, levels: int) -> Float[np.ndarray, " levels"]:
    """Var v_j of v with density ∝ exp(-c Σ_{j=1}^{m+1} |v_j - v_{j-1}|), v_0 = v_{m+1} = 0, for j = 1, ..., m."""
    grid = np.linspace(-60.0, 60.0, 2401)
    kernel = np.exp(-np.abs(grid))
    sums = [kernel]
    for _ in range(levels - 1):
        following = np.convolve(sums[-1], kernel, "same")
        sums.append(following / following.max())
    weights = [sums[j] * sums[levels - 1 - j] for j in range(levels)]
    return np.array([np.sum(weight * grid**2) / np.sum(weight) for weight in weights]) / rate**2


def eigenvalue_floor(deviation: Any, dimension: int, risk: float) -> Any:
    """σ(√(2d) + √(2 log(1/ρ))): beyond it the eigenvalues of Gaussian noise E are with probability at most ρ."""
    return deviation * (math.sqrt(2.0 * dimension) + math.sqrt(-2.0 * math.log(risk)))
