"""Searches what engines write down for private cells: outputs, logs, and files where tables are spilled or shuffled.

A child process asks a study of a table whose every cell is a canary, then of a query that fails on such a cell, with
the settings of docs/streams.md. All that it prints, and every file of its folders while it is there, is searched.
"""

import contextlib
import dataclasses
import os
import pathlib
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import kngjax as kng

TEXT, WAGE, AGE = "canary-QZ81XK", 7.310585786300049, 738_291_645_103
# As text, as the bytes of a table in memory or in a file, and as decimals, fewer than a release could give by accident.
CANARIES = (b"QZ81XK", struct.pack("<d", WAGE), struct.pack(">d", WAGE), str(WAGE)[:10].encode())
CANARIES += (struct.pack("<q", AGE), struct.pack(">q", AGE), str(AGE).encode())
NUM_RECORDS = 200_000
# Where DuckDB spills tables as they are: docs/streams.md wants an encrypted disk for that.
_NOT_ENCRYPTED = "spill"
_LONGEST = 300.0
_CHILD = "import sys; from audits import canaries; canaries._ask(sys.argv[1])"


@dataclasses.dataclass(frozen=True)
class CanarySearch:
    """Lists where canaries were found.

    **Arguments:** `engine`: its name. `found`: the files, and the child's outputs. `spilled`: files in a folder
    that must be on an encrypted disk. `files`: how many were seen. `asked`: how many analyses were released, and how
    many queries failed. `was_planted`: whether the search finds canaries in what the engine itself says of the query
    that fails.
    """

    engine: str
    found: tuple[str, ...]
    spilled: tuple[str, ...]
    files: int
    asked: tuple[int, int]
    was_planted: bool

    @property
    def passed(self) -> bool:
        """Nothing was found, by a search that finds what was planted."""
        return not self.found and self.asked == (3, 2) and self.was_planted


def search(engine: str, folder: pathlib.Path) -> CanarySearch:
    """Runs a child process that asks on an engine of `ENGINES`, and searches what it writes meanwhile."""
    for name in ("seen", "temporary", _NOT_ENCRYPTED, "planted"):
        (folder / name).mkdir()
    root = pathlib.Path(__file__).parents[1]
    # Of a cluster of Dask the configuration that every worker reads when it starts.
    (folder / "planted" / "dask.yaml").write_text("logging: {distributed.worker: critical}")
    environment = os.environ | {
        "DASK_CONFIG": str(folder / "planted" / "dask.yaml"),
        "TMPDIR": str(folder / "temporary"),
        "PYTHONPATH": str(root),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder / "temporary"),
        "JAX_PLATFORMS": "cpu",
    }
    found: dict[str, bool] = {}
    command, outputs = [sys.executable, "-c", _CHILD, engine], [folder / name for name in ("stdout", "stderr")]
    with open(outputs[0], "wb") as stdout, open(outputs[1], "wb") as stderr:
        child = subprocess.Popen(command, cwd=folder / "seen", env=environment, stdout=stdout, stderr=stderr)
        end = time.monotonic() + _LONGEST
        while child.poll() is None:
            if time.monotonic() > end:
                child.kill()
            _look(folder, found)
            time.sleep(0.05)
    _look(folder, found)
    asked = folder / "planted" / "asked"
    released, failed, *sizes = [int(one) for one in (asked.read_text().split() if asked.exists() else [0] * 4)]
    for output, size in zip(outputs, sizes, strict=True):
        found[output.name] = has_canary(output.read_bytes()[:size])
    planted = any(has_canary(output.read_bytes()[size:]) for output, size in zip(outputs, sizes, strict=True))
    hits = tuple(sorted(name for name, hit in found.items() if hit))
    spilled = tuple(name for name in hits if name.startswith(_NOT_ENCRYPTED))
    hits = tuple(name for name in hits if name not in spilled)
    return CanarySearch(engine, hits, spilled, len(found), (released, failed), planted)


def has_canary(content: bytes) -> bool:
    """Whether bytes hold a canary, or a file's bytes that are text in two bytes a letter."""
    return any(canary in content for canary in (*CANARIES, "QZ81XK".encode("utf-16-le")))


def _look(folder: pathlib.Path, found: dict[str, bool]) -> None:
    for place in ("seen", "temporary", _NOT_ENCRYPTED):
        for where, _, files in os.walk(folder / place):
            for path in (pathlib.Path(where) / file for file in files):
                name = str(path.relative_to(folder))
                # It may be removed meanwhile.
                with contextlib.suppress(OSError):
                    found[name] = found.get(name, False) or has_canary(path.read_bytes())


