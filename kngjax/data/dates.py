"""Dates and times as numbers where public bounds are dates: days since 1970-01-01, of each cell by itself.

    a date                                the days since 1970-01-01: 18262 of 2020-01-01
    a date with a time                    the same, and the time of day as a part of a day; in UTC if it has a zone
    text 2020-01-01, 2020-01-01T12:30, with seconds, parts of seconds, Z or +01:00    what it writes
    all else                              no number

A column's type must be one of dates, or one whose cells are read one by one. Nothing here raises for a value,
and one further from 1970 than int64 has microseconds for, 292,000 years, is no number.
"""

import datetime
import functools
import re
from collections.abc import Collection, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int

from kngjax.core.errors import UnfitType
from kngjax.data import cells
from kngjax.data.column_types import Holds, holds
from kngjax.data.named_columns import like

_TYPES = (nw.Date, nw.Datetime)
_ORIGIN = datetime.date(1970, 1, 1).toordinal()
_WRITTEN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_A_DAY = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# Microseconds from 1970 that int64 has.
_MOST = 2**63 - 1


def is_date(value: Any) -> bool:
    """Tells whether a public value is a date, with or without a time."""
    return isinstance(value, datetime.date | np.datetime64)


def plain(value: Any) -> Any:
    """Returns a public number of NumPy as Python's, which JSON has; NumPy's dates and any other value unchanged."""
    return value.item() if isinstance(value, np.generic) and not is_date(value) else value


def in_days(value: Any) -> Any:
    """Returns a public date as days since 1970-01-01; any other value unchanged."""
    return days(value) if is_date(value) else value


def code_in_days(code: Any) -> Any:
    """Returns a public code of a column of dates as days, whether it is a date or written as one; a number unchanged.

    What is no date becomes NaN, which no code may be.
    """
    return code if isinstance(code, int | float) else days(code)


