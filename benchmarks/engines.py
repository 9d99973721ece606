"""Releases of one table where it rests: in memory, in files, in DuckDB, Polars, Spark and Dask, beside plain SQL.

`python -m benchmarks.engines [--rows 6000000] [--folder .]` writes six Parquet files of six columns and takes each
analysis on each engine, in a fresh process an engine; of more than fifty million rows four analyses on three engines,
once each. `--slopes 1000000 10000000` does so by size, and prints what a record costs in a pass, what that predicts for
larger tables, and whether those measured agree; `--kept FILE` keeps what was measured, so that a size or an engine can
follow later. An engine that is not installed is left out. Of n records

    processor seconds = passes (a + b n) + driver (c + e n),     bytes to the driver = parts s + g n,

and only b is divided by the cores of a cluster.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import _table, _turns

# Beyond so many rows: on these engines, where records are gathered too, and what has most to do.
LARGE = 50_000_000
OF_LARGE = (("files", "DuckDB", "Spark"), ("mean", "counts", "least squares", "median regression"))
OF_SLOPES = (*OF_LARGE[1], *_turns.PASSES)
# A cluster of the prediction, and the bytes of a part as Spark cuts files.
CORES, PART = 200, 128 * 2**20
AHEAD = (10**9, 10**10)
# Beyond so many rows replies are not weighed: they may be as large as what is gathered.
WEIGHED = 10**7
LOADING = {
    "numpy and pyarrow": "import numpy, pyarrow",
    "what sums need": "import kngjax.mechanisms.preparation, kngjax.losses.squared",
    "JAX": "import jax.numpy",
}


def line(*cells):
    """Prints a row of a table at once."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*names):
    """Prints the names of the columns of a table."""
    print()
    line(*names)
    line(*["---"] * len(names))


def results(engines, kinds, folder, rows, turns, known=(), with_bytes=False):
    """Yields task, engine and what was measured: a process an engine; those that are not installed are left out.

    **Arguments:** `known`: (task, engine, rows) that are not measured anew.
    """
    for engine in engines:
        serves = {task: task not in _turns.QUERIES or engine in _turns.SQL for task in kinds}
        serves |= {task: engine != "memory" for task in kinds if task in _turns.PASSES}
        serves |= {_turns.START: engine == "Spark"}
        wanted = [task for task in kinds if serves[task] and (task, engine, rows) not in known]
        if wanted and importlib.util.find_spec(_turns.ENGINES[engine][1]):
            if not any(folder.iterdir()):
                _turns.write(folder, rows)
            found = _turns.measured(engine, wanted, folder, rows, turns, with_bytes and engine == "files")
            yield from ((task, engine, made) for task, made in zip(wanted, found, strict=True))


def table(options, folder):
    """Prints what each analysis takes on each engine."""
    print(f"{options.rows} rows of six columns, least of {options.turns} turns or more, {_table.machine()}")
    header("analysis", "engine", "processor seconds", "seconds", "passes", "MiB")
    kinds = [_turns.START, *_turns.QUERIES, *_turns.PASSES, *options.analyses]
    for task, engine, made in results(options.engines, kinds, folder, options.rows, options.turns):
        if "failed" in made:
            line(task, engine, f"failed: {made['failed']}", "", "", "")
            continue
        name = "start, with Java" if task == _turns.START else task
        line(name, engine, f"{made['work']:.2f}", f"{made['seconds']:.2f}", made["passes"] or "", f"{made['MiB']:.0f}")


def loading(program):
    """Returns the processor seconds of a fresh process: what each cold worker takes."""
    before = os.times()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=_table.ROOT)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def straight(sizes, values):
    """Returns a and b of the line a + bn through two points, neither below 0."""
    (few, more), (one, two) = sizes, values
    each = max(0.0, (two - one) / (more - few))
    return max(0.0, one - each * few), each


class Constants:
    """Holds the constants of an analysis on an engine, as two sizes tell them.

    **Arguments:** `measured`: two pairs of n and what `benchmarks._turns.one` found. `sent`: s and g, or None. Where
    nothing is gathered, what the driver does besides is the same of any n.

    `start`, `record`: processor seconds of a pass, whatever n, and of a record in it: a and b. `fixed`, `alone`: of the
    driver besides: c and e.
    """

    def __init__(self, measured, sent=None):
        sizes, turns = zip(*measured, strict=True)
        self.passes = turns[-1]["passes"]
        self.start, self.record = straight(sizes, [turn["in passes"] / max(1, turn["passes"]) for turn in turns])
        besides = [turn["work"] - turn["in passes"] for turn in turns]
        self.fixed, self.alone = (max(0.0, min(besides)), 0.0) if sent and sent[1] == 0.0 else straight(sizes, besides)

    def work(self, rows, passes):
        """Predicts the processor seconds of so many records in so many passes."""
        return passes * (self.start + rows * self.record) + self.fixed + rows * self.alone


def last_two(by_size, before=float("inf")):
    """Lists the two largest sizes below a limit, with what was measured of them; None without two."""
    sizes = [(rows, one) for rows, one in by_size.items() if rows < before][-2:]
    return sizes if len(sizes) == 2 else None


def replies(by_size):
    """Returns bytes of a part and of a record, s and g, where replies were weighed at two sizes; else None.

    Some releases begin with a few records: that is nothing of each record.
    """
    weighed = last_two({rows: one["bytes"] for rows, one in by_size.items() if one["bytes"]})
    if weighed is None:
        return None
    part, record = straight(*zip(*weighed, strict=True))
    return (part, record) if record >= 1.0 else (weighed[-1][1], 0.0)


