"""Plants small slips in a copy of the package, one at a time, and says which of them the default tests see.

    python -m tests.audit.plant_slips [words...]              the slips whose names or files contain one of the words
    python -m tests.audit.plant_slips --guards FILE TESTS...  each `raise` of the file deleted, one at a time

The working tree is never touched. Exits with 1 if a slip survives.
"""

import argparse
import ast
import importlib
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator

import pytest

from tests.audit.slips import SLIPS, Slip

ROOT = pathlib.Path(__file__).parents[2]
_COPIED = ("kngjax", "tests", "benchmarks", "experiments", "pyproject.toml", "README.md", "docs")
# Beyond it a test hangs, which counts as seen.
_LONGEST = 900.0
# Imported once for all slips; not what pytest itself must import first.
_LIBRARIES = ("jax", "jax.numpy", "narwhals", "numpyro.distributions", "scipy.stats")
# What must pass where nothing was planted, so that no slip is killed by the way it is tried.
_CONTROL = Slip(
    "nothing", "kngjax/__init__.py", "", "", ("tests/geometry/test_norms.py::test_weights_must_be_positive",)
)


def planted(text: str, slip: Slip) -> str:
    """The file with the slip; raises ValueError unless what it replaces is there exactly once."""
    if (found := text.count(slip.old)) != 1:
        raise ValueError(f"{slip.name}: {slip.file} contains what it replaces {found} times, and not once")
    return text.replace(slip.old, slip.new)


def guards(file: str, tests: tuple[str, ...]) -> Iterator[Slip]:
    """Each `raise` statement of a file, with `pass` in its place."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Raise) and node.end_lineno is not None:
            indent = " " * node.col_offset
            kept = [*lines[: node.lineno - 1], f"{indent}pass\n", *lines[node.end_lineno :]]
            yield Slip(f"{file}:{node.lineno} without its refusal", file, text, "".join(kept), tests)


def survives(slip: Slip, tree: pathlib.Path) -> bool:
    """Whether the named tests pass with the slip planted in this copy of the tree."""
    path = tree / slip.file
    original = path.read_text(encoding="utf-8")
    if slip is not _CONTROL:
        path.write_text(planted(original, slip), encoding="utf-8")
    try:
        # A fork of a process that has imported the libraries, but nothing of ours.
        run = multiprocessing.get_context("fork").Process(target=_tested, args=(tree, slip.tests))
        run.start()
        run.join(_LONGEST)
        if run.exitcode is None:
            run.kill()
            return False
    finally:
        path.write_text(original, encoding="utf-8")
    if run.exitcode not in (0, 1):
        # Neither passed nor failed: no such test, or an error of pytest itself. Nothing was seen.
        print(f"pytest ended with {run.exitcode}: {(tree / 'log').read_text()[-2000:]}")
        return True
    return run.exitcode == 0


def _tested(tree: pathlib.Path, tests: tuple[str, ...]) -> None:
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(tree), *(place for place in sys.path if place not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    with open("log", "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            code = int(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]))
        except BaseException:
            traceback.print_exc()
            code = 99
        log.flush()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant slips and say which of them the tests see.")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--guards", nargs="+", metavar="FILE TESTS")
    arguments = parser.parse_args()
    chosen = [slip for slip in SLIPS if not arguments.words or any(w in slip.name + slip.file for w in arguments.words)]
    if arguments.guards:
        chosen = list(guards(arguments.guards[0], tuple(arguments.guards[1:])))
    for name in _LIBRARIES:
        importlib.import_module(name)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name in _COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tree / name)
        if not survives(_CONTROL, tree):
            raise RuntimeError("the tests fail where nothing was planted")
        for slip in chosen:
            alive = survives(slip, tree)
            survivors += [slip.name] if alive else []
            print(f"{'SURVIVED' if alive else 'killed  '}  {slip.file}: {slip.name}", flush=True)
    print(f"planted {len(chosen)}, killed {len(chosen) - len(survivors)}, survived {len(survivors)}: {survivors}")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
