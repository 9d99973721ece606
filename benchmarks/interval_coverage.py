"""How often 95% intervals of released coefficients hold the truth, and how wide they are next to those without privacy.

    python -m benchmarks.interval_coverage [--table t5] [--records 10000 ...] [--columns 4 ...] [--epsilon 1 ...]
        [--kinds pseudo-Huber ...] [--ways sandwich ...] [--replicates 1000] [--seconds 600] [--csv PATH] [--exact]

Tables: `t5` has correlated features in [-1, 1] and errors of Student's t with 5 degrees whose scale grows with a
feature, so that the covariance of scores is not proportional to that of the features; `CPS1988` are rows of 28,155
workers drawn with replacement, log wages on 4 or 12 columns. The truth is the minimiser of the expected loss: of the
whole table, or of very many evenly spread errors. Every replicate is a table of its own, the same for all kinds.

Estimates are drawn by the laws of the mechanisms in float64 (`benchmarks._quick_releases`), or with `--exact` released
by `kngjax.release`, as kinds beyond the default ones must be. Intervals are those of the library, of 1,000 draws of the
noise of the sums in the place of 4,000, which costs a thousandth of coverage. `naive` is θ̃ ± 1.96 standard errors
without privacy, θ̃ of all of ε, or with `--exact` of what the ways leave to it: what a reader would do who knows nothing
of the noise. With `--seconds` a size has so much time, and fewer replicates if need be.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kngjax as kng
from benchmarks._coverage_tables import EXACT, KINDS, POPULATIONS, Population, Table
from benchmarks._quick_releases import Fit, QuickRelease, fit_of, kept_facts, sums_of
from kngjax.inference.groups_of_records import interval_of_groups
from kngjax.inference.interval_plans import GroupsPlan, SumsPlan
from kngjax.inference.intervals_from_sums import interval_of_sums
from kngjax.inference.widths import require_near

LEVEL = 0.95
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "sandwich": lambda rows: kng.Sandwich(),
    "zcdp": lambda rows: kng.Sandwich(noise="zcdp"),
    "groups": lambda rows: kng.Groups(),
    "independent": lambda rows: kng.inference.IndependentErrors(),
    "public": kng.inference.PublicDesign,
}
WITHOUT = ("without privacy", "naive")


@dataclasses.dataclass(frozen=True, eq=False)
class Way:
    """Intervals of one mechanism by one covariance. **Arguments:** `draws`: of the noise of the sums."""

    plan: kng.WithIntervals
    count: int
    draws: int

    @functools.cached_property
    def making(self) -> Any:
        return self.plan.making(self.count)

    @functools.cached_property
    def quick(self) -> QuickRelease:
        return QuickRelease(self.making.mechanism)

    @functools.cached_property
    def _fixed(self) -> tuple[Any, Any, Any]:
        """What no table changes: what releases the sums, the curvature, and the noise where it is known."""
        making = self.making
        known = None if isinstance(making.mechanism, kng.AdaSSP) else making.noise(None)
        return making.summing, making.curvature, known

    def exact(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Any]:
        """An exact release, and its interval."""
        released = kng.release(self.plan, x[:, 1:], y, progress=False)
        return released.value, released.intervals(LEVEL)

    def interval(self, x: np.ndarray, y: np.ndarray, fit: Fit, drawn: dict[float, Any], random: Any) -> Any:
        """That of a quick release. **Arguments:** `drawn`: estimates of this table by their ε, which ways share."""
        if isinstance(self.making, GroupsPlan):
            # Records are independent with one law, so that groups by position have the law of random ones.
            groups = zip(np.array_split(x, self.making.number), np.array_split(y, self.making.number), strict=True)
            fits = [(*one, self._scaled(fit, len(one[0]))) for one in groups]
            return interval_of_groups(np.array([self.quick(*one, random).value for one in fits]), LEVEL)
        epsilon, (summing, curvature, noise) = float(self.making.mechanism.epsilon), self._fixed
        if epsilon not in drawn:
            drawn[epsilon] = self.quick(x, y, fit, random)
        first, covariance = drawn[epsilon], self.making.covariance
        sums = sums_of(self.making, x, y, first.value) + covariance.noise_draws(summing, random, 1)[0]
        if noise is None:
            moments = self.making.mechanism.released_moments(first.published)
            noise, covariance = moments.noise(first.value), dataclasses.replace(covariance, moments=moments)
        fixed = self.making.mechanism, noise, summing, covariance, curvature, self.count
        return interval_of_sums(first.value, sums, *fixed, LEVEL, draws=self.draws)

    def _scaled(self, fit: Fit, size: int) -> Fit:
        return fit._replace(inverse=fit.inverse * (self.count / size))


@dataclasses.dataclass(eq=False)
class Cell:
    """One kind of regression at one ε, its ways, and what is counted of each.

    **Arguments:** `mechanism`: at all of ε. `truth`: θ*. `refused`: ways, with the reason. `notes`: of each way whether
    each coefficient was held and the relative width, or None for no interval.
    """

    kind: str
    mechanism: Any
    truth: np.ndarray
    ways: dict[str, Way]
    refused: dict[str, str]
    notes: dict[str, list[tuple[np.ndarray, np.ndarray] | None]]
    effective: list[float]

    @classmethod
    def of(cls, kind: str, epsilon: float, people: Population, count: int, names: list[str], draws: int) -> "Cell":
        """With the ways that serve it."""
        mechanism, ways, refused = people.mechanism(kind, epsilon, count), {}, {}
        for name in names:
            try:
                ways[name] = Way(kng.WithIntervals(mechanism, WAYS[name](people.rows)), count, draws)
                making = ways[name].making
                if isinstance(making, SumsPlan):
                    require_near(making.mechanism, count)
            except ValueError as error:
                ways.pop(name, None)
                refused[name] = str(error)
        truth = fit_of(mechanism.loss, people.whole.x, people.whole.response(kind)).theta
        if np.max(np.abs(truth)) > people.reach:
            # Smoothed as far as exact draws of so few records need, a quantile in a tail is beyond all responses.
            refused |= dict.fromkeys(ways, "what is estimated lies beyond the domain")
            ways = {}
        return cls(kind, mechanism, truth, ways, refused, {name: [] for name in (*WITHOUT, *ways)}, [])

    def replicate(self, table: Table, fits: dict[str, Fit], random: np.random.Generator, exact: bool) -> None:
        """One table. **Arguments:** `fits`: of this table, by the loss."""
        if not self.ways:
            return
        x, y, name = table.x, table.response(self.kind), repr(self.mechanism.loss)
        if name not in fits:
            fits[name] = fit_of(self.mechanism.loss, x, y)
        fit, drawn = fits[name], {}
        self._note_errors("without privacy", fit.theta, fit)
        if not exact:
            naive = self._of_all_epsilon(x, y, fit, random)
            self.effective.append(naive.effective)
            self._note_errors("naive", naive.value, fit)
        for name, way in self.ways.items():
            if exact:
                value, found = way.exact(x, y)
                # At the part of ε that this way leaves to it.
                self._note_errors("naive", value, fit)
            else:
                found = way.interval(x, y, fit, drawn, random)
            if isinstance(found, kng.inference.NoInterval):
                self.notes[name].append(None)
            else:
                self._note(name, found.lower, found.upper, fit)

    @functools.cached_property
    def _of_all_epsilon(self) -> QuickRelease:
        return QuickRelease(self.mechanism)

    def _note_errors(self, name: str, centre: np.ndarray, fit: Fit) -> None:
        self._note(name, centre - 1.96 * fit.errors, centre + 1.96 * fit.errors, fit)

    def _note(self, name: str, lower: np.ndarray, upper: np.ndarray, fit: Fit) -> None:
        holds = (lower <= self.truth) & (self.truth <= upper)
        self.notes[name].append((holds, (upper - lower) / (2.0 * 1.96 * fit.errors)))

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a way."""
        for name, notes in self.notes.items():
            row, given = {"way": name, "replicates": len(notes)}, [note for note in notes if note is not None]
            row["intervals"] = len(given)
            if given:
                holds, widths = (np.array(part) for part in zip(*given, strict=True))
                row["coverage"] = round(float(holds.mean()), 4)
                row["error"] = round(float(holds.mean(axis=1).std() / np.sqrt(len(holds))), 4)
                row["least"] = round(float(holds.mean(axis=0).min()), 4)
                row["width"] = round(float(np.median(widths)), 3)
            yield row | ({"effective": round(float(np.mean(self.effective)), 4)} if self.effective else {})
        for name in self.refused:
            yield {"way": name, "replicates": 0}


