"""What was paid for is never lost and never paid for twice: jobs that fail or are killed, and are resumed."""

import json
import os
from fractions import Fraction

import pytest

import kngjax as kng
from kngjax.command import cli, job, resuming
from kngjax.command import config as configuration
from kngjax.releases import release
from tests.command.small_jobs import PROVED, workers, write_job

LABELS = [f"tau = {level}" for level in (0.1, 0.25, 0.5, 0.75, 0.9)]
EACH = Fraction(1, 8)


@pytest.fixture
def small(tmp_path):
    """A job with five proved releases, its ledger and its output."""
    config = configuration.read(write_job(tmp_path, *PROVED, data=workers(40)))
    budget = kng.Budget.pure(100)
    ledger = kng.Ledger.create(tmp_path / "budget.ledger", budget, adjacency="replace", dataset="workers")
    output = tmp_path / "output"
    output.mkdir()
    return config, ledger, output


def written(output):
    return json.loads((output / "releases.json").read_text(encoding="utf-8"))


def values(results):
    return [result.release.to_json() for result in results]


@pytest.fixture
def fails_at(monkeypatch):
    """Let the draw number k fail, as a search that gives up."""

    def at(number):
        drawn, count = release._draw_numbers, iter(range(1, 100))

        def draw(*arguments):
            if next(count) == number:
                raise RuntimeError("the search was given up")
            return drawn(*arguments)

        monkeypatch.setattr(release, "_draw_numbers", draw)

    yield at
    monkeypatch.undo()


@pytest.mark.slow
def test_a_job_that_failed_midway_pays_for_the_missing_releases_only(small, fails_at):
    config, ledger, output = small
    fails_at(3)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, ledger=ledger, directory=output)
    book = ledger.verify()
    assert (len(book.reserved), len(book.releases), book.unfinished) == (3, 2, [8])
    partial = written(output)
    assert [entry["label"] for entry in partial["releases"]] == LABELS[:2]
    assert partial["missing"] == LABELS[2:]
    first = [json.dumps(entry["release"], sort_keys=True) for entry in partial["releases"]]
    assert first == [book.releases[2], book.releases[5]]
    # Neither again in silence, nor over the output.
    with pytest.raises(ValueError, match=r"exists, and was paid for: --resume"):
        job.run(config, workers(40), ledger=ledger, directory=output)
    with pytest.raises(ValueError, match="the ledger holds 2 releases of this very job"):
        job.run(config, workers(40), ledger=ledger)
    assert ledger.verify().num_rows == book.num_rows
    results = job.run(config, workers(40), progress=False, ledger=ledger, directory=output, resume=True)
    assert values(results)[:2] == first
    whole = ledger.verify()
    # A debit that led to nothing is not drawn from again: what its draw did may have depended on the data.
    assert (whole.unfinished, len(whole.reserved)) == ([8], 6)
    assert whole.spent.exact_epsilon == 6 * EACH
    assert [entry["label"] for entry in written(output)["releases"]] == LABELS
    assert written(output)["missing"] == []
    # All is there: nothing is drawn and nothing is paid.
    (output / "releases.json").unlink()
    again = job.run(config, workers(40), progress=False, ledger=ledger, directory=output, resume=True)
    assert values(again) == values(results)
    assert ledger.verify().num_rows == whole.num_rows
    assert [entry["release"] for entry in written(output)["releases"]] == [json.loads(one) for one in values(results)]


@pytest.mark.slow
def test_without_a_ledger_the_output_is_resumed(small, fails_at):
    config, _, output = small
    fails_at(5)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, directory=output)
    first = [json.dumps(entry["release"], sort_keys=True) for entry in written(output)["releases"]]
    results = job.run(config, workers(40), progress=False, directory=output, resume=True)
    assert len(first) == 4
    assert values(results)[:4] == first
    forced = job.run(config, workers(40), progress=False, directory=output, force=True)
    assert not set(values(forced)) & set(values(results))


def test_releases_that_a_ledger_did_not_pay_for_are_not_resumed_with_it(small):
    config, ledger, output = small
    label = {"identity": job.identity(config), "releases": [{"label": LABELS[0], "release": {}}]}
    (output / "releases.json").write_text(json.dumps(label), encoding="utf-8")
    assert list(job.earlier_releases(config, None, output, resume=True).releases) == LABELS[:1]
    with pytest.raises(ValueError, match="were not debited from this ledger"):
        job.run(config, workers(40), progress=False, ledger=ledger, directory=output, resume=True)
    assert ledger.verify().num_rows == 1
    # Its own are, whatever the file holds.
    debit = ledger.reserve(
        kng.Guarantee.pure(EACH, "replace"), {"identity": job.identity(config), "run": 1, "label": "x"}
    )
    ledger.commit(debit, '"kept"', exact=True)
    assert job.earlier_releases(config, ledger, output, resume=True) == resuming.Earlier(1, {"x": '"kept"'})


@pytest.mark.slow
def test_a_second_run_that_was_asked_for_is_paid_for_and_resumed_by_itself(small, fails_at):
    config, ledger, _ = small
    first = job.run(config, workers(40), progress=False, ledger=ledger)
    fails_at(2)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, ledger=ledger, force=True)
    second = job.run(config, workers(40), progress=False, ledger=ledger, resume=True)
    assert not set(values(first)) & set(values(second))
    assert ledger.verify().spent.exact_epsilon == 11 * EACH


