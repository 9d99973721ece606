"""Linear regression and quantiles at equal ε beside diffprivlib and OpenDP, and beside what has no privacy.

`python -m benchmarks.peers [--records 100000] [--dimension 12] [--draws 1000] [--numbers 1000000]
[--diffprivlib PYTHON] [--opendp PYTHON]`.

The design is uniform on [-1, 1] with normal noise, ε = 1, |y| ≤ 8 where a bound is needed. Guarantees differ: AdaSSP
and posterior samples are (1, 10⁻⁶), the latter for one record more or less; the others claim pure ε = 1, KNG by
`GradientSpace` of its density alone: of its chains nothing is proved. Every row is of a process of its own: its first
result counts imports and compiling. Draws a second are independent ones, or ArviZ's effective ones of the worst
coefficient; fits without privacy are the floor. diffprivlib needs an older scikit-learn than some, so its interpreter
may be another.

Quantiles are of log-normal numbers within (0, 20,000), ε = 1 together; the floor is NumPy's sort, and so many of them a
second release takes. OpenDP's are of a list of candidates; kngjax's law is that of all numbers.
"""

import argparse
import dataclasses
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _table

LARGEST, DELTA = 8.0, 1e-6
DIFFPRIVLIB, PEERS = "diffprivlib, LinearRegression", ("diffprivlib", "opendp")
SORT, ENDS, LEVELS = "NumPy, a sort, no privacy", (0.0, 20_000.0), [0.1, 0.25, 0.5, 0.75, 0.9]


def records(num_records: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Features without the constant column, and responses within ±8."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    y = x @ np.linspace(-1.0, 1.0, dimension - 1) + random.standard_normal(num_records)
    return x, np.clip(y, -LARGEST, LARGEST)


def _made(num_records: int, dimension: int) -> tuple[np.ndarray, np.ndarray, float]:
    start = time.time()
    return *records(num_records, dimension), time.time() - start


def released(mechanism_of: Callable[[Any, int, int], Any], sampler_of: Callable[[Any], Any] = lambda kng: None) -> Any:
    """A way: one release, and draws a second of `kng.sample`."""

    def way(num_records: int, dimension: int, num_draws: int) -> tuple[_table.Timed, Callable[[], float]]:
        x, y, making = _made(num_records, dimension)
        import kngjax as kng

        mechanism, sampler = mechanism_of(kng, num_records, dimension), sampler_of(kng)
        given = {} if sampler is None else {"sampler": sampler}

        def many() -> float:
            data, key = mechanism.prepare(x, y), kng.research_key(0)
            settings = {**given, "num_draws": num_draws, "progress": False}
            for _ in range(2):
                start = time.perf_counter()
                draws = kng.sample(mechanism, data, key=key, **settings)
                taken = time.perf_counter() - start
            effective = draws.theta.shape[0] * num_draws if sampler is None else float(draws.ess().min())
            return effective / taken

        return _table.Timed(lambda: kng.release(mechanism, x, y, **given), making), many

    return way


def _bounds(kng: Any, dimension: int) -> Any:
    return kng.Bounds(x=(-1.0, 1.0), y=(-LARGEST, LARGEST), columns=dimension - 1)


def _fitted(model_of: Callable[[Any, np.ndarray, np.ndarray], Any]) -> Any:
    """A way: statsmodels without privacy."""

    def way(num_records: int, dimension: int, num_draws: int) -> tuple[_table.Timed, None]:
        x, y, making = _made(num_records, dimension)
        import statsmodels.api as sm

        return _table.Timed(lambda: model_of(sm, y, sm.add_constant(x)), making), None

    return way


def by_diffprivlib(num_records: int, dimension: int, num_draws: int) -> tuple[_table.Timed, Callable[[], float]]:
    """A way: each fit is one draw."""
    x, y, making = _made(num_records, dimension)
    import warnings

    models = importlib.import_module("diffprivlib.models")
    warnings.simplefilter("ignore")

    def fit():
        return models.LinearRegression(epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-LARGEST, LARGEST)).fit(x, y)

    def many() -> float:
        start = time.perf_counter()
        for _ in range(5):
            fit()
        return 5.0 / (time.perf_counter() - start)

    return _table.Timed(fit, making), many


