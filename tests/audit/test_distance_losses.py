"""Audits of means and medians: losses of records alone, by KNG and the exponential mechanism, for both adjacencies."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit import density_ratio

EPSILON = 5.0
# Wider than Θ, so that means come to its ends.
BOUNDS = kng.Bounds(x=(-1.5, 1.5), intercept=False)
LOSSES = {"mean": kng.SquaredDistanceLoss(), "median": kng.GeometricMedianLoss()}
MECHANISMS = (kng.KNG, kng.ExponentialMechanism)
ADJACENCIES = ("replace", "add_remove")
RESOLUTIONS = {1: 201, 2: 15}


def mechanism_of(kind, name, adjacency, domain=None, epsilon=EPSILON, **parts):
    return kind(LOSSES[name], BOUNDS, domain or kng.Box(-1.0, 1.0), epsilon, adjacency, **parts)


def audited(mechanism, dimension, factor=1.0, **settings):
    """The audit of the density with Δ divided by this factor."""
    settings = {"num_records": (20,), "num_steps": 40, "resolution": RESOLUTIONS[dimension]} | settings
    return density_ratio(
        mechanism,
        dimension=dimension,
        log_density=None if factor == 1.0 else lambda theta, data: factor * mechanism.log_density(theta, data),
        **settings,
    )


# What a search must come to, as a multiple of ε, so that the next test's halves cannot hide: the mean's KNG on an
# interval spends little more than ε/2 (see below).
FOUND = {
    (kng.KNG, "mean", 1): 0.58,
    (kng.KNG, "mean", 2): 0.8,
    (kng.KNG, "median", 1): 0.99,
    (kng.KNG, "median", 2): 0.95,
    (kng.ExponentialMechanism, "mean", 1): 0.8,
    (kng.ExponentialMechanism, "mean", 2): 0.7,
    (kng.ExponentialMechanism, "median", 1): 0.7,
    (kng.ExponentialMechanism, "median", 2): 0.65,
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("kind", "name", "dimension"), list(FOUND))
def test_means_and_medians_keep_epsilon(kind, name, dimension, adjacency):
    found = audited(mechanism_of(kind, name, adjacency), dimension)
    assert found.passed, found.explain()
    assert found.ratio > FOUND[kind, name, dimension]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("kind", "name", "dimension"), list(FOUND))
def test_half_the_noise_is_too_little(kind, name, dimension, adjacency):
    found = audited(mechanism_of(kind, name, adjacency), dimension, factor=2.0)
    assert not found.passed
    assert found.ratio > {0.58: 1.05}.get(FOUND[kind, name, dimension], 1.3)


def test_the_mean_on_an_interval_spends_what_a_closed_form_says():
    """KNG moves log f by ε/2, and the mass by 2 - e^{-ε/2} where the mean moves to an end of Θ from within."""
    found = audited(mechanism_of(kng.KNG, "mean", "replace", kng.Box(-0.5, 0.5), epsilon=0.5), 1, num_records=(200,))
    largest = 0.25 + np.log(2.0 - np.exp(-0.25))
    np.testing.assert_allclose(found.worst_log_ratio, largest, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("domain", [kng.Box(-1.0, 1.0), kng.L1Ball(1.0), kng.L2Ball(1.5)], ids=["box", "l1", "l2"])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", MECHANISMS)
def test_means_and_medians_keep_epsilon_in_a_longer_search(kind, name, dimension, domain, adjacency):
    mechanism = mechanism_of(kind, name, adjacency, domain)
    found = audited(
        mechanism, dimension, num_records=(1, 2, 5, 20), num_steps=100, resolution={1: 401, 2: 25}[dimension]
    )
    assert found.passed, found.explain()


NORMS = (kng.L1(), kng.L2(), kng.LInf(), kng.WeightedLInf(np.array([1.0, 2.0])))
NORMS += (kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]])),)


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
@pytest.mark.parametrize(("name", "adjacency"), [("mean", "add_remove"), ("median", "replace")])
def test_every_norm_keeps_epsilon(name, adjacency, norm):
    found = audited(mechanism_of(kng.KNG, name, adjacency, norm=norm), 2)
    assert found.passed, found.explain()
    assert found.ratio > 0.55


def test_records_are_within_the_bounds_and_have_no_response():
    found = audited(mechanism_of(kng.KNG, "median", "add_remove"), 2, num_records=(3,), num_steps=5)
    for records in found.pair:
        assert np.abs(records.x).max() <= 1.5
        np.testing.assert_array_equal(records.y, 0.0)
