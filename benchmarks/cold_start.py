"""What a first user waits for: `kngjax release` on the wage data, and first calls, from fresh processes.

`python -m benchmarks.cold_start [CONFIG] [--runs 2] [--records 2000] [--dimension 3] [--ways NAME ...]`.

Every run is a process of its own, and writes into a folder that is thrown away. The second finds files and bytecode in
the page cache and nothing else: no compiled program of a release is kept on disk, where private data could end. Work
is the time of all processors.

First calls begin with the start of the process: imports, compiling and one release, beside a fit by statsmodels. A
study and statsmodels read a formula and a frame, the last three of whose coefficients are those of texts where there
are six or more: `--records 1000000 --dimension 9 --ways study formula --runs 0`. Then comes one draw by `kng.sample`
with each sampler. The work of all processors changes less with other load than seconds do.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import _table, peers

REGIONS = ("north", "south", "east", "west")
CONFIG = _table.ROOT / "configs" / "cps1988_wages.toml"
# Listens to JAX before the command does anything, and reports after it has done all.
CHILD = """
import json, sys
import jax.monitoring
compilations = []
def listen(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        compilations.append(seconds)
jax.monitoring.register_event_duration_secs_listener(listen)
from kngjax.command.cli import main
status = main(sys.argv[1:])
print(json.dumps([len(compilations), sum(compilations)]), file=sys.stderr)
sys.exit(status)
"""


class Run(NamedTuple):
    """**Arguments:** `wall`, `work`: seconds; `compilations`: how many programs, and `compiling` their seconds."""

    wall: float
    work: float
    compilations: int
    compiling: float


def _first(way: Callable[..., Any]) -> Callable[..., Any]:
    """A way of which nothing but the first results is measured."""
    return lambda *sizes: (way(*sizes, 1)[0], None)


def _wide(kng: Any, dimension: int) -> Any:
    return kng.Bounds(x=(-1.0, 1.0), columns=dimension - 1)


def _frame(num_records: int, dimension: int) -> tuple[Any, str, float]:
    """A frame of numbers and a category, the right side of a formula, and the seconds that they took."""
    import numpy as np
    import pandas as pd

    start, random = time.time(), np.random.default_rng(0)
    numbers = dimension - 4 if dimension > 5 else dimension - 1
    x = random.uniform(0.0, 80.0, (num_records, numbers))
    frame = pd.DataFrame(x, columns=[f"x{place}" for place in range(numbers)])
    terms = " + ".join(frame.columns)
    if numbers < dimension - 1:
        frame["region"], terms = random.choice(REGIONS, num_records), f"{terms} + region"
    centred = x.mean(axis=1) - 40.0
    frame["y"] = np.clip(40.0 + centred + random.normal(0.0, 5.0, num_records), 0.0, 80.0)
    frame["group"] = np.where(random.logistic(0.0, 10.0, num_records) < centred, "b", "a")
    return frame, terms, time.time() - start


def _by_study(method: str, left: str) -> Callable[..., Any]:
    """A way: a regression by a study."""

    def way(num_records: int, dimension: int) -> tuple[_table.Timed, None]:
        frame, terms, making = _frame(num_records, dimension)
        import kngjax as kng

        bounds = {name: (0.0, 80.0) for name in frame.columns if name not in ("region", "group")}
        levels = {"region": REGIONS, "group": ("a", "b")}

        def fit() -> Any:
            study = kng.Study(frame, bounds=bounds, levels=levels, adjacency="replace")
            return getattr(study, method)(f"{left} ~ {terms}", epsilon=1.0)

        return _table.Timed(fit, making), None

    return way


def _by_formula(model: str, left: str) -> Callable[..., Any]:
    """A way: statsmodels by a formula, without privacy."""

    def way(num_records: int, dimension: int) -> tuple[_table.Timed, None]:
        frame, terms, making = _frame(num_records, dimension)
        import statsmodels.formula.api as smf

        return _table.Timed(lambda: getattr(smf, model)(f"{left} ~ {terms}", frame).fit(), making), None

    return way


WAYS = {name: _first(peers.WAYS[name]) for name in (*list(peers.WAYS)[:1], "AdaSSP", "posterior sample (OPS)")} | {
    name: _first(peers.released(*parts))
    for name, *parts in (
        (
            "output perturbation, squared loss",
            lambda kng, n, d: kng.OutputPerturbation(
                kng.SquaredLoss(), peers._bounds(kng, d), 100.0, 1.0, peers.DELTA, "replace", max_records=n
            ),
        ),
        (
            "objective perturbation, squared loss",
            lambda kng, n, d: kng.ObjectivePerturbation(
                kng.SquaredLoss(), peers._bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"
            ),
        ),
        (
            "objective perturbation, pseudo-Huber loss",
            lambda kng, n, d: kng.ObjectivePerturbation(
                kng.PseudoHuberLoss(1.345), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"
            ),
        ),
        (
            "KNG, squared loss",
            lambda kng, n, d: kng.KNG(kng.SquaredLoss(), peers._bounds(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
        (
            "KNG, quantile loss",
            lambda kng, n, d: kng.KNG(kng.QuantileLoss(0.5), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
        (
            "KNG, pseudo-Huber loss",
            lambda kng, n, d: kng.KNG(kng.PseudoHuberLoss(1.345), _wide(kng, d), kng.Box(-4.0, 4.0), 1.0, "replace"),
        ),
    )
}
WAYS |= {
    "formula: statsmodels OLS, no privacy": _by_formula("ols", "y"),
    "study: linear regression": _by_study("linear_regression", "y"),
    "formula: statsmodels Logit, no privacy": _by_formula("logit", "I(1.0 * (group == 'b'))"),
    "study: logistic regression": _by_study("logistic_regression", "group"),
}


SQUARED, QUANTILE, SMOOTH = "SquaredLoss()", "QuantileLoss(0.5)", "PseudoHuberLoss(1.345)"
SAMPLED = (
    (SQUARED, "CoordinateWalk()"),
    (SQUARED, "EnsembleWalk()"),
    (SQUARED, "SliceGibbs()"),
    (SQUARED, "Exact()"),
    (SMOOTH, "Exact()"),
    (SMOOTH, "GradientSpace()"),
    (QUANTILE, "LineGibbs()"),
    (SQUARED, "HMC()"),
    (SQUARED, "NUTS()"),
)
RECORDS = """
import numpy as np
generator = np.random.default_rng(0)
x = generator.uniform(-1.0, 1.0, ({0}, {1} - 1))
y = np.clip(x.sum(axis=1) * 0.3 + 0.3 * generator.standard_normal({0}), -1.0, 1.0)
"""
FITTED = "import statsmodels.api as sm\nsm.OLS(y, sm.add_constant(x)).fit().summary()"
DRAWN = """
import kngjax as kng
bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), columns=x.shape[1])
mechanism = kng.KNG(kng.{0}, bounds, kng.Box(-4.0, 4.0), 1.0, "replace")
data, sampler = mechanism.prepare(x, y), kng.chains.{1}
kng.sample(mechanism, data, key=kng.research_key(0), sampler=sampler, num_draws=1, progress=False)
"""


def spent(*arguments: str) -> tuple[float, float, str]:
    """Runs Python afresh: its seconds, those of all processors, and the last line of its errors.

    Raises RuntimeError with what it said if it failed.
    """
    path = os.pathsep.join([str(_table.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command, environment = [sys.executable, "-c", *arguments], os.environ | {"PYTHONPATH": path}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, work, (run.stderr.splitlines() or [""])[-1]


def release(config: pathlib.Path) -> Run:
    """One release in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        wall, work, said = spent(CHILD, "release", str(config), "--output", folder)
    return Run(wall, work, *json.loads(said))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=pathlib.Path, nargs="?", default=CONFIG)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--dimension", type=int, default=3)
    parser.add_argument("--ways", nargs="+", metavar="NAME", help="how names of first calls begin; all by default")
    options = parser.parse_args()
    print(f"kngjax release {options.config.name} from fresh processes, {_table.machine()}")
    print(f"{'run':>4}{'seconds':>10}{'of work':>10}{'programs':>10}{'compiling':>11}")
    for number in range(1, options.runs + 1):
        run = release(options.config)
        print(f"{number:>4}{run.wall:>10.1f}{run.work:>10.1f}{run.compilations:>10}{run.compiling:>11.1f}", flush=True)
    print(f"\nFirst calls, n = {options.records}, d = {options.dimension}, {_table.machine()}")
    print(_table.HEADER)
    for way in (one for one in WAYS if one.startswith(tuple(options.ways or [""]))):
        print(_table.fresh("benchmarks.cold_start", way, (options.records, options.dimension)), flush=True)
    print(f"\nOne draw a chain of four by each sampler, {_table.machine()}")
    print(f"{'':44}{'seconds':>10}{'of work':>10}")
    records = RECORDS.format(options.records, options.dimension)
    rows = {"statsmodels OLS": FITTED} | {f"{by}, {loss}": DRAWN.format(loss, by) for loss, by in SAMPLED}
    for name, program in rows.items():
        wall, work, _ = spent(records + program)
        print(f"{name:44}{wall:>10.1f}{work:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
