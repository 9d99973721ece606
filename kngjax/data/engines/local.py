"""Tables that this process reads itself: lazy frames, relations of DuckDB, readers of batches, and chunks."""

import abc
import concurrent.futures
import contextlib
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from kngjax.data.engines import settled
from kngjax.data.engines.base import AbstractEngine, Choose, apart_from, reading
from kngjax.data.work import whole_persons

_END = object()
# Types whose equal cells have the same bits. Texts are compared by their bytes.
_WHOLE_IN_DUCKDB = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_EXACT_IN_DUCKDB = (*_WHOLE_IN_DUCKDB, "BOOLEAN", "DATE", "VARCHAR")
_WHOLE_IN_POLARS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_EXACT_IN_POLARS = (*_WHOLE_IN_POLARS, "Boolean", "Date", "String")
# Sources that can be read only once and were read, by their id: another stream must not take what is left for all.
_READ: set[int] = set()
# Iterators of Python's own, whose end nothing tells: while they are held, nothing else has their id.
_HELD: list[Any] = []


class AbstractLocalEngine(AbstractEngine):
    """Reads a table as one part, each batch while the last one is worked on.

    **Arguments:** `source`: the table. `rows`: of a batch, where the source is not in batches already.
    """

    tells_batches = True

    def __init__(self, source: Any, rows: int):
        self.source, self.rows = source, rows
        self.is_read_once = isinstance(source, Iterator)

    @property
    def is_gone(self) -> bool:
        return self.is_read_once and id(self.source) in _READ

    @abc.abstractmethod
    def batches(self, choose: Choose) -> Iterable[Any]:
        """Reads the chosen columns in batches."""

    def sorts(self, person: str) -> bool:
        """Tells whether rows can be sorted by this column, by its type, so that equal cells come after one another."""
        return False

    def sorted_batches(self, choose: Choose, person: str) -> Iterable[Any]:
        """Reads the chosen columns in batches, sorted by one of them, text by its bytes."""
        raise NotImplementedError

    def by_person(self, person: str) -> "ByPerson | None":
        return ByPerson(self, person) if self.sorts(person) else None

    def replies(self, choose: Choose, work: Any, moved: Callable[[int], Any]) -> Iterable[tuple[int, Any]]:
        if self.is_read_once:
            _READ.add(id(self.source))
            try:
                weakref.finalize(self.source, _READ.discard, id(self.source))
            except TypeError:
                _HELD.append(self.source)
        source = reading(lambda: iter(self.batches(choose)))
        with contextlib.closing(_prefetched(source, moved)) as batches:
            return [(0, work(batches))]


class ByPerson(AbstractLocalEngine):
    """Reads a table of another engine, sorted, with all rows of a person in one batch."""

    # How many rows a person has is private.
    tells_batches = False

    def __init__(self, engine: AbstractLocalEngine, person: str):
        super().__init__(engine.source, engine.rows)
        self.engine, self.person, self.name = engine, person, engine.name

    def declared(self, choose: Choose) -> list[Any]:
        return self.engine.declared(choose)

    def has_no_rows(self) -> bool:
        return self.engine.has_no_rows()

    def batches(self, choose: Choose) -> Iterable[Any]:
        assert self.person is not None
        return whole_persons(self.engine.sorted_batches(choose, self.person), self.person)


class Lazy(AbstractLocalEngine):
    """Reads a LazyFrame of polars, whose query runs in each pass."""

    name = "a LazyFrame of polars"

    def is_settled(self) -> bool:
        return settled.frame_of_polars(self.source)

    def declared(self, choose: Choose) -> list[Any]:
        return [sys.modules["polars"].DataFrame(schema=reading(self.source.collect_schema))]

    def batches(self, choose: Choose) -> Iterable[Any]:
        given = self.source.collect_schema().names()
        query = self.source.select(choose(given) or given)
        return query.collect_batches(chunk_size=self.rows, maintain_order=True)

    def sorts(self, person: str) -> bool:
        kind = self.source.collect_schema()[person]
        return str(kind) in _WHOLE_IN_POLARS or kind.base_type().__name__ in ("String", "Categorical", "Enum")

    def sorted_batches(self, choose: Choose, person: str) -> Iterable[Any]:
        polars, kinds = sys.modules["polars"], self.source.collect_schema()
        own = polars.col(person)
        by = own if str(kinds[person]) in _WHOLE_IN_POLARS else own.cast(polars.String)
        query = self.source.select(choose(kinds.names()) or kinds.names()).sort(by)
        return query.collect_batches(chunk_size=self.rows, maintain_order=True)

    def grouped(self, choose: Choose) -> "Lazy | None":
        polars, kinds = sys.modules["polars"], self.source.collect_schema()
        names = choose(kinds.names()) or []
        if not names or any(str(kinds[name]) not in _EXACT_IN_POLARS for name in names):
            return None
        # The length of a group may have 32 digits in Polars.
        times = apart_from(names)
        ones = self.source.select(names).with_columns(polars.lit(1, polars.Int64).alias(times))
        return Lazy(ones.group_by(names).agg(polars.col(times).sum()), self.rows)


