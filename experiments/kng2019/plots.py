"""The rows of a figure of mean errors, as a table and as the paper's log-log plot."""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import numpy as np

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "P", "X", "^", "v")
LINES = ("-", "--", ":")


class Method(NamedTuple):
    """A curve of a figure. **Arguments:** `constants`: whose Δ; `mechanism`: None for the estimate without privacy."""

    name: str
    constants: str
    mechanism: Any


class Seconds(NamedTuple):
    """**Arguments:** `draws`: for those of one method and all replicates; `data`: for making all replicates."""

    draws: float
    data: float


@dataclasses.dataclass(frozen=True)
class Row:
    """One point of a figure: the mean error of one method at one n.

    **Arguments:** `constants`: whether Δ is the paper's or ours. `guarantee`, `adjacency`: what is proved of one exact
    draw. `standard_error_log10`: of `log10_mean_error`, by the delta method. `sampler`: how the draws were made, and
    `rhat`, for chains, the largest rank R-hat of a coefficient on the first data set. `seconds`: for the draws of all
    replicates, with compilation where it was needed. `seconds_of_data`: for making the data, shared by all methods.
    """

    n: int
    method: str
    constants: str
    guarantee: str
    adjacency: str
    replicates: int
    mean_error: float
    log10_mean_error: float
    standard_error_log10: float
    sampler: str
    rhat: float | None
    seconds: float
    seconds_of_data: float

    @property
    def label(self) -> str:
        """The name of the curve that the point is on."""
        return f"{self.method}, {self.constants}" if self.constants else self.method


def row(
    n: int, method: Method, errors: np.ndarray, seconds: Seconds, sampler: str = "", rhat: float | None = None
) -> Row:
    """The row of independent errors, shape (replicates,)."""
    mean = float(errors.mean())
    standard_error = float(errors.std(ddof=1)) / np.sqrt(errors.size)
    mechanism = method.mechanism
    return Row(
        n=n,
        method=method.name,
        constants=method.constants,
        guarantee="none" if mechanism is None else f"pure {mechanism.guarantee.epsilon:g}-DP",
        adjacency="" if mechanism is None else str(mechanism.adjacency),
        replicates=errors.size,
        mean_error=mean,
        log10_mean_error=float(np.log10(mean)),
        standard_error_log10=float(standard_error / (mean * np.log(10.0))),
        sampler=sampler,
        rhat=rhat,
        seconds=round(seconds.draws, 3),
        seconds_of_data=round(seconds.data, 3),
    )


def curves(rows: list[Row]) -> dict[str, list[Row]]:
    """The points of each curve by its label, both in the order of the rows."""
    found: dict[str, list[Row]] = {}
    for point in rows:
        found.setdefault(point.label, []).append(point)
    return found


def plot(path: pathlib.Path, rows: list[Row], title: str, top: float | None = None) -> None:
    """log10 of the mean error over log10 n, with bars of one standard error; what is above `top` is not shown.

    One colour a method; its curves, which differ in their constants, stand together in the rows.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    methods: dict[str, int] = {}
    for place, (label, points) in enumerate(curves(rows).items()):
        variant = methods.setdefault(points[0].method, 0)
        methods[points[0].method] += 1
        axes.errorbar(
            np.log10([point.n for point in points]),
            [point.log10_mean_error for point in points],
            yerr=[point.standard_error_log10 for point in points],
            label=label,
            color=COLOURS[(len(methods) - 1) % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle=LINES[variant % len(LINES)],
            markersize=4.5,
            linewidth=1.2,
            capsize=2.5,
        )
    axes.set_xlabel("log10 n")
    axes.set_ylabel("log10 of the mean Euclidean error")
    axes.set_title(title, fontsize=10)
    if top is not None:
        axes.set_ylim(top=top)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="best" if top is None else "lower left")
    figure.savefig(path, dpi=150)


def show(rows: list[Row]) -> None:
    """Print log10 of the mean errors with their standard errors, a line an n and a column a method."""
    found = {label: {point.n: point for point in points} for label, points in curves(rows).items()}
    sizes = sorted({point.n for point in rows})
    print("log10 of the mean error (standard error)")
    print("  ".join([f"{'n':>8}", *(f"{label:>24}" for label in found)]))
    for n in sizes:
        cells = [points.get(n) for points in found.values()]
        texts = [f"{cell.log10_mean_error:.3f} ({cell.standard_error_log10:.3f})" if cell else "-" for cell in cells]
        print("  ".join([f"{n:>8}", *(f"{text:>24}" for text in texts)]))
    drawing = sum(point.seconds for point in rows)
    making = sum({point.n: point.seconds_of_data for point in rows}.values())
    print(f"{making:.1f} s to make the data, {drawing:.1f} s ({drawing / (making + drawing):.1%} of both) to draw")
