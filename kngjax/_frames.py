"""Columns of data frames as NumPy arrays."""

from typing import Any

import numpy as np


def to_array(series: Any, missing: str) -> np.ndarray:
    """A narwhals series as a NumPy array; raises ValueError with the text `missing` if it has nulls.

    Decimals and nullable numbers arrive as objects. NumPy converts them: unlike the casts of some data frames it says
    nothing about a value that it rounds.
    """
    if series.null_count():
        raise ValueError(missing)
    array = series.to_numpy()
    return array.astype(np.float64) if series.dtype.is_numeric() and array.dtype.kind == "O" else array
