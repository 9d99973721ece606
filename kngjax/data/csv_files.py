"""CSV files in which a record is a line: what it becomes depends on that line and on the header alone.

    lines    end with LF or CR LF; each after the first, the header, is a record, an empty one too
    cells    lie between commas; one with a comma or a quote in it lies in quotes, and its quotes are doubled
    names    are the cells of the header line, without white space at their ends; the header is the first line, or
             the second where the first is "sep=" and a mark, as spreadsheets write it
    bytes    are UTF-8, or UTF-16 where the file's mark says so; what is none is U+FFFD, in its own cell

Other separators, marks of numbers and encodings are public settings, a `kngjax.data.csv_dialects.Dialect`. Every cell
is text: no type is guessed from what else is in its column, nothing is skipped, and lines are read one by one:

    a line with an odd number of quotes          the release fails with its constant text, spent as for a missing cell
                                                 that no policy names: such a line is a piece of a record, or of two
    any other line that has not the header's     a record all of whose cells are missing
    number of cells, or whose quotes are askew

So a line break within quotes, which would make several records of one, is never counted. A reader that went on after it
in search of a quote could lose the records of other people: that is done where `quoted_line_breaks` says that the file
is well formed, and then certificates say so.
"""

import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kngjax.core.errors import UnfitShape
from kngjax.data import cells
from kngjax.data.csv_dialects import SEPARATORS, Dialect, advice
from kngjax.data.named_columns import Columns

PLAIN = Dialect()
# With a mark: a file whose only column is called "sep=" has that name for its header.
_HINT = re.compile(rf'"?[sS][eE][pP]=[{re.escape("".join(SEPARATORS))}]"?\r?\n?')
_BLOCK = 2**22
_RECORDS = 2**16


def names(path: pathlib.Path, dialect: Dialect = PLAIN) -> list[str]:
    """Returns the names in the header line; raises ValueError unless there is one."""
    return _header(_records(path, dialect), dialect)


def header_in_words(path: pathlib.Path, dialect: Dialect = PLAIN) -> str:
    """Tells how the header line was read, and which setting may be missing. FOR THE DATA OWNER ONLY.

    In a file without a header line that line is somebody's record.
    """
    try:
        header = _names_of(next(_records(path, dialect), None), dialect)
    except UnfitShape:
        # Of the file's mark, which the refusal tells.
        header = None
    if header is None:
        return "The first line of the file is no header that could be read."
    shown = ", ".join(map(repr, header[:20])) + ", ..." * (len(header) > 20)
    number = "one column" if len(header) == 1 else f"{len(header)} columns"
    lie = f"cells lie between {'commas' if dialect.separator == ',' else repr(dialect.separator)}"
    return f"The header was read as {number}, {shown}: {lie}. {advice(header)}".rstrip()


def table(path: pathlib.Path, dialect: Dialect = PLAIN, as_written: Sequence[str] = ()) -> Columns:
    """Returns all cells as text by the names of their columns, None in lines that cannot be read. Private.

    **Arguments:** `as_written`: columns of text, whose cells are no numbers by the dialect's marks.

    **Raises:** `ValueError` unless there is a header line that has each name once. Lines with an odd number of quotes
    are an error of what is opened `after_debit`.
    """
    records = _records(path, dialect)
    header = _header(records, dialect)
    if len(set(header)) < len(header):
        raise ValueError("the header line has a name twice")
    rows, odd = [], []
    for number, record in enumerate(records):
        rows.append(_cells(record, len(header), dialect))
        if _is_odd(record):
            odd.append(number)
    found = (
        dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)) if rows else {name: [] for name in header}
    )
    if not dialect.has_plain_numbers:
        found |= {name: list(map(dialect.plain, found[name])) for name in header if name not in as_written}
    made = Columns(tuple(header), len(rows), found.__getitem__)

    def opened() -> Columns:
        if odd:
            advice = ": if line breaks stand within quotes, say quoted_line_breaks = true"
            raise ValueError(
                f"{len(odd)} of {len(rows)} lines have an odd number of quotes, record {odd[0] + 1} first"
                + advice * (not dialect.quoted_line_breaks)
            )
        return made

    return Columns(made.columns, made.rows, made.column_of, after_debit=opened)


