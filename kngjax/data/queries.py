"""Opens queries of DuckDB and Spark by what a job's file says of them: a database or a session, and a query."""

import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from kngjax.core.errors import UnfitShape, raise_from_outside


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
    try:
        return step()
    except BaseException as error:
        raise_from_outside(error)
        kind = type(error).__name__
    # Outside of the handler: the engine's words may quote a cell.
    raise UnfitShape(f"query: {engine} refuses it with {kind}; run it there yourself to see why")
