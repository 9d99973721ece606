"""Figure 1: linear regression with 12 coefficients, by private mechanisms and by least squares (section 4.3).

Everything depends on the data through (n, X'X, X'Y, Y'Y), and every draw is exact: no chain stands between the figure
and the mechanisms' laws. In our loss ½r² with |y| ≤ 1, |x| ≤ 1 and |x'θ| ≤ B:

- KNG, our constants: Δ = 2(1 + B), so the exponent is ε/(4(1 + B))·‖X'(Y - Xθ)‖_∞.
- KNG, as printed: equation (1) has ε/(8(1 + B)), half of what its own sensitivity allows. It is ε/2-DP, and is drawn
  as such.
- KNG with Δ(θ): Remark 4.2, the same with the sensitivity at each θ instead of its largest value over Θ.
- Objective perturbation: b ∝ exp(-ε/(4(1 + B))‖b‖_∞) and γ = d/(e^{ε/2} - 1) for ½r², which is the printed mechanism.
- The exponential mechanism's exponent ε/(2(1 + B)²)·Σr² is the printed one.
"""

import pathlib
import time
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded
from experiments.kng2019 import algorithm1, plots
from kngjax.owner import nonprivate

SETTINGS = ("epsilon", "radius", "dimension", "sizes", "replicates", "seed")


def methods(epsilon: float, radius: float) -> list[plots.Method]:
    """The curves, in the order of the legend."""
    bounds, ball = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(radius)
    loss = kng.SquaredLoss()
    pointwise = kng.KNG(loss, bounds, ball, epsilon, "replace", pointwise_sensitivity=True)
    return [
        plots.Method("non-private", "", None),
        plots.Method("KNG", "our constants", kng.KNG(loss, bounds, ball, epsilon, "replace", norm=kng.LInf())),
        plots.Method("KNG", "as printed", kng.KNG(loss, bounds, ball, epsilon / 2.0, "replace", norm=kng.LInf())),
        plots.Method("KNG", "Δ(θ)", pointwise),
        plots.Method("exponential", "", kng.ExponentialMechanism(loss, bounds, ball, epsilon, "replace")),
        plots.Method("objective perturbation", "", kng.ObjectivePerturbation(loss, bounds, ball, epsilon, "replace")),
    ]


@jax.jit
def draw_all(mechanism: Any, data: Any, keys: Any) -> Any:
    """One exact draw for each data set, shape (replicates, d)."""
    sampler = None if isinstance(mechanism, kng.ObjectivePerturbation) else kng.chains.Exact()
    return jax.vmap(lambda data, key: kng.draw(mechanism, data, key, sampler)[0])(data, keys)


def estimates(mechanism: Any, data_sets: list[algorithm1.DataSet], keys: Any) -> np.ndarray:
    """The estimate of each data set by one method, in the scale of Y', shape (replicates, d)."""
    if mechanism is None:
        return np.stack([nonprivate.minimiser(kng.SquaredLoss(), data_set.data) for data_set in data_sets])
    return np.asarray(draw_all(mechanism, algorithm1.stacked(data_sets), keys))


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `figure1.csv` and `figure1.png`, and print the table.

    **Arguments**: as for `experiments.kng2019.run`; `smoke` keeps n ≤ 1000 and four replicates.
    """
    require(settings, SETTINGS, "figure1")
    sizes = [n for n in settings["sizes"] if n <= 1000 or not smoke]
    count = 4 if smoke else settings["replicates"]
    key = kng.research_key(settings["seed"])
    rows = []
    with tqdm(total=len(sizes) * count, unit="data set", disable=None) as bar:
        for n in sizes:
            start = time.perf_counter()
            data_sets = algorithm1.replicates(
                algorithm1.summary, n, settings["dimension"], count, settings["seed"], bar
            )
            seconds_of_data = time.perf_counter() - start
            keys = jax.random.split(jax.random.fold_in(key, n), count)
            for method in methods(settings["epsilon"], settings["radius"]):
                start = time.perf_counter()
                values = estimates(method.mechanism, data_sets, keys)
                seconds = plots.Seconds(time.perf_counter() - start, seconds_of_data)
                sampler = "exact" if method.mechanism is not None else ""
                rows.append(plots.row(n, method, algorithm1.errors(values, data_sets), seconds, sampler))
    write_rounded(output / "figure1.csv", rows)
    plots.plot(
        output / "figure1.png", rows, f"Linear regression, d = {settings['dimension']}, ε = {settings['epsilon']:g}"
    )
    plots.show(rows)
