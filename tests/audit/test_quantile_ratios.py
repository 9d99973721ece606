"""Audits of PrivateQuantile, whose density is constant between records: every gap is looked into."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit import density_ratio

pytestmark = pytest.mark.skipif(not hasattr(kng, "PrivateQuantile"), reason="PrivateQuantile is not there yet")

ADJACENCIES = ("replace", "add_remove")
BOUNDS = kng.Bounds(y=(-1.0, 3.0))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9])
def test_one_quantile_spends_its_epsilon_and_no_more(tau, adjacency):
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 1.0, adjacency)
    assert mechanism.jumps(mechanism.prepare(None, np.zeros(3))).shape == (5,)
    found = density_ratio(mechanism, num_records=(20,), num_steps=40)
    assert found.passed, found.explain()
    assert found.ratio > 0.95


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_quantile_with_half_the_noise_is_found_out(adjacency):
    mechanism, twice = (kng.PrivateQuantile(0.9, BOUNDS, epsilon, adjacency) for epsilon in (1.0, 2.0))
    found = density_ratio(mechanism, num_records=(20,), num_steps=40, log_density=twice.log_density)
    assert not found.passed
    assert found.ratio > 1.9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("tau", [0.75, 0.9])
def test_it_is_kng_with_an_intercept_alone(tau, adjacency):
    """On a grid both are searched with the same pairs, and the densities differ by a normaliser."""
    mechanism = kng.PrivateQuantile(tau, BOUNDS, 1.0, adjacency)
    by_kng = kng.KNG(kng.QuantileLoss(tau), BOUNDS, kng.Box(-1.0, 3.0), 1.0, adjacency)
    values = np.random.default_rng(1).uniform(-2.0, 4.0, 9)
    data, records = mechanism.prepare(None, values), by_kng.prepare(None, values)
    thetas = np.linspace(-0.99, 2.99, 57)[:, None]
    differences = [mechanism.log_density(theta, data) - by_kng.log_density(theta, records) for theta in thetas]
    np.testing.assert_allclose(differences, differences[0], atol=1e-10)
