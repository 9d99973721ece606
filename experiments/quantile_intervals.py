"""How often private intervals of a quantile hold it, and how wide they are next to intervals without privacy.

A column is drawn anew for each replicate: log-normal numbers in [0, 1000]; ages in whole years, of which many are
alike, with noise on each as `Bounds(..., dither=1)` adds it, and without. An interval is drawn as a release draws it.
Beside it stands the interval of the same records without privacy by two order statistics, at ranks from the binomial
law. Where public facts refuse an interval the table says so.
"""

import pathlib
from typing import Any

import numpy as np
from scipy import stats

import kngjax as kng
from experiments import require, write

SETTINGS = ("tau", "epsilon", "records", "replicates", "level", "seed")
HEADER = (
    "column",
    "tau",
    "records",
    "epsilon",
    "coverage",
    "width",
    "coverage without privacy",
    "width without privacy",
)
MIDDLE, SCALE = 40.0, 12.0


def lognormal(records: int, random: np.random.Generator) -> np.ndarray:
    """Numbers of median 1, of which none are alike."""
    return random.lognormal(size=records)


def ages(records: int, random: np.random.Generator) -> np.ndarray:
    """Whole years from 0 to 100."""
    return np.clip(np.rint(MIDDLE + SCALE * random.standard_normal(records)), 0.0, 100.0)


def true_quantile(column: str, tau: float) -> float:
    """That of the population."""
    if column == "lognormal":
        return float(np.exp(stats.norm.ppf(tau)))
    years = np.arange(101.0)
    return float(years[np.argmax(stats.norm.cdf((years + 0.5 - MIDDLE) / SCALE) >= tau)])


COLUMNS: dict[str, tuple[Any, kng.Bounds]] = {
    "lognormal": (lognormal, kng.Bounds(y=(0.0, 1000.0))),
    "ages, dither = 1": (ages, kng.Bounds(y=(-0.5, 100.5), dither=1.0)),
    "ages, no dither": (ages, kng.Bounds(y=(-0.5, 100.5))),
}


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Make the intervals, write coverage and median widths to `quantile_intervals.csv`, and print them.

    **Arguments**: `settings`, the keys of the TOML file; `output`, an existing directory; `smoke`, whether to make two
    intervals of the smallest columns at one level alone.
    """
    require(settings, SETTINGS)
    levels, sizes, replicates = settings["tau"], settings["records"], settings["replicates"]
    if smoke:
        levels, sizes, replicates = levels[:1], sizes[:1], 2
    table = []
    for name, (made, bounds) in COLUMNS.items():
        for tau in levels:
            for records in sizes:
                for epsilon in settings["epsilon"]:
                    random = np.random.default_rng([settings["seed"], records])
                    mechanism = kng.QuantileInterval(tau, bounds, epsilon, "replace", settings["level"])
                    found = _intervals(mechanism, made, records, replicates, random)
                    table.append([name, tau, records, epsilon, *_shown(found, true_quantile(name, tau))])
                    print("  ".join(map(str, table[-1])), flush=True)
    write(output / "quantile_intervals.csv", HEADER, table)


def _intervals(mechanism, made, records: int, replicates: int, random) -> np.ndarray | None:
    """Both intervals of each replicate, shape (replicates, 2, 2), the private one first; None where it is refused."""
    if mechanism.refusal(records) is not None:
        return None
    half = 0.5 * float(mechanism.bounds.dither or 0.0)
    tail = 0.5 * (1.0 - mechanism.level)
    first, last = stats.binom.ppf([tail, 1.0 - tail], records, float(mechanism.tau)).astype(int)
    found = np.empty((replicates, 2, 2))
    for row in found:
        values = made(records, random)
        low, high = kng.release(mechanism, y=values, progress=False).value
        row[0] = low - half, high + half
        row[1] = np.partition(values, [first - 1, last])[[first - 1, last]]
    return found


def _shown(found: np.ndarray | None, truth: float) -> list[Any]:
    if found is None:
        return ["refused", "", "", ""]
    cells = []
    for ends in (found[:, 0], found[:, 1]):
        cells += [float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))), float(np.median(np.diff(ends)))]
    return [round(cell, 4) for cell in cells]
