"""Private searches: the parts of the records, what is debited, and that each part meets its own release alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.preprocessing import PolynomialFeatures

import kngjax as kng
from kngjax.accounting.adjacency import Adjacency
from kngjax.core.errors import FAILED_OF_FIT
from kngjax.releases import release as releasing
from kngjax.sklearn import PrivateQuantileRegressor, PrivateSearch, PublicPipeline, UncountedFits
from kngjax.sklearn.holdouts import is_covered, parts
from kngjax.sklearn.named_tables import table_of
from kngjax.sklearn.rowwise import exponentials, predictors, probabilities
from tests.sklearn.people import COMMON, EVERY, X, Y, fitted, linear, logistic, response_for

GRID = {"epsilon": [0.001, 1.0]}


def search(estimator=None, grid=None, **changed):
    return PrivateSearch(estimator or linear(), grid or GRID, **{"epsilon": 1.0} | changed)


def test_the_better_candidate_is_chosen_and_predicts(ledger, spent):
    found = search(ledger=ledger).fit(X, Y)
    assert found.best_params_ == {"epsilon": 1.0} == found.params_[found.best_index_]
    assert found.choice_.value.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(found.predict(X), found.candidates_[1].predict(X))
    assert is_regressor(found)
    assert not hasattr(found, "predict_proba")
    assert not hasattr(found, "score")
    # Its ε is that of a fit: the choice, from other records, costs nothing more.
    assert spent() == found.guarantee_.epsilon == 1.001
    assert len(ledger.releases()) == 2
    assert found.candidates_[0].certificate_.mechanism["epsilon"] == 0.001
    # Each candidate meets the records that are not held out, a quarter of them, and no other.
    assert [one.certificate_.num_records for one in found.candidates_] == [len(X) - len(X) // 4] * 2


def test_a_choice_that_is_dearer_than_every_fit_is_debited(ledger, spent):
    found = search(epsilon=1.5, ledger=ledger).fit(X, Y)
    assert spent() == found.guarantee_.epsilon == 2.501
    assert len(ledger.releases()) == 3
    with pytest.raises(kng.ledger.BudgetExceeded):
        search(grid={"epsilon": [5.0, 4.0]}, ledger=ledger).fit(X.assign(age=np.nan), Y)
    assert spent() == 2.501


def test_what_fails_leaves_all_of_it_spent(ledger, spent):
    with pytest.raises(kng.ReleaseFailed) as failed:
        search(epsilon=1.5, ledger=ledger).fit(X.assign(age=np.nan), Y)
    assert str(failed.value) == FAILED_OF_FIT
    assert spent() == 2.501
    assert len(ledger.releases()) == 0


def test_classifiers_are_chosen_by_their_probabilities(ledger):
    found = search(logistic(epsilon=None), ledger=ledger).fit(X, response_for("logistic"))
    assert found.best_params_ == {"epsilon": 1.0}
    assert is_classifier(found)
    assert found.classes_.tolist() == [0, 1]
    assert found.predict_proba(X).shape == (len(X), 2)
    np.testing.assert_array_equal(found.predict(X), found.best_estimator_.predict(X))
    np.testing.assert_array_equal(found.decision_function(X), found.best_estimator_.decision_function(X))


def test_pipelines_are_searched_and_add_remove_is_served():
    steps = [("powers", PolynomialFeatures(include_bias=False)), ("fit", linear(bounds=(0, 4900), epsilon=20.0))]
    found = search(PublicPipeline(steps), {"powers__degree": [1, 2]}, epsilon=5.0).fit(X.to_numpy(), Y)
    assert found.candidates_[0][-1].n_features_in_ == 2
    assert found.candidates_[1][-1].n_features_in_ == 5
    found = search(linear(adjacency="add_remove"), epsilon=1.0, holdout=0.5).fit(X, Y)
    assert found.best_params_ == {"epsilon": 1.0}
    assert str(found.guarantee_.adjacency) == "add_remove"


def test_rows_of_another_length_are_records_of_missing_cells_in_every_part(monkeypatch, ledger, spent):
    """Of the training records most rows are odd ones, of all records few: what is asked again would be refused."""
    rows, odd = X.to_numpy()[:200].tolist(), 30
    rows[:odd] = [[1.0]] * odd
    monkeypatch.setattr("kngjax.sklearn.private_search.parts", lambda *_: (np.arange(50), np.arange(50, 200)))
    one = search(linear(bounds=[(0, 70)] * 2, missing=5.0), {"epsilon": [1.0]}, ledger=ledger)
    assert one.fit(rows, Y[:200].tolist()).n_features_in_ == 2
    assert spent() == 1.0


def test_what_cannot_be_compared_or_paid_is_refused(ledger, spent):
    def refused(words, one, kind=ValueError):
        with pytest.raises(kind, match=words):
            one.fit(X, Y)

    refused("private estimator of kngjax.sklearn", search(PolynomialFeatures(), ledger=ledger))
    refused("must estimate the same", search(grid={"bounds_y": [(0, 1), (0, 2)]}, ledger=ledger))
    quantile = PrivateQuantileRegressor(epsilon=1.0, domain=kng.Box(-9, 9), **COMMON)
    refused("must estimate the same", search(quantile, {"quantile": [0.1, 0.5]}, ledger=ledger))
    refused("bounds_y is needed", search(quantile, {"epsilon": [0.1, 0.5]}, ledger=ledger))
    refused("give the ledger to it", search(linear(ledger=ledger)))
    refused("ledger must be", search(ledger="people.ledger"), TypeError)
    refused("epsilon", search(epsilon=None, ledger=ledger))
    for holdout in (0.0, 1.0, 1, "half", 0.0001):
        refused("holdout", search(holdout=holdout, ledger=ledger))
    refused("neither bounds nor levels", search(linear(bounds=None), ledger=ledger))
    with pytest.raises(TypeError, match="sample_weight"):
        search(ledger=ledger).fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(UncountedFits):
        clone(search()).fit(X, Y)
    assert clone(search(ledger=ledger)).ledger == ledger
    assert spent() == 0


@pytest.mark.default_cases("linear", "quantile", "logistic")
@pytest.mark.parametrize("name", EVERY)
def test_losses_are_between_0_and_1_and_those_of_one_record_its_own(name):
    fit = fitted(name)
    y = np.asarray(response_for(name), dtype=float)
    table = table_of(X)
    losses = fit._losses(fit, table, y)
    assert losses.shape == (len(X),)
    assert 0.0 <= losses.min() < losses.max() <= 1.0
    kept = X.drop(index=[3, 900])
    np.testing.assert_array_equal(fit._losses(fit, table_of(kept), np.delete(y, [3, 900])), np.delete(losses, [3, 900]))
    changed = X.copy()
    changed.loc[5] = [1e300, np.nan]
    moved = fit._losses(fit, table_of(changed), y)
    assert np.isnan(moved[5])
    np.testing.assert_array_equal(np.delete(moved, 5), np.delete(losses, 5))
    wild = fit._losses(fit, table, np.full(len(X), 1e9) if name != "logistic" else y)
    assert wild.max() <= 1.0


def test_losses_are_those_that_are_stated():
    width, y = 10.0, np.asarray(Y)
    fits = {name: fitted(name) for name in ("linear", "robust", "quantile", "logistic")}
    errors = (y - fits["linear"].predict(X)) / width
    np.testing.assert_allclose(fits["linear"]._losses(fits["linear"], table_of(X), y), errors**2, atol=1e-12)
    errors = np.abs(y - fits["robust"].predict(X)) / width
    np.testing.assert_allclose(fits["robust"]._losses(fits["robust"], table_of(X), y), errors, atol=1e-12)
    upper = clone(fits["quantile"]).set_params(quantile=0.9)
    errors = (y - fits["quantile"].predict(X)) / width
    expected = np.maximum(0.9 * errors, -0.1 * errors)
    np.testing.assert_allclose(upper._losses(fits["quantile"], table_of(X), y), expected, atol=1e-12)
    classes = np.asarray(response_for("logistic"), dtype=float)
    expected = (classes - fits["logistic"].predict_proba(X)[:, 1]) ** 2
    np.testing.assert_allclose(fits["logistic"]._losses(fits["logistic"], table_of(X), classes), expected, atol=1e-12)


def test_predictors_do_not_depend_on_how_many_records_there_are():
    records, coefficients = (np.random.default_rng(1).uniform(-9, 9, shape) for shape in ((257, 17), 18))
    table = table_of(records)
    design = kng.terms.Design(tuple(kng.terms.Polynomial(name, -9, 9) for name in table.columns))
    together = predictors(design, coefficients, table)
    np.testing.assert_allclose(together, coefficients[0] + records / 9 @ coefficients[1:], rtol=1e-9, atol=1e-9)
    alone = [predictors(design, coefficients, table_of(records[k : k + 1]))[0] for k in range(0, 257, 8)]
    np.testing.assert_array_equal(together[::8], alone)
    for rule, expected in ((exponentials, np.exp), (probabilities, lambda eta: 1 / (1 + np.exp(-eta)))):
        np.testing.assert_allclose(rule(together), expected(together), rtol=1e-12, atol=1e-15)
        assert rule(np.array([1e9])) > 0.99
        assert np.isnan(rule(np.array([np.nan]))).all()


def test_each_record_meets_one_part_alone(monkeypatch):
    """Exchanging a record that is held out moves no fit; exchanging one of training moves no other's loss."""
    fixed = np.arange(0, 1500), np.arange(1500, 2000)
    monkeypatch.setattr("kngjax.sklearn.private_search.parts", lambda *_: fixed)
    drawn, given = releasing.drawn, []

    def watched(way, certificate, names, X, y, progress):
        given.append((X, y))
        return drawn(way, certificate, names, X, y, progress)

    monkeypatch.setattr(releasing, "drawn", watched)
    for place in (None, 1700, 200):
        changed, y = X.copy(), Y.copy()
        if place is not None:
            changed.loc[place], y.loc[place] = [9.0, 21.0], 7.5
        search().fit(changed, y)
    before, held_out, trained = given[:3], given[3:6], given[6:]
    for fit in (0, 1):
        np.testing.assert_array_equal(held_out[fit][0], before[fit][0])
        np.testing.assert_array_equal(held_out[fit][1], before[fit][1])
        assert np.flatnonzero(np.any(trained[fit][0] != before[fit][0], axis=1)).tolist() == [200]
        assert len(before[fit][1]) == 1500
    assert all(len(losses) == 500 for losses, _ in (before[2], held_out[2], trained[2]))


