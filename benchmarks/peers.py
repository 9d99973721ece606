"""Linear regression at equal ε: KNG, AdaSSP and posterior samples beside diffprivlib, and fits without privacy.

`python -m benchmarks.peers [--records 100000] [--dimension 12] [--draws 1000] [--diffprivlib PYTHON]`.

The design is uniform on [-1, 1] with normal noise, ε = 1, |y| ≤ 8 where a bound is needed. Guarantees differ: AdaSSP
and posterior samples are (1, 10⁻⁶), the latter for one record more or less; the others claim pure ε = 1, KNG by
`GradientSpace` of its density alone: of its chains nothing is proved. Every row is of a process of its own: its first
result counts imports and compiling. Draws a second are independent ones, or ArviZ's effective ones of the worst
coefficient; fits without privacy are the floor. diffprivlib needs an older scikit-learn than some, so its interpreter
may be another.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _table

LARGEST, DELTA = 8.0, 1e-6
DIFFPRIVLIB = "diffprivlib, LinearRegression"


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


def rows(sizes: tuple[int, int, int], diffprivlib: str | None, ways: list[str] | None = None) -> Any:
    """One after the other, so that a long run shows what it has. `diffprivlib`: an interpreter that has it."""
    for way in WAYS if ways is None else ways:
        if way == DIFFPRIVLIB and diffprivlib is None:
            yield _table.Row(
                way, remark="skipped: not installed; name an interpreter that has it, --diffprivlib PYTHON"
            )
            continue
        python = diffprivlib if way == DIFFPRIVLIB and diffprivlib is not None else sys.executable
        yield _table.fresh("benchmarks.peers", way, sizes, python)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=12)
    parser.add_argument("--draws", type=int, default=1000, help="draws a chain, of four")
    parser.add_argument("--diffprivlib", metavar="PYTHON", help="an interpreter that has diffprivlib")
    options = parser.parse_args()
    found = sys.executable if importlib.util.find_spec("diffprivlib") is not None else None
    print(f"Linear regression, n = {options.records}, d = {options.dimension}, epsilon = 1, {_table.machine()}")
    print(_table.HEADER)
    for row in rows((options.records, options.dimension, options.draws), options.diffprivlib or found):
        print(row, flush=True)


if __name__ == "__main__":
    main()
