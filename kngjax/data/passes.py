"""Passes over records, wherever they rest: each part of a table is summed where it is, and the sums are added here.

    table on an engine -> batches -> records, validated and clipped one by one -> a sum of each part -> their total

What is done with a part is a pure function of its batches, so that an engine may run it as often as it likes. Sums are
added in pairs in the order of the parts' numbers. All passes over one table must see the same records, which whole
numbers made of their bits tell. Where few different rows are expected, an engine may count equal ones: what is made of
each different row is then doubled and added as often as the row is there.
"""

import dataclasses
import functools
import math
import operator
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from kngjax.core.errors import UnfitShape, UnfitType, raise_from_outside
from kngjax.core.owner_only import OwnerOnly
from kngjax.data.bars import bar_of_pass
from kngjax.data.engines.base import SAME_NAME, AbstractEngine, is_from, reading
from kngjax.data.marks import MODULUS, counted_and_marked
from kngjax.data.weights import WeightedTable

CHANGED = "the records were not the same in every pass, or not as many as there should be: write them to files first"
_READ_BEFORE = "the source of this stream was read before, and can be read only once: make a new stream of a new source"
_OF_TABLES = "columns and response are of tables: leave them out for pairs (X, y)"
_OTHER_COLUMNS = "the chunks of the stream have different columns: give columns=[...]"

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
                    raise UnfitShape(_OTHER_COLUMNS)
                settled = own
                if len(made) == 0:
                    continue
                made = own(made)
            elif self.parts != NamedParts():
                raise UnfitType(_OF_TABLES)
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


