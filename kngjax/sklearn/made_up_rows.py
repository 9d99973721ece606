"""Rows that nobody has, of the types of a private table: what steps make of them shows names and numbers of columns."""

from typing import Any

import narwhals as nw
import numpy as np

from kngjax.data import admission
from kngjax.sklearn.tables import table_of

_ROWS = 2


def made_up_rows(X: Any) -> Any:
    """Two rows of zeros, or of empty text, with the names and types of X; no value of X is looked at."""
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        columns = [native.get_column(name) for name in native.columns]
        values = {
            name: [0.0 if admission.is_of_numbers(column) else ""] * _ROWS
            for name, column in zip(native.columns, columns, strict=True)
        }
        return nw.to_native(nw.from_dict(values, backend=native.implementation))
    dtype = getattr(X, "dtype", np.dtype(np.float64))
    return np.zeros((_ROWS, len(table_of(X).columns)), dtype)


def dense(made: Any) -> Any:
    """What a step makes, as an array or a frame: encoders make sparse matrices."""
    return made.toarray() if hasattr(made, "toarray") else made