class Relation(AbstractLocalEngine):
    """Reads a relation of DuckDB, whose query runs in each pass."""

    name = "a relation of DuckDB"

    def is_settled(self) -> bool:
        return settled.relation_of_duckdb(self.source)

    def declared(self, choose: Choose) -> list[Any]:
        return [reading(lambda: self.source.limit(0).to_arrow_table())]

    def batches(self, choose: Choose) -> Iterable[Any]:
        names = choose(self.source.columns) or self.source.columns
        return self.source.project(", ".join(map(_quoted, names))).to_arrow_reader(self.rows)

    def sorts(self, person: str) -> bool:
        kind = self._kind(person)
        return kind in (*_WHOLE_IN_DUCKDB, "VARCHAR") or kind.startswith("ENUM")

    def sorted_batches(self, choose: Choose, person: str) -> Iterable[Any]:
        names, own = choose(self.source.columns) or self.source.columns, _quoted(person)
        # Collations take texts for equal that differ.
        by = own if self._kind(person) in _WHOLE_IN_DUCKDB else f"encode({own}::VARCHAR)"
        return self.source.project(", ".join(map(_quoted, names))).order(by).to_arrow_reader(self.rows)

    def _kind(self, name: str) -> str:
        return str(self.source.types[self.source.columns.index(name)])

    def grouped(self, choose: Choose) -> "Relation | None":
        kinds = dict(zip(self.source.columns, map(str, self.source.types), strict=True))
        names = choose(self.source.columns) or []
        if not names or any(kinds[name] not in _EXACT_IN_DUCKDB for name in names):
            return None

        def each(of_text: str) -> str:
            made = ((_quoted(name), kinds[name] == "VARCHAR") for name in names)
            return ", ".join(f"{of_text}({name}) AS {name}" if is_text else name for name, is_text in made)

        # Collations take texts for equal that differ.
        by, times = ", ".join(map(_quoted, names)), _quoted(apart_from(names))
        counted = self.source.project(each("encode")).aggregate(f"{by}, count(*) AS {times}", by)
        return Relation(counted.project(f"{each('decode')}, {times}"), self.rows)


class Reader(AbstractLocalEngine):
    """Reads a reader of record batches of pyarrow, once."""

    name = "a reader of record batches"

    def declared(self, choose: Choose) -> list[Any]:
        return [self.source.schema.empty_table()]

    def batches(self, choose: Choose) -> Iterable[Any]:
        return self.source


class Chunks(AbstractLocalEngine):
    """Reads chunks that a program holds or makes: data frames, or pairs (X, y) of arrays.

    Those of a list are looked at by their types before anything is spent, those of a generator when they come.
    """

    name = "an iterable of chunks"

    def declared(self, choose: Choose) -> list[Any]:
        return list(self.source) if isinstance(self.source, list | tuple) else []

    def count(self) -> int | None:
        if not isinstance(self.source, list | tuple):
            return None
        lengths = [_length(one) for one in self.source]
        return None if None in lengths else sum(length for length in lengths if length is not None)

    def batches(self, choose: Choose) -> Iterable[Any]:
        return self.source


def _length(chunk: Any) -> int | None:
    """Counts the rows of a frame or of a pair; None for what has no length before it is converted."""
    if isinstance(chunk, tuple | list) and len(chunk) == 2:
        chunk = chunk[1] if chunk[0] is None else chunk[0]
    try:
        return len(chunk)
    except TypeError:
        return None


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _prefetched(source: Iterator[Any], moved: Callable[[int], Any]) -> Generator[Any, None, None]:
    """Yields the items of a source; a thread reads the next one while the caller works on the last.

    **Arguments:** `moved`: moves a bar by so many records.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, source, _END)
        while (item := reading(coming.result)) is not _END:
            coming = reader.submit(next, source, _END)
            yield item
            moved(_length(item) or 0)
