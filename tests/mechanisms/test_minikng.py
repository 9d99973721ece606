"""The mechanisms' log-densities are those of the paper, with sensitivities computed here by hand."""

import jax
import numpy as np
import pytest

import kngjax as kng
from tests.oracles import minikng
from tests.oracles.goodness_of_fit import assert_two_samples_agree

BOUNDS = kng.Bounds(x=(np.array([-1.0, 0.0]), np.array([2.0, 1.0])), y=(-3.0, 2.0), intercept=True)
RADIUS = 1.5
REACH = 3.0  # max |x'θ| = RADIUS · max |x_j|
EPSILON = 0.7
ADJACENCIES = ("replace", "add_remove")
TAUS = (0.1, 0.5, 0.8)
# A record that comes or goes moves ε/(2Δ)·ℓ_n by an interval of once that record's range, an exchange of twice it.
STEPS = {"replace": 2, "add_remove": 1}


def records(seed, n=23):
    random = np.random.default_rng(seed)
    columns = random.uniform([-1.0, 0.0], [2.0, 1.0], size=(n, 2))
    return columns, random.uniform(-3.0, 2.0, n)


def design(columns):
    return np.concatenate([np.ones((len(columns), 1)), columns], axis=1)


def points(seed, number=12):
    random = np.random.default_rng(seed)
    directions = random.laplace(size=(number, 3))
    return RADIUS * random.uniform(0.05, 0.99, (number, 1)) * directions / np.abs(directions).sum(1, keepdims=True)


def quantile_changes(tau, adjacency):
    """The features are 1, [-1, 2] and [0, 1], the score is -tau or 1 - tau."""
    lowest, highest = min(-2 * tau, tau - 1), max(tau, 2 * (1 - tau))
    if adjacency == "replace":
        return np.array([1.0, highest - lowest, 1.0])
    side = max(tau, 1 - tau)
    return np.array([side, max(-lowest, highest), side])


def squared_changes(adjacency):
    """The score x'θ - y lies in [-3 - 2, 3 + 3] = [-5, 6], so the gradient in [-5, 6] × [-10, 12] × [-5, 6]."""
    return np.array([11.0, 22.0, 11.0]) if adjacency == "replace" else np.array([6.0, 12.0, 6.0])


@jax.jit
def log_densities(mechanism, thetas, data):
    return jax.vmap(mechanism.log_density, (0, None))(thetas, data)


def assert_equal_up_to_a_constant(mechanism, data, log_density):
    thetas = points(5)
    *ours, outside = np.asarray(log_densities(mechanism, np.vstack([thetas, np.full(3, RADIUS)]), data))
    ours = np.array(ours)
    theirs = np.array([log_density(theta) for theta in thetas])
    assert np.ptp(theirs) > 0.1
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=0, atol=1e-9)
    assert outside == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("norm", [None, kng.LInf()], ids=["default", "plain"])
def test_kng_on_the_quantile_loss(adjacency, tau, norm):
    columns, y = records(1)
    mechanism = kng.KNG(kng.QuantileLoss(tau), BOUNDS, kng.L1Ball(RADIUS), EPSILON, adjacency, norm)
    changes = quantile_changes(tau, adjacency)
    weights, delta = (changes, 1.0) if norm is None else (None, changes.max())

    def log_density(theta):
        gradient = minikng.quantile_gradient(theta, design(columns), y, tau)
        return minikng.kng_log_density(gradient, EPSILON, delta, weights)

    assert_equal_up_to_a_constant(mechanism, mechanism.prepare(columns, y), log_density)


@pytest.mark.default_cases("default-replace", "plain-add_remove")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", [None, kng.LInf()], ids=["default", "plain"])
def test_kng_on_the_squared_loss(adjacency, norm):
    columns, y = records(2)
    mechanism = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.L1Ball(RADIUS), EPSILON, adjacency, norm)
    changes = squared_changes(adjacency)
    weights, delta = (changes, 1.0) if norm is None else (None, changes.max())

    def log_density(theta):
        return minikng.kng_log_density(minikng.squared_gradient(theta, design(columns), y), EPSILON, delta, weights)

    assert_equal_up_to_a_constant(mechanism, mechanism.prepare(columns, y), log_density)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", TAUS)
def test_the_exponential_mechanism_on_the_quantile_loss(adjacency, tau):
    columns, y = records(3)
    mechanism = kng.ExponentialMechanism(kng.QuantileLoss(tau), BOUNDS, kng.L1Ball(RADIUS), EPSILON, adjacency)
    # The residual lies in [-3 - 3, 2 + 3] and the smallest loss is 0.
    delta = max(6.0 * (1.0 - tau), 5.0 * tau) * STEPS[adjacency] / 2.0

    def log_density(theta):
        loss = minikng.quantile_loss(theta, design(columns), y, tau)
        return minikng.exponential_log_density(loss, EPSILON, delta)

    assert_equal_up_to_a_constant(mechanism, mechanism.prepare(columns, y), log_density)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_exponential_mechanism_on_the_squared_loss(adjacency):
    columns, y = records(4)
    mechanism = kng.ExponentialMechanism(kng.SquaredLoss(), BOUNDS, kng.L1Ball(RADIUS), EPSILON, adjacency)

    def log_density(theta):
        loss = minikng.squared_loss(theta, design(columns), y)
        return minikng.exponential_log_density(loss, EPSILON, 18.0 * STEPS[adjacency] / 2.0)

    assert_equal_up_to_a_constant(mechanism, mechanism.prepare(columns, y), log_density)


@pytest.mark.parametrize(
    ("published", "right"),
    [
        # Section 4.5: 2(1 - τ)C_X, where two records on opposite sides make 2·max(τ, 1 - τ)C_X.
        (2 * (1 - 0.9), 2 * 0.9),
        (2 * (1 - 0.75), 2 * 0.75),
    ],
)
def test_the_quantile_sensitivity_is_the_proved_and_not_the_published_one(published, right):
    tau = 1 - published / 2
    mechanism = kng.KNG(
        kng.QuantileLoss(tau), kng.Bounds(x=(-1.0, 1.0)), kng.Box(-1.0, 1.0), 1.0, "replace", kng.LInf()
    )
    assert mechanism.sensitivity.value == pytest.approx(right, rel=1e-14)
    one, other, theta = np.array([[1.0]]), np.array([[-1.0]]), np.array([0.0])
    change = minikng.quantile_gradient(theta, one, [1.0], tau) - minikng.quantile_gradient(theta, other, [1.0], tau)
    assert np.abs(change).max() == pytest.approx(right, rel=1e-14)


@pytest.mark.slow
def test_the_papers_walk_and_the_exact_sampler_draw_the_same():
    y = np.random.default_rng(6).uniform(-1.0, 1.0, 9)
    mechanism = kng.KNG(kng.QuantileLoss(0.3), kng.Bounds(), kng.Box(-1.0, 1.0), 2.0, "replace")
    ones = np.ones((9, 1))
    path = minikng.one_at_a_time(
        lambda theta: minikng.kng_log_density(minikng.quantile_gradient(theta, ones, y, 0.3), 2.0, 1.0),
        lambda theta: np.abs(theta[0]) <= 1.0,
        np.zeros(1),
        1.5,
        30_000,
        np.random.default_rng(7),
    )
    draws = kng.sample(mechanism, mechanism.prepare(None, y), key=jax.random.key(8), num_draws=4000, num_chains=1)
    assert_two_samples_agree(path[20::20, 0], draws.theta[0, :, 0])
