"""What a first user waits for: `kngjax release` on the wage data from fresh processes, with their compilations.

`python -m benchmarks.cold_start [CONFIG] [--runs 2]`.

Every run is a process of its own, and writes into a folder that is thrown away. The second finds files and bytecode in
the page cache and nothing else: no compiled program of a release is kept on disk, where private data could end. Work
is the time of all processors.
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
from typing import NamedTuple

from benchmarks import _table

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
    options = parser.parse_args()
    print(f"kngjax release {options.config.name} from fresh processes, {_table.machine()}")
    print(f"{'run':>4}{'seconds':>10}{'of work':>10}{'programs':>10}{'compiling':>11}")
    for number in range(1, options.runs + 1):
        run = release(options.config)
        print(f"{number:>4}{run.wall:>10.1f}{run.work:>10.1f}{run.compilations:>10}{run.compiling:>11.1f}", flush=True)


if __name__ == "__main__":
    main()