def _table() -> pd.DataFrame:
    return pd.DataFrame({"wage": WAGE, "age": AGE, "region": TEXT, "note": TEXT}, index=np.arange(NUM_RECORDS))


def _parquet() -> pathlib.Path:
    """Writes the table where nothing is searched."""
    path = pathlib.Path("..") / "planted" / "people.parquet"
    _table().to_parquet(path)
    return path


def _duckdb() -> Iterator[tuple[Any, Any, Callable[[], Any]]]:
    import duckdb

    settings = {"temp_directory": str(pathlib.Path("..") / _NOT_ENCRYPTED), "memory_limit": "40MB", "threads": 1}
    connection = duckdb.connect(config=settings)
    connection.execute(f"CREATE VIEW frame AS SELECT * FROM read_parquet('{_parquet()}')")
    yield (
        connection.sql("SELECT f.* FROM frame f, range(5) ORDER BY hash(note), range"),
        connection.sql("SELECT * REPLACE (CAST(note AS DOUBLE) AS wage) FROM frame"),
        lambda: connection.sql("SELECT CAST(note AS DOUBLE) FROM frame").fetchall(),
    )


def _dask() -> Iterator[tuple[Any, Any, Callable[[], Any]]]:
    import dask.config
    import dask.dataframe as dd

    dask.config.set(scheduler="threads")
    frame = dd.from_pandas(_table(), npartitions=4)
    failing = frame.assign(wage=frame["note"].astype(float))
    yield frame, failing, failing.compute


def _dask_processes() -> Iterator[tuple[Any, Any, Callable[[], Any]]]:
    import dask.config
    import distributed  # pyright: ignore[reportMissingImports]

    dask.config.set({"temporary_directory": os.environ["TMPDIR"]})
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None):
        import dask.dataframe as dd

        frame = dd.from_pandas(_table(), npartitions=4)
        failing = frame.assign(wage=frame["note"].astype(float))
        yield frame, failing, failing.compute


def _spark(**settings: str) -> Iterator[tuple[Any, Any, Callable[[], Any]]]:
    from pyspark import StorageLevel  # pyright: ignore[reportMissingImports]
    from pyspark.sql import SparkSession, functions  # pyright: ignore[reportMissingImports]

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.eventLog.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.shuffle.compress": "false",
        "spark.rdd.compress": "false",
        "spark.sql.warehouse.dir": os.environ["TMPDIR"],
        **settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    rows = session.range(NUM_RECORDS // 10).select(
        functions.lit(WAGE).alias("wage"),
        functions.lit(AGE).alias("age"),
        *[functions.lit(TEXT).alias(one) for one in ("region", "note")],
    )
    frame = rows.repartition(5).persist(StorageLevel.DISK_ONLY)
    failing = frame.withColumn("wage", functions.col("note").cast("double"))
    yield frame, failing, failing.collect
    session.stop()


ENGINES = {
    "DuckDB": _duckdb,
    "Dask": _dask,
    "Dask, two processes": _dask_processes,
    "Spark": _spark,
    "Spark, not encrypted": lambda: _spark(
        **{
            "spark.io.encryption.enabled": "false",
            "spark.network.crypto.enabled": "false",
            "spark.authenticate": "false",
        }
    ),
}


def _ask(engine: str) -> None:
    """Asks in the child process; what fails says all that a user would see of it."""
    facts: dict[str, Any] = {
        "bounds": {"wage": (0, 10), "age": (0, 10**12)},
        "levels": {"region": ("north", "south")},
        "missing": {"region": "north", "wage": 1.0},
        "adjacency": "add_remove",
        "num_records": NUM_RECORDS,
    }
    released = failed = 0
    for frame, failing, speak in ENGINES[engine]():
        study = kng.Study(frame, **facts)
        for made in (
            study.mean("wage", epsilon=1.0),
            study.linear_regression("wage ~ age + region", epsilon=1.0, method="adassp", delta=1e-6),
            study.histogram("region", epsilon=1.0),
        ):
            print(made, made.summary())
            released += len(made.releases) > 0
        one = kng.Study(failing, **facts)
        for ask in (one.mean, one.variance):
            try:
                print(ask("wage", epsilon=1.0))
            except kng.ReleaseFailed:
                traceback.print_exc()
                failed += 1
        # What is printed after this is what the engine says by itself.
        sys.stdout.flush()
        time.sleep(1.0)
        sizes = [os.fstat(output).st_size for output in (1, 2)]
        (pathlib.Path("..") / "planted" / "asked").write_text(f"{released} {failed} {sizes[0]} {sizes[1]}")
        with contextlib.suppress(Exception):
            try:
                speak()
            finally:
                traceback.print_exc()
