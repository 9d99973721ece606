"""Whether releases can read private records, and in words why not: for the data owner's eyes alone.

A release that cannot read them fails after its debit with a constant text. This says beforehand, without noise, which
columns would be the reason, so that nobody pays for finding out.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kngjax.accounting.adjacency import plural
from kngjax.core.owner_only import OWNER_BANNER, OwnerOnly, owner_only
from kngjax.core.summary_table import SummaryTable
from kngjax.data import cells, dates, missing, persons
from kngjax.data.tables import is_elsewhere, opened
from kngjax.study.analyses import table_of

# Fractions of the records: beyond the public bounds or levels or missing, and missing alone.
HEADS = ("column", "beyond or missing", "missing")
# A value is shown where so many cells and so large a part of them hold it: then it is nobody's own.
_RECURS, _PART = 10, 0.001
_SHOWN = 5
# Nines and eights as surveys fill a field with them, and small negative numbers.
_CODE = re.compile(r"-?(?:9{2,}|9+[78]|8{2,}|7{2,})|-[1-9][0-9]?")
# Dates that programs write where there is none.
_DAY = re.compile("9999-.*|(0001|1753|1900|1970)-01-01|1899-12-3[01]")
_MARKED = re.compile(
    "[-+(]?[$\u20ac\u00a3\u00a5]?\\s*[0-9]{1,3}(?:[,.'\u2019 \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?\\s*[%$\u20ac]?\\)?"
    "|[-+]?[$\u20ac\u00a3\u00a5]?\\s*[0-9]+(?:[.,][0-9]+)?\\s*[%$\u20ac]?"
)


@dataclass(frozen=True)
class DeclaredColumn:
    """Holds what was said in public of a column.

    **Arguments:** `name`: of the column. `bounds` or `levels`: of its cells, if there are some. `missing`: what a
    missing cell counts as, None where such cells make a release fail. `codes`: what stands for a missing cell.
    `has_others`: whether text and numbers that are no declared level count as one more level. `is_date`: whether the
    bounds were dates, which are days now. `identifies`: whom its cells identify, in words; None of all other columns.
    """

    name: str
    bounds: tuple[Any, Any] | None = None
    levels: tuple[Any, ...] | None = None
    missing: Any = None
    codes: tuple[Any, ...] = ()
    has_others: bool = False
    is_date: bool = False
    identifies: str | None = None


@owner_only
class Check(OwnerOnly):
    """Holds what a look at the private records found, without noise. Owner-only: print its `summary()`.

    **Arguments:** `fits`: whether releases can read the records. `found`: the fractions of cells that are clipped or
    missing, a line a column, and what was found, in words.
    """

    fits: bool
    found: SummaryTable
    instead: ClassVar[str] = "its text, for the owner, is summary()"

    def summary(self) -> str:
        """Tells what was found, between two banners."""
        rule = "=" * len(OWNER_BANNER)
        return "\n".join([rule, OWNER_BANNER, rule, "", str(self.found), "", OWNER_BANNER])


def check(
    frame: Any,
    columns: Sequence[DeclaredColumn],
    steps: Sequence[Any] = (),
    words: Callable[[Exception], str] = str,
) -> Check:
    """Looks whether releases can prepare these records, and in words why not. FOR THE DATA OWNER ONLY.

    Nothing is released or debited. No value is told but levels, and numbers beyond the bounds or at their ends, that
    recur.

    **Arguments:** `frame`: private. `columns`: what was said of them. `steps`: the releases, as
    `kngjax.study.carrying_out.Step`. `words`: says an error of the library in the terms of whoever asks.

    **Raises:** `TypeError` for what is no frame.
    """
    shown, known = table_of(frame), {}
    table, refusal = _try(lambda: table_of(opened(shown)), words)
    found = [_of_dates_or_not(column, shown if table is None else table, words) for column in columns]
    wrong = _stated_wrongly(shown, table)
    # Releases that are asked for decide, where there are some: they may read other columns alone.
    fits = refusal is None and wrong is None and (bool(steps) or all(one.fits for one in found))
    notes = [f"{one.name}: {note}" for one in found for note in one.notes]
    notes += [f"REFUSED: {refusal or wrong}"] * (refusal is not None or wrong is not None)
    for step in steps:
        analysis = step.analysis
        if id(analysis) not in known:
            known = {id(analysis): _try(functools.partial(analysis.records, frame), words)}
        records, reason = known[id(analysis)]
        if records is not None:
            reason = _try(functools.partial(step.prepare, records), words)[1]
        fits &= reason is None
        notes.append(f"{step.label}: " + ("its records can be prepared" if reason is None else f"REFUSED: {reason}"))
    # What an engine did not give has no length.
    known_size = table is not None or not is_elsewhere(shown)
    facts = [("records", str(len(shown if table is None else table)))] if known_size else []
    rows = [(one.name, one.outside, one.absent) for one in found]
    return Check(fits, SummaryTable("Check of the records", facts, HEADS, rows, notes=notes))


def _stated_wrongly(shown: Any, table: Any) -> str | None:
    """Says that a table on an engine has another number of records than was stated; None where it has not."""
    if table is None or not is_elsewhere(shown):
        return None
    stated, person, count, what = _try(lambda: len(shown), str)[0], shown.engine.person, len(table), "records"
    if person is not None:
        count, what = persons.count_of(persons.Identifiers(table[person])), "persons"
    if stated in (None, count):
        return None
    return f"there are {count} {what}, and num_records says {stated}: a release would fail"


@dataclass(frozen=True)
class _Found:
    """Holds what a look at one column found: fractions of its cells, notes, and whether releases can read it."""

    name: str
    notes: Sequence[str] = ()
    fits: bool = False
    outside: float = math.nan
    absent: float = math.nan


def _of_dates_or_not(column: DeclaredColumn, table: Any, words: Callable[[Exception], str]) -> _Found:
    """Checks a column as `of_column` does, with its dates read as days."""
    if not column.is_date:
        return of_column(column, table)
    read, refusal = _try(lambda: dates.with_days(table, [column.name]), words)
    if read is None:
        return _Found(column.name, [str(refusal)])
    if column.name not in table.columns:
        return of_column(column, read)
    others = ~cells.are_empty(table[column.name]) & np.isnan(cells.numbers(read[column.name]))
    note = f"{int(others.sum())} cells hold something that is no date as 2020-01-31 is written, and count as missing"
    return of_column(column, read, (f"{note}: convert the column",) if others.any() else ())


def of_column(column: DeclaredColumn, table: Any, others: Sequence[str] = ()) -> _Found:
    """Counts the clipped and the missing cells of a column, notes what may be amiss, and says if releases can read it.

    The result is private. **Arguments:** `others`: notes on cells that are no dates where dates are due.
    """
    name = column.name
    if name not in table.columns:
        return _Found(name, ["the data have no such column"])
    if column.identifies is not None:
        return _of_identifiers(column, column.identifies, table)
    if not cells.is_readable(table[name]):
        return _Found(name, ["the column's type holds neither numbers nor text: convert it by a public rule"])
    given = missing.without_codes(table, {name: column.codes} if column.codes else {})[name]
    values, empty = cells.numbers(given), cells.are_empty(given)
    absent = np.isnan(values)
    if column.levels is not None:
        outside = cells.levels(given, column.levels) < 0
        absent, unread = empty, empty if column.has_others else outside
    else:
        unread = outside = absent
        if column.bounds is not None:
            outside = ~((column.bounds[0] <= values) & (values <= column.bounds[1]))
    shares = [float(flags.sum() / max(flags.size, 1)) for flags in (outside, absent)]
    others = [*others, *(_marked(given, absent & ~empty) if column.levels is None else ())]
    notes = []
    if column.codes:
        held = int(missing.hold_code(table[name], column.codes).sum())
        notes.append(f"{held} cells hold a code of missing_codes")
    fits = column.missing is not None or not unread.any()
    if not fits:
        notes.append(
            f"{int(unread.sum())} cells are missing, no number or no declared level, and nothing says what they count "
            f"as: what reads the column fails once it is paid. Say missing={{{name!r}: ...}}"
            + (" of those that are left once the others below were converted" if others else "")
        )
    elif unread.all() and unread.size:
        notes.append(f"no cell is read: every record counts as missing={{{name!r}: ...}} says, whatever it holds")
    notes += others if column.levels is None else _undeclared(given, outside & ~empty)
    notes += [] if column.levels is not None else _codes(column, values)
    return _Found(name, notes, fits, *shares)


def _of_identifiers(column: DeclaredColumn, unit: str, table: Any) -> _Found:
    """Counts the persons that a column identifies and the rows that are nobody's, and says if releases can read it."""
    refusal = _try(functools.partial(persons.require_identifiers, table[column.name]), str)[1]
    if refusal is not None:
        return _Found(column.name, [refusal])
    codes = persons.codes_of(table[column.name])
    counts, lost = np.bincount(codes[codes >= 0]), int(np.sum(codes < 0))
    most = int(np.max(counts, initial=0))
    notes = [f"{len(counts)} {plural(unit)} with up to {most} rows, {lost} rows without identifier"]
    if lost and column.missing is None:
        notes.append(
            f"such a row makes a release fail once it is paid: find the identifier, or say missing="
            f"{{{column.name!r}: 'drop'}}"
        )
    return _Found(column.name, notes, not lost or column.missing is not None)


