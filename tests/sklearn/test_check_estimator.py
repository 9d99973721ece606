"""scikit-learn's own checks: a twin without noise passes all, and the estimators all but those of a table.

The table below says of each check that private estimators do not pass what they promise instead. That nothing else is
the reason is shown by a twin: the same classes, whose bits are the same in every release, whose failures tell their
cause, and which read the classes off y and the columns off a list. It passes every check.
"""

import os
import random
import secrets

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets

import kngjax as kng
from kngjax.releases.plan import Plan
from kngjax.sklearn import (
    PrivateLinearRegressor,
    PrivateLogisticRegression,
    PrivatePoissonRegressor,
    PrivateQuantileRegressor,
    PrivateRobustRegressor,
    PublicTerms,
)
from kngjax.sklearn.base import AbstractPrivateEstimator, levels_of
from kngjax.study.responses import Response

NOISE = "two fits are two releases, with noise of their own"
FEW = "of ten records all of one label noise predicts the other label now and then"
SEALED = "what depends on values fails with the one text of kngjax.ReleaseFailed, which is no ValueError"
LISTS = "how many columns a list has its records alone say: without bounds by position it is refused before a debit"
CLASSES = "classes are public settings and are never read off y: labels that are none of them are missing responses"

EVERYWHERE = {"check_fit_idempotent": NOISE, "check_supervised_y_2d": NOISE, "check_supervised_y_no_nan": SEALED}
OF_REGRESSORS = {
    "check_regressors_int": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_regressors_train": LISTS,
}
OF_CLASSIFIERS = {
    "check_classifier_data_not_an_array": CLASSES,
    "check_classifiers_one_label": FEW,
    "check_classifiers_train": LISTS,
    "check_estimators_dtypes": CLASSES,
    "check_classifiers_classes": CLASSES,
    "check_classifiers_regression_target": CLASSES,
    "check_classifier_not_supporting_multiclass": CLASSES,
    "check_fit2d_1feature": CLASSES,
}
# scikit-learn's own programs warn so in one of its checks.
IGNORED = pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")


def estimator(name, ledger):
    common = {"epsilon": 4.0, "adjacency": "replace", "bounds": (-10, 10), "missing": 0.0, "ledger": ledger}
    # The checks have few records.
    common["force"] = True
    ends = {"bounds_y": (-300, 300)}
    return {
        "adassp": lambda: PrivateLinearRegressor(delta=1e-6, **ends, **common),
        "linear": lambda: PrivateLinearRegressor(**ends, **common),
        "robust": lambda: PrivateRobustRegressor(**ends, **common),
        "quantile": lambda: PrivateQuantileRegressor(**ends, **common),
        "poisson": lambda: PrivatePoissonRegressor(bounds_y=(0, 300), **common),
        "logistic": lambda: PrivateLogisticRegression(**common),
    }[name]()


@pytest.fixture
def ledger(tmp_path):
    budget = kng.Budget.approximate(1e6, 0.5)
    return kng.Ledger.create(tmp_path / "checks", budget, adjacency="replace", dataset="of scikit-learn's checks")


@pytest.fixture
def twin(monkeypatch):
    """Releases of the same data agree, and what fails says why."""
    release, urandom = Plan.release, os.urandom

    def pinned(*arguments, **settings):
        generator = random.Random(0)
        monkeypatch.setattr(secrets, "randbits", generator.getrandbits)
        monkeypatch.setattr(os, "urandom", generator.randbytes)
        try:
            return release(*arguments, **settings)
        finally:
            monkeypatch.setattr(os, "urandom", urandom)

    monkeypatch.setattr(Plan, "release", pinned)
    monkeypatch.setattr("kngjax.releases.plan.run_hiding_errors", lambda work: (work(), None))
    tags, admit = AbstractPrivateEstimator.__sklearn_tags__, AbstractPrivateEstimator._admit

    def deterministic(self):
        made = tags(self)
        made.non_deterministic = False
        return made

    def reading_classes_and_columns(self, X, y, *rest):
        if isinstance(self, PrivateLogisticRegression) and y is not None:
            check_classification_targets(np.asarray(y))
            self._classes_of_y = tuple(np.unique(np.asarray(y)))
            if len(self._classes_of_y) == 1:
                raise ValueError("y has 1 class")
        return admit(self, np.array(X) if isinstance(X, list) else X, y, *rest)

    def of_classes(self, name):
        return Response(name, None, None, levels_of(self._classes_of_y), self.missing_y)

    monkeypatch.setattr(AbstractPrivateEstimator, "__sklearn_tags__", deterministic)
    monkeypatch.setattr(AbstractPrivateEstimator, "_admit", reading_classes_and_columns)
    monkeypatch.setattr(PrivateLogisticRegression, "_response", of_classes)


def outcomes(one, expected=None):
    results = check_estimator(one, expected_failed_checks=expected, on_fail=None, on_skip=None)
    return {result["check_name"]: result["status"] for result in results}


@IGNORED
@pytest.mark.slow
@pytest.mark.parametrize("name", ["adassp", "linear", "robust", "quantile", "poisson", "logistic"])
def test_a_twin_that_is_deterministic_passes_every_check(name, ledger, twin):
    found = outcomes(estimator(name, ledger))
    # It needs a variable in the environment before scikit-learn is imported.
    assert {check for check, status in found.items() if status != "passed"} <= {"check_array_api_input"}
    assert len(found) > 45


@IGNORED
@pytest.mark.slow
@pytest.mark.parametrize("name", ["adassp", "logistic"])
def test_the_estimators_pass_every_check_but_those_that_are_listed(name, ledger):
    expected = EVERYWHERE | (OF_CLASSIFIERS if name == "logistic" else OF_REGRESSORS)
    found = outcomes(estimator(name, ledger), expected)
    assert not [check for check, status in found.items() if status == "failed"]
    assert set(expected) <= set(found)
    skipped = {check for check, status in found.items() if status == "skipped"}
    assert skipped <= {"check_array_api_input", "check_pipeline_consistency"}


@IGNORED
def test_a_public_design_passes_every_check():
    found = outcomes(PublicTerms(terms=(kng.terms.Polynomial("x0", -5.0, 5.0, degree=2),)))
    assert {check for check, status in found.items() if status != "passed"} <= {"check_array_api_input"}
