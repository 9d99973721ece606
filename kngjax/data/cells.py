"""From a cell of a table to a number or to a level: one public rule, for every kind of table.

Text is read in Unicode's normal form NFC, without Unicode's white space at its ends; so are declared levels. Then

    text [+-]?(digits[.digits] | digits. | .digits)([eE][+-]?digits)?   its nearest float64, ties to even
    text true, false in any case                                        1, 0
    an integer, a float, a decimal, a bool                              the same: the nearest float64
    all else: other text, nothing, NaN, infinities (1e999 is one), dates, complex numbers, lists    no number

A cell has a declared level that is a number if it has that number: 1 is the level of 1, 1.0, "1" and "01". It has one
that is text if it is that text, letter by letter: "01882" and "1882" are two. A number's text is the shortest that
Python writes, without a point where it is whole, and a bool's is also "true" or "false" in any case: so integers,
floats and categories of the same numbers agree bit for bit. What a cell becomes depends on that cell and on the public
levels alone, never on what else its column holds, so that nobody's record can change another's by the type that a
reader gives a column. Nothing here raises for a value.
"""

import importlib
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int

from kngjax.core.errors import UnfitType, raise_from_outside
from kngjax.core.later import pd
from kngjax.data.column_types import Holds, holds

# Digits of ASCII alone: Python's own float() would also take those of other scripts, "1_000", "inf" and "nan".
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHORT_NUMBER = r"^-?[0-9]{1,20}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?\z"
# All that Unicode calls white space.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_REAL = (bool, int, float, Decimal, np.bool_, np.integer, np.floating)
# What certificates say of it.
READING = (
    "text was read in Unicode's form NFC, without white space at its ends; a cell has a level that is text if it has "
    "the same letters, and one that is a number if it has that number"
)
_HALF = re.compile("[\ud800-\udfff]")
_TRUTH = {"true": 1.0, "false": 0.0}
# Types of numbers whose cells are read one by one in Python.
_READ_IN_PYTHON = (nw.Decimal, nw.Int128, nw.UInt128)


def numbers(column: Any) -> Float[np.ndarray, "..."]:
    """Returns the number of each cell, shape (n,), NaN where a cell is none: missing, infinite, or no number.

    **Arguments:** `column`, private: a NumPy or JAX array, whose shape is kept, a list, or a series of pandas, polars
    or pyarrow, of any type.

    **Raises:** `TypeError` for what is no column.
    """
    if (text := _arrow_text(column)) is not None:
        return _of_arrow_text(text)
    values = _values(column)
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return np.where(np.isfinite(values), values, np.nan)
    return _each(values, number, np.float64)


def levels(column: Any, declared: Sequence[str | float | int | bool]) -> Int[np.ndarray, "..."]:
    """Returns the index of each cell's level among the declared ones, shape (n,), -1 where it has none of them.

    **Arguments:** `column`, private, as for `numbers`; `declared`, public, of which no two may be one level
    (`same_level`): the first would be taken.

    **Raises:** `TypeError` for what is no column.
    """
    known = _Levels(declared)
    if (found := distinct_texts(column)) is not None:
        places, differ = found
        return np.array([*map(known.place, differ), -1])[places]
    values = _values(column)
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        result = np.full(values.shape, -1)
        for value, index in (known.of_bools if _is_of_bools(column) else known.of_numbers).items():
            result[values == value] = index
        return result
    return _each(values, known.place, np.int64)


class _Levels:
    """Declared levels, by what has them. **Arguments:** `declared`: public; of two that are one the first counts."""

    def __init__(self, declared: Sequence[Any]):
        self.of_texts: dict[str, int] = {}
        self.of_numbers: dict[float, int] = {}
        self.of_bools: dict[float, int] = {}
        # Of text by its number: what text alone has none.
        self.of_written: dict[float, int] = {}
        for index, level in enumerate(declared):
            value = number(level)
            if not isinstance(level, str):
                for places in (self.of_numbers, self.of_bools, self.of_written):
                    places.setdefault(value, index)
                continue
            written = normal(level)
            self.of_texts.setdefault(written, index)
            if written == text(value):
                self.of_numbers.setdefault(value, index)
            if written.lower() in (*_TRUTH, "0", "1"):
                self.of_bools.setdefault(value, index)

    def place(self, cell: Any) -> int:
        """Returns the index of one cell's level, -1 where it has none."""
        if isinstance(cell, str | bytes):
            found = (self.of_texts.get(text(cell) or "", -1), self.of_written.get(number(cell), -1))
            return min((place for place in found if place >= 0), default=-1)
        places = self.of_bools if isinstance(cell, bool | np.bool_) else self.of_numbers
        return places.get(number(cell), -1)