WAYS = {
    "statsmodels OLS, no privacy": _fitted(lambda sm, y, x: sm.OLS(y, x).fit()),
    "statsmodels RLM, no privacy": _fitted(lambda sm, y, x: sm.RLM(y, x).fit()),
    "statsmodels QuantReg, no privacy": _fitted(lambda sm, y, x: sm.QuantReg(y, x).fit(q=0.5)),
    "KNG, squared loss": released(
        lambda kng, n, d: kng.KNG(kng.SquaredLoss(), _bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace")
    ),
    "KNG, pseudo-Huber loss": released(
        lambda kng, n, d: kng.KNG(kng.PseudoHuberLoss(1.345), _bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        lambda kng: kng.chains.GradientSpace(),
    ),
    "AdaSSP": released(lambda kng, n, d: kng.AdaSSP(_bounds(kng, d), 1.0, DELTA, "replace")),
    "posterior sample (OPS)": released(
        lambda kng, n, d: kng.PosteriorSample.calibrated(
            _bounds(kng, d), max(1000.0, 0.01 * n), 1.0, DELTA, "add_remove", max_records=n, dimension=d
        )
    ),
    DIFFPRIVLIB: by_diffprivlib,
}


def quantiles(make: Callable[[np.ndarray], Callable[[], Any]]) -> Any:
    """A way: quantiles of so many numbers. **Arguments:** `make`: of the numbers, what releases."""

    def way(number: int) -> tuple[_table.Timed, None]:
        start = time.time()
        values = np.random.default_rng(0).lognormal(6.0, 0.6, number)
        making = time.time() - start
        return _table.Timed(make(values), making), None

    return way


def _released(tau: Any, kind: str = "PrivateQuantile", **settings: Any) -> Any:
    def make(values: np.ndarray) -> Callable[[], Any]:
        import kngjax as kng

        mechanism = getattr(kng, kind)(tau, kng.Bounds(y=ENDS), 1.0, "replace", **settings)
        return lambda: kng.release(mechanism, values)

    return quantiles(make)


def _of_study(levels: Any, of_groups: bool = False) -> Any:
    def make(values: np.ndarray) -> Callable[[], Any]:
        import pandas as pd

        import kngjax as kng

        groups = list("abcde")
        frame = pd.DataFrame({"v": values, "g": np.resize(groups, len(values))})
        facts = {"bounds": {"v": ENDS}, "levels": {"g": groups}, "adjacency": "replace"}
        study = kng.Study(frame, **facts)
        return lambda: (study.by("g") if of_groups else study).quantile("v", tau=levels, epsilon=1.0)

    return quantiles(make)


def _of_diffprivlib(levels: Any) -> Any:
    def make(values: np.ndarray) -> Callable[[], Any]:
        tools = importlib.import_module("diffprivlib.tools")
        return lambda: tools.quantile(values, levels, epsilon=1.0, bounds=ENDS)

    return quantiles(make)


def by_opendp(values: np.ndarray) -> Callable[[], Any]:
    """A median of whole candidates by the Context of a frame of polars."""
    dp, pl = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
    dp.enable_features("contrib")
    frame, candidates = pl.DataFrame({"v": values}).lazy(), list(range(int(ENDS[0]), int(ENDS[1]), 5))

    def release() -> Any:
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=2 * len(values))],
        )
        column = pl.col("v").fill_nan(0.0).fill_null(0.0)
        return context.query().select(column.dp.median(candidates)).release().collect()

    return release


QUANTILES = {
    SORT: quantiles(lambda values: lambda: np.sort(values)),
    "PrivateQuantile, a median": _released(0.5),
    "PrivateQuantile, five levels jointly": _released(LEVELS),
    "PrivateQuantile, five levels, split": _released(LEVELS, budget="split"),
    "QuantileInterval of a median": _released(0.5, "QuantileInterval"),
    "a study's median": _of_study(0.5),
    "a study's medians of five groups": _of_study(0.5, of_groups=True),
    "diffprivlib, a median": _of_diffprivlib(0.5),
    "diffprivlib, five quantiles": _of_diffprivlib(LEVELS),
    "OpenDP, a median of 4,000 candidates": quantiles(by_opendp),
}
REGRESSIONS = list(WAYS)
WAYS |= QUANTILES


def rows(sizes: tuple[int, ...], pythons: dict[str, str], ways: list[str]) -> Any:
    """One after the other, so that a long run shows what it has. `pythons`: interpreters that have peers, by name."""
    for way in ways:
        library = way.split(",")[0].lower()
        if library in PEERS and library not in pythons:
            said = f"skipped: not installed; name an interpreter that has it, --{library} PYTHON"
            yield _table.Row(way, remark=said)
            continue
        yield _table.fresh("benchmarks.peers", way, sizes, pythons.get(library, sys.executable))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=12)
    parser.add_argument("--draws", type=int, default=1000, help="draws a chain, of four")
    parser.add_argument("--numbers", type=int, default=1_000_000, help="of which there are quantiles")
    parser.add_argument(
        "--tables", nargs="*", choices=("regressions", "quantiles"), default=("regressions", "quantiles")
    )
    for library in PEERS:
        parser.add_argument(f"--{library}", metavar="PYTHON", help=f"an interpreter that has {library}")
    options = parser.parse_args()
    found = {library: sys.executable for library in PEERS if importlib.util.find_spec(library) is not None}
    found |= {library: vars(options)[library] for library in PEERS if vars(options)[library]}
    if "regressions" in options.tables:
        print(f"Linear regression, n = {options.records}, d = {options.dimension}, epsilon = 1, {_table.machine()}")
        print(_table.HEADER)
        for row in rows((options.records, options.dimension, options.draws), found, REGRESSIONS):
            print(row, flush=True)
    if "quantiles" in options.tables:
        print(f"Quantiles of {options.numbers} numbers, epsilon = 1, {_table.machine()}\n{_table.HEADER}")
        sort = None
        for row in rows((options.numbers,), found, list(QUANTILES)):
            sort = row.warm if row.name == SORT else sort
            if sort is not None and row.warm is not None:
                row = dataclasses.replace(row, remark=f"{row.warm / sort:.1f} sorts")
            print(row, flush=True)


if __name__ == "__main__":
    main()
