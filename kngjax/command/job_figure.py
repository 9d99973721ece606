"""Draws the figure of a job: the released curves of a regression over one column. Nothing in it is private."""

from typing import TYPE_CHECKING, Any

from kngjax.command.job_file import Figure, JobFile
from kngjax.core.later import Later
from kngjax.study.analyses import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

ADJACENCIES = {"replace": "one record replaced", "add_remove": "one record added or removed"}


def check(figure: Figure, analysis: Any) -> None:
    """Raises ValueError unless the curve is drawn over a column of numbers, and every other column has a value.

    **Arguments:** `analysis`: that of the figure, as the plan of a study returns it.
    """
    if not isinstance(analysis, Analysis) or analysis.formula is None or analysis.design is None:
        raise ValueError(f"analysis: number {figure.analysis} is no regression of the whole table, and has no curve")
    design, at = analysis.design, figure.at or {}
    if figure.x not in design.ranges:
        raise ValueError(f"x: must be a column of numbers in the formula, not {figure.x!r}")
    if set(at) != set(design.columns) - {figure.x}:
        others = [column for column in design.columns if column != figure.x]
        raise ValueError(f"at: must have a value for each of {', '.join(others) or 'no column'}")
    for column, value in at.items():
        if column in design.ranges:
            low, high = design.ranges[column]
            inside = not isinstance(value, str) and low <= value <= high
        else:
            inside = value in list(design.range_of(column))
        if not inside:
            raise ValueError(f"at: {column} = {value!r} is outside the column's bounds or levels")


def draw(file: JobFile, result: Any) -> "Drawn":
    """Draws the released curves of a result as a figure of Matplotlib, made without pyplot.

    Raises ValueError without [figure], and ImportError without Matplotlib.
    """
    if file.figure is None:
        raise ValueError(f"{file.path}: the table [figure] is missing")
    asked, is_log = file.figure, result.response.transform == "log"
    made = Later("matplotlib.figure").Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = made.subplots()
    result.plot(asked.x, asked.at, original=is_log, ax=axes, level=file.level)
    lines = axes.get_lines()
    for line, label in zip(lines, result.curves, strict=True):
        line.set_label(label.replace("tau", "τ"))
    axes.set_xlabel(_with_units(asked, asked.x))
    axes.set_ylabel(_vertical_label(asked, result, is_log))
    axes.margins(x=0.0)
    if is_log or getattr(result, "link", "") == "rate":
        axes.set_ylim(bottom=0.0)
    # From the highest curve down, as the eye finds them.
    axes.legend(handles=lines[::-1], frameon=False, handlelength=3.2)
    made.supxlabel(_caption(file, result), fontsize=8, color="0.25", x=0.02, horizontalalignment="left")
    return made


def _with_units(figure: Figure, column: str) -> str:
    unit = (figure.units or {}).get(column)
    return f"{column} ({unit})" if unit else column


def _vertical_label(figure: Figure, result: Any, is_log: bool) -> str:
    response, link = result.response, getattr(result, "link", "identity")
    name = _with_units(figure, response.column)
    if link == "odds":
        return f"probability of {response.column} = {response.levels[1]}"
    if "quantile" in result.title:
        return f"conditional quantile of {name}"
    return f"exp of the fitted {response.name}, {name}" if is_log else f"fitted {name}"


def _caption(file: JobFile, result: Any) -> str:
    assert file.figure is not None
    units, cost = file.figure.units or {}, result.guarantee
    held = "".join(
        f"; {name} = {value} {units.get(name, '')}".rstrip() for name, value in (file.figure.at or {}).items()
    )
    if cost is None:
        return f"Released by Markov chains: nothing is proved of them, {ADJACENCIES[file.adjacency]}{held}."
    delta = f", δ = {cost.delta:.3g}" if cost.delta > 0 else ""
    epsilon = f"total ε = {cost.epsilon:g}{delta}, {ADJACENCIES[file.adjacency]}"
    return f"Released with differential privacy: {epsilon}{held}."
