"""One table for several rooms: each way runs in a process of its own, whose first result counts imports and compiling.

A way is `WAYS[name]` of a room; called with the room's sizes it returns what makes one result, and what tells effective
draws a second, or None. It imports what it needs itself.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
CHILD = """
import importlib, json, sys
from benchmarks import _table
room, way, start, sizes = sys.argv[1], sys.argv[2], float(sys.argv[3]), json.loads(sys.argv[4])
print(json.dumps(_table.measured(importlib.import_module(room).WAYS[way], start, sizes)))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One way's figures.

    **Arguments:** `first`: seconds from the start of a process to its first result, less what it took to make the
    data. `warm`: seconds of a second result. `work`: those of its processors. `draws`: effective draws a second, None
    without privacy. `peak`: MiB of the process. `remark`: what else is to be said, or why there are no figures.
    """

    name: str
    first: float | None = None
    warm: float | None = None
    work: float | None = None
    draws: float | None = None
    peak: float | None = None
    remark: str = ""

    def __str__(self) -> str:
        times = ("9.2f", self.first), ("9.3f", self.warm), ("9.3f", self.work)
        cells = *times, ("11.3g", self.draws), ("9.0f", self.peak)
        figures = "".join(" " * int(form.split(".")[0]) if cell is None else f"{cell:{form}}" for form, cell in cells)
        return f"{self.name:44}{figures}   {self.remark}".rstrip()


HEADER = f"{'':44}{'first, s':>9}{'warm, s':>9}{'of work':>9}{'draws/s':>11}{'peak MiB':>9}"


def high_water() -> float:
    """The most memory that this process has had, in MiB, on Linux; `resource` would count its parent's besides."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def measured(way: Callable[..., Any], start: float, sizes: Sequence[Any]) -> dict[str, Any]:
    """What a process reports of one way. **Arguments:** `start`: when it was started, by `time.time`."""
    one, many = way(*sizes)
    one()
    first = time.time() - start - one.making
    second, used = time.perf_counter(), time.process_time()
    one()
    warm, work = time.perf_counter() - second, time.process_time() - used
    return {"first": first, "warm": warm, "work": work, "draws": None if many is None else many(), "peak": high_water()}


@dataclasses.dataclass(frozen=True)
class Timed:
    """A function with the seconds that it took to make its data."""

    function: Callable[[], Any]
    making: float

    def __call__(self) -> Any:
        return self.function()


def fresh(room: str, way: str, sizes: Sequence[Any], python: str = sys.executable) -> Row:
    """A row from a fresh process; one that failed says why by the last line of what it said, so that others follow."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [python, "-c", CHILD, room, way, repr(time.time()), json.dumps(list(sizes))]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": path})
    if run.returncode:
        return Row(way, remark=f"failed: {(run.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return Row(way, **json.loads(run.stdout.splitlines()[-1]))


def machine() -> str:
    """The number of processors, and how busy they are: timings are worth no more than that."""
    return f"on {os.cpu_count()} processors, of load {os.getloadavg()[0]:.1f} at the start"
