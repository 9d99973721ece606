"""Finds the minimiser of an expected loss, and how far it lies from the mean or the quantile that it stands for."""

from statistics import NormalDist
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.core.randomness import research_key
from kngjax.inference.response_laws import nodes_and_weights, of_each, quantiles_of
from kngjax.losses.base import AbstractResidualLoss

# Rows over which nodes of one law are shifted against one another; draws where a law has no quantile function.
_SHIFTED, _DRAWN, _LEAST_ROWS, _MOST_ROWS = 64, 2000, 512, 4096
_STEPS, _HALVINGS = 60, 30


def target_in_words(target: Any) -> str:
    """Returns "mean", "median" or "0.9-quantile". Raises ValueError for what is no target."""
    if target in ("mean", "median"):
        return target
    if isinstance(target, str) or np.ndim(target) or not 0.0 < float(target) < 1.0:
        raise ValueError(f"target must be 'mean', 'median', or the level of a quantile within (0, 1), not {target!r}")
    return "median" if target == 0.5 else f"{float(target):g}-quantile"


def bias_of(loss: AbstractResidualLoss, rows: np.ndarray, law: Any, target: Any) -> Float[np.ndarray, " dimension"]:
    """Returns θ* - θ_T: argmin_θ E ρ(e - x'θ) less the least squares coefficients of the target of e given x.

    Where an intercept is in the span of the columns, it is that of the intercept alone.

    **Arguments:** all public. `rows`: features, shape (m, d). `law`: of residuals, a NumPyro distribution of batch
    shape (), or `statistics.NormalDist`. `target`: "mean", "median", or the level of a quantile.
    """
    ones = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    ones[np.abs(ones) < 1e-9 * np.max(np.abs(ones))] = 0.0
    if np.allclose(rows @ ones, 1.0, atol=1e-9):
        column = np.ones((_SHIFTED, 1))
        return float((_minimiser(loss, column, law) - _target_of(column, law, target))[0]) * ones
    few = rows[:: -(-len(rows) // _MOST_ROWS)]
    # Nodes shift from row to row, and errors average out.
    few = np.tile(few, (-(-_LEAST_ROWS // len(few)), 1))
    return _minimiser(loss, few, law) - _target_of(few, law, target)


def _minimiser(loss: AbstractResidualLoss, rows: np.ndarray, law: Any) -> Float[np.ndarray, " dimension"]:
    """Computes θ* over the rows and the law of residuals, by Newton's method.

    For the quantile loss θ* is the least squares fit to the quantiles.
    """
    values, weights = residual_nodes(law, len(rows))
    if loss.score_is_piecewise_constant:
        with float64():
            low, jump = map(float, loss.score_step())
        return _target_of(rows, law, -low / jump)
    theta = np.linalg.lstsq(rows, np.sum(weights * values, axis=1), rcond=None)[0]
    value, gradient, hessian = _moments_at(loss, theta, rows, values, weights)
    for _ in range(_STEPS):
        # Huber's loss bends nowhere where all residuals are outliers.
        ridge = 1e-9 * (np.trace(hessian) + 1e-9) * np.eye(len(theta))
        move, length = np.linalg.solve(hessian + ridge, gradient), 1.0
        for _ in range(_HALVINGS):
            trial = _moments_at(loss, theta - length * move, rows, values, weights)
            if trial[0] <= value:
                break
            length *= 0.5
        else:
            break
        theta = theta - length * move
        value, gradient, hessian = trial
        if np.max(np.abs(move)) <= 1e-12 * (1.0 + np.max(np.abs(theta))):
            break
    return theta


def residual_nodes(law: Any, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns values and weights of residuals, shape (number, nodes), shifted from row to row."""
    from numpyro import distributions

    made = distributions.Normal(law.mean, law.stdev) if isinstance(law, NormalDist) else law
    with float64():
        try:
            values, weights = nodes_and_weights(made, number, None, is_smooth=False)
        except ValueError:
            if made.batch_shape not in ((), (1,)):
                raise
            drawn = np.asarray(made.sample(research_key(0), (_DRAWN,)), np.float64).reshape(_DRAWN, -1)
            values, weights = np.broadcast_to(drawn.T, (number, _DRAWN)), np.full((number, _DRAWN), 1.0 / _DRAWN)
        return np.asarray(values), np.asarray(weights)


def _target_of(rows: np.ndarray, law: Any, target: Any) -> np.ndarray:
    """Returns the coefficients of the target."""
    values, weights = residual_nodes(law, len(rows))
    if target == "mean":
        found = np.sum(weights * values, axis=1)
    else:
        level = 0.5 if target == "median" else float(target)
        found = quantiles_of(law, level, len(values))
    return np.linalg.lstsq(rows, np.broadcast_to(found, len(rows)), rcond=None)[0]


def _moments_at(loss: Any, theta: np.ndarray, *arrays: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    with float64(), quick_compilation():
        value, gradient, hessian = map(np.asarray, _moments(loss, theta, *arrays))
    return float(value), gradient, hessian


@Compiled
def _moments(loss: Any, theta: Any, rows: Any, values: Any, weights: Any) -> tuple[Array, ...]:
    """Returns E ρ, E sx and E ρ''xx' of one record."""

    def mean_of(function: Any) -> Array:
        return jnp.sum(weights * of_each(function, rows @ theta, values), axis=1) / rows.shape[0]

    hessian = (rows * mean_of(loss.record_curvature)[:, None]).T @ rows
    return jnp.sum(mean_of(loss.record_value)), mean_of(loss.record_score) @ rows, hessian
