"""Pairs of files that differ in one cell: no reader lets it reach another record, and one that does is seen."""

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from audits import files as pairs_of_files
from kngjax.command import job, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.data import cells, files
from kngjax.data.terms import Categorical
from tests.command.small_jobs import write_job


def test_no_reader_lets_a_cell_reach_another_record():
    found = pairs_of_files.file_pairs(8, seed=1)
    assert found.passed, "\n".join(found.differences)
    assert found.tried == dict.fromkeys(("polars", "pandas", "pyarrow", "stream"), 8)
    assert found.changed > 12


@pytest.mark.slow
def test_hundreds_of_pairs():
    found = pairs_of_files.file_pairs(400)
    assert found.passed, "\n".join(found.differences)


def test_every_cell_is_tried():
    words = {words.split(" as ")[0] for *_, words in pairs_of_files.pairs(200, suffixes=(".csv",))}
    assert words == set(pairs_of_files.CSV_CELLS)
    kinds = {words.split(" as ")[1].split(" in ")[0] for *_, words in pairs_of_files.pairs(80, 1, (".arrow",))}
    assert kinds == set(pairs_of_files.TYPED_CELLS)


def inferred(path):
    """A frame whose types are guessed from all values, and levels that are compared as they are."""
    frame = pd.read_csv(path, encoding_errors="replace", encoding="utf-8-sig", on_bad_lines="skip")
    return np.column_stack([frame["region"] == level for level in ("north", "south", 7)])


def swallowing(path):
    """A quote that is not closed swallows the lines below it."""
    frame = pd.read_csv(path, encoding_errors="replace", encoding="utf-8-sig", on_bad_lines="skip", dtype=str)
    return np.column_stack([pairs_of_files.DESIGN.matrix(frame), cells.numbers(frame["wage"])])


def centred(path):
    """Centred columns, as a pipeline may have them."""
    rows = np.nan_to_num(pairs_of_files.READERS["polars"](path))
    return rows - rows.mean(axis=0)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("reader", [inferred, swallowing, centred], ids=lambda reader: reader.__name__)
def test_a_reader_that_looks_at_other_records_is_seen(reader):
    found = pairs_of_files.file_pairs(25, readers={"planted": reader})
    assert not found.passed
    assert len(found.differences) > 1


def test_pairs_that_change_nothing_show_nothing():
    assert not pairs_of_files.file_pairs(5, readers={"planted": lambda path: np.zeros((1, 1))}).passed


def test_the_old_reference_level_is_gone():
    """As a reader with types made it: of one cell more that is no number, everybody's level was the reference."""
    region = Categorical("region", (0, 1), missing=0)
    whole, odd = pd.Series([0, 1, 0, 1]), pd.Series(["0", "1", "unknown", "1"])
    np.testing.assert_array_equal(region.columns_of(whole), region.columns_of(odd))


MECHANISM = kng.PrivateQuantile(0.5, kng.Bounds(y=(0, 100)), epsilon=1.0, adjacency="replace")


def test_hostile_files_are_released_or_fail_with_the_constant_text():
    def release(path, ledger):
        wages = files.read(path)["wage"]
        kng.release(MECHANISM, None, cells.numbers(wages), ledger=ledger, progress=False)

    ends = pairs_of_files.hostile_files(12, release)
    assert ends.passed, "\n".join(ends.broken)
    assert ends.tried == ends.released + ends.failed == 12
    assert min(ends.released, ends.failed) > 1


def test_a_hostile_file_that_is_quoted_is_seen():
    def release(path, ledger):
        float(path.read_bytes().split(b",")[-1])

    ends = pairs_of_files.hostile_files(10, release)
    assert not ends.passed
    assert any("raised in" in words or "no class" in words for words in ends.broken)


MISSING = (
    ("education = [0, 18]\n", ""),
    (
        "[[analyses]]",
        "[study.levels]\neducation = [0, 1]\n[study.missing]\neducation = 0\nwage = 100\nexperience = 10\n"
        "\n[[analyses]]",
    ),
    ("education = 12", "education = 1"),
)


@pytest.mark.slow
def test_a_job_lets_no_cell_reach_another_record(tmp_path):
    """The attack that found it: one cell of a CSV file made the whole column text, and everybody's level the first."""
    config = job_file.read(write_job(tmp_path, *MISSING))
    lines = ["wage,experience,education", *(f"{40 + row},{row % 50},{row % 2}" for row in range(200))]
    rows = []
    for odd in ("1", "unknown", "True", '""', "1e999"):
        (tmp_path / "workers.csv").write_text("\n".join([*lines, f"300,7,{odd}"]))
        x, y, _ = JobPlan(config, 201).steps[0].analysis.records(job.load(config))
        rows.append(np.column_stack([x, y])[:-1])
    assert rows[0][:, 0].sum() == 100
    assert len({found.tobytes() for found in rows}) == 1
