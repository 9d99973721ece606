"""One cell changes one record: wherever a column becomes numbers or text, in every container and every type."""

import datetime
import functools

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import kngjax as kng
from kngjax.data import conditions
from kngjax.data.records import prepare_rows
from kngjax.data.terms import Categorical, Design, Indicator, Polynomial, Product, Spline
from kngjax.sklearn import PublicPipeline, PublicTerms
from kngjax.sklearn.private_search import _Held
from kngjax.sklearn.public_pipeline import made_up_rows, with_public_types
from kngjax.study.classifications import Axis
from kngjax.study.grouping import Grouping
from kngjax.study.responses import Response
from kngjax.study.survey_weights import SurveyWeights
from tests.sklearn.people import linear

WHOLE, WORDS, TRUTHS, REALS = [1, 2, 1, 2, 2, 1], ["1", "2", "b", "2", "b", "1"], [True, False] * 3, [1.0, 2.5] * 3
MIXED = [1, "2", True, b"b", 2.0, np.float32(1)]
# What stands in the place of one cell, of each kind of cells.
ODD = {
    "integers": (WHOLE, (None, 2, 2**62 + 1)),
    "reals": (REALS, (None, 2.5, np.inf)),
    "bools": (TRUTHS, (None, False)),
    "texts": (WORDS, (None, "2", "1.0", "01", " 1", "", "1e999", "a\u0301\u00a0")),
    "mixed": (MIXED, (None, "2", 1.5, 10**400, [1], datetime.date(2020, 1, 1), 1j, float("nan"), b"\xff")),
}


def _pandas(dtype):
    return lambda values: pd.DataFrame({"c": pd.Series(values, dtype=dtype)})


def _category(categories, ordered=False):
    return _pandas(pd.CategoricalDtype(categories, ordered))


def _polars(dtype):
    return lambda values: pl.DataFrame({"c": pl.Series(values, dtype=dtype, strict=False)})


def _arrow(kind, encode=lambda array: array):
    return lambda values: pa.table({"c": encode(pa.array(values, kind))})


def _dictionary(kind):
    return _arrow(kind, lambda array: array.dictionary_encode())


def _in_bytes(values):
    return pa.table({"c": pa.array([None if one is None else one.encode() for one in values], pa.binary())})


SEEN = sorted({"1", "2", "b", *(odd for odd in ODD["texts"][1] if odd is not None)})
CONTAINERS = {
    "integers": {
        "pandas object": _pandas(object),
        "pandas Int64": _pandas("Int64"),
        "pandas float": _pandas(float),
        "pandas category": _category([1, 2, 2**62 + 1]),
        "pandas category of objects": _category(pd.Index([1, 2, 2**62 + 1], dtype=object)),
        "pandas arrow": _pandas(pd.ArrowDtype(pa.int64())),
        "pandas arrow dictionary": _pandas(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.int64()))),
        "pandas sparse": _pandas(pd.SparseDtype(float)),
        "polars": _polars(pl.Int64),
        "polars Int128": _polars(pl.Int128),
        "polars float": _polars(pl.Float64),
        "polars object": _polars(pl.Object),
        "pyarrow": _arrow(pa.int64()),
        "pyarrow dictionary": _dictionary(pa.int64()),
    },
    "reals": {
        "pandas": _pandas(float),
        "pandas Float64": _pandas("Float64"),
        "pandas category": _category([1.0, 2.5, np.inf]),
        "pandas sparse": _pandas(pd.SparseDtype(float)),
        "pandas arrow": _pandas(pd.ArrowDtype(pa.float32())),
        "polars": _polars(pl.Float32),
        "pyarrow": _arrow(pa.float64()),
        "pyarrow dictionary": _dictionary(pa.float64()),
    },
    "bools": {
        "pandas object": _pandas(object),
        "pandas boolean": _pandas("boolean"),
        "pandas category": _category([True, False]),
        "pandas arrow": _pandas(pd.ArrowDtype(pa.bool_())),
        "polars": _polars(pl.Boolean),
        "pyarrow": _arrow(pa.bool_()),
    },
    "texts": {
        "pandas object": _pandas(object),
        "pandas str": _pandas("str"),
        "pandas string": _pandas("string"),
        "pandas category": _category(SEEN),
        "pandas ordered category": _category(SEEN, ordered=True),
        "pandas arrow": _pandas(pd.ArrowDtype(pa.string())),
        "pandas arrow dictionary": _pandas(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        "polars": _polars(pl.String),
        "polars categorical": _polars(pl.Categorical),
        "polars enum": _polars(pl.Enum(SEEN)),
        "pyarrow": _arrow(pa.string()),
        "pyarrow large": _arrow(pa.large_string()),
        "pyarrow view": _arrow(pa.string_view()),
        "pyarrow dictionary": _dictionary(pa.string()),
        "pyarrow bytes": _in_bytes,
    },
    "mixed": {"pandas object": _pandas(object), "polars object": _polars(pl.Object)},
}
CATEGORY = Categorical("c", ("1", "2"), "2")
NUMBER = Polynomial("c", 0, 3, missing=1.0)
OTHER = Polynomial("d", 0, 2)
RESPONSE = Response("c", bounds=(0, 3), missing=1.0)


def _terms(*terms):
    return lambda frame: Design(terms).matrix(frame)


