"""Each line of the table of figures is measured, and one that is not as promised fails the command."""

import pytest

from audits import figures, files, jobs
from audits.__main__ import main
from audits.frames import CellPairs
from kngjax.accounting.adjacency import Adjacency
from kngjax.inference import interval_plans
from kngjax.study.analyses import table_of

# A median, which needs no program that is compiled.
MEDIAN = (
    ("linear_regression", "quantile_regression"),
    ('fit = "squared"', "tau = 0.5"),
    ("{ l2_ball = 20.0 }", "{ box = [-20.0, 20.0] }"),
    ("poly(age, 2)", "age"),
)


@pytest.mark.slow
def test_worst_losses_are_near_what_is_claimed_and_never_above():
    lines = list(figures._worst_losses())
    assert len(lines) == 4
    assert all(line.passed for line in lines)
    assert all(str(line).startswith("ok") for line in lines)


def test_a_loss_above_the_claim_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(figures, "worst_losses", lambda: iter([("planted", 0.99, 1.01)]))
    monkeypatch.setattr(figures, "figures", lambda quick: figures._worst_losses())
    assert main(["--quick"]) == 1
    assert "FAILED  worst loss over epsilon, planted" in capsys.readouterr().out


@pytest.mark.slow
def test_the_quick_table_passes(capsys):
    assert main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ok  ") == 25
    assert "FAILED" not in printed


def test_sums_of_intervals_with_a_part_of_their_noise_fail_the_command(monkeypatch, capsys):
    quarter = property(lambda made: made.covariance.summing(made.mechanism, 4.0 * made.epsilons[0]))
    monkeypatch.setattr(interval_plans.RegressionPlan, "summing", quarter)
    monkeypatch.setattr(figures, "figures", lambda quick: [figures._replayed_sums(quick)])
    assert main(["--quick"]) == 1
    assert "FAILED  largest change of sums of intervals" in capsys.readouterr().out


def test_a_job_that_fails_on_a_hostile_file_has_its_one_text(monkeypatch):
    """The command's own text, which is not that of `kngjax.release`, whatever the cell was."""
    for old, new in MEDIAN:
        assert old in jobs._JOB
        monkeypatch.setattr(jobs, "_JOB", jobs._JOB.replace(old, new))

    def one_table(quick):
        monkeypatch.setattr(files, "file_pairs", lambda number, readers: CellPairs({}, 1, ()))
        hostile = files.hostile_files
        monkeypatch.setattr(files, "hostile_files", lambda number, *rest, **named: hostile(2, *rest, **named))
        found = list(jobs._files(quick))
        assert "0 failed" not in found[-1].found
        return found

    monkeypatch.setattr(figures, "figures", one_table)
    assert main(["--quick"]) == 0


def test_jobs_that_choose_by_a_private_number_of_records_fail_the_command(monkeypatch, capsys):
    monkeypatch.setattr(figures, "figures", lambda quick: [jobs._private_counts()])
    monkeypatch.setattr(jobs, "_INTERVALS", {"the default": jobs._INTERVALS["the default"]})
    monkeypatch.setattr(jobs, "_COUNTS", (374, 375))
    monkeypatch.setattr("kngjax.command.job.count_of", lambda file, frame: len(table_of(frame)))
    monkeypatch.setattr(Adjacency, "public_count", lambda adjacency, count: count)
    assert main(["--quick"]) == 1
    assert "FAILED  jobs that choose" in capsys.readouterr().out
