"""Jobs whose releases protect persons with several rows: in a file as in a study, planned, checked, paid, resumed."""

import json

import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import cli, job, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.core.errors import ReleaseFailed
from tests.words import words_of

PEOPLE = 60
JOB = """
[data]
path = "visits.csv"

[study]
adjacency = "replace"
person = "patient"
unit = "patient"

[study.bounds]
pressure = [80, 200]

[study.levels]
severe = ["no", "yes"]

[[analyses]]
method = "mean"
column = "pressure"
epsilon = 1

[[analyses]]
method = "count"
where = "severe == 'yes'"
epsilon = 1
"""
ADD_REMOVE = ('"replace"', '"add_remove"')


def visits():
    """Visits of so many patients, one to eight each, as they came."""
    random = np.random.default_rng(5)
    patients = np.repeat(np.arange(PEOPLE), random.integers(1, 9, PEOPLE))
    random.shuffle(patients)
    number = len(patients)
    return pl.DataFrame(
        {
            "patient": [f"A{one:03d}" for one in patients],
            "pressure": random.normal(130, 15, number).round(1),
            "severe": random.choice(["no", "yes"], number),
        }
    )


def write(folder, *changes, data=None):
    text = JOB
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (visits() if data is None else data).write_csv(folder / "visits.csv")
    (folder / "visits.toml").write_text(text)
    return folder / "visits.toml"


def test_a_job_counts_patients_and_says_whom_it_protects(tmp_path, capfd):
    path = str(write(tmp_path))
    file = job_file.read(path)
    assert (file.unit.name, file.unit.most_rows, file.unit.column) == ("patient", 1, "patient")
    assert job.public_count(file) == PEOPLE
    assert cli.main(["plan", path]) == 0
    planned = capfd.readouterr().out
    assert "two tables of the same number of patients that differ in all rows of one patient" in words_of(planned)
    assert cli.main(["plan", path, "--records", str(PEOPLE)]) == 0
    assert capfd.readouterr().out == planned
    assert cli.main(["check", path]) == 0
    assert "its records can be prepared" in capfd.readouterr().out


def test_a_job_is_paid_by_a_ledger_of_patients_and_resumed(tmp_path, capfd):
    path, out = str(write(tmp_path)), tmp_path / "out"
    paying = str(tmp_path / "budget.ledger")
    words = ["--epsilon", "2", "--adjacency", "replace", "--dataset", "visits", "--unit", "patient"]
    assert cli.main(["ledger", "create", paying, *words]) == 0
    assert cli.main(["release", path, "--ledger", paying, "--output", str(out)]) == 0
    written = (out / job.RELEASES).read_text()
    capfd.readouterr()
    book = kng.Ledger(paying).verify()
    assert (book.spent.unit, book.spent.epsilon, len(book.releases)) == ("patient", 2.0, 2)
    assert json.loads(written)["privacy"]["guarantee"]["unit"] == "patient"
    for one in json.loads(written)["analyses"]:
        result = kng.Results.from_json(json.dumps(one["result"]))
        assert result.certificate.guarantee.unit == "patient"
        assert result.certificate.num_records == PEOPLE
    # Nothing is drawn or paid anew.
    assert cli.main(["release", path, "--ledger", paying, "--output", str(out), "--resume"]) == 0
    assert (out / job.RELEASES).read_text() == written
    assert kng.Ledger(paying).read().spent.epsilon == 2.0
    assert cli.main(["ledger", "verify", paying]) == 0
    assert "Every release protects one patient." in capfd.readouterr().out


def test_a_ledger_of_records_refuses_a_job_of_patients(tmp_path, capfd):
    path = str(write(tmp_path))
    ledger = kng.Ledger.create(tmp_path / "budget.ledger", kng.Budget.pure(9), adjacency="replace", dataset="visits")
    assert cli.main(["plan", path, "--ledger", str(ledger.path)]) == cli.USER_ERROR
    assert (
        "The ledger refuses: this ledger protects each record, and the release each patient" in capfd.readouterr().out
    )
    assert cli.main(["release", path, "--ledger", str(ledger.path), "--output", str(tmp_path / "out")]) != 0
    assert "Nothing was spent" in capfd.readouterr().err
    assert ledger.read().num_rows == 1


