"""Linear regression under differential privacy by others, on the same data: noisy gradient descent, diffprivlib.

Neither needs kngjax. Each is given what favours it and what a user could not have without paying for it in privacy; the
docstrings say what.
"""

import itertools
import json
import math
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy import stats

FITS = pathlib.Path(__file__).with_name("diffprivlib_fits.py")


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The μ at which μ-Gaussian DP is exactly (ε, δ)-DP: δ = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2).

    Dong, Roth and Su (2022), Corollary 2.13; Balle and Wang (2018), Theorem 8.
    """

    def excess(mu: float) -> float:
        first, second = stats.norm.cdf(np.array([-epsilon / mu + mu / 2, -epsilon / mu - mu / 2]))
        return float(first - math.exp(epsilon) * second - delta)

    return scipy.optimize.root_scalar(excess, bracket=(1e-6, 100.0)).root


class Descent(NamedTuple):
    """Settings of noisy gradient descent. **Arguments:** `steps`; `clip`: C; `rate`: the step of the mean gradient."""

    steps: int
    clip: float
    rate: float


def noisy_gradient_descent(
    x: np.ndarray, y: np.ndarray, descent: Descent, mu: float, generator: np.random.Generator
) -> np.ndarray:
    """Full-batch gradient descent on the squared loss with clipped records and Gaussian noise, shape (d,).

    Each step releases Σ_i clip_C(r_i x_i) + N(0, σ²I). Exchanging one record moves the sum by at most 2C, so T steps
    are μ-Gaussian DP with σ = 2C√T/μ, exactly, by composition of Gaussian mechanisms. It is the method of Song et al.
    (2013) and Abadi et al. (2016) without sampling, for which this accounting has no slack. The features are scaled to
    unit variance by the known law of the simulation, which makes one rate fit all coefficients.
    """
    num_records, dimension = x.shape
    scales = np.append(1.0, np.full(dimension - 1, math.sqrt(3.0)))
    features = x * scales
    lengths = np.linalg.norm(features, axis=1)
    deviation = 2.0 * descent.clip * math.sqrt(descent.steps) / mu
    theta = np.zeros(dimension)
    for _ in range(descent.steps):
        residuals = features @ theta - y
        weights = np.minimum(1.0, descent.clip / np.maximum(np.abs(residuals) * lengths, 1e-300))
        total = (weights * residuals) @ features + deviation * generator.standard_normal(dimension)
        theta = theta - descent.rate / num_records * total
    return theta * scales


def best_descent(
    data_sets: list[tuple[np.ndarray, np.ndarray]],
    truth: np.ndarray,
    grid: dict[str, list[float]],
    mu: float,
    seed: int,
) -> Descent:
    """The settings of the grid with the least mean error on these data sets, judged by the truth."""
    found = []
    for steps, clip, rate in itertools.product(grid["steps"], grid["clip"], grid["rate"]):
        descent = Descent(int(steps), clip, rate)
        errors = [
            np.linalg.norm(noisy_gradient_descent(x, y, descent, mu, np.random.default_rng([seed, place])) - truth)
            for place, (x, y) in enumerate(data_sets)
        ]
        found.append((float(np.mean(errors)), descent))
    return min(found)[1]


def diffprivlib_estimates(
    python: str, data_sets: Iterator[tuple[np.ndarray, np.ndarray]], epsilon: float, largest_response: float
) -> np.ndarray:
    """diffprivlib's `LinearRegression` on each data set, by an interpreter that has it, shape (replicates, d).

    **Arguments**: `python`, the interpreter; it runs `diffprivlib_fits.py`. `largest_response`, the bound of |y|.

    diffprivlib needs a scikit-learn that kngjax's other packages have left behind, so it lives in an environment of its
    own. Its guarantee is what its documentation claims.
    """
    command = [python, str(FITS), str(epsilon), str(largest_response)]
    estimates = []
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        file = pathlib.Path(folder) / "data.npz"
        for x, y in data_sets:
            np.savez(file, x=x[:, 1:], y=y)
            process.stdin.write(f"{file}\n")
            process.stdin.flush()
            estimates.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    return np.array(estimates)
