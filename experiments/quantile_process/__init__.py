"""Measures what quantile processes are worth: m regression curves for one ε, released in three ways, beside the fit.

On CPS1988 (log wage on education and a polynomial of experience, d = 4, n = 28,155) and on made-up tables of 3·10³ to
3·10⁵ records with 4 and 12 coefficients; levels are j/(m + 1), one record replaced:

- `independent`: m releases of `KNG` at ε/m each; crossing is counted before curves are sorted.
- `stepwise`: the level in the middle at ε/2, then outwards, each at ε/(2(m - 1)), where it does not cross the one
  before.
- `halving`: `kngjax.QuantileProcess`.
- `sampling`: no release, but the fit to rows that are drawn anew from the table: the fit's own sampling error.

`law` says how draws follow the mechanism's law:

- `release`: whole releases, exact draws by secure keys with every rounding in the proof: of few cells, to check others.
- `weighted`: of candidates from about the limit law one by its weight, with the gradients of all records, which follows
  the law of releases approximately (`experiments.quantile_process.nodes`) in a fraction of their time, which `seconds`
  then does not show.
- `bootstrap`: of `sampling`.
- Without draws: `refused` by the public rule of `QuantileProcess.refusal`, of each way's own noise, as too few records
  lie beyond the outer levels; `not served`, as exact draws take four coefficients; `few` where fewer than thirty
  candidates count, of the largest number that is tried; `outside` where they left the domain.

`error`, `crossing` and `crps` are means over the draws of `experiments.quantile_process.measures`: `error`, and its
standard error `error_se`, in the units of y, log wages or about a standard deviation of made-up errors; `crossing` a
share of pairs; `crps` a relative excess, .1 for a tenth more check loss than the fit has. `effective`: the share of
candidates that count, of the level where it is least. `seconds`: of the processor, a draw.
The data are public, so that the fit may be shown next to draws.
"""

import csv
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require
from experiments.quantile_process.measures import Truth, mean_check_loss, measure
from experiments.quantile_process.nodes import NotDrawn
from experiments.quantile_process.tables import Table, made_up, wages
from experiments.quantile_process.ways import WAYS, Cell, Drawn
from kngjax.data import prepare
from kngjax.owner import nonprivate

SETTINGS = (
    *("levels", "epsilon", "sizes", "dimensions", "levels_made_up", "epsilon_made_up"),
    *("draws", "seconds", "candidates", "released", "releases", "rows", "records", "seed"),
)
MEASURES = ("error", "error_se", "crossing", "crps", "effective", "seconds")
HEADER = ("table", "n", "d", "m", "epsilon", "way", "law", "draws", *MEASURES)
_SMOKE = {"levels": [5], "epsilon": [3.0], "sizes": [3000], "dimensions": [12], "levels_made_up": [5]}


class Task(NamedTuple):
    """A row. **Arguments:** `m`: of levels. `epsilon`: None without a release. `is_whole`: by whole releases."""

    table: Table
    m: int
    epsilon: float | None
    way: str
    is_whole: bool = False


def tasks(settings: dict[str, Any]) -> Iterator[Task]:
    """Every cell, and where settings ask for whole releases one more for these."""
    given = [(wages(settings["records"]), settings["levels"], settings["epsilon"])]
    for dimension in settings["dimensions"]:
        for size in settings["sizes"]:
            table = made_up(size, dimension, settings["seed"])
            given.append((table, settings["levels_made_up"], settings["epsilon_made_up"]))
    for place, (table, numbers, epsilons) in enumerate(given):
        for m in numbers:
            yield Task(table, m, None, "sampling")
            yield from (Task(table, m, epsilon, way) for epsilon in epsilons for way in WAYS)
            if place == 0 and m == settings["released"][0] and settings["releases"]:
                yield Task(table, m, settings["released"][1], "halving", True)


def truth_of(table: Table, m: int, rows: int, seed: int) -> Truth:
    """The fits without privacy, and so many rows at which curves are compared."""
    levels = np.arange(1, m + 1) / (m + 1)
    records = prepare(table.bounds, table.columns, table.y)
    fits = np.array([nonprivate.minimiser(kng.QuantileLoss(float(level)), records) for level in levels])
    chosen = np.random.default_rng([seed, m]).choice(len(table.y), min(rows, len(table.y)), replace=False)
    return Truth(levels, fits, table.x, table.y, table.x[chosen], table.vertices)


