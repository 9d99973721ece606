"""Sensitivities that depend on θ: their closed form, attacks on them, and the density that they make."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import kngjax as kng
from kngjax.releases.default_sampler import default_sampler
from tests.oracles.goodness_of_fit import assert_same_law
from tests.statistical.problems import Quadrature

ADJACENCIES = ["replace", "add_remove"]
SYMMETRIC = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False)
LOPSIDED = kng.Bounds(x=(np.array([-1.0, 0.5]), np.array([2.0, 3.0])), y=(-1.0, 2.0))
NORMAL = kng.BaseMeasure(dist.Normal(0.0, 1.0))


def pointwise(loss=None, bounds=SYMMETRIC, domain=NORMAL, adjacency="replace", epsilon=1.0, norm=None):
    return kng.KNG(loss or kng.SquaredLoss(), bounds, domain, epsilon, adjacency, norm, pointwise_sensitivity=True)


def changes_at(mechanism, thetas):
    data = mechanism.prepare(np.zeros((2, thetas.shape[1] - mechanism.bounds.intercept)) + 1.0, np.ones(2))
    return np.asarray(_changes(mechanism, data, thetas))


@jax.jit
def _changes(mechanism, data, thetas):
    return jax.vmap(mechanism.target(data).pointwise.changes)(thetas)


@jax.jit
def scores_of(mechanism, data, thetas):
    """The score in units of its sensitivity."""
    target = mechanism.target(data)
    return jax.vmap(target.score)(thetas) * target.rate * 2.0


@jax.jit
def record_scores(loss, x, y, thetas):
    return jax.vmap(lambda theta: jax.vmap(loss.record_score)(x @ theta, y))(thetas)


def test_the_closed_form_for_symmetric_bounds():
    """M(a_j, θ_j) + M(a_j, -θ_j), a_j = 1 + Σ_{k≠j}|θ_k|, by hand."""
    thetas = np.random.default_rng(0).normal(size=(200, 4)) * np.geomspace(0.05, 3.0, 200)[:, None]

    def largest(a, b):
        return np.where(b <= a / 2, a - b, a**2 / (4 * np.where(b > 0, b, 1.0)))

    others = 1.0 + np.sum(np.abs(thetas), axis=1, keepdims=True) - np.abs(thetas)
    expected = largest(others, thetas) + largest(others, -thetas)
    found = changes_at(pointwise(), thetas)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found.max(axis=1) <= 2.0 * (1.0 + np.abs(thetas).sum(axis=1)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["squared", "poisson"])
def test_attacks_come_near_and_never_beyond(name, adjacency):
    loss = {"squared": kng.SquaredLoss(), "poisson": kng.PoissonLoss()}[name]
    bounds = LOPSIDED if name == "squared" else kng.Bounds((LOPSIDED.x_lower, LOPSIDED.x_upper), y=(0.0, 3.0))
    random = np.random.default_rng(1)
    thetas = random.normal(scale=0.7, size=(40, 3))
    thetas[0] = 0.0
    mechanism = pointwise(loss, bounds, adjacency=adjacency)
    declared = changes_at(mechanism, thetas)
    lower, upper = (np.asarray(side) for side in bounds.features(3))
    fractions = random.choice([0.0, 1.0, 0.5], p=[0.4, 0.4, 0.2], size=(6000, 3))
    fractions = np.where(fractions == 0.5, random.random(fractions.shape), fractions)
    x = lower + (upper - lower) * fractions
    y = random.choice([float(bounds.y_lower), float(bounds.y_upper)], size=6000)
    for scores, most in zip(np.asarray(record_scores(loss, x, y, thetas)), declared, strict=True):
        gradients = x * scores[:, None]
        found = np.ptp(gradients, axis=0) if adjacency == "replace" else np.abs(gradients).max(axis=0)
        assert np.all(found <= most * (1.0 + 1e-12))
        # The squared loss's range is exact; the other's is an interval's, exact for the intercept.
        reached = found / most
        assert np.all(reached[: None if name == "squared" else 1] >= 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_score_changes_by_at_most_one_between_neighbours(adjacency):
    random = np.random.default_rng(2)
    mechanism = pointwise(bounds=LOPSIDED, adjacency=adjacency)
    thetas = random.normal(size=(300, 3))
    worst = 0.0
    for _ in range(30):
        x = np.where(random.random((6, 2)) < 0.5, -1e3, 1e3)
        y = np.where(random.random(6) < 0.5, -1e3, 1e3)
        neighbours = ((x[:-1], y[:-1]), (x[1:], y[1:]) if adjacency == "replace" else (x, y))
        scores = [np.asarray(scores_of(mechanism, mechanism.prepare(*records), thetas)) for records in neighbours]
        worst = max(worst, np.abs(scores[0] - scores[1]).max())
    assert 0.5 < worst <= 1.0 + 1e-9


def test_where_the_sensitivity_is_the_same_for_every_theta_the_option_is_refused():
    for loss in (kng.QuantileLoss(0.5), kng.PseudoHuberLoss(1.0), kng.LogisticLoss()):
        with pytest.raises(ValueError, match="same for every theta"):
            pointwise(loss, kng.Bounds(x=(-1.0, 1.0), intercept=False), kng.Box(-1.0, 1.0))
    with pytest.raises(ValueError, match="leave norm out"):
        pointwise(norm=kng.L2())
    with pytest.raises(ValueError, match="not finite over this domain"):
        kng.KNG(kng.SquaredLoss(), SYMMETRIC, NORMAL, 1.0, "replace")


def data_of(mechanism, n=60, seed=3):
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (n, mechanism.dimension or 2))
    return mechanism.prepare(x, np.clip(x @ [0.4, -0.2] + 0.3 * random.normal(size=n), -1.0, 1.0))


def test_the_density_is_that_of_the_pointwise_score():
    mechanism = pointwise(epsilon=2.0)
    data, theta = data_of(mechanism), np.array([0.3, -0.8])
    gradient = np.asarray(data.gram) @ theta - data.moment
    changes = changes_at(mechanism, theta[None])[0]
    expected = -np.max(np.abs(gradient) / changes) + stats.norm.logpdf(theta).sum()
    found = jax.jit(lambda mechanism, data: mechanism.log_density(theta, data))(mechanism, data)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "n", "epsilon"),
    [
        (kng.L1Ball(1.0), 60, 1.0),
        (kng.L1Ball(1.0), 400, 4.0),
        (kng.Box(-0.5, 0.7), 60, 1.0),
        (kng.Box(-0.5, 0.7), 400, 4.0),
    ],
)
def test_exact_draws_follow_the_density(domain, n, epsilon):
    mechanism = pointwise(domain=domain, epsilon=epsilon)
    data = data_of(mechanism, n)
    sampler, _ = default_sampler(mechanism, 2)
    assert isinstance(sampler, kng.chains.Exact)
    draws = kng.sample(mechanism, data, key=kng.research_key(0), num_draws=5000, num_chains=4)
    lower, upper = (-1.0, 1.0) if isinstance(domain, kng.L1Ball) else (-0.5, 0.7)
    quadrature = Quadrature(mechanism, data, lower, upper, 400)
    for uniforms in quadrature.uniforms(draws.theta.reshape(-1, 2)):
        assert_same_law(uniforms, stats.uniform.cdf)


@pytest.mark.slow
def test_an_unbounded_domain_goes_to_a_chain():
    mechanism = pointwise()
    sampler, reason = default_sampler(mechanism, 2)
    assert isinstance(sampler, kng.chains.EnsembleWalk)
    assert "Exact() serves" in reason
    data = data_of(mechanism)
    draws = kng.sample(mechanism, data, key=kng.research_key(0), sampler=kng.chains.Exact(), num_draws=5000)
    for uniforms in Quadrature(mechanism, data, -4.0, 4.0, 800).uniforms(draws.theta.reshape(-1, 2)):
        assert_same_law(uniforms, stats.uniform.cdf)
    assert "w_j(theta)" in mechanism.sensitivity_for(2).derivation
