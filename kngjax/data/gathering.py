"""Takes validated records apart and puts them together again, where batches of them come from elsewhere."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from kngjax.data.marks import mixed
from kngjax.data.records import Records, WeightedRecords

Rows = TypeVar("Rows", Records, Records | WeightedRecords)


def parts_of(records: Records | WeightedRecords) -> tuple[Any, ...]:
    """Returns x, y and the weights, or None, which can be pickled. Private."""
    rows = records.rows
    return np.asarray(rows.x), np.asarray(rows.y), getattr(records, "weights", None)


def gathered(parts: Sequence[tuple[Any, ...]], persons: int | None = None) -> Records | WeightedRecords:
    """Puts records together whose `parts_of` these are: one batch at least. Private. **Arguments:** as of `Records`."""
    x, y, every = zip(*parts, strict=True)
    rows = Records(np.concatenate(x), np.concatenate(y), persons)
    return rows if every[0] is None else WeightedRecords(rows, np.concatenate(every))


def in_one_order(records: Rows) -> Rows:
    """Sorts records by whole numbers made of their bits, so that the order in which they came decides nothing. Private.

    Sums of float64 that are made of them then have the same last digits, whatever parts of a table came first.
    """
    parts = parts_of(records)
    places = np.argsort(mixed(part for part in parts if part is not None), kind="stable")
    sorted_parts = tuple(None if part is None else np.asarray(part)[places] for part in parts)
    return gathered([sorted_parts], records.rows.persons)  # pyright: ignore