def place_of(cell: Any, declared: Sequence[Any]) -> int:
    """Returns the index of the declared level that one public value has, as a policy names, -1 where none."""
    return _Levels(declared).place(cell)


def texts(column: Any) -> list[str | None]:
    """Returns the text of each cell, n of them, None where it has none, for the steps of pipelines.

    **Arguments:** `column`, private, as for `numbers`, of one axis. **Raises:** `TypeError` for what is no column.
    """
    return _each(_values(column), text, object).tolist()


def require_levels(of: str, declared: Sequence[Any]) -> None:
    """Raises TypeError unless declared levels are all text or all finite numbers, ValueError where two are one.

    A level that is neither number nor text would be the level of every cell that is neither. **Arguments:** `of`: what
    the message calls them.
    """
    kinds = {isinstance(level, str) if isinstance(level, (str, *_REAL)) else None for level in declared}
    if len(kinds) > 1 or None in kinds or any(text(level) is None for level in declared):
        raise TypeError(f"{of} must be all text or all finite numbers.")
    for one, other in itertools.combinations(declared, 2):
        if same_level(one, other):
            raise ValueError(f"{of} must be all different: {one!r} is {other!r}.")


def same_level(one: Any, other: Any) -> bool:
    """Tells whether two declared levels are one by the rule: of two texts the same letters, else the same number."""
    if isinstance(one, str) and isinstance(other, str):
        return normal(one) == normal(other)
    return number(one) == number(other)


def are_empty(column: Any) -> Bool[np.ndarray, "..."]:
    """Tells whether each cell, shape (n,), is neither a number nor text: missing, NaN, infinite, a date, or blank text.

    **Arguments:** `column`, private, as for `numbers`. **Raises:** `TypeError` for what is no column.
    """
    values = _values(column)
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return ~np.isfinite(values)
    return _each(values, lambda cell: text(cell) in (None, ""), np.bool_)


def is_readable(column: Any) -> bool:
    """Tells whether the column's type, which is public, can hold a number or a level at all
    (`kngjax.data.column_types`).
    """
    return holds(column) is not Holds.NOTHING


def number(cell: Any) -> float:
    """Returns the number of one cell, NaN where it is none."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        cell = normal(cell)
        if NUMBER.fullmatch(cell) is None:
            return _TRUTH.get(cell.lower(), math.nan) if cell.isascii() else math.nan
    elif isinstance(cell, np.timedelta64) or not isinstance(cell, _REAL):  # NumPy has durations among its integers
        return math.nan
    try:
        nearest = float(cell)
    except (ValueError, OverflowError):  # a signaling NaN, an integer beyond all floats
        return math.nan
    return nearest if math.isfinite(nearest) else math.nan


def text(cell: Any) -> str | None:
    """Returns the text of one cell, `normal`, or a number's own: "1" of 1 and of 1.0, "0.5", a bool's "True"; else
    None.

    No library is asked, which would write 1.0 for the sake of another cell.
    """
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        return normal(cell)
    if math.isnan(value := number(cell)):
        return None
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def normal(written: str) -> str:
    """Brings text into Unicode's form NFC, without Unicode's white space at its ends; half of a pair is U+FFFD."""
    if not written.isascii():
        # Libraries raise for a half that stands alone, of which one record's text may be.
        written = unicodedata.normalize("NFC", _HALF.sub("\ufffd", written))
    return written.strip(_WHITE_SPACE)


def _each(values: np.ndarray | list[Any], rule: Callable[[Any], Any], dtype: Any) -> np.ndarray:
    """rule(cell) for every cell of an array of objects or a list; once for each text."""
    known: dict[str, Any] = {}

    def apply_once(cell: Any) -> Any:
        if type(cell) is not str:
            return rule(cell)
        if (result := known.get(cell)) is None:
            result = known[cell] = rule(cell)
        return result

    if isinstance(values, np.ndarray):
        return np.fromiter(map(apply_once, values.ravel()), dtype, count=values.size).reshape(values.shape)
    return np.fromiter(map(apply_once, values), dtype, count=len(values))


def _values(column: Any) -> np.ndarray | list[Any]:
    """The cells as an array of float64, which may hold infinities and NaN; or as Python objects."""
    if isinstance(column, list | tuple):
        return list(column)
    series = as_series(column)
    if isinstance(series, nw.Series):
        return _of_series(series)
    if not hasattr(column, "__array__"):
        raise UnfitType(f"a column must be an array or a series, not a {type(column).__name__}")
    return _of_array(column if isinstance(column, np.ndarray) else np.asarray(column))


def _is_of_bools(column: Any) -> bool:
    """Whether a column's type, which is public, is that of bools alone."""
    series = as_series(column)
    if isinstance(series, nw.Series):
        return series.dtype == nw.Boolean
    return getattr(getattr(column, "dtype", None), "kind", "") == "b"


