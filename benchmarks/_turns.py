"""Turns of analyses on one engine, in a fresh process: the work and the memory of all processes that it starts.

Work is the time of all processors, of Spark's Java and of all workers too. Memory is sampled from outside: what all
processes have together, pages that they share counted once. Both are of Linux, whose sessions tell whose a process is.
"""

import functools
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import kngjax as kng
from benchmarks._table import ROOT, high_water
from kngjax.data.engines.local import AbstractLocalEngine
from kngjax.data.passes import Passes
from kngjax.data.work import Total

COLUMNS = ("wage", "age", "years", "hours", "score", "events")
FEATURES = COLUMNS[1:5]
BOUNDS = {"wage": (0, 10), **dict.fromkeys(FEATURES, (0, 1)), "events": (0, 9)}
LINE = " + ".join(FEATURES)
# First those whose memory should not grow with the records.
ANALYSES = {
    "mean": lambda study: study.mean("wage", epsilon=1.0),
    "least squares": lambda study: study.linear_regression(f"wage ~ {LINE}", method="squared", epsilon=1.0),
    "Poisson regression": lambda study: study.poisson_regression(f"events ~ {LINE}", epsilon=1.0),
    "counts": lambda study: study.histogram("events", edges=[0, 1, 2, 4, 9], epsilon=1.0),
    "median": lambda study: study.quantile("wage", tau=0.5, epsilon=1.0),
    "median regression": lambda study: study.quantile_regression("wage ~ age + years", tau=0.5, epsilon=1.0),
}
QUERIES = {
    "mean, SQL without privacy": "SELECT avg(least(greatest(wage, 0), 10)) AS found FROM people",
    "counts, SQL without privacy": "SELECT floor(events) AS cell, count(*) AS found FROM people GROUP BY floor(events)",
}
START = "start"
# Rows of a row group, which engines hold in memory: as many in tables of a million rows as in larger ones.
GROUP = 2**17
# Turns while all of them have taken less work than so many seconds.
_MOST_TURNS, _LITTLE = 8, 3.0
# Seconds between two looks at the memory.
_PAUSE = 0.1
_MOST_SECONDS = 30.0
_MOST_MEMORY = 0.85 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20


def write(folder, rows, files=6):
    """Writes files of so many rows, a row group at a time; one cell in eleven of the wages is beyond its bounds."""
    for number in range(files):
        first, last = number * rows // files, (number + 1) * rows // files
        with parquet.ParquetWriter(
            folder / f"{number}.parquet", pa.schema([(name, pa.float64()) for name in COLUMNS])
        ) as to:
            for start in range(first, last, GROUP):
                generator, size = np.random.default_rng([rows, start]), min(GROUP, last - start)
                features = generator.uniform(0.0, 1.0, (4, size))
                wage = 3.0 + features.T @ [2.0, 1.0, -1.0, 0.5] + generator.standard_t(3, size)
                wage[::11] += 20.0
                events = generator.poisson(np.exp(features.T @ [0.5, 0.2, -0.3, 0.1])).clip(0, 9).astype(float)
                to.write_table(pa.table(dict(zip(COLUMNS, (wage, *features, events), strict=True))))


def in_duckdb(folder):
    """Opens a relation over the files."""
    import duckdb

    return duckdb.connect().sql(f"FROM '{folder}/*.parquet'")


def in_polars(folder):
    """Opens a query over the files."""
    import polars as pl

    return pl.scan_parquet(folder)


def in_dask(folder):
    """Opens partitions of the files, in threads."""
    import dask.dataframe as dd

    return dd.read_parquet(folder)


def in_spark(folder):
    """Opens a DataFrame of a local session with two workers."""
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.memory", "3g").getOrCreate().read.parquet(str(folder))


# How each opens the files, and what it needs; "memory" is a table of pyarrow.
ENGINES = {
    "memory": (parquet.read_table, "pyarrow"),
    "files": (lambda folder: f"{folder}/*.parquet", "pyarrow"),
    "DuckDB": (in_duckdb, "duckdb"),
    "Polars": (in_polars, "polars"),
    "Spark": (in_spark, "pyspark"),
    "Dask": (in_dask, "dask"),
}


def _sql_of_duckdb(table, query):
    table.query("people", query).fetchall()


def _sql_of_polars(table, query):
    import polars as pl

    pl.SQLContext(people=table).execute(query).collect(engine="streaming")


def _sql_of_spark(table, query):
    table.createOrReplaceTempView("people")
    table.sparkSession.sql(query).collect()


SQL = {"DuckDB": _sql_of_duckdb, "Polars": _sql_of_polars, "Spark": _sql_of_spark}


def _read(pair):
    return Total(len(pair[1]), len(pair[1]))


def _clipped(intake, pair):
    return Total(count := intake.rows(*pair, may_be_empty=True).num_records, count)


# Passes of the five columns of a line, by the same seam as those of a study.
PASSES = {
    "a pass that reads": lambda stream, intake: stream.total(_read),
    "a pass that reads and clips": lambda stream, intake: stream.total(functools.partial(_clipped, intake)),
    "a pass of exact sums": lambda stream, intake: intake.exact_sums(stream),
}


