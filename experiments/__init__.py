"""Experiments on public or simulated data: one module an experiment, run by `python -m experiments CONFIG.toml`."""

import csv
import dataclasses
import importlib
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax


def require(settings: dict[str, Any], wanted: Sequence[str], experiment: str = "the experiment") -> None:
    """Raises ValueError unless exactly these settings are given."""
    if set(settings) != set(wanted):
        raise ValueError(f"{experiment} needs the settings {', '.join(wanted)}; given: {', '.join(settings)}")


def run_figure(
    module: str, figures: Sequence[str], settings: dict[str, Any], output: pathlib.Path, smoke: bool
) -> None:
    """Runs the figure of a module that `settings["figure"]` names, with the other settings, in float64."""
    figure = settings.get("figure")
    if figure not in figures:
        raise ValueError(f"figure must be one of {', '.join(figures)}; not {figure!r}")
    others = {name: value for name, value in settings.items() if name != "figure"}
    jax.config.update("jax_enable_x64", True)
    importlib.import_module(f"{module}.{figure}").run(others, output, smoke)


def write(path: pathlib.Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_rounded(path: pathlib.Path, rows: Sequence[Any]) -> None:
    """Writes dictionaries, or dataclasses, of one kind as CSV, numbers with six digits."""
    each = [row if isinstance(row, dict) else dataclasses.asdict(row) for row in rows]
    cells = ([f"{one:.6g}" if isinstance(one, float) else one for one in row.values()] for row in each)
    write(path, list(each[0]), cells)
