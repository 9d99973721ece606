"""Responses without bounds: what a regressor lacks is told by its own arguments, and what it then gets serves."""

import numpy as np
import pytest

import kngjax as kng
from kngjax.sklearn import PrivateLinearRegressor, PrivateQuantileRegressor, PrivateRobustRegressor

X = np.random.default_rng(0).uniform(0.0, 1.0, (3000, 1))
Y = 2.0 * X[:, 0] + np.random.default_rng(1).normal(0.0, 0.3, 3000)
PLAIN = {"epsilon": 5, "bounds": (0, 1), "adjacency": "replace"}
BOX = kng.Box(-5.0, 5.0)


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "book", kng.Budget.pure(5), adjacency="replace", dataset="made up")


@pytest.mark.parametrize(
    ("kind", "advised"),
    [
        (PrivateQuantileRegressor, {"bounds_y": (-2, 5)}),
        (PrivateQuantileRegressor, {"domain": BOX}),
        (PrivateQuantileRegressor, {"domain": BOX, "force": True}),
        (PrivateQuantileRegressor, {"domain": BOX, "scale": 0.3}),
        (PrivateLinearRegressor, {"bounds_y": (-2, 5)}),
        (PrivateRobustRegressor, {"bounds_y": (-2, 5)}),
    ],
)
def test_what_a_regressor_lacks_is_told_and_does(kind, advised, ledger):
    rows = ledger.read().num_rows
    with pytest.raises(ValueError, match="bounds_y=") as told:
        kind(**PLAIN, ledger=ledger).fit(X, Y)
    assert ledger.read().num_rows == rows
    assert {f"{name}=" in str(told.value) for name in advised if name in ("bounds_y", "domain")} == {True}
    fit = kind(**PLAIN, **advised, ledger=ledger).fit(X, Y)
    assert fit.coef_[0] == pytest.approx(2.0, abs=0.3)
