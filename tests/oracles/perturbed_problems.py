"""Small problems for objective perturbation, with the constants of its law by hand."""

import numpy as np

import kngjax as kng

SYMMETRIC = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False)
UNBOUNDED = kng.Bounds(x=(-1.0, 1.0), intercept=False)


def squared(domain, adjacency="replace", epsilon=1.0, **options):
    return kng.ObjectivePerturbation(kng.SquaredLoss(), SYMMETRIC, domain, epsilon, adjacency, **options)


def table(dimension, n=40, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (n, dimension))
    return x, np.clip(x.sum(axis=1) + 0.5 * random.normal(size=n), -1.0, 1.0)


def constants(dimension, reach, adjacency, epsilon, noise_share=0.5):
    """Rate of the noise in max_j |b_j| and ridge, by hand for |x_j| ≤ 1, |y| ≤ 1 and |x'θ| ≤ reach."""
    change = (2.0 if adjacency == "replace" else 1.0) * (1.0 + reach)
    return noise_share * epsilon / change, dimension / np.expm1((1.0 - noise_share) * epsilon)


def squared_log_density(theta, x, y, rate, ridge, centre=0.0):
    """log f_b(-∇J) + log det ∇²J in NumPy, with the ridge about a centre.

    For thetas of shape (m, d) and noise with density ∝ exp(-rate·max |b_j|).
    """
    dimension = x.shape[1]
    slopes = theta @ (x.T @ x) - x.T @ y + ridge * (theta - centre)
    # ∫ exp(-r max |b_j|) db = d!·2^d/r^d.
    log_mass = np.sum(np.log(np.arange(1, dimension + 1))) + dimension * np.log(2.0 / rate)
    determinant = np.linalg.slogdet(x.T @ x + ridge * np.eye(dimension))[1]
    return -rate * np.max(np.abs(slopes), axis=1) - log_mass + determinant


LAWS = {
    "squared": (kng.SquaredLoss(), SYMMETRIC, kng.L2Ball(0.7)),
    "logistic": (kng.LogisticLoss(), UNBOUNDED, kng.Box(-0.5, 1.5)),
    "logistic on R": (kng.LogisticLoss(), UNBOUNDED, None),
    "pseudo-Huber on R": (kng.PseudoHuberLoss(0.4), UNBOUNDED, None),
    "Huber": (kng.HuberLoss(0.3), UNBOUNDED, kng.L1Ball(1.0)),
    "Poisson": (kng.PoissonLoss(), kng.Bounds(x=(-1.0, 1.0), y=(0.0, 3.0), intercept=False), kng.Box(-1.0, 0.5)),
    "smoothed": (kng.SmoothedQuantileLoss(0.7, 0.2), UNBOUNDED, kng.Box(-1.0, 1.0)),
    "Gaussian smoothed": (kng.SmoothedQuantileLoss(0.7, 0.4, "gaussian"), UNBOUNDED, kng.Box(-1.0, 1.0)),
    "expectile": (kng.ExpectileLoss(0.8), SYMMETRIC, kng.Box(-1.0, 0.5)),
}
# By hand for |x| ≤ 1: the largest change of the gradient (replace) and the largest second derivative.
FACTS = {
    "squared": (2.0 * 1.7, 1.0),
    "logistic": (2.0, 0.25),
    "logistic on R": (2.0, 0.25),
    "pseudo-Huber on R": (0.8, 1.0),
    "Huber": (0.6, 1.0),
    "Poisson": (2.0 * np.exp(1.0), np.exp(1.0)),
    # Residuals reach 2.
    "expectile": (2.0 * 1.6 * 2.0, 1.6),
    "smoothed": (1.4, 1.0 / (4.0 * 0.2)),
    "Gaussian smoothed": (1.4, 1.0 / (0.4 * np.sqrt(2.0 * np.pi))),
}


def law(name, epsilon=2.0, n=25, **options):
    loss, bounds, domain = LAWS[name]
    mechanism = kng.ObjectivePerturbation(loss, bounds, domain, epsilon, "replace", **options)
    random = np.random.default_rng(3)
    x = random.uniform(-1.0, 1.0, (n, 1))
    y = {"logistic": random.integers(0, 2, n), "Poisson": random.integers(0, 4, n)}.get(name.split()[0], x[:, 0] + 0.3)
    return mechanism, mechanism.prepare(x, np.asarray(y, dtype=float))
