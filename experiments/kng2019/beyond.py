"""Beyond Figure 1: robust KNG and median regression on the same axes as the paper's mechanisms and their peers.

The design is Algorithm 1's. The paper's KNG needs |y| ≤ 1 and is given y/R, R = max|Y|, which is not private; the
others have the responses as they are:

- robust KNG: the pseudo-Huber score lies in [-k, k] whatever y and θ, so no bound on y and no bound on θ enters Δ = 2k.
- median regression: KNG on the check loss at τ = ½, Δ = 1.
- objective perturbation on the pseudo-Huber loss, whose density is robust KNG's times a determinant.

Every row names its guarantee and its adjacency: they are not the same, and a smaller error under a weaker promise is
no better method. Robust KNG is drawn exactly where n·ε is at least 60d², and by chains below. KNG's error on a data set
is the mean over the draws of four chains, judged by R-hat, or of four groups of exact draws.
"""

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

import kngjax as kng
from experiments import require, write_rounded
from experiments.kng2019 import algorithm1, figure1, peers, plots
from kngjax.data import Records

DIMENSION = 12
# Of n·ε over d², from which exact draws serve a design whose columns are neither rare nor nearly collinear.
EXACT_FROM = 60
# The interpreter of an environment with diffprivlib; without it that row is left out.
DIFFPRIVLIB = "DIFFPRIVLIB_PYTHON"
SETTINGS = ("epsilon", "delta", "k", "radius", "largest_response", "sizes", "replicates", "seed", "descent", "chains")
# log10 of the error; what a peer has above it is in the table.
HIGHEST_SHOWN = 1.0
CHAINS = ("robust_draws", "median_draws", "median_replicates")


class Result(NamedTuple):
    """**Arguments:** `errors`: ‖θ̃ - θ*‖_2 of each replicate; `largest_rhat`, None without chains."""

    errors: np.ndarray
    largest_rhat: float | None = None


class Method(NamedTuple):
    """A curve. **Arguments:** `sampler`: how draws are made; `fit`: from the replicates and a key to a `Result`."""

    name: str
    guarantee: str
    adjacency: str
    sampler: str
    fit: Callable[[list[Records], Any], Result]


def errors(estimates: np.ndarray) -> np.ndarray:
    """‖θ̃ - θ*‖_2 along the last axis."""
    return np.linalg.norm(estimates - algorithm1.truth(DIMENSION), axis=-1)


def chains(
    mechanism: kng.KNG, sampler: Any, draws: int, most: int | None = None
) -> Callable[[list[Records], Any], Result]:
    """The mean error of the draws of four chains for each of the first `most` data sets, and the largest R-hat."""

    def fit(data_sets: list[Records], key: Any) -> Result:
        means, rhats = [], []
        for place, data in enumerate(data_sets[:most]):
            found = kng.sample(
                mechanism,
                data,
                key=jax.random.fold_in(key, place),
                sampler=sampler,
                num_draws=draws,
                num_chains=4,
                num_warmup=draws // 4,
                progress=False,
            )
            means.append(errors(found.theta).mean())
            rhats.append(found.rhat().max())
        # Of a few exact draws R-hat says nothing.
        return Result(np.array(means), None if isinstance(sampler, kng.chains.Exact) else float(np.max(rhats)))

    return fit


def scaled(mechanism: Any) -> Callable[[list[Records], Any], Result]:
    """The paper's way: y/R with R = max|y|, one exact draw, times R."""

    def fit(data_sets: list[Records], key: Any) -> Result:
        scales = [float(np.abs(data.y).max()) for data in data_sets]
        summaries = [
            algorithm1.DataSet(mechanism.intake.summarise(Records(data.x, data.y / scale)), np.asarray(scale))
            for data, scale in zip(data_sets, scales, strict=True)
        ]
        keys = jax.random.split(key, len(data_sets))
        return Result(errors(figure1.estimates(mechanism, summaries, keys) * np.array(scales)[:, None]))

    return fit


def direct(mechanism: Any) -> Callable[[list[Records], Any], Result]:
    """One draw for each data set from a mechanism that needs no sampler."""

    def fit(data_sets: list[Records], key: Any) -> Result:
        draw = jax.jit(kng.draw)
        # The intercept's column comes with the records.
        prepared = [mechanism.prepare(np.asarray(data.x)[:, 1:], np.asarray(data.y)) for data in data_sets]
        estimates = [draw(mechanism, data, jax.random.fold_in(key, place))[0] for place, data in enumerate(prepared)]
        return Result(errors(np.stack(estimates)))

    return fit


def least_squares(data_sets: list[Records], key: Any) -> Result:
    """Without privacy."""
    return Result(errors(np.stack([np.linalg.lstsq(data.x, data.y, rcond=None)[0] for data in data_sets])))


def descent(settings: dict[str, Any], tuning: list[Records]) -> Callable[[list[Records], Any], Result]:
    """Noisy gradient descent with the settings of the grid that are best on other data sets of the same size."""
    mu = peers.gaussian_mu(settings["epsilon"], settings["delta"])
    pairs = [(np.asarray(data.x), np.asarray(data.y)) for data in tuning]
    chosen = peers.best_descent(pairs, algorithm1.truth(DIMENSION), settings["descent"], mu, settings["seed"])

    def fit(data_sets: list[Records], key: Any) -> Result:
        generators = [np.random.default_rng([settings["seed"], 1, place]) for place in range(len(data_sets))]
        estimates = [
            peers.noisy_gradient_descent(np.asarray(data.x), np.asarray(data.y), chosen, mu, generator)
            for data, generator in zip(data_sets, generators, strict=True)
        ]
        return Result(errors(np.stack(estimates)))

    return fit


