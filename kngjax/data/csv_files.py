"""CSV files in which a record is a line: what it becomes depends on that line and on the header alone.

    lines    end with LF or CR LF; each after the first, the header, is a record, an empty one too
    cells    lie between commas; one with a comma or a quote in it lies in quotes, and its quotes are doubled
    bytes    are UTF-8; what is none is U+FFFD, in its own cell

A line that cannot be read so, with an open quote for instance, and a line with more or fewer cells than the header, is
a record all of whose cells are missing. So a line break within quotes makes several records, the first and the last of
them missing: a reader that went on after it in search of a quote could lose the records of other people. Every cell is
text: no type is guessed from what else is in its column, nothing is skipped, and an error in one line is not an
error of the file.
"""

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from kngjax.data import cells

# Possessive quantifiers, so that a long cell is read once.
_CELL = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",]*+))(?=,|\Z)')
_BLOCK = 2**22
# Bytes that Arrow does not read as this module promises: their lines are read by Python.
_ODD = np.ones(256, bool)
_ODD[[*range(0x20, 0x7F), *b"\t\r\n"]] = False
_ODD[ord('"')] = True


def names(path: pathlib.Path) -> list[str]:
    """The names in the header line; raises ValueError unless there is one."""
    with _open(path) as file:
        return _header(file)


def columns(path: pathlib.Path) -> dict[str, Sequence[str | None]]:
    """All cells as text by the names of their columns, None in lines that cannot be read.

    Raises ValueError unless there is a header line that has each name once.
    """
    with _open(path) as file:
        header = _header(file)
        if len(set(header)) < len(header):
            raise ValueError("the header line has a name twice")
        rows = [_cells(line, len(header)) for line in file]
    return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())


def numbers(path: pathlib.Path, wanted: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    """The numbers of these columns, NaN where a cell is none, a block of lines after another: needs pyarrow.

    The same as `kngjax.data.cells.numbers` of `columns`: lines of plain text are cut and read by Arrow, others by
    Python.
    """
    with _open(path) as file:
        header = _header(file)
    positions = [header.index(name) for name in wanted]
    with path.open("rb") as file:
        file.readline()
        while block := file.read(_BLOCK):
            block += file.readline()
            read = _block(block if block.endswith(b"\n") else block + b"\n", len(header), positions)
            yield dict(zip(wanted, read, strict=True))


def _open(path: pathlib.Path) -> TextIO:
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")


def _header(file: TextIO) -> list[str]:
    line = next(file, None)
    if line is None or (header := _split(line)) is None:
        raise ValueError("there is no header line, or it cannot be read")
    return header


def _cells(line: str, count: int) -> list[str] | list[None]:
    cells_of_line = _split(line)
    return cells_of_line if cells_of_line is not None and len(cells_of_line) == count else [None] * count


def _split(line: str) -> list[str] | None:
    """The cells of a line, or None if it cannot be read."""
    line = line.removesuffix("\n").removesuffix("\r")
    if '"' not in line:
        return line.split(",")
    cells_of_line, start = [], 0
    while start <= len(line):
        if (match := _CELL.match(line, start)) is None:
            return None
        quoted, bare = match.groups()
        cells_of_line.append(bare if quoted is None else quoted.replace('""', '"'))
        start = match.end() + 1
    return cells_of_line


def _block(block: bytes, count: int, positions: Sequence[int]) -> list[np.ndarray]:
    """The numbers in these columns of each line of a block, which ends with a line's end."""
    data = np.frombuffer(block, np.uint8)
    unread = _ODD[data]
    unread[:-1] |= (data[:-1] == ord("\r")) & (data[1:] != ord("\n"))
    starts = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
    # Commas and odd bytes are counted apart: one weighted sum of both could wrap around in a long line.
    commas = np.add.reduceat(data == ord(","), starts[:-1], dtype=np.int64)
    odd = np.flatnonzero((commas != count - 1) | np.logical_or.reduceat(unread, starts[:-1]))
    lines = [block[starts[line] : starts[line + 1]] for line in odd]
    kept, end = [], 0
    for line in odd:
        kept.append(block[end : starts[line]])
        end = starts[line + 1]
    # Lines of empty cells stand in for the odd ones.
    plain = (b"," * (count - 1) + b"\n").join([*kept, block[end:]])
    rows = [_cells(line.decode("utf-8", "replace"), count) for line in lines]
    table = _plain_text(plain, count, positions)
    result = []
    for index, position in enumerate(positions):
        values = cells.numbers(table.column(index))
        values[odd] = cells.numbers([row[position] for row in rows])
        result.append(values)
    return result


def _plain_text(block: bytes, count: int, positions: Sequence[int]) -> Any:
    import pyarrow
    from pyarrow import csv

    wanted = [str(position) for position in positions]
    return csv.read_csv(
        pyarrow.BufferReader(block),
        csv.ReadOptions(
            column_names=[str(position) for position in range(count)], use_threads=False, block_size=len(block)
        ),
        csv.ParseOptions(quote_char=False, double_quote=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pyarrow.string()),
            include_columns=wanted,
            null_values=[],
            strings_can_be_null=False,
        ),
    )
