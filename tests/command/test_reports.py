"""`kngjax report`, `verify` and the page of `kngjax plan`: what they write, exit statuses, and no value of the data."""

import webbrowser

import polars as pl
import pytest

from kngjax import Budget, Guarantee, Ledger
from kngjax.command import cli, job_file
from kngjax.command.job_foresight import page_of
from tests.study.reports.pages_made import require_a_good_page

JOB = """
[data]
path = "people.csv"

[study]
adjacency = "replace"
ledger = "people.ledger"

[study.bounds]
"<script>" = [0, 10]

[study.levels]
region = ["north", "</script>"]

[[analyses]]
method = "histogram"
column = "region"
epsilon = 0.5

[[analyses]]
method = "mean"
column = "<script>"
epsilon = 0.5
intervals = true
"""
HOPELESS = '\n[[analyses]]\nmethod = "mean"\ncolumn = "<script>"\nepsilon = 1e-5\n'


def people(first=3.14159265):
    return pl.DataFrame({"<script>": [first, 4.5, 6.75] * 40, "region": ["north", "</script>", "north"] * 40})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(JOB, encoding="utf-8")
    Ledger.create(tmp_path / "people.ledger", Budget.pure(2), adjacency="replace", dataset="people")
    return tmp_path


def run(*words):
    return cli.main([str(one) for one in words])


@pytest.mark.takes(6, "a job with intervals is released, reported and verified")
def test_a_job_is_released_reported_and_verified(folder, capfd):
    assert run("release", "people.toml") == 0
    assert run("report", "people.toml") == 0
    page = folder / "output" / "people" / "report.html"
    seen = require_a_good_page(page.read_text(encoding="utf-8"))
    assert len(seen.named("svg")) == 3
    assert run("verify", page, "--ledger", "people.ledger") == 0
    assert "The report holds." in capfd.readouterr().out
    # Without the ledger too, and from releases.json alone.
    assert run("verify", page) == 0
    assert "not checked" in capfd.readouterr().out
    other = folder / "other.html"
    assert run("report", page.with_name("releases.json"), "--output", other) == 0
    assert "No ledger was given" in other.read_text(encoding="utf-8")
    assert run("verify", other, "--ledger", "people.ledger") == 0
    # A page with one changed estimate.
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace('"estimate": ', '"estimate": 1', 1), encoding="utf-8")
    assert run("verify", page, "--ledger", "people.ledger") == 1
    assert "DIFFERS: the numbers of analysis 1" in capfd.readouterr().out
    # Another ledger.
    Ledger.create(folder / "new.ledger", Budget.pure(2), adjacency="replace", dataset="people")
    assert run("verify", other, "--ledger", "new.ledger") == 1
    assert run("report", page.with_name("releases.json"), "--ledger", "new.ledger") == 2
    assert "the ledger holds no such release" in capfd.readouterr().err
    # Nothing that is read is written over.
    assert run("report", "people.toml", "--output", "people.ledger") == 2
    assert run("report", "people.toml", "--output", "people.toml") == 2


def test_what_is_no_report_and_no_releases_is_refused_in_a_line(folder, capfd):
    (folder / "page.html").write_bytes(b"\xff")
    (folder / "releases.json").write_text("{}", encoding="utf-8")
    for words in (
        ("verify", "page.html"),
        ("verify", "people.toml"),
        ("report", "releases.json"),
        ("report", "none"),
        ("report", "people.csv"),
    ):
        assert run(*words) == 2
        assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.takes(6, "three analyses are previewed at three budgets")
def test_a_plan_says_what_is_refused_and_reads_no_value(folder, capfd, monkeypatch):
    (folder / "people.toml").write_text(JOB + HOPELESS, encoding="utf-8")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    # The text of such a job is a refusal; its page says so beside what the others would be worth.
    assert run("plan", "people.toml", "--open") == 2
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert opened == [(folder / "plan.html").as_uri()]
    seen = require_a_good_page(page)
    said = " ".join(text for _, text in seen.texts)
    assert "As it stands this plan is refused" in said
    assert "would be little but noise" in said
    # The sum lacks the analysis that is refused.
    assert "All together: without what is refused, pure 1-differential privacy" in said
    assert len(seen.named("svg")) >= 3
    assert str(folder) not in page
    people(first=2.7182818).write_csv(folder / "people.csv")
    file, ledger = job_file.read(folder / "people.toml"), Ledger(folder / "people.ledger")
    assert page_of(file, 120, ledger) == page
    assert "3.14159" not in page
    assert run("plan", "people.toml", "--output", "people.csv") == 2
    assert "people.csv would be written over" in capfd.readouterr().err


def test_a_plan_that_the_budget_does_not_allow_says_so(folder):
    text = JOB[: JOB.rindex("[[analyses]]")].replace("epsilon = 0.5", "epsilon = 3")
    (folder / "people.toml").write_text(text, encoding="utf-8")
    assert run("plan", "people.toml", "--output", "plan.html", "--records", 120) == 2
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert "As it stands this plan is refused" in page
    assert "the ledger has 2 of epsilon = 2 left at most, and epsilon = 3 is asked" in page


@pytest.mark.takes(4, "a regression is previewed at three budgets")
def test_a_plan_says_that_a_ledger_refuses_what_is_not_proved(folder):
    chain = 'sampler = { type = "LineGibbs", num_sweeps = 2 }\nforce = true\n'
    text = JOB[: JOB.index("[[analyses]]")] + '[[analyses]]\nmethod = "quantile_regression"\nepsilon = 1\ntau = [0.5]\n'
    (folder / "people.toml").write_text(f'{text}formula = "<script> ~ region"\n{chain}'.replace("<script>", "x"))
    assert run("plan", "people.toml", "--output", "plan.html", "--records", 120) == 2
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert "the ledger refuses: nothing is proved of this release" in page
    assert "Nothing is refused" not in page


@pytest.mark.takes(4, "two plans of two adjacencies")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_pages_of_two_tables_with_the_same_public_facts_are_the_same(folder, adjacency):
    (folder / "people.toml").write_text(JOB.replace('"replace"', f'"{adjacency}"'), encoding="utf-8")
    ledger = Ledger.create(folder / "own.ledger", Budget.pure(2), adjacency=adjacency, dataset="people")
    words = ("plan", "people.toml", "--ledger", "own.ledger", "--output")
    run(*words, "one.html")
    # Under add_remove the number of records is private, and debits that led to no release always are.
    other = people(first=1.5)
    (other if adjacency == "replace" else other.head(60)).write_csv(folder / "people.csv")
    ledger.reserve(Guarantee.pure("0.1", adjacency), "a failure", drawn=True)
    run(*words, "two.html")
    assert (folder / "one.html").read_bytes() == (folder / "two.html").read_bytes()
