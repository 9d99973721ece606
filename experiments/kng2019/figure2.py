"""Figure 2: median regression with two coefficients by KNG, the exponential mechanism, and without privacy (4.5.1).

- KNG: for |x| ≤ 1 the gradient's sensitivity is 2·max(τ, 1-τ). Equation (2) has 2(1-τ), which is the same at τ = ½:
  here the printed density is right, as it would not be at τ = .9. No bound on y is used.
- The exponential mechanism: on |y| ≤ 1 and |x'θ| ≤ B the range of one record's loss is max(τ, 1-τ)(1 + B), so the
  exponent is ε/(2·max(τ, 1-τ)(1 + B))·ℓ_n with our constants, and half of that as printed: ε/2-DP.

Draws are the ends of Markov chains of exact draws along lines, each from a draw of an inflated limit law about the
estimate without privacy. That they are long enough is judged, for the first data set of each n, by the rank R-hat of
four chains, whose kept sweeps start where a chain of the figure ends.
"""

import functools
import os
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded
from experiments.kng2019 import algorithm1, plots
from kngjax.owner import nonprivate

SETTINGS = ("tau", "epsilon", "radius", "dimension", "sizes", "replicates", "sweeps", "seed")
# `LineGibbs` runs in blocks of so many sweeps: with whole blocks one compiled program serves all that is done at an n.
BLOCK = 8
JUDGED_CHAINS = 4


def methods(tau: float, epsilon: float, radius: float) -> list[plots.Method]:
    """The curves, in the order of the legend."""
    loss, ball = kng.QuantileLoss(tau), kng.L1Ball(radius)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
    exponential = functools.partial(kng.ExponentialMechanism, loss, bounds, ball, adjacency="replace")
    return [
        plots.Method("non-private", "", None),
        plots.Method("KNG", "", kng.KNG(loss, algorithm1.BOUNDS, ball, epsilon, "replace", norm=kng.LInf())),
        plots.Method("exponential", "our constants", exponential(epsilon=epsilon)),
        plots.Method("exponential", "as printed", exponential(epsilon=epsilon / 2.0)),
    ]


def chain(mechanism: Any, sweeps: int, num_draws: int, data: Any, key: Any) -> np.ndarray:
    """The sweeps of one chain after the first `sweeps`, shape (draws, d)."""
    options: dict[str, Any] = {"num_chains": 1, "num_warmup": sweeps, "num_draws": num_draws, "progress": False}
    return kng.sample(mechanism, data, key=key, sampler=kng.chains.LineGibbs(), **options).theta[0]


def estimate(method: plots.Method, loss: kng.QuantileLoss, sweeps: int, data: Any, key: Any) -> np.ndarray:
    """The estimate of one data set in the scale of Y', shape (d,)."""
    if method.mechanism is None:
        return nonprivate.minimiser(loss, data)
    return chain(method.mechanism, sweeps - BLOCK, BLOCK, data, key)[-1]


def judged_sweeps(num_records: int) -> int:
    """How many sweeps of each chain the R-hat is made of: fewer where a sweep takes long."""
    return BLOCK * min(50, max(25, 500_000 // num_records))


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `figure2.csv` and `figure2.png`, and print the table.

    **Arguments**: as for `experiments.kng2019.run`; `smoke` keeps the first n and four replicates.
    """
    require(settings, SETTINGS, "figure2")
    if settings["sweeps"] % BLOCK:
        raise ValueError(f"sweeps must be a multiple of {BLOCK}, got {settings['sweeps']}")
    sizes = settings["sizes"][:1] if smoke else settings["sizes"]
    count = 4 if smoke else settings["replicates"]
    curves, sweeps = methods(settings["tau"], settings["epsilon"], settings["radius"]), settings["sweeps"]
    loss = kng.QuantileLoss(settings["tau"])
    key = kng.research_key(settings["seed"])
    rows = []
    bar = tqdm(total=len(sizes) * count * (1 + len(curves)), unit="fit", disable=None)
    # Where a chain takes no time, threads would only compile the same program side by side.
    threads = min(algorithm1.MOST_THREADS, os.cpu_count() or 1)
    with bar, ThreadPoolExecutor(1) as one, ThreadPoolExecutor(threads) as several:
        for n in sizes:
            pool = several if n > 1000 else one
            start = time.perf_counter()
            data_sets = algorithm1.replicates(
                algorithm1.records, n, settings["dimension"], count, settings["seed"], bar
            )
            seconds_of_data = time.perf_counter() - start
            data = [data_set.data for data_set in data_sets]
            keys = list(jax.random.split(jax.random.fold_in(key, n), count + JUDGED_CHAINS))
            for method in curves:
                start = time.perf_counter()
                values = []
                for value in pool.map(functools.partial(estimate, method, loss, sweeps), data, keys[:count]):
                    values.append(value)
                    bar.update()
                seconds = plots.Seconds(time.perf_counter() - start, seconds_of_data)
                errors = algorithm1.errors(np.stack(values), data_sets)
                if method.mechanism is None:
                    rows.append(plots.row(n, method, errors, seconds))
                    continue
                judge = functools.partial(chain, method.mechanism, sweeps, judged_sweeps(n), data[0])
                judged = kng.owner.Draws(np.stack(list(pool.map(judge, keys[count:]))), "LineGibbs")
                how = f"LineGibbs, {sweeps} sweeps"
                rows.append(plots.row(n, method, errors, seconds, how, float(judged.rhat().max())))
    write_rounded(output / "figure2.csv", rows)
    plots.plot(
        output / "figure2.png", rows, f"Quantile regression, τ = {settings['tau']:g}, ε = {settings['epsilon']:g}"
    )
    plots.show(rows)
    print(f"largest R-hat of {sweeps} sweeps: {max(row.rhat for row in rows if row.rhat is not None):.3f}")
