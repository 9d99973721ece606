"""Jobs with a synthesis: the plan of the file, refusals, releases with tables that are drawn, resuming, costs."""

import json
import pathlib
import re

import numpy as np
import pandas as pd
import pytest

import kngjax as kng
from kngjax.command import cli, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.command.synthesis_file import KINDS, DrawSettings
from tests.command import forms
from tests.command.job_keys import MADE_SYNTHESIS
from tests.command.small_jobs import SECRET_WAGE, workers
from tests.words import words_of

PLAN = {
    "columns": [
        kng.synthesis.Category("region", ["north", "south"], other="south", share=0.1),
        kng.synthesis.Ordinal("education", 0, 18, parents=["region"]),
        kng.synthesis.Numeric("wage", 20, 20000, "log", given="education", levels=[0.25, 0.75], share=0.5),
    ],
    "epsilon": 3,
}


PRIVATE = ('"replace"', '"add_remove"')


def write(folder, *changes):
    return forms.write("synthesis", folder, *changes)


def read(folder, *changes):
    return job_file.read(write(folder, *changes))


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "book", kng.Budget.pure(3), adjacency="replace", dataset="workers")


def test_its_plan_is_the_one_of_python(tmp_path):
    """What [study] says of a column need not be said again."""

    def planned(*changes):
        return JobPlan(read(tmp_path, *changes), None if changes else 300).steps[0].analysis

    assert planned() == kng.synthesis.plan(**PLAN, adjacency="replace")
    rows = ("epsilon = 3", "epsilon = 3\nrows = 0.1\nmax_records = 1000")
    expected = kng.synthesis.plan(**PLAN, adjacency="add_remove", rows=0.1, max_records=1000)
    assert planned(PRIVATE, rows) == expected
    every = {getattr(kng.synthesis, name.split(".")[1]) for name in KINDS.values()}
    assert every == {kng.synthesis.Category, kng.synthesis.Ordinal, kng.synthesis.Count, kng.synthesis.Numeric}


@pytest.mark.parametrize(("old", "new", "words"), MADE_SYNTHESIS[:2])
def test_what_no_data_decide_is_refused_before_they_are_read(tmp_path, old, new, words, capfd):
    config = write(tmp_path, (old, new), PRIVATE)
    (tmp_path / "workers.csv").unlink()
    assert cli.main(["release", str(config), "--output", str(tmp_path / "output")]) == 2
    assert re.search(words, capfd.readouterr().err)


def test_what_a_ledger_refuses_is_refused_before_data_are_read(tmp_path, capfd):
    path = tmp_path / "private"
    kng.Ledger.create(path, kng.Budget.pure(2), adjacency="add_remove", dataset="workers")
    config = write(tmp_path, PRIVATE)
    (tmp_path / "workers.csv").unlink()
    assert cli.main(["release", str(config), "--ledger", str(path), "--output", str(tmp_path / "output")]) == 2
    assert "budget" in capfd.readouterr().err


def test_a_column_of_codes_is_refused_and_missing_cells_count_as_the_study_says(tmp_path):
    missing = ("[study.levels]", "[study.missing]\nwage = 20\n\n[study.levels]")
    plan = JobPlan(read(tmp_path, missing), 300).steps[0].analysis
    assert plan.columns[2].missing == 20
    codes = ("[study.levels]", "[study.missing]\nwage = 20\n[study.missing_codes]\nwage = [-1]\n\n[study.levels]")
    with pytest.raises(ValueError, match=r"\[study.missing_codes\] wage: a synthesis reads this column without it"):
        JobPlan(read(tmp_path, codes), 300)


