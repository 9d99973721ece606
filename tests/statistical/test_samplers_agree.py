"""Samplers that share nothing but the density agree in dimensions where quadrature is out of reach."""

import numpy as np
import pytest

import kngjax as kng
from tests.oracles.goodness_of_fit import assert_two_samples_agree


def thinned(draws: kng.owner.Draws, num_kept: int) -> np.ndarray:
    """About independent draws: evenly spaced positions, at least five autocorrelation times apart."""
    chains, length, dimension = draws.theta.shape
    spacing = max(1, chains * length // num_kept)
    assert draws.rhat().max() < 1.02
    assert draws.ess().min() > 2 * num_kept
    return draws.theta[:, ::spacing].reshape(-1, dimension)


def assert_same_joint_law(first: np.ndarray, second: np.ndarray) -> None:
    """Two-sample tests of every coordinate and of the l1 norm, which sees dependence between them."""
    for coordinate in range(first.shape[1]):
        assert_two_samples_agree(first[:, coordinate], second[:, coordinate])
    assert_two_samples_agree(np.abs(first).sum(axis=1), np.abs(second).sum(axis=1))


def linear_regression(num_records: int):
    """Algorithm 1 of Reimherr and Awan (2019) at d = 12."""
    generator = np.random.default_rng(1)
    theta = np.concatenate([[0.0], -1.0 + 2.0 * np.arange(11) / 11.0])
    x = generator.uniform(-1.0, 1.0, (num_records, 11))
    y = theta[0] + x @ theta[1:] + generator.standard_normal(num_records)
    mechanism = kng.KNG(
        loss=kng.SquaredLoss(),
        bounds=kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)),
        domain=kng.L1Ball(1.0),
        epsilon=1.0,
        adjacency="replace",
    )
    return mechanism, mechanism.prepare(x, y / 10.0)


@pytest.mark.slow
@pytest.mark.runs_long
def test_exact_walk_and_nuts_agree_on_the_squared_loss_at_twelve_coefficients():
    mechanism, data = linear_regression(10_000)
    key = kng.research_key
    exact = kng.sample(mechanism, data, key=key(0), sampler=kng.chains.Exact(), num_draws=2000, num_chains=1)
    exact = exact.theta.reshape(-1, 12)
    walk = kng.sample(
        mechanism, data, key=key(1), sampler=kng.chains.CoordinateWalk(), num_draws=2500, num_chains=8, thinning=12
    )
    nuts = kng.sample(mechanism, data, key=key(2), sampler=kng.chains.NUTS(), num_draws=1500, num_chains=8)
    ensemble = kng.sample(
        mechanism, data, key=key(3), sampler=kng.chains.EnsembleWalk(), num_draws=2000, num_chains=4, thinning=50
    )
    assert_same_joint_law(exact, thinned(walk, 1000))
    assert_same_joint_law(exact, thinned(nuts, 1000))
    assert_same_joint_law(exact, thinned(ensemble, 1000))


def quantile_regression():
    generator = np.random.default_rng(2)
    x = generator.uniform(-1.0, 1.0, (300, 4))
    y = x.sum(axis=1) + generator.standard_normal(300)
    mechanism = kng.KNG(
        loss=kng.QuantileLoss(tau=0.75),
        bounds=kng.Bounds(x=(-1.0, 1.0)),
        domain=kng.Box(-5.0, 5.0),
        epsilon=2.0,
        adjacency="add_remove",
    )
    return mechanism, mechanism.prepare(x, y)


@pytest.mark.slow
@pytest.mark.runs_long
def test_line_gibbs_and_walk_agree_on_the_quantile_loss_at_five_coefficients():
    mechanism, data = quantile_regression()
    key = kng.research_key
    gibbs = kng.sample(
        mechanism, data, key=key(0), sampler=kng.chains.LineGibbs(), num_draws=1500, num_chains=4, thinning=2
    )
    walk = kng.sample(
        mechanism, data, key=key(1), sampler=kng.chains.CoordinateWalk(), num_draws=2000, num_chains=8, thinning=20
    )
    ensemble = kng.sample(
        mechanism,
        data,
        key=key(2),
        sampler=kng.chains.LineGibbs(directions="ensemble"),
        num_draws=1500,
        num_chains=4,
        thinning=6,
    )
    assert_same_joint_law(thinned(gibbs, 1000), thinned(walk, 1000))
    assert_same_joint_law(thinned(gibbs, 1000), thinned(ensemble, 500))


@pytest.mark.slow
@pytest.mark.runs_long
def test_gradient_space_and_ensemble_agree_on_robust_regression_at_twelve_coefficients():
    """n = 1500 is little more than 100d/ε, so the determinant in the weights matters."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, (1500, 11))
    y = x.sum(axis=1) + generator.standard_normal(1500)
    bounds, domain = kng.Bounds(x=(-1.0, 1.0)), kng.L1Ball(20.0)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.3), bounds, domain, epsilon=1.0, adjacency="replace")
    data, key = mechanism.prepare(x, y), kng.research_key
    exact = kng.sample(mechanism, data, key=key(0), sampler=kng.chains.GradientSpace(), num_draws=1500, num_chains=4)
    walk = kng.sample(
        mechanism, data, key=key(1), sampler=kng.chains.EnsembleWalk(), num_draws=2000, num_chains=4, thinning=50
    )
    assert_same_joint_law(thinned(exact, 1000), thinned(walk, 1000))
