"""Sufficient statistics of a Parquet file in constant memory, beside a scan of the same columns by pyarrow.

`python -m benchmarks.streaming [--rows 10000000] [--folder .]` writes a file of that many rows of 12 float32 columns,
and one of a fourth of them, into a temporary folder, takes turns in reading them, and deletes them. Each peak of memory
is that of a fresh process on Linux, less what its imports take; work is the time of all processors.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

import kngjax as kng

COLUMNS = [f"x{place}" for place in range(11)]
GROUP = 2**20
REPEATS = 3

PEAK = """
import sys
from benchmarks import streaming
before = streaming.high_water()
streaming.WAYS[sys.argv[1]](sys.argv[2])
print(streaming.high_water() - before)
"""


def high_water():
    """The most memory that this process has had, in MiB; `resource` would tell that of the process that started it."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def write(path, rows):
    """A file of uniform float32 numbers, a row group at a time."""
    random = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in (*COLUMNS, "y")])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            size = min(GROUP, rows - start)
            # From -0.1, so that clipping has something to do.
            columns = [random.uniform(-0.1, 1.0, size).astype(np.float32) for _ in schema.names]
            writer.write_table(pa.table(columns, schema=schema))


def mechanism():
    """The one whose sufficient statistics are streamed."""
    bounds = kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0))
    return kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-1.0, 1.0), 1.0, "replace")


def by_kngjax(path):
    """n, X'X, X'y and y'y of the clipped records."""
    return mechanism().prepare(kng.stream(path, columns=COLUMNS, response="y"))


def by_scan(path):
    """The number of rows: what reading alone takes."""
    return sum(batch.num_rows for batch in dataset.dataset(path).to_batches(columns=[*COLUMNS, "y"]))


def in_memory(path):
    """The same as by kngjax, of a table that is read as a whole."""
    table = parquet.read_table(path)
    return mechanism().prepare(table.select(COLUMNS), table["y"])


WAYS = {"kngjax.stream": by_kngjax, "pyarrow, scan alone": by_scan, "kngjax, whole table in memory": in_memory}


def peak(name, path):
    """MiB by which a fresh process grows, in words if it was killed."""
    run = subprocess.run([sys.executable, "-c", PEAK, name, path], capture_output=True, text=True)
    if run.returncode < 0:
        return "too much"
    run.check_returncode()
    return f"{float(json.loads(run.stdout)):.0f}"


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=pathlib.Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sizes = {options.rows: f"{folder}/all.parquet", options.rows // 4: f"{folder}/fourth.parquet"}
        for rows, path in sizes.items():
            write(path, rows)
        path = sizes[options.rows]
        times = {name: [] for name in WAYS if name != "kngjax, whole table in memory"}
        for _ in range(REPEATS):
            for name in times:
                start, work = time.perf_counter(), time.process_time()
                WAYS[name](path)
                times[name].append((time.perf_counter() - start, time.process_time() - work))
        best = {name: np.min(found, axis=0) for name, found in times.items()}
        print(f"{options.rows} rows of 12 float32 columns, best of {REPEATS} in turns, on {os.cpu_count()} processors")
        print(f"{'':32}{'rows/s':>10}{'of work':>10}{'peak MiB':>10}{'of 1/4':>10}")
        for name in WAYS:
            speeds = "".join(f"{options.rows / seconds:10.3g}" for seconds in best[name]) if name in best else " " * 20
            print(f"{name:32}{speeds}" + "".join(f"{peak(name, path):>10}" for path in sizes.values()))
        wall, work = best["kngjax.stream"] / best["pyarrow, scan alone"]
        print(f"kngjax.stream takes {wall:.2f} times as long as the scan, with {work:.2f} times its work")


if __name__ == "__main__":
    main()
