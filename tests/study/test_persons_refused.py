"""What a study of persons refuses, and how it says so: wrong arguments cost nothing, and texts lead on."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng
from kngjax.data import persons
from tests.offenders import every_case
from tests.words import words_of

PATIENTS = np.repeat(np.arange(200), 1 + np.arange(200) % 5)
VISITS = pd.DataFrame({"patient_id": PATIENTS, "cost": 100.0 + PATIENTS % 7, "years": 1.0, "w": 1.0})
VISITS["ward"] = np.where(np.arange(len(VISITS)) % 2, "b", "a")
FACTS = {
    "bounds": {"cost": (0, 200), "years": (0.5, 2), "w": (0, 2)},
    "levels": {"ward": ("a", "b")},
    "adjacency": "replace",
}


def study(frame=VISITS, **changed):
    return kng.Study(frame, **{**FACTS, "person": "patient_id", "unit": "patient", **changed})


@pytest.mark.parametrize("made", [pd.DataFrame, lambda frame: pl.from_pandas(frame)], ids=["pandas", "polars"])
def test_wrong_arguments_are_refused_in_words(made):
    visits = made(VISITS)
    floats = made(VISITS.assign(patient_id=VISITS.patient_id + 0.0))
    wrong = [
        (lambda: study(visits, person="patient"), ValueError, "column 'patient', which the data do not have"),
        (lambda: study(visits, person=visits["patient_id"]), TypeError, "name of a column"),
        (lambda: study(floats), TypeError, "whole numbers, text or categories"),
        (lambda: study(visits, weights="w"), ValueError, "leave weights or person out"),
        (lambda: study(visits, person=None, unit=None, most_rows=2), ValueError, "person="),
        (lambda: study(visits, missing={"patient_id": 0}), ValueError, "'drop' or None"),
        (lambda: study(visits).mean("patient_id", epsilon=1), ValueError, "public bounds"),
        (lambda: study(visits).count("patient_id == 3", epsilon=1), ValueError, "identifies each patient"),
        (
            lambda: study(visits, most_rows=2).quantile_process("cost ~ years", levels=[0.25, 0.5], epsilon=1),
            ValueError,
            "quantile process takes no rows of persons: ask for quantile_regression",
        ),
        (
            lambda: study(visits).poisson_regression("cost ~ w", epsilon=1, exposure="years"),
            ValueError,
            "without person='patient_id', of a table with one row of each",
        ),
    ]
    with every_case() as case:
        for number, (call, kind, words) in enumerate(wrong):
            with case(number), pytest.raises(kind, match=words.replace("(", r"\(")):
                call()


def test_the_check_tells_of_rows_without_an_identifier():
    """With a policy they are left out; without one a release fails once it is paid, and the check says so."""
    holes = VISITS.assign(patient_id=VISITS.patient_id.astype("Int64").where(VISITS.patient_id != 4))
    told = study(holes).check()
    assert not told.fits
    assert "5 rows without identifier" in words_of(told.summary())
    assert "find the identifier, or say missing={'patient_id': 'drop'}" in words_of(told.summary())
    with pytest.raises(kng.ReleaseFailed):
        study(holes).mean("cost", epsilon=1)
    dropped = study(holes, missing={"patient_id": "drop"})
    assert dropped.check().fits
    assert "199 patients with up to 5 rows" in words_of(dropped.check().summary())
    assert 90 < dropped.mean("cost", epsilon=5).value < 120
    assert study().check().fits
    floats = study(VISITS.assign(patient_id=PATIENTS + 0.5), adjacency="add_remove")
    assert not floats.check().fits


def test_a_ledger_says_how_the_units_come_together(tmp_path):
    budget = kng.Budget.pure(1)
    of_records = kng.Ledger.create(tmp_path / "records", budget, adjacency="replace", dataset="visits")
    with pytest.raises(ValueError, match=r"needs a ledger of its own, Ledger.create\(..., unit='patient'\)"):
        study(ledger=of_records).mean("cost", epsilon=1)
    of_patients = kng.Ledger.create(tmp_path / "patients", budget, adjacency="replace", dataset="v", unit="patient")
    with pytest.raises(ValueError, match="say unit='patient' in Study"):
        kng.Study(VISITS, **FACTS, ledger=of_patients).mean("cost", epsilon=1)
    assert of_records.verify().spent is of_patients.verify().spent is None


def test_identifiers_of_a_mechanism_are_refused_as_identifiers():
    unit = kng.Unit("patient", most_rows=1)
    bounds = kng.Bounds(x=(0, 3), columns=1, y=(0, 200), unit=unit)
    mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-300.0, 300.0), 1.0, "replace")
    x, y, ids = VISITS[["years"]], VISITS["cost"], VISITS["patient_id"]
    for given, words in (
        ("patient_id", "not the name of a column"),
        (ids[:50], "one identifier a record, and there are more or fewer"),
        (VISITS[["patient_id"]], "person must have shape"),
        (list(ids + 0.5), "no row has an identifier"),
        (ids + 0.0, "whole numbers, text or categories"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            kng.release(mechanism, x, y, person=given)


def test_nobody_is_no_person():
    with pytest.raises(ValueError, match="no row has an identifier"):
        persons.count_of(persons.Identifiers([None, "", 1.5]))
    assert persons.count_of(persons.Identifiers(["a", None, "b", "a"])) == 2


def test_words_count_patients_and_votes_where_no_record_is_meant():
    """Titles, previews, refusals and summaries name what n is of, and none takes a row for a record of its own."""
    own, most = study(), study(most_rows=3)
    assert "each patient is protected, rows with one patient_id, one vote;" in repr(own)
    assert "rows with one patient_id, up to 3 votes;" in repr(most)
    assert "each patient is protected, a record;" in repr(study(person=None))
    assert "protected" not in repr(study(person=None, unit=None))
    rows = own.count("cost > 101", epsilon=1.0)
    whole = own.count("cost > 101", epsilon=1.0, of="persons")
    plan = own.plan()
    plan.mean("cost", epsilon=1)
    told = {
        "a preview of counts": (own.preview().count("cost > 101", epsilon=1), "has one in 2 of 200 patients."),
        "a preview": (own.preview().mean("cost", epsilon=1), "KNormMechanism of 200 patients at epsilon = 1"),
        "a preview of a plan": (plan.preview()[0], "KNormMechanism of 200 patients at epsilon = 1"),
        "a preview of votes": (most.preview().mean("cost", epsilon=1), "each patient has all 3 votes"),
        "a preview of groups": (own.preview().by("ward").mean("cost", epsilon=1), "equal share of the patients"),
        "a sum of shares": (rows, "Private votes of patients in rows where cost > 101"),
        "how rows count": (rows, "weights: rows of one patient share one vote"),
        "a number of patients": (whole, "Private number of patients with a row where cost > 101"),
        "groups": (own.by("ward").mean("cost", epsilon=9), "rows are divided by ward, public levels a, b; each is in"),
        "a price": (own.by("ward").mean("cost", epsilon=9), "twice what the dearest group costs, as rows of one pat"),
        "checks of groups": (own.by("ward").mean("cost", epsilon=9), "as if the rows of each patient lay in one group"),
        "checks of votes": (most.mean("cost", epsilon=9), "checked as if each patient had all 3 votes"),
        "a group's certificate": (own.by("ward").mean("cost", epsilon=9)["a"].explain(), "rows with ward = a alone"),
        "failures": (rows.explain(), "rows without an identifier, without a policy"),
    }
    with every_case() as case:
        for name, (shown, words) in told.items():
            with case(name):
                assert words in words_of(shown)
                assert "largest weight" not in words_of(shown)
    assert (rows.params.index.name, whole.params.index.name) == ("votes", "patients")
    private = study(adjacency="add_remove").count(epsilon=1.0, of="persons")
    assert list(private.params.index) == ["patients"]


def test_refusals_count_patients_and_say_what_is_public():
    ones = "number of patients is public, and all rows of one patient count as one"
    told = [
        (lambda: study().mean("cost", epsilon=1e-4), "of 200 patients at epsilon = 0.0001 .* patients or epsilon"),
        (lambda: study().linear_regression("cost ~ years", epsilon=0.3, intervals=True), "of 200 patients at .* About"),
        (lambda: study().count(epsilon=1), ones),
        (lambda: study().count(epsilon=1, of="persons"), r"number of patients is public\. A count of some"),
        (
            lambda: study().by("ward", num_records=study().histogram("ward", epsilon=1)),
            "votes that rows of one patient",
        ),
        (lambda: study().histogram("ward", epsilon=1).shares(), "nor of votes that rows share"),
    ]
    with every_case() as case:
        for number, (ask, words) in enumerate(told):
            with case(number), pytest.raises(ValueError, match=words):
                ask()
    # Of up to three votes each the sum of all is private.
    sizes = np.bincount(PATIENTS)
    assert abs(float(study(most_rows=3).count(epsilon=50).value) - np.minimum(sizes, 3).sum()) < 3
