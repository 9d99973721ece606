"""Private estimators: coefficients in own units, what is kept, what is refused before anything is spent."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError

import kngjax as kng
from kngjax.core.errors import FAILED_OF_FIT
from kngjax.releases import release as releasing
from kngjax.sklearn import (
    PrivateLinearRegressor,
    PrivatePoissonRegressor,
    PrivateQuantileRegressor,
    PrivateRobustRegressor,
    UncountedFits,
)
from tests.sklearn.people import BOUNDS, COMMON, EVERY, SECRET, X, Y, fitted, linear, logistic, response_for
from tests.words import words_of


def of_every_estimator(test):
    return pytest.mark.parametrize("name", EVERY)(test)


@of_every_estimator
def test_coefficients_are_in_own_units_and_predictions_are_theirs(name):
    y, fit = response_for(name), fitted(name)
    coefficients, intercept = np.ravel(fit.coef_), np.ravel(fit.intercept_)[0]
    assert fit.coef_names_.tolist() == fit.feature_names_in_.tolist() == ["skill", "age"]
    eta = intercept + X.to_numpy() @ coefficients
    if name == "logistic":
        assert is_classifier(fit)
        assert fit.coef_.shape == (1, 2)
        np.testing.assert_allclose(fit.decision_function(X), eta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(fit.predict_proba(X)[:, 1], 1 / (1 + np.exp(-eta)), rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(fit.predict(X), (eta > 0).astype(int))
        assert fit.classes_.tolist() == [0, 1]
    else:
        assert is_regressor(fit)
        expected = np.exp(eta) if name == "poisson" else eta
        np.testing.assert_allclose(fit.predict(X), expected, rtol=1e-9, atol=1e-9)
        truth = [0.2, 0.0] if name == "poisson" else [0.5, -0.02]
        np.testing.assert_allclose(coefficients, truth, atol=0.06)
    assert fit.owner_score(X, y) > (0.2 if name == "poisson" else 0.5)
    assert fit.certificate_.epsilon == 20.0
    assert fit.certificate_.assurance == "proved"
    np.testing.assert_array_equal(fit.basis_coef_, fit.release_.value)
    assert "y ~ skill + age" in words_of(fit.results_.summary())


def test_a_fit_is_the_estimator_itself(monkeypatch):
    monkeypatch.setattr(releasing, "drawn", _released)
    one = linear()
    assert one.fit(X, Y) is one


def test_a_fit_is_what_the_mechanism_alone_releases(monkeypatch):
    given = []
    drawn = releasing.drawn
    monkeypatch.setattr(
        releasing,
        "drawn",
        lambda draw, certificate, names, X, y, progress: (
            given.append((draw.mechanism, X, y)) or drawn(draw, certificate, names, X, y, progress)
        ),
    )
    linear().fit(X, Y)
    ((mechanism, x, y),) = given
    assert isinstance(mechanism, kng.KNG)
    assert isinstance(mechanism.loss, kng.SquaredLoss)
    np.testing.assert_allclose(x, np.column_stack([X["skill"] / 5 - 1, (X["age"] - 45) / 25]), atol=1e-12)
    np.testing.assert_array_equal(y, Y)
    assert (mechanism.bounds.x_lower.tolist(), mechanism.bounds.x_upper.tolist()) == ([-1, -1], [1, 1])


def test_frames_arrays_and_lists_agree(monkeypatch):
    found = []
    monkeypatch.setattr(
        releasing, "drawn", lambda draw, kept, names, X, y, _: found.append((X, y)) or _released(draw, kept)
    )
    by_position = {"bounds": [(0, 10), (20, 70)]}
    small, y = X.iloc[:40], Y.iloc[:40]
    linear().fit(small, y)
    linear().fit(small[["age", "skill"]], y)
    linear().fit(pl.DataFrame(small.to_dict("list")), y.to_numpy())
    for array in (small.to_numpy(), small.to_numpy().tolist(), np.asfortranarray(small.to_numpy())):
        linear(**by_position).fit(array, y.tolist())
    first = found[0]
    np.testing.assert_array_equal(found[1][0], first[0][:, ::-1])
    for x, response in found[2:]:
        np.testing.assert_array_equal(x, first[0])
        np.testing.assert_array_equal(response, first[1])
    # A row of another length is a record of missing cells, whatever the other rows are.
    rows = small.to_numpy().tolist()
    rows[3] = [1.0]
    rows[7] = [[1.0], [2.0]]
    linear(**by_position, missing={0: 5.0, 1: 45.0}).fit(rows, y.tolist())
    np.testing.assert_array_equal(found[-1][0][[3, 7]], np.zeros((2, 2)))
    np.testing.assert_array_equal(np.delete(found[-1][0], [3, 7], 0), np.delete(first[0], [3, 7], 0))


def _released(draw, certificate, *_):
    """What is drawn, if nothing is."""
    return kng.Release._of(np.zeros(3), certificate)


def test_categories_have_public_levels():
    region = np.where(np.arange(len(X)) % 3 == 0, "south", "north")
    frame, y = X.assign(region=region), Y + 2.0 * (region == "south")
    fit = linear(epsilon=20.0, levels={"region": ("north", "south")}).fit(frame, y)
    assert fit.coef_names_.tolist() == ["skill", "age", "region[south]"]
    np.testing.assert_allclose(fit.coef_, [0.5, -0.02, 2.0], atol=0.1)
    assert fit.n_features_in_ == 3
    shifted = fit.predict(frame.assign(region="south")) - fit.predict(frame.assign(region="north"))
    np.testing.assert_allclose(shifted, fit.coef_[2], rtol=1e-9)
    by_position = {"bounds": [(0, 10), None], "levels": {1: ("north", "south")}}
    objects = np.column_stack([X["skill"].astype(object), region])
    assert linear(**by_position).fit(objects, y).coef_names_.tolist() == ["x0", "x1[south]"]


def test_missing_cells_count_as_what_was_declared():
    half = np.arange(len(X)) % 2 == 0
    frame = X.assign(age=np.where(half, np.nan, 60.0), skill=5.0)
    y = pd.Series(np.where(half, 1.0, 3.0))
    # With missing ages as 40, y rises by 2 over 20 years.
    fit = linear(epsilon=50.0, missing={"age": 40.0}).fit(frame, y)
    assert abs(fit.coef_[1] - 0.1) < 0.02
    assert fit.predict(frame.assign(age=np.nan))[0] == fit.predict(frame.assign(age=40.0))[0]
    with pytest.raises(kng.ReleaseFailed):
        linear().fit(frame, y)
    gaps = y.where(half)
    filled = linear(epsilon=50.0, missing=45.0, missing_y=7.0, bounds={"age": (20, 70), "skill": (30, 60)})
    assert abs(filled.fit(frame, gaps).predict(frame.assign(age=60.0))[0] - 7.0) < 0.5
    dropped = linear(adjacency="add_remove", epsilon=50.0, missing="drop", missing_y="drop").fit(frame, gaps)
    assert np.isnan(dropped.predict(frame)[0])
    assert abs(dropped.certificate_.epsilon - 50.0) < 1e-9


def test_under_add_remove_a_guess_of_n_serves():
    with pytest.raises(ValueError, match="public guess"):
        PrivateRobustRegressor(epsilon=1.0, bounds=BOUNDS, bounds_y=(-2, 8), adjacency="add_remove").fit(X, Y)
    fit = PrivateQuantileRegressor(
        epsilon=20.0, bounds=BOUNDS, bounds_y=(-2, 8), adjacency="add_remove", num_records=10**6
    ).fit(X, Y)
    np.testing.assert_allclose(fit.coef_, [0.5, -0.02], atol=0.06)
    assert str(fit.certificate_.guarantee.adjacency) == "add_remove"
    # Nothing that is kept tells n.
    kept = {**vars(fit), "ledger": None}
    assert not [name for name, value in kept.items() if isinstance(value, int) and value == len(X)]
    with pytest.raises(ValueError, match="leave num_records out"):
        linear(num_records=9).fit(X, Y)


def test_a_fitted_estimator_survives_pickle_and_keeps_no_record():
    fit = fitted("logistic")
    text = pickle.dumps(fit)
    again = pickle.loads(text)
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))
    assert again.release_ == fit.release_
    assert X["skill"].iloc[0].tobytes() not in text
    assert len(text) < 40_000
    assert set(vars(fit)) - set(fit.get_params()) == {
        *("results_", "release_", "certificate_", "basis_coef_", "coef_", "intercept_", "coef_names_", "classes_"),
        *("feature_names_in_", "n_features_in_"),
    }


def test_parameters_are_stored_untouched_and_clones_are_marked(ledger):
    bounds = {"age": (20, 70), "skill": (0, 10)}
    one = linear(bounds=bounds, ledger=ledger)
    assert one.bounds is bounds
    assert clone(one).ledger == ledger
    assert clone(one).get_params().keys() == one.get_params().keys()
    with pytest.raises(TypeError, match="positional"):
        PrivateLinearRegressor(1.0)


def test_the_original_may_fit_without_a_ledger_and_no_clone_may(ledger, spent):
    clone(linear(ledger=ledger)).fit(X, Y)
    assert pickle.loads(pickle.dumps(clone(linear(ledger=ledger)))).ledger == ledger
    fitted = clone(linear(ledger=ledger)).fit(X, Y).set_params(ledger=None)
    assert spent() == 2.0
    linear(delta=1e-6).fit(X, Y)
    for copied in (clone(linear()), clone(clone(linear())), pickle.loads(pickle.dumps(clone(linear())))):
        with pytest.raises(UncountedFits, match="Give the estimator ledger="):
            copied.fit(X, Y)
    assert issubclass(UncountedFits, ValueError)
    with pytest.raises(UncountedFits):
        fitted.fit(X, Y)


def test_there_is_no_score_and_no_weight(ledger, spent):
    assert not hasattr(linear(), "score")
    with pytest.raises(AttributeError, match="owner_score"):
        _ = logistic().score
    with pytest.raises(TypeError, match="sample_weight is not taken"):
        linear(ledger=ledger).fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="no argument epochs"):
        linear(ledger=ledger).fit(X, Y, epochs=3)
    with pytest.raises(NotFittedError):
        linear().predict(X)
    assert spent() == 0


ARRAY = X.to_numpy()
REFUSED = {
    "no adjacency": ({"adjacency": None}, X, Y, "adjacency"),
    "no epsilon": ({"epsilon": None}, X, Y, "epsilon"),
    "no bounds": ({"bounds": None}, X, Y, "neither bounds nor levels"),
    "a column without bounds": ({"bounds": {"age": (20, 70)}}, X, Y, "column 'skill' of X has neither"),
    "bounds by position of names": ({"bounds": [(0, 10), (20, 70)]}, X, Y, "by position"),
    "bounds by name of positions": ({}, ARRAY, Y, "has no names"),
    "too many bounds": ({"bounds": [(0, 1)] * 3}, ARRAY, Y, "has 3 pairs"),
    "reversed bounds": ({"bounds": (5, 0)}, X, Y, "lower one first"),
    "bounds that are none": ({"bounds": {"age": 3, "skill": (0, 1)}}, X, Y, "must be a pair"),
    "bounds of text": ({"bounds": "wide"}, X, Y, "must be a pair"),
    "levels that are none": ({"levels": ["no", "yes"]}, X, Y, "must be a mapping"),
    "bounds and levels": ({"levels": {"age": (1, 2)}}, X, Y, "bounds and levels"),
    "a policy that is none": ({"missing": "mean"}, X, Y, "missing must be"),
    "drop under replace": ({"missing": "drop"}, X, Y, "drop"),
    "no bounds of y": ({"bounds_y": None}, X, Y, "public bounds in own units"),
    "delta with a domain": ({"delta": 1e-6, "domain": kng.Box(-1, 1)}, X, Y, "leave one of both out"),
    "no ledger": ({"ledger": "people.ledger"}, X, Y, "ledger must be"),
    "no y": ({}, X, None, "requires y to be passed"),
    "one axis": ({}, ARRAY[:, 0], Y, "Reshape your data"),
    "no columns": ({}, ARRAY[:, :0], Y, r"0 feature\(s\)"),
    "no records": ({}, X.iloc[:0], Y.iloc[:0], "empty"),
    "sparse": ({}, sparse.csr_matrix(ARRAY), Y, "sparse"),
    "lazy": ({}, pl.DataFrame(X.to_dict("list")).lazy(), Y, "not yet run"),
    "complex": ({}, ARRAY + 1j, Y, "Complex data"),
    "dates": ({}, X.assign(age=pd.Timestamp("2020-01-01")), Y, "are not numbers"),
    "text": ({}, X.assign(age="old"), Y, "column 'age' of X is not of numbers"),
    "text of y": ({}, X, Y.astype(str), "Unknown label type"),
    "other lengths": ({}, X, Y.iloc[1:].to_numpy(), "different numbers of rows"),
    "another index": ({}, X, Y.iloc[::-1], "different pandas indices"),
    "a list": ({"bounds": (0, 100)}, [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], "list, whose rows may have any number of"),
    "ragged": ({"bounds": (0, 100)}, [[1.0, 2.0], [1.0]], [1.0, 2.0], "list, whose rows may have any number of cells"),
    "two responses": ({}, X, np.ones((len(X), 2)), "1-d array"),
    "two names": ({}, pd.DataFrame(ARRAY, columns=[f"{SECRET}"] * 2), Y, "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_public_facts_refuse_is_told_and_costs_nothing(case, ledger, spent):
    changed, given, y, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words) as error:
        linear(**{"ledger": ledger} | changed).fit(given, y)
    assert str(SECRET) not in str(error.value)
    assert error.value.__context__ is None
    assert spent() == 0


def test_other_settings_are_refused(ledger, spent):
    y = response_for("logistic")
    for classes in ((0, 1, 2), "01", (1,), (1, 1.0)):
        with pytest.raises(ValueError, match=r"binary|different"):
            logistic(classes=classes, ledger=ledger).fit(X, y)
    for quantile in (0.0, 1, True, "half", (0.1, 0.9)):
        with pytest.raises(ValueError, match="quantile must be"):
            PrivateQuantileRegressor(quantile=quantile, epsilon=1, bounds_y=(-2, 8), ledger=ledger, **COMMON).fit(X, Y)
    with pytest.raises(ValueError, match="bounds"):
        PrivatePoissonRegressor(epsilon=1, ledger=ledger, **COMMON).fit(X, Y)
    assert spent() == 0


@pytest.mark.parametrize("place", ["X", "y"])
def test_what_depends_on_values_is_paid_and_one_text(place, ledger, spent):
    frame, y = (X.assign(age=np.nan), Y) if place == "X" else (X, Y.where(Y.index != 7, SECRET * np.inf))
    with pytest.raises(kng.ReleaseFailed) as error:
        linear(ledger=ledger).fit(frame, y)
    assert str(error.value) == FAILED_OF_FIT
    assert error.value.__context__ is None
    traceback = error.value.__traceback__
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_name.startswith("test_"):
            held = [one for one in traceback.tb_frame.f_locals.values() if isinstance(one, pd.DataFrame | np.ndarray)]
            assert not held
        traceback = traceback.tb_next
    assert spent() == 1.0


def test_a_fit_over_budget_spends_and_keeps_nothing(ledger, spent):
    one = linear(epsilon=11.0, ledger=ledger)
    with pytest.raises(kng.ledger.BudgetExceeded):
        one.fit(X.assign(age=np.nan), Y)
    assert spent() == 0
    with pytest.raises(NotFittedError):
        one.predict(X)


def test_classes_are_public_and_text_may_be_one():
    words = pd.Series(np.where(response_for("logistic") == 1, "rich", "poor"))
    fit = logistic(classes=("poor", "rich"), epsilon=20.0).fit(X, words)
    assert set(fit.predict(X)) == {"poor", "rich"}
    assert fit.owner_score(X, words) > 0.9
    # A label that nobody declared is a missing response.
    with pytest.raises(kng.ReleaseFailed):
        logistic(classes=("poor", "rich")).fit(X, words.replace("rich", "wealthy"))
    counted = logistic(classes=("poor", "rich"), missing_y="poor", epsilon=20.0)
    poor = counted.fit(X[:300], words[:300].replace("rich", "wealthy")).predict(X)
    assert np.mean(poor == "poor") > 0.9


def test_names_are_checked_in_predictions(monkeypatch):
    monkeypatch.setattr(releasing, "drawn", _released)
    fit = linear().fit(X, Y)
    with pytest.raises(ValueError, match="feature names"):
        fit.predict(X.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="expecting 2 features"):
        linear(bounds=(0, 100)).fit(ARRAY, Y).predict(ARRAY[:, :1])
    with pytest.warns(UserWarning, match="valid feature names"):
        by_position = fit.predict(ARRAY)
    np.testing.assert_array_equal(by_position, fit.predict(X))
    with pytest.warns(DataConversionWarning, match="column-vector"):
        linear().fit(X, Y.to_frame())
    named_y = X.rename(columns={"age": "y"})
    assert linear(bounds={"y": (20, 70), "skill": (0, 10)}).fit(named_y, Y).results_.response.column == "y_"
