"""Releases of one table where it rests: in memory, in files, in DuckDB, Polars, Dask and Spark, beside plain SQL.

`python -m benchmarks.engines [--rows 6000000] [--folder .]` writes six Parquet files of six columns and takes each
analysis on each engine in a fresh process. Work is the time of all processors, of Spark's Java too; memory is the most
that the process had, on Linux. An engine that is not installed is left out.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import kngjax as kng
from benchmarks.streaming import high_water

COLUMNS = ("wage", "age", "years", "hours", "score", "events")
BOUNDS = {"wage": (0, 10), "age": (0, 1), "years": (0, 1), "hours": (0, 1), "score": (0, 1), "events": (0, 9)}
LINE = "wage ~ age + years + hours + score"
ANALYSES = {
    "mean": lambda study: study.mean("wage", epsilon=1.0),
    "counts": lambda study: study.histogram("events", edges=[0, 1, 2, 4, 9], epsilon=1.0),
    "median": lambda study: study.quantile("wage", tau=0.5, epsilon=1.0),
    "least squares": lambda study: study.linear_regression(
        "wage ~ age + years + hours + score", method="squared", epsilon=1.0
    ),
    "Poisson regression": lambda study: study.poisson_regression(LINE.replace("wage", "events"), epsilon=1.0),
    "median regression": lambda study: study.quantile_regression("wage ~ age + years", tau=0.5, epsilon=1.0),
}


def write(folder, rows, files=6):
    """Writes so many rows; one cell in eleven of the wages is beyond its bounds."""
    for number in range(files):
        generator, size = np.random.default_rng(number), rows // files
        features = generator.uniform(0.0, 1.0, (4, size))
        wage = 3.0 + features.T @ [2.0, 1.0, -1.0, 0.5] + generator.standard_t(3, size)
        wage[::11] += 20.0
        events = generator.poisson(np.exp(features.T @ [0.5, 0.2, -0.3, 0.1])).clip(0, 9).astype(float)
        table = pa.table(dict(zip(COLUMNS, (wage, *features, events), strict=True)))
        parquet.write_table(table, folder / f"{number}.parquet")


def in_memory(folder):
    """Reads all files."""
    return parquet.read_table(folder)


def in_duckdb(folder):
    """A relation over the files."""
    import duckdb

    return duckdb.connect().sql(f"FROM '{folder}/*.parquet'")


def in_polars(folder):
    """A query over the files."""
    import polars as pl

    return pl.scan_parquet(folder)


def in_dask(folder):
    """Partitions of the files, in threads."""
    import dask.dataframe as dd

    return dd.read_parquet(folder)


def in_spark(folder):
    """A DataFrame of a local session with two workers."""
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.memory", "3g").getOrCreate().read.parquet(str(folder))


ENGINES = {
    "memory": (in_memory, "pyarrow"),
    "files": (lambda folder: f"{folder}/*.parquet", "pyarrow"),
    "DuckDB": (in_duckdb, "duckdb"),
    "Polars": (in_polars, "polars"),
    "Dask": (in_dask, "dask"),
    "Spark": (in_spark, "pyspark"),
}


def unprivate(folder):
    """The mean and the counts by SQL of DuckDB, without privacy."""
    import duckdb

    source = f"FROM '{folder}/*.parquet'"
    duckdb.sql(f"SELECT avg(least(greatest(wage, 0), 10)) {source}").fetchall()
    duckdb.sql(f"SELECT floor(events), count(*) {source} GROUP BY 1").fetchall()


def work_of_all():
    """Processor seconds of this process and of its children, those that run too."""
    own = sum(os.times()[:4])
    ticks = os.sysconf("SC_CLK_TCK")
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == os.getpgrp() and int(path.parent.name) != os.getpid():
            own += (int(fields[11]) + int(fields[12])) / ticks
    return own


def one(engine, analysis, folder):
    """Takes an analysis three times, the first to compile; prints the least work and time, and the most memory."""
    folder, found = pathlib.Path(folder), []
    if engine == "SQL":
        turns = [lambda: unprivate(folder)] * 3
    else:
        table = ENGINES[engine][0](folder)
        study = kng.Study(table, bounds=BOUNDS, adjacency="add_remove", num_records=10**6)
        turns = [lambda: ANALYSES[analysis](study)] * 3
    for turn in turns:
        before, start = work_of_all(), time.perf_counter()
        turn()
        found.append((work_of_all() - before, time.perf_counter() - start))
    print(json.dumps([*(min(part) for part in zip(*found, strict=True)), high_water()]))


def main():
    """Writes the files, and prints a line of the table for each analysis and engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--engines", nargs="*", default=[*ENGINES, "SQL"])
    parser.add_argument("--analyses", nargs="*", default=[*ANALYSES])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write(pathlib.Path(folder), options.rows)
        print("| analysis | engine | processor seconds | seconds | MiB |\n| --- | --- | --- | --- | --- |")
        for analysis in options.analyses:
            for engine in options.engines:
                needs = "duckdb" if engine == "SQL" else ENGINES[engine][1]
                if importlib.util.find_spec(needs) is None or (engine == "SQL" and analysis != "mean"):
                    continue
                program = f"from benchmarks.engines import one; one({engine!r}, {analysis!r}, {folder!r})"
                ran = subprocess.run(
                    [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True, check=False
                )
                if ran.returncode:
                    print(
                        f"| {analysis} | {engine} | failed | {ran.stderr.strip().splitlines()[-1][:80]} | |", flush=True
                    )
                    continue
                work, seconds, memory = json.loads(ran.stdout.splitlines()[-1])
                name = "mean and counts, not private" if engine == "SQL" else analysis
                print(f"| {name} | {engine} | {work:.1f} | {seconds:.1f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
