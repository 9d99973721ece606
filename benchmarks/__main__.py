"""All benchmarks by one command: each room prints ours beside what a user would pick instead, in the same run.

`python -m benchmarks [ROOM ...] [--quick]`; a room's own settings are those of `python -m benchmarks.ROOM --help`.

Rooms run one after the other, each in a process of its own. `--quick` takes small sizes, to see that all of them work:
its figures say little.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

from benchmarks import _table

# In the order of a reader's questions, with the settings of a quick run.
ROOMS = {
    "cold_start": ("--runs", "1"),
    "ten_tasks": ("--repeats", "1"),
    "peers": ("--records", "2000", "--dimension", "3", "--draws", "100", "--numbers", "2000"),
    "membership": ("--tables", "4"),
    "real_tables": ("--tables", "HousePrices", "--repeats", "1"),
    "roundings": ("--records", "2000", "--dimensions", "3", "--repeats", "1"),
    "hopeless": ("--draws", "2", "--only", "median"),
    "ridge_centre": ("--draws", "2", "--tables", "atlantic", "--epsilon", "3", "--tau", "0.5"),
    "interval_coverage": ("t5:2:4000:1", "--tables", "2"),
    "column_intervals": ("--tables", "2", "--kinds", "shares"),
    "group_quantiles": ("--replicates", "5"),
    "persons": ("--draws", "2"),
    "calibration": ("--by", "importance", "--data-sets", "5"),
    "preview_against_measured": ("--draws", "3", "--tables", "salaries", "--records", "4000", "--ways", "AdaSSP"),
    "engines": ("--rows", "60000", "--engines", "memory", "files", "DuckDB", "--analyses", "mean"),
    "per_instance": ("--people", "5000"),
    "gpu": ("--quick",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the rooms that are asked for, all by default, and returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args(arguments)
    unknown = [room for room in options.rooms if room not in ROOMS]
    if unknown:
        parser.error(f"there is no room {unknown[0]!r}: take some of {', '.join(ROOMS)}")
    failed = []
    path = os.pathsep.join([str(_table.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    for room in options.rooms or ROOMS:
        print(f"\n== {room} ==", flush=True)
        if importlib.util.find_spec(f"benchmarks.{room}") is None:
            print("skipped: this room is not built")
            continue
        command = [sys.executable, "-m", f"benchmarks.{room}", *(ROOMS[room] if options.quick else ())]
        if subprocess.run(command, cwd=_table.ROOT, env=os.environ | {"PYTHONPATH": path}).returncode:
            failed.append(room)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