def written(number: float | int) -> str | None:
    """Returns the shortest text that `days` reads as this number, like 2020-01-31; None where no text is."""
    for in_a_day, shown in ((1, 10), (1440, 16), (86_400, 19), (_A_DAY["us"], 26)):
        try:
            passed = datetime.timedelta(microseconds=round(number * in_a_day) * (_A_DAY["us"] // in_a_day))
            text = (datetime.datetime(1970, 1, 1) + passed).isoformat(timespec="microseconds")[:shown]
        except (ValueError, OverflowError):  # NaN, or a year that has no four digits
            return None
        if days(text) == number:
            return text
    return None


def dated(bounds: Mapping[str, Any]) -> tuple[str, ...]:
    """Finds the columns whose public bounds are dates; raises TypeError where one bound alone is a date."""
    found = []
    for name, pair in bounds.items():
        ends = list(map(is_date, pair)) if isinstance(pair, list | tuple | np.ndarray) else []
        if any(ends) and not all(ends):
            raise TypeError(f"the bounds of {name!r} must be two dates or two numbers, not {pair!r}")
        found += [name] if any(ends) else []
    return tuple(found)


def days(cell: Any) -> float:
    """Returns the number of one cell, NaN where it is no date."""
    if isinstance(cell, str | bytes):
        written = cells.text(cell) or ""
        try:
            cell = datetime.datetime.fromisoformat(written) if _WRITTEN.fullmatch(written) else None
        except ValueError:  # no day of a calendar
            return np.nan
    # Timestamps of pandas have years that Python's dates have not.
    of_pandas = getattr(cell, "to_datetime64", None)
    if of_pandas is not None and isinstance(cell, datetime.datetime):
        cell = of_pandas()
    if isinstance(cell, np.datetime64):
        return float(_of_numpy(np.array([cell]))[0])
    if not isinstance(cell, datetime.date) or cell != cell:
        return np.nan
    whole = cell.toordinal() - _ORIGIN
    if not isinstance(cell, datetime.datetime):
        return float(whole)
    zone = cell.utcoffset() or datetime.timedelta()
    seconds = (cell.hour * 60 + cell.minute) * 60 + cell.second
    part = (seconds * 1_000_000 + cell.microsecond) - zone // datetime.timedelta(microseconds=1)
    whole, part = whole + part // _A_DAY["us"], part % _A_DAY["us"]
    return float(whole) + part / _A_DAY["us"]


def with_days(table: Any, names: Collection[str]) -> Any:
    """Returns the table, private, of narwhals or `Columns`, in which these columns are days.

    Raises UnfitType for a column whose type holds no dates; columns that are not there are somebody else's refusal.
    """
    own = [name for name in names if name in table.columns]
    if unfit := [name for name in own if not _holds_dates(table[name])]:
        raise UnfitType(f"the bounds of column {unfit[0]!r} are dates, and its type holds none")

    @functools.cache
    def days_of(name: str) -> Float[np.ndarray, " records"]:
        return numbers(table[name])

    def column_of(name: str) -> Any:
        return days_of(name) if name in own else table[name]

    return like(table, column_of) if own else table


def explain(names: Collection[str], columns: Collection[str]) -> tuple[str, ...]:
    """Says in one sentence for a certificate what dates count as; empty without dates."""
    read = [name for name in names if name in columns]
    return (f"dates in {', '.join(read)} count as days since 1970-01-01, in UTC if they have a zone",) if read else ()


def numbers(column: Any) -> Float[np.ndarray, " records"]:
    """Returns the days of each cell, shape (n,), NaN where it is no date. **Arguments:** `column`: private."""
    series = cells.as_series(column)
    if not _is_of_dates(series):
        return np.array([days(cell) for cell in cells._values(series)], dtype=np.float64)
    return _of_series(series) if isinstance(series, nw.Series) else _of_numpy(series)


def _holds_dates(column: Any) -> bool:
    return _is_of_dates(cells.as_series(column)) or holds(column) is Holds.CELLS


def _is_of_dates(series: Any) -> bool:
    """Whether a column's type is one of dates, also with a zone whose name narwhals does not know."""
    native = nw.to_native(series, pass_through=True)
    is_known = isinstance(series, nw.Series) and series.dtype in _TYPES
    return is_known or getattr(getattr(native, "dtype", None), "kind", "") == "M"


def _of_series(column: nw.Series) -> Float[np.ndarray, " records"]:
    """Reads a column of a type of dates by NumPy's dates, which have the same counts since 1970."""
    native: Any = column.to_native()
    dtype = getattr(native, "dtype", None)
    if hasattr(dtype, "pyarrow_dtype"):
        import pyarrow

        native = pyarrow.chunked_array(native.array.__arrow_array__())
    elif getattr(dtype, "tz", None) is not None:
        native = native.dt.tz_convert(None)
    return _of_numpy(native.to_numpy())


def _of_numpy(values: np.ndarray) -> Float[np.ndarray, " records"]:
    """Days of NumPy's dates of any unit."""
    unit, number = np.datetime_data(values.dtype)
    absent = np.isnat(values)
    if unit not in _A_DAY or number > 1:
        if unit not in ("ps", "fs", "as", "generic"):
            # NumPy turns larger numbers into other dates without a word, or raises for all.
            last, counts = np.datetime64(_MOST, "us").astype(values.dtype).astype(np.int64), values.astype(np.int64)
            absent |= (counts < -last) | (counts > last)
        known = np.where(absent, np.zeros(1, np.int64).astype(values.dtype), values)
        values, unit = known.astype("datetime64[us]"), "us"
    return np.where(absent, np.nan, _of_counts(values.astype(np.int64), unit))


def _of_counts(counts: Int[np.ndarray, " records"], unit: str) -> Float[np.ndarray, " records"]:
    """Days of counts of a unit since 1970; NaN of those that no count of microseconds is, in whatever unit they are."""
    most = _MOST // max(_A_DAY["us"] // _A_DAY[unit], 1)
    values = np.asarray(counts).astype(np.int64)
    whole, part = np.divmod(values, _A_DAY[unit])
    return np.where((-most <= values) & (values <= most), whole.astype(np.float64) + part / _A_DAY[unit], np.nan)
