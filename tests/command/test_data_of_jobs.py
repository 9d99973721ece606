"""[data] of a job: how its CSV file is written, what of it fails, what certificates say, what the owner is shown."""

import json
import random

import duckdb
import polars as pl
import pytest

from kngjax.command import cli, job, job_file, named_parts
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger
from tests.command.forms import write
from tests.command.small_jobs import workers
from tests.words import words_of

JOB = """
[data]
path = "d.csv"
{data}
[study]
adjacency = "{adjacency}"
ledger = "book"
bounds = {{ wage = [0, 2000] }}

[[analyses]]
method = "{method}"
epsilon = 5
{asked}
"""
ROWS = "wage,age\n" + "10,30\n" * 1000
BROKEN = "wage,note\n" + '10,"line one\nline two"\n' * 300
GERMAN = "wage;age\n" + "1.000,5;30\n" * 1000
SAID_GERMAN = 'separator = ";"\ndecimal = ","\nthousands = "."'


@pytest.fixture
def run(tmp_path, capfd):
    """Carries out a command of a job of this file; returns its status, what it says, and whether anything is spent."""

    def of(command, content, data="", method="count", adjacency="add_remove"):
        (tmp_path / "d.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        asked = "" if method == "count" else 'column = "wage"'
        written = JOB.format(data=data, method=method, adjacency=adjacency, asked=asked)
        (tmp_path / "job.toml").write_text(written, encoding="utf-8")
        (tmp_path / "book").unlink(missing_ok=True)
        budget = Budget.approximate(10, "0.1")
        book = Ledger.create(tmp_path / "book", budget, adjacency=adjacency, dataset="d")
        output = [] if command == "check" else ["--output", str(tmp_path / "out"), "--force"]
        status = cli.main([command, str(tmp_path / "job.toml"), *output])
        said = capfd.readouterr()
        return status, said.out + said.err, book.read().num_rows > 1

    return of


# The file, what [data] says of it, how many records are counted, and words of the certificate.
COUNTED = {
    "lines": (ROWS, "", 1000, "the records were clipped"),
    "line breaks in quotes": (BROKEN, "quoted_line_breaks = true", 300, "well formed, as RFC 4180 has it"),
    "two bytes a unit": (ROWS.encode("utf-16"), "", 1000, "the records were clipped"),
}


@pytest.mark.parametrize(("content", "data", "number", "words"), COUNTED.values(), ids=COUNTED)
def test_records_are_counted_once(run, tmp_path, content, data, number, words):
    status, said, spent = run("release", content, data)
    assert (status, spent) == (0, True), said
    [entry] = json.loads((tmp_path / "out" / "releases.json").read_text())["analyses"]
    [release] = entry["result"]["releases"]
    assert abs(release["value"][0] - number) < 15
    assumed = " ".join(release["certificate"]["assumptions"])
    assert words in assumed
    assert ("RFC 4180" in assumed) == bool(data)


def test_pieces_of_records_are_never_counted(run):
    """By the constant text, once the debit is spent: that there are some is for the owner alone."""
    status, said, spent = run("release", BROKEN)
    assert (status, spent) == (cli.FAILED, True)
    assert named_parts.FAILED in said
    status, said, _ = run("check", BROKEN)
    assert status == cli.USER_ERROR
    assert "600 of 600 lines have an odd number of quotes, record 1 first" in said


def test_numbers_are_read_by_their_marks(run, tmp_path):
    status, said, _ = run("release", GERMAN, SAID_GERMAN, "mean", "replace")
    assert status == 0, said
    [entry] = json.loads((tmp_path / "out" / "releases.json").read_text())["analyses"]
    assert abs(entry["result"]["releases"][0]["value"][0] - 1000.5) < 20


# The file, what [data] says of it, and what the owner is told of the header.
SHOWN = {
    "semicolons": (ROWS.replace(",", ";"), "", "one column, 'wage;age': cells lie between commas. If cells lie"),
    "another separator": (ROWS, 'separator = "|"', "one column, 'wage,age': cells lie between '|'. If cells"),
    "another encoding": (ROWS.encode("utf-16-le"), "", "look like UTF-16 without its mark"),
}


@pytest.mark.parametrize(("content", "data", "words"), SHOWN.values(), ids=SHOWN)
def test_the_owner_is_shown_the_header_as_it_was_read(run, content, data, words):
    status, said, _ = run("check", content, data, "mean", "replace")
    assert status == cli.USER_ERROR
    assert words in said
    assert "OWNER ONLY" in said
    status, said, spent = run("release", content, data, "mean", "replace")
    assert (status, spent) == (cli.USER_ERROR, False)
    assert "'kngjax check' shows the header as it was read" in said
    assert ";" not in said.replace("; 'kngjax check'", "")
    assert "'age'" not in said


READ = {
    "semicolons": (ROWS.replace(",", ";"), 'separator = ";"'),
    "a line before": ("sep=,\n" + ROWS, ""),
    "a padded header": (ROWS.replace("wage,", "wage ,"), ""),
    "two bytes a unit": (ROWS.encode("utf-16"), ""),
}


@pytest.mark.parametrize(("content", "data"), READ.values(), ids=READ)
def test_what_is_written_otherwise_is_read(run, content, data):
    status, said, _ = run("check", content, data, "mean", "replace")
    assert status == 0, said
    assert "records: 1000 " in words_of(said)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('separator = "x"', r"[data] separator: must be one of"),
        ('encoding = "zlib"', r"[data] encoding: must be one of"),
        ("header_line = 2", "unknown key 'header_line'"),
        ('quoted_line_breaks = "yes"', r"[data] quoted_line_breaks: must be true or false"),
        ('decimal = "."\nthousands = "."', r"[data] thousands: must be another mark"),
    ],
)
def test_settings_that_no_file_can_have_are_refused(run, data, words):
    status, said, spent = run("release", ROWS, data)
    assert (status, spent) == (cli.USER_ERROR, False)
    assert words in said