def diffprivlib(python: str, settings: dict[str, Any]) -> Callable[[list[Records], Any], Result]:
    """diffprivlib's linear regression, in its own environment."""

    def fit(data_sets: list[Records], key: Any) -> Result:
        def pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            return ((np.asarray(data.x), np.asarray(data.y)) for data in data_sets)

        estimates = peers.diffprivlib_estimates(python, pairs(), settings["epsilon"], settings["largest_response"])
        return Result(errors(estimates))

    return fit


def methods(settings: dict[str, Any], size: int, tuning: list[Records]) -> list[Method]:
    """The curves, in the order of the legend. **Arguments**: `size`, the place of n among the sizes."""
    epsilon, delta = settings["epsilon"], settings["delta"]
    pure, parts = f"pure {epsilon:g}-DP", (kng.Bounds(x=(-1.0, 1.0)), kng.L1Ball(settings["radius"]))
    robust = kng.PseudoHuberLoss(settings["k"])
    paper = kng.KNG(kng.SquaredLoss(), kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0), epsilon, "replace")
    median = kng.KNG(kng.QuantileLoss(0.5), *parts, epsilon, "replace")
    lengths = settings["chains"]
    robust_draws, median_draws = lengths["robust_draws"][size], lengths["median_draws"][size]
    robust_kng = kng.KNG(robust, *parts, epsilon, "replace")
    is_exact = settings["sizes"][size] * epsilon >= EXACT_FROM * DIMENSION**2
    sampler = kng.chains.Exact() if is_exact else kng.chains.GradientSpace()
    perturbation = kng.ObjectivePerturbation(robust, *parts, epsilon, "replace")
    approximate = f"({epsilon:g}, {delta:g})-DP"
    found = [
        Method("least squares", "none", "", "", least_squares),
        Method("KNG of the paper, y/max|y|", f"{pure} but for max|y|", "replace", "Exact", scaled(paper)),
        Method(
            "robust KNG",
            pure if is_exact else f"{pure} of its density",
            "replace",
            type(sampler).__name__,
            chains(robust_kng, sampler, robust_draws),
        ),
        Method("robust objective perturbation", pure, "replace", "", direct(perturbation)),
        Method("noisy gradient descent, tuned on the truth", approximate, "replace", "", descent(settings, tuning)),
    ]
    if median_draws > 0:
        fit = chains(median, kng.chains.LineGibbs(), median_draws, lengths["median_replicates"])
        found.append(Method("median regression KNG", f"{pure} of its density", "replace", "LineGibbs", fit))
    limit = settings["largest_response"]
    adaptive = kng.AdaSSP(kng.Bounds(x=(-1.0, 1.0), y=(-limit, limit)), epsilon, delta, "replace")
    found.append(Method(f"AdaSSP, |y| ≤ {limit:g}", approximate, "replace", "", direct(adaptive)))
    python = os.environ.get(DIFFPRIVLIB)
    if python:
        found.append(Method("diffprivlib", f"{pure} (claimed)", "replace", "", diffprivlib(python, settings)))
    else:
        print(f"diffprivlib is left out: set {DIFFPRIVLIB} to the interpreter of an environment that has it")
    return found


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `beyond.csv` and `beyond.png`, and print the table.

    **Arguments**: as for `experiments.kng2019.run`; `smoke` keeps n ≤ 1000 and four replicates.
    """
    require(settings, SETTINGS, "beyond")
    if set(settings["chains"]) != set(CHAINS):
        raise ValueError(f"beyond needs the settings {', '.join(CHAINS)} of its chains")
    sizes = [n for n in settings["sizes"] if n <= 1000 or not smoke]
    count = 4 if smoke else settings["replicates"]
    key, seed = kng.research_key(settings["seed"]), settings["seed"]
    rows = []
    with tqdm(total=0, unit="fit", disable=None) as bar:
        for size, n in enumerate(sizes):
            start = time.perf_counter()
            data_sets = [_unscaled(made) for made in _data(n, count, seed, bar)]
            seconds_of_data = time.perf_counter() - start
            tuning = [_unscaled(made) for made in _data(n, 4 if smoke else 10, seed + 1, bar)]
            planned = methods(settings, size, tuning)
            bar.reset(total=len(planned) * count)
            for place, method in enumerate(planned):
                bar.set_description(f"n = {n}, {method.name}")
                start = time.perf_counter()
                result = method.fit(data_sets, jax.random.fold_in(jax.random.fold_in(key, n), place))
                seconds = plots.Seconds(time.perf_counter() - start, seconds_of_data)
                curve = plots.Method(method.name, "", None)
                row = plots.row(n, curve, result.errors, seconds, method.sampler, result.largest_rhat)
                rows.append(dataclasses.replace(row, guarantee=method.guarantee, adjacency=method.adjacency))
                bar.update(count)
    write_rounded(output / "beyond.csv", rows)
    title = f"Linear regression, d = {DIMENSION}, ε = {settings['epsilon']:g}"
    plots.plot(output / "beyond.png", rows, title, top=HIGHEST_SHOWN)
    plots.show(rows)


def _data(n: int, count: int, seed: int, bar: tqdm) -> list[algorithm1.DataSet]:
    return algorithm1.replicates(algorithm1.records, n, DIMENSION, count, seed, bar)


def _unscaled(made: algorithm1.DataSet) -> Records:
    data = made.data
    assert isinstance(data, Records)
    return Records(data.x, data.y * made.scale)
