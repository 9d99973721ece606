"""Jobs written as studies: every method of a study by its own arguments, refusals, output, resuming, plans."""

import inspect
import json
import pathlib
import re

import pytest

import kngjax as kng
from kngjax.command import cli, job, job_file
from kngjax.command.job_plan import JobPlan
from kngjax.releases import release
from kngjax.study import public_facts
from kngjax.study.asked import AbstractAnalyses
from tests.command.forms import FORMULA, write
from tests.command.small_jobs import PROVED, SECRET_WAGE, label, workers, write_job
from tests.words import words_of

LABELS = [
    f"1. quantile regression {FORMULA}, tau = 0.25",
    f"1. quantile regression {FORMULA}, tau = 0.5",
    "2. 0.5-quantile of wage, quantile",
]


def test_heaped_columns_are_said_in_the_file(tmp_path):
    text = "[study.missing]\nwage = 20"
    path = write_study(tmp_path, (text, f"{text}\n\n[study.dither]\nwage = 2.5"))
    made = JobPlan(job_file.read(path), 40)
    assert [one.part.mechanism.bounds.dither for one in made.steps] == [2.5, 2.5, 2.5]
    assert [one.part.mechanism.bounds.dither_of_log for one in made.steps] == [True, True, False]
    path = write_study(tmp_path, (text, f"{text}\n\n[study.dither]\npay = 2.5"))
    with pytest.raises(ValueError, match=r"\[study\] dither is for columns of numbers, and 'pay' has no bounds"):
        JobPlan(job_file.read(path), 40)


def test_bounds_of_a_file_may_be_dates(tmp_path):
    lines = [f"{2020 + place % 4}-07-0{1 + place % 9}" for place in range(200)] + ["9999-12-31", "1899-12-30"]
    (tmp_path / "days.csv").write_text("\n".join(["day", *lines]))
    (tmp_path / "days.toml").write_text(
        '[data]\npath = "days.csv"\n[study]\nadjacency = "replace"\n[study.bounds]\n'
        "day = [2020-01-01, 2024-01-01T00:00:00]\n[study.missing]\nday = 2021-01-01\n"
        '[study.missing_codes]\nday = [9999-12-31, "1899-12-30"]\n'
        '[[analyses]]\nmethod = "mean"\ncolumn = "day"\nepsilon = 50\n'
    )
    config = job_file.read(tmp_path / "days.toml")
    assert json.loads(json.dumps(config.public))["study"]["bounds"]["day"] == ["2020-01-01", "2024-01-01T00:00:00"]
    assert config.public["study"]["missing_codes"]["day"] == ["9999-12-31", "1899-12-30"]
    frame = job.load(config)
    planned = JobPlan(config, 202)
    assert planned.steps[0].analysis.told[0].endswith("count as missing: 9999-12-31 or 1899-12-30 in day")
    records = planned.steps[0].analysis.records(frame)
    # Nineteen thousand days and some after 1970.
    assert 18262.0 <= records[1].min() < 18500.0
    assert 19500.0 < records[1].max() <= 19723.0
    assert records[1][200:].tolist() == [18628.0, 18628.0]


def test_an_exposure_and_a_formula_without_an_intercept_are_said_in_the_file(tmp_path):
    (tmp_path / "calls.csv").write_text("calls,years,age\n3,1.5,40\n0,0.1,30\n")
    text = (
        '[data]\npath = "calls.csv"\n[study]\nadjacency = "replace"\n[study.bounds]\n'
        'calls = [0, 20]\nyears = [0.5, 2]\nage = [20, 60]\n[[analyses]]\nmethod = "poisson_regression"\n'
        'formula = "calls ~ 0 + age"\nexposure = "years"\nmost_rate = 12.5\nepsilon = 2\n'
    )
    (tmp_path / "calls.toml").write_text(text)
    config = job_file.read(tmp_path / "calls.toml")
    assert config.public["analyses"][0]["most_rate"] == 12.5
    [step] = JobPlan(config, 2).steps
    assert step.part.mechanism.bounds.weight == 2.0
    assert not step.part.mechanism.bounds.intercept
    columns, rates, weights = step.analysis.records(job.load(config))
    assert columns.ravel().tolist() == pytest.approx([40 / 60, 0.5])
    assert (rates.tolist(), weights.tolist()) == ([2.0, 0.0], [1.5, 0.5])
    (tmp_path / "calls.toml").write_text(text.replace("exposure", "offset"))
    with pytest.raises(ValueError, match="unknown key 'offset'"):
        job_file.read(tmp_path / "calls.toml")


