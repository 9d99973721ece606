"""Fits that protect persons with several rows: as a study of the same table, under scikit-learn's conventions."""

import os
import random

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

import kngjax as kng
from kngjax.accounting.adjacency import Adjacency
from kngjax.sklearn import PrivateSearch, PublicPipeline
from kngjax.sklearn.holdouts import parts_of_persons
from kngjax.sklearn.rowwise import means_of_persons
from tests.sklearn.people import EVERY, X, Y, linear, logistic, response_for

COUNT = 400
# So many patients, one to nine rows each, in no order.
PATIENTS = np.random.default_rng(3).permutation(
    np.resize(np.repeat(np.arange(COUNT), np.arange(COUNT) % 9 + 1), len(X))
)
OF_PATIENTS = {"unit": "patient", "epsilon": 20.0}
ROUTED = {"enable_metadata_routing": True}


@pytest.fixture
def paying(tmp_path):
    budget = kng.Budget.approximate(1000, 0.1)
    return kng.Ledger.create(tmp_path / "patients", budget, adjacency="replace", dataset="visits", unit="patient")


def like(name, **changed):
    return type(EVERY[name])(**EVERY[name].get_params() | OF_PATIENTS | changed)


def test_the_patients_are_as_they_are_said_to_be():
    assert np.unique(PATIENTS).tolist() == list(range(COUNT))
    assert np.bincount(PATIENTS).max() > 8


@pytest.mark.parametrize("name", EVERY)
def test_every_estimator_protects_persons(name, paying):
    made = like(name, ledger=paying).fit(X, response_for(name), person=PATIENTS)
    certificate = made.certificate_
    assert certificate.guarantee.unit == "patient"
    assert certificate.num_records == COUNT
    assert "the rows of one patient share one vote" in certificate.explain()
    assert paying.verify().spent.unit == "patient"
    assert made.results_.certificate == certificate
    assert kng.Release.from_json(made.release_.to_json()).certificate == certificate


def test_a_fit_is_that_of_a_study_of_the_same_table(monkeypatch):
    def pinned():
        generator = random.Random(1)
        monkeypatch.setattr("secrets.randbits", generator.getrandbits)
        monkeypatch.setattr(os, "urandom", generator.randbytes)

    frame = X.assign(wage=Y, patient=PATIENTS)
    bounds = {"age": (20, 70), "skill": (0, 10), "wage": (-2, 8)}
    for most_rows in (1, 3):
        study = kng.Study(frame, bounds=bounds, adjacency="replace", person="patient", most_rows=most_rows)
        pinned()
        fit = study.linear_regression("wage ~ skill + age", epsilon=1.0, method="squared", force=True)
        pinned()
        made = linear(most_rows=most_rows).fit(X, Y, person=PATIENTS)
        np.testing.assert_array_equal(made.basis_coef_, fit.curves["squared"])
        assert made.certificate_.guarantee == fit.certificate.guarantee


def test_identifiers_come_in_many_forms_and_only_equality_counts(monkeypatch):
    forms = {
        "whole numbers": PATIENTS,
        "series": pd.Series(PATIENTS),
        "text": [f"A{one}" for one in PATIENTS],
        "categories": pd.Series(PATIENTS).astype(str).astype("category"),
    }
    found = []
    for person in forms.values():
        monkeypatch.setattr("secrets.randbits", random.Random(1).getrandbits)
        found.append(linear().fit(X, Y, person=person).basis_coef_)
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


def test_a_person_moves_no_more_than_one_vote_however_many_rows():
    """With hardly any noise: half of all rows are one patient's, and count as one of all patients."""
    x, y = np.zeros((100, 1)), np.zeros(100)
    person, y[50:] = np.minimum(np.arange(100), 50), 1.0
    made = linear(epsilon=100.0, bounds=(-1, 1), bounds_y=(0, 1), domain=kng.Box(-2.0, 2.0))
    assert abs(np.mean([made.fit(x, y, person=person).intercept_ for _ in range(5)]) - 1 / 51) < 0.08
    assert abs(np.mean([made.fit(x, y).intercept_ for _ in range(5)]) - 0.5) < 0.08


def test_without_identifiers_each_row_is_one_patient(paying):
    made = linear(unit="patient", ledger=paying).fit(X, Y)
    assert made.certificate_.num_records == len(X)
    assert "each record is one patient" in made.certificate_.explain()
    assert paying.read().spent == kng.Guarantee.composed([made.certificate_.cost])


