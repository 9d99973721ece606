"""MST and AIM on the columns of a plan: numbers in public bins, of whose codes both make tables by noisy marginals.

Both are (ε, 10⁻⁶)-differentially private by their papers, where a record is added or removed; with floating-point
noise, of which nothing is proved. They run in an environment of their own (`marginal_tables.py`).
"""

import json
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import kngjax as kng

DELTA = 1e-6
MECHANISMS = ("MST", "AIM")
PROGRAM = pathlib.Path(__file__).with_name("marginal_tables.py")
# Equal parts of a number's bounds, on the scale of its transform. Of whole numbers at most 40 bins, of equally many
# numbers but for the last one.
_BINS, _BINS_OF_WHOLE_NUMBERS = 60, 40


class Coding(NamedTuple):
    """The codes of one column, by public facts alone. **Arguments:** `edges`: of bins; None for levels."""

    column: Any
    edges: np.ndarray | None

    @classmethod
    def of(cls, column: Any) -> "Coding":
        """Of levels themselves, and of numbers in bins."""
        if column.is_parent:
            return cls(column, None)
        if isinstance(column, kng.synthesis.Count):
            width = -(-(column.high - column.low + 1) // _BINS_OF_WHOLE_NUMBERS)
            return cls(column, np.append(np.arange(column.low, column.high + 1, width), column.high + 1) - 0.5)
        low, high = _scaled(column, np.array([column.low, column.high])).tolist()
        return cls(column, np.linspace(low, high, _BINS + 1))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.column.labels) if self.edges is None else len(self.edges) - 1

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Of each cell by itself. **Arguments:** `values`: as `read` of the column has them."""
        if self.edges is None:
            return self.column.places(values)
        return np.clip(np.searchsorted(self.edges, _scaled(self.column, values), side="right") - 1, 0, self.size - 1)

    def values(self, codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """As a synthetic table has them: numbers anywhere within their bin."""
        if self.edges is None:
            return self.column.shown(self.column.of_places(codes))
        drawn = self.edges[codes] + random.uniform(size=len(codes)) * np.diff(self.edges)[codes]
        return self.column.shown(self.column.of_drawn(drawn))


def _scaled(column: Any, values: np.ndarray) -> np.ndarray:
    return np.log(values) if getattr(column, "transform", None) == "log" else np.asarray(values, np.float64)


def tables(
    python: str,
    source: str,
    mechanism: str,
    plan: kng.synthesis.SynthesisPlan,
    frame: Any,
    epsilon: float,
    seeds: range,
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Synthetic tables, each with the seconds of the processor that it took.

    **Arguments:** `python`: an interpreter that has `mbi`. `source`: the folder `mechanisms` of its checkout. `plan`:
    its columns, without heaps. `seeds`: one for each table. Raises RuntimeError where the interpreter stops.
    """
    codings, read = [Coding.of(column) for column in plan.columns], plan.read(frame)
    codes = {one.column.name: one.codes(read[one.column.name]) for one in codings}
    sizes = {one.column.name: one.size for one in codings}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [python, str(PROGRAM), source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        file = pathlib.Path(folder) / "table.npz"
        for seed in seeds:
            np.savez(file, allow_pickle=False, **codes)
            asked = {"mechanism": mechanism, "epsilon": epsilon, "delta": DELTA, "seed": seed, "sizes": sizes}
            process.stdin.write(json.dumps(asked | {"table": str(file)}) + "\n")
            process.stdin.flush()
            if not (seconds := process.stdout.readline()):
                raise RuntimeError(f"{python} {PROGRAM.name} {source} stopped: see what it printed above")
            with np.load(file) as drawn:
                random = np.random.default_rng(seed)
                columns = {one.column.name: one.values(drawn[one.column.name], random) for one in codings}
            yield pd.DataFrame(columns), float(seconds)
        process.stdin.close()
