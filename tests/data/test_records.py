"""The one gate for private records: every kind of table gives the same numbers, clipped, and no error tells a value."""

import decimal

import jax.numpy as jnp
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kngjax as kng
from kngjax.data.records import NOT_FINITE, Records, prepare

SECRET = 987654.321
BOUNDS = kng.Bounds(x=(np.array([0.0, -1.0]), np.array([1.0, 2.0])), y=(0.0, 10.0), intercept=True)
COLUMNS = {"age": [0.25, -7.0, SECRET, 1.0], "smokes": [1, 0, 1, 0]}
RESPONSE = [3.0, -SECRET, 4.0, SECRET]
DESIGN = np.array([[1.0, 0.25, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
CLIPPED_RESPONSE = np.array([3.0, 0.0, 4.0, 10.0])

TABLES = {
    "numpy": lambda: (np.column_stack(list(COLUMNS.values())), np.array(RESPONSE)),
    "numpy in Fortran order": lambda: (np.array(list(COLUMNS.values())).T, np.array(RESPONSE)[::1]),
    "lists": lambda: (list(map(list, zip(*COLUMNS.values(), strict=True))), RESPONSE),
    "buffers": lambda: (memoryview(np.column_stack(list(COLUMNS.values()))), memoryview(np.array(RESPONSE))),
    "arrays of pandas": lambda: (pd.DataFrame(COLUMNS), pd.array(RESPONSE, dtype="Float64")),
    "jax": lambda: (jnp.column_stack([jnp.array(c) for c in COLUMNS.values()]), jnp.array(RESPONSE)),
    "pandas": lambda: (pd.DataFrame(COLUMNS), pd.Series(RESPONSE)),
    "pandas with booleans": lambda: (pd.DataFrame(COLUMNS).astype({"smokes": bool}), pd.Series(RESPONSE)),
    "pandas nullable": lambda: (
        pd.DataFrame(COLUMNS).astype({"age": "Float64", "smokes": "Int64"}),
        pd.Series(RESPONSE, dtype="Float64"),
    ),
    "pandas nullable boolean": lambda: (pd.DataFrame(COLUMNS).astype({"smokes": "boolean"}), pd.Series(RESPONSE)),
    "pandas of arrow": lambda: (
        pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
        pd.Series(RESPONSE, dtype="double[pyarrow]"),
    ),
    "polars": lambda: (pl.DataFrame(COLUMNS), pl.Series(RESPONSE)),
    "polars with booleans": lambda: (
        pl.DataFrame(COLUMNS).with_columns(pl.col("smokes").cast(pl.Boolean)),
        pl.Series(RESPONSE),
    ),
    "pyarrow": lambda: (pa.table(COLUMNS), pa.chunked_array([RESPONSE[:1], RESPONSE[1:]])),
    "pyarrow with booleans": lambda: (
        pa.table(COLUMNS | {"smokes": [True, False, True, False]}),
        pa.array(RESPONSE),
    ),
    "decimals": lambda: (
        pa.table(COLUMNS | {"smokes": [decimal.Decimal(i) for i in COLUMNS["smokes"]]}),
        pl.Series(RESPONSE),
    ),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_every_table_gives_the_same_clipped_records_with_the_intercept_first(make):
    records = prepare(BOUNDS, *make())
    for array, expected in ((records.x, DESIGN), (records.y, CLIPPED_RESPONSE)):
        assert isinstance(array, np.ndarray)
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, expected)
    assert records.dimension == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, np.int64, bool])
def test_every_kind_of_number_becomes_float64(dtype):
    records = prepare(kng.Bounds(x=(0.0, 1.0), intercept=False), np.array([[0], [1]], dtype), np.array([0, 1], dtype))
    assert records.x.dtype == records.y.dtype == np.float64
    np.testing.assert_array_equal(records.x, [[0.0], [1.0]])


def test_data_of_the_caller_are_not_changed():
    X, y = TABLES["numpy"]()
    before = X.copy(), y.copy()
    prepare(BOUNDS, X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_columns_keep_their_order_and_need_no_bound_on_the_response():
    bounds = kng.Bounds(x=(-10.0, 10.0), intercept=False)
    records = prepare(bounds, pd.DataFrame({"b": [1.0], "a": [2.0]}), [SECRET])
    np.testing.assert_array_equal(records.x, [[1.0, 2.0]])
    np.testing.assert_array_equal(records.y, [SECRET])


@pytest.mark.parametrize("X", [None, np.empty((2, 0)), pd.DataFrame(index=range(2))], ids=["None", "numpy", "pandas"])
def test_the_intercept_can_be_the_whole_model(X):
    np.testing.assert_array_equal(prepare(kng.Bounds(), X, [1.0, 2.0]).x, [[1.0], [1.0]])


def test_the_mechanism_clips_what_its_statistic_and_its_density_see():
    mechanism = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace")
    summary = mechanism.prepare(*TABLES["pandas"]())
    np.testing.assert_allclose(summary.gram, DESIGN.T @ DESIGN, rtol=1e-15)
    np.testing.assert_allclose(summary.moment, DESIGN.T @ CLIPPED_RESPONSE, rtol=1e-15)
    np.testing.assert_allclose(summary.sum_of_squares, CLIPPED_RESPONSE @ CLIPPED_RESPONSE, rtol=1e-15)
    assert float(summary.count) == 4.0
    quantile = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace")
    np.testing.assert_array_equal(quantile.prepare(*TABLES["polars"]()).x, DESIGN)


GOOD_X, GOOD_Y = np.full((2, 2), SECRET), np.full(2, SECRET)
REFUSED = {
    "NaN in X": ((np.array([[SECRET, np.nan], [0, 0]]), GOOD_Y), ValueError, "missing, NaN or infinite"),
    "infinity in X": ((np.array([[SECRET, -np.inf], [0, 0]]), GOOD_Y), ValueError, "missing, NaN or infinite"),
    "NaN in y": ((GOOD_X, np.array([SECRET, np.nan])), ValueError, "missing, NaN or infinite"),
    "infinity in y": ((GOOD_X, [SECRET, np.inf]), ValueError, "missing, NaN or infinite"),
    "pandas NaN": ((pd.DataFrame({"a": [SECRET, np.nan], "b": 0.0}), GOOD_Y), ValueError, "missing, NaN"),
    "pandas NA": ((pd.DataFrame({"a": [4711, None], "b": 0}).astype("Int64"), GOOD_Y), ValueError, "missing"),
    "pandas boolean NA": ((pd.DataFrame({"a": [True, None], "b": True}, dtype="boolean"), GOOD_Y), ValueError, "miss"),
    "polars null": ((pl.DataFrame({"a": [SECRET, None], "b": [0, 0]}), GOOD_Y), ValueError, "missing"),
    "polars NaN": ((pl.DataFrame({"a": [SECRET, float("nan")], "b": [0, 0]}), GOOD_Y), ValueError, "missing"),
    "pyarrow null": ((pa.table({"a": [SECRET, None], "b": [0, 0]}), GOOD_Y), ValueError, "missing"),
    "null in a series": ((GOOD_X, pl.Series([SECRET, None])), ValueError, "missing"),
    "null in a pyarrow array": ((GOOD_X, pa.array([SECRET, None])), ValueError, "missing"),
    "no records": ((np.empty((0, 2)), np.empty(0)), ValueError, "the data are empty"),
    "no records in a frame": ((pd.DataFrame({"a": [], "b": []}), pd.Series([], dtype=float)), ValueError, "are empty"),
    "strings": ((np.array([["987654.321", "1"]] * 2), GOOD_Y), TypeError, "X must hold real numbers"),
    "objects": ((np.array([[SECRET, "987654.321"]] * 2, object), GOOD_Y), TypeError, "holds Python objects"),
    "complex numbers": ((GOOD_X * 1j, GOOD_Y), TypeError, "X must hold real numbers"),
    "dates": ((GOOD_X, np.array([987654, 321], "datetime64[s]")), TypeError, "y must hold real numbers"),
    "masked": ((np.ma.masked_array(GOOD_X, [[1, 0]] * 2), GOOD_Y), TypeError, "X is a masked array: fill or drop"),
    "masked y": ((GOOD_X, np.ma.masked_array(GOOD_Y, [1, 0])), TypeError, "y is a masked array"),
    "pandas strings": (
        (pd.DataFrame({"a": ["987654.321"] * 2, "b": 0}), GOOD_Y),
        TypeError,
        r"columns of X at positions \[0\]",
    ),
    "pandas objects": (
        (pd.DataFrame({"a": [SECRET, "x"], "b": 0}), GOOD_Y),
        TypeError,
        r"columns of X at positions \[0\]",
    ),
    "pandas category": (
        (pd.DataFrame({"a": pd.Categorical([SECRET] * 2), "b": 0}), GOOD_Y),
        TypeError,
        r"positions \[0\]",
    ),
    "polars strings": ((pl.DataFrame({"a": ["987654.321"] * 2, "b": [0, 0]}), GOOD_Y), TypeError, "Categorical"),
    "pyarrow strings": ((pa.table({"a": ["987654.321"] * 2, "b": [0, 0]}), GOOD_Y), TypeError, "Categorical"),
    "a series of strings": ((GOOD_X, pd.Series(["987654.321"] * 2)), TypeError, "y is not a series of numbers"),
    "an array of pyarrow's strings": (
        (GOOD_X, pa.array(["987654.321"] * 2)),
        TypeError,
        "y is not a series of numbers",
    ),
    "an array of pandas' strings": ((GOOD_X, pd.array(["987654.321"] * 2)), TypeError, "y is not a series of numbers"),
    "an index of strings": ((GOOD_X, pd.Index(["987654.321"] * 2)), TypeError, "y is not a series of numbers"),
    "an array of pyarrow for X": ((pa.array([SECRET, SECRET]), GOOD_Y), ValueError, r"numpy.reshape\(X, \(-1, 1\)\)"),
    "a buffer of one axis": ((memoryview(GOOD_Y), GOOD_Y), ValueError, r"numpy.reshape\(X, \(-1, 1\)\)"),
    "a batch": (
        (pa.RecordBatch.from_pydict({"a": [SECRET], "b": [SECRET]}), GOOD_Y[:1]),
        TypeError,
        r"pyarrow.RecordBatch: make a table of it first, pyarrow.Table.from_batches\(\[X\]\)",
    ),
    "a batch for y": ((GOOD_X, pa.RecordBatch.from_pydict({"y": [SECRET] * 2})), TypeError, "Table.from_batches"),
    "one column without its axis": ((GOOD_X[:, 0], GOOD_Y), ValueError, r"numpy.reshape\(X, \(-1, 1\)\)"),
    "a series for X": ((pd.Series(GOOD_Y), GOOD_Y), ValueError, r"numpy.reshape\(X, \(-1, 1\)\)"),
    "three axes": ((GOOD_X[None], GOOD_Y), ValueError, r"X must have shape \(n, columns\), not 3 axes"),
    "a column for y": ((GOOD_X, GOOD_Y[:, None]), ValueError, r"y must have shape \(n,\), not 2 axes"),
    "a frame for y": ((GOOD_X, pd.DataFrame({"y": GOOD_Y})), ValueError, r"y must have shape \(n,\)"),
    "one number for y": ((GOOD_X, SECRET), ValueError, r"y must have shape \(n,\), not 0 axes"),
    "no y": ((GOOD_X, None), ValueError, "y is missing"),
    "different lengths": ((GOOD_X, np.full(3, SECRET)), ValueError, "X and y have different numbers of rows"),
    "a column too many": ((np.full((2, 3), SECRET), GOOD_Y), ValueError, "X has 3 columns and bounds.x is for 2"),
    "a column too few": ((np.full((2, 1), SECRET), GOOD_Y), ValueError, "X has 1 columns and bounds.x is for 2"),
    "no columns": ((None, GOOD_Y), ValueError, "X is missing, and bounds.x is for its columns"),
    "ragged lists": (([[SECRET, 1.0], [SECRET]], GOOD_Y), ValueError, "missing, NaN"),
    "a list for X": (([SECRET, SECRET], GOOD_Y), ValueError, "missing, NaN"),
    "a number among lists": (([[SECRET, 1.0], SECRET], GOOD_Y), ValueError, "missing, NaN"),
    "text among lists": (([[SECRET, 1.0], "987654.321"], GOOD_Y), ValueError, "missing, NaN"),
    "lists too short": (([[SECRET], (SECRET,)], GOOD_Y), ValueError, "missing, NaN"),
    "arrays too long": ([[np.full(3, SECRET)] * 2, GOOD_Y], ValueError, "missing, NaN"),
    "dictionaries": (([{"a": SECRET, "b": 0.0}] * 2, GOOD_Y), ValueError, "missing, NaN"),
    "sets": (([{SECRET, 0.0}] * 2, GOOD_Y), ValueError, "missing, NaN"),
    "lists for y": ((GOOD_X, [[SECRET], [SECRET]]), ValueError, "missing, NaN"),
    "a list among y": ((GOOD_X, [SECRET, [SECRET]]), ValueError, "missing, NaN"),
    "lists within cells": (([[SECRET, [SECRET]]] * 2, GOOD_Y), ValueError, "missing, NaN"),
}


# What a release may not tell, since it depends on values.
OF_VALUES = ("miss", "X cannot be read")


@pytest.mark.parametrize(("data", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_that_no_message_tells_a_value(data, error, message):
    mechanism = kng.KNG(kng.QuantileLoss(0.5), BOUNDS, kng.Box(-1.0, 1.0), 1.0, "replace")
    told = not message.startswith(OF_VALUES)
    uses = [
        (lambda X, y: prepare(BOUNDS, X, y), error, message),
        (mechanism.prepare, error, message),
        (
            lambda X, y: kng.release(mechanism, X, y),
            *((error, message) if told else (kng.ReleaseFailed, "^the release")),
        ),
    ]
    for use, kind, text in uses:
        with pytest.raises(kind, match=text) as caught:
            use(*data)
        chain = caught.value
        while chain is not None:
            assert not any(part in str(chain) for part in ("987654", "4711", "321"))
            chain = chain.__cause__ or chain.__context__


TEXT_FOR_Y = {
    "text": pd.Series(["1", "2"], dtype="string"),
    "objects": pd.Series(["1", 2], dtype=object),
    "categories of numbers": pd.Series([1, 2], dtype="category"),
    "polars' text": pl.Series(["1", "2"]),
    "an array of text": np.array(["1", "2"]),
}


@pytest.mark.parametrize("name", TEXT_FOR_Y)
def test_of_a_response_that_is_read_cell_by_cell_the_policy_is_named(name):
    with pytest.raises(TypeError, match=r"Bounds\(\.\.\., missing_y=\.\.\.\).*LogisticLoss\(levels="):
        prepare(kng.Bounds(y=(0.0, 3.0)), None, TEXT_FOR_Y[name])
    np.testing.assert_array_equal(prepare(kng.Bounds(y=(0.0, 3.0), missing_y=0), None, TEXT_FOR_Y[name]).y, [1.0, 2.0])


@pytest.mark.parametrize(
    "dates", [pd.Series(pd.to_datetime(["2020-01-01"])), np.array(["2020-01-01"], "datetime64[D]")]
)
def test_of_dates_no_policy_is_named_since_none_would_help(dates):
    for missing in (None, 0):
        with pytest.raises(TypeError, match="days since a public date") as caught:
            prepare(kng.Bounds(y=(0.0, 3.0), missing_y=missing), None, dates)
        assert "missing" not in str(caught.value)


def test_missing_values_have_one_constant_text():
    with pytest.raises(ValueError, match="by a rule that looks at one record at a time") as caught:
        prepare(BOUNDS, GOOD_X, [SECRET, np.nan])
    assert str(caught.value) == NOT_FINITE


def test_a_row_of_a_list_that_is_none_is_a_record_of_missing_cells():
    """It decides about itself alone: with a policy it counts as that, and the others are as ever."""
    bounds = kng.Bounds(x=([0.0, 0.0], [1.0, 1.0]), missing=0.5)
    for row in ([0.2], [0.2, 0.3, 0.4], None, "ab", {0.1, 0.2}, {"a": 0.1, "b": 0.2}, 0.3, [0.2, None]):
        records = prepare(bounds, [[0.1, 0.9], row, np.array([0.8, 0.7])], [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(records.x[[0, 2], 1:], [[0.1, 0.9], [0.8, 0.7]])
        np.testing.assert_array_equal(records.x[1, 1:], [0.2, 0.5] if row == [0.2, None] else [0.5, 0.5])


def test_a_row_that_is_none_changes_nothing_that_is_said_or_paid_before_the_draw():
    mechanism = kng.KNormMechanism(kng.Bounds(x=([0.0], [1.0]), intercept=False, missing=0.5), 1.0, "replace")
    whole = kng.certify(mechanism, [[0.1], [0.2], [0.3]])
    assert kng.certify(mechanism, [[0.1], None, [0.3]]) == whole
    assert mechanism.intake.check_schema([[0.1], None, [0.3]]).num_records == 3
    with pytest.raises(ValueError, match="different numbers of rows"):
        kng.certify(kng.AdaSSP(BOUNDS, 1.0, 1e-6, "replace"), [[0.1, 0.2], None], [0.5])


def test_scalar_bounds_leave_the_number_of_columns_open_but_not_none():
    bounds = kng.Bounds(x=(0.0, 1.0))
    assert prepare(bounds, np.zeros((2, 7)), [0, 0]).dimension == 8
    with pytest.raises(ValueError, match=r"X is missing, and bounds\.x is for its columns"):
        prepare(bounds, None, [0, 0])
    with pytest.raises(ValueError, match=r"X has 1 columns but bounds\.x is None"):
        prepare(kng.Bounds(), np.zeros((2, 1)), [0, 0])


def test_records_are_a_pytree_of_arrays():
    records = prepare(BOUNDS, *TABLES["numpy"]())
    assert isinstance(records, Records)
    assert "987654" not in repr(records)


def holed(package):
    cells = {"age": [0.25, None, 0.75, 1.0], "smokes": [1.0, 0.0, None, 1.0]}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[package](cells)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_public_values_take_the_place_of_missing_ones(package):
    parts = {"x": {"age": (0.0, 1.0), "smokes": (-1.0, 1.0)}, "y": (0.0, 10.0)}
    one = prepare(kng.Bounds(**parts, missing=0.5, missing_y=7), holed(package), [1.0, 2.0, None, np.inf])
    np.testing.assert_array_equal(one.x[:, 1:], [[0.25, 1.0], [0.5, 0.0], [0.75, 0.5], [1.0, 1.0]])
    np.testing.assert_array_equal(one.y, [1.0, 2.0, 7.0, 7.0])
    by_name = prepare(kng.Bounds(**parts, missing={"age": 1, "smokes": -1}), holed(package), [1.0] * 4)
    np.testing.assert_array_equal(by_name.x[1:3, 1:], [[1.0, 0.0], [0.75, -1.0]])
    dropped = prepare(kng.Bounds(**parts, missing="drop", missing_y="drop"), holed(package), [1.0, 2.0, 3.0, np.nan])
    np.testing.assert_array_equal(dropped.x, [[1.0, 0.25, 1.0]])
    np.testing.assert_array_equal(dropped.y, [1.0])
    for missing in (None, {"age": 0.5}, ["drop", None]):
        with pytest.raises(ValueError, match="missing, NaN or infinite"):
            prepare(kng.Bounds(**parts, missing=missing), holed(package), [1.0] * 4)


ODD = [np.nan, np.inf, -np.inf, None, "", "NA", "1e999", "x", 10**400]


@pytest.mark.parametrize("missing", [0.5, "drop"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_number_is_missing_and_changes_no_other_record(odd, missing):
    bounds = kng.Bounds(x={"a": (0.0, 1.0), "b": (0.0, 1e20)}, missing=missing)
    cells = {"a": [0.25, 0.5, 0.75], "b": [2**53 + 1, 2**63 + 1, 3]}
    for make in (pd.DataFrame, lambda cells: np.array(list(cells.values()), object).T):
        whole = prepare(bounds, make(cells), [1.0, 2.0, 3.0])
        spoiled = prepare(bounds, make(cells | {"a": np.array([0.25, odd, 0.75], object)}), [1.0, 2.0, 3.0])
        others = [0, 2] if missing == 0.5 else [0, 1]
        np.testing.assert_array_equal(spoiled.x[others], whole.x[[0, 2]])
        assert len(spoiled.y) == (3 if missing == 0.5 else 2)
        if missing == 0.5:
            np.testing.assert_array_equal(spoiled.x[1], [1.0, 0.5, float(2**63 + 1)])


def test_missing_values_are_replaced_before_they_are_clipped_to_the_box_and_to_the_hull():
    hull = kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    records = prepare(kng.Bounds(hull=hull, missing=[0.0, 1.0]), np.array([[np.nan, np.nan]]), [1.0])
    # (0, 1) lies outside of the hull.
    assert hull.outside(np.array([[0.0, 1.0]])).all()
    assert not hull.outside(records.x[:, 1:] * (1.0 - 1e-9) + 1e-9 * hull.centre).any()


def test_columns_are_taken_by_name_whatever_the_order_of_the_frame():
    bounds = kng.Bounds(x={"age": (0.0, 1.0), "smokes": (-1.0, 2.0)}, y=(0.0, 10.0))
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        swapped = make({"smokes": COLUMNS["smokes"], "of no use": ["u"] * 4, "age": COLUMNS["age"]})
        np.testing.assert_array_equal(prepare(bounds, swapped, RESPONSE).x, DESIGN)
        with pytest.raises(ValueError, match=r"name the columns \['smokes'\], which X does not have") as error:
            prepare(bounds, make({"age": COLUMNS["age"], "secret": COLUMNS["smokes"]}), RESPONSE)
        assert "secret" not in str(error.value)
    np.testing.assert_array_equal(prepare(bounds, np.array(list(COLUMNS.values())).T, RESPONSE).x, DESIGN)


def test_declared_names_are_checked_against_those_of_a_frame():
    bounds = kng.Bounds(x=([0.0, -1.0], [1.0, 2.0]), y=(0.0, 10.0), columns=["age", "smokes"])
    np.testing.assert_array_equal(prepare(bounds, pd.DataFrame(COLUMNS), RESPONSE).x, DESIGN)
    for wrong in (pd.DataFrame(COLUMNS)[["smokes", "age"]], pd.DataFrame(COLUMNS).assign(secret=1.0)):
        with pytest.raises(ValueError, match=r"not those of the bounds in their order, \['age', 'smokes'\]") as error:
            prepare(bounds, wrong, RESPONSE)
        assert "secret" not in str(error.value)


def test_dropping_records_is_for_add_remove():
    parts = (kng.SquaredLoss(), kng.Bounds(y=(0.0, 1.0), missing_y="drop"), kng.Box(-1.0, 1.0), 1.0)
    with pytest.raises(ValueError, match="'drop' leaves records with missing cells out, and under 'replace'"):
        kng.KNG(*parts, "replace")
    with pytest.raises(ValueError, match="'drop' leaves records with missing cells out"):
        kng.PrivateQuantile(0.5, kng.Bounds(y=(0.0, 1.0), missing_y="drop"), 1.0, "replace")
    assert float(kng.KNG(*parts, "add_remove").prepare(None, [0.5, np.nan, 1.0]).count) == 2.0


def test_a_frame_whose_columns_are_numbered_is_read_by_columns():
    """Of pandas: a number in brackets would be a row."""
    values = np.array([[0.25, 0.5], [0.75, 1.0], [0.0, 0.125]])
    bounds = kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0), columns=2)
    for names in ([0, 1], [1, 0], [0, "1"]):
        made = prepare(bounds, pd.DataFrame(values, columns=names), np.zeros(3))
        np.testing.assert_array_equal(np.asarray(made.x)[:, -2:], values)


def test_rows_that_narwhals_holds_must_be_the_same_rows_too():
    X, y = pd.DataFrame({"age": [0.1, 0.2]}, index=[1, 0]), pd.Series([0.1, 0.2])
    with pytest.raises(ValueError, match="different pandas indices"):
        prepare(kng.Bounds(x=(0, 1), y=(0, 1)), nw.from_native(X), nw.from_native(y, series_only=True))


def test_no_record_in_lists_has_the_columns_that_the_mechanism_has():
    """No data are data under add_remove, whatever they come in: a release of none may not be known by its failure."""
    mechanism = kng.KNG(
        kng.QuantileLoss(0.5), kng.Bounds(x=(0, 1), y=(0, 1)), kng.Box([-2, -2], [2, 2]), 1.0, "add_remove"
    )
    assert mechanism.intake.records([], []).x.shape == (0, 2)


@pytest.mark.parametrize("row", [[1.0], [1.0, 2.0, 3.0], [], None, "text", {"a": 1.0}, 7.0])
def test_the_form_of_rows_decides_nothing(row):
    """Also where all rows have that form: a refusal would tell it from what an exchanged row makes a table."""
    bounds = kng.Bounds(x=([-1.0, -1.0], [1.0, 1.0]), y=(-1.0, 1.0), missing=0.25, missing_y=0.5)
    mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1.0, 1.0), 1.0, "add_remove")
    for table in ([row], [row, row], [row, [0.5, 0.5]]):
        assert mechanism.intake.check_schema(table, [0.0] * len(table)).dimension == 3
        made = mechanism.prepare(table, [[1.0]] * len(table))
        expected = [[1.0, 0.25, 0.25] if one is row else [1.0, 0.5, 0.5] for one in table]
        np.testing.assert_array_equal(made.x, expected)
        np.testing.assert_array_equal(made.y, np.full(len(table), 0.5))
    # Without a policy it is a release that fails, as for any missing cell.
    plain = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0), columns=2), kng.Box(-1.0, 1.0), 1.0, "replace")
    for table in ([row] * 3, [row, row, [0.5, 0.5]], [[0.5, 0.5]] * 3):
        for response in ([row] * 3, [row, row, 0.5], [0.5] * 3):
            assert plain.intake.check_schema(table, response) == plain.intake.check_schema(
                np.zeros((3, 2)), np.zeros(3)
            )


def test_of_one_column_what_is_no_row_is_a_cell():
    rows = [1.0, [2.0], None, "3", [], [4.0, 4.0], {"a": 1}]
    records = prepare(kng.Bounds(x=([0.0], [9.0]), missing=5.0), rows, [0.0] * 7)
    np.testing.assert_array_equal(records.x[:, 1], [1.0, 2.0, 5.0, 3.0, 5.0, 5.0, 5.0])
