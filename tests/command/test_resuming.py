"""What was paid for is never lost and never paid for twice: jobs that fail or are killed, and are resumed."""

import functools
import json
import os
import time
from fractions import Fraction

import pytest

import kngjax as kng
from kngjax.command import cli, job, job_file, resuming
from kngjax.releases import release
from kngjax.study import public_facts
from tests.command.small_jobs import PROVED, label, workers, write_job

LABELS = [label(level) for level in (0.1, 0.25, 0.5, 0.75, 0.9)]
EACH = Fraction(1, 8)


@pytest.fixture(autouse=True)
def no_previews(monkeypatch):
    """Plans come without previews of their noise, each of which compiles."""
    monkeypatch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)


@pytest.fixture
def small(tmp_path):
    """A job with five proved releases, its ledger and its output."""
    config = job_file.read(write_job(tmp_path, *PROVED, data=workers(40)))
    budget = kng.Budget.pure(100)
    ledger = kng.Ledger.create(tmp_path / "budget.ledger", budget, adjacency="replace", dataset="workers")
    output = tmp_path / "output"
    output.mkdir()
    return config, ledger, output


def written(output):
    return json.loads((output / "releases.json").read_text(encoding="utf-8"))


def released(output):
    """The labels and the releases of an output."""
    [entry] = written(output)["analyses"]
    return entry["labels"], [json.dumps(one, sort_keys=True) for one in entry["result"]["releases"]]


def values(ran):
    """The releases of a run, of the one analysis that there is."""
    _, [results] = ran
    return [one.to_json() for one in results.releases]


@pytest.fixture
def fails_at(monkeypatch):
    """Let the draw number k fail, as a search that gives up."""

    def at(number):
        drawn, count = release.drawn, iter(range(1, 100))

        def draw(*arguments):
            if next(count) == number:
                raise RuntimeError("the search was given up")
            return drawn(*arguments)

        monkeypatch.setattr(release, "drawn", draw)

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
    labels, first = released(output)
    assert labels == LABELS[:2]
    assert partial["missing"] == sorted(LABELS[2:])
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
    assert released(output)[0] == LABELS
    assert written(output)["missing"] == []
    # All is there: nothing is drawn and nothing is paid.
    (output / "releases.json").unlink()
    again = job.run(config, workers(40), progress=False, ledger=ledger, directory=output, resume=True)
    assert values(again) == values(results)
    assert ledger.verify().num_rows == whole.num_rows
    assert list(map(json.loads, released(output)[1])) == list(map(json.loads, values(results)))


@pytest.mark.slow
def test_without_a_ledger_the_output_is_resumed(small, fails_at):
    config, _, output = small
    fails_at(5)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, directory=output)
    _, first = released(output)
    results = job.run(config, workers(40), progress=False, directory=output, resume=True)
    assert len(first) == 4
    assert values(results)[:4] == first
    forced = job.run(config, workers(40), progress=False, directory=output, force=True)
    assert not set(values(forced)) & set(values(results))


