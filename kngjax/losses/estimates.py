"""Minimisers of losses over R^d on the host, without privacy: where chains start, and what only the owner may see."""

import math

import numpy as np
import scipy

from kngjax.core.arrays import record_sums_on_host

# Up to so many rows one linear programme takes milliseconds.
MOST_WHOLE_ROWS = 3000
# Of a linear programme whose columns are at most 2^7: smaller entries count as 0, and responses that are farther off
# than so many times their middle size are put there.
_LARGEST, _SMALLEST, _FARTHEST = 7, 2.0**-29, 2.0**45


def geometric_median(x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """argmin Σ w_i‖x_i - θ‖ by Weiszfeld's iteration, as Vardi and Zhang (2000) mend it for iterates on a record."""
    weights = np.ones(len(x)) if weights is None else weights
    if x.shape[1] == 1:
        return _median(x[:, 0], weights)
    theta = np.median(x, axis=0)
    for _ in range(1000):
        distances = np.linalg.norm(x - theta, axis=1)
        apart = distances > 0
        pulls = weights[apart] / distances[apart]
        pull = record_sums_on_host(pulls, x[apart] - theta)
        resistance = np.sum(weights[~apart])
        length = np.linalg.norm(pull)
        if length <= max(resistance, 1e-12 * np.sum(weights)):
            break
        step = (1.0 - resistance / length) * pull / record_sums_on_host(pulls, np.ones((pulls.size, 1)))
        theta = theta + step
        if np.linalg.norm(step) <= 1e-14 * (1.0 + np.linalg.norm(theta)):
            break
    return theta


def _median(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The middle of the minimisers of Σ w_i|x_i - θ|, shape (1,)."""
    order = np.argsort(x)
    below = np.cumsum(weights[order])
    ends = (np.searchsorted(below, 0.5 * below[-1], side) for side in ("left", "right"))
    return np.array([np.mean([x[order][min(end, len(x) - 1)] for end in ends])])


def quantile_regression(x: np.ndarray, y: np.ndarray, tau: float) -> np.ndarray:
    """Exact quantile regression at about the cost of one on n^(2/3) rows (Portnoy and Koenker 1997).

    The minimiser of a random part of the rows nearly tells which rows lie above the plane and which below. All but the
    rows nearest to it are merged into two, their means with their numbers as weights: by convexity the merged loss is
    nowhere above the whole one, and equal to it where every merged row is on its side. So a minimiser of the merged
    loss that leaves them there minimises the whole; if it does not, the rows on the wrong side are set free.
    """
    num_records, dimension = x.shape
    size = math.ceil((num_records * dimension) ** (2.0 / 3.0))
    if num_records <= MOST_WHOLE_ROWS or 2 * size >= num_records:
        return linear_programme(x, y, np.ones(num_records), tau)
    # Which rows are chosen changes the time that it takes, not the smallest loss.
    part = np.random.default_rng(0).choice(num_records, size, replace=False)
    residuals = y - x @ quantile_regression(x[part], y[part], tau)
    free = np.zeros(num_records, dtype=bool)
    while True:
        free[np.argpartition(np.abs(residuals), size)[:size]] = True
        above, below = ~free & (residuals > 0), ~free & (residuals <= 0)
        sides = np.stack([above, below])
        sides = sides[sides.any(axis=1)]
        counts = sides.sum(axis=1)
        merge = sides / counts[:, None]
        means = [record_sums_on_host(weights, np.column_stack([x, y])) for weights in merge]
        means = np.reshape(means, (len(merge), dimension + 1))
        theta = linear_programme(
            np.concatenate([x[free], means[:, :-1]]),
            np.concatenate([y[free], means[:, -1]]),
            np.concatenate([np.ones(free.sum()), counts]),
            tau,
        )
        residuals = y - x @ theta
        # Rows on the plane but for rounding are on both sides.
        rounding = 1e-12 * (np.abs(y) + np.abs(x) @ np.abs(theta))
        wrong = (above & (residuals < -rounding)) | (below & (residuals > rounding))
        if not wrong.any():
            return theta
        free |= wrong


def linear_programme(x: np.ndarray, y: np.ndarray, weights: np.ndarray, tau: float) -> np.ndarray:
    """argmin Σ w_i ρ_τ(y_i - x_i'θ) by its dual: max y'a with X'a = (1-τ)X'w, 0 ≤ a ≤ w; θ̂ are the multipliers.

    Its thresholds are absolute: an entry of 1e15 is refused, and one below 1e-9 counts as 0. So columns and responses
    are divided by powers of two first, which changes no digit, and what counts as 0 does so on both sides.
    """
    widths = np.frexp(np.max(np.abs(x), axis=0, initial=0.0))[1] - _LARGEST
    height = np.frexp(np.median(np.abs(y[y != 0.0])))[1] if np.any(y) else 0
    x = np.ldexp(x, -widths)
    x = np.where(np.abs(x) < _SMALLEST, 0.0, x)
    result = scipy.optimize.linprog(
        -np.clip(np.ldexp(y, -height), -_FARTHEST, _FARTHEST),
        A_eq=scipy.sparse.csr_array(x.T),
        b_eq=(1.0 - tau) * (weights @ x),
        bounds=np.stack([np.zeros_like(weights), weights], axis=1),
        method="highs",
    )
    if not result.success:
        raise RuntimeError(f"the linear programme of the quantile regression failed: {result.message}")
    return np.ldexp(-np.asarray(result.eqlin.marginals), height - widths)
