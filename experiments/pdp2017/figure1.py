"""Figure 1: ε of differential privacy, of everybody given the data, and of the people in the data.

Ridge regression with isotropic Gaussian noise of some deviations, all three at one δ. The paper reports more than an
order of magnitude between differential privacy and the people in the data, and a factor of six to everybody.
"""

import pathlib
from typing import Any

import numpy as np

import kngjax as kng
from experiments import require, write_rounded
from experiments.pdp2017 import regression

SETTINGS = ("records", "dimension", "noise", "regularization", "delta", "epsilons", "seed")


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `figure1.csv` and `figure1.png`, and print the table.

    **Arguments**: as for `experiments.pdp2017.run`; `smoke` takes three values of ε.
    """
    require(settings, SETTINGS, "figure1")
    made = regression.simulated(settings["records"], settings["dimension"], settings["noise"], settings["seed"])
    epsilons = settings["epsilons"][:: 1 if not smoke else max(1, len(settings["epsilons"]) // 3)]
    rows = [row(made, settings, epsilon) for epsilon in epsilons]
    write_rounded(output / "figure1.csv", rows)
    plot(output / "figure1.png", rows, settings)
    regression.show(rows)


def row(made: regression.Regression, settings: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """One noise deviation, named by the ε of differential privacy that it gives."""
    mechanism = kng.OutputPerturbation(
        kng.SquaredLoss(),
        made.bounds,
        settings["regularization"],
        epsilon,
        settings["delta"],
        "add_remove",
        max_records=settings["records"] + 1,
    )
    summary = kng.per_instance_privacy(mechanism, made.x, made.y, delta=settings["delta"]).summary(levels=(0.05, 0.95))
    assert summary.for_all is not None
    return {
        "noise_deviation": float(mechanism.gamma_for(settings["dimension"])) ** -0.5,
        "dp": float(epsilon),
        "everybody": summary.for_all.attained,
        "everybody_bound": summary.for_all.bound,
        "mean": summary.mean,
        "quantile_05": summary.quantiles[0.05],
        "quantile_95": summary.quantiles[0.95],
        "maximum": summary.maximum,
        "dp_over_everybody": float(epsilon) / summary.for_all.attained,
        "dp_over_mean": float(epsilon) / summary.mean,
    }


def plot(path: pathlib.Path, rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """ε against the noise's deviation, both on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    noise, colours = columns["noise_deviation"], regression.COLOURS
    axes.plot(noise, columns["dp"], color=colours["DP"], marker="s", markersize=4, label="differential privacy")
    axes.plot(
        noise, columns["everybody"], color=colours["everybody"], marker="D", markersize=4, label="everybody, these data"
    )
    axes.plot(
        noise, columns["maximum"], color=colours["people"], linestyle="--", label="people in the data: the most exposed"
    )
    axes.fill_between(
        noise, columns["quantile_05"], columns["quantile_95"], color=colours["people"], alpha=0.25, label="5 to 95 %"
    )
    axes.plot(noise, columns["mean"], color=colours["mean"], label="their mean")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("standard deviation of the noise in each coefficient")
    axes.set_ylabel(f"ε at δ = {settings['delta']:g}")
    axes.set_title(
        f"Ridge regression, n = {settings['records']}, d = {settings['dimension']}, "
        f"λ = {settings['regularization']:g}, isotropic noise",
        fontsize=10,
    )
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
