"""Dates are days since 1970-01-01 where bounds are dates: each cell by itself, in every container."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data import dates
from tests.words import words_of

UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))
NEW_YEAR, NOON = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)
FIRST, LAST, FAR = datetime.date(2020, 1, 1), datetime.date(2024, 1, 1), datetime.date(9999, 12, 31)
WRITTEN = {
    NEW_YEAR: 18262.0,
    datetime.date(1969, 12, 31): -1.0,
    NOON: 18262.5,
    NOON.replace(tzinfo=UTC): 18262.5,
    datetime.datetime(2020, 1, 1, 1, tzinfo=EAST): 18261.0 + 23 / 24,
    datetime.datetime(1969, 12, 31, 18): -0.25,
    pd.Timestamp("2020-01-01T12"): 18262.5,
    np.datetime64("2020-01-01"): 18262.0,
    np.datetime64("1969-12-31T18"): -0.25,
    " 2020-01-01 ": 18262.0,
    "2020-01-01T12:00": 18262.5,
    "2020-01-01 12:00:00.5Z": 18262.0 + 43200.5 / 86400,
    "2020-01-01T00:00+02:00": 18261.0 + 22 / 24,
    b"2020-01-01": 18262.0,
}
# Counts of a unit from 1970 that no int64 of microseconds has: nearly the first ones, and such as wrap to other dates.
FIRST_FAR = {"s": 9223372036855, "ms": 9223372036854776, "D": 106751992, "h": 2562047789, "W": 15250285, "Y": 292278}
FAR_OFF = dict.fromkeys(("Y", "D", "m", "s", "ms", "10s"), 2**60) | {"M": 2**62, "W": 2**58, "h": 2**40}
NO_DATES = (
    *(None, 18262, 1.5, "", "2020-13-01", "2021-02-29", "20200101", "01/02/2020", "2020-W01-1", "2020-01-01T25:00"),
    *(np.datetime64(sign * far, unit) for unit, far in FAR_OFF.items() for sign in (1, -1)),
    *(pd.Timestamp(np.datetime64(2**53, "s")), np.datetime64("NaT", "as")),
    *(pd.NaT, np.datetime64("NaT", "D"), datetime.time(1), datetime.timedelta(1), [NEW_YEAR], math.nan, 1j),
)


@pytest.mark.parametrize("cell", WRITTEN, ids=str)
def test_a_date_is_the_days_since_1970(cell):
    assert dates.days(cell) == WRITTEN[cell]
    assert dates.numbers([cell, None]).tolist()[0] == WRITTEN[cell]


# Of far dates newer versions of NumPy have no text.
@pytest.mark.parametrize("cell", NO_DATES, ids=map(str, range(len(NO_DATES))))
def test_all_else_is_no_date(cell):
    assert math.isnan(dates.days(cell))


# Text that writes a number of days, None where none does.
SHORTEST = {
    **{18262.0: "2020-01-01", 18262.5: "2020-01-01T12:00", -0.25: "1969-12-31T18:00", 2932896.0: "9999-12-31"},
    **dict.fromkeys((math.nan, math.inf, 2932897.0, -719163.0)),
    18262.0 + 1 / 86400: "2020-01-01T00:00:01",
    18262.0 + 1.5 / 86400: "2020-01-01T00:00:01.500000",
    18262.1 + 1e-11: None,
}


@pytest.mark.parametrize("number", SHORTEST)
def test_days_are_written_as_they_are_read(number):
    assert dates.written(number) == SHORTEST[number]


@pytest.mark.parametrize("unit", FIRST_FAR)
def test_dates_of_numpy_are_their_own_or_none_as_far_as_they_go(unit):
    far = FIRST_FAR[unit]
    for sign in (1, -1):
        near, beyond = (np.datetime64(sign * count, unit) for count in (far - 2, far + 1))
        inside, outside = dates.numbers(np.array([near, beyond]))
        assert inside == pytest.approx(sign * 2**63 / 86_400_000_000, rel=1e-5)
        assert math.isnan(outside)


def test_far_dates_of_a_column_change_no_other():
    cells = np.array([0, 2**60, 86_400, -(2**60)], "datetime64[s]")
    far = {
        "numpy": cells,
        "pandas": pd.Series(cells),
        "pandas objects": pd.Series(list(map(pd.Timestamp, cells[[0, 2]])), dtype=object),
        "pandas arrow": pd.Series(cells).astype(pd.ArrowDtype(pa.timestamp("s"))),
        "pyarrow": pa.array(cells.astype(np.int64), pa.timestamp("s")),
        "polars": pl.Series(np.array([0, 2**62, 86_400_000, -(2**62)])).cast(pl.Datetime("ms")),
        "polars days": pl.Series([0, 2**31 - 1, 1, -(2**31)], dtype=pl.Int32).cast(pl.Date),
    }
    for name, column in far.items():
        expected = [0.0, 1.0] if name == "pandas objects" else [0.0, math.nan, 1.0, math.nan]
        np.testing.assert_array_equal(dates.numbers(column), expected, name)
    assert dates.days(pd.Timestamp(np.datetime64(2**40, "s"))) == 2**40 / 86_400
    assert -1.2e-11 < dates.days(np.datetime64(-1, "as")) < 0


DAYS = [NEW_YEAR, None, datetime.date(1969, 12, 31), datetime.date(2023, 6, 30), datetime.date(9999, 12, 31)]
TIMES = [NOON, None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2200, 1, 1, 1, 1), NOON]
OF_DAYS = {
    "pandas objects": lambda cells: pd.Series(cells, dtype=object),
    "pandas text": lambda cells: pd.Series([None if one is None else str(one) for one in cells], dtype="str"),
    "pandas s": lambda cells: pd.Series(np.array(cells, "datetime64[s]")),
    "pandas arrow": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.date32())),
    "polars": pl.Series,
    "polars text": lambda cells: pl.Series([None if one is None else str(one) for one in cells]),
    "pyarrow": pa.array,
    "numpy": lambda cells: np.array(cells, "datetime64[D]"),
    "list": list,
}
OF_TIMES = {
    "pandas objects": lambda cells: pd.Series(cells, dtype=object),
    "pandas us": lambda cells: pd.Series(np.array(cells, "datetime64[us]")),
    "pandas ns": lambda cells: pd.Series(np.array(cells, "datetime64[ns]")),
    "pandas zone": lambda cells: pd.Series(np.array(cells, "datetime64[us]")).dt.tz_localize(UTC).dt.tz_convert(EAST),
    "pandas zone of two words": lambda cells: OF_TIMES["pandas zone"](cells).dt.tz_convert("America/New_York"),
    "pandas zone with a number": lambda cells: OF_TIMES["pandas zone"](cells).dt.tz_convert("Etc/GMT+5"),
    "pandas arrow": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.timestamp("us"))),
    "polars": pl.Series,
    "polars ns": lambda cells: pl.Series(cells, dtype=pl.Datetime("ns")),
    "polars zone": lambda cells: pl.Series(cells).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
    "pyarrow": pa.array,
    "pyarrow ns": lambda cells: pa.array(cells, pa.timestamp("ns")),
    "pyarrow zone": lambda cells: pa.array(cells, pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize(("cells", "makes"), [(DAYS, OF_DAYS), (TIMES, OF_TIMES)], ids=["days", "times"])
def test_a_date_is_the_same_number_in_every_container_and_whatever_stands_beside_it(cells, makes):
    expected = [math.nan if cell is None else dates.days(cell) for cell in cells]
    for make in makes.values():
        np.testing.assert_array_equal(dates.numbers(make(cells)), expected)
        without = [cells[0], cells[0], *cells[2:]]
        np.testing.assert_array_equal(np.delete(dates.numbers(make(without)), 1), np.delete(expected, 1))


def _people(number=4000):
    generator = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + generator.integers(0, 1461, number).astype("timedelta64[D]")
    wage = 10.0 + 2.0 * (days - np.datetime64("2020-01-01")).astype(float) / 1461 + generator.normal(0, 0.1, number)
    return pd.DataFrame({"day": days.astype("datetime64[s]"), "wage": wage})


BOUNDS = {"day": (FIRST, LAST), "wage": (0, 20)}


@pytest.mark.takes(4, "compiles a regression")
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_studies_serve_dates_with_bounds_that_are_dates(make):
    people = _people()
    study = kng.Study(make(people), bounds=BOUNDS, adjacency="replace", missing={"day": FIRST})
    mean = study.mean("day", epsilon=50)
    truth = (people["day"] - pd.Timestamp("1970-01-01")).dt.total_seconds().mean() / 86400
    assert abs(mean.value - truth) < 2.0
    assert any("dates in day count as days since 1970-01-01" in one for one in mean.certificate.assumptions)
    middle = study.median("day", epsilon=50)
    assert abs((datetime.date(1970, 1, 1) + datetime.timedelta(middle.value) - datetime.date(2021, 12, 31)).days) < 40
    fit = study.linear_regression("wage ~ day", epsilon=50)
    assert abs(fit.params["day"] * 1461 - 2.0) < 0.2
    assert study.check().fits


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_bounds_policies_and_codes_may_be_dates_of_numpy(unit):
    low, high, code = np.array(["2020-01-01", "2024-01-01", "2200-01-01"], f"datetime64[{unit}]")
    said = {"missing": {"day": low}, "missing_codes": {"day": code}}
    facts = kng.Study(_people(), bounds={"day": (low, high)}, adjacency="replace", **said).facts
    assert facts.bounds == {"day": (18262, 19723)}
    assert facts.missing == {"day": 18262}
    assert facts.codes == {"day": (84006,)}


# Codes of a column of dates, and the words of the refusal.
CODES = {
    "a date": ([FAR], None),
    "several kinds": ([FAR, "1899-12-30", datetime.datetime(1970, 1, 1, 12)], None),
    "text": ("9999-12-31", None),
    "days": (2932896, None),
    "other text": (["refused"], "whose bounds are dates, must be dates, like '2020-01-31'"),
    "no day": ("2021-02-29", "whose bounds are dates, must be dates"),
    "no date": (pd.NaT, "whose bounds are dates, must be dates"),
    "the same": ([FAR, "9999-12-31"], "must be all different"),
}


@pytest.mark.parametrize(("codes", "refusal"), CODES.values(), ids=CODES)
@pytest.mark.parametrize("of_text", [False, True])
def test_codes_of_dates_are_dates(codes, refusal, of_text):
    days = [NEW_YEAR, FAR, LAST]
    people = pl.DataFrame({"day": list(map(str, days)) if of_text else days, "group": ["a", "a", "b"]})
    said = {"levels": {"group": ("a", "b")}, "adjacency": "add_remove", "missing": {"day": "drop", "group": "a"}}
    said |= {"bounds": {"day": (FIRST, LAST)}, "missing_codes": {"day": codes}}
    if refusal is not None:
        with pytest.raises((TypeError, ValueError), match=refusal):
            kng.Study(people, **said)
        return
    study = kng.Study(people, **said)
    plan = study.plan()
    analyses = [plan.sum("day", epsilon=1, force=True), plan.by("group").sum("day", epsilon=1, force=True)]
    read = [analyses[0].records(people)[1], analyses[1].records(people)[0][1]]
    for found in read:
        np.testing.assert_array_equal(found, [18262.0, np.nan, 19723.0])
    for analysis in analyses:
        assert any(one.startswith("cells that hold a code") and "9999-12-31" in one for one in analysis.told)
    assert "1 cells hold a code of missing_codes" in words_of(study.check().summary())


def test_groups_convert_each_column_of_dates_once(monkeypatch):
    converted, numbers = [], dates.numbers
    monkeypatch.setattr(dates, "numbers", lambda column: converted.append(len(column)) or numbers(column))
    people = pd.DataFrame({"day": [NEW_YEAR, LAST], "group": ["a", "b"]})
    facts = {"bounds": {"day": (FIRST, LAST)}, "levels": {"group": ("a", "b")}, "adjacency": "add_remove"}
    analysis = kng.Study(people, **facts).plan().by("group").sum("day", epsilon=1, force=True)
    found, places = analysis.records(people)
    assert (found[1].tolist(), places.tolist()) == ([18262.0, 19723.0], [0, 1])
    assert converted == [2]


def test_bounds_of_dates_are_for_columns_of_dates_and_nothing_is_spent(tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.pure(9), adjacency="replace", dataset="d")
    numbers = pd.DataFrame({"day": [1.0] * 50, "wage": 1.0})
    with pytest.raises(TypeError, match="the bounds of column 'day' are dates, and its type holds none"):
        kng.Study(numbers, bounds=BOUNDS, adjacency="replace", ledger=ledger).mean("day", epsilon=1, force=True)
    with pytest.raises(TypeError, match="holds neither numbers nor text"):
        kng.Study(_people(), bounds={"day": (0, 9)}, adjacency="replace", ledger=ledger).mean("day", epsilon=1)
    with pytest.raises(TypeError, match="two dates or two numbers"):
        kng.Study(_people(), bounds={"day": (FIRST, 20000)}, adjacency="replace")
    with pytest.raises(ValueError, match="the lower one first"):
        kng.Study(_people(), bounds={"day": (LAST, FIRST)}, adjacency="replace")
    assert ledger.read().num_rows == 1
