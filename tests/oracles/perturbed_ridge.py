"""Two ridge regressions that differ by one person, in plain NumPy: the oracle for per-instance privacy.

Laws are pairs (mean, covariance); profiles are sums over a fine grid, divergences the textbook formula for Gaussians.
"""

import numpy as np


def ridge(x, y, regularization):
    """θ̂ and H."""
    precision = x.T @ x + regularization * np.eye(x.shape[1])
    return np.linalg.solve(precision, x.T @ y), precision


def laws(x, y, regularization, gamma, metric):
    """N(θ̂, A^{-1}/γ)."""
    mean, precision = ridge(x, y, regularization)
    inverse = np.linalg.inv(precision)
    covariance = {"identity": np.eye(len(mean)), "hessian": inverse, "hessian_squared": inverse @ inverse}[metric]
    return mean, covariance / gamma


def log_density(points, law):
    mean, covariance = law
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (points - mean).T)
    return -0.5 * np.sum(whitened**2, axis=0) - 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance)[1]


def draws(random, law, count):
    mean, covariance = law
    return mean + random.standard_normal((count, len(mean))) @ np.linalg.cholesky(covariance).T


def excesses(random, first, second, epsilon, count):
    """(1 - e^{ε-L})_+ at draws of the first law: their mean is δ(first‖second)."""
    points = draws(random, first, count)
    return np.maximum(-np.expm1(epsilon - log_density(points, first) + log_density(points, second)), 0.0)


def scalar_delta(first, second, epsilon, size=100_001):
    """δ(ε) of one normal law against another on a line, each (mean, variance), by the trapezoidal rule."""
    grid, logs = _on_a_line(first, second, size)
    gap = logs[0] + np.log(np.maximum(-np.expm1(np.minimum(epsilon + logs[1] - logs[0], 0.0)), 1e-300))
    return np.trapezoid(np.exp(gap), grid)


def scalar_renyi(first, second, alpha, size=100_001):
    grid, logs = _on_a_line(first, second, size, reach=60.0)
    return np.log(np.trapezoid(np.exp(alpha * logs[0] - (alpha - 1.0) * logs[1]), grid)) / (alpha - 1.0)


def _on_a_line(first, second, size, reach=14.0):
    deviation = np.sqrt(max(first[1], second[1]))
    low, high = min(first[0], second[0]) - reach * deviation, max(first[0], second[0]) + reach * deviation
    grid = np.linspace(low, high, size)
    logs = [-0.5 * (grid - mean) ** 2 / v - 0.5 * np.log(2.0 * np.pi * v) for mean, v in (first, second)]
    return grid, logs


def both_directions(first, second, epsilon):
    return max(scalar_delta(first, second, epsilon), scalar_delta(second, first, epsilon))


def renyi(first, second, alpha):
    """D_α(first‖second) of multivariate normals; infinite where αΣ_2 + (1-α)Σ_1 is not positive definite."""
    (m, s), (n, t) = first, second
    mixed = alpha * t + (1.0 - alpha) * s
    if np.linalg.eigvalsh(mixed)[0] <= 0.0:
        return np.inf
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, s, t)]
    quadratic = 0.5 * alpha * (m - n) @ np.linalg.solve(mixed, m - n)
    return quadratic - (logs[0] - (1.0 - alpha) * logs[1] - alpha * logs[2]) / (2.0 * (alpha - 1.0))