def test_the_settings_of_persons_decide_what_is_resumed(tmp_path):
    made = [write(tmp_path, *changes) for changes in ((), (('unit = "patient"', 'unit = "patient"\nmost_rows = 3'),))]
    first = job_file.read(made[0]).identity
    path = write(tmp_path)
    assert job_file.read(path).identity != first
    path.write_text(JOB)
    assert job_file.read(path).identity != first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('person = "patient"\n', "most_rows = 3\n"), "most_rows is of persons with several rows"),
        (('person = "patient"', 'person = "nobody"'), "identifiers are to be in the column 'nobody'"),
        (('unit = "patient"', "most_rows = 0"), "most_rows must be between 1 and 1000"),
        (('column = "pressure"', 'column = "patient"'), "bounds"),
    ],
)
def test_what_cannot_be_is_said_with_the_file(tmp_path, change, words):
    file = job_file.read(write(tmp_path, change))
    with pytest.raises(ValueError, match=words) as refusal:
        job.planned_for(file, job.load(file))
    assert str(refusal.value).startswith(f"{file.path}: ")


def test_rows_without_identifier_are_dropped_or_make_a_release_fail(tmp_path, capfd):
    data = visits()
    data[0, "patient"] = None
    path = str(write(tmp_path, ADD_REMOVE, data=data))
    assert cli.main(["check", path]) == cli.USER_ERROR
    said = capfd.readouterr().out
    assert "REFUSED" in said
    assert f"patient: {PEOPLE} patients with up to 8 rows, 1 rows without identifier" in said
    assert "missing={'patient': 'drop'}" in said
    file = job_file.read(path)
    with pytest.raises(ReleaseFailed):
        job.run(file, job.load(file))
    path = str(
        write(
            tmp_path, ADD_REMOVE, ("[study.levels]", '[study.missing]\npatient = "drop"\n\n[study.levels]'), data=data
        )
    )
    assert cli.main(["check", path]) == 0
    file = job_file.read(path)
    job.run(file, job.load(file))


def test_text_that_looks_like_numbers_is_no_number(tmp_path):
    data = visits().with_columns(
        pl.Series("patient", ["7", "007"] * (visits().height // 2) + ["7"] * (visits().height % 2))
    )
    file = job_file.read(write(tmp_path, data=data))
    assert "patient" in file.text_columns
    assert job.count_of(file, job.load(file)) == 2


def test_a_table_in_parts_says_how_many_persons_there_are_and_a_synthesis_is_refused(tmp_path):
    path = write(tmp_path)
    folder = tmp_path / "parts"
    folder.mkdir()
    visits().write_parquet(folder / "one.parquet")
    file = job_file.read(write(tmp_path))
    with pytest.raises(ValueError, match="number of persons is public"):
        job.planned_for(file, job.load(file, folder))
    stated = job_file.read(write(tmp_path, ('"visits.csv"', f'"parts"\nnum_records = {PEOPLE}')))
    assert job.public_count(stated) == PEOPLE
    _, results = job.run(stated, job.load(stated))
    assert [one.certificate.num_records for one in results] == [PEOPLE, PEOPLE]
    alone = job_file.read(write(tmp_path, ('"visits.csv"', f'"visits.csv"\nnum_records = {PEOPLE}')))
    with pytest.raises(ValueError, match=r"\[data\] num_records: is of a query, or of persons in a folder"):
        job.load(alone)
    file = job_file.read(write(tmp_path, ADD_REMOVE))
    _, results = job.run(file, job.load(file, folder))
    assert all(one.certificate.guarantee.unit == "patient" for one in results)
    path.write_text(
        JOB[: JOB.index("[[analyses]]")] + '[[analyses]]\nmethod = "synthesis"\nepsilon = 1\n'
        'columns = [{ kind = "category", name = "severe" }]\n'
    )
    with pytest.raises(ValueError, match="person: a synthesis protects one record"):
        JobPlan(job_file.read(path), PEOPLE)


def test_each_record_may_be_one_patient(tmp_path):
    file = job_file.read(write(tmp_path, ('person = "patient"\n', "")))
    data = job.load(file)
    made, results = job.run(file, data)
    assert [one.certificate.guarantee.unit for one in results] == ["patient", "patient"]
    assert results[0].certificate.num_records == visits().height
    assert "each record is one patient" in results[0].certificate.explain()
    assert made.file.unit.column is None