COLUMNS = (
    *("table", "records", "columns", "epsilon", "kind", "way", "replicates", "intervals"),
    *("coverage", "error", "least", "width", "effective"),
)


def measured(people: Population, count: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of all cells of one size."""
    makers = [(kind, epsilon) for epsilon in options.epsilon for kind in options.kinds]
    cells = [Cell.of(*one, people, count, options.ways, options.draws) for one in makers]
    start, random = time.perf_counter(), np.random.default_rng([options.seed, count, people.whole.x.shape[1]])
    with contextlib.nullcontext() if options.exact else kept_facts():
        for replicate in range(options.replicates):
            table, fits = people.draw(random, count), {}
            for cell in cells:
                cell.replicate(table, fits, random, options.exact)
            if replicate and time.perf_counter() - start > options.seconds:
                break
    for (kind, epsilon), cell in zip(makers, cells, strict=True):
        for row in cell.rows():
            yield {"epsilon": epsilon, "kind": kind} | row


def in_markdown(rows: list[dict[str, str]]) -> Iterator[str]:
    """A line for each cell, with coverage and width of each way; rows of several seeds are pooled."""
    cells: dict[tuple[str, ...], dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        place = tuple(row[name] for name in COLUMNS[:5])
        cells.setdefault(place, {}).setdefault(row["way"], []).append(row)
    names = ("naive", *WAYS)
    yield f"| | tables | {' | '.join(names)} |"
    yield "| --- " * (2 + len(names)) + "|"
    for (table, count, columns, epsilon, kind), ways in cells.items():
        size = f"{table}, n = {int(count):,}, d = {columns}, epsilon = {float(epsilon):g}, {kind}"
        tables = max(sum(int(row["replicates"]) for row in ways.get(name, [])) for name in WAYS)
        yield f"| {size} | {tables} | {' | '.join(_pooled(ways.get(name, []), tables) for name in names)} |"


def _pooled(rows: list[dict[str, str]], tables: int) -> str:
    """Coverage and width of one way, and how many of its tables had an interval, where these are not all tables."""
    own = sum(int(row["replicates"]) for row in rows)
    given = [(int(row["intervals"]), float(row["coverage"]), float(row["width"])) for row in rows if row["coverage"]]
    if not own or not given:
        return f"none of {own}" if own else ("refused" if rows else "")
    weights, coverage, width = (np.array(part) for part in zip(*given, strict=True))
    shown = f"{np.average(coverage, weights=weights):.3f}".removeprefix("0")
    if rows[0]["way"] == "naive":
        return shown
    shown += f" / {np.average(width, weights=weights):.3g}"
    return shown if weights.sum() == own == tables else f"{shown} ({weights.sum()} of {own})"


def main() -> None:
    """Prints a line for each way of each cell."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of released coefficients")
    parser.add_argument("--table", choices=POPULATIONS, default="t5")
    parser.add_argument("--records", type=int, nargs="+", default=[10_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[4])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, *EXACT), default=list(KINDS))
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=pathlib.Path, help="a file that rows are added to")
    parser.add_argument("--exact", action="store_true", help="by exact releases, which takes long")
    parser.add_argument("--markdown", type=pathlib.Path, help="prints the table of such a file, and measures nothing")
    options = parser.parse_args()
    if options.markdown:
        with options.markdown.open(newline="", encoding="utf-8") as file:
            print(*in_markdown(list(csv.DictReader(file))), sep="\n")
        return
    for columns in options.columns:
        people = POPULATIONS[options.table](columns)
        for count in options.records:
            start, rows = time.perf_counter(), []
            for row in measured(people, count, options):
                rows.append({"table": options.table, "records": count, "columns": columns} | row)
                print("  ".join(f"{rows[-1].get(name, ''):>{max(8, len(name))}}" for name in COLUMNS), flush=True)
            print(f"{time.perf_counter() - start:.0f} s")
            if options.csv:
                is_new = not options.csv.exists()
                with options.csv.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if is_new:
                        writer.writeheader()
                    writer.writerows(rows)


if __name__ == "__main__":
    main()
