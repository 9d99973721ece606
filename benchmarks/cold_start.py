"""What a first user waits for: `kngjax release` on the wage data, and first calls, from fresh processes.

`python -m benchmarks.cold_start [CONFIG] [--runs 2] [--records 2000] [--dimension 3]`.

Every run is a process of its own, and writes into a folder that is thrown away. The second finds files and bytecode in
the page cache and nothing else: no compiled program of a release is kept on disk, where private data could end. Work
is the time of all processors.

First calls begin with the start of the process: imports, compiling and one release, beside a fit by statsmodels.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import _table, peers

CONFIG = _table.ROOT / "configs" / "cps1988_wages.toml"
# Listens to JAX before the command does anything, and reports after it has done all.
CHILD = """
import json, sys
import jax.monitoring
compilations = []
def listen(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        compilations.append(seconds)
jax.monitoring.register_event_duration_secs_listener(listen)
from kngjax.command.cli import main
status = main(sys.argv[1:])
print(json.dumps([len(compilations), sum(compilations)]), file=sys.stderr)
sys.exit(status)
"""


class Run(NamedTuple):
    """**Arguments:** `wall`, `work`: seconds; `compilations`: how many programs, and `compiling` their seconds."""

    wall: float
    work: float
    compilations: int
    compiling: float


def _first(way: Callable[..., Any]) -> Callable[..., Any]:
    """A way of which nothing but the first results is measured."""
    return lambda *sizes: (way(*sizes, 1)[0], None)


def _wide(kng: Any, dimension: int) -> Any:
    return kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)


WAYS = {name: _first(peers.WAYS[name]) for name in (*list(peers.WAYS)[:1], "AdaSSP", "posterior sample (OPS)")} | {
    name: _first(peers.released(*parts))
    for name, *parts in (
        (
            "output perturbation, squared loss",
            lambda kng, n, d: kng.OutputPerturbation(
                kng.SquaredLoss(), peers._bounds(kng, d), 100.0, 1.0, peers.DELTA, "replace", max_records=n
            ),
        ),
        (
            "objective perturbation, squared loss",
            lambda kng, n, d: kng.ObjectivePerturbation(
                kng.SquaredLoss(), peers._bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"
            ),
        ),
        (
            "objective perturbation, pseudo-Huber loss",
            lambda kng, n, d: kng.ObjectivePerturbation(
                kng.PseudoHuberLoss(1.345), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"
            ),
        ),
        (
            "KNG, squared loss",
            lambda kng, n, d: kng.KNG(kng.SquaredLoss(), peers._bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
        (
            "KNG, quantile loss",
            lambda kng, n, d: kng.KNG(kng.QuantileLoss(0.5), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
        (
            "KNG, pseudo-Huber loss",
            lambda kng, n, d: kng.KNG(kng.PseudoHuberLoss(1.345), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
    )
}


def release(config: pathlib.Path) -> Run:
    """One release in a fresh process; raises RuntimeError with what it said if it failed."""
    path = os.pathsep.join([str(_table.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", CHILD, "release", str(config), "--output", folder]
        run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, work, *json.loads(run.stderr.splitlines()[-1]))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=pathlib.Path, nargs="?", default=CONFIG)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--dimension", type=int, default=3)
    options = parser.parse_args()
    print(f"kngjax release {options.config.name} from fresh processes, {_table.machine()}")
    print(f"{'run':>4}{'seconds':>10}{'of work':>10}{'programs':>10}{'compiling':>11}")
    for number in range(1, options.runs + 1):
        run = release(options.config)
        print(f"{number:>4}{run.wall:>10.1f}{run.work:>10.1f}{run.compilations:>10}{run.compiling:>11.1f}", flush=True)
    print(f"\nFirst calls, n = {options.records}, d = {options.dimension}, {_table.machine()}")
    print(_table.HEADER)
    for way in WAYS:
        print(_table.fresh("benchmarks.cold_start", way, (options.records, options.dimension)), flush=True)


if __name__ == "__main__":
    main()
