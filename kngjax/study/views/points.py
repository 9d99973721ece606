"""Draws released numbers as points with their intervals: of groups, and of coefficients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.core.later import pd
from kngjax.core.pictures import MARKERS, axes_of, style


def points_of(table: "pd.DataFrame", groups: "pd.Index", title: str, ax: Any = None) -> Any:
    """Draws a point for each number of each group, side by side, with a bar from `lower` to `upper`, if it is finite.

    **Arguments:** `table`: as of `Results.to_frame`, with as many rows for each group. `groups`: their levels. `title`:
    of the vertical axis. `ax`: axes of Matplotlib to draw on; returned.
    """
    axes = axes_of(ax)
    columns, number = list(table), len(table) // len(groups)
    names = columns[groups.nlevels : columns.index("estimate")]
    for place in range(number):
        own = table.iloc[place::number]
        estimate, bars = own["estimate"].to_numpy(np.float64), None
        if "lower" in columns:
            ends = own[["lower", "upper"]].to_numpy(np.float64).T
            bars = np.abs(np.where(np.isfinite(ends), ends, np.nan) - estimate)
        at = np.arange(len(groups)) + 0.8 * ((place + 0.5) / number - 0.5)
        label, looks = ", ".join(map(str, own[names].iloc[0])), style(place, marker=MARKERS)
        axes.errorbar(at, estimate, bars, linestyle="none", capsize=3.0, label=label, **looks)
    axes.set_xticks(np.arange(len(groups)), [str(one) for one in groups])
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_xlabel(", ".join(map(str, groups.names)))
    axes.set_ylabel(title)
    if number > 1:
        axes.legend(frameon=False)
    return axes


def coefficients_of(table: "pd.DataFrame", names: Sequence[str] | None, ax: Any = None) -> Any:
    """Draws a point with its interval for each coefficient of each release or group, and a line at 0.

    **Arguments:** `table`: as of `Results.to_frame` of regressions. `names`: of the coefficients that are drawn, all
    but the intercept if left out. `ax`: as of `points_of`. Raises ValueError for unknown names.
    """
    known = list(dict.fromkeys(table["coefficient"]))
    shown = [name for name in known if name != "intercept"] or known if names is None else list(names)
    if unknown := [name for name in shown if name not in known]:
        raise ValueError(f"names has {unknown}, which are no coefficients; there are {', '.join(known)}")
    rows = pd.concat([table[table["coefficient"] == name] for name in shown])
    axes = points_of(
        pd.DataFrame(rows, columns=["coefficient", *rows.columns.drop("coefficient")]),
        pd.Index(shown, name="coefficient"),
        "estimate",
        ax,
    )
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    return axes