@pytest.fixture
def previews():
    """Says that a test plans with previews."""


@pytest.fixture(autouse=True)
def no_previews(request, monkeypatch):
    """Plans come without previews of their noise, each of which compiles, but where a test says so."""
    if "previews" not in request.fixturenames:
        monkeypatch.setattr(public_facts, "expecting", lambda analysis, count, *_: analysis)


def write_study(folder, *changes):
    return write("study", folder, *changes)


def read(folder, *changes):
    return job_file.read(write_study(folder, *changes))


@pytest.fixture
def ledger(tmp_path):
    return kng.Ledger.create(tmp_path / "b.ledger", kng.Budget.pure(1), adjacency="replace", dataset="workers")


def written(output):
    return json.loads((output / "releases.json").read_text(encoding="utf-8"))


def test_the_example_of_the_page_is_a_study(tmp_path):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "jobs.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.toml").write_text(example, encoding="utf-8")
    steps = JobPlan(job_file.read(tmp_path / "page.toml"), 28_155).steps
    assert [step.part.label for step in steps] == ["tau = 0.1", "tau = 0.5", "tau = 0.9", "quantile"]


def test_every_method_that_spends_can_be_asked_for():
    own = {name for name, _ in inspect.getmembers(AbstractAnalyses, inspect.isfunction) if not name.startswith("_")}
    known = job_file.methods()
    assert set(known) <= own
    assert {"quantile_regression", "linear_regression", "logistic_regression", "mean", "quantile"} <= set(known)


def test_settings_reach_the_methods(tmp_path):
    more = 'method = "linear_regression"\nformula = "visits ~ education"\ndomain = { l1_ball = 30.0 }'
    config = read(tmp_path, ('method = "median"\ncolumn = "wage"', more))
    steps = JobPlan(config, 40).steps
    mechanism = steps[2].part.mechanism
    assert isinstance(mechanism, kng.KNG)
    assert isinstance(mechanism.domain, kng.L1Ball)
    assert float(mechanism.epsilon) == 0.5
    assert [float(step.part.mechanism.epsilon) for step in steps[:2]] == [0.125, 0.125]
    assert steps[0].analysis.response.missing == 20


BY = (
    'method = "median"\ncolumn = "wage"\nepsilon = 0.5',
    'method = "median"\nby = ["region"]\ncolumn = "wage"\nepsilon = 1',
)


def test_an_analysis_may_be_of_every_group_for_one_debit(tmp_path):
    step = JobPlan(read(tmp_path, BY), 40).steps[-1]
    assert "2. 0.5-quantile of wage by region" in step.label
    with pytest.raises(ValueError, match="'by' must name one or several columns"):
        JobPlan(read(tmp_path, (BY[0], BY[1].replace('["region"]', "3"))), 40)


@pytest.mark.slow
def test_groups_of_a_study_are_released_and_resumed(tmp_path, capfd):
    paid = kng.Ledger.create(tmp_path / "b.ledger", kng.Budget.pure(2), adjacency="replace", dataset="workers")
    config, output = write_study(tmp_path, BY), tmp_path / "output"
    words = ["release", str(config), "--output", str(output), "--ledger", str(paid.path)]
    assert cli.main(["plan", str(config), "--records", "40", "--ledger", str(paid.path)]) == 0
    assert "pure 1.25-differential privacy" in capfd.readouterr().out
    assert cli.main(words) == 0
    assert "region" in capfd.readouterr().out
    kept = written(output)
    assert (kept["missing"], kept["privacy"]["epsilon"]) == ([], 1.25)
    grouped = kept["analyses"][1]
    assert grouped["labels"] == ["2. 0.5-quantile of wage by region"]
    found = kng.Results.from_json(json.dumps(grouped["result"]))
    assert (found.keys(), found.guarantee.epsilon) == (["north", "south"], 1.0)
    # Everything is there: nothing is drawn or paid again.
    assert cli.main([*words, "--resume"]) == 0
    assert written(output) == kept
    assert paid.verify().spent.epsilon == 1.25
    assert cli.main(["check", str(config)]) == 0