def _recurring(values: Sequence[Any], size: int) -> list[tuple[Any, int]]:
    """Values that so many cells hold that they are nobody's own, the most frequent first."""
    least = max(_RECURS, _PART * size)
    return [(value, number) for value, number in Counter(values).most_common() if number >= least]


def _undeclared(column: Any, flags: np.ndarray) -> list[str]:
    """Counts the flagged cells, whose text is no declared level, and quotes what recurs in them."""
    if not flags.any():
        return []
    texts = [str(text) for text in _picked(column, flags)]
    often = [f"{text!r} ({number})" for text, number in _recurring(texts, flags.size)[:_SHOWN]]
    listed = f": {', '.join(often)}" if often else ""
    return [f"{int(flags.sum())} cells have none of the declared levels{listed}"]


def _marked(column: Any, flags: np.ndarray) -> list[str]:
    """Text that is no number, and how much of it would be one by other marks."""
    if not flags.any():
        return []
    texts = [str(text) for text in _picked(column, flags)]
    marked = sum(_MARKED.fullmatch(text.strip()) is not None for text in texts)
    notes = []
    if marked:
        notes.append(
            f"{marked} cells are numbers with other marks, as '1,234' or '12%', and count as missing: convert the "
            "column, or of a CSV file say thousands and decimal in [data]"
        )
    return notes if marked == len(texts) else [*notes, f"{len(texts) - marked} cells are text that is no number"]


