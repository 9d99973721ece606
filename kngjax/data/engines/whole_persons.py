"""Batches of a table that is sorted by persons are cut anew, so that all rows of a person are in one of them."""

import bisect
from collections.abc import Iterable, Iterator
from typing import Any

import narwhals as nw

from kngjax.data.work import table_or_pair


def whole_persons(batches: Iterable[Any], person: str) -> Iterator[Any]:
    """Yields batches of whole persons, which are as large as they came, or as the rows of one person. Private.

    Rows without identifier are of no person, and in batches of their own. **Arguments:** `batches`: tables that
    narwhals knows, sorted by a column of whole numbers or of text by its bytes. `person`: its name. Raises ValueError
    where they are not sorted, so that no engine's optimizer decides whether a person has one vote.
    """
    waiting, whose, before = [], None, None
    for batch in batches:
        table = table_or_pair(batch)
        is_nobody = table[person].is_null()
        if is_nobody.any():
            # Wherever they stand, they divide nobody's rows.
            yield table.filter(is_nobody).to_native()
            table = table.filter(~is_nobody)
        if len(table) == 0:
            continue
        cells, end = table[person], len(table)
        before = _last_of_sorted(cells, before)
        last = cells[end - 1]
        start = bisect.bisect_left(range(end), True, key=lambda place: cells[place] == last)
        if waiting and (start > 0 or last != whose):
            yield nw.concat([*waiting, table[:start]]).to_native()
            waiting = []
        elif start > 0:
            yield table[:start].to_native()
        waiting.append(table[start:])
        whose = last
    if waiting:
        yield nw.concat(waiting).to_native()


def _last_of_sorted(cells: nw.Series, before: Any) -> Any:
    """Returns the last cell; raises ValueError unless these and the one before them are sorted."""
    cells = cells if cells.dtype.is_integer() else cells.cast(nw.String)
    if (cells[:-1] > cells[1:]).any() or (before is not None and cells[0] < before):
        raise ValueError("the table is not sorted")
    return cells[len(cells) - 1]
