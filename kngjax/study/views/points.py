"""Draws the numbers of groups as points with their intervals."""

from typing import Any

import numpy as np

from kngjax.core.later import pd, plt


def points_of(table: "pd.DataFrame", groups: "pd.Index", title: str, ax: Any = None) -> Any:
    """Draws a point for each number of each group, side by side, with a bar from `lower` to `upper`, if it is finite.

    **Arguments:** `table`: as of `Results.to_frame`, with as many rows for each group. `groups`: their levels. `title`:
    of the vertical axis. `ax`: axes of Matplotlib to draw on; returned.
    """
    axes = plt.subplots()[1] if ax is None else ax
    columns, number = list(table), len(table) // len(groups)
    names = columns[groups.nlevels : columns.index("estimate")]
    for place in range(number):
        own = table.iloc[place::number]
        estimate, bars = own["estimate"].to_numpy(np.float64), None
        if "lower" in columns:
            ends = own[["lower", "upper"]].to_numpy(np.float64).T
            bars = np.abs(np.where(np.isfinite(ends), ends, np.nan) - estimate)
        at = np.arange(len(groups)) + 0.8 * ((place + 0.5) / number - 0.5)
        axes.errorbar(at, estimate, bars, fmt="o", label=", ".join(map(str, own[names].iloc[0])))
    axes.set_xticks(np.arange(len(groups)), [str(one) for one in groups])
    axes.set_xlabel(", ".join(map(str, groups.names)))
    axes.set_ylabel(title)
    if number > 1:
        axes.legend()
    return axes
