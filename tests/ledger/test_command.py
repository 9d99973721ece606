"""`kngjax ledger` and `kngjax release --ledger`: what is printed, and that a refusal comes before the data are read."""

import csv
import io
import os
import subprocess
import sys
from fractions import Fraction

import pytest

from kngjax import Budget, Guarantee, Ledger, ReleaseFailed
from kngjax.command import cli, job
from kngjax.command.job_file import read
from kngjax.study.regressions import equal_parts
from tests.command.small_jobs import PROVED, label, workers, write_job

TENTH = Guarantee.bounded_range("0.1", "replace")
WORDS = ("--adjacency", "replace", "--dataset", "workers")
BUDGETS = {
    ("--epsilon", "0.3"): Budget.pure("0.3"),
    ("--rho", "1/8"): Budget.zcdp(Fraction(1, 8)),
    ("--rho", "1/8", "--distance", "1e-6"): Budget.zcdp(Fraction(1, 8), "1e-6"),
    ("--epsilon", "1", "--delta", "1e-6"): Budget.approximate(1, "1e-6"),
    ("--epsilon", "1", "--delta", "1e-6", "--by-zcdp"): Budget.converted(1, "1e-6"),
}


@pytest.mark.parametrize("budget", BUDGETS)
def test_create_show_verify(tmp_path, capfd, budget):
    path = str(tmp_path / "budget.ledger")
    assert cli.main(["ledger", "create", path, *budget, *WORDS, "--unit", "worker"]) == 0
    ledger = Ledger(path)
    assert ledger.read().budget == BUDGETS[budget]
    assert "Ledger of 'workers': one worker, with all records of that worker, is protected" in capfd.readouterr().out
    ledger.reserve(TENTH.of("worker"))
    assert cli.main(["ledger", "show", path]) == 0
    said = capfd.readouterr().out
    assert "Debits: 1, of which 0 led to a release and 1 did not" in said
    assert f"Left: {ledger.read().left}." in said
    head = ledger.head()
    assert cli.main(["ledger", "verify", path, "--head", head]) == 0
    assert f"Head: {head}" in capfd.readouterr().out
    assert cli.main(["ledger", "verify", path, "--head", "0" * 64]) == 1
    assert "was set back" in capfd.readouterr().err


def test_debits_are_listed_as_csv_and_in_a_frame(tmp_path, capfd):
    ledger = Ledger.create(tmp_path / "budget.ledger", Budget.pure(2), adjacency="replace", dataset="workers")
    ledger.reserve(TENTH, {"label": "1. median", "job": "small", "data": "workers.csv"}).commit("[]", exact=True)
    ledger.reserve(TENTH, "by hand, with a comma", drawn=True)
    ledger.reserve(TENTH)
    assert cli.main(["ledger", "show", str(ledger.path), "--csv"]) == 0
    lines = [*csv.DictReader(io.StringIO(capfd.readouterr().out))]
    frame = ledger.to_frame()
    assert [*lines[0]] == [*frame.columns]
    assert [line["label"] for line in lines] == ["1. median", "by hand, with a comma", ""]
    assert frame["state"].to_list() == [line["state"] for line in lines] == ["released", "drawn", "reserved"]
    assert frame["epsilon"].to_list() == [float(line["epsilon"]) for line in lines] == [0.1] * 3
    assert (lines[0]["job"], lines[0]["data"], lines[1]["job"]) == ("small", "workers.csv", "")
    assert lines[0]["release"] == ledger.read().released[2]["certificate"]


def test_output_that_nobody_reads_on_ends_in_silence(tmp_path):
    path = tmp_path / "budget.ledger"
    Ledger.create(path, Budget.pure(1), adjacency="replace", dataset="workers")
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "kngjax.command.cli", "ledger", "show", str(path)]
    with os.fdopen(writing) as pipe:
        done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


