"""What a cell becomes is decided by that cell alone, whatever the table and whatever else is in its column."""

import datetime
import decimal
import fractions
import math

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kngjax.data import cells

TEXTS = ("1", "2.5", " -7\t", "1.", ".5", "+3e-2", "TRUE", "false", "9007199254740993", "18446744073709551617")
NUMBERS = (1.0, 2.5, -7.0, 1.0, 0.5, 0.03, 1.0, 0.0, 9007199254740992.0, 18446744073709551616.0)
# Each would be a number to one reader or another.
NONE = ("", "NA", "1e999", "-1e999", "inf", "nan", "1_000", "1,000", "0x10", "١", "1 2", "--1", "1e", ".", "e5", "１",
        "2020-01-01", "1;", '"1"', "unknown", "1" * 400, "tru", "\x001", "1\x00", "\u200b1")  # fmt: skip
OBJECTS = (None, math.nan, math.inf, 10**400, decimal.Decimal("sNaN"), decimal.Decimal("1e999"), pd.NA, pd.NaT,
           datetime.date(2020, 1, 1), [1], {"a": 1}, 1j, b"\xff",
           np.timedelta64(5, "s"), np.timedelta64("NaT", "s"))  # fmt: skip

# A column of texts, None among them, in every type that holds text.
OF_TEXT = {
    "list": list,
    "array of objects": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "pandas of objects": lambda values: pd.Series(values, dtype=object),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series,
    "polars categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars enum": lambda values: pl.Series(values, dtype=pl.Enum(sorted({one for one in values if one is not None}))),
    "arrow": pa.array,
    "arrow chunks": lambda values: pa.chunked_array([values[:3], values[3:]]),
    "arrow large": lambda values: pa.array(values, pa.large_string()),
    "arrow view": lambda values: pa.array(values, pa.string_view()),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "arrow bytes": lambda values: pa.array([None if one is None else one.encode() for one in values], pa.binary()),
}


def in_decimals(values):
    return [None if value is None else decimal.Decimal(value) for value in values]


# A column of integers, None among them, in every type that holds such.
OF_INTEGERS = {
    "pandas Int64": lambda values: pd.Series(values, dtype="Int64"),
    "pandas of objects": lambda values: pd.Series(values, dtype=object),
    "pandas float": lambda values: pd.Series(values, dtype=float),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.int64())),
    "pandas arrow decimal": lambda values: pd.Series(in_decimals(values), dtype=pd.ArrowDtype(pa.decimal128(30, 2))),
    "polars": pl.Series,
    "polars Int128": lambda values: pl.Series(values, dtype=pl.Int128),
    "polars decimal": lambda values: pl.Series(in_decimals(values)),
    "polars float": lambda values: pl.Series(values, dtype=pl.Float64, strict=False),
    "arrow": pa.array,
    "arrow decimal": lambda values: pa.array(in_decimals(values), pa.decimal256(40, 3)),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "text": lambda values: pl.Series([None if value is None else str(value) for value in values]),
}


@pytest.mark.parametrize(("text", "value"), list(zip(TEXTS, NUMBERS, strict=True)))
def test_text_is_the_number_that_it_writes(text, value):
    assert cells.number(text) == value


@pytest.mark.parametrize("cell", [*NONE, *OBJECTS], ids=lambda cell: repr(cell)[:20])
def test_all_else_is_no_number(cell):
    assert math.isnan(cells.number(cell))
    assert np.isnan(cells.numbers([cell, 1])).tolist() == [True, False]


@pytest.mark.parametrize("kind", OF_TEXT)
@pytest.mark.parametrize("odd", [None, "unknown", "1e999"])
def test_every_type_of_text_gives_the_same_numbers_and_levels(kind, odd):
    column = OF_TEXT[kind]([*TEXTS, odd, " north"])
    np.testing.assert_array_equal(cells.numbers(column), [*NUMBERS, math.nan, math.nan])
    found = cells.levels(column, ["north", 1, "1e999"])
    np.testing.assert_array_equal(found, [1, -1, -1, 1, -1, -1, 1, -1, -1, -1, 2 if odd == "1e999" else -1, 0])


@pytest.mark.parametrize("kind", sorted(OF_TEXT.keys() - {"list", "array of objects", "arrow view", "arrow bytes"}))
def test_columns_of_text_are_read_once_for_each_text_that_differs(kind, monkeypatch):
    """A million cells of four levels take a hundredth of the time, and as many identifiers a quarter."""
    places, differ = cells.distinct_texts(OF_TEXT[kind]([None, "b", "a", "b", "", *TEXTS]))
    assert [None if place < 0 else differ[place] for place in places] == [None, "b", "a", "b", "", *TEXTS]
    assert len(differ) == len(set(differ))
    monkeypatch.setattr(cells, "_values", None)
    assert cells.levels(OF_TEXT[kind](["b", "a", None, "c", "b"]), ["a", "b"]).tolist() == [1, 0, -1, -1, 1]