def numbers(path: pathlib.Path, wanted: Sequence[str], dialect: Dialect = PLAIN) -> Iterator[dict[str, np.ndarray]]:
    """Returns the numbers of these columns, NaN where a cell is none, a block of records after another: needs pyarrow.

    The same as `kngjax.data.cells.numbers` of the cells of `table`: lines of plain text are cut and read by Arrow,
    others by Python. **Raises:** `ValueError` for a line with an odd number of quotes.
    """
    codec, length = dialect.codec(_mark(path))
    header = names(path, dialect)
    positions = [header.index(name) for name in wanted]
    if dialect.quoted_line_breaks or codec != "utf-8" or not dialect.has_plain_numbers:
        yield from _read_by_python(path, wanted, positions, dialect)
        return
    with path.open("rb") as file:
        file.seek(length)
        if _is_hint(file.readline().decode("utf-8", "replace")):
            file.readline()
        while block := file.read(_BLOCK):
            block += file.readline()
            read = _block(block if block.endswith(b"\n") else block + b"\n", len(header), positions, dialect)
            yield dict(zip(wanted, read, strict=True))


def has_no_rows(path: pathlib.Path, dialect: Dialect = PLAIN) -> bool:
    """Tells whether nothing comes after the header line."""
    return next(itertools.islice(_records(path, dialect), 1, None), None) is None


def _mark(path: pathlib.Path) -> bytes:
    with path.open("rb") as file:
        return file.read(3)


def _is_hint(line: str) -> bool:
    """Whether the first line of a file is one that spreadsheets write before the header: sep=;"""
    return _HINT.fullmatch(line) is not None


def _lines(path: pathlib.Path, dialect: Dialect) -> Iterator[str]:
    """The lines of a file with their ends, each decoded by itself, the header first."""
    lines = _decoded(path, dialect)
    first = next(lines, None)
    if first is not None and not _is_hint(first):
        yield first
    yield from lines


def _decoded(path: pathlib.Path, dialect: Dialect) -> Iterator[str]:
    codec, length = dialect.codec(_mark(path))
    if codec.startswith("utf-16"):
        # By units of two bytes: no part of another letter is a line's end, and what is no letter ends with its unit.
        with path.open(encoding=codec, errors="replace", newline="\n") as text:
            for number, line in enumerate(text):
                yield line.removeprefix("\ufeff") if number == 0 else line
        return
    with path.open("rb") as file:
        file.seek(length)
        for line in file:
            # What is no letter of some encodings would take a quote with it, and join a record to the next ones.
            yield '"'.join(part.decode(codec, "replace") for part in line.split(b'"'))


def _records(path: pathlib.Path, dialect: Dialect) -> Iterator[str]:
    """The header and the records: lines, or where quotes may hold line breaks as many as close them."""
    lines = _lines(path, dialect)
    if not dialect.quoted_line_breaks:
        yield from lines
        return
    parts: list[str] = []
    is_open = False
    for line in lines:
        parts.append(line)
        is_open ^= _is_odd(line)
        if not is_open:
            yield "".join(parts)
            parts.clear()
    if parts:
        yield "".join(parts)


def _is_odd(record: str) -> bool:
    return record.count('"') % 2 == 1


def _header(records: Iterator[str], dialect: Dialect) -> list[str]:
    """The names, once their line is gone."""
    header = _names_of(next(records, None), dialect)
    if header is None:
        raise ValueError("there is no header line, or it cannot be read")
    if any("\x00" in name for name in header):
        # The byte of a line's end is then a part of other letters, and a record with those would be several lines.
        raise UnfitShape("the bytes of its header look like UTF-16 without its mark: write it with its mark")
    return header


def _names_of(line: str | None, dialect: Dialect) -> list[str] | None:
    found = None if line is None else _split(line, dialect.separator)
    return None if found is None else [name.strip() for name in found]


