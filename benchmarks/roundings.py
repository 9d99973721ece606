"""What a proof of every rounding costs: releases of one law, drawn exactly and rounded, beside draws in float64.

`python -m benchmarks.roundings [--records 100000] [--dimensions 2 12] [--repeats 5] [--cpu] [names]`.

The second column is what `kngjax.release` does by itself; the third draws the same law in float64, as it does where no
exact draw is known, by `kngjax.chains.Exact` or the mechanism itself. The first release of each is apart: it is not
repeated, and has compiling in it. Then medians of warm releases, of the same data. With `--cpu` it is the time of
processors, of all threads, which says more where others use the machine.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Sequence
from unittest import mock

import numpy as np

import kngjax as kng
from benchmarks import _table

HEADER = (
    f"{'':34}{'d':>4}{'assurance':>22}{'first, s':>10}{'warm, ms':>10}{'float64: first':>16}{'warm, ms':>10}{'':4}times"
)


def problem(num_records, dimension, seed=0):
    """Columns with an intercept, uniform, and a response of which nine tenths are explained."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    y = 0.5 * x @ np.linspace(-1.0, 1.0, dimension - 1) + 0.2 * random.standard_normal(num_records)
    return x, np.clip(y, -1.0, 1.0)


def mechanisms(num_records, dimension):
    """Name, mechanism and data of every kind of mechanism."""
    columns, budget = ([-1.0] * (dimension - 1), [1.0] * (dimension - 1)), (1.0, 1e-6, "replace")
    bounds = kng.Bounds(x=columns, y=(-1.0, 1.0))
    x, y = problem(num_records, dimension)
    classes = (y > 0.0).astype(float)
    means = kng.Bounds(x=columns, intercept=False)
    yield "mean, K-norm", kng.KNormMechanism(means, 1.0, "replace"), (x, None)
    ball, ridge = kng.L2Ball(5.0), 500.0 * dimension
    squared, logistic, huber = kng.SquaredLoss(), kng.LogisticLoss(), kng.PseudoHuberLoss(0.3)
    # From here on, by public facts, smooth losses of many coefficients are drawn so.
    smooth = functools.partial(
        kng.KNG, epsilon=1.0 if dimension <= 4 else 11.0 * 1e5 / num_records, adjacency="replace"
    )
    output = functools.partial(kng.OutputPerturbation, max_records=num_records)
    regressions = {
        "KNG, squared": kng.KNG(squared, bounds, ball, 1.0, "replace"),
        "KNG, pseudo-Huber": smooth(huber, bounds, ball),
        "AdaSSP": kng.AdaSSP(bounds, *budget),
        "AdaOPS": kng.AdaOPS(bounds, *budget),
        "posterior sample": kng.PosteriorSample(bounds, ridge, 0.1, "replace", max_records=num_records),
        "output, ridge": output(squared, bounds, ridge, *budget),
        "output, ridge, hessian": output(squared, bounds, ridge, *budget, "hessian"),
        "output, ridge, hessian_squared": output(squared, bounds, ridge, *budget, "hessian_squared"),
        "output, pseudo-Huber": kng.OutputPerturbation(huber, bounds, ridge, *budget),
        "objective, squared": kng.ObjectivePerturbation(squared, bounds, ball, 1.0, "replace"),
        "objective, pseudo-Huber": kng.ObjectivePerturbation(huber, bounds, ball, 1.0, "replace"),
        "private IRLS": kng.PrivateIRLS(bounds, *budget),
    }
    for name, mechanism in regressions.items():
        yield name, mechanism, (x, y)
    class_bounds = kng.Bounds(x=columns)
    # Estimates of the others lie within their Θ, and so do these.
    slope, random = 0.5 * np.linspace(-1.0, 1.0, dimension - 1), np.random.default_rng(1)
    chances, counts = (
        1.0 / (1.0 + np.exp(-2.0 * x @ slope)),
        np.clip(random.poisson(np.exp(0.5 * x @ slope)), 0, 10) * 1.0,
    )
    by_chance = (random.uniform(size=num_records) < chances).astype(float)
    yield "KNG, logistic", smooth(logistic, class_bounds, ball), (x, by_chance)
    count_bounds, near = kng.Bounds(x=columns, y=(0.0, 10.0)), kng.L2Ball(1.5 if dimension <= 4 else 0.6)
    yield "KNG, Poisson", smooth(kng.PoissonLoss(), count_bounds, near), (x, counts)
    quantile = kng.SmoothedQuantileLoss(0.5, 0.2)
    yield "KNG, smoothed quantile", smooth(quantile, bounds, ball), (x, y)
    yield "output, logistic", kng.OutputPerturbation(logistic, class_bounds, ridge, *budget), (x, classes)
    yield "objective, logistic", kng.ObjectivePerturbation(logistic, class_bounds, ball, 1.0, "replace"), (x, classes)


def timed(mechanism, data, repeats, clock, sampler=None):
    """Seconds of the first release and of a warm one, and the certificate."""
    start = clock()
    certificate = kng.release(mechanism, *data, sampler=sampler, progress=False).certificate
    first, warm = clock() - start, []
    for _ in range(repeats):
        start = clock()
        kng.release(mechanism, *data, sampler=sampler, progress=False)
        warm.append(clock() - start)
    return first, statistics.median(warm), certificate


def in_float64():
    """A context in which releases know no draw with every rounding in its proof."""
    return mock.patch("kngjax.releases.draw_choice.proved_draw", return_value=None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roundings", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="rows whose names contain one of these; none: all")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 12])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="seconds of processors, of all threads")
    options = parser.parse_args(arguments)
    clock = time.process_time if options.cpu else time.perf_counter
    print(f"n = {options.records:,}, {'CPU time, ' if options.cpu else ''}{_table.machine()}\n{HEADER}")
    for dimension in options.dimensions:
        for name, mechanism, data in mechanisms(options.records, dimension):
            if options.names and not any(word in name for word in options.names):
                continue
            row = f"{name:34}{dimension:4}"
            try:
                first, warm, certificate = timed(mechanism, data, options.repeats, clock)
                row += f"{certificate.assurance:>22}{first:10.2f}{1e3 * warm:10.1f}"
                if certificate.assurance == "proved":
                    # Of a density the sampler can be asked for.
                    sampler = kng.chains.Exact() if hasattr(mechanism, "target") else None
                    with in_float64():
                        float_first, float_warm, _ = timed(mechanism, data, options.repeats, clock, sampler)
                    row += f"{float_first:16.2f}{1e3 * float_warm:10.1f}{warm / float_warm:9.2f}"
            except (ValueError, RuntimeError) as error:
                row += f"  {error}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