def _of_array(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            values = array.astype(np.float64)
        if isinstance(values, np.ma.MaskedArray):
            return np.where(np.ma.getmaskarray(array), np.nan, values.data)
        return values
    if array.dtype.kind not in "OUST":
        return np.full(array.shape, np.nan)
    objects = array.astype(object)
    return objects.filled(None) if isinstance(objects, np.ma.MaskedArray) else objects


def _of_series(series: nw.Series) -> np.ndarray | list[Any]:
    dtype = series.dtype
    if not is_readable(series):
        # Such cells may have no counterpart in Python.
        return np.full(len(series), np.nan)
    if isinstance(dtype, _READ_IN_PYTHON) or not (dtype.is_numeric() or dtype == nw.Boolean):
        return objects(series)
    # Nulls are filled before the conversion, since one null may change how a library converts the whole column.
    missing = series.is_null().to_numpy().astype(bool)
    filled = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
    values = _of_array(np.asarray(filled))
    return series.to_list() if values.dtype == object else np.where(missing, np.nan, values)


def objects(series: nw.Series) -> list[Any]:
    """Returns the cells as Python objects; as bytes if the text of one is not UTF-8, which Arrow does not check."""
    try:
        return series.to_list()
    except UnicodeDecodeError:
        import pyarrow

        text = series.to_arrow()
        if pyarrow.types.is_dictionary(text.type):
            text = text.cast(text.type.value_type)
        return text.cast(pyarrow.large_binary()).to_pylist()


def distinct_texts(column: Any) -> tuple[Int[np.ndarray, " n"], list[str]] | None:
    """Returns the place of each cell among the texts that differ, -1 where it is missing, and these; None where cells
    are read.

    By Arrow, several times as quickly as a cell at a time. It takes columns of nothing but text. Private.
    """
    series = as_series(column)
    if not isinstance(series, nw.Series) or series.dtype not in (nw.String, nw.Categorical, nw.Enum):
        return None
    try:
        if _holds_other_objects(series):
            return None
        import pyarrow

        found = series.to_arrow()
        whole = found.combine_chunks() if isinstance(found, pyarrow.ChunkedArray) else found
        # Categories may be listed twice.
        whole = whole.cast(whole.type.value_type) if pyarrow.types.is_dictionary(whole.type) else whole
        if whole.type not in (pyarrow.string(), pyarrow.large_string()):
            return None
        coded: Any = whole.dictionary_encode()
        return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
    except Exception as error:
        # Without pyarrow; or text that it does not hold, such as half of a pair.
        raise_from_outside(error)
        return None


def _holds_other_objects(series: nw.Series) -> bool:
    """Whether Python's objects, or categories of such, are not text alone: Arrow reads its own scalars as if they were.

    Narwhals judges by the first hundred cells.
    """
    native = series.to_native()
    if not series.implementation.is_pandas():
        return False
    kept = getattr(native.dtype, "categories", native)
    return kept.dtype == object and pd.api.types.infer_dtype(kept, skipna=True) != "string"


def as_series(column: Any) -> Any:
    """Returns a column of any library as narwhals' series; anything else unchanged."""
    return nw.from_native(as_chunked_array(column), series_only=True, pass_through=True)


def as_chunked_array(column: Any) -> Any:
    """Returns an array of pyarrow as the chunked array that narwhals knows; anything else unchanged."""
    if type(column).__module__.split(".")[0] == "pyarrow" and hasattr(column, "to_pylist"):
        import pyarrow

        return pyarrow.chunked_array([column]) if isinstance(column, pyarrow.Array) else column
    return column


def _arrow_text(column: Any) -> Any:
    """The column as Arrow's chunks of text if that is what it is, else None."""
    native = as_chunked_array(column.to_native() if isinstance(column, nw.Series) else column)
    if type(native).__module__.split(".")[0] != "pyarrow" or not hasattr(native, "to_pylist"):
        return None
    import pyarrow

    return native if native.type in (pyarrow.string(), pyarrow.large_string()) else None


def _of_arrow_text(text: Any) -> np.ndarray:
    """The numbers of Arrow's text: Arrow reads short ones, which cannot overflow a float, and Python the others."""
    import pyarrow

    # Its functions are created at import, where type checkers do not see them.
    compute: Any = importlib.import_module("pyarrow.compute")
    trimmed = compute.ascii_trim_whitespace(text)
    short = compute.fill_null(compute.match_substring_regex(trimmed, _SHORT_NUMBER), False)
    values = compute.cast(compute.if_else(short, trimmed, "0"), pyarrow.float64()).to_numpy().copy()
    others = np.flatnonzero(~short.to_numpy())
    values[others] = _each(text.take(others).cast(pyarrow.large_binary()).to_pylist(), number, np.float64)
    return values