def _cells(line: str, count: int, dialect: Dialect) -> list[str] | list[None]:
    found = _split(line, dialect.separator)
    return found if found is not None and len(found) == count else [None] * count


@functools.cache
def _cell(separator: str) -> re.Pattern[str]:
    # Possessive quantifiers, so that a long cell is read once.
    mark = re.escape(separator)
    return re.compile(rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{mark}]*+))(?={mark}|\Z)')


def _split(line: str, separator: str = ",") -> list[str] | None:
    """The cells of a line, or None if it cannot be read."""
    line = line.removesuffix("\n").removesuffix("\r")
    if '"' not in line:
        return line.split(separator)
    found, start, pattern = [], 0, _cell(separator)
    while start <= len(line):
        if (match := pattern.match(line, start)) is None:
            return None
        quoted, bare = match.groups()
        found.append(bare if quoted is None else quoted.replace('""', '"'))
        start = match.end() + 1
    return found


def _read_by_python(
    path: pathlib.Path, wanted: Sequence[str], positions: Sequence[int], dialect: Dialect
) -> Iterator[dict[str, np.ndarray]]:
    records = _records(path, dialect)
    count = len(_header(records, dialect))
    while block := list(itertools.islice(records, _RECORDS)):
        rows = [_whole_cells(record, count, dialect) for record in block]
        each = ([dialect.plain(row[position]) for row in rows] for position in positions)
        yield {name: cells.numbers(column) for name, column in zip(wanted, each, strict=True)}


def _whole_cells(line: str, count: int, dialect: Dialect) -> list[str] | list[None]:
    """The cells of a line; raises ValueError for a line that is a piece of a record."""
    if _is_odd(line):
        raise ValueError("a line has an odd number of quotes")
    return _cells(line, count, dialect)


# Bytes that Arrow does not read as this module promises: their lines are read by Python.
_ODD = np.ones(256, bool)
_ODD[[*range(0x20, 0x7F), *b"\t\r\n"]] = False
_ODD[ord('"')] = True


def _block(block: bytes, count: int, positions: Sequence[int], dialect: Dialect) -> list[np.ndarray]:
    """The numbers in these columns of each line of a block, which ends with a line's end."""
    data, separator = np.frombuffer(block, np.uint8), dialect.separator.encode()
    unread = _ODD[data]
    unread[:-1] |= (data[:-1] == ord("\r")) & (data[1:] != ord("\n"))
    starts = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
    # Separators and odd bytes are counted apart: one weighted sum of both could wrap around in a long line.
    marks = np.add.reduceat(data == separator[0], starts[:-1], dtype=np.int64)
    odd = np.flatnonzero((marks != count - 1) | np.logical_or.reduceat(unread, starts[:-1]))
    lines = [block[starts[line] : starts[line + 1]] for line in odd]
    kept, end = [], 0
    for line in odd:
        kept.append(block[end : starts[line]])
        end = starts[line + 1]
    # Lines of empty cells stand in for the odd ones.
    plain = (separator * (count - 1) + b"\n").join([*kept, block[end:]])
    rows = [_whole_cells(line.decode("utf-8", "replace"), count, dialect) for line in lines]
    read = _plain_text(plain, count, positions, dialect.separator)
    result = []
    for index, position in enumerate(positions):
        values = cells.numbers(read.column(index))
        values[odd] = cells.numbers([row[position] for row in rows])
        result.append(values)
    return result


def _plain_text(block: bytes, count: int, positions: Sequence[int], separator: str) -> Any:
    import pyarrow
    from pyarrow import csv

    wanted = [str(position) for position in positions]
    return csv.read_csv(
        pyarrow.BufferReader(block),
        csv.ReadOptions(
            column_names=[str(position) for position in range(count)], use_threads=False, block_size=len(block)
        ),
        csv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pyarrow.string()),
            include_columns=wanted,
            null_values=[],
            strings_can_be_null=False,
        ),
    )
