"""Searches and cross-validations are paid for, fit by fit, or refused."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor

import kngjax as kng
from kngjax.sklearn import UncountedFits
from tests.sklearn.people import X, Y, linear, logistic, response_for


def test_a_cross_validation_is_debited_fold_by_fold(ledger, spent):
    scores = cross_val_score(linear(ledger=ledger), X, Y, cv=4, scoring="r2")
    assert spent() == 4.0
    assert len(ledger.releases()) == 4
    assert np.all(scores < 1.0)
    with pytest.raises(TypeError, match="score"):
        cross_val_score(linear(ledger=ledger), X, Y, cv=4)
    assert spent() == 4.0


def test_a_cross_validation_without_a_ledger_is_refused():
    with pytest.raises(UncountedFits):
        cross_val_score(logistic(), X, response_for("logistic"), cv=2, scoring="accuracy", error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="UncountedFits"):
            cross_val_score(linear(), X, Y, cv=2, scoring="r2")
    for ensemble, y in (
        (BaggingRegressor(linear(), n_estimators=2), Y),
        (MultiOutputRegressor(linear()), Y.to_frame()),
    ):
        with pytest.raises(UncountedFits):
            ensemble.fit(X.to_numpy(), y)


def test_a_search_over_budget_stops_at_the_budget(ledger, spent):
    search = GridSearchCV(linear(ledger=ledger), {"epsilon": [2.0, 3.0]}, cv=2, scoring="r2", error_score="raise")
    # 2 + 2 + 3 + 3 for the folds leave nothing for the last fit, on all records.
    with pytest.raises(kng.ledger.BudgetExceeded):
        search.fit(X, Y)
    assert spent() == 10.0


@pytest.mark.slow
def test_processes_share_the_ledger(ledger, spent):
    search = GridSearchCV(linear(ledger=ledger), {"epsilon": [0.5, 1.0]}, cv=2, scoring="r2", n_jobs=2)
    search.fit(X, Y)
    assert spent() == 3.0 + search.best_params_["epsilon"]
    assert len(ledger.releases()) == 5
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_bounds_by_name_follow_the_order_of_columns():
    reordered = ColumnTransformer([("age", "passthrough", ["age"]), ("skill", "passthrough", ["skill"])])
    reordered.set_output(transform="pandas")
    reordered.set_params(verbose_feature_names_out=False)
    fit = linear(epsilon=50.0).fit(reordered.fit_transform(X), Y)
    assert fit.feature_names_in_.tolist() == ["age", "skill"]
    np.testing.assert_allclose(fit.coef_, [-0.02, 0.5], atol=0.02)
