"""Opens records on the engines where they rest, for mechanisms: files, queries, tables of clusters, chunks."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import narwhals as nw

from kngjax.core.errors import UnfitType
from kngjax.data.csv_dialects import Dialect
from kngjax.data.csv_files import PLAIN
from kngjax.data.engines.arrow_files import Dataset, Files, file_kind
from kngjax.data.engines.base import UNSETTLED, AbstractEngine, is_from, reading
from kngjax.data.engines.clusters import Dask, Ray, Spark
from kngjax.data.engines.local import Chunks, Lazy, Reader, Relation
from kngjax.data.passes import Passes
from kngjax.data.work import NamedParts

# Rows of a batch, where a source is not in batches already.
BATCH = 65536
# Classes of sources, by module and name, and the engine of each.
_ENGINES: tuple[tuple[str, str, Callable[[Any, int], AbstractEngine]], ...] = (
    ("pyarrow.dataset", "Dataset", Dataset),
    ("pyarrow", "RecordBatchReader", Reader),
    ("polars", "LazyFrame", Lazy),
    ("duckdb", "DuckDBPyRelation", Relation),
    ("pyspark.sql", "DataFrame", Spark),
    ("dask.dataframe", "DataFrame", Dask),
    ("ray.data", "Dataset", Ray),
)


def stream(
    source: Any,
    columns: Sequence[str] | None = None,
    response: str | None = None,
    *,
    weights: str | None = None,
    chunk: int = BATCH,
    csv: Mapping[str, Any] | None = None,
) -> Passes:
    """Opens records for `mechanism.prepare` and `kngjax.release` that are read in passes, batch by batch.

    Each batch is validated and clipped like any records. Sums are exact (`kngjax.data.exact_sums`): the same to the bit
    for any batches in any order, on every engine, and for the same records in memory. Mechanisms of sums take one pass,
    and objective and output perturbation some ten, in constant memory. All other mechanisms gather the clipped records
    here, eight bytes a cell.

    Names and types of the columns of files, queries, tables of clusters and chunks in a list are checked before a
    release costs anything. Those of chunks from a generator are not known beforehand: there a column that is absent or
    holds text makes a release fail after its debit.

    **Arguments:**

    - `source`: a Parquet, Arrow or Feather file, a folder of Parquet files, a pattern of files as "people/*.parquet",
        or a CSV file, in which a record is a line and a cell a number by `kngjax.data.cells`; a relation of DuckDB, a
        LazyFrame of polars, a DataFrame of Spark or Dask, a Dataset of Ray; a pyarrow dataset or record batch reader;
        or any iterable of chunks: data frames, or pairs (X, y) as in `kngjax.data.prepare`. Private.
    - `columns`: the names of X's columns, in the order of the coefficients; None for all but the response and the
        weights, in the order of the source. For tables only.
    - `response`: the name of y's column; None where the model has no response, or for pairs.
    - `weights`: the name of the column of the records' weights, for bounds that declare their maximum.
    - `chunk`: the number of rows of a batch, for sources that are not in batches already.
    - `csv`: of a CSV file how it is written, as [data] of a job says it: {"separator": ";", "decimal": ","}, with
        `thousands` and `encoding`. A record is a line: text with line breaks is read into a frame.

    Raises FileNotFoundError, ImportError for files without pyarrow, TypeError and ValueError for what cannot be read in
    batches; the data themselves are looked at in `prepare`.
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, like [{columns!r}]")
    for name in (*(columns or ()), response, weights):
        if not isinstance(name, str | None):
            raise TypeError(f"columns, response and weights are names, not {name!r}")
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f"chunk must be a whole number of rows, at least 1, got {chunk!r}")
    others = [name for name in (response, weights) if name is not None]
    named = [*(columns or ()), *others]
    if len(set(named)) < len(named):
        raise ValueError("columns must name each column once, and neither the response nor the weights")
    parts = NamedParts(None if columns is None else tuple(columns), response, weights)
    is_path = isinstance(source, str | os.PathLike)
    if csv is not None and not (is_path and file_kind(pathlib.Path(source)) == "CSV"):
        source_is = f"{source} is" if is_path else "the source is"
        raise ValueError(f"csv says how a CSV file is written, and {source_is} none: leave csv out")
    engine = engine_of(source, int(chunk), PLAIN if csv is None else _dialect(csv))
    if engine is None:
        is_frame = isinstance(nw.from_native(source, eager_only=True, pass_through=True), nw.DataFrame)
        # An array can be iterated over too, but its rows are not chunks.
        has_none = isinstance(source, Mapping | Set) or hasattr(source, "__array__")
        if not is_frame and (has_none or not isinstance(source, Iterable)):
            raise TypeError(f"a {type(source).__name__} has no chunks: give a file, a pyarrow dataset, or its chunks")
        engine = Chunks([source] if is_frame else source, int(chunk))
    return Passes(engine, parts)


def engine_of(source: Any, rows: int = BATCH, dialect: Dialect = PLAIN) -> AbstractEngine | None:
    """Finds the engine on which a table rests: a path's own, a query's, a cluster's; None for what is in memory."""
    if isinstance(source, str | os.PathLike):
        return Files(pathlib.Path(source), rows, dialect)
    engine = next((kind(source, rows) for module, name, kind in _ENGINES if is_from(module, name, source)), None)
    if engine is not None and not reading(engine.is_settled):
        raise UnfitType(UNSETTLED.format(engine.name))
    return engine


def _dialect(csv: Mapping[str, Any]) -> Dialect:
    known = [field.name for field in dataclasses.fields(Dialect) if field.name != "quoted_line_breaks"]
    if not isinstance(csv, Mapping):
        raise TypeError(f"csv has settings by name, like {{'separator': ';'}}, not {csv!r}")
    if unknown := [name for name in csv if name not in known]:
        raise ValueError(f"csv has an unknown setting {unknown[0]!r}; known are {', '.join(known)}")
    try:
        return Dialect(**csv)
    except ValueError as error:
        raise ValueError(f"csv, {error}") from None