def test_how_a_file_is_read_decides_which_job_it_is(run, tmp_path):
    found = []
    for data in ("", 'separator = ";"', "quoted_line_breaks = true"):
        run("check", ROWS, data)
        found.append(job_file.read(tmp_path / "job.toml").identity)
    assert len(set(found)) == 3
    (tmp_path / "job.toml").write_text(
        JOB.format(data="", adjacency="replace", method="count", asked="").replace(
            'path = "d.csv"', 'path = "d.parquet"\nseparator = ";"'
        )
    )
    with pytest.raises(ValueError, match=r"\[data\] separator: says how a CSV file is written: leave it out"):
        job_file.read(tmp_path / "job.toml")


def test_codes_count_as_missing_cells(tmp_path):
    """As in a file without anything in these cells, bit for bit; and they decide which job it is."""
    old = "[study.missing]\nwage = 20\n"
    path = write("study", tmp_path, (old, f'{old}\n[study.missing_codes]\nwage = [7777, "refused"]\n'))
    coded = job_file.read(path)
    frame = workers(50).with_columns(pl.col("wage").cast(pl.String))
    wages = frame["wage"].to_list()
    held = [("7777.0", "refused", wage)[place % 3] for place, wage in enumerate(wages)]
    empty = [None if place % 3 < 2 else wage for place, wage in enumerate(wages)]
    frames = [frame.with_columns(wage=pl.Series(cells)) for cells in (held, empty)]
    made = [job.planned_for(coded, one).steps[0].analysis for one in frames]
    both = [one.records(cells) for one, cells in zip(made, frames, strict=True)]
    assert both[0][1].tobytes() == both[1][1].tobytes()
    assert made[0].told == ("cells that hold a code count as missing: 7777 or 'refused' in wage",)
    assert len({coded.identity, job_file.read(write("study", tmp_path)).identity}) == 2


FRAME = pl.DataFrame({"wage": [10.0, 1999.0, 5.5] * 100, "age": [30] * 300})
IN_PASSES = {
    "a pattern": 'path = "parts/*.parquet"',
    "a folder": 'path = "parts"',
    "a database": 'duckdb = "people.db"\nquery = "FROM people WHERE age = 30"',
}


@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_tables_that_are_read_in_passes_are_released_like_files(tmp_path, monkeypatch, adjacency):
    (tmp_path / "parts").mkdir()
    for number in range(3):
        FRAME.slice(100 * number, 100).write_parquet(tmp_path / "parts" / f"{number}.parquet")
    FRAME.write_parquet(tmp_path / "d.parquet")
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.execute(f"CREATE TABLE people AS FROM '{tmp_path}/d.parquet'")
    found = []
    for data in ('path = "d.parquet"', *IN_PASSES.values()):
        if adjacency == "replace" and "query" in data:
            data += "\nnum_records = 300"
        written = JOB.format(data="", method="mean", adjacency=adjacency, asked='column = "wage"')
        (tmp_path / "job.toml").write_text(written.replace('path = "d.csv"', data), encoding="utf-8")
        (tmp_path / "book").unlink(missing_ok=True)
        Ledger.create(tmp_path / "book", Budget.approximate(10, "0.1"), adjacency=adjacency, dataset="d")
        monkeypatch.setattr("secrets.randbits", random.Random(3).getrandbits)
        assert cli.main(["release", str(tmp_path / "job.toml"), "--output", str(tmp_path / "out"), "--force"]) == 0
        kept = json.loads((tmp_path / "out" / "releases.json").read_text())
        found.append(str(kept).replace(str(kept.get("data")), ""))
    assert found == found[:1] * len(found)


def test_a_query_that_is_refused_costs_nothing_and_is_not_quoted(tmp_path, capfd):
    duckdb.connect(str(tmp_path / "people.db")).close()
    source = 'duckdb = "people.db"\nquery = "FROM nobody"\nnum_records = 300'
    (tmp_path / "job.toml").write_text(
        JOB.format(data="", method="count", adjacency="replace", asked="").replace('path = "d.csv"', source)
    )
    book = Ledger.create(tmp_path / "book", Budget.approximate(10, "0.1"), adjacency="replace", dataset="d")
    assert cli.main(["release", str(tmp_path / "job.toml")]) == 2
    assert "query: DuckDB refuses it with CatalogException" in capfd.readouterr().err
    assert book.read().num_rows == 1
