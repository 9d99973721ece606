"""Batches of a table that is sorted by persons are cut anew, so that all rows of a person are in one of them."""

import bisect
from collections.abc import Iterable, Iterator
from typing import Any

import narwhals as nw

from kngjax.data.work import table_or_pair


def whole_persons(batches: Iterable[Any], person: str) -> Iterator[Any]:
    """Yields batches of whole persons, which are as large as they came, or as the rows of one person. Private.

    **Arguments:** `batches`: tables that narwhals knows, in which equal cells of one column come after one another.
    `person`: its name. Rows without identifier are of no person, and in any batch.
    """
    waiting, whose = [], None
    for batch in batches:
        table = table_or_pair(batch)
        if len(table) == 0:
            continue
        cells, end = table[person], len(table)
        last = cells[end - 1]
        start = end if last is None else bisect.bisect_left(range(end), True, key=lambda place: cells[place] == last)
        if waiting and (start > 0 or last != whose):
            yield nw.concat([*waiting, table[:start]]).to_native()
            waiting = []
        elif start > 0:
            yield table[:start].to_native()
        if start < end:
            waiting.append(table[start:])
        whose = last
    if waiting:
        yield nw.concat(waiting).to_native()
