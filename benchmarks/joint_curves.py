"""Curves of several levels from their joint density, drawn exactly and by a chain, beside curves by halving.

`python -m benchmarks.joint_curves` prints for made-up tables how far curves lie from the fits without privacy or
smoothing, the mean over records and levels of |x'θ̃ - x'θ̂| in units of about a standard deviation of the errors, with
the standard error of independent draws; how many proposals a draw took; and the seconds by the clock of all draws, of
exact ones with the search for their envelope, and of either with compilation. Halving's draws are whole releases. The
data are made up, so that fits and numbers of proposals may be shown.
"""

import argparse
import time
from typing import Any

import numpy as np

import kngjax as kng
from experiments.quantile_process.tables import made_up
from kngjax import nonprivate
from kngjax.data import prepare

# n, d, m and h.
CELLS = (
    (3000, 2, 3, 0.3),
    (10_000, 2, 3, 0.2),
    (30_000, 2, 5, 0.2),
    (100_000, 2, 3, 0.05),
    (100_000, 2, 9, 0.1),
    (100_000, 4, 3, 0.1),
)


def draws(way: str, given: dict[str, Any], table: Any, bandwidth: float, number: int) -> tuple[np.ndarray, float]:
    """Curves, shape (draws, m, d), and how many proposals one took."""
    if way == "halving":
        process = kng.QuantileProcess(**given)
        return np.array([kng.release(process, table.columns, table.y).value for _ in range(number)]), 1.0
    process = kng.QuantileProcess(**given, order="joint", bandwidth=bandwidth)
    sampler = kng.Exact(max_proposals=10**5) if way == "exact" else kng.GradientSpace(num_warmup=30)
    key, data = kng.research_key(0), process.prepare(table.columns, table.y)
    found = process.sample(data, key=key, sampler=sampler, num_draws=number)
    return found.curves, 1.0 / found.acceptance


def main(arguments: list[str] | None = None) -> None:
    """Prints three rows for each table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.joint_curves", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--releases", type=int, default=5, help="by halving")
    parser.add_argument("--cells", type=int, default=len(CELLS), help="the first so many")
    options = parser.parse_args(arguments)
    print(f"{'':44}{'error':>9}{'+-':>8}{'proposals':>11}{'seconds':>9}")
    for count, dimension, m, bandwidth in CELLS[: options.cells]:
        table, levels = made_up(count, dimension, 0), (np.arange(1, m + 1) / (m + 1)).tolist()
        given = {"levels": levels, "bounds": table.bounds, "domain": kng.Box(-20.0, 20.0)}
        given |= {"epsilon": options.epsilon, "adjacency": "replace"}
        records = prepare(table.bounds, table.columns, table.y)
        fits = np.array([nonprivate.minimiser(kng.QuantileLoss(level), records) for level in levels])
        for way in ("exact", "chain", "halving"):
            start, number = time.perf_counter(), options.releases if way == "halving" else options.draws
            try:
                curves, proposals = draws(way, given, table, bandwidth, number)
            except (RuntimeError, ValueError) as error:
                print(f"n = {count}, d = {dimension}, m = {m}, h = {bandwidth}, {way:12}{str(error)[:60]}", flush=True)
                continue
            seconds = time.perf_counter() - start
            errors = np.mean(np.abs((curves - fits) @ table.x[:2000].T), axis=(1, 2))
            is_alone = way == "chain" or len(errors) < 2
            deviation = float("nan") if is_alone else np.std(errors, ddof=1) / np.sqrt(len(errors))
            name = f"n = {count}, d = {dimension}, m = {m}, h = {bandwidth}, {way}"
            print(f"{name:44}{errors.mean():9.4f}{deviation:8.4f}{proposals:11.2f}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