def test_parts_are_a_random_subset_or_coins_and_complete():
    for adjacency in Adjacency:
        training, held_out = parts(1000, 0.25, adjacency)
        assert sorted([*training, *held_out]) == list(range(1000))
    sizes = [len(parts(1000, 0.25, Adjacency.REPLACE)[1]) for _ in range(5)]
    assert sizes == [250] * 5
    # Each record is held out as often as any other, and under add_remove by a coin of its own.
    for adjacency, variance in ((Adjacency.REPLACE, 0.0), (Adjacency.ADD_REMOVE, 20 * 0.25 * 0.75)):
        held = np.zeros((2000, 20), bool)
        for row in held:
            row[parts(20, 0.25, adjacency)[1]] = True
        assert stats.chisquare(held.sum(axis=0)).pvalue > 1e-6
        assert abs(held.sum(axis=1).var() - variance) <= 0.6 * (variance > 0)
    with pytest.raises(ValueError, match="leaves one of both parts empty"):
        parts(3, 0.1, Adjacency.REPLACE)
    assert sum(map(len, parts(0, 0.5, Adjacency.ADD_REMOVE))) == 0


def test_a_choice_is_covered_by_what_is_no_better_in_any_sum():
    guarantee, to = kng.Guarantee, "replace"
    choice = guarantee.bounded_range(1.0, to)
    for fit in (
        *(guarantee.bounded_range(1.0, to), guarantee.pure(1.0, to), guarantee.approximate(1.0, 1e-6, to)),
        *(guarantee.pure(7.0, to), guarantee.composed([guarantee.gaussian(9.0, to), guarantee.pure(1.0, to)])),
    ):
        assert is_covered(choice, [guarantee.pure(0.1, to), fit])
    for fit in (
        *(guarantee.bounded_range(0.99, to), guarantee.approximate(0.99, 1e-6, to), guarantee.gaussian(9.0, to)),
        *(guarantee.zcdp(9.0, to), guarantee.composed([guarantee.gaussian(9.0, to)] * 2)),
        guarantee.pure(9.0, to).within(1e-9),
    ):
        assert not is_covered(choice, [fit])
    # Several cheap fits together do not count: a ledger may hold them by another sum than the choice.
    assert not is_covered(choice, [guarantee.pure(0.5, to)] * 4)


def test_missing_cells_of_those_held_out_count_as_the_worst():
    gaps = pd.Series(np.where(np.arange(len(Y)) % 2 == 0, np.nan, Y))
    found = search(linear(missing={"age": 45.0, "skill": 5.0}, missing_y=3.0)).fit(X.where(X["age"] < 60), gaps)
    assert found.choice_.value.sum() == 1.0
