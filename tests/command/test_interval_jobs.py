"""Jobs that ask for intervals: of a study and of one mechanism, printed, written, resumed, drawn; and refusals."""

import json
import re

import numpy as np
import pytest

import kngjax as kng
from kngjax.command import cli, job, planning, report
from kngjax.command import config as configuration
from kngjax.estimators import public_facts
from kngjax.releases import release
from tests.command.forms import STUDY_WITH_INTERVALS, write
from tests.command.small_jobs import SECRET_WAGE, workers, write_job

# Of the small job: one quantile on a line, by groups.
PLAIN = (
    (
        '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2\n',
        '[intervals]\ncovariance = "groups"\nnumber = 4\nlevel = 0.9\n',
    ),
    ('[[terms]]\ncolumn = "experience"\nunits = "years"\nbounds = [0, 60]\ndegree = 2\n', ""),
    ('x = "experience"\nat = { education = 12 }\n', 'x = "education"\n'),
    ("epsilon = 0.3", "epsilon = 8"),
)


@pytest.fixture(autouse=True)
def no_previews(request, monkeypatch):
    """Plans come without previews of their noise, each of which compiles, but in slow tests."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(public_facts, "expecting", lambda analysis, count, *_: analysis)


def write_study(folder, *changes, **others):
    return write("intervals", folder, *changes, **others)


def read(folder, *changes):
    return configuration.read(write_study(folder, *changes))


def written(output):
    return json.loads((output / "releases.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_regressions_of_a_study_have_them_and_resume_with_them(tmp_path, capfd, monkeypatch):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    config, output = write_study(tmp_path), tmp_path / "output"
    words = ["release", str(config), "--output", str(output), "--ledger", str(ledger.path)]
    drawn, count = release._draw_numbers, iter(range(20))

    def fails_once(*arguments):
        # The estimate and its sums are the first two draws, and of three groups this is the second.
        if next(count) == 3:
            raise RuntimeError("the search was given up")
        return drawn(*arguments)

    monkeypatch.setattr(release, "_draw_numbers", fails_once)
    assert cli.main(words) == 1
    assert cli.main([*words, "--resume"]) == 0
    said, whole = capfd.readouterr().out, written(output)
    assert "interval: each 0.9, by H and J at the released value, from sums with noise of their own for 0.4" in said
    assert "interval: each 0.9, by the mean of 3 disjoint groups' estimates" in said
    assert "All together: pure 12.5-differential privacy" in said
    linear, quantiles = (kng.Results.from_json(json.dumps(one["result"])) for one in whole["analyses"][:2])
    assert [len(one.releases[0].parts) for one in (linear, quantiles)] == [2, 3]
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
    assert [len(one.parts) for one in results.releases] == [2, 2]
    assert f"{results.conf_int(0.9).loc['south', ('education', 'lower')]:.5g}" in said
    assert results.guarantee.epsilon == 12.0
    assert ledger.verify().spent.epsilon == whole["privacy"]["epsilon"] == 18.5
    for resumed in ([*words, "--resume"], [*words[:-2], "--resume"]):
        assert cli.main(resumed) == 0
        assert written(output) == whole
    assert ledger.verify().spent.epsilon == 18.5


def test_a_plan_says_what_they_cost(tmp_path, capfd):
    assert cli.main(["plan", str(write_study(tmp_path))]) == 0
    said = capfd.readouterr().out
    assert "robust: KNormMechanism by" in said
    assert "tau = 0.5: 3 times KNG with QuantileLoss by" in said
    assert "All together: pure 12.5-differential privacy" in said


def asked(config):
    made = job.planned(config, 1500)
    return [None if one.part.plan is None else one.part.plan.covariance for one in made.steps]


def test_each_analysis_may_have_its_own_or_none(tmp_path):
    own = 'intervals = { covariance = "groups", number = 3 }'
    assert asked(read(tmp_path, (own, "intervals = false"))) == [kng.Sandwich(share=0.4), None, None]


@pytest.mark.slow
def test_without_a_covariance_the_narrowest_one_is_taken(tmp_path):
    assert asked(read(tmp_path)) == [kng.Sandwich(share=0.4), kng.Groups(3), None]
    narrowest = ('covariance = "sandwich"\nshare = 0.4\n', "")
    assert isinstance(asked(read(tmp_path, narrowest))[0], kng.Sandwich | kng.Groups)


def write_public_rows(folder, number=400):
    """Of records that are none of the data, in own units."""
    random = np.random.default_rng(5)
    lines = [f"{education:.2f},{region}" for education, region in zip(
        random.uniform(4.0, 18.0, number), random.choice(["north", "south"], number), strict=True
    )]  # fmt: skip
    (folder / "public.csv").write_text("education,region\n" + "\n".join(lines) + "\n", encoding="utf-8")


PUBLIC = ('covariance = "sandwich"\nshare = 0.4', 'covariance = "public_design"\nrows = "public.csv"\nshare = 0.1')


def test_public_rows_of_one_mechanism_become_those_of_the_basis(tmp_path):
    write_public_rows(tmp_path)
    text = (tmp_path / "public.csv").read_text(encoding="utf-8").splitlines()[1:]
    by_hand = [[float(line.split(",")[0]) / 9.0 - 1.0] for line in text]
    sums = ('covariance = "groups"\nnumber = 4', 'covariance = "public_design"\nrows = "public.csv"')
    single = configuration.read(write_job(tmp_path, *PLAIN, sums, data=workers(1500)))
    np.testing.assert_allclose(asked(single)[0].rows, by_hand, rtol=1e-12)


@pytest.mark.slow
def test_public_rows_of_a_study_become_those_of_the_basis(tmp_path):
    write_public_rows(tmp_path)
    with_levels = ('formula = "log(wage) ~ education"\nepsilon', 'formula = "log(wage) ~ education + region"\nepsilon')
    config = read(tmp_path, PUBLIC, with_levels)
    design, groups, _ = asked(config)
    assert (type(design), type(groups), design.share) == (kng.PublicDesign, kng.Groups, 0.1)
    text = (tmp_path / "public.csv").read_text(encoding="utf-8").splitlines()[1:]
    cells = [line.split(",") for line in text]
    by_hand = [[float(education) / 9.0 - 1.0, float(region == "south")] for education, region in cells]
    np.testing.assert_allclose(np.asarray(design.rows), by_hand, rtol=1e-12)


def test_what_public_rows_hold_decides_which_job_it_is(tmp_path):
    own = ('{ covariance = "groups", number = 3 }', '{ covariance = "public_design", rows = "public.csv" }')
    identities = []
    for number in (400, 300):
        write_public_rows(tmp_path, number)
        identities.append({job.identity(read(tmp_path, change)) for change in (PUBLIC, own)})
        # Where the files are is no matter.
        assert {job.identity(read(tmp_path, change)) for change in (PUBLIC, own)} == identities[-1]
    assert len(identities[0] | identities[1]) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            'rows = "workers.csv"',
            r"\[intervals\] rows: workers.csv is the file of \[data\], and its records are private",
        ),
        ('rows = "absent.csv"', r"\[intervals\] rows: there is no file of data absent.csv"),
        ("rows = 3", r"\[intervals\] rows: must be text"),
        ("", r"\[intervals\] rows: must name a file of public records"),
        ('rows = "other.csv"', "number 1, linear_regression: .*education"),
        ('rows = "public.csv"\nnumber = 4', "unknown setting 'number'; known are"),
    ],
)
def test_rows_that_are_not_public_or_not_there_are_refused(tmp_path, change, words):
    write_public_rows(tmp_path)
    (tmp_path / "other.csv").write_text("experience\n3\n4\n", encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        job.planned(read(tmp_path, (PUBLIC[0], PUBLIC[1].replace('rows = "public.csv"', change))), 1500)


def test_public_rows_are_not_the_file_of_data_that_the_command_names_either(tmp_path):
    write_public_rows(tmp_path)
    own = ('{ covariance = "groups", number = 3 }', '{ covariance = "public_design", rows = "public.csv" }')
    sums = ('covariance = "groups"\nnumber = 4', 'covariance = "public_design"\nrows = "public.csv"')
    single = configuration.read(write_job(tmp_path, *PLAIN, sums, data=workers(1500)))
    for config in (single, read(tmp_path, PUBLIC), read(tmp_path, own)):
        with pytest.raises(ValueError, match=r"rows: .*public.csv is the file of data, and its records are private"):
            job.load(config, tmp_path / "public.csv")
        assert len(job.load(config, tmp_path / "workers.csv")) == 1500


def test_intervals_of_no_regression_are_refused(tmp_path):
    regressions = STUDY_WITH_INTERVALS[
        STUDY_WITH_INTERVALS.index("[[analyses]]") : STUDY_WITH_INTERVALS.rindex("[[analyses]]")
    ]
    with pytest.raises(ValueError, match=r"\[intervals\] are of regressions, and none is asked for"):
        read(tmp_path, (regressions, ""))


@pytest.mark.takes(5, "compiles the previews of three covariances")
def test_a_job_of_one_mechanism_has_them(tmp_path):
    config = configuration.read(write_job(tmp_path, *PLAIN, data=workers(1500)))
    results = job.run(config, job.load(config), progress=False, directory=tmp_path)
    made = job.planned(config, 1500)
    said = made.text(results)
    found = planning.interval(config, results[0])
    assert "tau = 0.25: 0.9 intervals, each by itself, by the mean of 4 disjoint groups' estimates" in said
    assert re.search(rf"education +{found.lower[1]:.4g} +{found.upper[1]:.4g}", said)
    assert "4 times, of groups of records" in said
    assert "all releases of the same records together: pure epsilon = 8, the exact sum of 4 + 4".lower() in said.lower()
    of_file = json.loads((tmp_path / "releases.json").read_text(encoding="utf-8"))
    assert of_file["privacy"]["epsilon"] == 8.0
    np.testing.assert_allclose(of_file["releases"][0]["intervals"]["lower"], found.lower)
    again = kng.ReleaseWithIntervals.from_json(json.dumps(of_file["releases"][0]["release"]))
    assert again == results[0].release
    resumed = job.run(config, job.load(config), progress=False, directory=tmp_path, resume=True)
    assert [one.release for one in resumed] == [one.release for one in results]
    figure = report.figure(config, results)
    assert len(figure.axes[0].collections) == 2
    assert "total ε = 8" in figure._supxlabel.get_text()
    ends = report.band(config, results[0], np.array([9.0]))
    assert ends.shape == (2, 1)
    assert ends[0] < report.curves(config, results, np.array([9.0]))[0] < ends[1]


@pytest.mark.slow
def test_sums_of_one_mechanism_cost_what_it_says(tmp_path):
    sums = ('covariance = "groups"\nnumber = 4', 'covariance = "sandwich"')
    config = configuration.read(write_job(tmp_path, PLAIN[0], *PLAIN[1:], sums, data=workers(1500)))
    results = job.run(config, job.load(config), progress=False)
    said = job.planned(config, 1500).text(results)
    assert "pure epsilon = 8, the exact sum of 4 + 4" in said
    assert "the sum of those of the estimates and of what their intervals are made of" in said
    assert [len(one.release.parts) for one in results] == [2, 2]
    cost = job.to_dict(config, job.planned(config, 1500), results)["privacy"]["epsilon"]
    assert cost == pytest.approx(8.0, abs=1e-9)


MEAN = """
[data]
path = "workers.csv"