@pytest.mark.parametrize("kind", OF_INTEGERS)
@pytest.mark.parametrize("odd", [None, 2**62 + 1])
def test_every_type_of_integers_gives_the_same_numbers_and_levels(kind, odd):
    values = [1, 2**53 + 1, odd, -7, 0]
    column = OF_INTEGERS[kind](values)
    np.testing.assert_array_equal(
        cells.numbers(column), [math.nan if value is None else float(value) for value in values]
    )
    np.testing.assert_array_equal(cells.levels(column, ["-7", 1.0, 2**53]), [1, 2, -1, 0, -1])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False, None]),
        pd.Series([True, False, None], dtype="boolean"),
        pl.Series([True, False, None]),
        pa.array([True, False, None]),
        np.ma.masked_array([True, False, True], [False, False, True]),
        np.array([1.0, 0.0, -np.inf], dtype=np.longdouble),
        pa.array([1.0, 0.0, None], pa.float16()),
        jnp.array([1.0, 0.0, jnp.inf]),
    ],
    ids=lambda column: f"{type(column).__module__}.{column.dtype if hasattr(column, 'dtype') else column.type}",
)
def test_bools_are_one_and_zero_like_numbers(column):
    np.testing.assert_array_equal(cells.numbers(column), [1.0, 0.0, math.nan])
    np.testing.assert_array_equal(cells.levels(column, [False, "1"]), [1, 0, -1])


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([datetime.date(2020, 1, 1)] * 2),
        pd.Series(pd.to_datetime(["2020-01-01"] * 2)),
        pa.array([2**62, 1], pa.timestamp("us")),  # one is in no calendar of Python's
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([1 + 0j, 2]),
        pa.nulls(2),
        pl.Series([[1], [2]]),
    ],
    ids=lambda column: type(column).__module__,
)
def test_what_is_neither_number_nor_text_has_no_number_and_no_level(column):
    np.testing.assert_array_equal(cells.numbers(column), [math.nan] * 2)
    np.testing.assert_array_equal(cells.levels(column, [1, "2020-01-01"]), [-1, -1])


@pytest.mark.parametrize("dtype", [complex, np.complex64])
def test_a_column_that_one_cell_made_complex_is_refused_by_its_type(dtype):
    # pandas' own inference: 20.0 would be no number for the sake of another record's cell.
    assert pd.Series([20.0, 30.0, 1 + 2j]).dtype == complex
    assert not cells.is_readable(pd.Series([20.0, 30.0, 1 + 2j], dtype=dtype))
    assert not cells.is_readable(pd.Series([20.0, 30.0, 1 + 2j], dtype=dtype).astype("category"))
    assert cells.is_readable(pd.Series([20.0, 30.0, 1 + 2j], dtype=object))


def test_arrays_keep_their_shape():
    np.testing.assert_array_equal(cells.numbers(np.array([["1", "x"], ["2", "3"]])), [[1.0, math.nan], [2.0, 3.0]])


@pytest.mark.parametrize(("one", "other"), [(1, True), ("01", 1.0), (" a ", "a"), (2**53, 2**53 + 1), (0.0, "-0"),
                                            ("S\u00e3o", "Sa\u0303o\u2003")])  # fmt: skip
def test_levels_that_are_one_by_the_rule(one, other):
    assert cells.same_level(one, other)


@pytest.mark.parametrize(("one", "other"), [("a", "A"), ("a", "b"), (1, "one"), (0, "no"), ("1", "01"), ("1", "1.0")])
def test_levels_that_are_two(one, other):
    assert not cells.same_level(one, other)


