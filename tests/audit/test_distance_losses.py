"""Audits of means and medians: losses of records alone, by KNG and the exponential mechanism, for both adjacencies."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.audit import density_ratio
from tests.audit.fractions import half_fraction

EPSILON = 5.0
# Wider than Θ, so that means come to its ends.
BOUNDS = kng.Bounds(x=(-1.5, 1.5), intercept=False)
LOSSES = {"mean": kng.SquaredDistanceLoss(), "median": kng.GeometricMedianLoss()}
MECHANISMS = (kng.KNG, kng.ExponentialMechanism)
ADJACENCIES = ("replace", "add_remove")
RESOLUTIONS = {1: 201, 2: 15}


def mechanism_of(kind, name, adjacency, domain=None, epsilon=EPSILON, **parts):
    return kind(LOSSES[name], BOUNDS, domain or kng.Box(-1.0, 1.0), epsilon, adjacency, **parts)


def audited(mechanism, dimension, **settings):
    settings = {"num_records": (20,), "num_steps": 40, "resolution": RESOLUTIONS[dimension]} | settings
    return density_ratio(mechanism, dimension=dimension, **settings)


# What a search must come to, as multiples of ε, at ε and at half the noise. The mean's KNG on an interval spends little
# more than ε/2 (see below).
FOUND = {
    (kng.KNG, "mean", 1): (0.58, 1.05),
    (kng.KNG, "mean", 2): (0.8, 1.6),
    (kng.KNG, "median", 1): (0.99, 1.98),
    (kng.KNG, "median", 2): (0.95, 1.9),
    (kng.ExponentialMechanism, "mean", 1): (0.8, 1.6),
    (kng.ExponentialMechanism, "mean", 2): (0.7, 1.4),
    (kng.ExponentialMechanism, "median", 1): (0.7, 1.4),
    (kng.ExponentialMechanism, "median", 2): (0.65, 1.3),
}


def cases():
    for kind, name, dimension in FOUND:
        for adjacency in ADJACENCIES:
            is_quick = kind is kng.KNG or (dimension == 1) == (adjacency == "replace")
            yield pytest.param(kind, name, dimension, adjacency, marks=[] if is_quick else pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "dimension", "adjacency"), list(cases()))
def test_means_and_medians_keep_epsilon_and_half_the_noise_would_not(kind, name, dimension, adjacency):
    right, half = FOUND[kind, name, dimension]
    found = audited(mechanism_of(kind, name, adjacency), dimension)
    assert found.passed, found.explain()
    assert found.ratio > right
    # The density at 2ε is that at ε with half of Δ.
    found = audited(mechanism_of(kind, name, adjacency, epsilon=2.0 * EPSILON), dimension)
    assert found.worst_log_ratio > half * EPSILON


@pytest.mark.slow
def test_the_mean_on_an_interval_spends_what_a_closed_form_says():
    """KNG moves log f by ε/2, and the mass by 2 - e^{-ε/2} where the mean moves to an end of Θ from within."""
    found = audited(mechanism_of(kng.KNG, "mean", "replace", kng.Box(-0.5, 0.5), epsilon=0.5), 1, num_records=(200,))
    largest = 0.25 + np.log(2.0 - np.exp(-0.25))
    np.testing.assert_allclose(found.worst_log_ratio, largest, rtol=0.05)


def longer_searches():
    """On every domain half of the combinations of the other four choices, the other half on the next."""
    for number, domain in enumerate((kng.Box(-1.0, 1.0), kng.L1Ball(1.0), kng.L2Ball(1.5))):
        for choices in half_fraction(MECHANISMS, tuple(LOSSES), (1, 2), ADJACENCIES, odd=number % 2):
            yield domain, *choices


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "kind", "name", "dimension", "adjacency"), list(longer_searches()))
def test_means_and_medians_keep_epsilon_in_a_longer_search(kind, name, dimension, domain, adjacency):
    mechanism = mechanism_of(kind, name, adjacency, domain)
    found = audited(
        mechanism, dimension, num_records=(1, 2, 5, 20), num_steps=100, resolution={1: 401, 2: 25}[dimension]
    )
    assert found.passed, found.explain()


SCALED, SKEW = kng.WeightedLInf(np.array([1.0, 2.0])), kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "adjacency", "norm"),
    [
        ("mean", "add_remove", kng.L1()),
        ("mean", "replace", SKEW),
        ("median", "replace", kng.LInf()),
        ("median", "add_remove", SCALED),
    ],
)
def test_other_norms_keep_epsilon(name, adjacency, norm):
    found = audited(mechanism_of(kng.KNG, name, adjacency, norm=norm), 2)
    assert found.passed, found.explain()
    assert found.ratio > 0.55


@pytest.mark.slow
def test_records_are_within_the_bounds_and_have_no_response():
    found = audited(mechanism_of(kng.KNG, "median", "add_remove"), 2, num_records=(3,), num_steps=5)
    for records in found.pair:
        assert np.abs(records.x).max() <= 1.5
        np.testing.assert_array_equal(records.y, 0.0)
