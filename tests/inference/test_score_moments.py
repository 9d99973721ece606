"""Curvatures and squared scores of records: total, each record by itself, at every value that may be released."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records, WeightedRecords
from kngjax.inference import score_variances
from kngjax.inference.covariances import Sandwich
from kngjax.inference.interval_choices import interval_plan_of
from kngjax.inference.score_moments import RecordCurvature

X = np.column_stack([np.ones(7), [0.0, 1.0, -1.0, 0.3, 5e-324, -1e-310, 0.999999]])
Y = np.array([0.0, 5.0, 1.0, 0.0, 2.0, 5.0, 3.0])
LOSSES = (
    kng.PoissonLoss(),
    kng.CappedPoissonLoss(1.5),
    kng.SquaredLoss(),
    kng.ExpectileLoss(0.3),
    kng.PseudoHuberLoss(0.3),
    kng.SmoothedQuantileLoss(0.3, 0.1),
    kng.QuantileLoss(0.3),
)


@pytest.mark.parametrize("size", [5e-324, 360.0, 720.0, 1e308])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_every_record_has_shares_within_0_and_1_wherever_the_released_value_lies(loss, size):
    bandwidth = 0.2 if loss.score_is_piecewise_constant else None
    curvature = RecordCurvature(loss, kng.Bounds((-1.0, 1.0), columns=1, y=(0.0, 5.0)), bandwidth)
    for theta in (np.array([size, size]), np.array([size, -size]), np.array([-size, size])):
        with np.errstate(all="ignore"):
            units, found = curvature.units(theta), curvature.of(Records(X, Y), theta)
            alone = [curvature.of(Records(X[[row]], Y[[row]]), theta) for row in range(len(X))]
        assert np.all(np.isfinite(units))
        for shares in found:
            assert np.all((shares >= 0.0) & (shares <= 1.0))
        np.testing.assert_array_equal(np.array(found), np.hstack([np.array(one) for one in alone]))


@pytest.mark.parametrize("size", [360.0, 720.0])
def test_sums_are_released_also_where_their_units_are_beyond_float64(size):
    """The ε is spent once such a value is drawn."""
    bounds = kng.Bounds((-1.0, 1.0), columns=1, y=(0.0, 5.0))
    made = kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.3), bounds, kng.Box(-1.0, 1.0), 1.0, "replace")
    making = interval_plan_of(made, Sandwich(), 7, 7)
    curvature, theta = RecordCurvature(kng.PoissonLoss(), bounds), np.array([size, size])
    with np.errstate(all="ignore"):
        shares, squares = curvature.of(Records(X, Y), theta)
        sums = kng.release(making.summing, making.covariance.columns(X, shares, making.mechanism))
        first = kng.release(making.mechanism, X[:, 1:], Y)
        first = type(first)._of(theta, first.certificate)
        hessians = making.covariance.hessians(sums.value, making.summing, first, making.mechanism, curvature)
        assert np.all(np.isfinite(hessians))
        unit = curvature.units(theta)[1]
        inverse = np.linalg.inv(hessians.mean(axis=0))
        directions = score_variances.Directions.of(inverse, np.eye(2), bounds, unit, making.usual)
        assert np.all(np.isfinite(directions.cuts) & (directions.cuts > 0.0))
        columns = directions.columns(X, squares, unit)
        assert np.all((columns >= 0.0) & (columns <= 1.0))
        released = kng.release(making.of_variances, columns).value
        drawn = score_variances.variances_given(released, making.of_variances, directions.cuts, making.usual, 50)
    assert np.all(np.isfinite(released))
    assert np.all(np.isfinite(drawn))


@pytest.mark.parametrize(
    "loss", [one for one in LOSSES if not one.is_homogeneous], ids=lambda loss: type(loss).__name__
)
def test_of_records_with_weights_curvatures_count_by_them_and_squares_by_their_squares(loss):
    """ωw and ω²s² over the largest that a weight allows: of the largest weight what it is without weights."""
    weights, theta = np.array([0.0, 4.0, 1.0, 2.0, 4.0, 0.5, 3.0]), np.array([0.2, -0.4])
    sides = {"columns": 1, "y": (0.0, 5.0)}
    plain = RecordCurvature(loss, kng.Bounds((-1.0, 1.0), **sides))
    curvature = RecordCurvature(loss, kng.Bounds((-1.0, 1.0), **sides, weight=4.0))
    units, single = curvature.units(theta), plain.units(theta)
    found = curvature.of(WeightedRecords(Records(X, Y), weights), theta)
    alone = plain.of(Records(X, Y), theta)
    np.testing.assert_allclose(found[0] * units[0], weights * alone[0] * single[0], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found[1] * units[1], weights**2 * alone[1] * single[1], rtol=1e-12, atol=1e-300)
    assert all(np.all((shares >= 0.0) & (shares <= 1.0)) for shares in found)