def test_releases_that_a_ledger_did_not_pay_for_are_not_resumed_with_it(small):
    config, ledger, output = small
    kept = [{"labels": LABELS[:1], "result": {"releases": [{}]}}]
    whole = {"identity": config.identity, "analyses": kept}
    (output / "releases.json").write_text(json.dumps(whole), encoding="utf-8")
    assert list(resuming.earlier_releases(config, None, output, resume=True).releases) == LABELS[:1]
    with pytest.raises(ValueError, match="were not debited from this ledger"):
        job.run(config, workers(40), progress=False, ledger=ledger, directory=output, resume=True)
    assert ledger.verify().num_rows == 1
    # Its own are, whatever the file holds.
    debit = ledger.reserve(kng.Guarantee.pure(EACH, "replace"), {"identity": config.identity, "run": 1, "label": "x"})
    debit.commit('"kept"', exact=True)
    assert resuming.earlier_releases(config, ledger, output, resume=True) == resuming.Earlier(1, {"x": '"kept"'})


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
    kept = json.loads((output / "kept.json").read_text())
    assert written(output) == kept
    assert cli.main(words) == 2
    assert "releases.json exists, and was paid for" in capfd.readouterr().err
    assert ledger.verify().num_rows == 16
    # Of another job, though nothing else is known of it.
    for text in ('{"analyses": []}', "no JSON", "[]"):
        (output / "releases.json").write_text(text)
        os.truncate(output / "releases.json", len(text))
        other = [*words[:-2], "--resume"]
        assert cli.main(other) == 2
        assert "is of another job" in capfd.readouterr().err
        assert (output / "releases.json").read_text() == text
    assert cli.main(["ledger", "releases", str(ledger.path)]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert [entry["what"]["label"] for entry in printed] == LABELS
    assert [entry["release"] for entry in printed] == kept["analyses"][0]["result"]["releases"]
    with pytest.raises(SystemExit):
        cli.main([*words, "--resume", "--force"])


def test_what_another_identity_released_is_not_resumed(small, capfd):
    """Neither from its output nor from its ledger, where another identity was paid for."""
    config, ledger, output = small
    whole = json.dumps({"name": config.name, "identity": "0" * 64, "data": "workers.csv", "releases": []})
    (output / "releases.json").write_text(whole, encoding="utf-8")
    words = ["release", str(config.path), "--output", str(output), "--resume"]
    assert cli.main(words) == 2
    assert "is of another job: move it" in capfd.readouterr().err
    assert (output / "releases.json").read_text() == whole
    (output / "releases.json").unlink()
    about = {"job": config.name, "identity": "0" * 64, "data": "workers.csv", "run": 1, "label": "tau = 0.1"}
    ledger.reserve(kng.Guarantee.pure(EACH, "replace"), about).commit('"kept"', exact=True)
    rows = ledger.read().num_rows
    assert cli.main([*words, "--ledger", str(ledger.path)]) == 2
    assert "holds releases of a job 'small' with other settings, which" in capfd.readouterr().err
    assert ledger.read().num_rows == rows


def test_releases_of_another_file_of_data_are_not_taken_for_those_of_this_one(tmp_path, capfd):
    ledger = kng.Ledger.create(tmp_path / "b.ledger", kng.Budget.pure(2), adjacency="replace", dataset="workers")
    one = ("tau = [0.25, 0.5]", "tau = 0.5")
    config = write_job(tmp_path, *PROVED[:-2], one, PROVED[-1], data=workers(40))
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
    read = job_file.read(config)
    with pytest.raises(ValueError, match=r"was released from workers.*, and this run is of a frame without a name"):
        resuming.earlier_releases(read, ledger, None, resume=True)
    with pytest.raises(SystemExit):
        cli.main(["release", "--help"])
    assert "its content is not compared" in " ".join(capfd.readouterr().out.split())


@pytest.mark.takes(3, "three runs of a job")
@pytest.mark.parametrize("is_on_ledger", [True, False])
def test_a_file_that_was_written_since_is_not_mixed_in(small, fails_at, is_on_ledger):
    config, ledger, output = small
    given = {"ledger": ledger} if is_on_ledger else {}
    ask = functools.partial(job.run, config, workers(40), progress=False, directory=output, **given)
    data = output / "workers.parquet"
    data.touch()
    fails_at(2)
    with pytest.raises(kng.ReleaseFailed):
        ask()
    then = time.time() + 60
    os.utime(data, (then, then))
    with pytest.raises(ValueError, match="was written after the first release of this job"):
        ask(resume=True, files=[data])
    os.utime(data, (then - 3600, then - 3600))
    ask(resume=True, files=[data])
    os.utime(data, (then, then))
    # Nothing is missing, and nothing mixed.
    ask(resume=True, files=[data])


def test_a_ledger_without_room_for_a_lost_debit_says_what_to_do(small, fails_at, tmp_path):
    config, _, _ = small
    exact = kng.Budget.pure(Fraction(5, 8))
    ledger = kng.Ledger.create(tmp_path / "exact.ledger", exact, adjacency="replace", dataset="workers")
    fails_at(2)
    with pytest.raises(kng.ReleaseFailed):
        job.run(config, workers(40), progress=False, ledger=ledger)
    advice = r"A debit of this job that led to no release stays spent: release the missing regressions alone"
    for again in ({"resume": True}, {"force": True}):
        with pytest.raises(kng.ledger.BudgetExceeded, match=advice):
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


def test_intervals_of_counted_groups_are_resumed_for_the_counts_that_were_paid_for(tmp_path, fails_at):
    """The counts are kept, by the ledger and by the output, and decide the intervals of a later run."""
    text = (
        '[data]\npath = "workers.csv"\n[study]\nadjacency = "replace"\n[study.bounds]\nwage = [20, 20000]\n'
        '[study.levels]\nregion = ["north", "south"]\n[[analyses]]\nmethod = "quantile_interval"\ncolumn = "wage"\n'
        'tau = 0.5\nby = ["region"]\nepsilon = 10\n'
    )
    (tmp_path / "groups.toml").write_text(text, encoding="utf-8")
    config, output = job_file.read(tmp_path / "groups.toml"), tmp_path / "output"
    output.mkdir()
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(100), adjacency="replace", dataset="workers")
    for paying in (ledger, None):
        fails_at(2)
        with pytest.raises(kng.ReleaseFailed):
            job.run(config, workers(600), progress=False, ledger=paying, directory=output, force=paying is None)
    assert ledger.verify().spent.epsilon == pytest.approx(10.0)
    label_of_counts, label_of_intervals = [step.label for step in job.planned_for(config, workers(600)).steps]
    assert written(output)["missing"] == [label_of_intervals]
    counts = written(output)["analyses"][0]["result"]["releases"]
    _, [kept] = job.run(config, workers(600), progress=False, directory=output, resume=True)
    assert [json.loads(kept.counted.releases[0].to_json())] == counts
    assert [one.intervals().method.split(" of ")[-1] for one in kept.values()] == [
        str(one.releases[0].certificate.mechanism["num_records"]) for one in kept.values()
    ]
    assert written(output)["analyses"][0]["labels"] == [label_of_counts, label_of_intervals]
    # All is there, and nothing is drawn.
    _, [again] = job.run(config, workers(600), progress=False, directory=output, resume=True)
    assert again.to_json() == kept.to_json()
    spent = ledger.verify()
    (output / "releases.json").unlink()
    _, [paid] = job.run(config, workers(600), progress=False, ledger=ledger, directory=output, resume=True)
    assert ledger.verify().spent.epsilon == pytest.approx(18.0)
    assert json.loads(spent.releases[min(spent.releases)]) == json.loads(paid.counted.releases[0].to_json())
