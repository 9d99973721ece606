"""Ledgers are of one unit: a debit that protects another is refused before anything is spent."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.ledger import store
from kngjax.ledger.book import BEFORE_ALL, Book, LedgerError, Row, canonical
from kngjax.releases.debits import reserve_cost
from tests.ledger.ledgers_made import TENTH
from tests.words import words_of

OF_PATIENTS = TENTH.of("patient")
BUDGET = kng.Budget.pure(1)


def new(folder, unit, budget=BUDGET):
    return kng.Ledger.create(folder / f"{unit}.ledger", budget, adjacency="replace", dataset="visits", unit=unit)


def file_of(path, unit, *guarantees, version=3):
    """A file with these debits, whatever they protect."""
    first = {"format": version, "id": "0" * 32, "dataset": "visits", "unit": unit, "adjacency": "replace"}
    first |= {"budget": BUDGET.to_dict(), "unproved": "refuse", "time": "2026"}
    rows = [Row.following(1, "opened", None, None, first, BEFORE_ALL)]
    for one in guarantees:
        about = canonical(one.to_dict()), {"time": "2026", "what": None, "proved": True}
        rows.append(Row.following(len(rows) + 1, "reserved", None, *about, rows[-1].digest))
    store.create(path, rows[0])
    store.append(path, lambda book: (rows[1:], None))
    return kng.Ledger(path)


ASKED = {
    "reserve": lambda ledger, one: ledger.reserve(one),
    "reserve_all": lambda ledger, one: ledger.reserve_all([one, one]),
    "require": lambda ledger, one: ledger.require([one]),
    "cost of a release": lambda ledger, one: reserve_cost(ledger, one, True, None),
    "composed": lambda ledger, one: ledger.reserve(kng.Guarantee.composed([one, one])),
}


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize(
    ("unit", "asked", "words"),
    [
        ("patient", TENTH, "protects each patient, and the release each record: say unit='patient'"),
        ("record", OF_PATIENTS, "each record, and the release each patient: .* Ledger.create.* unit='patient'"),
        ("household", OF_PATIENTS, "each household, and the release each patient"),
    ],
)
def test_another_unit_is_refused_and_nothing_spent(tmp_path, ask, unit, asked, words):
    ledger = new(tmp_path, unit)
    with pytest.raises(ValueError, match=f"{words}.*Nothing was spent"):
        ASKED[ask](ledger, asked)
    assert ledger.read().num_rows == 1
    ASKED[ask](ledger, TENTH.of(unit))


def test_a_cost_under_replace_keeps_its_unit(tmp_path):
    cost = kng.Guarantee.pure("0.1", "add_remove").of("patient")
    ledger = new(tmp_path, "patient")
    reservation = ledger.reserve(cost.to_replace())
    assert reservation.covers(cost)
    assert not reservation.covers(cost.of("record"))
    with pytest.raises(ValueError, match="protects each patient"):
        ledger.reserve(cost.of("record").to_replace())


def test_a_reservation_pays_no_release_that_protects_another_unit(tmp_path):
    ledger, codes = new(tmp_path, "patient"), np.repeat(np.arange(20), 2)
    reservation = ledger.reserve(OF_PATIENTS)
    y = np.linspace(0.0, 1.0, 40)

    def mean(unit):
        bounds = kng.Bounds(x={"y": (0.0, 1.0)}, intercept=False, unit=unit)
        return kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box(0.0, 1.0), 0.1, "replace")

    with pytest.raises(ValueError, match="protects each patient, and this one protects each record"):
        kng.release(mean(None), y[:, None], ledger=reservation)
    assert ledger.read().drawn == frozenset()
    released = kng.release(mean(kng.Unit("patient", 1)), y[:, None], person=codes, ledger=reservation)
    assert released.certificate.cost == OF_PATIENTS
    assert kng.Release.from_json(released.to_json()) == released
    assert list(ledger.verify().releases) == [reservation.number]


def study(ledger, **whom):
    random = np.random.default_rng(0)
    columns = {"pressure": random.normal(130, 15, 300), "sex": random.choice(["a", "b"], 300)}
    frame = pd.DataFrame(columns | {"patient": random.integers(0, 60, 300)})
    public = {"bounds": {"pressure": (80, 200)}, "levels": {"sex": ("a", "b")}, "adjacency": "replace"}
    return kng.Study(frame, ledger=ledger, **public, **whom)


def planned(of):
    plan = of.plan()
    plan.mean("pressure", epsilon=0.2, force=True)
    plan.by("sex").count(epsilon=0.2)
    return plan.run()


RELEASED = {
    "alone": lambda of: of.mean("pressure", epsilon=0.2, force=True),
    "of groups": lambda of: of.by("sex").mean("pressure", epsilon=0.2, force=True),
    "planned": planned,
}


@pytest.mark.parametrize("ask", RELEASED)
def test_studies_of_persons_and_of_records_have_ledgers_of_their_own(tmp_path, ask):
    ledgers = {unit: new(tmp_path, unit) for unit in ("patient", "record")}
    whom = {"patient": {"person": "patient", "unit": "patient"}, "record": {}}
    for unit, other in (("patient", "record"), ("record", "patient")):
        with pytest.raises(ValueError, match=f"protects each {unit}, and the release each {other}"):
            RELEASED[ask](study(ledgers[unit], **whom[other]))
        assert ledgers[unit].read().num_rows == 1
    RELEASED[ask](study(ledgers["patient"], **whom["patient"]))
    book = ledgers["patient"].verify()
    assert (book.spent.unit, len(book.unfinished)) == ("patient", 0)


def test_the_unit_is_said(tmp_path):
    book = new(tmp_path, " patient ").verify()
    assert book.unit == "patient"
    assert "one patient, with all records of that patient, is protected" in book.explain()
    assert "one record is protected" in new(tmp_path, "record").read().explain()


def test_a_file_with_debits_of_another_unit_was_changed(tmp_path):
    assert file_of(tmp_path / "records.ledger", "record", TENTH).verify().spent.epsilon == 0.1
    for unit, one in (("record", OF_PATIENTS), ("patient", TENTH)):
        with pytest.raises(LedgerError, match="another unit"):
            file_of(tmp_path / f"{unit}s.mixed", unit, one)


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_file_of_another_format_is_refused(tmp_path, version):
    """In other formats a unit may mean something else."""
    with pytest.raises(LedgerError, match="no ledger of this version"):
        file_of(tmp_path / "other.ledger", "patient", version=version)
    first = Row.following(1, "opened", None, None, {"format": version}, BEFORE_ALL)
    # As the first format wrote a release, without its text.
    released = Row.following(2, "released", 1, None, {"certificate": "0", "exact": True}, first.digest)
    with pytest.raises(LedgerError, match="no ledger of this version"):
        Book.of([first, released])


def test_the_format_says_what_the_unit_means(tmp_path):
    ledger = new(tmp_path, "patient")
    with sqlite3.connect(ledger.path) as connection:
        content = json.loads(connection.execute("SELECT content FROM entry").fetchone()[0])
    connection.close()
    # Versions that take the unit for a label refuse the file.
    assert content["format"] == 3


def test_groups_say_how_the_rows_of_a_patient_count_in_them():
    made = study(None, person="patient", unit="patient").by("sex").mean("pressure", epsilon=0.2, force=True)
    words = "twice what the dearest group costs, as rows of one patient share that patient's votes over all groups"
    certificate = made.each[0].certificate
    for said in (words_of(made.summary()), certificate.explain()):
        assert words in said
        assert "rows are divided by sex" in said
    assert certificate.membership.together.unit == "patient"
    assert kng.releases.Certificate.from_dict(certificate.to_dict()) == certificate


def test_counted_groups_protect_the_unit_in_both_releases(tmp_path):
    ledger = new(tmp_path, "patient", kng.Budget.pure(20))
    made = study(ledger, unit="patient").by("sex").quantile_interval("pressure", tau=0.5, epsilon=20)
    assert made.guarantee.unit == "patient"
    assert ledger.verify().spent.unit == "patient"
    assert len(ledger.read().releases) == 2
