"""Pairs of files that differ in one cell: no reader may let that cell reach the numbers of another record."""

import decimal
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from audits.frames import CellPairs
from audits.hostile import HostileInputs, Tally, trouble_with
from kngjax.accounting.adjacency import Adjacency
from kngjax.core.errors import FAILED, ReleaseFailed
from kngjax.data import cells, files
from kngjax.data.streams import stream
from kngjax.data.tables import opened
from kngjax.data.terms import Categorical, Design, Polynomial
from kngjax.ledger.budgets import Budget
from kngjax.ledger.ledgers import Ledger

_NAMES = ("age", "region", "wage")
_LEVELS = ("north", "south", "7")
_ROWS = (1, 2, 15)
DESIGN = Design((Polynomial("age", 0, 90, degree=2, missing=40), Categorical("region", _LEVELS, missing="south")))

# What stands in the one cell of a CSV file, as bytes: whatever one person can write on one line.
CSV_CELLS: Mapping[str, bytes] = {
    "another number": b"61.5",
    "text": b"unknown",
    "nothing": b"",
    "NA": b"NA",
    "null": b"null",
    "NaN": b"NaN",
    "beyond all floats": b"1e999",
    "infinity": b"-inf",
    "an open quote": b'"',
    "a quote in the middle": b'4"2',
    "text after a quote": b'"4"2',
    "a comma more": b"4,2",
    "three commas more": b",,,",
    "a comma in quotes": b'"4,2"',
    "very long text": b"x" * 100_000,
    "a very long number": b"4" * 100_000,
    "beyond 2^63": b"9223372036854775809",
    "beyond 2^64": b"-18446744073709551617",
    "beyond 2^53": b"9007199254740993",
    "a date": b"2020-02-30",
    "a time": b"2020-02-28T23:59:60Z",
    "another encoding": "Köln".encode("latin-1"),
    "two bytes a letter": "42".encode("utf-16"),
    "no letter": b"\xff\xfe\x00",
    "a digit of another script": "٤٢".encode(),
    "True": b"True",
    "FALSE": b"FALSE",
    "spaces": b"  42\t",
    "a carriage return": b"4\r2",
    "a byte of zero": b"4\x002",
    "a decimal comma": b"4;2",
    "a formula": b"=1+1",
    "a comment": b"# 42",
    "an escape": b"\\",
    "underscores": b"4_2",
    "hexadecimal": b"0x2A",
    "a byte order mark": b"\xef\xbb\xbf42",
}
# What stands in the one cell of a Parquet or Arrow file, by the type of its column.
TYPED_CELLS: Mapping[str, tuple[Any, ...]] = {
    "int64": (None, 2**63 - 1, -(2**63), 2**53 + 1, 61),
    "uint64": (None, 2**64 - 1, 2**53 + 1),
    "int8": (None, -128),
    "double": (None, float("nan"), float("-inf"), 1.7e308, 0.5),
    "float": (None, float("nan"), float("inf"), 0.5),
    "decimal128(38, 4)": (None, decimal.Decimal("9" * 30 + ".0001"), decimal.Decimal("0.5")),
    "bool_": (None, True),
    "string": (None, *(cell.decode("utf-8", "replace") for cell in CSV_CELLS.values())),
    "large_string": (None, "unknown", "1e999", ""),
    "dictionary": (None, "unknown", "1e999", "", "61"),
    # In a column that nothing is read of; the second is in no calendar of Python's.
    "timestamp": (None, 2**61),
}


def read_by(library: str) -> Callable[[pathlib.Path], np.ndarray]:
    """The rows, design and response, that a Parquet file has when "polars", "pandas" or "pyarrow" reads it.

    A CSV file is read by `kngjax.data.files` alone.
    """

    def rows(path: pathlib.Path) -> np.ndarray:
        frame = opened(files.read(path)) if path.suffix == ".csv" else _PARQUET[library](path)
        return np.column_stack([DESIGN.matrix(frame), cells.numbers(frame["wage"])])

    return rows


