"""Types that hold neither numbers nor text are refused by themselves, in every container, before anything is spent."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data.column_types import Holds, holds
from kngjax.sklearn import PublicPipeline
from tests.offenders import every_case
from tests.sklearn.people import linear

N = 6
DAY, LENGTH = datetime.date(2020, 1, 1), datetime.timedelta(1)
OBJECTS = {"period": pd.period_range("2020", periods=N, freq="M"), "interval": pd.interval_range(0, N)}
NOTHING = {
    "pandas period": pd.Series(OBJECTS["period"]),
    "pandas interval": pd.Series(OBJECTS["interval"]),
    "pandas dates with a zone": pd.Series(pd.date_range("2020", periods=N, tz="UTC")),
    "pandas durations": pd.Series(pd.timedelta_range("1D", periods=N)),
    "pandas complex": pd.Series([1j] * N),
    "pandas category of periods": pd.Series(OBJECTS["period"]).astype("category"),
    "pandas category of intervals": pd.Series(OBJECTS["interval"]).astype("category"),
    "pandas category of durations": pd.Series(pd.timedelta_range("1D", periods=N)).astype("category"),
    "pandas category of complex": pd.Series([1j, 2j] * 3).astype("category"),
    "pandas sparse complex": pd.Series([1j] * N, dtype=pd.SparseDtype(complex)),
    "pandas arrow list": pd.Series([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "pandas arrow durations": pd.Series([LENGTH] * N, dtype=pd.ArrowDtype(pa.duration("us"))),
    "polars durations": pl.Series([LENGTH] * N),
    "polars times": pl.Series([datetime.time(1)] * N),
    "polars list": pl.Series([[1]] * N),
    "polars array": pl.Series([[1]] * N, dtype=pl.Array(pl.Int64, 1)),
    "polars struct": pl.Series([{"a": 1}] * N),
    "pyarrow durations": pa.array([LENGTH] * N),
    "pyarrow times": pa.array([datetime.time(1)] * N),
    "pyarrow list": pa.array([[1]] * N),
    "pyarrow struct": pa.array([{"a": 1}] * N),
    "pyarrow map": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
    "pyarrow intervals": pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval()),
    "pyarrow dictionary of durations": pa.array([LENGTH] * N).dictionary_encode(),
    "pyarrow extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * N, pa.binary(16))),
}
NUMBERS = {
    "numpy": np.ones(N, np.float16),
    "numpy bool": np.ones(N, bool),
    "pandas nullable": pd.Series([1] * N, dtype="UInt8"),
    "pandas boolean": pd.Series([True] * N, dtype="boolean"),
    "pandas sparse": pd.Series([1] * N, dtype=pd.SparseDtype(int)),
    "pandas arrow decimal": pd.Series([1] * N, dtype=pd.ArrowDtype(pa.decimal128(5))),
    "polars decimal": pl.Series([1] * N, dtype=pl.Decimal(5, 0)),
    "polars Int128": pl.Series([1] * N, dtype=pl.Int128),
    "pyarrow": pa.array([1] * N),
    "pyarrow runs": pa.RunEndEncodedArray.from_arrays(pa.array([N], pa.int32()), pa.array([1])),
}
CELLS = {
    "list": [1] * N,
    "numpy text": np.array(["a"] * N),
    "numpy objects": np.array([1] * N, dtype=object),
    "pandas objects of numbers": pd.Series([1.5] * N, dtype=object),
    "pandas category of numbers": pd.Series([1] * N, dtype="category"),
    "pandas category of text": pd.Series(["a"] * N, dtype="category"),
    "pandas text": pd.Series(["a"] * N),
    "pandas arrow dictionary": pd.Series(["a"] * N, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "polars text": pl.Series(["a"] * N),
    "polars enum": pl.Series(["a"] * N, dtype=pl.Enum(["a"])),
    "polars bytes": pl.Series([b"1"] * N),
    "polars objects": pl.Series([object()] * N, dtype=pl.Object),
    "polars nulls": pl.Series([None] * N),
    "pyarrow view": pa.array(["a"] * N, pa.string_view()),
    "pyarrow nulls": pa.nulls(N),
    "pyarrow dictionary": pa.array([1] * N).dictionary_encode(),
}


@pytest.mark.parametrize(
    ("what", "columns"), [(Holds.NOTHING, NOTHING), (Holds.NUMBERS, NUMBERS), (Holds.CELLS, CELLS)]
)
def test_what_a_type_holds(what, columns):
    assert {name: holds(column) for name, column in columns.items()} == dict.fromkeys(columns, what)


def _frame(column):
    if isinstance(column, pd.Series):
        return pd.DataFrame({"c": column, "d": 1.0})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"c": column, "d": [1.0] * N})
    return pa.table({"c": column, "d": [1.0] * N})


def _study(frame, ledger, **changed):
    facts = {"bounds": {"c": (0, 9), "d": (0, 9)}, "missing": {"c": 1}, "adjacency": "replace"}
    return kng.Study(frame, **facts | changed, ledger=ledger)


_LEVELS = {"bounds": {"d": (0, 9)}, "levels": {"c": ("a", "b")}, "missing": {"c": "a"}}

_TWO = {"bounds": {}, "levels": {"c": ("a", "b"), "d": (1, 2)}, "missing": {"c": "a"}}


def _release(frame, ledger):
    bounds = kng.Bounds({"c": (0, 9)}, (0, 9), missing=1.0)
    mechanism = kng.AdaSSP(bounds=bounds, epsilon=1.0, delta=1e-6, adjacency="replace")
    kng.release(mechanism, frame, np.ones(N), ledger=ledger)


def _pipeline(frame, ledger):
    last = linear(bounds={"c": (0, 9), "d": (0, 9)}, missing=1.0, ledger=ledger)
    PublicPipeline([("no", "passthrough"), ("last", last)]).fit(frame, np.ones(N))


# What spends, of a frame with a column "c" that can be read by no rule, and a ledger.
SPENDING = {
    "mean": lambda frame, ledger: _study(frame, ledger).mean("c", epsilon=1),
    "median": lambda frame, ledger: _study(frame, ledger).median("c", epsilon=1),
    "histogram": lambda frame, ledger: _study(frame, ledger, **_LEVELS).histogram("c", epsilon=1),
    "crosstab": lambda frame, ledger: _study(frame, ledger, **_TWO).crosstab("d", "c", epsilon=1),
    "count": lambda frame, ledger: _study(frame, ledger).count("c > 1", epsilon=1),
    "groups": lambda frame, ledger: _study(frame, ledger, **_LEVELS).by("c").mean("d", epsilon=1),
    "regressor": lambda frame, ledger: _study(frame, ledger).linear_regression("d ~ c", epsilon=1),
    "category": lambda frame, ledger: _study(frame, ledger, **_LEVELS).linear_regression("d ~ c", epsilon=1),
    "response": lambda frame, ledger: _study(frame, ledger).linear_regression("c ~ d", epsilon=1),
    "weights": lambda frame, ledger: _study(frame, ledger, weights="c").mean("d", epsilon=1),
    "synthesis": lambda frame, ledger: kng.synthesize(
        frame, [kng.synthesis.Ordinal("c", 0, 9, missing=1)], epsilon=1, adjacency="replace", ledger=ledger
    ),
    "release": _release,
    "estimator": lambda frame, ledger: linear(bounds={"c": (0, 9), "d": (0, 9)}, missing=1.0, ledger=ledger).fit(
        frame, np.ones(N)
    ),
    "pipeline": _pipeline,
}


@pytest.mark.parametrize("spending", SPENDING)
def test_such_types_are_refused_before_anything_is_spent(spending, tmp_path):
    ledger = kng.Ledger.create(tmp_path / "book", kng.Budget.approximate(99, 1e-3), adjacency="replace", dataset="d")
    with every_case() as case:
        for name, column in NOTHING.items():
            with case(name), pytest.raises(TypeError, match=r"type|not numbers"):
                SPENDING[spending](_frame(column), ledger)
    assert ledger.read().num_rows == 1
