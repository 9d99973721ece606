"""Figure 2: median regression with two coefficients by KNG, the exponential mechanism, and without privacy (4.5.1).

- KNG: for |x| ≤ 1 the gradient's sensitivity is 2·max(τ, 1-τ). Equation (2) has 2(1-τ), which is the same at τ = ½:
  here the printed density is right, as it would not be at τ = .9. No bound on y is used.
- The exponential mechanism: on |y| ≤ 1 and |x'θ| ≤ B the range of one record's loss is max(τ, 1-τ)(1 + B), so the
  exponent is ε/(2·max(τ, 1-τ)(1 + B))·ℓ_n with our constants, and half of that as printed: ε/2-DP.

Draws are the ends of Markov chains of exact draws along lines, each from a draw of an inflated limit law about the
estimate without privacy. That this is enough is judged, for the first data set of each n, by the rank R-hat of four
chains, whose kept sweeps start where a chain of the figure ends.
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
from experiments.kng2019 import algorithm1, plots
from kngjax import nonprivate

SETTINGS = ("tau", "epsilon", "radius", "dimension", "sizes", "replicates", "sweeps", "seed")
JUDGED_CHAINS, JUDGED_SWEEPS = 4, 100


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


def sample(mechanism: Any, data: Any, key: Any, sweeps: int, num_draws: int = 1, num_chains: int = 1) -> kng.Draws:
    """The sweeps that come after the first `sweeps - 1` ones of each chain."""
    return kng.sample(
        mechanism,
        data,
        key=key,
        sampler=kng.LineGibbs(),
        num_draws=num_draws,
        num_chains=num_chains,
        num_warmup=sweeps - 1,
        progress=False,
    )


def estimate(method: plots.Method, loss: kng.QuantileLoss, data: Any, key: Any, sweeps: int) -> np.ndarray:
    """The estimate of one data set in the scale of Y', shape (d,)."""
    if method.mechanism is None:
        return nonprivate.minimiser(loss, data)
    return sample(method.mechanism, data, key, sweeps).theta[0, 0]


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `figure2.csv` and `figure2.png`, and print the table.

    **Arguments**: as for `experiments.kng2019.run`; `smoke` keeps n ≤ 1000 and four replicates.
    """
    if set(settings) != set(SETTINGS):
        raise ValueError(f"figure2 needs the settings {', '.join(SETTINGS)}; given: {', '.join(settings)}")
    sizes = [n for n in settings["sizes"] if n <= 1000 or not smoke]
    count = 4 if smoke else settings["replicates"]
    curves, sweeps = methods(settings["tau"], settings["epsilon"], settings["radius"]), settings["sweeps"]
    loss = kng.QuantileLoss(settings["tau"])
    key = kng.research_key(settings["seed"])
    rows = []
    bar = tqdm(total=len(sizes) * count * (1 + len(curves)), unit="fit", disable=None)
    with bar, ThreadPoolExecutor(min(algorithm1.MOST_THREADS, os.cpu_count() or 1)) as pool:
        for n in sizes:
            start = time.perf_counter()
            data_sets = algorithm1.replicates(
                algorithm1.records, n, settings["dimension"], count, settings["seed"], bar
            )
            seconds_of_data = time.perf_counter() - start
            keys = list(jax.random.split(jax.random.fold_in(key, n), count + 1))
            for method in curves:
                start = time.perf_counter()
                values = []
                data = [data_set.data for data_set in data_sets]
                for value in pool.map(functools.partial(estimate, method, loss, sweeps=sweeps), data, keys[:-1]):
                    values.append(value)
                    bar.update()
                seconds = plots.Seconds(time.perf_counter() - start, seconds_of_data)
                errors = algorithm1.errors(np.stack(values), data_sets)
                if method.mechanism is None:
                    rows.append(plots.row(n, method, errors, seconds))
                    continue
                judged = sample(method.mechanism, data[0], keys[-1], sweeps, JUDGED_SWEEPS, JUDGED_CHAINS)
                how = f"LineGibbs, {sweeps} sweeps"
                rows.append(plots.row(n, method, errors, seconds, how, float(judged.rhat().max())))
    plots.write(output / "figure2.csv", rows)
    plots.plot(
        output / "figure2.png", rows, f"Median regression, d = {settings['dimension']}, ε = {settings['epsilon']:g}"
    )
    plots.show(rows)
    print(f"largest R-hat of {sweeps} sweeps: {max(row.rhat for row in rows if row.rhat is not None):.3f}")