def resampled(table: Table, levels: np.ndarray, count: int, random: np.random.Generator) -> Drawn:
    """Fits to as many records as there are, drawn with replacement."""
    found = []
    for _ in range(count):
        places = random.integers(0, len(table.y), len(table.y))
        records = prepare(table.bounds, table.columns[places], table.y[places])
        found.append([nonprivate.minimiser(kng.QuantileLoss(float(level)), records) for level in levels])
    return Drawn(np.array(found), 1.0)


def released(cell: Cell, count: int) -> Drawn:
    """Whole releases."""
    process = cell.process()
    values = [kng.release(process, cell.table.columns, cell.table.y).value for _ in range(count)]
    return Drawn(np.array(values), 1.0)


def within(seconds: float, most: int, draw: Callable[[int], Drawn]) -> tuple[np.ndarray, float, float]:
    """Curves of as many draws as there is time for, two at least, their `effective`, and seconds a draw.

    **Arguments:** `draw`: so many draws. Batches double, and the time of the next one is guessed from the last.
    """
    start, size, parts = time.process_time(), 2, []
    while (made := sum(len(part.curves) for part in parts)) < most:
        before, asked = time.process_time(), min(size, most - made)
        parts.append(draw(asked))
        now, last = time.process_time(), len(parts[-1].curves)
        affordable = int((seconds - (now - start)) * last / max(now - before, 1e-9)) if seconds < np.inf else most
        if affordable < 1:
            break
        size = min(2 * size, affordable)
    curves = np.concatenate([part.curves for part in parts])
    effective = float(np.average([part.effective for part in parts], weights=[len(part.curves) for part in parts]))
    return curves, effective, (time.process_time() - start) / len(curves)


def compare(task: Task, truth: Truth, loss: float, settings: dict[str, Any]) -> list[Any]:
    """A row as in `HEADER` from "law" on. **Arguments:** `loss`: of the fits."""
    random = np.random.default_rng([settings["seed"], task.m, len(task.table.y), len(truth.fits[0])])
    nothing, most, seconds = [0, *[""] * len(MEASURES)], settings["draws"], settings["seconds"]
    if task.epsilon is None:
        law, draw = "bootstrap", lambda count: resampled(task.table, truth.levels, count, random)
    else:
        levels, way = tuple(truth.levels.tolist()), WAYS[task.way]
        cell = Cell(task.table, levels, task.epsilon, truth.fits, settings["candidates"])
        if cell.dimension > way.most:
            return ["not served", *nothing]
        if not way.is_clear(cell):
            return ["refused", *nothing]
        law, draw = "weighted", lambda count: way.draw(cell, count, random)
        if task.is_whole:
            law, draw = "release", lambda count: released(cell, count)
            most, seconds = settings["releases"], np.inf
    try:
        curves, effective, seconds = within(seconds, most, draw)
    except NotDrawn as reason:
        return [reason.law, 0, *[""] * 4, f"{reason.share:.3g}", ""]
    found = np.array([measure(truth, one, loss) for one in curves])
    error, crossing, crps = found.mean(axis=0)
    deviation = found[:, 0].std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    figures = error, deviation, crossing, crps, effective, seconds
    return [law, len(found), *("" if np.isnan(one) else f"{one:.5g}" for one in figures)]


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write a row of `quantile_process.csv` for each cell as soon as it is there; print all of them at the end.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to draw few
    curves of few records.
    """
    require(settings, SETTINGS)
    if smoke:
        less = {"epsilon_made_up": [3.0], "released": [5, 3.0], "releases": 1, "draws": 4, "records": 3000}
        less |= {"candidates": settings["candidates"][:1]}
        settings = settings | _SMOKE | less
    every, rows, key = list(tasks(settings)), [], None
    with (output / "quantile_process.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for task in tqdm(every, unit="cell", disable=None):
            if key != (key := (task.table.name, *task.table.x.shape, task.m)):
                truth = truth_of(task.table, task.m, settings["rows"], settings["seed"])
                loss = mean_check_loss(truth, truth.fits)
            epsilon = "" if task.epsilon is None else task.epsilon
            rows.append([*key[:3], task.m, epsilon, task.way, *compare(task, truth, loss, settings)])
            writer.writerow(rows[-1])
            file.flush()
    widths = [max(len(str(row[place])) for row in [HEADER, *rows]) for place in range(len(HEADER))]
    for row in [HEADER, *rows]:
        print("  ".join(f"{cell!s:>{width}}" for cell, width in zip(row, widths, strict=True)))