def test_no_table_is_drawn_over_a_file_that_is_there(tmp_path, ledger, capfd):
    """That of the data, in the folder that tables are written to."""
    config = write(tmp_path, ("tables = 2", "tables = 1"), ("seed = 7", 'file = "workers.csv"'))
    before = (tmp_path / "workers.csv").read_bytes()
    words = ["release", str(config), "--ledger", str(ledger.path), "--output", str(tmp_path)]
    assert cli.main(words) == 2
    assert "workers.csv exists: move it away" in capfd.readouterr().err
    assert (tmp_path / "workers.csv").read_bytes() == before
    ledger.require([kng.Guarantee.pure(3, "replace")])


@pytest.mark.parametrize("word", ["--force", "--resume"])
@pytest.mark.parametrize("file", ["workers.csv", "book.csv"])
def test_none_is_drawn_over_the_data_or_the_ledger_whatever_is_said(tmp_path, file, word, capfd):
    ledger = kng.Ledger.create(tmp_path / "book.csv", kng.Budget.pure(3), adjacency="replace", dataset="workers")
    config = write(tmp_path, ("tables = 2", "tables = 1"), ("seed = 7", f'file = "{file}"'))
    before = (tmp_path / file).read_bytes()
    words = ["release", str(config), "--ledger", str(ledger.path), "--output", str(tmp_path), word]
    assert cli.main(words) == 2
    assert f"{file} would be written over, and is the" in capfd.readouterr().err
    assert (tmp_path / file).read_bytes() == before
    ledger.require([kng.Guarantee.pure(3, "replace")])


def test_draws_have_names_and_keys_of_their_own():
    assert DrawSettings().files == ("synthetic.csv",)
    assert DrawSettings(tables=3, file="a.b.CSV", seed=4).files == ("a.b_1.CSV", "a.b_2.CSV", "a.b_3.CSV")
    assert DrawSettings(tables=3, seed=4).seeds == (4, 5, 6)


def test_a_release_is_one_debit_and_its_tables_are_drawn_beside_it(tmp_path, ledger, capfd):
    config, output = write(tmp_path), tmp_path / "output"
    words = ["release", str(config), "--ledger", str(ledger.path), "--output", str(output)]
    assert cli.main(words) == 0
    said = words_of(capfd.readouterr().out)
    assert "education: counts of 19 levels by region, 38 cells" in said
    assert "wage: 2 quantile curves of log wage given education" in said
    assert "wage proved 1.5 " in said
    assert "all together: pure 3-differential privacy" in said
    assert f"{output / 'releases.json'}, {output / 'synthetic_1.csv'}, {output / 'synthetic_2.csv'}" in said
    written = json.loads((output / "releases.json").read_text(encoding="utf-8"))
    assert written["privacy"]["epsilon"] == pytest.approx(3.0)
    assert written["missing"] == []
    [entry] = written["analyses"]
    assert entry["labels"] == ["1. synthesis"]
    table = kng.synthesis.SyntheticTable.from_json(json.dumps(entry["result"]))
    for number, seed in ((1, 7), (2, 8)):
        drawn = pd.read_csv(output / f"synthetic_{number}.csv")
        pd.testing.assert_frame_equal(drawn, table.draw(50, key=kng.research_key(seed)), check_dtype=False)
    assert str(SECRET_WAGE) not in said + "".join(path.read_text() for path in output.iterdir())
    assert ledger.verify().spent.epsilon == pytest.approx(3.0)
    number = ledger.verify().num_rows
    # Another run is refused, and resumed nothing is spent or drawn anew, of the ledger and of the output alone.
    assert cli.main(words) == 2
    (output / "synthetic_1.csv").unlink()
    for resumed in ([*words, "--resume"], [*words[:2], *words[4:], "--resume"]):
        assert cli.main(resumed) == 0
        assert json.loads((output / "releases.json").read_text(encoding="utf-8")) == written
        assert (output / "synthetic_1.csv").exists()
    assert ledger.verify().num_rows == number


def test_under_add_remove_the_number_of_rows_is_released(tmp_path, capfd):
    change = PRIVATE, ("num_rows = 50\n", ""), ("tables = 2", "tables = 1")
    config = write(tmp_path, *change)
    assert cli.main(["plan", str(config)]) == 0
    assert "[1] synthesis, rows: the number of records" in capfd.readouterr().out