def test_a_cross_table_names_its_columns(tmp_path):
    table = 'method = "crosstab"\ncolumns = ["region", "visits"]\nedges = { visits = [0, 10, 20] }\nepsilon = 1'
    old = 'method = "median"\ncolumn = "wage"\nepsilon = 0.5\nforce = true'
    step = JobPlan(read(tmp_path, (old, table)), 40).steps[-1]
    assert step.label == "2. cross table, region × visits" or "region" in step.label
    assert step.part.mechanism.dimension == 4
    with pytest.raises(ValueError, match="'columns' must name several columns"):
        JobPlan(read(tmp_path, (old, table.replace('["region", "visits"]', '"region"'))), 40)


def test_a_study_is_released_written_resumed_and_read_back(tmp_path, ledger, capfd, monkeypatch):
    config, output = write_study(tmp_path), tmp_path / "output"
    words = ["release", str(config), "--output", str(output), "--ledger", str(ledger.path)]
    drawn, count = release.drawn, iter(range(9))

    def fails_once(*arguments):
        if next(count) == 1:
            raise RuntimeError("the search was given up")
        return drawn(*arguments)

    monkeypatch.setattr(release, "drawn", fails_once)
    assert cli.main(words) == 1
    assert "--resume pays for the rest only" in capfd.readouterr().err
    partial = written(output)
    assert partial["missing"] == LABELS[1:]
    assert [one["labels"] for one in partial["analyses"]] == [LABELS[:1]]
    assert cli.main(words) == 2
    assert cli.main([*words, "--resume"]) == 0
    said = capfd.readouterr().out
    for text in ("Private quantile regression", FORMULA, "All together: pure 0.75-differential privacy", "wage in [20"):
        assert text in said
    whole, book = written(output), ledger.verify()
    assert whole["missing"] == []
    assert [label for one in whole["analyses"] for label in one["labels"]] == LABELS
    assert whole["analyses"][0]["result"]["releases"][0] == partial["analyses"][0]["result"]["releases"][0]
    # The draw that failed stays paid for.
    assert book.spent.epsilon == 0.875
    assert [book.what[number]["what"]["label"] for number in book.reserved] == [LABELS[0], LABELS[1], *LABELS[1:]]
    assert whole["privacy"]["epsilon"] == 0.75
    first, second = (json.dumps(one["result"]) for one in whole["analyses"])
    fit, median = kng.Results.from_json(first), kng.Results.from_json(second)
    assert f"{fit.params['tau = 0.5']['education']:.5g}" in said
    assert fit.predict({"education": 12}).shape == (1, 2)
    assert 20 <= median.value <= 20000
    assert str(SECRET_WAGE) not in said + (output / "releases.json").read_text()
    # Without the ledger the output itself is resumed, and nothing is drawn.
    assert cli.main([*words[:-2], "--resume"]) == 0
    assert written(output) == whole
    assert ledger.verify().num_rows == book.num_rows


def test_the_owner_is_told_whether_the_data_fit_a_study(tmp_path, capfd):
    config = write_study(tmp_path, ("wage = 20\n", ""), ("visits", "member"))
    workers(40).with_columns(wage=None).write_csv(tmp_path / "workers.csv")
    assert cli.main(["check", str(config)]) == 2
    told = words_of(capfd.readouterr().out)
    assert "wage 1 1 " in told
    assert "region 0 0 " in told
    assert f"{LABELS[0]}: REFUSED: the response, column 'wage', has cells" in told
    assert cli.main(["check", str(write_study(tmp_path))]) == 0
    assert f"{LABELS[2]}: its records can be prepared" in words_of(capfd.readouterr().out)


