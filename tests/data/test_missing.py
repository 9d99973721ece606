"""Codes that stand for missing cells: of every container and type, each cell by itself alone."""

from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kngjax.data import cells, missing
from kngjax.data.named_columns import Columns

NUMBERS, WORDS = [12, 9999999, -1, 30, None], ["north", "refused", " . ", None, "south"]
# Columns of numbers, and of text, of every container; a code is in the second and the third cell of each.
COLUMNS = {
    "numpy": (np.array([12, 9999999, -1, 30, np.nan]), np.array(WORDS, object)),
    "pandas": (pd.Series([12.0, 9999999.0, -1.0, 30.0, np.nan]), pd.Series(WORDS)),
    "pandas' integers": (pd.Series(NUMBERS, dtype="Int64"), pd.Series(WORDS, dtype="string")),
    "pandas' categories": (pd.Series(NUMBERS, dtype="category"), pd.Series(WORDS, dtype="category")),
    "polars": (pl.Series(NUMBERS), pl.Series(WORDS, dtype=pl.Categorical)),
    "polars' decimals": (pl.Series([None if one is None else Decimal(one) for one in NUMBERS]), pl.Series(WORDS)),
    "pyarrow": (pa.chunked_array([pa.array(NUMBERS)]), pa.chunked_array([pa.array(WORDS).dictionary_encode()])),
    "text": (["12", "9999999", "-1", "30", None], WORDS),
}


def table_of(column):
    return Columns(("v",), 5, lambda _: column)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_cell_that_holds_a_code_is_missing(name):
    """And others are what they were, bit for bit."""
    for column, codes in zip(COLUMNS[name], ((9999999, -1), ("refused", ".")), strict=True):
        assert missing.hold_code(column, codes).tolist() == [False, True, True, False, False]
        found = missing.without_codes(table_of(column), {"v": codes})["v"]
        kept = [0, 3, 4]
        assert cells.numbers(found)[kept].tobytes() == cells.numbers(column)[kept].tobytes()
        levels = [*(level for level in WORDS if level not in (None, " . ")), "."]
        assert cells.levels(found, levels)[kept].tolist() == cells.levels(column, levels)[kept].tolist()
        assert cells.are_empty(found)[1:3].all()
        assert np.isnan(cells.numbers(found)[1:3]).all()


BOOLS = [True, False, True, False]
OF_BOOLS = {
    "numpy": np.array(BOOLS),
    "pandas": pd.Series(BOOLS),
    "pandas' boolean": pd.Series(BOOLS, dtype="boolean"),
    "pandas' objects": pd.Series(BOOLS, dtype=object),
    "polars": pl.Series(BOOLS),
    "pyarrow": pa.array(BOOLS),
    "list": BOOLS,
}


@pytest.mark.parametrize("column", OF_BOOLS.values(), ids=OF_BOOLS)
@pytest.mark.parametrize("codes", [("refused",), (9,), ("9", "?")])
def test_bools_are_kept_beside_codes(column, codes):
    """So that they have the levels of text that they have without codes."""
    found = missing.without_codes(table_of(column), {"v": codes})["v"]
    for levels in (("true", "false"), ("False", "True"), (True, False), (0, 1), ("0", "1")):
        assert cells.levels(found, levels).tolist() == cells.levels(column, levels).tolist()
        assert cells.levels(found, levels).min() == 0
    held = missing.without_codes(table_of(column), {"v": ("false",)})["v"]
    assert cells.levels(held, ("true", "false")).tolist() == [0, -1, 0, -1]
    assert cells.are_empty(held).tolist() == [False, True, False, True]
    assert missing.objects(column) == BOOLS


def test_types_are_kept():
    """So that a column whose type holds no number or level is refused as without codes."""
    dates = nw.from_native(pl.DataFrame({"v": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 3), eager=True)}))
    assert not cells.is_readable(missing.without_codes(dates, {"v": (9,)})["v"])
    assert missing.without_codes(dates, {}) is dates


LEVELS = {"region": ("north", "south")}
WRONG = [
    (["wage"], TypeError, "must name columns, missing_codes="),
    ({"height": [9]}, ValueError, r"names \['height'\], which have neither bounds nor levels"),
    ({"wage": []}, TypeError, "must be finite numbers or text, like"),
    ({"wage": [None]}, TypeError, "must be finite numbers or text, like"),
    ({"wage": [float("nan")]}, TypeError, "must be finite numbers or text, like"),
    ({"wage": [9, 9.0]}, ValueError, "must be all different"),
    ({"region": ["south"]}, ValueError, "'south' is one of its levels"),
    ({"age": [9]}, ValueError, "'age' need what a missing cell counts as"),
]


@pytest.mark.parametrize(("given", "kind", "words"), WRONG)
def test_what_are_no_codes_is_refused(given, kind, words):
    policies = {"wage": 20, "region": "north"}
    with pytest.raises(kind, match=words):
        missing.codes_by_column(given, policies, LEVELS, ("wage", "region", "age"))


def test_one_code_or_several():
    given = {"wage": 9, "region": np.array(["refused"])}
    found = missing.codes_by_column(given, "drop", LEVELS, ("wage", "region"))
    assert found == {"wage": (9,), "region": ("refused",)}
    assert missing.codes_by_column(None, None, {}, ()) == {}
    assert missing.explain_codes(found, ("wage",)) == ("cells that hold a code count as missing: 9 in wage",)
    assert missing.explain_codes(found, ()) == ()