def _by_polars(path: pathlib.Path) -> Any:
    import polars

    return polars.read_parquet(path)


def _by_pandas(path: pathlib.Path) -> Any:
    import pandas

    # With Arrow's types: one date beyond pandas' calendar would be an error of the whole file. Without the index of
    # pandas, which is a column to the other readers.
    return files.read(path).to_pandas(ignore_metadata=True, types_mapper=pandas.ArrowDtype)


_PARQUET: Mapping[str, Callable[[pathlib.Path], Any]] = {
    "polars": _by_polars,
    "pandas": _by_pandas,
    "pyarrow": files.read,
}


def read_as_stream(path: pathlib.Path) -> np.ndarray:
    """The numbers of the rows that a file has when it is read in chunks."""
    chunks = [
        np.column_stack([cells.numbers(X["age"]), cells.numbers(y)])
        for X, y in stream(path, columns=["age"], response="wage", chunk=7).collected(lambda pair: [pair])
    ]
    return np.concatenate([np.empty((0, 2)), *chunks])


READERS: Mapping[str, Callable[[pathlib.Path], np.ndarray]] = {
    "polars": read_by("polars"),
    "pandas": read_by("pandas"),
    "pyarrow": read_by("pyarrow"),
    "stream": read_as_stream,
}
_SUFFIXES = {"stream": (".csv", ".parquet", ".arrow")}


def file_pairs(
    number: int, seed: int = 0, readers: Mapping[str, Callable[[pathlib.Path], np.ndarray]] = READERS
) -> CellPairs:
    """Reads pairs of files that differ in one cell, and compares all other records bit for bit.

    **Arguments:** `number`: of pairs for each reader. `seed`: of the pairs. `readers`: from a file's path to its rows,
    shape (n, anything), by name.
    """
    changed, differences = 0, []
    for reader, rows in readers.items():
        for before, after, place, words in pairs(number, seed, _SUFFIXES.get(reader, (".csv", ".parquet"))):
            try:
                one, other = rows(before), rows(after)
            except Exception as error:
                if isinstance(error, ValueError) and has_cut_line(after):
                    changed += 1
                    continue
                differences.append(f"{reader}, {words}: {type(error).__name__}")
                continue
            changed += one.tobytes() != other.tobytes()
            others = np.arange(len(one)) != place
            if one.shape != other.shape or one[others].tobytes() != other[others].tobytes():
                differences.append(f"{reader}, {words}: another record changed")
    return CellPairs(dict.fromkeys(readers, number), changed, tuple(differences))


def has_cut_line(path: pathlib.Path) -> bool:
    """Whether a CSV file has a line with an odd number of quotes, for which reading fails by its rule."""
    return path.suffix == ".csv" and any(line.count(b'"') % 2 for line in path.read_bytes().split(b"\n"))


def hostile_files(
    number: int,
    release: Callable[[pathlib.Path, Ledger], Any],
    *,
    adjacency: Adjacency = Adjacency.REPLACE,
    seed: int = 0,
    failed: str = FAILED,
) -> HostileInputs:
    """Releases files of which one cell is hostile, and counts how it ends, like `hostile_inputs`.

    **Arguments:** `number`: of files. `release`: from a file's path, debiting a ledger for this `adjacency`. `seed`: of
    the files. `failed`: the one text with which this release fails.
    """
    tally = Tally()
    for _, path, _, words in pairs(number, seed):
        # With room for what float64's rounding adds to delta.
        budget, place = Budget.approximate(100, "0.5"), path.with_suffix(".ledger")
        book = Ledger.create(place, budget, adjacency=adjacency, dataset="files with a hostile cell")
        trouble = ""
        try:
            release(path, book)
            end = "released"
        except Exception as error:
            end = "failed" if isinstance(error, ReleaseFailed) else "told"
            trouble = trouble_with(error, failed)
        tally.add(end, trouble, words, book)
    return tally.of(number)