REFUSED = {
    "votes without identifiers": (lambda: linear(most_rows=2), None, "most_rows is of persons"),
    "no whole number of votes": (lambda: linear(most_rows=1.5), PATIENTS, "most_rows"),
    "no name": (lambda: linear(unit=3), PATIENTS, "name"),
    "floats": (linear, PATIENTS.astype(float), "identifiers of persons must be whole numbers"),
    "too few": (linear, PATIENTS[1:], "one identifier for each row of X"),
    "another index": (linear, pd.Series(PATIENTS, index=np.arange(len(X))[::-1]), "X's index"),
    "a table": (linear, pd.DataFrame({"patient": PATIENTS}), "identifiers|identifier"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_identifier_is_refused_at_no_cost(case, ledger, spent):
    make, person, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=words):
        make().set_params(ledger=ledger).fit(X, Y, person=person)
    assert spent() == 0


def test_a_ledger_of_records_pays_no_fit_that_protects_patients(ledger, paying, spent):
    for made in (
        linear(ledger=ledger, unit="patient"),
        PrivateSearch(linear(unit="patient"), {"epsilon": [0.5]}, epsilon=0.5, ledger=ledger),
    ):
        with pytest.raises(ValueError, match=r"each record, and the release each patient.*Nothing was spent"):
            made.fit(X, Y, person=PATIENTS)
    with pytest.raises(ValueError, match="each patient, and the release each record"):
        linear(ledger=paying).fit(X, Y)
    assert spent() == 0
    assert paying.read().num_rows == 1


def test_a_row_without_identifier_fails_the_fit_or_is_dropped():
    person = [None, *PATIENTS[1:].tolist()]
    with pytest.raises(kng.ReleaseFailed):
        linear().fit(X, Y, person=person)
    linear(adjacency="add_remove", missing="drop", missing_y="drop").fit(X, Y, person=person)


def test_settings_are_parameters_and_clones_keep_them(ledger):
    made = linear(unit="patient", most_rows=2, ledger=ledger)
    copied = clone(made)
    assert (copied.get_params()["unit"], copied.get_params()["most_rows"]) == ("patient", 2)
    assert copied.ledger is not None


def score(estimator, X, y):
    return -float(np.mean((y - estimator.predict(X)) ** 2))


def test_identifiers_are_routed_through_validation_and_pipelines(paying):
    x = X.to_numpy()
    private = linear(unit="patient", bounds=[(0, 10), (20, 70)], ledger=paying)
    with sklearn.config_context(**ROUTED):
        private.set_fit_request(person=True)
        folds = {"groups": PATIENTS, "person": PATIENTS}
        for one in (private, Pipeline([("last", private)]), PublicPipeline([("last", private)])):
            before = paying.read().num_rows
            found = cross_validate(one, x, Y, cv=GroupKFold(2), params=folds, scoring=score, error_score="raise")
            assert len(found["test_score"]) == 2
            assert paying.read().num_rows > before
        # As scikit-learn has it: what nobody asked for is not passed on in silence.
        with pytest.raises(ValueError, match="person"):
            cross_validate(linear(ledger=paying), x, Y, params=folds, cv=GroupKFold(2), scoring=score)
    counts = [json["certificate"]["num_records"] for json in map(_read, paying.releases().values())]
    assert counts == [COUNT // 2] * 6
    assert paying.verify().spent.unit == "patient"


def _read(text):
    fields = kng.Release.from_json(text)
    return {"certificate": {"num_records": fields.certificate.num_records}}


def test_a_public_pipeline_takes_identifiers_by_either_name():
    steps = [("powers", PolynomialFeatures(2, include_bias=False)), ("last", linear(bounds=(0, 5000), unit="patient"))]
    for names in ({"person": PATIENTS}, {"last__person": PATIENTS}):
        made = PublicPipeline(steps).fit(X, Y, **names)
        assert made.steps[-1][1].certificate_.num_records == COUNT
    with pytest.raises(TypeError, match="other__person"):
        PublicPipeline(steps).fit(X, Y, other__person=PATIENTS)


def test_no_step_of_a_pipeline_sees_a_record_before_the_debit(ledger, spent, monkeypatch):
    seen = []
    monkeypatch.setattr(PublicPipeline, "_transformed", lambda self, X: seen.append(len(X)) or X)
    last = linear(unit="patient", bounds=(0, 100), ledger=ledger)
    steps = [("powers", PolynomialFeatures(1, include_bias=False)), ("last", last)]
    with pytest.raises(ValueError, match="Nothing was spent"):
        PublicPipeline(steps).fit(X, Y, person=PATIENTS)
    assert seen == []


def test_a_search_holds_out_persons(paying, monkeypatch):
    kept = []
    fit = kng.sklearn.private_search._Held

    def held(*parts):
        kept.append(parts)
        return fit(*parts)

    monkeypatch.setattr("kngjax.sklearn.private_search._Held", held)
    search = PrivateSearch(linear(unit="patient"), {"epsilon": [0.001, 1.0]}, epsilon=1.0, ledger=paying)
    found = search.fit(X, Y, person=PATIENTS)
    (_, _, positions, _, codes), *_ = kept
    held_out = np.isin(np.arange(len(X)), positions)
    assert not set(PATIENTS[held_out]) & set(PATIENTS[~held_out])
    assert len(set(PATIENTS[held_out])) == COUNT // 4
    assert len(set(zip(codes.tolist(), PATIENTS.tolist(), strict=True))) == COUNT
    assert [one.certificate_.num_records for one in found.candidates_] == [COUNT - COUNT // 4] * 2
    assert found.choice_.certificate.num_records == COUNT // 4
    assert found.choice_.certificate.guarantee.unit == found.guarantee_.unit == "patient"
    assert paying.verify().spent.epsilon == 1.001
    with pytest.raises(ValueError, match="unit"):
        PrivateSearch(linear(), {"unit": ["patient", "record"]}, epsilon=1.0).fit(X, Y, person=PATIENTS)


def test_classifiers_are_searched_by_persons_under_add_remove():
    search = PrivateSearch(logistic(adjacency="add_remove", num_records=400), {"epsilon": [0.5, 1.0]}, epsilon=0.5)
    found = search.fit(X, response_for("logistic"), person=PATIENTS)
    assert found.guarantee_.unit == "person"
    assert found.choice_.value.sum() == 1.0


def test_a_person_lies_on_one_side_by_coins_or_in_a_subset():
    codes = np.append(np.arange(300) % 60, -1)
    sizes = []
    for _ in range(200):
        training, held_out, count = parts_of_persons(codes, 0.25, Adjacency.REPLACE)
        assert (count, len(held_out)) == (15, 75)
        assert not set(codes[training]) & set(codes[held_out])
        assert sorted([*training, *held_out]) == list(range(301))
        training, held_out, count = parts_of_persons(codes, 0.25, Adjacency.ADD_REMOVE)
        assert count == len(set(codes[held_out]))
        # A row that is nobody's is never held out.
        assert -1 not in codes[held_out]
        sizes.append(count)
    law = stats.binom(60, 0.25)
    assert abs(np.mean(sizes) - 15) < 5 * law.std() / 200**0.5
    assert 0.7 < np.std(sizes) / law.std() < 1.3


def test_the_loss_of_a_person_is_the_mean_of_that_persons_rows_bit_for_bit():
    generator = np.random.default_rng(0)
    losses, codes = generator.random((200, 3)), generator.integers(0, 20, 200)
    losses[5, 1] = np.nan
    found = means_of_persons(losses, codes)
    known = np.where(np.isnan(losses), 1.0, losses)
    np.testing.assert_allclose(found, [known[codes == one].mean(axis=0) for one in range(20)], rtol=1e-14)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    order = generator.permutation(200)
    np.testing.assert_array_equal(means_of_persons(losses[order], codes[order]), found)
    others = codes != 3
    np.testing.assert_array_equal(means_of_persons(losses[others], codes[others]), np.delete(found, 3, axis=0))
    assert means_of_persons(losses[:0], codes[:0]).shape == (0, 3)


def test_a_search_goes_on_where_an_identifier_is_no_text(tmp_path):
    """Under add_remove one person brings such a one, and fails no release of the others."""
    pyarrow = pytest.importorskip("pyarrow")
    written = pyarrow.array([b"a", b"b", b"\xff"], pyarrow.binary())
    ids = pyarrow.chunked_array([pyarrow.StringArray.from_buffers(3, *written.buffers()[1:])])
    ledger = kng.Ledger.create(
        tmp_path / "add", kng.Budget.approximate(1000, 0.1), adjacency="add_remove", dataset="visits", unit="patient"
    )
    made = like("quantile", adjacency="add_remove", num_records=1000, force=True)
    search = PrivateSearch(made, {"epsilon": [1.0, 2.0]}, epsilon=1.0, ledger=ledger)
    search.fit(X[:3], response_for("quantile")[:3], person=ids)
    readable = pyarrow.array(["a", "b", "c"])
    spent = ledger.read().spent.epsilon
    search.fit(X[:3], response_for("quantile")[:3], person=readable)
    assert ledger.read().spent.epsilon == 2.0 * spent
