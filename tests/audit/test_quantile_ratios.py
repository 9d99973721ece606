"""Audits of PrivateQuantile, whose density is constant between records: every gap is looked into."""

import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.audit import density_ratio

ADJACENCIES = ("replace", "add_remove")
BOUNDS = kng.Bounds(y=(-1.0, 3.0))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9])
def test_one_quantile_spends_its_epsilon_and_no_more(tau, adjacency):
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 1.0, adjacency)
    assert mechanism.jumps(mechanism.prepare(None, np.zeros(3))).shape == (5,)
    found = density_ratio(mechanism, num_records=(20,), num_steps=40)
    assert found.passed, found.explain()
    assert found.ratio > 0.95


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_quantile_with_half_the_noise_is_found_out(adjacency):
    mechanism, twice = (kng.PrivateQuantile(0.9, BOUNDS, epsilon, adjacency) for epsilon in (1.0, 2.0))
    found = density_ratio(mechanism, num_records=(20,), num_steps=20, log_density=twice.log_density)
    assert not found.passed
    assert found.ratio > 1.9


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("budget", ["joint", "split"])
def test_two_quantiles_keep_epsilon_together(budget, adjacency):
    mechanism, twice = (kng.PrivateQuantile([0.25, 0.6], BOUNDS, epsilon, adjacency, budget) for epsilon in (1.0, 2.0))
    settings = {"num_records": (2, 8), "num_steps": 20}
    found = density_ratio(mechanism, **settings)
    assert found.passed, found.explain()
    assert found.ratio > 0.75
    assert density_ratio(twice, **settings).worst_log_ratio > 1.5


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_is_kng_with_an_intercept_alone(adjacency):
    """The densities differ by a normaliser."""
    mechanism = kng.PrivateQuantile(0.75, BOUNDS, 1.0, adjacency)
    by_kng = kng.KNG(kng.QuantileLoss(0.75), BOUNDS, kng.Box(-1.0, 3.0), 1.0, adjacency)
    values = np.random.default_rng(1).uniform(-2.0, 4.0, 9)
    data, records = mechanism.prepare(None, values), by_kng.prepare(None, values)
    thetas = np.linspace(-0.99, 2.99, 57)[:, None]
    ours, theirs = (
        jax.jit(jax.vmap(each.log_density, (0, None)))(thetas, own)
        for each, own in ((mechanism, data), (by_kng, records))
    )
    np.testing.assert_allclose(ours - theirs, ours[0] - theirs[0], atol=1e-10)
