"""Settings, labels and bounds that a loss refuses, in words that tell no response."""

import numpy as np
import pytest

import kngjax as kng


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_quantile_levels_out_of_range(tau):
    for make in (kng.QuantileLoss, kng.ExpectileLoss, lambda tau: kng.SmoothedQuantileLoss(tau, 0.1)):
        with pytest.raises(ValueError, match="tau must lie strictly between 0 and 1"):
            make(tau)


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_thresholds_and_bandwidths_out_of_range(width):
    for make in (kng.HuberLoss, kng.PseudoHuberLoss):
        with pytest.raises(ValueError, match="threshold k must be one positive and finite number"):
            make(width)
    with pytest.raises(ValueError, match="bandwidth must be one positive and finite number"):
        kng.SmoothedQuantileLoss(0.5, width)


@pytest.mark.parametrize("width", [1e-300, 0.99e-100, 1.01e100, 1e300])
def test_thresholds_and_bandwidths_whose_powers_float64_has_not(width):
    """Public, so refused in words: at such ends proofs would rest on numbers that overflow."""
    for make in (kng.HuberLoss, kng.PseudoHuberLoss):
        with pytest.raises(ValueError, match=r"threshold k must lie between 1e-100 and 1e\+100, .*got .*other units"):
            make(width)
    for kernel in ("logistic", "gaussian"):
        with pytest.raises(ValueError, match=r"bandwidth must lie between 1e-100 and 1e\+100"):
            kng.SmoothedQuantileLoss(0.5, width, kernel)


@pytest.mark.parametrize("width", [1e-100, 1e100])
def test_thresholds_and_bandwidths_up_to_the_limits(width):
    assert float(kng.HuberLoss(width).k) == float(kng.PseudoHuberLoss(width).k) == width
    assert float(kng.SmoothedQuantileLoss(0.5, width).bandwidth) == width


