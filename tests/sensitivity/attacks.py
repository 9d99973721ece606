"""Records and parameters that attack what a sensitivity rests on: at corners, at random, far out where y is free."""

import jax
import numpy as np

import kngjax as kng
from kngjax.data import records as data_room
from kngjax.data.records import Records

NUM_ATTACKS = 4000
TAUS = (0.05, 0.5, 0.75, 0.9, 0.95)

# Name: loss, bounds of y, responses to attack with where y needs no bound. Levels of one loss share their programs.
LOSSES = {
    **{f"quantile-{tau}": (kng.QuantileLoss(tau=tau), None, (-1e6, 0.0, 1e6)) for tau in TAUS},
    "smoothed-quantile": (kng.SmoothedQuantileLoss(tau=0.3, bandwidth=0.2), None, (-1e6, 0.0, 1e6)),
    "gaussian-quantile": (kng.SmoothedQuantileLoss(0.3, 0.2, "gaussian"), None, (-1e6, 0.0, 1e6)),
    "huber": (kng.HuberLoss(k=0.5), None, (-1e6, 0.0, 1e6)),
    "pseudo-huber": (kng.PseudoHuberLoss(k=0.5), None, (-1e6, 0.0, 1e6)),
    "logistic": (kng.LogisticLoss(), None, (0.0, 1.0)),
    "squared": (kng.SquaredLoss(), (-1.0, 2.0), (-9.0, 9.0)),
    "poisson": (kng.PoissonLoss(), (0.0, 3.0), (0.0, 9.0)),
    "capped-poisson": (kng.CappedPoissonLoss(limit=5.0), (0.0, 3.0), (0.0, 9.0)),
    "expectile": (kng.ExpectileLoss(tau=0.8), (-1.0, 2.0), (-9.0, 9.0)),
}
# One number of coefficients for all, so that a loss is compiled once.
DIMENSION = 3
# Columns on both sides of 0, on one side, and away from it.
LOPSIDED = (np.array([-1.0, 0.5]), np.array([2.0, 3.0]))
# A triangle of columns, in none of whose corners of the box around it a record can be.
TRIANGLE = kng.geometry.FeatureHull([[-1.0, 0.5], [2.0, 1.0], [0.0, 3.0]])


def bounds_of(features, y):
    return kng.Bounds(y=y, **{"hull" if isinstance(features, kng.geometry.FeatureHull) else "x": features})


def attacking_records(random, loss_name, bounds, shape):
    """Designs (*shape, d) and responses (*shape,) after the clipping of `prepare`: half at corners, half anywhere."""
    lower, upper = (np.asarray(side) for side in bounds.features(DIMENSION))
    corner = np.where(random.random((*shape, DIMENSION)) < 0.5, lower, upper)
    if bounds.hull is not None:
        vertices = bounds.hull.vertices
        corner[..., int(bounds.intercept) :] = vertices[random.integers(len(vertices), size=shape)]
    anywhere = random.uniform(lower, upper, corner.shape)
    x = np.where(random.random((*shape, 1)) < 0.7, corner, anywhere)
    extremes = np.asarray(LOSSES[loss_name][2])
    y = extremes[random.integers(len(extremes), size=shape)]
    if loss_name != "logistic":
        y = np.where(random.random(shape) < 0.7, y, np.abs(random.normal(size=shape)))
    columns = x[..., int(bounds.intercept) :].reshape(-1, DIMENSION - bounds.intercept)
    records = data_room.prepare(bounds, columns, y.reshape(-1))
    return np.asarray(records.x).reshape(x.shape), np.asarray(records.y).reshape(shape)


def attacking_parameters(random, domain, count):
    """Points of Θ of shape (count, d), two thirds of them at its corners or on its boundary."""
    shape = count, DIMENSION
    signs = np.where(random.random(shape) < 0.5, -1.0, 1.0)
    if isinstance(domain, kng.Box):
        lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
        inside, corners = random.uniform(lower, upper, shape), np.where(signs < 0, lower, upper)
    else:
        power, radius = 1 if isinstance(domain, kng.L1Ball) else 2, float(domain.radius) * (1 - 1e-12)
        direction = np.where(random.random((count, 1)) < 0.5, signs, random.normal(size=shape))
        if power == 1:
            direction = signs * (random.integers(DIMENSION, size=(count, 1)) == np.arange(DIMENSION))
        corners = radius * direction / np.linalg.norm(direction, power, axis=1, keepdims=True)
        anywhere = random.normal(size=shape)
        inside = random.random((count, 1)) * radius * anywhere
        inside /= np.linalg.norm(anywhere, power, axis=1, keepdims=True)
    return np.where(random.random((count, 1)) < 1 / 3, inside, corners)


def attacks(loss_name, bounds, domain, seed=0):
    """Pairs of records and a parameter for each: x (attacks, 2, d), y (attacks, 2), θ (attacks, d)."""
    random = np.random.default_rng(seed)
    x, y = attacking_records(random, loss_name, bounds, (NUM_ATTACKS, 2))
    return x, y, attacking_parameters(random, domain, NUM_ATTACKS)


@jax.jit
def of_records(loss, x, y, thetas):
    """∇ℓ, through `summarise`, ∇²ℓ and the score of single records, each at its own θ."""

    def at(x, y, theta):
        data = Records(x[None], y[None])
        gradient = loss.gradient(theta, loss.summarise(data))
        return gradient, loss.hessian(theta, data), loss.record_score(x @ theta, y)

    return jax.vmap(jax.vmap(at, in_axes=(0, 0, None)))(x, y, thetas)


# Pairs of a predictor and a response in one program: all calls have so many.
NUM_PAIRS = 24_000


@jax.jit
def at_pairs(loss, predictors, responses):
    """ℓ and its score at each pair."""
    return jax.vmap(loss.record_value)(predictors, responses), jax.vmap(loss.record_score)(predictors, responses)


def gradient_changes_found(loss_name, bounds, domain, adjacency, loss=None):
    """Changes of ∇ℓ_n between neighbours, shape (attacks, d): one record for another, or one record more."""
    gradients = np.asarray(of_records(loss or LOSSES[loss_name][0], *attacks(loss_name, bounds, domain))[0])
    return gradients[:, 0] - gradients[:, 1] if adjacency == "replace" else gradients[:, 0]
