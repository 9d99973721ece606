"""Jobs that ask for intervals: printed, written, resumed, drawn; and refusals."""

import json

import pytest

import kngjax as kng
from kngjax.command import cli, job, job_figure, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.releases import release
from kngjax.study import public_facts
from tests.command.forms import STUDY_WITH_INTERVALS, write
from tests.command.small_jobs import CHAIN, SECRET_WAGE, workers, write_job
from tests.words import words_of

# Of the small job: two quantiles on a line.
PLAIN = (
    (CHAIN, ""),
    (" + poly(experience, 2)", ""),
    ('x = "experience"\nat = { education = 12 }\n', 'x = "education"\n'),
    ("epsilon = 0.3", "epsilon = 8"),
    ("[figure]", '[intervals]\ncovariance = "sandwich"\nlevel = 0.9\n\n[figure]'),
)


@pytest.fixture(autouse=True)
def no_previews(request, monkeypatch):
    """Plans come without previews of their noise, each of which compiles, but in slow tests."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(public_facts, "expecting", lambda analysis, count, *_: analysis)


def write_study(folder, *changes, **others):
    return write("intervals", folder, *changes, **others)


def read(folder, *changes):
    return job_file.read(write_study(folder, *changes))


def written(output):
    return json.loads((output / "releases.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_regressions_of_a_study_have_them_and_resume_with_them(tmp_path, capfd, monkeypatch):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    config, output = write_study(tmp_path), tmp_path / "output"
    words = ["release", str(config), "--output", str(output), "--ledger", str(ledger.path)]
    drawn, count = release.drawn, iter(range(20))

    def fails_once(*arguments):
        # The estimate with H and its variances are the first three draws, and this is H of the other.
        if next(count) == 4:
            raise RuntimeError("the search was given up")
        return drawn(*arguments)

    monkeypatch.setattr(release, "drawn", fails_once)
    assert cli.main(words) == 1
    assert cli.main([*words, "--resume"]) == 0
    said, whole = capfd.readouterr().out, written(output)
    assert "interval: each 0.9, by the Hessian H at the released value (0.4 of epsilon)" in said
    assert "interval: each 0.9, by the Hessian H at the released value (0.35 of epsilon)" in said
    assert "All together: pure 12.5-differential privacy" in said
    linear, quantiles = (kng.Results.from_json(json.dumps(one["result"])) for one in whole["analyses"][:2])
    assert [len(one.releases[0].parts) for one in (linear, quantiles)] == [3, 3]
    assert f"{linear.conf_int(0.9).loc['education', 'lower']:.5g}" in said
    assert whole["privacy"]["epsilon"] == 12.5
    # The draw that failed stays paid for.
    assert ledger.verify().spent.epsilon == 18.5
    assert str(SECRET_WAGE) not in said + (output / "releases.json").read_text()
    # Of the ledger, and of the output alone: nothing is drawn.
    for resumed in ([*words, "--resume"], [*words[:-2], "--resume"]):
        assert cli.main(resumed) == 0
        assert written(output) == whole
    assert ledger.verify().spent.epsilon == 18.5


@pytest.mark.slow
def test_groups_of_a_table_have_them_by_one_debit_and_resume_with_them(tmp_path, capfd):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    by = (
        'epsilon = 6\n\n[[analyses]]\nmethod = "quantile',
        'by = ["region"]\nepsilon = 12\n\n[[analyses]]\nmethod = "quantile',
    )
    config, output = write_study(tmp_path, by, records=3000), tmp_path / "output"
    words = ["release", str(config), "--output", str(output), "--ledger", str(ledger.path)]
    assert cli.main(words) == 0
    said, whole = capfd.readouterr().out, written(output)
    results = kng.Results.from_json(json.dumps(whole["analyses"][0]["result"]))
    assert [len(one.parts) for one in results.releases] == [3, 3]
    assert f"{results.conf_int(0.9).loc['south', ('education', 'lower')]:.5g}" in said
    assert results.guarantee.epsilon == 12.0
    assert ledger.verify().spent.epsilon == whole["privacy"]["epsilon"] == 18.5
    for resumed in ([*words, "--resume"], [*words[:-2], "--resume"]):
        assert cli.main(resumed) == 0
        assert written(output) == whole
    assert ledger.verify().spent.epsilon == 18.5


def test_a_plan_says_what_they_cost(tmp_path, capfd):
    assert cli.main(["plan", str(write_study(tmp_path))]) == 0
    said = words_of(capfd.readouterr().out)
    assert "BlockSums by" in said
    assert "KNormMechanism by" in said
    assert "all together: pure 12.5-differential privacy" in said


def asked(config):
    made = JobPlan(config, 1500)
    return [None if one.part.plan is None else one.part.plan.covariance for one in made.steps]


def test_each_analysis_may_have_its_own_or_none_and_the_share_of_others_is_settled(tmp_path):
    own = 'intervals = { covariance = "sandwich", bandwidth = 0.3 }'
    assert asked(read(tmp_path, (own, "intervals = false"))) == [kng.Sandwich(share=0.4), None, None]
    made = JobPlan(read(tmp_path, ('covariance = "sandwich"\nshare = 0.4\n', "")), 1500)
    linear, quantile, median = (one.part.plan and one.part.plan.making().covariance for one in made.steps)
    assert (linear.share, quantile.bandwidth, median) == (0.35, 0.3, None)


@pytest.mark.parametrize("gone", ["groups", "independent_errors", "public_design"])
def test_what_older_versions_knew_is_refused_with_what_there_is(gone, tmp_path):
    with pytest.raises(ValueError, match=f"covariance: must be one of sandwich; not '{gone}'"):
        read(tmp_path, ('covariance = "sandwich"\nshare', f'covariance = "{gone}"\nshare'))


def test_intervals_of_no_regression_are_refused(tmp_path):
    regressions = STUDY_WITH_INTERVALS[
        STUDY_WITH_INTERVALS.index("[[analyses]]") : STUDY_WITH_INTERVALS.rindex("[[analyses]]")
    ]
    with pytest.raises(ValueError, match=r"\[intervals\] are of regressions and means, and none is asked for"):
        read(tmp_path, (regressions, ""))


def test_they_are_printed_written_drawn_and_resumed(tmp_path):
    config = job_file.read(write_job(tmp_path, *PLAIN, data=workers(1500)))
    plan, [result] = job.run(config, job.load(config), progress=False, directory=tmp_path)
    said = words_of(plan.text([result]))
    assert "interval: each 0.9, by the Hessian H at the released value (0.35 of epsilon)" in said
    of_file = written(tmp_path)
    assert of_file["privacy"]["epsilon"] == 8.0
    ends = result.conf_int(0.9)
    row = next(one for one in of_file["analyses"][0]["numbers"] if one["release"] == "tau = 0.5")
    assert row["lower"] == pytest.approx(ends[("tau = 0.5", "lower")].iloc[0])
    _, [resumed] = job.run(config, job.load(config), progress=False, directory=tmp_path, resume=True)
    assert resumed.to_json() == result.to_json()
    figure = job_figure.draw(config, result)
    assert len(figure.axes[0].collections) == 2
    assert "total ε = 8" in figure._supxlabel.get_text()


def test_a_sampler_beside_them_is_refused(tmp_path):
    with_sampler = job_file.read(write_job(tmp_path, *PLAIN[1:]))
    with pytest.raises(TypeError, match="a plan of several releases takes neither weights nor a sampler"):
        job.planned_for(with_sampler, workers(1500))


@pytest.mark.slow
def test_none_are_paid_for_that_the_public_rule_does_not_offer(tmp_path, capfd):
    """They are refused with what serves, in words of the file; force goes on."""
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    small = ('covariance = "sandwich"', 'covariance = "sandwich"\nshare = 0.001\nbandwidth = 0.2')
    config = write_job(tmp_path, *PLAIN, small, ("force = true\n", ""), data=workers(1500))
    words = ["release", str(config), "--output", str(tmp_path / "output"), "--ledger", str(ledger.path)]
    assert cli.main(words) == 2
    said = capfd.readouterr().err
    assert "no intervals are offered of" in said
    assert "intervals = false releases the estimate alone. Nothing was spent; force = true releases" in said
    assert not ledger.read().what
    assert cli.main(["plan", str(write_job(tmp_path, *PLAIN, small)), "--records", "1500"]) == 0
