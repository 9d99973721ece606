"""The K-norm gradient mechanism in a page of plain NumPy: the oracle, which shares no line with the package.

    f(θ) ∝ exp(-ε/(2Δ) · ‖∇ℓ_n(θ; D)‖) · 1{θ ∈ Θ}            KNG (Reimherr and Awan 2019, Theorem 3.1)
    f(θ) ∝ exp(-ε/(2Δ) · ℓ_n(θ; D)) · 1{θ ∈ Θ}               exponential mechanism (Proposition 2.2)

Δ is given by whoever calls, computed by hand. Features `x` have shape (n, d), the constant column included.
"""

import numpy as np


def quantile_gradient(theta, x, y, tau):
    return sum((float(y_i <= x_i @ theta) - tau) * x_i for x_i, y_i in zip(x, y, strict=True))


def quantile_loss(theta, x, y, tau):
    residuals = y - x @ theta
    return np.sum(np.where(residuals > 0, tau * residuals, (tau - 1.0) * residuals))


def squared_gradient(theta, x, y):
    return sum((x_i @ theta - y_i) * x_i for x_i, y_i in zip(x, y, strict=True))


def squared_loss(theta, x, y):
    return sum(0.5 * (y_i - x_i @ theta) ** 2 for x_i, y_i in zip(x, y, strict=True))


def kng_log_density(gradient, epsilon, delta, weights=None):
    """-ε/(2Δ)·max_j |∇_j|/w_j; the plain l_inf norm has w = 1."""
    weights = np.ones_like(gradient) if weights is None else weights
    return -epsilon / (2.0 * delta) * np.max(np.abs(gradient) / weights)


def exponential_log_density(loss, epsilon, delta):
    return -epsilon / (2.0 * delta) * loss


def one_at_a_time(log_density, contains, start, scale, num_sweeps, random):
    """The papers' random walk: every sweep proposes a normal step in each coordinate in turn, shape (sweeps, d)."""
    theta, current, path = np.array(start, dtype=float), log_density(start), []
    for _ in range(num_sweeps):
        for coordinate in range(theta.size):
            proposed = theta.copy()
            proposed[coordinate] += scale * random.normal()
            if contains(proposed):
                value = log_density(proposed)
                if np.log(random.uniform()) < value - current:
                    theta, current = proposed, value
        path.append(theta.copy())
    return np.array(path)
