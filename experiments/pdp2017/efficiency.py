"""Efficiency of private linear regressions relative to least squares, against n, on simulated and real tables.

Each table is a population, from which data sets of n records are drawn with replacement. The loss of an estimate is its
excess risk (θ - θ₀)'G(θ - θ₀) with θ₀ the least squares estimate of the population and G its mean of xx'. Efficiency is
the mean of that for least squares on the n records over the mean for the private estimate: 1 costs nothing, 0.01 as
much as throwing away 99 of 100 records. Every method has the same adjacency, and its guarantee is in the table.

- AdaOPS and AdaSSP at (ε, δ).
- OPS at (ε, δ) with λ = X²√n and the largest γ, worst case: n is its public promise.
- objective perturbation of the squared loss on a box, pure ε.
- robust KNG, pure ε, on the same box: what it estimates is the minimiser of the pseudo-Huber loss, so that its
  efficiency falls again where that differs from θ₀.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded
from experiments.pdp2017 import regression, tables

SETTINGS = ("tables", "sizes", "data_sets", "draws", "epsilon", "delta", "box", "k", "robust_sizes", "seed")

# From (X, y) and a key to draws, shape (draws, d).
Fit = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `efficiency.csv` and `efficiency.png`, and print the table.

    **Arguments**: as for `experiments.pdp2017.run`; `smoke` takes two tables at n = 2000 and two data sets.
    """
    require(settings, SETTINGS, "efficiency")
    names = ("simulated", "food") if smoke else settings["tables"]
    sizes = [2000] if smoke else settings["sizes"]
    count = 2 if smoke else settings["data_sets"]
    rows = []
    with tqdm(total=len(names) * len(sizes), unit="size", disable=None) as bar:
        for name in names:
            population = tables.table(name, settings["seed"])
            for n in sizes:
                bar.set_description(f"{name}, n = {n}")
                rows += compared(population, n, count, settings)
                bar.update()
    write_rounded(output / "efficiency.csv", rows)
    plot(output / "efficiency.png", rows, settings)
    regression.show(rows)


def compared(population: tables.Table, n: int, count: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one table at one n."""
    x, y = population.x, population.y
    gram = x.T @ x / len(y)
    truth = np.linalg.lstsq(x, y, rcond=None)[0]
    generator, key = np.random.default_rng([settings["seed"], n]), kng.research_key(settings["seed"])
    planned = methods(x.shape[1], n, settings)
    losses: dict[str, list[float]] = {name: [] for name, _, _ in planned}
    least_squares = []
    for place in range(count):
        chosen = generator.integers(len(y), size=n)
        columns, response = x[chosen, 1:], y[chosen]
        least_squares.append(_risk(_least_squares(x[chosen], response) - truth, gram).mean())
        for number, (name, _, fit) in enumerate(planned):
            own = jax.random.fold_in(jax.random.fold_in(key, place), number)
            losses[name].append(_risk(fit(columns, response, own) - truth, gram).mean())
    best = float(np.mean(least_squares))
    return [
        {
            "table": population.label,
            "n": n,
            "method": name,
            "guarantee": guarantee,
            "data_sets": count,
            "excess_risk": float(np.mean(losses[name])),
            "standard_error": float(np.std(losses[name], ddof=1) / np.sqrt(count)),
            "least_squares": best,
            "efficiency": best / float(np.mean(losses[name])),
        }
        for name, guarantee, _ in planned
    ]


def methods(dimension: int, n: int, settings: dict[str, Any]) -> list[tuple[str, str, Fit]]:
    """Name, guarantee and fit of every method for data sets of n records."""
    epsilon, delta = settings["epsilon"], settings["delta"]
    sides = np.ones(dimension - 1)
    bounds, free = kng.Bounds(x=(-sides, sides), y=(-1.0, 1.0)), kng.Bounds(x=(-sides, sides))
    box = kng.Box(*(np.full(dimension, end) for end in settings["box"]))
    approximate, pure = f"({epsilon:g}, {delta:g})-DP", f"pure {epsilon:g}-DP"
    ridge = dimension * np.sqrt(n)
    ops = kng.PosteriorSample.calibrated(bounds, ridge, epsilon, delta, "add_remove", n + 1)
    squared = kng.ObjectivePerturbation(kng.SquaredLoss(), bounds, box, epsilon, "add_remove")
    found = [
        ("AdaOPS", approximate, direct(kng.AdaOPS(bounds, epsilon, delta, "add_remove"), settings["draws"])),
        ("AdaSSP", approximate, direct(kng.AdaSSP(bounds, epsilon, delta, "add_remove"), settings["draws"])),
        ("OPS", approximate, direct(ops, settings["draws"])),
        ("objective perturbation", pure, direct(squared, settings["draws"])),
    ]
    if n <= settings["robust_sizes"]:
        robust = kng.KNG(kng.PseudoHuberLoss(settings["k"]), free, box, epsilon, "add_remove")
        # GradientSpace is for n of at least 100d/ε.
        sampler = kng.chains.GradientSpace() if n >= 100 * dimension / epsilon else kng.chains.EnsembleWalk()
        found.append(("robust KNG", pure, chains(robust, sampler)))
    return found


def direct(mechanism: Any, draws: int) -> Fit:
    """Independent draws from a mechanism's own law."""

    def fit(columns: np.ndarray, response: np.ndarray, key: Any) -> np.ndarray:
        data = mechanism.prepare(columns, response)
        return kng.sample(mechanism, data, key=key, num_draws=draws, num_chains=1, progress=False).theta[0]

    return fit


def chains(mechanism: kng.KNG, sampler: Any) -> Fit:
    """The draws of four chains; refuses those that did not mix."""
    walk = isinstance(sampler, kng.chains.EnsembleWalk)

    def fit(columns: np.ndarray, response: np.ndarray, key: Any) -> np.ndarray:
        data = mechanism.prepare(columns, response)
        draws = kng.sample(
            mechanism, data, key=key, sampler=sampler, num_draws=500, thinning=20 if walk else 1, progress=False
        )
        if draws.rhat().max() > 1.1:
            raise RuntimeError(f"chains of {type(sampler).__name__} have not mixed: R-hat {draws.rhat().max():.2f}")
        return draws.theta.reshape(-1, draws.theta.shape[-1])

    return fit


def _least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(x, y, rcond=None)[0]


def _risk(differences: np.ndarray, gram: np.ndarray) -> np.ndarray:
    return np.einsum("...i,ij,...j->...", differences, gram, differences)


def plot(path: pathlib.Path, rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Efficiency against n on logarithmic axes, a pane a table."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(row["table"] for row in rows))
    figure = Figure(figsize=(9.0, 3.3 * ((len(labels) + 1) // 2)), layout="constrained")
    panes = figure.subplots((len(labels) + 1) // 2, 2, squeeze=False, sharex=True, sharey=True).ravel()
    colours = ("#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00")
    names = list(dict.fromkeys(row["method"] for row in rows))
    for axes, label in zip(panes, labels, strict=False):
        for colour, name in zip(colours, names, strict=True):
            points = [row for row in rows if row["table"] == label and row["method"] == name]
            axes.plot(
                [row["n"] for row in points],
                [row["efficiency"] for row in points],
                color=colour,
                marker="o",
                markersize=3.5,
                label=f"{name}, {points[0]['guarantee']}" if points else None,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(label, fontsize=10)
        axes.grid(alpha=0.25)
    panes[0].legend(frameon=False, fontsize=7)
    figure.supxlabel("n", fontsize=10)
    figure.supylabel("efficiency relative to least squares", fontsize=10)
    figure.savefig(path, dpi=150)
