"""Everything that is meant to run on an accelerator, there and on the processor, in one table.

`python -m benchmarks.gpu [--quick] [--output benchmarks/results]`; `JAX_PLATFORMS=cpu` leaves the processor alone.

The first result counts compiling and not imports; warm is the same again with another key. Draws are counted as they
come, of exact samplers and of chains alike: what a chain's draw is worth is for the other rooms. All in float64. Exact
draws for quantile losses refine their boxes on the host, between compiled calls. `--output` writes the table as CSV
under the device's name.
"""

import argparse
import csv
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import kngjax as kng
from benchmarks import _table

BOUNDS = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
DIMENSION = 12


class Case(NamedTuple):
    """**Arguments:** `draws`: how many a call makes. `run`: from a research key to those draws, on the host."""

    draws: int
    run: Callable[[Any], Any]


class Result(NamedTuple):
    """**Arguments:** `device`: its name; `case`; `first`, `warm`: seconds; `rate`: draws a second when warm."""

    device: str
    case: str
    first: float
    warm: float
    rate: float


def design(key: Any, num_records: int) -> tuple[Any, Any, Any]:
    """Algorithm 1 of Reimherr and Awan (2019): uniform features, normal noise, responses divided by their largest."""
    x_key, noise_key = jax.random.split(key)
    x = jax.random.uniform(x_key, (num_records, DIMENSION - 1), minval=-1.0)
    truth = jnp.concatenate([jnp.zeros(1), jnp.linspace(-1.0, 1.0, DIMENSION)[:-1]])
    y = x @ truth[1:] + jax.random.normal(noise_key, (num_records,))
    largest = jnp.max(jnp.abs(y))
    return x, y / largest, truth / largest


def records(num_records: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Features without the constant column, and responses within ±1."""
    random = np.random.default_rng(0)
    x = random.uniform(-1.0, 1.0, (num_records, dimension - 1))
    return x, np.clip(0.2 * x.sum(axis=1) + 0.2 * random.standard_normal(num_records), -1.0, 1.0)


def simulated(num_records: int, replicates: int, device: Any) -> Case:
    """A cell of Figure 1: data, summaries and exact draws."""
    mechanism = kng.KNG(kng.SquaredLoss(), BOUNDS, kng.L1Ball(1.0), 1.0, "replace")

    def run(key: Any) -> Any:
        sizes = {"num_records": num_records, "devices": [device], "progress": False}
        return kng.simulate(design, mechanism, replicates, key, sampler=kng.chains.Exact(), **sizes).theta

    return Case(replicates, run)


def sampled(loss: Any, sampler: Any, num_records: int, dimension: int, num_chains: int, num_draws: int) -> Case:
    """Many draws from one data set."""
    domain = kng.L1Ball(1.0) if loss.is_quadratic else kng.Box(-4.0, 4.0)
    mechanism = kng.KNG(loss, BOUNDS, domain, 1.0, "replace")
    data = mechanism.prepare(*records(num_records, dimension))
    settings = {"sampler": sampler, "num_chains": num_chains, "num_draws": num_draws, "progress": False}
    if not isinstance(sampler, kng.chains.Exact):
        settings["num_warmup"] = min(sampler.num_warmup, num_draws)
    return Case(num_chains * num_draws, lambda key: kng.sample(mechanism, data, key=key, **settings).theta)


def cases(quick: bool, device: Any) -> dict[str, Callable[[], Case]]:
    """By name, what makes each case: sizes are in the name."""
    few, many, n, sweeps, replicates = (4, 20, 1000, 20, 4) if quick else (100, 10_000, 100_000, 1000, 100)
    d = 3 if quick else DIMENSION
    squared = kng.SquaredLoss()
    return {
        f"Figure 1, {replicates} data sets of {n}": lambda: simulated(n, replicates, device),
        f"CoordinateWalk, {few} chains, d = {d}": lambda: sampled(
            squared, kng.chains.CoordinateWalk(), n, d, few, sweeps
        ),
        f"CoordinateWalk, {many} chains, d = {d}": lambda: sampled(
            squared, kng.chains.CoordinateWalk(), n, d, many, sweeps // 10
        ),
        f"SliceGibbs, {few} chains, d = {d}": lambda: sampled(
            squared, kng.chains.SliceGibbs(), n, d, few, sweeps // 10
        ),
        f"GradientSpace, pseudo-Huber, n = {n}": lambda: sampled(
            kng.PseudoHuberLoss(0.1), kng.chains.GradientSpace(), n, d, 4, sweeps
        ),
    }


def measured(device: Any, quick: bool, names: tuple[str, ...] = ()) -> Iterator[Result]:
    """A result for each case on a device, or for those whose names begin with one of `names`."""
    for name, make in cases(quick, device).items():
        if names and not name.startswith(names):
            continue
        with jax.default_device(device):
            case, times = make(), []
            for seed in range(2):
                start = time.perf_counter()
                found = case.run(kng.research_key(seed))
                times.append(time.perf_counter() - start)
            assert np.all(np.isfinite(found)), name
        yield Result(device.device_kind, name, *times, case.draws / times[1])


def devices() -> list[Any]:
    """The accelerator, if JAX has one, and then the processor."""
    first = jax.devices()[0]
    if first.platform == "cpu":
        return [first]
    try:
        return [first, jax.devices("cpu")[0]]
    except RuntimeError:
        # JAX_PLATFORMS names the accelerator alone.
        return [first]


def write(results: list[Result], folder: pathlib.Path) -> pathlib.Path:
    """The table as CSV, in a file of the first device's name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gpu_{re.sub('[^a-z0-9]+', '_', results[0].device.lower()).strip('_')}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Result._fields)
        writer.writerows((*row[:2], *(f"{figure:.4g}" for figure in row[2:])) for row in results)
    return path


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--output", metavar="FOLDER", type=pathlib.Path, help="where a CSV is written")
    options = parser.parse_args()
    found = devices()
    print(f"jax {jax.__version__}: {', '.join(device.device_kind for device in found)}, {_table.machine()}")
    if found[0].platform == "cpu":
        print("no accelerator: all of this is of the processor")
    print(f"{'device':24}{'':44}{'first, s':>9}{'warm, s':>9}{'draws/s':>10}")
    results = []
    for device in found:
        for row in measured(device, options.quick):
            results.append(row)
            print(f"{row.device:24}{row.case:44}{row.first:9.2f}{row.warm:9.3f}{row.rate:10.3g}", flush=True)
    if options.output is not None:
        print(f"Written: {write(results, options.output)}")


if __name__ == "__main__":
    main()