def _codes(column: DeclaredColumn, values: np.ndarray) -> list[str]:
    """Numbers or dates that recur beyond the bounds or at their ends, and may stand for a missing cell."""
    if column.bounds is None:
        return []
    low, high = (float(end) for end in column.bounds)
    far = values[(values <= low) | (values >= high)]
    notes = []
    for value, number in _recurring(far.tolist(), values.size):
        day = dates.written(value) if column.is_date else None
        shown, code = (f"{value:.12g}",) * 2 if day is None else (day, repr(day))
        if low <= value <= high and (_DAY if column.is_date else _CODE).fullmatch(shown) is None:
            continue
        place = "at an end of the bounds" if low <= value <= high else "beyond the bounds, where they count as the end"
        notes.append(
            f"{number} cells hold {shown}, {place}: if it is a code for what is missing, say "
            f"missing_codes={{{column.name!r}: [{code}]}}"
        )
    return notes[:_SHOWN]


def _picked(column: Any, flags: np.ndarray) -> list[Any]:
    """The cells of a column where a flag is set, as Python's objects."""
    values = missing.objects(column)
    return [values[place] for place in np.flatnonzero(flags)]


def _try(step: Callable[[], Any], words: Callable[[Exception], str]) -> tuple[Any, str | None]:
    """Runs a step and returns its result, or its refusal in words; words of other packages are not repeated."""
    try:
        return step(), None
    except (TypeError, ValueError) as error:
        return None, words(error)
    except Exception as error:
        return None, f"they cannot be prepared ({type(error).__name__})"