USER_ERRORS = {
    "no budget": ([], "name the budget"),
    "two budgets": (["--epsilon", "1", "--rho", "1"], "name the budget"),
    "rho and delta": (["--rho", "1", "--delta", "1e-6"], "name the budget"),
    "no delta": (["--epsilon", "1", "--by-zcdp"], "needs --epsilon and --delta"),
    "a distance of no rho": (["--epsilon", "1", "--distance", "1e-6"], "--distance goes with --rho"),
    "no number": (["--epsilon", "much"], "epsilon must be a finite number"),
    "zero": (["--epsilon", "0"], "must be positive"),
}


@pytest.mark.parametrize("wrong", USER_ERRORS)
def test_errors_of_the_user_are_one_line(tmp_path, capfd, wrong):
    words, message = USER_ERRORS[wrong]
    path = tmp_path / "budget.ledger"
    assert cli.main(["ledger", "create", str(path), *words, *WORDS]) == 2
    said = capfd.readouterr().err
    assert said.startswith("kngjax: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert not path.exists()
    assert cli.main(["ledger", "show", str(path)]) == 2
    path.write_text("no ledger")
    assert cli.main(["ledger", "verify", str(path)]) == 1


def paying_job(folder, budget="0.7"):
    ledger = Ledger.create(folder / "budget.ledger", Budget.pure(budget), adjacency="replace", dataset="workers")
    privacy = ('"replace"', '"replace"\nledger = "budget.ledger"')
    config = write_job(folder, *PROVED, privacy, data=workers(40))
    return ledger, ["release", str(config), "--output", str(folder / "output"), "--no-figure"]


def test_a_job_that_the_budget_does_not_allow_is_refused_before_a_debit(tmp_path, capfd):
    ledger, words = paying_job(tmp_path)
    ledger.reserve(Guarantee.pure("0.3", "replace"))
    assert cli.main(words) == 2
    assert "0.4 of epsilon = 0.7 is left, and epsilon = 0.625 was asked" in capfd.readouterr().err
    assert ledger.verify().num_rows == 2


def test_a_job_is_debited_before_its_records_are_read_and_no_more_than_is_drawn(tmp_path):
    ledger, _ = paying_job(tmp_path)
    config, private = read(tmp_path / "small.toml"), workers(40).with_columns(wage=None)
    with pytest.raises((TypeError, ReleaseFailed)):
        job.run(config, private, ledger=ledger)
    book = ledger.verify()
    # That it failed may depend on the data: one debit is the price of that answer, and the other four are not due.
    assert (book.spent.exact_epsilon, book.unfinished) == (Fraction(1, 8), [2])
    assert book.what[2]["what"]["label"] == label(0.1)
    with pytest.raises(ValueError, match=r"0\.575 of epsilon = 0\.7 is left, and epsilon = 0\.625 was asked"):
        job.run(config, private, ledger=ledger)
    # The debit, and that it was drawn from.
    assert ledger.verify().num_rows == 3


@pytest.mark.slow
def test_chains_of_which_nothing_is_proved_need_a_ledger_that_allows_them(tmp_path, capfd):
    config = write_job(tmp_path, ("[figure]", "[figure]"))
    words = ["release", str(config), "--no-figure", "--output", str(tmp_path / "output"), "--ledger"]
    for name, more in (("strict", ()), ("lax", ("--allow-unproved",))):
        path = str(tmp_path / name)
        assert cli.main(["ledger", "create", path, "--epsilon", "1", "--delta", "1e-3", *WORDS, *more]) == 0
        assert cli.main([*words, path]) == (0 if more else 2)
    said = capfd.readouterr()
    assert "nothing is proved of this release" in said.err
    assert Ledger(tmp_path / "strict").verify().num_rows == 1
    assert Ledger(tmp_path / "lax").verify().not_proved == [2, 5]
    for action in ("show", "verify"):
        assert cli.main(["ledger", action, str(tmp_path / "lax")]) == 0
        assert "NOT PROVED of 2 of the 2 debits" in capfd.readouterr().out


def test_parts_of_an_analysis_never_add_up_to_more_than_the_whole():
    for whole in (1, 3, 5, 0.1, 7 / 3):
        for count in range(1, 60):
            # As decimals, which is how an epsilon is meant.
            assert sum(Fraction(repr(part)) for part in equal_parts(whole, count)) <= Fraction(repr(whole))
