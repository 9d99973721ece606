"""Lists of rows as tables of numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.data import admission, cells


def numbers_of_rows(rows: Sequence[Any], expected: int) -> np.ndarray:
    """The numbers of a list of rows, cell by cell: what NumPy makes of a list would depend on all of its rows.

    A row with another number of cells is a record of missing cells, whatever the other rows are.

    **Arguments:** `expected`: the number of columns, public; where that is 0, unknown, all rows may share another one.
    """
    lengths = [admission.length_of(row) for row in rows]
    columns = lengths[0] if not expected and len(set(lengths)) == 1 else expected
    assert columns is not None, "admission refuses what has no row at all"
    missing = [math.nan] * columns
    table = [list(row) if length == columns else missing for row, length in zip(rows, lengths, strict=True)]
    return cells.numbers([cell for row in table for cell in row]).reshape(len(rows), columns)