def test_a_kernel_that_is_none():
    for kernel in ("normal", "Gaussian", None, 1):
        # A TypeError where types are checked, as in these tests.
        with pytest.raises((TypeError, ValueError), match="kernel"):
            kng.SmoothedQuantileLoss(0.5, 0.1, kernel)


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (kng.LogisticLoss(), [0.0, 1.0, 2.0]),
        (kng.LogisticLoss(), [-1.0, 1.0, 1.0]),
        (kng.PoissonLoss(), [0.0, -987654.321, 1.0]),
        (kng.CappedPoissonLoss(3.0), [0.0, -987654.321, 1.0]),
    ],
)
def test_labels_that_a_loss_does_not_model(loss, labels):
    bounds = kng.Bounds(y=None if isinstance(loss, kng.LogisticLoss) else (0.0, 1e6))
    mechanism = kng.KNG(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    with pytest.raises(ValueError, match="no declared level or a response that the loss has no meaning for") as caught:
        mechanism.prepare(None, labels)
    assert "987654" not in str(caught.value)


LEVELS = {
    (0, 1): [0, 1.0, True],
    (-1, 1): [-1, 1, -1.0],
    (1, 0): [1, 0, 1],
    ("no", "yes"): ["no", "yes ", "no"],
    ("0", "1"): ["0", 1, "0.0"],
}


@pytest.mark.parametrize(("levels", "cells"), LEVELS.items())
def test_declared_levels_are_mapped_cell_by_cell(levels, cells):
    loss = kng.LogisticLoss(levels)
    mapped = loss.responses(np.array(cells, dtype=object))
    np.testing.assert_array_equal(mapped[:2], [0.0, 1.0])
    np.testing.assert_array_equal(
        np.isnan(loss.responses(np.array([*cells[:2], 7, None, "x"], object))), [0, 0, 1, 1, 1]
    )


def test_responses_without_a_meaning_are_missing():
    bounds = {"x": ([0.0], [1.0])}
    X = np.full((3, 1), 0.5)
    logistic = kng.LogisticLoss((-1, 1))
    plain = kng.ObjectivePerturbation(logistic, kng.Bounds(**bounds), None, 1.0, "replace")
    np.testing.assert_array_equal(plain.prepare(X, np.array([-1, 1, 1])).y, [0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="no declared level"):
        plain.prepare(X, np.array([0, 1, 1]))
    filled = kng.ObjectivePerturbation(logistic, kng.Bounds(**bounds, missing_y=-1), None, 1.0, "replace")
    np.testing.assert_array_equal(filled.prepare(X, np.array([0, 1, -1])).y, [0.0, 1.0, 0.0])
    words = kng.ObjectivePerturbation(kng.LogisticLoss(("no", "yes")), kng.Bounds(**bounds), None, 1.0, "replace")
    np.testing.assert_array_equal(words.prepare(X, ["yes", "no", "yes"]).y, [1.0, 0.0, 1.0])
    counts = kng.KNG(kng.PoissonLoss(), kng.Bounds(y=(0.0, 9.0), missing_y=3), kng.Box(-1.0, 1.0), 1.0, "replace")
    np.testing.assert_array_equal(counts.prepare(None, np.array([-1.0, 2.5, 11.0])).y, [3.0, 2.5, 9.0])


def test_levels_and_policies_that_are_none():
    for levels in ((0, 1, 2), (1,), (), (1, 1.0), ("1", " 1")):
        with pytest.raises(ValueError, match=r"levels of LogisticLoss must be (two|all different)"):
            kng.LogisticLoss(levels)
    # Of a level that is no number every cell that is none would be an instance.
    for levels in ((0, None), (np.nan, 1), (np.inf, 1), (0, 10**400), ("1", 1)):
        with pytest.raises(TypeError, match="levels of LogisticLoss must be all text or all finite numbers"):
            kng.LogisticLoss(levels)
    parts = (None, 1.0, "replace")
    with pytest.raises(ValueError, match=r"missing_y = 0\.0 is no response of LogisticLoss"):
        kng.ObjectivePerturbation(kng.LogisticLoss((-1, 1)), kng.Bounds(missing_y=0), *parts)
    with pytest.raises(ValueError, match="'drop' is a level of LogisticLoss"):
        kng.ObjectivePerturbation(
            kng.LogisticLoss(("drop ", "keep")), kng.Bounds(missing_y="drop"), None, 1.0, "add_remove"
        )
    with pytest.raises(ValueError, match=r"missing_y = -1\.0 is no response of PoissonLoss"):
        kng.KNG(kng.PoissonLoss(), kng.Bounds(y=(-2.0, 9.0), missing_y=-1), kng.Box(-1.0, 1.0), 1.0, "replace")


NO_RESPONSES = {
    kng.LogisticLoss(): [(0.2, 0.8), (-1.0, 1.0), (0.0, 2.0), (-5.0, 5.0), (5.0, 9.0)],
    kng.LogisticLoss((-1, 1)): [(-1.0, 1.0)],
    kng.PoissonLoss(): [(-5.0, 5.0), (-5.0, -1.0), (-1e-9, 9.0)],
}


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        *((loss, y) for loss, pairs in NO_RESPONSES.items() for y in pairs),
        (kng.CappedPoissonLoss(3.0), (-5.0, 5.0)),
    ],
)
def test_bounds_with_responses_that_have_no_meaning_are_refused(loss, y):
    """Data within them would fail when the release is paid for."""
    bounds = kng.Bounds(x=([0.0], [1.0]), y=y)
    for mechanism in (kng.KNG, kng.ExponentialMechanism, kng.ObjectivePerturbation):
        with pytest.raises(ValueError, match=r"these bounds of y (are not \(0, 1\)|promise some)"):
            mechanism(loss, bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    meant = (0.0, 1.0) if isinstance(loss, kng.LogisticLoss) else (2.0, 9.0)
    kng.KNG(loss, kng.Bounds(x=([0.0], [1.0]), y=meant), kng.Box(-1.0, 1.0), 1.0, "replace")
