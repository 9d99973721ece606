"""Columns of synthetic tables read each cell by itself, and refuse what would read the data."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kngjax as kng

# Of other cells than these nothing may change: numbers, text, and what is neither.
HOSTILE = (
    *(np.nan, None, np.inf, -np.inf, 1e300, -1e300, "1e999", "north", "", "  ", 2j, object(), [1], (), True),
    *(decimal.Decimal("NaN"), decimal.Decimal(7), datetime.date(2020, 1, 1), b"south", 10**400, np.float32(5.5)),
)
COLUMNS = {
    "category": kng.synthesis.Category("it", ["north", "south"], missing="missing"),
    "category of numbers": kng.synthesis.Category("it", [1, 2, 3], missing=3),
    "ordinal": kng.synthesis.Ordinal("it", 0, 9, missing=4),
    "count": kng.synthesis.Count("it", 0, 90, missing=4),
    "numeric": kng.synthesis.Numeric("it", 1.0, 90.0, heaps=[0.0], missing=4.0),
}
PLAIN = ("north", "2", 3, 4.6, "south", 0, 8.0, "nonsense")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_hostile_cell_changes_no_other(name):
    column = COLUMNS[name]
    alone = [column.read([cell])[0] for cell in PLAIN]
    assert alone == column.read(list(PLAIN)).tolist()
    for cell in HOSTILE:
        every = np.empty(len(PLAIN) + 1, object)
        every[:-1], every[-1] = PLAIN, cell
        for given in (every, pd.Series(every), every.tolist()):
            found = column.read(given)
            assert found[:-1].tolist() == alone
            assert np.isfinite(found[-1])
        if column.labels:
            assert 0 <= column.places(found)[-1] < len(column.labels)


def test_levels_that_are_not_declared_count_as_other_and_what_is_none_as_missing():
    column = COLUMNS["category"]
    assert column.labels == ("north", "south", "other", "missing")
    cells = ["south", "west", None, "", 7, np.nan, "north"]
    for given in (cells, pd.Series(cells, dtype=object)):
        assert column.shown(column.read(given)).tolist() == [
            *("south", "other", "missing", "missing", "other", "missing", "north")
        ]
    numbers = COLUMNS["category of numbers"]
    assert numbers.labels == (1, 2, 3, "other")
    for given in ([1, 9, np.nan], pl.Series([1.0, 9.0, None])):
        assert numbers.shown(numbers.read(given)).tolist() == [1, "other", 3]
    assert kng.synthesis.Category("it", [0, 1], other=1).labels == (0, 1)


# Categories, which of their labels a table may have, and the type that it has.
DRAWN = {
    "text beside numbers": (kng.synthesis.Category("it", (1, 2)), [True, True, False], np.int64),
    "text of a number": (kng.synthesis.Category("it", (1, 2), other="1"), [True, True], np.int64),
    "text of a float": (kng.synthesis.Category("it", (0.5, 2), other="0.50"), [True, True], np.float64),
    "text of a bool": (kng.synthesis.Category("it", (False, True), other="true"), [True, True], np.bool_),
    "missing as text of a number": (kng.synthesis.Category("it", (1, 2), missing="2"), [True, True, False], np.int64),
    "both as text of numbers": (
        kng.synthesis.Category("it", (1, 2), other="01", missing="2.0"),
        [True, True],
        np.int64,
    ),
    "missing as text": (kng.synthesis.Category("it", (1, 2), missing="none"), [True] * 4, object),
    "text": (kng.synthesis.Category("it", ("a", "b")), [True] * 3, object),
}


@pytest.mark.parametrize(("column", "drawn", "kind"), DRAWN.values(), ids=DRAWN)
def test_no_declared_level_is_left_out_of_tables(column, drawn, kind):
    assert column.drawn.tolist() == drawn
    shown = column.shown(np.flatnonzero(drawn))
    assert shown.dtype == kind
    assert shown[: len(column.levels)].tolist() == list(column.levels)


@pytest.mark.parametrize("package", [pd.Series, pl.Series])
def test_numbers_are_clipped_and_rounded_one_by_one(package):
    cells = package([-5.0, 0.4, 2.6, 95.0])
    assert COLUMNS["ordinal"].read(cells).tolist() == [0, 0, 3, 9]
    assert COLUMNS["count"].read(cells).tolist() == [0, 0, 3, 90]
    assert COLUMNS["numeric"].read(cells).tolist() == [1.0, 1.0, 2.6, 90.0]
    found = COLUMNS["numeric"].read(package([0.0, 5.0]))
    assert COLUMNS["numeric"].places(found).tolist() == [0, 1]
    assert COLUMNS["numeric"].are_beside_heaps(found).tolist() == [False, True]
    assert COLUMNS["numeric"].facts == ((0.0, 90.0), None)


@pytest.mark.parametrize(
    "column",
    [
        kng.synthesis.Category("it", [7, 8]),
        kng.synthesis.Ordinal("it", 0, 9),
        kng.synthesis.Count("it", 0, 9),
        kng.synthesis.Numeric("it", 0.0, 9.0),
    ],
    ids=lambda column: type(column).__name__,
)
def test_missing_cells_without_a_policy_are_refused_without_a_value(column):
    with pytest.raises(ValueError, match="missing") as told:
        column.read([7, 1.2345, np.nan])
    assert "1.2345" not in str(told.value)
    # No column drops records.
    assert "drop" not in str(told.value)


REFUSED = {
    "levels auto": (lambda: kng.synthesis.Category("it", "auto"), ValueError, "read off the data"),
    "parents auto": (lambda: kng.synthesis.Ordinal("it", 0, 9, parents="auto"), ValueError, "read off the data"),
    "given auto": (lambda: kng.synthesis.Count("it", 0, 9, given="auto"), ValueError, "read off the data"),
    "quantile levels auto": (lambda: kng.synthesis.Numeric("it", 0, 9, levels="AUTO"), ValueError, "read off the data"),
    "heaps auto": (lambda: kng.synthesis.Numeric("it", 0, 9, heaps="auto"), ValueError, "read off the data"),
    "bounds auto": (lambda: kng.synthesis.Numeric("it", "auto", 9), ValueError, "read off the data"),
    "dither auto": (lambda: kng.synthesis.Numeric("it", 0, 9, dither="auto"), ValueError, "read off the data"),
    "one level": (lambda: kng.synthesis.Category("it", ["a"], other="a"), ValueError, "one level alone"),
    "no level": (lambda: kng.synthesis.Category("it", []), ValueError, "needs levels"),
    "levels twice": (lambda: kng.synthesis.Category("it", ["1", " 1"]), ValueError, "all different"),
    "levels of mixed kinds": (lambda: kng.synthesis.Category("it", ["a", 1]), TypeError, "all text or all"),
    "a level as text": (lambda: kng.synthesis.Category("it", "north"), TypeError, "must be a list"),
    "no other": (lambda: kng.synthesis.Category("it", ["a", "b"], other=None), ValueError, "other of 'it'"),
    "other no level": (lambda: kng.synthesis.Category("it", ["a", "b"], other=["c"]), TypeError, "must be a level"),
    "no name": (lambda: kng.synthesis.Category(3, ["a", "b"]), TypeError, "name"),
    "bounds turned": (lambda: kng.synthesis.Ordinal("it", 9, 0), ValueError, "lower one first"),
    "no bounds": (lambda: kng.synthesis.Numeric("it", None, 9), TypeError, "must be numbers"),
    "infinite bounds": (lambda: kng.synthesis.Numeric("it", 0, np.inf), ValueError, "finite"),
    "parts of numbers": (lambda: kng.synthesis.Ordinal("it", 0.5, 9), ValueError, "whole numbers"),
    "a long table": (lambda: kng.synthesis.Ordinal("it", 0, 10**6), ValueError, "take Count"),
    "missing beyond": (lambda: kng.synthesis.Ordinal("it", 0, 9, missing=10), ValueError, "missing of 'it'"),
    "missing as text": (lambda: kng.synthesis.Numeric("it", 0, 9, missing="drop"), ValueError, "missing of 'it'"),
    "missing records": (
        lambda: kng.synthesis.Category("it", ["a", "b"], missing="drop"),
        ValueError,
        "every record is kept",
    ),
    "log of 0": (lambda: kng.synthesis.Numeric("it", 0, 9, transform="log"), ValueError, "lower end above 0"),
    "a root": (lambda: kng.synthesis.Numeric("it", 1, 9, transform="sqrt"), ValueError, "'log' or None"),
    "parents without heaps": (lambda: kng.synthesis.Numeric("it", 1, 9, parents=["a"]), ValueError, "given="),
    "heaps twice": (lambda: kng.synthesis.Numeric("it", 1, 9, heaps=[0, 0.0]), ValueError, "all different"),
    "heaps of nothing": (lambda: kng.synthesis.Numeric("it", 1, 9, heaps=[np.nan]), ValueError, "finite"),
    "a whole formula": (lambda: kng.synthesis.Count("it", 0, 9, given="it ~ a"), ValueError, "right side"),
    "no formula": (lambda: kng.synthesis.Count("it", 0, 9, given=["a"]), TypeError, "right side"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_cannot_be_are_refused(case):
    make, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        make()