@pytest.mark.slow
def test_a_table_has_as_many_rows_as_were_released(tmp_path):
    change = PRIVATE, ("num_rows = 50\n", ""), ("tables = 2", "tables = 1")
    config, output = write(tmp_path, *change), tmp_path / "output"
    assert cli.main(["release", str(config), "--output", str(output)]) == 0
    written = json.loads((output / "releases.json").read_text(encoding="utf-8"))
    [entry] = written["analyses"]
    assert entry["result"]["num_records"] is None
    assert len(pd.read_csv(output / "synthetic.csv")) == entry["result"]["releases"][0]["value"][0]


def test_a_plan_tells_what_each_column_costs_and_reads_no_value(tmp_path, ledger, capfd):
    config = write(tmp_path)
    (tmp_path / "workers.csv").unlink()
    words = ["plan", str(config), "--ledger", str(ledger.path)]
    assert cli.main([*words, "--records", "300"]) == 0
    said = capfd.readouterr().out
    assert "[1] synthesis, region: counts of 2 levels, 2 cells" in said
    assert "all together: pure 3-differential privacy" in said
    assert "The ledger allows all: 3 of epsilon = 3 is left." in said
    assert cli.main([*words, "--records", "20"]) == 2
    assert "column 'wage': of 20 records too few lie beyond" in capfd.readouterr().err
    assert cli.main(words) == 2
    ledger.reserve(kng.Guarantee.pure(1, "replace"))
    assert cli.main([*words, "--records", "300"]) == 2
    assert "The ledger refuses" in capfd.readouterr().out


def test_a_failure_is_one_text_and_the_owner_finds_out_why(tmp_path, ledger, capfd):
    config, output = write(tmp_path), tmp_path / "output"
    frame = workers().to_pandas()
    frame.loc[3, "education"] = np.nan
    frame.to_csv(tmp_path / "workers.csv", index=False)
    assert cli.main(["release", str(config), "--ledger", str(ledger.path), "--output", str(output)]) == 1
    said = capfd.readouterr().err
    assert "[study.missing] nor the column of a synthesis has a value" in said
    assert "education" not in said
    assert not list(output.iterdir())
    assert cli.main(["check", str(config)]) == 2
    said = words_of(capfd.readouterr().out)
    assert "1. synthesis: REFUSED: column 'education' has cells that are missing" in said
    assert "education 0.0033333 0.0033333 " in said
    assert cli.main(["check", str(write(tmp_path))]) == 0
    assert "1. synthesis: its records can be prepared" in capfd.readouterr().out


def test_a_synthesis_stands_beside_other_analyses_each_with_its_debit(tmp_path):
    median = '[[analyses]]\nmethod = "median"\ncolumn = "wage"\nepsilon = 1\nforce = true\n\n[[analyses]]'
    config = read(tmp_path, ('[[analyses]]\nmethod = "synthesis"', f'{median}\nmethod = "synthesis"'))
    assert config.drawn_files == ("synthetic_1.csv", "synthetic_2.csv")
    plan = JobPlan(config, 300)
    assert [step.label for step in plan.steps] == ["1. 0.5-quantile of wage, quantile", "2. synthesis"]
    assert [one.name for one in plan.columns] == ["wage", "region", "education"]


def test_the_example_of_the_page_is_a_synthesis(tmp_path):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "jobs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    [example] = [block for block in blocks if 'method = "synthesis"' in block]
    (tmp_path / "page.toml").write_text(example, encoding="utf-8")
    plan = JobPlan(job_file.read(tmp_path / "page.toml"), 28_155)
    assert [column.name for column in plan.steps[0].analysis.columns] == ["region", "education", "wage"]
    assert len(plan.summary().notes) == 4
    for kind, name in KINDS.items():
        assert f'`"{kind}"`' in page, name
