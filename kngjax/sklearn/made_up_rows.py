"""Makes tables for the steps of a pipeline, with types that follow from public types alone.

NumPy and other libraries choose the type of a column by all of its cells: one missing cell makes floats of integers,
of which functions may be others (1/2 is 0 of integers). So columns of numbers become float64 cell by cell, and all
others text, before a step sees them; and two rows that nobody has, of these types, show what columns the steps make.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.data import cells
from kngjax.data.column_types import Holds, holds
from kngjax.sklearn.named_tables import table_of

_ROWS = 2


def made_up_rows(X: Any) -> Any:
    """Makes two rows of zeros, or of empty text, with the names and types of X; no value of X is looked at.

    Raises UnfitShape for lists, and UnfitType for a column of a frame whose type holds neither numbers nor text.
    """
    _refuse_lists(X)
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        kinds = _kinds(native)
        values = {name: [0.0 if kind is Holds.NUMBERS else ""] * _ROWS for name, kind in kinds.items()}
        return nw.to_native(nw.from_dict(values, backend=native.implementation))
    dtype = getattr(X, "dtype", np.dtype(np.float64))
    return np.zeros((_ROWS, len(table_of(X).columns)), dtype if dtype.kind == "O" else np.float64)


def with_public_types(X: Any) -> Any:
    """Returns X with numbers as float64 and all else as text, by the types of its columns alone.

    Each cell becomes what it becomes by itself in `kngjax.data.cells`: its `numbers`, its `texts`, and of an array of
    objects whichever of both it is. Private if X is. Raises as `made_up_rows`.
    """
    _refuse_lists(X)
    native = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        made, backend = [], native.implementation
        for name, kind in _kinds(native).items():
            column = native.get_column(name)
            if kind is Holds.NUMBERS:
                made.append(nw.new_series(name, cells.numbers(column), nw.Float64, backend=backend))
            else:
                made.append(nw.new_series(name, cells.texts(column), nw.String, backend=backend))
        table = nw.from_dict({one.name: one for one in made}, backend=backend).to_native()
        return table.set_axis(X.index, axis=0) if hasattr(X, "set_axis") else table
    if getattr(getattr(X, "dtype", None), "kind", "O") != "O":
        return cells.numbers(X)
    objects = np.asarray(X, dtype=object)
    each = (cells.text(cell) if isinstance(cell, str | bytes) else cells.number(cell) for cell in objects.ravel())
    return np.fromiter(each, object, count=objects.size).reshape(objects.shape)


def _refuse_lists(X: Any) -> None:
    if isinstance(X, Sequence):
        raise UnfitShape("X is a list, which shows the types of none of its columns: pass a NumPy array or a frame")


def _kinds(table: nw.DataFrame) -> dict[Any, Holds]:
    """Tells for each column whether its type holds numbers or text; raises UnfitType where it holds neither."""
    kinds = {name: holds(table.get_column(name)) for name in table.columns}
    if unfit := [name for name, kind in kinds.items() if kind is Holds.NOTHING]:
        raise UnfitType(
            f"the types of the columns {unfit} of X hold neither numbers nor text: leave them out, or make numbers of "
            "them by a public rule before the call, like the days since a public date"
        )
    return kinds


def dense(made: Any) -> Any:
    """Turns the output of a step into an array or a frame: encoders make sparse matrices."""
    return made.toarray() if hasattr(made, "toarray") else made
