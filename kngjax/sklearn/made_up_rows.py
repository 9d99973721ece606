"""What the steps of a pipeline are given: a table of types that follow from public types alone.

NumPy and other libraries choose the type of a column by all of its cells: one missing cell makes floats of integers,
of which functions may be others (1/2 is 0 of integers). So columns of numbers become float64 cell by cell, and all
others text, before a step sees them; and two rows that nobody has, of these types, show what columns the steps make.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from kngjax.data import admission, cells
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
    return np.zeros((_ROWS, len(table_of(X).columns)), dtype if dtype.kind == "O" else np.float64)


def with_public_types(X: Any) -> Any:
    """X with float64 in the place of numbers and text in the place of all else, by the types of its columns alone.

    Each cell becomes what it becomes by itself, as in `kngjax.data.cells`; arrays of objects are as they are. Private
    if X is.
    """
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        made = []
        for name in native.columns:
            column = native.get_column(name)
            if admission.is_of_numbers(column):
                made.append(nw.new_series(name, cells.numbers(column), nw.Float64, backend=native.implementation))
            else:
                made.append(column.cast(nw.String))
        table = nw.from_dict({one.name: one for one in made}, backend=native.implementation).to_native()
        return table.set_axis(X.index, axis=0) if hasattr(X, "set_axis") else table
    if isinstance(X, Sequence):
        table = table_of(X)
        return np.column_stack([cells.numbers(table[name]) for name in table.columns])
    return X if getattr(getattr(X, "dtype", None), "kind", "O") == "O" else cells.numbers(X)


def dense(made: Any) -> Any:
    """What a step makes, as an array or a frame: encoders make sparse matrices."""
    return made.toarray() if hasattr(made, "toarray") else made
