"""Work on the batches of a part of a table: which columns are taken, what is done with a record, and how sums add up.

What is done with a part is a pure function of its batches, so that an engine may run it as often as it likes.
"""

import bisect
import dataclasses
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType, raise_from_outside
from kngjax.data.engines.base import SAME_NAME, is_from
from kngjax.data.marks import MODULUS, counted_and_marked
from kngjax.data.weights import WeightedTable

OTHER_COLUMNS = "the chunks of the stream have different columns: give columns=[...]"
OF_TABLES = "columns and response are of tables: leave them out for pairs (X, y)"

Add = Callable[[Any, Any], Any]
Pair = tuple[Any, Any]


@dataclasses.dataclass(frozen=True)
class NamedParts:
    """Takes X, y and the weights of records from tables by the names of columns. Public.

    **Arguments:** `x`: those of X, None for all others. `y`: that of y, or None. `weights`: that of the weights, or
    None.
    """

    x: tuple[str, ...] | None = None
    y: str | None = None
    weights: str | None = None

    def names(self, given: Sequence[str]) -> list[str]:
        """Lists the columns to read of those that a table has; raises UnfitShape for one that it lacks."""
        if len(set(given)) < len(given):
            raise UnfitShape(SAME_NAME)
        others = [name for name in (self.y, self.weights) if name is not None]
        for name in (*(self.x or ()), *others):
            # The names in the source are not listed: in a file without a header line they are somebody's record.
            if name not in given:
                raise UnfitShape(f"the stream was asked for the column {name!r}, which is not there")
        return [*([name for name in given if name not in others] if self.x is None else self.x), *others]

    def of(self, given: Sequence[str]) -> "NamedParts":
        """Settles which columns X has, of those that a table has."""
        names = self.names(given)
        return dataclasses.replace(self, x=tuple(names[: len(names) - len({self.y, self.weights} - {None})]))

    def __call__(self, table: Any) -> Pair:
        """Returns X and y of a table of narwhals."""
        x, y = list(self.of(table.columns).x or ()), self.y
        X: Any = table.select(x).to_native() if x else None
        if self.weights is not None:
            X = WeightedTable(X, table[self.weights].to_native())
        return X, None if y is None else table[y].to_native()


@dataclasses.dataclass(frozen=True)
class WholeTables:
    """Takes tables with these columns from tables with others. Public."""

    columns: tuple[str, ...]

    def names(self, given: Sequence[str]) -> list[str]:
        """Lists the columns to read."""
        return list(self.columns)

    def of(self, given: Sequence[str]) -> "WholeTables":
        """Returns itself: the columns are settled."""
        return self

    def __call__(self, table: Any) -> Any:
        """Returns the table of narwhals with these columns alone."""
        return table.select(list(self.columns))


class Total(NamedTuple):
    """Holds what was made of records. Private.

    **Arguments:** `count`: how many they are. `sum`: their sum; None where there was no batch. `marks`: a whole number
    modulo 2^64 that tells whether they are the same records (`kngjax.data.marks`); None where nothing tells.
    """

    count: int
    sum: Any
    marks: int | None = None

    def plus(self, other: "Total", add: Add) -> "Total":
        """Adds up what was made of two sets of records."""
        if self.sum is None or other.sum is None:
            return other if self.sum is None else self
        marks = None if self.marks is None or other.marks is None else (self.marks + other.marks) % MODULUS
        return Total(self.count + other.count, add(self.sum, other.sum), marks)


class Work(NamedTuple):
    """Says what is done with the batches of a part; pickled to workers.

    Public, but for what `summarise` knows of earlier passes, which is never told. **Arguments:** `parts`: which columns
    are taken. `steps`: functions from a batch to a batch, each record by itself, one
    after another. `summarise`: makes a `Total` of a batch, which can be pickled. `add`: adds up two sums. `marked`:
    after so many steps a batch is whole, and is counted and marked; None where `summarise` does that. `is_grouped`:
    whether the rows of batches are different, each with how often it is there in a last column.
    """

    parts: NamedParts | WholeTables
    steps: tuple[Callable[..., Any], ...]
    summarise: Callable[[Any], Total]
    add: Add
    marked: int | None = None
    is_grouped: bool = False

    def __call__(self, batches: Iterable[Any]) -> Total:
        """Adds up what is made of all batches; tables without a row are left out."""
        return self._of_groups(batches) if self.is_grouped else self._of_rows(batches)

    def _of_groups(self, batches: Iterable[Any]) -> Total:
        """Adds up what is made of rows, for each binary digit of how often they are there, and doubles by its place."""
        of_places: dict[int, Total] = {}
        for batch in batches:
            table = table_or_pair(batch)
            *names, last = table.columns
            times = np.asarray(table[last].to_numpy(), np.int64)
            for place in range(int(times.max(initial=0)).bit_length()):
                rows = table[np.flatnonzero(times >> place & 1)].select(names)
                of_places[place] = of_places.get(place, Total(0, None)).plus(self._of_rows([rows]), self.add)
        total = Total(0, None)
        for place in reversed(range(max(of_places, default=-1) + 1)):
            total = total.plus(total, self.add).plus(of_places.get(place, Total(0, None)), self.add)
        return total

    def _of_rows(self, batches: Iterable[Any]) -> Total:
        total, settled = Total(0, None), None
        for batch in batches:
            made = table_or_pair(batch)
            if isinstance(made, nw.DataFrame):
                own = self.parts.of(made.columns)
                if settled not in (None, own):
                    raise UnfitShape(OTHER_COLUMNS)
                settled = own
                if len(made) == 0:
                    continue
                made = own(made)
            elif self.parts != NamedParts():
                raise UnfitType(OF_TABLES)
            known = None
            for number, step in enumerate(self.steps, start=1):
                made = step(made)
                known = counted_and_marked(made) if number == self.marked else known
            one = self.summarise(made)
            total = total.plus(one if known is None else Total(known[0], one.sum, known[1]), self.add)
        return total

    def reply(self, batches: Iterable[Any]) -> bytes:
        """Pickles what a call returns, and raises nothing: None tells of a failure. All batches are taken in any case.

        Some engines write to their logs of readers that are left in the middle, and of exceptions with what they say.
        """
        batches = iter(batches)
        try:
            return pickle.dumps(self(batches))
        except BaseException as error:
            raise_from_outside(error)
        try:
            for _ in batches:
                pass
        except BaseException as error:
            raise_from_outside(error)
        return pickle.dumps(None)


def table_or_pair(given: Any) -> Any:
    """Returns a batch as a table of narwhals, or as the pair (X, y) that it is; raises UnfitType for others."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return tuple(given)
    batch: Any = given
    if is_from("pyarrow", "RecordBatch", batch):
        import pyarrow

        batch = pyarrow.Table.from_batches([batch])
    if is_from("pyarrow", "Table", batch) and len(set(batch.column_names)) < batch.num_columns:
        raise UnfitShape(SAME_NAME)
    table = nw.from_native(batch, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise UnfitType(f"a chunk of a stream must be a data frame or a pair (X, y), not a {type(batch).__name__}")
    return table


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
