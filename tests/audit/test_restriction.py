"""Mechanisms cut to their first coefficients: the parts that are cut, those that stay, and what cannot be cut."""

import numpy as np
import numpyro.distributions as dist
import pytest

import kngjax as kng
from kngjax.audit import density_ratio, restricted


@pytest.mark.default_cases("domain1-L1")
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.LInf()], ids=lambda norm: type(norm).__name__)
@pytest.mark.parametrize("domain", [kng.Box(np.array([-1.0, -2.0, -3.0]), 1.0), kng.L1Ball(2.0), kng.L2Ball(2.0)])
def test_restricted_cuts_bounds_and_domain(domain, norm):
    bounds = kng.Bounds(x=(np.array([-1.0, 0.0]), np.array([1.0, 5.0])), y=(-1.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, domain, 2.0, "add_remove", norm)
    cut = restricted(mechanism, 2)
    assert cut.dimension == 2
    assert cut.adjacency == "add_remove"
    assert float(cut.epsilon) == 2.0
    assert type(cut.domain) is type(domain)
    by_hand = kng.KNG(
        kng.SquaredLoss(),
        kng.Bounds(x=(np.array([-1.0]), np.array([1.0])), y=(-1.0, 1.0)),
        kng.Box(np.array([-1.0, -2.0]), 1.0) if isinstance(domain, kng.Box) else domain,
        2.0,
        "add_remove",
        norm,
    )
    assert cut.sensitivity == by_hand.sensitivity
    assert cut.sensitivity_for(2).derivation != mechanism.sensitivity_for(3).derivation


@pytest.mark.slow
def test_restricted_mechanisms_can_be_audited():
    mechanism = kng.ExponentialMechanism(
        kng.QuantileLoss(tau=0.5), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.Box(-1.0, 1.0), 5.0, "replace"
    )
    one = restricted(mechanism, 1)
    assert one.bounds.columns == 0
    assert isinstance(one, kng.ExponentialMechanism)
    assert density_ratio(one, num_records=(5,), num_steps=10, resolution=50).passed


@pytest.mark.slow
def test_a_sensitivity_that_depends_on_theta_stays_one():
    bounds = kng.Bounds(x=(np.zeros(2), np.ones(2)), y=(-1.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", pointwise_sensitivity=True)
    cut = restricted(mechanism, 1)
    assert cut.pointwise_sensitivity
    assert density_ratio(cut, num_records=(5,), num_steps=10, resolution=51).passed
    hull = kng.geometry.FeatureHull(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    by_box = restricted(kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(hull=hull), kng.Box(-1.0, 1.0), 1.0, "replace"), 2)
    np.testing.assert_array_equal(by_box.bounds.x_upper, [1.0])


@pytest.mark.slow
def test_cut_mechanisms_of_means_keep_epsilon():
    bounds = kng.Bounds(x=(np.array([0.0, -1.0, -2.0]), 1.0), intercept=False)
    densities = [kng.SquaredDistanceLoss(), kng.GeometricMedianLoss()]
    means = [kng.KNG(loss, bounds, kng.L2Ball(2.0), 1.0, "add_remove") for loss in densities]
    for mechanism in (*means, *(kng.KNormMechanism(bounds, 2.0, "replace", norm) for norm in (None, kng.L1()))):
        assert density_ratio(restricted(mechanism, 2), num_records=(5,), num_steps=10, resolution=11).passed


def test_what_cannot_be_restricted_is_refused():
    parts = kng.QuantileLoss(tau=0.5), kng.Bounds(x=(0.0, 1.0))
    weighted = kng.KNG(*parts, kng.Box(-1.0, 1.0), 1.0, "replace", kng.WeightedLInf(np.array([1.0, 1.0, 2.0])))
    with pytest.raises(ValueError, match="WeightedLInf norm is for 3 coefficients"):
        restricted(weighted, 2)
    with pytest.raises(ValueError, match="BaseMeasure cannot be cut"):
        restricted(kng.KNG(*parts, kng.BaseMeasure(dist.Normal(0.0, 1.0)), 1.0, "replace"), 2)
    with pytest.raises(ValueError, match="at least 1 and at most 3, got 4"):
        restricted(weighted, 4)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        restricted(kng.KNG(*parts, kng.Box(-1.0, 1.0), 1.0, "replace"), 0)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("loss", [kng.SquaredDistanceLoss(), kng.GeometricMedianLoss()])
def test_losses_without_response_are_cut_without_an_intercept(loss):
    bounds = kng.Bounds(x=(np.array([0.0, -1.0, -2.0]), 1.0), intercept=False)
    mechanism = kng.KNG(loss, bounds, kng.L2Ball(2.0), 1.0, "add_remove")
    cut = restricted(mechanism, 2)
    np.testing.assert_array_equal(cut.bounds.x_lower, [0.0, -1.0])
    assert (cut.dimension, cut.bounds.intercept) == (2, False)


@pytest.mark.default_cases("NoneType")
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2(), kng.LInf()], ids=lambda norm: type(norm).__name__)
def test_the_k_norm_mechanism_is_cut(norm):
    bounds = kng.Bounds(x=(np.array([0.0, -1.0, -2.0]), 1.0), intercept=False)
    cut = restricted(kng.KNormMechanism(bounds, 2.0, "replace", norm), 2)
    by_hand = kng.KNormMechanism(kng.Bounds(x=([0.0, -1.0], 1.0), intercept=False), 2.0, "replace", norm)
    assert isinstance(cut, kng.KNormMechanism)
    assert cut.sensitivity == by_hand.sensitivity
    assert cut.guarantee == by_hand.guarantee
    weighted = kng.KNormMechanism(bounds, 2.0, "replace", kng.WeightedLInf(np.ones(3)))
    with pytest.raises(ValueError, match="WeightedLInf norm is for 3 coefficients"):
        restricted(weighted, 2)