class Passes(OwnerOnly):
    """Records of a table on an engine, for `mechanism.prepare`, `kngjax.release` and a `Study`. Private.

    **Arguments:** `engine`: where the table rests. `parts`, `steps`, `marked`: as of `Work`. `count`: n, where it is
    public and a release is certified for it. `seen`: the marks of one release's first pass, shared by all that is made
    of the same batches, so that all of it is of the same records; None before a release. `is_grouped`: whether equal
    records may be counted by the engine, as few are expected to be different, and stay equal in all steps. Public.
    `group`: which of several groups of records these are, where passes are shared; None where they are no group.
    """

    def __init__(
        self,
        engine: AbstractEngine,
        parts: NamedParts | WholeTables,
        steps: tuple[Callable[..., Any], ...] = (),
        count: int | None = None,
        marked: int | None = None,
        seen: dict[str, Any] | None = None,
        is_grouped: bool = False,
        group: "Group | None" = None,
    ):
        self._engine, self._parts, self._steps, self._count = engine, parts, steps, count
        self._marked, self._seen, self._is_grouped, self._group = marked, seen, is_grouped, group

    def __repr__(self) -> str:
        return f"<Passes over {self._engine.name}; OWNER ONLY, holds private data>"

    @property
    def is_read_once(self) -> bool:
        """Whether the source is gone once it was read, so that there is one pass and no other."""
        return self._engine.is_read_once

    @property
    def is_marked(self) -> bool:
        """Whether batches are counted and marked before they are summarised."""
        return self._marked is not None

    def held(self, count: int | None) -> "Passes":
        """Copies the passes for one release, all of which must see the same records, n of them where that is public."""
        seen = self._seen if self._marked is not None and self._seen is not None else {}
        given = self._parts, self._steps, count, self._marked, seen, self._is_grouped, self._group
        return Passes(self._engine, *given)

    def mapped(self, step: Callable[[Any], Any], count: int | None = None, has_noise: bool = False) -> "Passes":
        """Maps each batch by a function that can be pickled and treats each record by itself.

        **Arguments:** `count`: n, where it is public and a release is certified for it. `has_noise`: whether equal
        records may become different.
        """
        count, seen = self._count if count is None else count, None if self._marked is None else self._seen
        steps, is_grouped = (*self._steps, step), self._is_grouped and not has_noise
        return Passes(self._engine, self._parts, steps, count, self._marked, seen, is_grouped, self._group)

    def divided(self, steps: Sequence[Callable[[Any], Any]]) -> list["Passes"]:
        """Maps each batch to several groups of its records, which share passes as long as they ask for the same.

        **Arguments:** `steps`: one a group, as of `mapped`.
        """
        shared = SharedPasses(len(self._steps), tuple(steps))
        made = [self.mapped(step) for step in steps]
        for place, one in enumerate(made):
            one._group = Group(shared, place)
        return made

    def declared(self) -> list[Pair]:
        """Lists chunks (X, y) with the columns and types that the source declares, before a value is looked at.

        Raises UnfitShape for absent columns, for tables that differ in theirs, and for a source that is gone.
        """
        self._require_there()
        chunks = [table_or_pair(one) for one in self._engine.declared(self._names)]
        if self._parts != NamedParts() and any(isinstance(one, tuple) for one in chunks):
            raise UnfitType(_OF_TABLES)
        if len({self._parts.of(one.columns) for one in chunks if not isinstance(one, tuple)}) > 1:
            raise UnfitShape(_OTHER_COLUMNS)
        return [one if isinstance(one, tuple) else self._parts(one) for one in chunks]

    def has_no_rows(self) -> bool:
        """Whether it is known, before a value is looked at, that there is no record."""
        return self._engine.has_no_rows()

    def public_count(self) -> int | None:
        """Returns n, where the source tells it without being read: for adjacencies under which it is public."""
        return self._engine.count() if self._count is None else self._count

    @property
    def has_weights(self) -> bool:
        """Whether a column of weights was named."""
        return isinstance(self._parts, NamedParts) and self._parts.weights is not None

    def total(self, summarise: Callable[[Any], Total], add: Add = operator.add, is_exact: bool = False) -> Any:
        """Adds up what `summarise` makes of every batch; None where there is no batch. Private.

        **Arguments:** as of `Work`. `is_exact`: whether the total is the same in any order and any division of the
        records into batches, so that equal ones may be counted by the engine. Raises ValueError where reading fails,
        with one text, and for records that are not those of the pass before, or not as many as a release is certified
        for.
        """
        work = Work(self._parts, self._steps, summarise, add, self._marked, is_exact and self._is_grouped)
        total = self._passed(work) if self._group is None else self._group.total(work, self._passed)
        if self._count not in (None, total.count):
            raise ValueError(CHANGED)
        known = total.count, total.marks
        if self._seen is not None and total.marks is not None and self._seen.setdefault("marks", known) != known:
            raise ValueError(CHANGED)
        return total.sum

    def _passed(self, work: Work) -> Total:
        self._require_there()
        grouped = reading(lambda: self._engine.grouped(self._names)) if work.is_grouped else None
        engine, names = (self._engine, self._names) if grouped is None else (grouped, list)
        work = work._replace(is_grouped=grouped is not None)
        with bar_of_pass(self._engine.name, self._count) as moved:
            replies = engine.replies(names, work, moved)
        totals = [total for _, total in sorted(replies, key=operator.itemgetter(0))]
        while len(totals) > 1:
            pairs = zip(totals[::2], totals[1::2], strict=False)
            totals = [one.plus(two, work.add) for one, two in pairs] + totals[len(totals) // 2 * 2 :]
        return totals[0] if totals else Total(0, None)

    def collected(self, of: Callable[[Any], list[Any]]) -> list[Any]:
        """Gathers here what `of` makes of every batch. Private, and as large as what it gathers."""
        return self.total(functools.partial(_listed, of)) or []

    def _names(self, given: Sequence[str]) -> list[str]:
        return self._parts.names(given)

    def _require_there(self) -> None:
        if self._engine.is_gone:
            raise UnfitShape(_READ_BEFORE)


class SharedPasses:
    """Keeps what one pass made of all groups of records, for those that ask for the same. Private.

    Groups are asked one after another. Sums of all of them are made at once, and so are the first looks of searches.
    Where searches part ways every group takes its own passes from there on.

    **Arguments:** `at`: how many steps are common to all. `steps`: the step of each group that comes then.
    """

    def __init__(self, at: int, steps: tuple[Callable[[Any], Any], ...]):
        self._at, self._steps = at, steps
        self._kept: list[tuple[bytes, Total]] = []
        self._asked, self._most = [0] * len(steps), math.inf

    def total(self, place: int, work: Work, passed: Callable[[Work], Total]) -> Total:
        """Makes, or finds, the total of the group at this place. **Arguments:** `passed`: takes a pass."""
        number, later = self._asked[place], work.steps[self._at + 1 :]
        self._asked[place] += 1
        key = pickle.dumps((later, work.summarise, work.add))
        if number == len(self._kept) and number < self._most:
            summarise = functools.partial(_of_each, [(step, *later) for step in self._steps], work.summarise)
            add = functools.partial(_added_each, work.add)
            every = work._replace(steps=work.steps[: self._at], summarise=summarise, add=add)
            self._kept.append((key, passed(every)))
        if number >= len(self._kept) or self._kept[number][0] != key:
            self._most = min(self._most, number)
            return passed(work)
        total = self._kept[number][1]
        if total.sum is None:
            return total
        own, total.sum[place] = total.sum[place], None
        return own if total.marks is None else Total(total.count, own.sum, total.marks)


class Group(NamedTuple):
    """Tells which of several groups of records some passes are over. Private."""

    shared: SharedPasses
    place: int

    def total(self, work: Work, passed: Callable[[Work], Total]) -> Total:
        """Makes, or finds, the total of this group."""
        return self.shared.total(self.place, work, passed)


def _of_each(groups: Sequence[Sequence[Callable[[Any], Any]]], summarise: Callable[[Any], Total], batch: Any) -> Total:
    """Summarises each group of a batch."""
    made = [summarise(functools.reduce(lambda one, step: step(one), steps, batch)) for steps in groups]
    return Total(0, made)


def _added_each(add: Add, one: list[Total], two: list[Total]) -> list[Total]:
    return [first.plus(second, add) for first, second in zip(one, two, strict=True)]


def _listed(of: Callable[[Any], list[Any]], batch: Any) -> Total:
    return Total(0, of(batch))


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
