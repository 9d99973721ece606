"""Records that need not fit into memory: read chunk by chunk, the next one while the last is being summed."""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from kngjax.core.errors import UnfitShape, UnfitType, raise_from_outside
from kngjax.core.owner_only import OwnerOnly
from kngjax.data.csv_dialects import Dialect
from kngjax.data.csv_files import PLAIN
from kngjax.data.files import batches, file_kind, has_no_rows, schemas, schemas_of_dataset

RECORDS_NEEDED = (
    "what is computed of these data has no sufficient statistic, so the records must be in memory all at once: read "
    "them into a data frame, or take SquaredLoss, AdaSSP or another mechanism of the moments"
)
READ_BEFORE = "this stream was read before, and its source can be read only once: make a new stream"
SAME_NAME = "the stream has two columns of one name: give each its own"
_END = object()


class Stream(OwnerOnly):
    """Records in chunks, for `mechanism.prepare` and `kngjax.release`; made by `kngjax.stream`. Private."""

    def __init__(
        self, source: Any, columns: list[str] | None, response: str | None, chunk: int, dialect: Dialect | None = None
    ):
        self._source, self._columns, self._response, self._chunk = source, columns, response, chunk
        self._dialect = PLAIN if dialect is None else dialect
        self._once = isinstance(source, Iterator)
        self._spent = False

    def __repr__(self) -> str:
        return f"<Stream of records from a {type(self._source).__name__}; private>"

    def chunks(self) -> Generator[tuple[Any, Any], None, None]:
        """The chunks as pairs (X, y), not yet validated; tables without a row are left out.

        Raises ValueError for absent columns, for a source that can be read once only and was, and if reading fails;
        the reader's own message, which may quote a value, is not repeated.
        """
        if self._spent and self._once:
            raise UnfitShape(READ_BEFORE)
        self._spent = True
        with contextlib.closing(_prefetch(self._raw())) as chunks:
            yield from self._pairs(chunks)

    def declared_chunks(self) -> list[tuple[Any, Any]]:
        """Chunks with the columns and types that the source declares, before a value of it is looked at.

        Each file, dataset, lazy frame and reader of pyarrow gives a chunk without a row; a list gives its own chunks;
        sources that can be read once give none. Raises as `chunks`.
        """
        if self._spent and self._once:
            raise UnfitShape(READ_BEFORE)
        source = self._source
        if isinstance(source, list | tuple):
            return list(self._pairs(source))
        if isinstance(source, pathlib.Path):
            empty = [one.empty_table() for one in _read(lambda: list(schemas(source, self._dialect)))]
        elif _is_dataset(source):
            wanted = self._names_to_read(source.schema.names)
            empty = [one.empty_table() for one in schemas_of_dataset(source, wanted)]
        elif is_from("pyarrow", "RecordBatchReader", source):
            empty = [source.schema.empty_table()]
        elif _is_lazy(source):
            empty = [sys.modules["polars"].DataFrame(schema=_read(source.collect_schema))]
        else:
            return []
        return list(self._pairs(empty, with_empty=True))

    def has_no_rows(self) -> bool:
        """Whether the lengths of a list's chunks, or the metadata of files, show that there is no record."""
        source = self._source
        if isinstance(source, list | tuple):
            return not any(_has_rows(y if X is None else X) for X, y in self._pairs(source))
        is_of_files = isinstance(source, pathlib.Path) or _is_dataset(source)
        return is_of_files and _read(lambda: has_no_rows(source, self._dialect))

    def _pairs(self, chunks: Iterable[Any], with_empty: bool = False) -> Iterator[tuple[Any, Any]]:
        """X and y of each chunk, without tables that have no row."""
        names_before = None
        for chunk in chunks:
            if isinstance(chunk, tuple | list) and len(chunk) == 2:
                if self._columns is not None or self._response is not None:
                    raise UnfitType("columns and response are of tables: leave them out for pairs (X, y)")
                yield chunk[0], chunk[1]
                continue
            table = _table(chunk)
            names = self._names(table.columns)
            if names_before is not None and names_before != names:
                raise UnfitShape("the chunks of the stream have different columns: give columns=[...]")
            names_before = names
            if len(table) == 0 and not with_empty:
                continue
            X = table.select(names).to_native() if names else None
            yield X, None if self._response is None else table[self._response].to_native()

    def _names(self, given: Sequence[str]) -> list[str]:
        """The columns of X among those of a table."""
        if len(set(given)) < len(given):
            raise UnfitShape(SAME_NAME)
        for name in (*(self._columns or ()), self._response):
            # The names in the source are not listed: in a file without a header line they are somebody's record.
            if name is not None and name not in given:
                raise UnfitShape(f"the stream was asked for the column {name!r}, which is not there")
        return [name for name in given if name != self._response] if self._columns is None else self._columns

    def _raw(self) -> Iterator[Any]:
        source, ahead = self._source, {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(source, pathlib.Path):
            given = _read(lambda: next(schemas(source, self._dialect))).names
            return batches(source, self._names_to_read(given), self._chunk, self._dialect)
        if _is_dataset(source):
            return source.to_batches(columns=self._names_to_read(source.schema.names), batch_size=self._chunk, **ahead)
        if _is_lazy(source):
            names = self._names_to_read(_read(source.collect_schema).names())
            return iter(source.select(names).collect_batches(chunk_size=self._chunk, maintain_order=True))
        return iter(source)

    def _names_to_read(self, given: Sequence[str]) -> list[str]:
        return [*self._names(given), *filter(None, [self._response])]


def stream(
    source: Any,
    columns: Sequence[str] | None = None,
    response: str | None = None,
    *,
    chunk: int = 65536,
    csv: Mapping[str, Any] | None = None,
) -> Stream:
    """Records for `mechanism.prepare` and `kngjax.release` that are summed chunk by chunk, in constant memory.

    It serves losses with a sufficient statistic (squared loss, means): n, X'X, X'y and y'y are sums over the records.
    Each chunk is validated and clipped like any records, and an error in one leaves nothing. Sums are exact
    (`kngjax.data.exact_sums`): the same to the bit for any chunks in any order, and for the same records in memory.

    Names and types of the columns of a list's chunks, of every file, of a dataset, a lazy frame and pyarrow's reader
    are checked before a release costs anything. Those of chunks from a generator are not known beforehand: there a
    column that is absent or holds text makes a release fail after its debit.

    **Arguments:**

    - `source`: a Parquet, Arrow or Feather file, a folder of Parquet files, or a CSV file, in which a record is a line
        and a cell a number by `kngjax.data.cells`; a pyarrow dataset or record batch reader, or a polars LazyFrame,
        which read ahead as they see fit; or any iterable of chunks: data frames, or pairs (X, y) as in
        `kngjax.data.prepare`. For dask: `(part.compute() for part in frame.partitions)`. Private.
    - `columns`: the names of X's columns, in the order of the coefficients; None for all but the response, in the
        order of the source. For tables only.
    - `response`: the name of y's column; None where the model has no response, or for pairs.
    - `chunk`: the number of rows of a chunk, for sources that are not in chunks already.
    - `csv`: of a CSV file how it is written, as [data] of a job says it: {"separator": ";", "decimal": ","}, with
        `thousands` and `encoding`. A record is a line: text with line breaks is read into a frame.

    Raises FileNotFoundError, ImportError for files without pyarrow, TypeError and ValueError for what cannot be read in
    chunks; the data themselves are looked at in `prepare`.
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, like [{columns!r}]")
    if isinstance(chunk, bool) or int(chunk) != chunk or chunk < 1:
        raise ValueError(f"chunk must be a whole number of rows, at least 1, got {chunk!r}")
    names = None if columns is None else [*columns]
    if names is not None and (len(set(names)) < len(names) or response in names):
        raise ValueError("columns must name each column once, and not the response")
    if isinstance(source, str | os.PathLike):
        source = pathlib.Path(source)
        kind = file_kind(source)  # Refuses other files now, before anything is read.
        if csv is not None and kind != "CSV":
            raise ValueError(f"csv says how a CSV file is written, and {source} is none: leave csv out")
        return Stream(source, names, response, int(chunk), None if csv is None else _dialect(csv))
    if csv is not None:
        raise ValueError("csv says how a CSV file is written, and the source is none: leave csv out")
    if _is_frame(source):
        source = [source]
    elif not (_is_dataset(source) or _is_lazy(source) or _is_iterable(source)):
        raise TypeError(f"a {type(source).__name__} has no chunks: give a file, a pyarrow dataset, or its chunks")
    return Stream(source, names, response, int(chunk))


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


def is_from(module: str, name: str, value: Any) -> bool:
    """Whether a value is of this class of an optional package, which is not imported for that."""
    # Whoever has such an object has imported its package.
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))


def _is_dataset(value: Any) -> bool:
    return is_from("pyarrow.dataset", "Dataset", value)


def _is_lazy(value: Any) -> bool:
    return is_from("polars", "LazyFrame", value)


def _is_iterable(value: Any) -> bool:
    # An array can be iterated over too, but its rows are not chunks.
    return hasattr(value, "__iter__") and not hasattr(value, "__array__")


def _is_frame(value: Any) -> bool:
    return isinstance(nw.from_native(value, eager_only=True, pass_through=True), nw.DataFrame)


def _has_rows(values: Any) -> bool:
    try:
        return len(values) > 0
    except TypeError:
        # This is not known before the conversion.
        return True


def _table(chunk: Any) -> nw.DataFrame:
    if is_from("pyarrow", "RecordBatch", chunk):
        chunk = sys.modules["pyarrow"].Table.from_batches([chunk])
    if is_from("pyarrow", "Table", chunk) and len(set(chunk.column_names)) < chunk.num_columns:
        raise UnfitShape(SAME_NAME)
    table = nw.from_native(chunk, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise UnfitType(f"a chunk of a stream must be a data frame or a pair (X, y), not a {type(chunk).__name__}")
    return table


def _prefetch(source: Iterator[Any]) -> Generator[Any, None, None]:
    """Yields the items of a source; a thread reads the next one while the caller works on the last."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, source, _END)
        while (item := _read(coming.result)) is not _END:
            coming = reader.submit(next, source, _END)
            yield item


def _read(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except BaseException as error:
        raise_from_outside(error)
        failure = type(error).__name__
    # Outside of the handler, so that the reader's own message is not chained to this one.
    raise ValueError(
        f"reading the stream failed with {failure}, and nothing of it is used: the columns must hold numbers in every "
        "chunk. The reader's own message may quote a value: iterate over the source yourself to see it"
    )