def all_replies(found):
    """Returns s and g by analysis, as files tell them."""
    return {task: replies(by_size) for (task, engine), by_size in found.items() if engine == "files"}


def print_ratios(found):
    """Prints what exact sums take beside a pass that reads and clips, of the largest table."""
    header("engine", "records", *(f"{name}, µs a record" for name in _turns.PASSES), "sums / clips")
    for engine in _turns.ENGINES:
        passes = [found.get((name, engine)) for name in _turns.PASSES]
        if all(passes):
            rows = max(passes[-1])
            each = [by_size[rows]["work"] / rows * 1e6 for by_size in passes]
            line(engine, f"{rows:.0e}", *(f"{one:.3f}" for one in each), f"{each[2] / each[1]:.2f}")


def print_measured(found):
    """Prints what was measured, in brackets over what the two sizes before predict, and memory."""
    sizes, sent = sorted({rows for by_size in found.values() for rows in by_size}), all_replies(found)
    header("analysis", "engine", *(f"{rows:.0e}: s" for rows in sizes), *(f"{rows:.0e}: MiB" for rows in sizes))
    for (task, engine), by_size in found.items():
        seconds = []
        for rows in sizes:
            one, before = by_size.get(rows), last_two(by_size, rows)
            said = "" if one is None else f"{one['work']:.2f}"
            if one is not None and before is not None:
                said += f" ({one['work'] / max(0.01, Constants(before, sent.get(task)).work(rows, one['passes'])):.2f})"
            seconds.append(said)
        line(task, engine, *seconds, *(f"{by_size[rows]['MiB']:.0f}" if rows in by_size else "" for rows in sizes))


def print_constants(found):
    """Prints the constants that the two largest sizes tell, and of Spark what they predict of larger tables."""
    names = ("passes", "a, s", "b, µs", "c, s", "e, µs", "s, bytes", "g, bytes")
    header("analysis", "engine", *names)
    sent, both = all_replies(found), {key: last_two(by_size) for key, by_size in found.items()}
    known = {key: Constants(two, sent.get(key[0])) for key, two in both.items() if two}
    for (task, engine), one in known.items():
        cells = (f"{one.start:.2f}", f"{one.record * 1e6:.3f}", f"{one.fixed:.2f}", f"{one.alone * 1e6:.3f}")
        bytes_sent = sent.get(task)
        told = ("", "") if bytes_sent is None else (f"{bytes_sent[0]:.0f}", f"{bytes_sent[1]:.1f}")
        line(task, engine, one.passes, *cells, *told)
    header("analysis", "records", "processor hours", "seconds", "of them the driver's", "parts", "MB to the driver")
    for (task, engine), one in known.items():
        for rows in AHEAD if engine == "Spark" else ():
            parts, driver = -(-rows * 8 * len(_turns.COLUMNS) // PART), one.fixed + rows * one.alone
            seconds = one.passes * (one.start + rows * one.record / CORES) + driver
            part, record = sent.get(task) or (float("nan"), float("nan"))
            hours, megabytes = one.work(rows, one.passes) / 3600, (parts * part + rows * record) / 1e6
            line(task, f"{rows:.0e}", f"{hours:.2f}", f"{seconds:.0f}", f"{driver:.0f}", parts, f"{megabytes:.3g}")


def slopes(options, folder):
    """Prints the constants of the cost model by size, what they predict, and what was measured."""
    kinds = [*_turns.PASSES, *options.analyses]
    kept = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else []
    for rows in [options.slopes[0] // 10, *options.slopes]:
        turns, asked = (options.turns, kinds) if rows <= LARGE else (1, [task for task in kinds if task in OF_SLOPES])
        known = {tuple(one[:3]) for one in kept}
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = results(options.engines, asked, pathlib.Path(place), rows, turns, known, rows <= WEIGHED)
            for task, engine, one in made:
                if "failed" in one:
                    print(f"{task} on {engine}, {rows} rows: {one['failed']}", flush=True)
                else:
                    kept.append([task, engine, rows, one])
        if options.kept:
            options.kept.write_text(json.dumps(kept, indent=0))
    found, places = {}, {name: place for place, name in enumerate([*_turns.ENGINES, *_turns.PASSES, *_turns.ANALYSES])}
    for task, engine, rows, one in sorted(kept, key=lambda one: (places[one[1]], places[one[0]], one[2])):
        found.setdefault((task, engine), {})[rows] = one
    print(f"least of {options.turns} turns or more, {_table.machine()}")
    print("A cold worker loads " + ", ".join(f"{name} in {loading(text):.2f} s" for name, text in LOADING.items()))
    print_ratios(found)
    print_measured(found)
    print_constants(found)


def main():
    """Prints the table, or the constants by size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--slopes", type=int, nargs="+", default=None, metavar="ROWS", help="sizes, rising")
    parser.add_argument("--kept", type=pathlib.Path, default=None, metavar="FILE", help="of JSON, for --slopes")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--engines", nargs="*", default=None, choices=[*_turns.ENGINES])
    parser.add_argument("--analyses", nargs="*", default=None, choices=[*_turns.ANALYSES])
    parser.add_argument("--turns", type=int, default=None)
    options = parser.parse_args()
    is_large = options.slopes is None and options.rows > LARGE
    every = OF_LARGE if is_large else (tuple(_turns.ENGINES), tuple(_turns.ANALYSES))
    if options.slopes is not None:
        every = OF_LARGE[0], tuple(_turns.ANALYSES)
    options.engines, options.analyses = options.engines or every[0], options.analyses or every[1]
    options.turns = options.turns or (1 if is_large else 3)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        (table if options.slopes is None else slopes)(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