@pytest.mark.default_cases("study")
@pytest.mark.parametrize("form", ["study", "regressions"])
@pytest.mark.usefixtures("previews")
def test_a_plan_tells_costs_and_reads_no_value(tmp_path, ledger, capfd, form):
    config = write_study(tmp_path) if form == "study" else write_job(tmp_path, *PROVED)
    (tmp_path / "workers.csv").unlink()
    words = ["plan", str(config), "--records", "40", "--ledger", str(ledger.path)]
    assert cli.main(words) == 0
    said = words_of(capfd.readouterr().out)
    if form == "study":
        # Long names take several lines, and numbers stand in the first.
        assert re.search(r"1\. quantile regression log.* KNG by Lattice proved 0\.125 0 .*, tau = 0\.25 1\. ", said)
        assert f"{LABELS[2]} PrivateQuantile by Lattice proved 0.5 0 " in said
        assert "all together: pure 0.75-differential privacy" in said
    else:
        assert f"{label(0.9)} KNG by Lattice proved 0.125 0 " in said
        assert "all together: pure 0.625-differential privacy" in said
    assert "The ledger allows all: 1 of epsilon = 1 is left." in said
    ledger.reserve(kng.Guarantee.pure("0.5", "replace"))
    rows = ledger.read().num_rows
    assert cli.main(words) == 2
    assert "The ledger refuses: the budget does not allow this: 0.5 of epsilon = 1 is left" in capfd.readouterr().out
    assert ledger.read().num_rows == rows
    # Where n is public it is given, or that of the data.
    assert cli.main(words[:2]) == 2
    assert "there is no file of data" in capfd.readouterr().err
    workers(40).with_columns(wage=None).write_csv(tmp_path / "workers.csv")
    assert cli.main(words[:2]) == 0
    assert "No ledger is named." in capfd.readouterr().out


def test_a_plan_under_add_remove_needs_no_number_of_records(tmp_path, capfd):
    config = write_study(tmp_path, ('"replace"', '"add_remove"'), ('[data]\npath = "workers.csv"\n', ""))
    assert cli.main(["plan", str(config)]) == 0
    assert "all together: pure 0.75-" in capfd.readouterr().out
    assert cli.main(["plan", str(config), "--records", "40"]) == 2
    assert "the number of records is not public: leave it out" in capfd.readouterr().err
    replaced = write_study(tmp_path, ('[data]\npath = "workers.csv"\n', ""))
    assert cli.main(["plan", str(replaced)]) == 2
    assert "give it, --records N, or a file of data" in capfd.readouterr().err
    with pytest.raises(ValueError, match="give it, --records N"):
        JobPlan(job_file.read(replaced), None)


def test_a_linear_regression_may_be_fitted_by_least_squares_and_numbers_are_in_own_units(tmp_path):
    new = 'method = "linear_regression"\nformula = "visits ~ education"\nfit = "squared"\ndomain = { box = [-9, 9] }'
    config = read(tmp_path, ('method = "median"\ncolumn = "wage"', new))
    plan, results = job.run(config, workers(40), progress=False)
    fit = plan.steps[-1].part.mechanism
    assert isinstance(fit.loss, kng.SquaredLoss)
    numbers = plan.to_dict(results)["analyses"][1]["numbers"]
    assert [one["coefficient"] for one in numbers] == ["intercept", "education"]
    assert [one["estimate"] for one in numbers] == pytest.approx(results[1].params.tolist(), rel=1e-12)


@pytest.mark.slow
def test_a_quantile_process_is_asked_for_in_a_file_and_read_again(tmp_path, ledger):
    old = 'method = "quantile_regression"\nformula = "log(wage) ~ education"\ntau = [0.25, 0.5]'
    new = 'method = "quantile_process"\nformula = "log(wage) ~ education"\nlevels = [0.4, 0.6]'
    config = read(tmp_path, (old, new))
    output = tmp_path / "out"
    output.mkdir()
    _, (first, _) = job.run(config, workers(40), ledger=ledger, directory=output)
    result = written(output)["analyses"][0]
    assert result["labels"] == [f"1. quantile process {FORMULA}, tau = 0.4, 0.6"]
    again = kng.Results.from_json(json.dumps(result["result"]))
    assert again.predict({"education": 12}).shape == (1, 2)
    _, (resumed, _) = job.run(config, workers(40), ledger=ledger, directory=output, resume=True)
    assert resumed.to_json() == first.to_json()