def test_the_commands(small, capfd, monkeypatch):
    config, ledger, output = small
    words = ["release", str(config.path), "--output", str(output), "--ledger", str(ledger.path)]
    assert cli.main(words) == 0
    (output / "releases.json").rename(output / "kept.json")
    for more, message in (([], "the ledger holds 5 releases of this very job"), (["--resume"], None)):
        assert cli.main([*words, *more]) == (2 if message else 0)
        assert message is None or message in capfd.readouterr().err
    assert written(output)["releases"] == json.loads((output / "kept.json").read_text())["releases"]
    assert cli.main(words) == 2
    assert "releases.json exists, and was paid for" in capfd.readouterr().err
    assert ledger.verify().num_rows == 16
    # Of another job, though nothing else is known of it.
    for text in ('{"releases": []}', "no JSON", "[]"):
        (output / "releases.json").write_text(text)
        os.truncate(output / "releases.json", len(text))
        other = [*words[:-2], "--resume"]
        assert cli.main(other) == 2
        assert "is of another job" in capfd.readouterr().err
        assert (output / "releases.json").read_text() == text
    assert cli.main(["ledger", "releases", str(ledger.path)]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert [entry["what"]["label"] for entry in printed] == LABELS
    kept = json.loads((output / "kept.json").read_text())["releases"]
    assert [entry["release"] for entry in printed] == [entry["release"] for entry in kept]
    with pytest.raises(SystemExit):
        cli.main([*words, "--resume", "--force"])


def test_releases_of_another_file_of_data_are_not_taken_for_those_of_this_one(tmp_path, capfd):
    ledger = kng.Ledger.create(tmp_path / "b.ledger", kng.Budget.pure(2), adjacency="replace", dataset="workers")
    one = ("tau = [0.25, 0.5]", "tau = 0.5")
    config = write_job(tmp_path, *PROVED[:3], one, PROVED[-1], data=workers(40))
    workers(41).write_csv(tmp_path / "workers2.csv")
    words = ["release", str(config), "--no-figure", "--output", str(tmp_path / "one")]
    assert cli.main([*words, "--ledger", str(ledger.path)]) == 0
    assert json.loads((tmp_path / "one" / "releases.json").read_text())["data"] == "workers.csv"
    assert ledger.read().what[2]["what"]["data"] == "workers.csv"
    rows, other = ledger.verify().num_rows, ["--data", str(tmp_path / "workers2.csv")]
    elsewhere = [*words[:-1], str(tmp_path / "two"), "--ledger", str(ledger.path)]
    capfd.readouterr()
    for asked in (words, [*words, "--ledger", str(ledger.path)], elsewhere):
        assert cli.main([*asked, *other, "--resume"]) == 2
        said = capfd.readouterr()
        assert "was released from workers.csv, and this run is of workers2.csv" in said.err
        assert "--force releases and pays anew" in said.err
        assert said.out == ""
    assert ledger.verify().num_rows == rows
    # Nor is it paid for in silence; forced it is, and each is resumed by itself.
    assert cli.main([*elsewhere, *other]) == 2
    assert "releases of this very job, of workers.csv: --resume" in capfd.readouterr().err
    assert ledger.verify().num_rows == rows
    assert cli.main([*elsewhere, *other, "--force"]) == 0
    assert ledger.verify().num_rows == 2 * rows - 1
    again = [*words, "--ledger", str(ledger.path), "--resume"]
    assert cli.main([*again, "--data", str(tmp_path / "workers.csv")]) == 0
    assert ledger.verify().num_rows == 2 * rows - 1
    # A frame that a program passes has no name.
    read = configuration.read(config)
    with pytest.raises(ValueError, match=r"was released from workers.*, and this run is of a frame without a name"):
        job.earlier_releases(read, ledger, None, resume=True)
    with pytest.raises(SystemExit):
        cli.main(["release", "--help"])
    assert "its content is not compared" in " ".join(capfd.readouterr().out.split())


def test_a_ledger_without_room_for_a_lost_debit_says_what_to_do(small, fails_at, tmp_path):
    config, _, _ = small
    exact = kng.Budget.pure(Fraction(5, 8))
    ledger = kng.Ledger.create(tmp_path / "exact.ledger", exact, adjacency="replace", dataset="workers")
    fails_at(2)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, ledger=ledger)
    advice = r"A debit of this job that led to no release stays spent: release the missing regressions alone"
    for again in ({"resume": True}, {"force": True}):
        with pytest.raises(kng.BudgetExceeded, match=advice):
            job.run(config, workers(40), progress=False, ledger=ledger, **again)
    assert ledger.verify().num_rows == 6


def test_a_file_that_was_replaced_is_on_the_disk_with_its_folder(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def remembered(descriptor):
        done.append(os.path.samestat(os.fstat(descriptor), tmp_path.stat()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", remembered)
    monkeypatch.setattr(os, "replace", lambda *names: done.append("replaced") or replace(*names))
    resuming.replace(tmp_path / "releases.json", "{}")
    assert done == [False, "replaced", True]


@pytest.mark.parametrize("broken", ["fsync", "replace", "chmod"])
def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch, broken):
    path = tmp_path / "releases.json"
    resuming.replace(path, "old")
    assert path.stat().st_mode & 0o777 == 0o666 & ~resuming._umask()

    def fail(*_):
        raise OSError("no space")

    with monkeypatch.context() as context:
        context.setattr(os, broken, fail)
        with pytest.raises(OSError, match="no space"):
            resuming.replace(path, "new")
    assert [one.name for one in tmp_path.iterdir()] == ["releases.json"]
    assert path.read_text() == "old"
    resuming.replace(path, "new")
    assert path.read_text() == "new"
