"""Plants small bugs in a copy of the package and says which of them the default tests do not see.

    python -m tests.mutants --since COMMIT      bugs in lines that changed since then, of rooms that privacy rests on
    python -m tests.mutants --named [WORDS]     the bugs that attacks and studies found
    python -m tests.mutants --sample 150        so many of all bugs, drawn by a fixed seed: a measure of the suite
    python -m tests.mutants --all               every bug, which takes days
    python -m tests.mutants --map               runs the default tests once, to see which lines each of them reaches

The tests that reach a bug's line run first, then those of its file, until `--seconds` of a processor. What each test
reaches is kept in output/mutants/ until `--map` is asked for again. Exits with 1 if a bug survives.
"""

import argparse
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
from tests.mutants.running import Reach, copied, seen

ROOT = pathlib.Path(__file__).parents[2]
# What privacy rests on; other rooms are tried by `--sample` and `--all`.
ROOMS = ("sensitivity", "accounting", "mechanisms", "samplers", "draws", "releases", "data")


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


def every(root: pathlib.Path) -> list[Mutant]:
    """All mutants of the package."""
    return [mutant for path in sorted((root / "kngjax").rglob("*.py")) for mutant in mutants(path, root)]


def chosen(options: argparse.Namespace) -> Iterator[Mutant]:
    """The bugs that were asked for; of a named one that no longer finds its place, the reason is raised."""
    root = options.root
    if options.named:
        for slip in SLIPS:
            if not options.words or any(word in slip.name for word in options.words):
                planted = slip.planted(root)
                yield Mutant(planted.name, planted.path, planted.line, planted.line, planted.source)
    elif options.since:
        for file, lines in changed(root, options.since).items():
            yield from mutants(root / file, root, lines)
    elif options.sample:
        yield from random.Random(options.seed).sample(every(root), options.sample)
    else:
        yield from every(root)


def mapped(root: pathlib.Path, folder: pathlib.Path) -> None:
    """Runs the default tests and keeps in `folder` which lines each of them reaches, and its processor seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "coveragerc"
    settings.write_text(f"[run]\nbranch = True\nsource = kngjax\ndata_file = {folder / 'reach'}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--cov", f"--cov-config={settings}", "--cov-branch"]
    command += ["--cov-context=test", "--cov-report=", f"--processor-seconds={folder / 'seconds.json'}"]
    subprocess.run(command, cwd=root, check=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--since", metavar="COMMIT")
    ways.add_argument("--named", action="store_true")
    ways.add_argument("--sample", type=int, metavar="NUMBER")
    ways.add_argument("--all", action="store_true")
    ways.add_argument("--map", action="store_true")
    parser.add_argument("words", nargs="*", help="with --named: those whose names contain one of the words")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40.0, help="of tests for one bug")
    parser.add_argument("--part", default="1/1", help="of several runs beside each other, such as 1/2 and 2/2")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another checkout, with its own tests")
    parser.add_argument("--reach", type=pathlib.Path, help="the folder of --map; by default output/mutants of the root")
    parser.add_argument("--report", type=pathlib.Path, help="a file for a line of JSON of each bug")
    options = parser.parse_args(arguments)
    folder = options.reach or options.root / "output" / "mutants"
    if options.map or not (folder / "reach").exists():
        mapped(options.root, folder)
    if options.map:
        return 0
    reach, survivors, counted = Reach(folder / "reach", folder / "seconds.json"), 0, 0
    place, parts = map(int, options.part.split("/"))
    with tempfile.TemporaryDirectory() as temporary, copied(options.root, pathlib.Path(temporary)) as tree:
        for mutant in list(chosen(options))[place - 1 :: parts]:
            tests = reach.tests(mutant, options.seconds)
            # A line that no test reaches is not run at all.
            found = seen(mutant.path, mutant.source, tree, tests, reach.took(tests)) if tests else "survived"
            survivors, counted = survivors + (found in ("survived", "unknown")), counted + 1
            print(f"{found:9}{mutant.path}:{mutant.line}  {mutant.name}  ({len(tests)} tests)", flush=True)
            if options.report:
                row = {"found": found, "path": mutant.path, "line": mutant.line, "name": mutant.name}
                with options.report.open("a", encoding="utf-8") as report:
                    report.write(json.dumps(row | {"tests": len(tests)}) + "\n")
    print(f"{counted - survivors} of {counted} were seen")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
