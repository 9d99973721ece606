"""A table of losses of a predictor: each loss, its value by a closed form, and all that JAX says of it."""

import functools
from typing import NamedTuple

import jax
import numpy as np
from scipy import integrate, special, stats

import kngjax as kng
from kngjax.data.records import prepare

LOSSES = {
    "squared": kng.SquaredLoss(),
    "quantile": kng.QuantileLoss(0.3),
    "smoothed": kng.SmoothedQuantileLoss(0.3, 0.25),
    "Gaussian smoothed": kng.SmoothedQuantileLoss(0.3, 0.4, "gaussian"),
    "Huber": kng.HuberLoss(0.8),
    "pseudo-Huber": kng.PseudoHuberLoss(0.8),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "capped Poisson": kng.CappedPoissonLoss(0.5),
    "expectile": kng.ExpectileLoss(0.8),
}
LABELS = {"logistic": [0.0, 1.0], "Poisson": [0.0, 1.0, 2.0, 5.0], "capped Poisson": [0.0, 1.0, 2.0]}


def check_loss(residual, tau):
    return residual * (tau - (residual < 0))


def smoothed_check_loss(residual, tau, bandwidth, kernel):
    """E ρ_τ(r + hZ) by quadrature, with the kink as a break point."""

    def integrand(z):
        return check_loss(residual + bandwidth * z, tau) * kernel.pdf(z)

    kink, end = -residual / bandwidth, kernel.isf(1e-16)
    return sum(integrate.quad(integrand, *pair, epsabs=1e-12)[0] for pair in ((-end, kink), (kink, end)))


CLOSED_FORMS = {
    "squared": lambda eta, y: 0.5 * (y - eta) ** 2,
    "quantile": lambda eta, y: check_loss(y - eta, 0.3),
    "smoothed": lambda eta, y: smoothed_check_loss(y - eta, 0.3, 0.25, stats.logistic),
    "Gaussian smoothed": lambda eta, y: smoothed_check_loss(y - eta, 0.3, 0.4, stats.norm),
    "Huber": lambda eta, y: special.huber(0.8, y - eta),
    "pseudo-Huber": lambda eta, y: special.pseudo_huber(0.8, y - eta),
    "logistic": lambda eta, y: np.logaddexp(0.0, eta) - y * eta,
    "Poisson": lambda eta, y: np.exp(eta) - y * eta,
    "capped Poisson": lambda eta, y: np.exp(np.minimum(eta, 0.5)) * (1 + np.maximum(eta - 0.5, 0)) - y * eta,
    "expectile": lambda eta, y: np.where(y < eta, 0.2, 0.8) * (y - eta) ** 2,
}


def responses(name, number, random):
    return random.choice(LABELS[name], number) if name in LABELS else random.normal(scale=1.5, size=number)


def problem(name, n=31, d=3):
    random = np.random.default_rng(17)
    bounds = kng.Bounds(x=(-2.0, 2.0), intercept=True)
    records = prepare(bounds, random.uniform(-2.0, 2.0, (n, d - 1)), responses(name, n, random))
    return records, random.normal(scale=0.7, size=d)


RECTANGLES = [(predictor, y) for predictor in ((-1.3, 0.7), (0.2, 0.9), (-3.0, -2.5)) for y in ((0.0, 1.0), (1.0, 2.0))]


def grid(predictor, response, sizes=(101, 51)):
    sides = (np.linspace(*ends, size) for ends, size in zip((predictor, response), sizes, strict=True))
    return tuple(part.ravel() for part in np.meshgrid(*sides))


def places(name):
    """Predictors and responses by name: at random, of records, over rectangles and a wide interval, and far out."""
    random, (records, theta) = np.random.default_rng(1), problem(name)
    wide = grid((-9.0, 9.0), (0.0, 1.0), (181, 2))
    binary = {"sizes": (101, 2)} if name == "logistic" else {}
    rectangles = {
        pair: tuple(np.resize(part, 101 * 51) for part in grid(pair[0], (0.0, 1.0) if binary else pair[1], **binary))
        for pair in RECTANGLES
    }
    return {
        "random": (random.normal(scale=1.5, size=200), responses(name, 200, random)),
        "records": (records.x @ theta, np.asarray(records.y)),
        "wide": wide,
        "far": (np.repeat([-60.0, 60.0], 2), np.tile([0.0, 1.0], 2)),
        **rectangles,
    }


class AtRecords(NamedTuple):
    """A number for each pair of η and y; `slopes` and `slopes_of_scores` are derivatives by autodiff."""

    values: np.ndarray
    scores: np.ndarray
    curvatures: np.ndarray
    slopes: np.ndarray
    slopes_of_scores: np.ndarray


@jax.jit
def _evaluate(loss, etas, ys, theta, data):
    derivatives = jax.grad(loss.record_value), jax.grad(loss.record_score)
    functions = loss.record_value, loss.record_score, loss.record_curvature, *derivatives
    at_pairs = [jax.vmap(function)(etas, ys) for function in functions]
    sums = loss.value(theta, data), loss.gradient(theta, data), loss.hessian(theta, data), jax.grad(loss.value)
    return at_pairs, (*sums[:3], sums[3](theta, data))


def evaluated(loss, name):
    """Values of the loss at the places and records of a row: by the names of `places`, and its sums at θ."""
    given, (records, theta) = places(name), problem(name)
    etas, ys = (np.concatenate(parts) for parts in zip(*given.values(), strict=True))
    found, sums = _evaluate(loss, etas, ys, theta, records)
    ends = np.cumsum([0, *(len(eta) for eta, _ in given.values())])
    columns = [np.asarray(column) for column in found]
    at = {
        place: AtRecords(*(column[start:end] for column in columns))
        for place, start, end in zip(given, ends[:-1], ends[1:], strict=True)
    }
    return at, [np.asarray(one) for one in sums]


@functools.cache
def row(name):
    """`evaluated` of a loss of the table."""
    return evaluated(LOSSES[name], name)


@jax.jit
def intervals(loss, predictor, response):
    """The declared intervals of the score and of the value."""
    return loss.score_interval(predictor, response), loss.value_interval(predictor, response)


@jax.jit
def sums(loss, theta, data):
    """ℓ_n, ∇ℓ_n, ∇²ℓ_n at θ."""
    return loss.value(theta, data), loss.gradient(theta, data), loss.hessian(theta, data)


@jax.jit
def at_residuals(loss, residuals):
    """The value and the slope at each residual."""
    return jax.vmap(loss.residual_value)(residuals), jax.vmap(loss.residual_slope)(residuals)
