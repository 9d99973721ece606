"""Numbers of private columns, cell by cell, whatever table they come in; what fails in it tells nothing of a cell."""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float

from kngjax.core.errors import hiding
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data import cells, schema
from kngjax.data.bounds import Bounds


def numbers_of_table(bounds: Bounds, X: Any, dimension: int | None = None) -> np.ndarray:
    """Returns the number that each cell of X stands for, NaN where it stands for none."""
    if isinstance(X, memoryview):
        # A memoryview is a sequence too, but no list of rows.
        X = np.asarray(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = schema.columns_of(bounds, frame)
        columns = np.empty((len(names), len(frame)))
        for row, name in enumerate(names):
            columns[row] = hiding_errors("X", lambda name=name: cells.numbers(frame.get_column(name)))
        return columns.T
    if isinstance(X, Sequence):
        # By public settings alone, for lists without a row to count columns in.
        columns = bounds.columns or (0 if dimension is None else dimension - bounds.intercept)
        return hiding_errors("X", lambda: numbers_of_rows(X, columns))
    return hiding_errors("X", lambda: cells.numbers(readable(X)))


def cells_of_row(row: Any, columns: int) -> list[Any]:
    """Returns the cells of one row; all missing where it has another number of them. Private.

    Where there is one column, what is no row is a cell of it. **Arguments:** `columns`: their number, public.
    """
    length = schema.length_of(row)
    if length == columns:
        return list(row)
    return [row] if columns == 1 and length is None else [None] * columns


def numbers_of_rows(rows: Sequence[Any], expected: int) -> np.ndarray:
    """Returns the numbers of a list of rows, cell by cell: what NumPy makes of a list would depend on all of its rows.

    **Arguments:** `expected`: the number of columns, public; where that is 0, unknown, all rows may share one.
    """
    lengths = set(map(schema.length_of, rows))
    columns = (lengths.pop() or 1) if not expected and len(lengths) == 1 else expected
    return cells.numbers([cell for row in rows for cell in cells_of_row(row, columns)]).reshape(len(rows), columns)


def readable(column: Any) -> Any:
    """Returns a column in a form that `kngjax.data.cells` reads: a sequence as a list, a buffer as an array."""
    if isinstance(column, Sequence) and not hasattr(column, "__array__"):
        return list(column)
    return np.asarray(column) if isinstance(column, memoryview) else column


def hiding_errors(name: str, step: Callable[[], Any]) -> Any:
    """Runs step(); an error of NumPy or of a data frame, which may quote a value, becomes a constant text."""
    refusal = ValueError(
        f"{name} cannot be read as numbers: pass a NumPy array with a row a record, or a data frame of numbers"
    )
    return hiding(step, refusal)


@owner_only
class MadeColumns(OwnerOnly):
    """Numbers made of validated records, each by itself: `kngjax.data.records.prepare_rows` takes them as X. Private.

    They are float64 and none is missing, so that they only have to be clipped.

    **Arguments:** `numbers`: a row a column of X, which `clipped_to` writes to.
    """

    numbers: Float[np.ndarray, "columns records"]

    def clipped_to(self, bounds: Bounds) -> Float[np.ndarray, "records columns"]:
        """Clips every number to the bounds of its column, in place.

        Raises ValueError for another number of columns, and for bounds that ask for more than to be clipped.
        """
        if bounds.x_lower is None or bounds.intercept or bounds.hull is not None or bounds.weight is not None:
            raise ValueError("made columns are clipped to a box, and have neither an intercept, a hull nor weights")
        if bounds.dimension not in (None, number := len(self.numbers)):
            raise ValueError(f"there are {number} made columns, and bounds of {bounds.dimension}")
        sides = (np.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
        lower, upper = (np.broadcast_to(side, number).tolist() for side in sides)
        for column, least, most in zip(self.numbers, lower, upper, strict=True):
            np.clip(column, least, most, out=column)
        return self.numbers.T
