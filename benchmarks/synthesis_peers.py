"""Synthetic tables by MST and AIM beside `experiments.synthesis`: the same tables, measured by the same measures.

`python -m benchmarks.synthesis_peers --python PATH` runs them by another Python, in whose environment dpmm is installed
(0.1.9 needs Python 3.10 or 3.11 and NumPy 1: `python3.11 -m venv peers; peers/bin/pip install dpmm==0.1.9`). It prints
a row a method and ε, and writes one a table with `--csv FILE`. Both are (ε, δ)-private with δ = 10^-6 for a record that
comes or goes, by random numbers of floating point; tables here are of pure ε for an exchanged record, which is more.

Columns of levels and of whole numbers are as they are. Columns of numbers are cut in 32 bins of one width, of their
logarithms where the plan takes those, between public bounds, and drawn evenly within a bin: both methods are of tables
of counts.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

import kngjax as kng
from experiments.synthesis import HEADER, MEASURES, TABLES, frame_of, measures, sequential
from kngjax.estimators.synthesis.comparisons import compare

METHODS = ("MST", "AIM")
BINS, DELTA = 32, 1e-6
# Runs by the other Python, which has no kngjax: codes in, codes out.
_MAKE = """
import json, sys, time
import pandas as pd
from numpy.random import RandomState
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
method, epsilon, delta, seed, source, domain, result = sys.argv[1:]
table = pd.read_csv(source)
start = time.process_time()
made = {"MST": MSTGM, "AIM": AIMGM}[method](epsilon=float(epsilon), delta=float(delta), n_jobs=1)
made.set_domain(json.loads(domain))
made.set_random_state(RandomState(int(seed)))
made.fit(table)
drawn = made.generate(n_records=len(table))
drawn.to_csv(result, index=False)
print(time.process_time() - start)
"""


class Codes:
    """A column as whole numbers from 0, and back. **Arguments:** `column`: of a plan."""

    def __init__(self, column: Any):
        self.column, self.is_numeric = column, isinstance(column, kng.Numeric)
        if self.is_numeric:
            ends = np.array([column.low, column.high], float)
            self.ends = np.log(ends) if column.transform == "log" else ends
        self.size = BINS if self.is_numeric else len(self.levels)

    @property
    def levels(self) -> list[Any]:
        """Of a column of levels, or of whole numbers."""
        column = self.column
        return list(column.levels) if isinstance(column, kng.Category) else list(range(column.low, column.high + 1))

    def of(self, values: Any) -> np.ndarray:
        """The code of each value, clipped to the public bounds."""
        if isinstance(self.column, kng.Category):
            places = {level: place for place, level in enumerate(self.levels)}
            return np.array([places.get(value, places[self.column.other]) for value in values])
        numbers = np.asarray(values, float)
        if not self.is_numeric:
            return (np.clip(np.rint(numbers), self.column.low, self.column.high) - self.column.low).astype(int)
        numbers = np.log(np.clip(numbers, self.column.low, None)) if self.column.transform == "log" else numbers
        shares = (numbers - self.ends[0]) / (self.ends[1] - self.ends[0])
        return np.clip((shares * BINS).astype(int), 0, BINS - 1)

    def back(self, codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Values of these codes."""
        if not self.is_numeric:
            return np.asarray(self.levels, object if isinstance(self.column, kng.Category) else float)[codes]
        shares = (codes + random.uniform(size=len(codes))) / BINS
        numbers = self.ends[0] + shares * (self.ends[1] - self.ends[0])
        return np.exp(numbers) if self.column.transform == "log" else numbers


def made_by(python: str, method: str, epsilon: float, seed: int, codes: pd.DataFrame, sizes: dict[str, int]) -> Any:
    """A table of codes by another Python, and how long its processor took."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder) / "codes.csv", pathlib.Path(folder) / "drawn.csv"
        codes.to_csv(source, index=False)
        given = [method, str(epsilon), str(DELTA), str(seed), str(source), json.dumps(sizes), str(result)]
        run = subprocess.run([python, "-W", "ignore", "-c", _MAKE, *given], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"{method} failed: {run.stderr[-2000:]}")
        return pd.read_csv(result), float(run.stdout.split()[-1])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="of an environment with dpmm")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 8.0])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--rows", type=int, default=0, help="a sample of so many; 0: all")
    parser.add_argument("--csv", type=pathlib.Path, help="a file that rows are added to")
    given = parser.parse_args()
    print(f"{'':34}{'tables':>8}" + "".join(f"{measure:>14}" for measure in MEASURES))
    cells = [(name, method, epsilon) for name in given.tables for method in given.methods for epsilon in given.epsilon]
    for name, method, epsilon in cells:
        frame = frame_of(TABLES[name], given.rows, 0)
        plan, columns = sequential(TABLES[name], 1.0), {column.name: Codes(column) for column in TABLES[name].columns}
        codes = pd.DataFrame({one: column.of(frame[one]) for one, column in columns.items()})
        read = plan.read(frame)
        real, rows = {column.name: column.shown(read[column.name]) for column in plan.columns}, []
        for replicate in tqdm(range(given.replicates), desc=f"{name}, {method}, {epsilon:g}", disable=None):
            sizes = {one: column.size for one, column in columns.items()}
            drawn, seconds = made_by(given.python, method, epsilon, replicate, codes, sizes)
            random = np.random.default_rng(replicate)
            found = {one: column.back(drawn[one].to_numpy(), random) for one, column in columns.items()}
            rows.append(measures(compare(plan, real, found, TABLES[name].formula), seconds))
            if given.csv is not None:
                with given.csv.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file)
                    if file.tell() == 0:
                        writer.writerow(HEADER)
                    figures = (f"{rows[-1][measure]:.5g}" for measure in MEASURES)
                    writer.writerow([name, len(frame), method, epsilon, replicate, *figures])
        words = f"{name}, {len(frame)}, {method}, {epsilon:g}"
        print(f"{words:34}{len(rows):8}" + "".join(f"{np.mean([row[one] for row in rows]):14.4g}" for one in MEASURES))


if __name__ == "__main__":
    main()
