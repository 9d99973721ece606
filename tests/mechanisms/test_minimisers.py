"""Minimisers: optimality by duality gaps and by SciPy, in the face of correlation, of outliers, and of failure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import kngjax as kng
from kngjax.data.records import Records
from kngjax.mechanisms.minimisers import quadratic_minimiser, tilted_minimiser

DOMAINS = {"l1": kng.L1Ball(1.0), "l2": kng.L2Ball(1.0), "box": kng.Box(-0.3, 0.5)}

every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
BATCH, DIMENSION = 36, 20
solve = jax.jit(jax.vmap(quadratic_minimiser, in_axes=(None, 0, 0)))
search = jax.jit(tilted_minimiser)


def solve_one(domain, matrix, vector):
    """In a batch of equals and beside coefficients that are 0, so that one program serves every test."""
    size = len(vector)
    matrices, vectors = np.tile(np.eye(DIMENSION), (BATCH, 1, 1)), np.zeros((BATCH, DIMENSION))
    matrices[:, :size, :size], vectors[:, :size] = matrix, vector
    thetas, succeeded = solve(domain, matrices, vectors)
    return np.asarray(thetas[0, :size]), bool(succeeded[0])


def gap(domain, gradient, theta):
    """max {∇'(θ - z) : z ∈ Θ}, which bounds f(θ) - min f: zero at the minimiser and nowhere else."""
    if isinstance(domain, kng.Box):
        return np.sum(np.maximum(gradient * (theta - domain.lower), gradient * (theta - domain.upper)))
    order = np.inf if isinstance(domain, kng.L1Ball) else 2
    return float(domain.radius) * np.linalg.norm(gradient, order) + gradient @ theta


def outside(domain, theta):
    if isinstance(domain, kng.Box):
        return max(np.max(domain.lower - theta), np.max(theta - domain.upper))
    return np.linalg.norm(theta, 1 if isinstance(domain, kng.L1Ball) else 2) - float(domain.radius)


def gram_matrix(random, dimension, correlation, number):
    """X'X of features in [-1, 1]; with correlation 1 all columns are one."""
    covariance = correlation + (1.0 - correlation) * np.eye(dimension)
    values, vectors = np.linalg.eigh(covariance)
    x = np.tanh(random.normal(size=(200, dimension)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)
    return number / 200 * x.T @ x


@pytest.mark.slow
@every_domain
def test_quadratics_are_minimised_to_machine_precision(domain):
    random, dimension = np.random.default_rng(0), DIMENSION
    matrices, vectors = [], []
    for correlation in (0.0, 0.99, 0.9999, 1.0):
        for number in (10, 1e4, 1e7):
            for scale in (0.05, 0.5, 5.0):
                gram = gram_matrix(random, dimension, correlation, number)
                matrices.append(gram + 1.5 * dimension * np.eye(dimension))
                noise = 4.0 * random.gamma(dimension) * random.uniform(-1.0, 1.0, dimension)
                vectors.append(gram @ (scale * random.normal(size=dimension)) + noise)
    thetas, succeeded = solve(domain, np.array(matrices), np.array(vectors))
    assert len(vectors) == BATCH
    assert np.all(succeeded)
    faces = set()
    for matrix, vector, theta in zip(matrices, vectors, np.asarray(thetas), strict=True):
        assert outside(domain, theta) <= 4e-15
        faces.add(bool(outside(domain, theta) > -1e-12))
        size = np.linalg.norm(matrix, 2) * np.linalg.norm(theta) + np.linalg.norm(vector)
        assert gap(domain, matrix @ theta - vector, theta) <= 1e-14 * size
    assert faces == {True, False}


def test_over_a_box_a_diagonal_quadratic_is_a_clipped_ratio():
    random = np.random.default_rng(1)
    diagonals = 10.0 ** random.uniform(-1.0, 6.0, (BATCH, DIMENSION))
    vectors = diagonals * random.uniform(-1.0, 1.0, diagonals.shape)
    found, succeeded = solve(DOMAINS["box"], diagonals[:, :, None] * np.eye(DIMENSION), vectors)
    assert np.all(succeeded)
    np.testing.assert_allclose(found, np.clip(vectors / diagonals, -0.3, 0.5), rtol=1e-12)


@pytest.mark.slow
@every_domain
def test_a_correlated_problem_against_scipys_quadratic_programme(domain):
    random, dimension = np.random.default_rng(3), DIMENSION
    matrix = gram_matrix(random, dimension, 0.99, 1e4) + 30.0 * np.eye(dimension)
    vector = matrix @ random.normal(size=dimension)
    size = np.linalg.norm(matrix, 2)
    # θ = u - w with u, w ≥ 0 makes the l1 ball a simplex, and the others keep their own constraint.
    split = np.hstack([np.eye(dimension), -np.eye(dimension)])
    constraint = {
        "l1": {"type": "ineq", "fun": lambda u: 1.0 - u.sum(), "jac": lambda u: -np.ones_like(u)},
        "l2": {
            "type": "ineq",
            "fun": lambda u: 1.0 - (split @ u) @ (split @ u),
            "jac": lambda u: -2 * split.T @ split @ u,
        },
    }.get(next(name for name, one in DOMAINS.items() if one is domain))
    limits = (
        [(0.0, 0.5)] * dimension + [(0.0, 0.3)] * dimension if constraint is None else [(0.0, None)] * 2 * dimension
    )
    result = optimize.minimize(
        lambda u: (0.5 * split @ u @ matrix @ split @ u - vector @ split @ u) / size,
        np.zeros(2 * dimension),
        jac=lambda u: split.T @ (matrix @ split @ u - vector) / size,
        bounds=limits,
        constraints=[] if constraint is None else [constraint],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    theirs = split @ result.x
    assert outside(domain, theirs) <= 1e-9
    ours, succeeded = solve_one(domain, matrix, vector)
    assert succeeded
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    values = [0.5 * theta @ matrix @ theta - vector @ theta for theta in (ours, theirs)]
    assert values[0] <= values[1] + 1e-9 * abs(values[1])


@settings(max_examples=30, deadline=None)
@given(
    entries=st.lists(st.floats(-10.0, 10.0, width=32), min_size=6, max_size=6),
    ridge=st.floats(1e-3, 10.0),
    name=st.sampled_from(sorted(DOMAINS)),
)
def test_any_small_quadratic(entries, ridge, name):
    factor, vector = np.reshape(entries[:4], (2, 2)), np.array(entries[4:])
    matrix = factor @ factor.T + ridge * np.eye(2)
    theta, succeeded = solve_one(DOMAINS[name], matrix, vector)
    assert succeeded
    size = np.linalg.norm(matrix, 2) * np.linalg.norm(theta) + np.linalg.norm(vector)
    assert gap(DOMAINS[name], matrix @ theta - vector, theta) <= 1e-14 * size


def test_what_is_no_number_has_no_minimiser():
    theta, succeeded = solve_one(kng.L1Ball(1.0), np.eye(2), np.array([1.0, np.nan]))
    assert not succeeded
    assert np.all(np.isnan(theta))


LOSSES = {
    "logistic": kng.LogisticLoss(),
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "narrow pseudo-Huber": kng.PseudoHuberLoss(1e-3),
    "Huber": kng.HuberLoss(0.3),
    "narrow Huber": kng.HuberLoss(1e-3),
    "smoothed": kng.SmoothedQuantileLoss(0.9, 0.3),
    "narrow smoothed": kng.SmoothedQuantileLoss(0.9, 1e-2),
    "Poisson": kng.PoissonLoss(),
}


def regression(name, n=300, d=4, seed=0):
    random = np.random.default_rng(seed)
    x = np.hstack([np.ones((n, 1)), np.tanh(random.normal(size=(n, 1)) + 0.05 * random.normal(size=(n, d - 1)))])
    predictor = x @ np.linspace(-1.0, 1.0, d)
    if name == "logistic":
        return x, (random.uniform(size=n) < 1.0 / (1.0 + np.exp(-predictor))).astype(float)
    return x, random.poisson(np.exp(predictor)).astype(float) if name == "Poisson" else predictor + random.standard_t(
        2, n
    )


def slope_of(loss, x, y, theta, ridge, tilt):
    """∇J by a loop over records."""
    scores = [float(loss.record_score(x_i @ theta, y_i)) for x_i, y_i in zip(x, y, strict=True)]
    return np.array(scores) @ x + ridge * theta + tilt


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_within_the_tolerance_where_the_search_ends(name):
    loss, (x, y) = LOSSES[name], regression(name)
    for ridge, scale in ((1e-2, 0.0), (5.0, 1.0), (5.0, 100.0), (500.0, 1e4)):
        tilt = scale * np.array([1.0, -2.0, 0.5, 1.0])
        theta, succeeded = search(loss, Records(x, y), np.array(ridge), tilt, np.array(1e-9))
        assert succeeded
        assert np.linalg.norm(slope_of(loss, x, y, np.asarray(theta), ridge, tilt)) <= 1.5e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pseudo-Huber", "Huber", "smoothed"])
@pytest.mark.parametrize("outlier", [1e12, 1e300])
def test_one_absurd_response_does_not_stop_the_search(name, outlier):
    """The values of the loss are then 1e300 and cannot be compared."""
    x, y = regression(name)
    y[0] = outlier
    theta, succeeded = search(LOSSES[name], Records(x, y), np.array(3.0), np.ones(4), np.array(1e-9))
    assert succeeded
    assert np.linalg.norm(slope_of(LOSSES[name], x, y, np.asarray(theta), 3.0, np.ones(4))) <= 1.5e-9


def test_a_tolerance_that_cannot_be_met_is_missed_and_said_to_be():
    x, y = regression("logistic")
    theta, succeeded = search(kng.LogisticLoss(), Records(x, y), np.array(3.0), np.ones(4), np.array(-1.0))
    assert not succeeded
    assert np.all(np.isnan(theta))


@pytest.mark.slow
def test_searches_can_be_mapped_over_noise_and_ridges():
    x, y = regression("logistic")
    tilts, ridges = np.random.default_rng(1).normal(size=(6, 4)) * 10.0, np.geomspace(0.1, 100.0, 6)
    mapped = jax.vmap(tilted_minimiser, in_axes=(None, None, 0, 0, None))
    thetas, succeeded = mapped(kng.LogisticLoss(), Records(x, y), jnp.asarray(ridges), tilts, np.array(1e-9))
    assert np.all(succeeded)
    for theta, ridge, tilt in zip(thetas, ridges, tilts, strict=True):
        alone, _ = search(kng.LogisticLoss(), Records(x, y), ridge, tilt, np.array(1e-9))
        np.testing.assert_allclose(theta, alone, atol=1e-8)
