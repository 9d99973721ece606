"""Plants small bugs in a copy of the package and says which of them the default tests do not see.

    python -m tests.mutants --since COMMIT      bugs in lines that changed since then, of rooms that privacy rests on
    python -m tests.mutants --named [WORD ...]  the bugs that attacks and studies found
    python -m tests.mutants --sample 150        so many of all bugs, drawn by a fixed seed: a measure of the suite
    python -m tests.mutants --all               every bug, which takes days
    python -m tests.mutants --map               runs the default tests again, to see which lines each of them reaches

The tests that reach a bug's line run first, then those of its file, until `--seconds` of a processor. What each test
reaches is kept in output/mutants/ until a file of the package or of the tests changes. Exits with 1 if a bug survives.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tests.mutants.named import SLIPS
from tests.mutants.operators import Mutant, mutants
from tests.mutants.running import Reach, copy, seen

LOST = "lost"
ROOT = pathlib.Path(__file__).parents[2]
# What privacy rests on; other rooms are tried by `--sample` and `--all`.
ROOMS = ("sensitivity", "accounting", "mechanisms", "chains", "draws", "releases", "data")


def changed(root: pathlib.Path, commit: str) -> dict[str, set[int]]:
    """The lines of files of `ROOMS` that were added or changed since a commit."""
    folders = [f"kngjax/{room}" for room in ROOMS if (root / "kngjax" / room).exists()]
    command = ["git", "diff", "--unified=0", "--no-color", commit, "--", *folders]
    lines: dict[str, set[int]] = {}
    for row in subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines():
        if row.startswith("+++ "):
            file = row[4:].removeprefix("b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", row):
            first, number = int(found[1]), int(found[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + number))
    return {file: numbers for file, numbers in lines.items() if file.endswith(".py") and (root / file).exists()}


def chosen(options: argparse.Namespace) -> Iterator[Mutant]:
    """The bugs that were asked for; a named one that no longer finds its place has the path `LOST`."""
    root = options.root
    if options.named is not None:
        for slip in SLIPS:
            if all(word in slip.name for word in options.named):
                try:
                    planted = slip.planted(root)
                    yield Mutant(planted.name, planted.path, planted.line, planted.last, planted.source)
                except LookupError as error:
                    yield Mutant(f"{slip.name}: {error}", LOST, 0, 0, "")
    elif options.since:
        for file, lines in changed(root, options.since).items():
            yield from mutants(root / file, root, lines)
    else:
        every = [mutant for path in sorted((root / "kngjax").rglob("*.py")) for mutant in mutants(path, root)]
        yield from random.Random(options.seed).sample(every, options.sample) if options.sample else every


def mapped(root: pathlib.Path, folder: pathlib.Path) -> None:
    """Runs the default tests and keeps in `folder` which lines each of them reaches, and its processor seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    settings, reach = folder / "coveragerc", folder / "reach"
    reach.unlink(missing_ok=True)
    settings.write_text(f"[run]\nbranch = True\nsource = kngjax\ndata_file = {reach}.new\n", encoding="utf-8")
    # Files are named, so that budgets are not enforced on what coverage slows down.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests", "--cov", f"--cov-config={settings}"]
    command += ["--cov-branch", "--cov-context=test", "--cov-report="]
    command += [f"--processor-seconds={folder / 'seconds.json'}"]
    subprocess.run(command, cwd=root, check=True)
    (folder / "reach.new").rename(reach)


def is_stale(root: pathlib.Path, folder: pathlib.Path) -> bool:
    """Tells whether a file of the package or of the tests is newer than the map."""
    reach = folder / "reach"
    sources = [path for name in ("kngjax", "audits", "tests") for path in (root / name).rglob("*.py")]
    return not reach.exists() or max(path.stat().st_mtime for path in sources) > reach.stat().st_mtime


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--since", metavar="COMMIT")
    ways.add_argument("--named", nargs="*", metavar="WORD", help="those whose names contain all of these words")
    ways.add_argument("--sample", type=int, metavar="NUMBER")
    ways.add_argument("--all", action="store_true")
    ways.add_argument("--map", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=25.0, help="of tests for one bug")
    parser.add_argument("--part", default="1/1", help="of several runs beside each other, such as 1/2 and 2/2")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another checkout, with its own tests")
    parser.add_argument("--report", type=pathlib.Path, help="a file for a line of JSON of each bug")
    options = parser.parse_args(arguments)
    folder = options.root / "output" / "mutants"
    if options.map or is_stale(options.root, folder):
        mapped(options.root, folder)
    if options.map:
        return 0
    reach, counts, (place, parts) = Reach(folder), collections.Counter(), map(int, options.part.split("/"))
    with tempfile.TemporaryDirectory() as temporary:
        tree = copy(options.root, pathlib.Path(temporary))
        for mutant in list(chosen(options))[place - 1 :: parts]:
            tests = reach.tests(mutant, options.seconds)
            # A line that no test reaches is not run at all.
            found = seen(mutant, tree, tests) if tests else LOST if mutant.path == LOST else "survived"
            counts[found] += 1
            print(f"{found:9}{mutant.path}:{mutant.line}  {mutant.name}  ({len(tests)} tests)", flush=True)
            if options.report:
                row = dataclasses.asdict(mutant) | {"source": "", "found": found, "tests": len(tests)}
                with options.report.open("a", encoding="utf-8") as report:
                    report.write(json.dumps(row) + "\n")
    print(", ".join(f"{number} {found}" for found, number in counts.most_common()))
    return int(counts["killed"] + counts["hung"] < max(1, counts.total()))


if __name__ == "__main__":
    sys.exit(main())
