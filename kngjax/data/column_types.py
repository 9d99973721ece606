"""Classifies a column by the cells that its type can hold, without a look at one of them.

A type holds numbers; or cells of which each is read by itself, text, categories and Python's objects; or nothing that
is a number or a level, like periods, durations, complex numbers, intervals, lists and records. What holds nothing is
refused before a budget is spent, whatever the library: the type of a category counts by that of its levels, and the
type of a sparse or run-length encoded column by that of its values. Types that nobody here knows hold nothing.
"""

import enum
import sys
from typing import Any

import narwhals as nw
import numpy as np


class Holds(enum.Enum):
    """Names what cells of a type can be: numbers alone, anything read cell by cell, or neither number nor level."""

    NUMBERS = "numbers"
    CELLS = "cells"
    NOTHING = "nothing"


_OTHER_TYPES_OF_CELLS = (nw.String, nw.Categorical, nw.Enum, nw.Binary, nw.Object)


def holds(column: Any) -> Holds:
    """Classifies the cells of a column by the column's type, which is public.

    **Arguments:** `column`: an array, a list or a series of any library, or narwhals' series of it. A list, or what
    else has no type, can hold anything.
    """
    native = nw.to_native(column, pass_through=True)
    package = type(native).__module__.split(".")[0]
    if package == "pyarrow" and hasattr(native, "type"):
        return _of_arrow(native.type)
    if (dtype := getattr(native, "dtype", None)) is None:
        return Holds.CELLS
    if isinstance(dtype, np.dtype):
        return _of_numpy(dtype)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return _of_pandas(pandas, dtype)
    if package == "polars" and str(dtype) == "Null":
        return Holds.CELLS
    series = nw.from_native(native, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return _of_numpy(np.dtype(dtype))
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return Holds.NUMBERS
    return Holds.CELLS if isinstance(series.dtype, _OTHER_TYPES_OF_CELLS) else Holds.NOTHING


def _of_numpy(dtype: Any) -> Holds:
    if dtype.kind in "biuf":
        return Holds.NUMBERS
    return Holds.CELLS if dtype.kind in "OUST" else Holds.NOTHING


def _of_pandas(pandas: Any, dtype: Any) -> Holds:
    """Classifies cells of the types that pandas adds to NumPy's."""
    if isinstance(dtype, pandas.CategoricalDtype):
        return _as_cells(holds(dtype.categories))
    if isinstance(dtype, pandas.SparseDtype):
        return _of_numpy(dtype.subtype)
    if isinstance(dtype, pandas.ArrowDtype):
        return _of_arrow(dtype.pyarrow_dtype)
    if isinstance(dtype, pandas.StringDtype):
        return Holds.CELLS
    # Int64, Float64 and boolean; other packages' types call themselves what they like.
    is_own = type(dtype).__module__.split(".")[0] == "pandas"
    return Holds.NUMBERS if is_own and dtype.kind in "biuf" else Holds.NOTHING


def _of_arrow(kind: Any) -> Holds:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _as_cells(_of_arrow(kind.value_type))
    if types.is_run_end_encoded(kind):
        return _of_arrow(kind.value_type)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return Holds.NUMBERS
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    of_bytes = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    is_text = any(is_one(kind) for is_one in (*texts, *of_bytes, types.is_null))
    return Holds.CELLS if is_text else Holds.NOTHING


def _as_cells(of_levels: Holds) -> Holds:
    return Holds.NOTHING if of_levels is Holds.NOTHING else Holds.CELLS
