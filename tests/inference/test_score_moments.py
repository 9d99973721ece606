"""Curvatures and squared scores of records: total, each record by itself, at every value that may be released."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.data.records import Records
from kngjax.inference.covariances import IndependentErrors, Sandwich
from kngjax.inference.interval_plans import SumsPlan, interval_plan_of
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


@pytest.mark.parametrize("covariance", [Sandwich(), Sandwich(noise="zcdp"), IndependentErrors()], ids=repr)
@pytest.mark.parametrize("size", [360.0, 720.0])
def test_sums_are_released_also_where_their_units_are_beyond_float64(size, covariance):
    # The budget is spent once such a value is drawn.
    bounds = kng.Bounds((-1.0, 1.0), columns=1, y=(0.0, 5.0))
    making = interval_plan_of(
        kng.ObjectivePerturbation(kng.PseudoHuberLoss(0.3), bounds, kng.Box(-1.0, 1.0), 1.0, "replace"),
        covariance,
        7,
        7,
    )
    assert isinstance(making, SumsPlan)
    curvature, theta = RecordCurvature(kng.PoissonLoss(), bounds), np.array([size, size])
    with np.errstate(all="ignore"):
        columns = making.covariance.columns(Records(X, Y), theta, curvature, kng.Adjacency.REPLACE)
        sums = kng.release(making.summing, columns).value
        assert np.all(np.isfinite(sums))
        made = making.covariance.matrices(np.tile(sums, (50, 1)), 2, curvature, theta, kng.Adjacency.REPLACE, len(X))
    assert np.all(np.isfinite(made.hessian))
    assert np.all(np.isfinite(made.score))
