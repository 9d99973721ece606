"""Reads new cells for predictions: what is clipped is said, and exposures make counts of rates."""

import warnings
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from kngjax.core.later import pd
from kngjax.data import cells, dates
from kngjax.data.terms import Design
from kngjax.study.responses import Exposure


def basis_of(design: Design, new: Any) -> "tuple[np.ndarray, pd.Index]":
    """Makes basis columns of new cells, with the index of their rows; warns where cells lie beyond public bounds.

    **Arguments:** `new`: a frame, or a mapping of names to arrays or single values.
    """
    x = design.matrix_of(new) if isinstance(new, Mapping) else design.matrix(new)
    beyond = []
    for name, (low, high) in design.ranges.items():
        values = numbers_in(new, name)
        if values is not None and np.any((values < low) | (values > high)):
            beyond.append(f"{name} in [{low:g}, {high:g}]")
    if beyond:
        warnings.warn(
            f"some new cells lie beyond the public bounds, {', '.join(beyond)}: there they count as the nearest end, "
            "as records did, and predictions go on as constants. Leave such rows out, or release with wider bounds",
            stacklevel=4,
        )
    return x, new.index if isinstance(new, pd.DataFrame) else pd.RangeIndex(len(x))


def counts_of(rates: "pd.DataFrame", exposure: Exposure | None, new: Any) -> "pd.DataFrame":
    """Multiplies rates by the exposure of each row, where new cells have its column: expected counts.

    **Arguments:** `rates`: a row a cell; a single one is of every exposure. Raises ValueError for exposures below 0.
    """
    values = None if exposure is None else numbers_in(new, exposure.column)
    if exposure is None or values is None:
        return rates
    if np.any(values < 0.0):
        raise ValueError(f"exposures are at least 0, and some new cells of {exposure.column!r} are below it")
    if len(rates) == 1 < values.size:
        rates = rates.iloc[np.zeros(values.size, int)].reset_index(drop=True)
    return rates.mul(np.broadcast_to(values, len(rates)), axis=0)


def numbers_in(new: Any, name: str, are_dates: bool = False) -> np.ndarray | None:
    """Returns the numbers of a column of public cells, NaN where a cell is none; None where there is no such column.

    **Arguments:** `new`: a frame, or a mapping of names to arrays or single values. `are_dates`: whether they are days.
    """
    is_mapping = isinstance(new, Mapping)
    table: Any = new if is_mapping else nw.from_native(new, eager_only=True, pass_through=True)
    if name not in (table if is_mapping else table.columns):
        return None
    column = table[name]
    if is_mapping and not hasattr(column, "dtype"):
        column = np.asarray(column, dtype=object)
    return (dates.numbers if are_dates else cells.numbers)(column)