# Cells, and the place that each has among the levels.
OF_LEVELS = {
    "letters": (["01882", "1882", " 1882", "1882.0", "+1882", None], ("1882", "01882"), [1, 0, 0, -1, -1, -1]),
    "values": (["01882", "1882", " 1882", "1882.0", "+1882", None], (1882, 7), [0, 0, 0, 0, 0, -1]),
    "numbers of letters": ([1882, 1882.0, decimal.Decimal("1882.00"), 0.5, -0.0, 1e-7], ("1882", "0.5", "0", "1e-07"),
                           [0, 0, 0, 1, 2, 3]),
    "numbers and letters that differ": ([1882, 1, 0.5, True], ("01882", "1.0", ".5", "yes"), [-1] * 4),
    "bools": ([True, False, np.True_, 1, 0, "true"], ("TRUE", "False"), [0, 1, 0, -1, -1, -1]),
    "bools as numbers": ([True, False, np.True_, 1, "true", "T"], (True, False), [0, 1, 0, 0, 0, -1]),
    "bools as digits": ([True, False, 1, 0.0, "1", "01"], ("0", "1"), [1, 0, 1, 0, 1, -1]),
    "normal forms": (["S\u00e3o", "Sa\u0303o", "\u3000Sa\u0303o\u00a0", "Sao", "S\u00e3o\u200b", b"S\xc3\xa3o"],
                     ("Sa\u0303o",), [0, 0, 0, -1, -1, 0]),
    "numbers in white space": (["\u00a01", "1\u2009", "\u20281\x85", "1\u200b", "\ufeff1", "\x1c1"], (1,),
                               [0, 0, 0, -1, -1, -1]),
    "blank text": (["", " ", "\u00a0", None, math.nan], ("",), [0, 0, 0, -1, -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LEVELS)
def test_text_has_levels_by_its_letters_and_numbers_by_their_values(name):
    column, declared, places = OF_LEVELS[name]
    for made in (column, np.array(column, dtype=object), pd.Series(column, dtype=object)):
        assert cells.levels(made, declared).tolist() == places
    assert [cells.place_of(cell, declared) for cell in column] == places


def test_a_column_of_bools_has_the_levels_of_its_cells():
    for column in (
        np.array([True, False]),
        pl.Series([True, False]),
        pd.Series([True, False]),
        pa.array([True, False]),
    ):
        assert cells.levels(column, ("false", "TRUE")).tolist() == [1, 0]
        assert cells.levels(column, ("0", "1")).tolist() == [1, 0]
    assert cells.levels(np.array([1.0, 0.0]), ("false", "TRUE")).tolist() == [-1, -1]


def test_the_text_of_a_cell_is_its_own():
    column = [1, 1.0, "1.0", True, 0.1, decimal.Decimal("2.50"), 2**60, b" x ", None, math.nan, math.inf, [1]]
    found = ["1", "1", "1.0", "True", "0.1", "2.5", "1.152921504606847e+18", "x", None, None, None, None]
    assert cells.texts(column) == found


@pytest.mark.parametrize("column", [7, "text", {"a": 1}])
def test_what_is_no_column_is_refused_by_its_type(column):
    with pytest.raises(TypeError, match=f"not a {type(column).__name__}"):
        cells.numbers(column)


@settings(deadline=None, max_examples=50)
@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(-(2**300), 2**300))
def test_numbers_are_the_nearest_floats(written, whole):
    for cell, exact in ((str(written), fractions.Fraction(written)), (written, fractions.Fraction(written)),
                        (str(whole), whole), (whole, whole)):  # fmt: skip
        value = cells.number(cell)
        try:
            assert value == float(exact)
        except OverflowError:
            assert math.isnan(value)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.text("01.eE+- \tNAtrue", max_size=6), min_size=2, max_size=6), st.text(max_size=4), st.data())
def test_one_cell_changes_one_cell(column, odd, data):
    place = data.draw(st.integers(0, len(column) - 1))
    other = [odd if row == place else cell for row, cell in enumerate(column)]
    for kind in ("pandas", "pandas category", "polars", "arrow dictionary"):
        for rule in (cells.numbers, lambda values: cells.levels(values, ["NA", 1, "t"])):
            before, after = rule(OF_TEXT[kind](column)), rule(OF_TEXT[kind](other))
            np.testing.assert_array_equal(np.delete(before, place), np.delete(after, place))


@pytest.mark.parametrize("kind", ["utf8", "dictionary", "pandas"])
def test_text_that_is_no_utf8_is_no_number_in_its_own_cell_alone(kind):
    """Arrow and Parquet files may hold such text, and Python cannot make a list of the column."""
    text = pa.array([b"1", b"2", b"\xff", b"x"]).view(pa.string())
    if kind == "dictionary":
        text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), text)
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([text]))) if kind == "pandas" else text
    np.testing.assert_array_equal(cells.numbers(column), [1.0, 2.0, math.nan, math.nan])
    np.testing.assert_array_equal(cells.levels(column, ("x", "2")), [-1, 1, -1, 0])


def test_half_of_a_pair_is_the_letter_for_what_is_none():
    """Of which one record's text may be: Arrow, pandas and polars raise for a half that stands alone."""
    assert cells.text("a\ud800") == "a\ufffd"
    assert cells.texts(["\udfff", "\U0001f600"]) == ["\ufffd", "\U0001f600"]
    assert cells.levels(["\ud800", "1"], ("1", "\ufffd")).tolist() == [1, 0]


@pytest.mark.parametrize("other", ["b", 5, b"b", "\ud800"])
def test_a_scalar_of_arrow_is_no_text_whatever_another_cell_is(other):
    """Arrow takes its own scalars for text where a column holds nothing else."""
    column = pd.Series([*["a"] * 100, pa.scalar("a"), other], dtype=object)
    assert cells.levels(column, ["a"])[:101].tolist() == [0] * 100 + [-1]
