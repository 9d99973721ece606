"""Tables that rest on engines, as the columns of a study: shown before a debit, read in passes after it."""

import dataclasses
import functools
import glob
import math
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kngjax.core.errors import UnfitShape, UnfitType, hiding
from kngjax.data import files, persons
from kngjax.data.engines.base import AbstractEngine, reading
from kngjax.data.named_columns import Columns
from kngjax.data.passes import Passes
from kngjax.data.streams import engine_of
from kngjax.data.work import WholeTables, table_or_pair

# Rows so few that an engine's table of them is small.
_FEW = 100_000


def on_its_engine(frame: Any, num_records: int | None = None, person: str | None = None) -> Any:
    """Opens a path or a table that rests on an engine as `Columns`; returns other frames as they are.

    **Arguments:** `num_records`: n, of persons their number, where it is public and a query would have to be run to
    tell it. `person`: the column that identifies persons, all of whose rows are then in one batch; None where each row
    is one.

    Raises as `kngjax.stream` and `on_engine`. A CSV file is read here, as its cells are text.
    """
    if isinstance(frame, str | os.PathLike) and str(frame).lower().endswith(".csv"):
        if glob.has_magic(str(frame)) and not pathlib.Path(frame).exists():
            raise UnfitShape(
                f"{frame} names CSV files by a pattern: give a query of them, duckdb.sql(\"FROM '{frame}'\")"
            )
        return files.read(pathlib.Path(frame))
    engine = None if isinstance(frame, Columns) else engine_of(frame)
    made: Any = frame if engine is None else on_engine(engine, num_records)
    if isinstance(frame, Columns) and frame.engine is not None and num_records is not None:
        made = dataclasses.replace(frame, counted=functools.partial(_counted, frame.engine, num_records))
    return _by_person(made, person, num_records) if person is not None and is_elsewhere(made) else made


def _by_person(frame: Columns, person: str, num_records: int | None) -> Columns:
    """Opens a table on an engine so that all rows of a person are in one batch; raises UnfitType where none would be.

    A table without this column is returned as it is: what reads it says so.
    """
    if person not in frame.columns or frame.engine.person == person:
        return frame
    for one in (frame, *frame.others):
        persons.require_identifiers(one[person])
    engine = reading(lambda: frame.engine.by_person(person))
    if engine is None:
        raise UnfitType(persons.NO_PARTS)
    return dataclasses.replace(frame, engine=engine, counted=functools.partial(_counted, engine, num_records))


def require_whole_persons(frame: Any, person: str | None) -> None:
    """Raises UnfitType for a table on an engine, a batch of which may have some of a person's rows without others."""
    if person is not None and is_elsewhere(frame) and frame.engine.person != person:
        raise UnfitType(persons.NO_PARTS)


def on_engine(engine: AbstractEngine, num_records: int | None = None) -> Columns:
    """Shows the columns and types of a table that rests on an engine; cells and their number are looked at later.

    Raises UnfitShape for files with other names, and for a source that declares nothing, or that is read but once.
    """
    if engine.is_read_once:
        raise UnfitShape(f"{engine.name} can be read only once: give a table that can be read again, as a file")
    tables = [table_or_pair(one) for one in engine.declared(lambda given: None)]
    if not tables or any(isinstance(one, tuple) for one in tables):
        raise UnfitShape(f"{engine.name} does not tell its columns before it is read: give a table that does")
    first, *others = tables
    if any(set(one.columns) != set(first.columns) for one in others):
        raise UnfitShape("the files of the table have different columns")
    counted = functools.partial(_counted, engine, num_records)
    names = tuple(first.columns)
    return Columns(names, 0, first.get_column, engine=engine, counted=counted, others=tuple(others))