@functools.cache
def _fitted(is_pipeline):
    """A regressor of a column of numbers, or of its indicator, fitted to records of nobody."""
    frame = pd.DataFrame({"c": np.tile([1.0, 2.0], 200)})
    steps = [("no", "passthrough"), ("last", linear(bounds={"c": (0, 3)}, missing=1.0, missing_y=1.0))]
    estimator = PublicPipeline(steps) if is_pipeline else steps[-1][1]
    estimator.fit(frame, frame["c"])
    return estimator, estimator._admit(frame, frame["c"])[0]


def _held_out(frame, is_pipeline=False):
    estimator, analysis = _fitted(is_pipeline)
    if isinstance(frame, pa.Table):
        # Of some types pyarrow takes no rows.
        frame = pl.from_arrow(frame)
    y = np.linspace(0.0, 2.0, len(frame))
    return _Held(frame, y, np.arange(len(frame))[::-1], analysis).losses([estimator])[::-1]


def _encoded(encoder):
    def made(frame):
        # Of frames of pyarrow scikit-learn makes nothing.
        X = pl.from_arrow(frame) if isinstance(frame, pa.Table) else frame
        table, shown = with_public_types(X), made_up_rows(X)
        assert [str(one) for one in table.dtypes] == [str(one) for one in shown.dtypes]
        is_text = "float" not in str(next(iter(table.dtypes))).lower()
        step = encoder.set_params(categories=[["1", "2"] if is_text else [1.0, 2.0]]).fit(shown)
        found = step.transform(table)
        return found.toarray() if hasattr(found, "toarray") else np.asarray(found)

    return made


# Of a frame with the column "c": what becomes of each record.
PLACES = {
    "records": lambda frame: prepare_rows(kng.Bounds({"c": (0, 3)}, missing=1.0), frame, np.ones(len(frame))).x,
    "polynomial": _terms(Polynomial("c", 0, 3, degree=3, missing=1.0)),
    "spline": _terms(Spline("c", 0, 3, (1.0,), missing=1.0)),
    "indicator": _terms(Indicator("c", ">", 1, missing=1.0)),
    "category": _terms(CATEGORY),
    "category of numbers": _terms(Categorical("c", (1, 2), 2)),
    "product": lambda frame: _terms(NUMBER, OTHER, Product((NUMBER, OTHER)))(
        nw.from_native(frame).with_columns(nw.lit(1.0).alias("d"))
    ),
    "response": lambda frame: RESPONSE.of(frame["c"]),
    "response of levels": lambda frame: Response("c", levels=("1", "2"), missing="2").of(frame["c"]),
    "classes of a loss": lambda frame: kng.LogisticLoss(levels=("1", "2")).responses(frame["c"]),
    "axis": lambda frame: Axis("c", levels=("1", "2"), missing="2").places(frame["c"]),
    "axis of edges": lambda frame: Axis("c", edges=(0, 1, 2, 3), missing=1).places(frame["c"]),
    "groups": lambda frame: Grouping((CATEGORY,)).places({"c": frame["c"]}),
    "weights": lambda frame: SurveyWeights("c", (0.0, 3.0), 1.0).cells_of(
        nw.from_native(frame), [], np.ones(len(frame), bool)
    ),
    "condition": lambda frame: conditions.read("c == '1'", {"c": ("1", "2")}, {"c": "2"})[0].of(frame),
    "condition of numbers": lambda frame: conditions.read("c > 1", {}, {"c": 1})[0].of(frame),
    "synthetic category": lambda frame: kng.synthesis.Category("c", ["1", "2"], missing="?").read(frame["c"]),
    "synthetic ordinal": lambda frame: kng.synthesis.Ordinal("c", 0, 3, missing=1).read(frame["c"]),
    "synthetic numbers": lambda frame: kng.synthesis.Numeric("c", 0, 3, missing=1).read(frame["c"]),
    "public design": lambda frame: PublicTerms(terms=(CATEGORY,)).transform(frame),
    "public design of numbers": lambda frame: PublicTerms(terms=(NUMBER,)).transform(frame),
    "pipeline": lambda frame: np.asarray(with_public_types(frame)["c"], dtype=object),
    "one-hot encoder": _encoded(OneHotEncoder(handle_unknown="ignore")),
    "ordinal encoder": _encoded(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)),
    "search": _held_out,
    "search of pipelines": functools.partial(_held_out, is_pipeline=True),
}


def _rows(made, without):
    """All rows but one, each as Python has it, so that bits count and 1 is not 1.0."""
    kept = np.delete(np.asarray(made), without, axis=0)
    return str(kept.dtype), [repr(one) for one in kept.tolist()]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CONTAINERS)
def test_one_cell_changes_one_record(kind, place):
    values, odd = ODD[kind]
    changed = []
    for name, make in CONTAINERS[kind].items():
        whole = make(values)
        before = PLACES[place](whole)
        assert len(before) == len(values)
        for cell in odd:
            other = make([values[0], cell, *values[2:]])
            same_type = [getattr(one, "dtypes", getattr(one, "schema", None)) for one in (whole, other)]
            assert str(same_type[0]) == str(same_type[1])
            after = PLACES[place](other)
            if _rows(before, 1) != _rows(after, 1):
                changed.append((name, cell))
    assert not changed


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["integers", "texts", "bools"])
def test_a_record_is_the_same_in_every_container(kind, place):
    if place == "pipeline" or "encoder" in place:
        pytest.skip("types of numbers become numbers, and types of cells text")
    made = {name: _rows(PLACES[place](make(ODD[kind][0])), []) for name, make in CONTAINERS[kind].items()}
    assert len({str(one) for one in made.values()}) == 1, made
