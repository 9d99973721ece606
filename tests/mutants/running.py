"""Chooses the tests that reach a mutant, and runs them on a copy of the tree that has it."""

import collections
import json
import multiprocessing
import os
import pathlib
import shutil
import sys

import coverage
import pytest

from tests.mutants.operators import Mutant

# Imported once for all mutants; neither the package nor what pytest itself must import first.
_LIBRARIES = ("jax", "jax.numpy", "narwhals", "numpyro.distributions", "optax", "scipy.stats", "flint", "pandas")
# The seconds that a run may last beyond what its tests took when they passed: more counts as a test that hangs.
_STARTING, _SLOWER = 120.0, 5.0


class Reach:
    """Tells which tests reach a line, by a run of them with coverage's contexts, and their processor seconds."""

    def __init__(self, folder: pathlib.Path):
        self._coverage = coverage.CoverageData(str(folder / "reach"))
        self._coverage.read()
        self._files = {name.split("/kngjax/")[-1]: name for name in self._coverage.measured_files()}
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))

    def tests(self, mutant: Mutant, budget: float) -> dict[str, float]:
        """Tests of `budget` processor seconds together, with their own: those of the line first, then of its file."""
        by_line = self._coverage.contexts_by_lineno(self._files.get(mutant.path.removeprefix("kngjax/"), ""))
        near = {name for line in range(mutant.line, mutant.last + 1) for name in by_line.get(line, ())}
        far = {name for some in by_line.values() for name in some} - near
        if not near | far:
            # What runs when a file is imported has no test of its own: those of its room are taken.
            far = {test for test in self._seconds if test.startswith(f"tests/{mutant.path.split('/')[1]}/")}
        chosen: list[str] = []
        for names in (near, far):
            for test in self._spread({name.split("|")[0] for name in names}):
                if test not in chosen and (budget := budget - self._seconds[test]) > 0:
                    chosen.append(test)
        # One file's tests share compiled programs, so they run together, the file with the cheapest first.
        cheapest: dict[str, float] = {}
        for test in chosen:
            file = test.split("::")[0]
            cheapest[file] = min(cheapest.get(file, 1e9), self._seconds[test])
        chosen.sort(key=lambda test: (cheapest[test.split("::")[0]], test.split("::")[0]))
        return {test: self._seconds[test] for test in chosen}

    def _spread(self, tests: set[str]) -> list[str]:
        """The cheapest case of each test, then the second cheapest of each, and so on."""
        cases = collections.defaultdict(list)
        for test in sorted(tests & self._seconds.keys(), key=lambda test: (self._seconds[test], test)):
            cases[test.split("[")[0]].append(test)
        ranks = {test: (rank, self._seconds[test]) for some in cases.values() for rank, test in enumerate(some)}
        return sorted(ranks, key=lambda test: (*ranks[test], test))


def copy(root: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy of the tree, in which mutants stand in the place of the tree itself."""
    for name in _LIBRARIES:
        __import__(name)
    left_out = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "output")
    return shutil.copytree(root, folder / "tree", ignore=left_out)


def seen(mutant: Mutant, tree: pathlib.Path, tests: dict[str, float]) -> str:
    """Runs these tests with the bug: "killed", "hung", "survived", or "unknown" where pytest did not run them."""
    file = tree / mutant.path
    original = file.read_text(encoding="utf-8")
    file.write_text(mutant.source, encoding="utf-8")
    # A fork of a process that has imported libraries and made no array.
    run = multiprocessing.get_context("fork").Process(target=_run_tests, args=(tree, list(tests)))
    run.start()
    run.join(_STARTING + _SLOWER * sum(tests.values()))
    hung = run.exitcode is None
    if hung:
        run.kill()
        run.join()
    file.write_text(original, encoding="utf-8")
    if run.exitcode == 4 and "while loading conftest" in (tree / "log").read_text(encoding="utf-8"):
        return "killed"
    return "hung" if hung else {0: "survived", 1: "killed", 2: "killed"}.get(run.exitcode, "unknown")


def _run_tests(tree: pathlib.Path, tests: list[str]) -> None:
    os.chdir(tree)
    # Compiled files are told apart by a time in whole seconds, which two mutants may share.
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(tree), *(place for place in sys.path if not (pathlib.Path(place) / "kngjax").exists())]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "audits", "kngjax")]:
        del sys.modules[name]
    with open("log", "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        code = int(pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]))
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