def turn_of(engine, task, folder, rows):
    """Opens the table, and returns what takes one turn."""
    table = ENGINES[engine][0](folder)
    if task == START:
        return lambda: None
    if task in QUERIES:
        return functools.partial(SQL[engine], table, QUERIES[task])
    if task in PASSES:
        bounds = kng.Bounds(x={name: BOUNDS[name] for name in FEATURES}, y=BOUNDS["wage"])
        intake = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-9.0, 9.0), 1.0, "add_remove").intake
        return functools.partial(PASSES[task], kng.stream(table, columns=list(FEATURES), response="wage"), intake)
    # A guess of a million at least: no release is refused as little but noise.
    study = kng.Study(table, bounds=BOUNDS, adjacency="add_remove", num_records=max(rows, 10**6))
    return functools.partial(ANALYSES[task], study)


def processes(session):
    """Lists the processes of a session: the folder of each, and what its line of `stat` says after its name."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            yield path, fields


def work_of_all(session):
    """Adds up the processor seconds of a session, those of children that ended too."""
    ticks = sum(int(field) for _, fields in processes(session) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of_all(session):
    """Adds up the MiB of a session; of a page that k processes share each has the k-th part."""
    total = 0
    for path, _ in processes(session):
        try:
            lines = (path / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 2**10


class _Scales:
    """Counts the bytes that are written to it."""

    total = 0

    def write(self, data):
        self.total += memoryview(data).nbytes


def one(engine, task, folder, rows, turns, with_bytes):
    """Takes turns of a task, and returns that of the least work: work, that of passes, seconds, passes and bytes.

    Of tasks that take little there are more turns: what others do on the machine matters most to them.

    **Arguments:** `with_bytes`: whether what parts reply is pickled, to see how long it is.
    """
    session, found, now = os.getsid(0), [], {}
    passed, replies = Passes._passed, AbstractLocalEngine.replies

    def counted(self, work):
        before = work_of_all(session)
        made = passed(self, work)
        now["in passes"] += work_of_all(session) - before
        now["passes"] += 1
        return made

    def weighed(self, choose, work, moved):
        made, before, scales = replies(self, choose, work, moved), time.thread_time(), _Scales()
        for _, reply in made:
            pickle.Pickler(scales, protocol=5).dump(reply)
        now["bytes"] += scales.total
        now["in passes"] -= time.thread_time() - before
        now["weighing"] += time.thread_time() - before
        return made

    opening = work_of_all(session)
    act = turn_of(engine, task, pathlib.Path(folder), rows)
    opening = work_of_all(session) - opening
    with (
        mock.patch.object(Passes, "_passed", counted),
        mock.patch.object(AbstractLocalEngine, "replies", weighed if with_bytes else replies),
    ):
        while len(found) < turns or (len(found) < _MOST_TURNS and sum(turn["work"] for turn in found) < _LITTLE):
            now = {"in passes": 0.0, "passes": 0, "bytes": 0, "weighing": 0.0}
            before, start = work_of_all(session), time.perf_counter()
            act()
            work = opening if task == START else work_of_all(session) - before - now["weighing"]
            found.append(now | {"work": work, "seconds": time.perf_counter() - start})
    return min(found, key=lambda turn: turn["work"] / max(1, turn["passes"]))


def each(engine, tasks, *given):
    """Takes turns of tasks one after the other, and prints a line of each. Spark's workers start before the first."""
    is_cold = engine == "Spark"
    for task in tasks:
        if is_cold and task != START:
            is_cold = False
            turn_of(engine, next(iter(PASSES)), *given[:2])()
        # From here on the most memory is that of this task, and of what those before left behind.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        began = time.monotonic()
        try:
            found = one(engine, task, *given)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:80]}
        print(json.dumps(found | {"MiB": high_water(), "from": began, "to": time.monotonic()}), flush=True)


def measured(engine, tasks, folder, rows, turns=3, with_bytes=False):
    """Returns what `one` finds of each task, in one new process, with the most memory that its session had."""
    program = f"from benchmarks._turns import each; each(*{(engine, tasks, str(folder), rows, turns, with_bytes)!r})"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command, seen = [sys.executable, "-c", program], []
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        ways = {"stdout": out, "stderr": errors, "env": os.environ | {"PYTHONPATH": path}}
        process = subprocess.Popen(command, start_new_session=True, **ways)
        try:
            while process.poll() is None:
                seen.append((time.monotonic(), memory_of_all(process.pid)))
                if seen[-1][1] > _MOST_MEMORY:
                    break
                time.sleep(_PAUSE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        # Java and workers end a little later.
        end = time.monotonic() + _MOST_SECONDS
        while any(processes(process.pid)) and time.monotonic() < end:
            time.sleep(_PAUSE)
        process.wait()
        out.seek(0)
        errors.seek(0)
        found = [json.loads(made) for made in out if made.startswith("{")]
        said = (errors.read().strip().splitlines() or [""])[-1][:60]
    for made in found:
        made["MiB"] = max([made["MiB"], *(memory for at, memory in seen if made["from"] <= at <= made["to"])])
    failed = f"ended with {process.returncode}, {seen[-1][1]:.0f} MiB: {said}"
    return found + [{"failed": failed}] * (len(tasks) - len(found))
