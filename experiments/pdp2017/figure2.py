"""Figure 2: the people's ε as box plots against differential privacy, and privacy against excess risk.

On the left isotropic Gaussian noise on ridge regression; on the right one posterior sample at several scales γ, with
the excess risk E[R(θ) - min R], R(θ) = |y - Xθ|²/(2n): known exactly, since θ is Gaussian given the data.
"""

import pathlib
from typing import Any

import numpy as np

import kngjax as kng
from experiments import require, write_rounded
from experiments.pdp2017 import regression

SETTINGS = ("records", "dimension", "noise", "regularization", "delta", "epsilons", "gammas", "seed")


def run(settings: dict[str, Any], output: pathlib.Path, smoke: bool) -> None:
    """Write `figure2.csv` and `figure2.png`, and print the table.

    **Arguments**: as for `experiments.pdp2017.run`; `smoke` takes the first two values of ε and of γ.
    """
    require(settings, SETTINGS, "figure2")
    made = regression.simulated(settings["records"], settings["dimension"], settings["noise"], settings["seed"])
    some = 2 if smoke else None
    ridge, delta, most = settings["regularization"], settings["delta"], settings["records"] + 1
    boxes, rows = {}, []
    for epsilon in settings["epsilons"][:some]:
        mechanism = kng.OutputPerturbation(
            kng.SquaredLoss(), made.bounds, ridge, epsilon, delta, "add_remove", max_records=most
        )
        report = kng.per_instance_privacy(mechanism, made.x, made.y, delta=delta)
        boxes[float(epsilon)] = report.epsilon
        gamma = float(mechanism.gamma_for(settings["dimension"]))
        covariance = np.eye(settings["dimension"]) / gamma
        rows.append(row("isotropic noise", gamma, report, excess_risk(made, ridge, covariance)))
    for gamma in settings["gammas"][:some]:
        mechanism = kng.PosteriorSample(made.bounds, ridge, gamma, "add_remove", most, delta)
        report = kng.per_instance_privacy(mechanism, made.x, made.y, delta=delta)
        covariance = np.linalg.inv(made.x.T @ made.x + ridge * np.eye(settings["dimension"])) / gamma
        rows.append(row("posterior sample", float(gamma), report, excess_risk(made, ridge, covariance)))
    write_rounded(output / "figure2.csv", rows)
    plot(output / "figure2.png", boxes, rows, settings)
    regression.show(rows)


def row(name: str, gamma: float, report: Any, risk: float) -> dict[str, Any]:
    """One algorithm at one scale: its excess risk, and ε of everything at one δ."""
    summary = report.summary()
    return {
        "algorithm": name,
        "gamma": gamma,
        "excess_risk": risk,
        "dp": summary.worst_case,
        "everybody": summary.for_all.attained,
        "everybody_bound": summary.for_all.bound,
        "maximum": summary.maximum,
        "mean": summary.mean,
        "dp_over_mean": summary.worst_case / summary.mean,
    }


def excess_risk(made: regression.Regression, ridge: float, covariance: np.ndarray) -> float:
    """E[R(θ)] - min R for θ ~ N(θ̂_λ, covariance): ½(θ̂_λ - θ̂)'G(θ̂_λ - θ̂) + ½tr(G·covariance), G = X'X/n."""
    gram = made.x.T @ made.x
    regularised = np.linalg.solve(gram + ridge * np.eye(len(gram)), made.x.T @ made.y)
    bias = regularised - np.linalg.solve(gram, made.x.T @ made.y)
    return float(0.5 * (bias @ gram @ bias + np.trace(gram @ covariance)) / len(made.y))


def plot(
    path: pathlib.Path, boxes: dict[float, np.ndarray], rows: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    """Both panes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours, places = regression.COLOURS, np.arange(len(boxes))
    left.boxplot(list(boxes.values()), positions=places, widths=0.5, whis=(5, 95), flierprops={"markersize": 1.5})
    left.plot(places, list(boxes), color=colours["DP"], marker="s", markersize=4, label="differential privacy")
    left.plot(places, [values.mean() for values in boxes.values()], "k.", label="mean over the people")
    left.set_xticks(places, [f"{epsilon:g}" for epsilon in boxes])
    left.set_xlabel("ε of differential privacy that the isotropic noise is calibrated to")
    left.set_yscale("log")
    left.set_ylabel(f"ε at δ = {settings['delta']:g}")
    left.legend(frameon=False, fontsize=8)
    samples = [row for row in rows if row["algorithm"] == "posterior sample"]
    risks = [row["excess_risk"] for row in samples]
    kinds = {
        "dp": ("differential privacy", "DP", "s", "-"),
        "everybody": ("everybody, these data", "everybody", "D", "-"),
        "maximum": ("people in the data: the most exposed", "people", "", "--"),
        "mean": ("their mean", "mean", "o", "-"),
    }
    for name, (label, colour, marker, line) in kinds.items():
        values = [row[name] for row in samples]
        right.plot(risks, values, color=colours[colour], marker=marker, linestyle=line, markersize=4, label=label)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("excess risk of one posterior sample")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.25)
    figure.savefig(path, dpi=150)