def _counted(engine: AbstractEngine, stated: int | None) -> int:
    """Returns n by metadata, or as it was stated: to run a query before a debit would tell whether it fails."""
    known = engine.count()
    if known is not None:
        if stated not in (None, known):
            raise UnfitShape(f"the table has {known} records, and num_records={stated} was stated: leave it out")
        return known
    if stated is None:
        of = "records" if engine.person is None else "persons"
        raise UnfitShape(
            f"under replace the number of {of} is public, and {engine.name} does not tell it without being read: "
            "state it, num_records=..., or in the [data] of a job"
        )
    return stated


def is_elsewhere(frame: Any) -> bool:
    """Tells whether this is a table on an engine."""
    return isinstance(frame, Columns) and frame.engine is not None


def opened(frame: Any) -> Any:
    """Gives the columns whose values count, of `Columns` that show their types alone before a debit; else the frame.

    Those of an engine are gathered here: their readers in passes are `records_of`.
    """
    if not isinstance(frame, Columns):
        return frame
    if frame.engine is not None:
        return _gathered(frame)
    return frame.opened()


def records_of(
    frame: Any,
    names: Sequence[str],
    read: Callable[[Any], Any],
    count: int | None = None,
    sizes: Mapping[str, float] | None = None,
    person: str | None = None,
) -> Any:
    """Returns read(frame), or of a table on an engine `Passes` whose batches are what `read` makes of these columns.

    **Arguments:** `read`: can be pickled, and treats each record by itself, of persons all rows of each. `count`: n,
    where passes are held to it. `sizes`: how many different cells public facts let expect in a column; equal records
    are counted where few differ. `person`: the column that identifies persons, or None; those of one may be equal, and
    have to stay together.
    """
    require_whole_persons(frame, person)
    if isinstance(frame, Columns) and frame.engine is not None:
        # A table without columns has no rows to count.
        names = tuple(dict.fromkeys(names)) or frame.columns[:1]
        few = person is None and math.prod((sizes or {}).get(name, math.inf) for name in names) <= _FEW
        return Passes(frame.engine, WholeTables(names), (read,), count, marked=1, seen={}, is_grouped=few)
    return read(opened(frame))


def _gathered(frame: Columns) -> Any:
    """Gathers a table on an engine here, as a table of pyarrow. Private: for the owner's looks."""
    import pyarrow

    tables = Passes(frame.engine, WholeTables(frame.columns)).collected(lambda table: [table.to_arrow()])
    empty = pyarrow.table({name: pyarrow.array([]) for name in frame.columns})
    return pyarrow.concat_tables(tables, promote_options="permissive") if tables else empty


def duckdb_relation(database: pathlib.Path, query: str) -> Any:
    """Opens a query of a database of DuckDB, for reading alone.

    Raises FileNotFoundError for a database that is not there, ImportError without DuckDB, and UnfitShape for a query
    that it refuses, whose own words are not repeated.
    """
    if not database.is_file():
        raise FileNotFoundError(f"there is no database of DuckDB {database}")
    try:
        import duckdb
    except ImportError:
        raise ImportError("this job reads a database of DuckDB: pip install 'kngjax[duckdb]'") from None
    return _opened(lambda: duckdb.connect(str(database), read_only=True).sql(query), "DuckDB")


def spark_frame(session: str, query: str) -> Any:
    """Opens a query of Spark. **Arguments:** `session`: "sc://HOST" of Spark Connect, or a master, as "local[2]".

    Raises ImportError without PySpark, and UnfitShape for a session or query that Spark refuses, whose own words are
    not repeated.
    """
    try:
        from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError("this job reads a table of Spark: pip install 'kngjax[spark]'") from None
    if session.startswith("local"):
        # Workers on this machine need kngjax too.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    start = builder.remote(session) if session.startswith("sc://") else builder.master(session)
    return _opened(lambda: start.getOrCreate().sql(query), "Spark")


def _opened(step: Callable[[], Any], engine: str) -> Any:
    def refusal(error: BaseException) -> Exception:
        kind = type(error).__name__
        return UnfitShape(f"query: {engine} refuses it with {kind}; run it there yourself to see why")

    return hiding(step, refusal)