def pairs(
    number: int, seed: int = 0, suffixes: tuple[str, ...] = (".csv", ".parquet")
) -> Iterator[tuple[pathlib.Path, pathlib.Path, int, str]]:
    """Two files, the place of the record that differs, and in words how; the files last until the next are made.

    The cells of all records but one are as public bounds expect them.
    """
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(number):
            # Most are CSV, whose cells can be anything.
            suffix = suffixes[0] if random.random() < 0.6 else str(random.choice(suffixes))
            before, after = (pathlib.Path(folder) / f"{name}{suffix}" for name in ("before", "after"))
            make = _csv_pair if suffix == ".csv" else _typed_pair
            place, words = make(random, before, after)
            yield before, after, place, f"{words} in a file {suffix}"


def _csv_pair(random: np.random.Generator, before: pathlib.Path, after: pathlib.Path) -> tuple[int, str]:
    size = int(random.choice(_ROWS))
    end = random.choice([b"\n", b"\r\n"])
    lines = [[_quoted(random, cell) for cell in record] for record in _records(random, size)]
    place, column = int(random.integers(size)), int(random.integers(3))
    odd = str(random.choice(list(CSV_CELLS)))
    header = ",".join(_NAMES).encode()
    # In half of the files the last line has no end.
    last = end if random.random() < 0.5 else b""
    before.write_bytes(end.join([header, *map(b",".join, lines)]) + last)
    lines[place][column] = CSV_CELLS[odd]
    after.write_bytes(end.join([header, *map(b",".join, lines)]) + last)
    return place, f"{odd} as {_NAMES[column]} of record {place} of {size}"


def _records(random: np.random.Generator, size: int) -> list[tuple[str, str, str]]:
    ages, wages = random.integers(0, 90, size), random.uniform(0, 100, size)
    regions = random.choice([*_LEVELS, "07"], size)
    return [(str(age), str(region), repr(float(wage))) for age, region, wage in zip(ages, regions, wages, strict=True)]


def _quoted(random: np.random.Generator, cell: str) -> bytes:
    return f'"{cell}"'.encode() if random.random() < 0.2 else cell.encode()


def _typed_pair(random: np.random.Generator, before: pathlib.Path, after: pathlib.Path) -> tuple[int, str]:
    import pyarrow
    from pyarrow import feather, parquet

    size, kind = int(random.choice(_ROWS)), str(random.choice(list(TYPED_CELLS)))
    name = {"bool_": "region", "timestamp": "moved"}.get(kind) or str(random.choice(_NAMES))
    made = {
        "double": pyarrow.float64(),
        "float": pyarrow.float32(),
        "decimal128(38, 4)": pyarrow.decimal128(38, 4),
        "dictionary": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        "timestamp": pyarrow.timestamp("us"),
    }
    dtype = made[kind] if kind in made else getattr(pyarrow, kind)()
    values = [_plain(kind, int(one)) for one in random.integers(0, 90, size)]
    place = int(random.integers(size))
    odd = TYPED_CELLS[kind][int(random.integers(len(TYPED_CELLS[kind])))]
    columns = dict(zip(_NAMES, map(list, zip(*_records(random, size), strict=True)), strict=True))
    others = {
        "age": pyarrow.array([int(age) for age in columns["age"]]),
        "region": pyarrow.array(columns["region"]),
        "wage": pyarrow.array([float(wage) for wage in columns["wage"]]),
    }
    for path, column in ((before, values), (after, [*values[:place], odd, *values[place + 1 :]])):
        table = pyarrow.table(others | {name: pyarrow.array(column, dtype)})
        if path.suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            feather.write_feather(table, str(path), compression="uncompressed")
    return place, f"{str(odd)[:20]!r} as {kind} in {name} of record {place} of {size}"


def _plain(kind: str, value: int) -> Any:
    if kind in ("string", "large_string", "dictionary"):
        return str(value)
    if kind.startswith("decimal"):
        return decimal.Decimal(value)
    return value % 2 == 0 if kind == "bool_" else value