[response]
column = "education"
bounds = [0, 18]

[mechanism]
type = "k_norm"

[privacy]
epsilon = 4
adjacency = "replace"

[intervals]
covariance = "sandwich"
"""


def test_a_mean_has_one_as_printed_and_as_written(tmp_path):
    workers(1500).write_csv(tmp_path / "workers.csv")
    (tmp_path / "mean.toml").write_text(MEAN, encoding="utf-8")
    config = configuration.read(tmp_path / "mean.toml")
    results = job.run(config, job.load(config), progress=False, directory=tmp_path)
    found = results[0].release.intervals(0.95)
    said = job.planned(config, 1500).text(results)
    assert re.search(rf"mean of education +{found.lower[0]:.4g} +{found.upper[0]:.4g}", said)
    of_file = json.loads((tmp_path / "releases.json").read_text(encoding="utf-8"))
    np.testing.assert_allclose(of_file["releases"][0]["intervals"]["upper"], found.upper)


def test_a_sampler_beside_them_is_refused(tmp_path):
    sampler = ("[privacy]", '[sampler]\ntype = "Exact"\n\n[privacy]')
    with pytest.raises(ValueError, match=r"\[sampler\] and \[intervals\] do not go together"):
        configuration.read(write_job(tmp_path, *PLAIN, sampler))


# Of a small share, which says nothing.
SMALL = ('covariance = "groups"\nnumber = 4', 'covariance = "sandwich"\nshare = 0.001\nbandwidth = 0.2')


def test_a_job_of_one_mechanism_pays_for_no_intervals_that_public_facts_foresee_to_have_no_ends(tmp_path, capfd):
    """It is refused as a study is, with ways that have ends, in words of the file; force goes on."""
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(30), adjacency="replace", dataset="workers")
    config = write_job(tmp_path, *PLAIN, SMALL, data=workers(1500))
    words = ["release", str(config), "--output", str(tmp_path / "output"), "--ledger", str(ledger.path)]
    assert cli.main(words) == 2
    said = capfd.readouterr().err
    assert "[intervals] no intervals are expected of KNG" in said
    assert re.search(r'There would be covariance = "\w+", share = 0\.3.* up to [\d.]+ times as wide', said)
    assert "Nothing was spent; [intervals] force = true" in said
    assert not ledger.read().what
    forced = write_job(tmp_path, *PLAIN, (SMALL[0], SMALL[1] + "\nforce = true"))
    assert job.identity(configuration.read(forced)) == job.identity(configuration.read(config))
    assert cli.main(["plan", str(forced), "--records", "1500"]) == 0


def test_without_a_guess_of_n_a_job_says_that_nothing_is_foreseen(tmp_path, capfd):
    private = ('adjacency = "replace"', 'adjacency = "add_remove"')
    assert cli.main(["plan", str(write_job(tmp_path, *PLAIN, SMALL, private))]) == 0
    assert "Not foreseen: whether intervals will have ends" in capfd.readouterr().out
    with pytest.raises(ValueError, match=r"force: is said of each analysis, force = true in \[\[analyses\]\]"):
        read(tmp_path, ("share = 0.4", "share = 0.4\nforce = true"))


def test_a_guess_of_n_is_no_part_of_a_job_whose_n_is_public(tmp_path):
    guess = ("number = 4", "number = 4\nnum_records = 1500")
    with pytest.raises(ValueError, match=r"\[intervals\] num_records: under replace n is public"):
        configuration.read(write_job(tmp_path, *PLAIN, guess))
    private = ('adjacency = "replace"', 'adjacency = "add_remove"')
    config = configuration.read(write_job(tmp_path, *PLAIN, guess, private))
    assert job.identity(config) != job.identity(configuration.read(write_job(tmp_path, *PLAIN, private)))
