"""Lists of rows as tables of cells, each row by itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.data import cells, schema


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
