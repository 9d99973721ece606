"""Sensitivities that are computed by hand, and the words of their derivation."""

import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from tests.sensitivity.attacks import TAUS


def kng_sensitivity(loss, norm, adjacency, dimension=2, domain=None, **bounds):
    return kng.KNG(loss, kng.Bounds(**bounds), domain or kng.Box(-1.0, 1.0), 1.0, adjacency, norm).sensitivity_for(
        dimension
    )


def values_of(tau):
    def value(norm, adjacency, features, **options):
        return kng_sensitivity(kng.QuantileLoss(tau=tau), norm, adjacency, x=features, **options).value

    return value, max(tau, 1.0 - tau)


def test_constants_of_quantile_regression_by_hand():
    # All levels share their programs.
    for tau in TAUS:
        value, larger = values_of(tau)
        np.testing.assert_allclose(value(kng.LInf(), "replace", (-1.0, 1.0)), 2.0 * larger)
        np.testing.assert_allclose(value(kng.LInf(), "add_remove", (-1.0, 1.0)), larger)
        np.testing.assert_allclose(value(kng.LInf(), "replace", (0.0, 1.0)), 1.0)
        np.testing.assert_allclose(value(kng.LInf(), "add_remove", (0.0, 1.0)), larger)
        by_hand = max(3.0 * tau, 1.0 - tau) + max(3.0 * (1.0 - tau), tau)
        np.testing.assert_allclose(value(kng.LInf(), "replace", (-3.0, 1.0), dimension=1, intercept=False), by_hand)
        np.testing.assert_allclose(value(kng.L1(), "replace", (-1.0, 1.0)), 2.0)


@pytest.mark.slow
def test_constants_of_quantile_regression_in_other_norms_by_hand():
    for tau in TAUS:
        value, larger = values_of(tau)
        # w = (1, 2·larger), but the changes are ±(1, v) with |v| ≤ 1 where the scores differ, and ±(0, v) with
        # |v| ≤ 2·larger where they are the same.
        np.testing.assert_allclose(value(kng.LInf(), "replace", None, dimension=1), 1.0)
        np.testing.assert_allclose(value(kng.L2(), "replace", (-1.0, 1.0)), max(np.sqrt(2.0), 2.0 * larger))
        ellipsoid = kng.Ellipsoid(np.array([[1.0, -0.6], [-0.6, 1.0]]))
        np.testing.assert_allclose(value(ellipsoid, "replace", (-1.0, 1.0)), max(np.sqrt(3.2), 2.0 * larger))
        np.testing.assert_allclose(value(kng.WeightedLInf(np.array([0.1, 1.0])), "replace", (-1.0, 1.0)), 10.0)
        assert value(None, "replace", (-1.0, 1.0)) == value(None, "add_remove", (0.0, 1.0)) == 1.0


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_constants_of_the_other_losses_by_hand(adjacency):
    twice = 2.0 if adjacency == "replace" else 1.0
    for reach, y in ((1.0, 1.0), (1.5, 4.0)):
        largest = max(y - np.exp(-reach), np.exp(reach))
        by_hand = [
            (kng.SquaredLoss(), (-y, y), y + reach),
            # A pseudo-Huber score is as long as Huber's, though it never is at its end.
            (kng.PseudoHuberLoss(k=0.3), None, 0.3),
            (kng.LogisticLoss(), None, 1.0),
            (kng.PoissonLoss(), (0.0, y), largest),
        ]
        for loss, response, expected in by_hand:
            parts = {"domain": kng.L1Ball(reach), "x": (-1.0, 1.0), "y": response}
            found = kng_sensitivity(loss, kng.LInf(), adjacency, **parts).value
            np.testing.assert_allclose(found, twice * expected, err_msg=repr(loss))


def test_constants_of_the_exponential_mechanism_by_hand():
    def value(loss, y, reach=1.5):
        bounds, ball = kng.Bounds(x=(-1.0, 1.0), y=y), kng.L1Ball(reach)
        return kng.ExponentialMechanism(loss, bounds, ball, 1.0, "replace").sensitivity_for(2).value

    for tau in TAUS:
        np.testing.assert_allclose(value(kng.QuantileLoss(tau=tau), (-1.0, 1.0)), max(tau, 1.0 - tau) * 2.5)
    np.testing.assert_allclose(value(kng.SquaredLoss(), (-3.0, 3.0)), 0.5 * 4.5**2)
    # log(1 + e^B) - log(1 + e^-B) = B.
    np.testing.assert_allclose(value(kng.LogisticLoss(), None), 1.5)


def test_an_ellipsoid_of_many_dimensions_is_bounded_from_above():
    random = np.random.default_rng(3)
    for dimension in (3, 14):
        root = random.normal(size=(dimension, dimension))
        norm, changes = kng.Ellipsoid(root @ root.T), random.uniform(0.5, 2.0, dimension)
        corners = changes * np.where(random.random((5000, dimension)) < 0.5, -1.0, 1.0)
        largest = np.max(np.sqrt(np.sum((corners @ root) ** 2, axis=1)))
        bound = float(norm.largest_over_box(jnp.asarray(changes)))
        assert largest <= bound * (1.0 + 1e-12)
        assert dimension > 12 or bound <= largest * (1.0 + 1e-9)


def test_the_derivation_names_its_numbers():
    loss = kng.QuantileLoss(tau=0.9)
    replace = kng_sensitivity(loss, kng.LInf(), "replace", x=(-1.0, 1.0))
    for part in ("[-0.9, 0.1]", "exchanging one record", "M_j - m_j", "w = (1, 1.8)", "LInf", "than 1.8"):
        assert part in replace.derivation
    removed = kng_sensitivity(loss, None, "add_remove", x=(-1.0, 1.0))
    for part in ("one record more or less", "max(|m_j|, |M_j|)", "w = (0.9, 0.9)", "WeightedLInf", "than 1."):
        assert part in removed.derivation


@pytest.mark.slow
def test_an_open_number_of_columns_has_a_sensitivity_only_if_it_does_not_matter():
    bounds = kng.Bounds(x=(-1.0, 1.0))
    mechanism = kng.KNG(kng.QuantileLoss(tau=0.9), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", kng.LInf())
    assert mechanism.sensitivity.value == pytest.approx(1.8)
    mechanism = kng.KNG(kng.QuantileLoss(tau=0.9), bounds, kng.Box(-1.0, 1.0), 1.0, "replace", kng.L1())
    with pytest.raises(ValueError, match="sensitivity_for"):
        _ = mechanism.sensitivity
