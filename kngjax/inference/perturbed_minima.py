"""The noise of objective perturbation where few records bend the objective less, the farther its minimum moves."""

import numpy as np
from jaxtyping import Float

from kngjax.inference.score_laws import ScoreLaw

_DRAWS, _ROWS, _STEPS, _HALVINGS = 200, 200, 25, 8


def noise_of_minima(
    law: ScoreLaw, rows: np.ndarray, num_records: int, noise: np.ndarray, ridge: float
) -> Float[np.ndarray, "dimension dimension"]:
    """Computes E δδ' for the solutions δ of n·E s(x'δ)x + γδ = z, with noise z whose radii are those of K-norm noise.

    **Arguments:** all public. `noise`: the covariance of z. `ridge`: γ > 0.
    """
    dimension = rows.shape[1]
    random = np.random.default_rng(0)
    few = rows[random.permutation(len(rows))[:_ROWS]]
    radii = random.gamma(dimension + 1.0, size=(_DRAWS, 1)) / np.sqrt((dimension + 1.0) * (dimension + 2.0))
    z = radii * random.uniform(-np.sqrt(3.0), np.sqrt(3.0), (_DRAWS, dimension)) @ np.linalg.cholesky(noise).T
    share, slopes = num_records / len(few), np.gradient(law.scores, law.steps)

    def residuals(points: np.ndarray) -> np.ndarray:
        return share * law.mean_score(points @ few.T) @ few + ridge * points - z

    squares = (few[:, :, None] * few[:, None, :]).reshape(len(few), -1)
    points = np.zeros_like(z)
    left = residuals(points)
    for _ in range(_STEPS):
        weights = np.interp(points @ few.T, law.steps, slopes)
        hessians = share * (weights @ squares).reshape(len(z), dimension, dimension) + ridge * np.eye(dimension)
        moves = np.linalg.solve(hessians, left[:, :, None])[:, :, 0]
        lengths, sizes = np.ones(len(z)), np.linalg.norm(left, axis=1)
        for _ in range(_HALVINGS):
            trial = residuals(points - lengths[:, None] * moves)
            lengths = np.where(np.linalg.norm(trial, axis=1) < sizes, lengths, 0.5 * lengths)
        points = points - lengths[:, None] * moves
        left = residuals(points)
    return points.T @ points / len(points)
