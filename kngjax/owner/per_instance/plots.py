"""Figures of per-instance privacy for the owner's eyes, made without pyplot; matplotlib is optional."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kngjax.core.later import Later
from kngjax.core.owner_only import OWNER_BANNER

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def boxes(reports: dict[str, Any]) -> "Figure":
    """Draws a box plot of ε over people for each report, on a logarithmic axis, beside the bound for anybody and DP.

    A dashed line is ε of the mechanism's guarantee, a dotted one the largest ε found of anybody within the bounds.

    **Arguments:** `reports`: `PerInstanceReport`s by the names that the axis shows.
    """
    figure = _figure()
    axes = figure.subplots()
    labels = []
    for position, (name, report) in enumerate(reports.items(), start=1):
        # Where laws differ by less than δ in total variation ε is 0, which a logarithm does not show.
        least = np.min(report.epsilon, initial=1.0, where=report.epsilon > 0)
        nobody = np.count_nonzero(report.epsilon == 0)
        labels.append(f"{name}\n({nobody} of {report.epsilon.size} at ε = 0, drawn below)" if nobody else name)
        shown = np.maximum(report.epsilon, 0.1 * least)
        axes.boxplot(shown, positions=[position], widths=0.5, whis=(5.0, 95.0))
        ends = position - 0.4, position + 0.4
        if report.worst_case is not None:
            axes.plot(ends, [report.worst_case] * 2, "k--", label=_worst_case_label(report) if position == 1 else None)
        if report.for_all is not None:
            axes.plot(
                ends, [report.for_all.attained] * 2, "k:", label="anybody within the bounds" if position == 1 else None
            )
    axes.set_yscale("log")
    axes.set_xticks(range(1, len(reports) + 1), labels)
    axes.set_ylabel(f"ε of each person at δ = {_deltas(reports)}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    axes.set_title(OWNER_BANNER)
    return figure


def influence(report: Any, worst: int = 10) -> "Figure":
    """Plots ε of each person against leverage and against |residual|, the `worst` most exposed in red.

    **Arguments:** `report`: a `PerInstanceReport`.
    """
    figure = _figure()
    exposed = report.worst(worst)
    for axes, values, name in zip(
        figure.subplots(1, 2, sharey=True),
        (report.leverage, np.abs(report.residual)),
        ("leverage μ", "|residual|"),
        strict=True,
    ):
        axes.plot(values, report.epsilon, ".", markersize=2, color="0.4", rasterized=True)
        axes.plot(values[exposed], report.epsilon[exposed], ".", color="tab:red", label="most exposed")
        axes.set_xlabel(name)
        axes.set_yscale("symlog", linthresh=max(float(np.max(report.epsilon)) * 1e-4, 1e-12))
    figure.axes[0].set_xscale("log")
    figure.axes[0].set_ylabel(f"ε at δ = {report.delta:g}")
    figure.axes[1].legend()
    figure.suptitle(OWNER_BANNER)
    return figure


def _worst_case_label(report: Any) -> str:
    exchanged = "exchanged" in report.change
    return "differential privacy (of an exchange; boxes: of a removal)" if exchanged else "differential privacy"


def _deltas(reports: dict[str, Any]) -> str:
    return ", ".join(f"{delta:g}" for delta in sorted({report.delta for report in reports.values()}))


def _figure() -> "Figure":
    return Later("matplotlib.figure").Figure(figsize=(8.0, 4.5), layout="constrained")
