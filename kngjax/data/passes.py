"""Passes over records, wherever they rest: each part of a table is summed where it is, and the sums are added here.

    table on an engine -> batches -> records, validated and clipped one by one -> a sum of each part -> their total

Sums are added in pairs in the order of the parts' numbers. All passes over one table must see the same records, which
whole numbers made of their bits tell. Where few different rows are expected, an engine may count equal ones: what is
made of each different row is then doubled and added as often as the row is there.
"""

import functools
import itertools
import math
import operator
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kngjax.core.errors import UnfitShape, UnfitType
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.engines.base import AbstractEngine, reading
from kngjax.data.work import OF_TABLES, OTHER_COLUMNS, Add, NamedParts, Pair, Total, WholeTables, Work, table_or_pair

CHANGED = "the records were not the same in every pass, or not as many as there should be: write them to files first"
_READ_BEFORE = "the source of this stream was read before, and can be read only once: make a new stream of a new source"


# Whether bars are shown, None on a terminal alone; and the numbers of the passes.
_Shown = tuple[bool | None, Iterator[int]]
_SHOWN: ContextVar[_Shown | None] = ContextVar("bars of passes", default=None)


@contextmanager
def showing_passes(progress: bool | None) -> Iterator[None]:
    """Numbers the passes of one release, and shows a bar of each. **Arguments:** `progress`: None on a terminal."""
    before = _SHOWN.set((progress, itertools.count(1)))
    try:
        yield
    finally:
        _SHOWN.reset(before)


@contextmanager
def bar_of_pass(over: str, count: int | None) -> Iterator[Callable[[int], Any]]:
    """Shows a bar of a pass; yields what moves it by some records.

    **Arguments:** `over`: names the table. `count`: n, where it is public; else the bar shows no number of records.
    """
    from tqdm import tqdm

    shown, numbers = _SHOWN.get() or (False, itertools.count(1))
    hidden = None if shown is None else not shown
    how = None if count is not None else "{desc} [{elapsed}]"
    with tqdm(
        desc=f"pass {next(numbers)} over {over}",
        total=count,
        unit=" records",
        unit_scale=True,
        bar_format=how,
        disable=hidden,
        leave=False,
    ) as bar:
        yield bar.update


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


def _of_each(groups: Sequence[Sequence[Callable[[Any], Any]]], summarise: Callable[[Any], Total], batch: Any) -> Total:
    """Summarises each group of a batch."""
    made = [summarise(functools.reduce(lambda one, step: step(one), steps, batch)) for steps in groups]
    return Total(0, made)


def _added_each(add: Add, one: list[Total], two: list[Total]) -> list[Total]:
    return [first.plus(second, add) for first, second in zip(one, two, strict=True)]


@owner_only
class Passes(OwnerOnly):
    """Records of a table on an engine, for `mechanism.prepare`, `kngjax.release` and a `Study`. Private.

    **Arguments:** `engine`: where the table rests. `parts`, `steps`, `marked`: as of `Work`. `count`: n, where it is
    public and a release is certified for it. `seen`: the marks of one release's first pass, shared by all that is made
    of the same batches, so that all of it is of the same records; None before a release. `is_grouped`: whether equal
    records may be counted by the engine, as few are expected to be different, and stay equal in all steps. Public.
    `group`: makes the totals of one of several groups of records, which share passes; None where they are no group.
    """

    engine: AbstractEngine
    parts: NamedParts | WholeTables
    steps: tuple[Callable[..., Any], ...] = ()
    count: int | None = None
    marked: int | None = None
    seen: dict[str, Any] | None = None
    is_grouped: bool = False
    group: Callable[[Work, Callable[[Work], Total]], Total] | None = None

    def __repr__(self) -> str:
        return f"<Passes over {self.engine.name}; OWNER ONLY, holds private data>"

    def _with(self, **changes: Any) -> "Passes":
        return Passes(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def held(self, count: int | None) -> "Passes":
        """Copies the passes for one release, all of which must see the same records, n of them where that is public."""
        seen = self.seen if self.marked is not None and self.seen is not None else {}
        # Releases of groups are certified for no number, and the whole table has one all the same.
        return self._with(count=self.count if count is None else count, seen=seen)

    def mapped(self, step: Callable[[Any], Any], count: int | None = None, has_noise: bool = False) -> "Passes":
        """Maps each batch by a function that can be pickled and treats each record by itself.

        **Arguments:** `count`: n, where it is public and a release is certified for it. `has_noise`: whether equal
        records may become different.
        """
        return self._with(
            steps=(*self.steps, step),
            count=self.count if count is None else count,
            seen=None if self.marked is None else self.seen,
            is_grouped=self.is_grouped and not has_noise,
        )

    def divided(self, steps: Sequence[Callable[[Any], Any]]) -> list["Passes"]:
        """Maps each batch to several groups of its records, which share passes as long as they ask for the same.

        **Arguments:** `steps`: one a group, as of `mapped`.
        """
        shared = SharedPasses(len(self.steps), tuple(steps))
        return [
            self.mapped(step)._with(group=functools.partial(shared.total, place)) for place, step in enumerate(steps)
        ]

    def declared(self) -> list[Pair]:
        """Lists chunks (X, y) with the columns and types that the source declares, before a value is looked at.

        Raises UnfitShape for absent columns, for tables that differ in theirs, and for a source that is gone.
        """
        self._require_there()
        chunks = [table_or_pair(one) for one in self.engine.declared(self.parts.names)]
        if self.parts != NamedParts() and any(isinstance(one, tuple) for one in chunks):
            raise UnfitType(OF_TABLES)
        if len({self.parts.of(one.columns) for one in chunks if not isinstance(one, tuple)}) > 1:
            raise UnfitShape(OTHER_COLUMNS)
        return [one if isinstance(one, tuple) else self.parts(one) for one in chunks]

    def public_count(self) -> int | None:
        """Returns n, where the source tells it without being read: for adjacencies under which it is public."""
        return self.engine.count() if self.count is None else self.count

    @property
    def has_weights(self) -> bool:
        """Tells whether a column of weights was named."""
        return isinstance(self.parts, NamedParts) and self.parts.weights is not None

    def total(self, summarise: Callable[[Any], Total], add: Add = operator.add, is_exact: bool = False) -> Any:
        """Adds up what `summarise` makes of every batch; None where there is no batch. Private.

        **Arguments:** as of `Work`. `is_exact`: whether the total is the same in any order and any division of the
        records into batches, so that equal ones may be counted by the engine. Raises ValueError where reading fails,
        with one text, and for records that are not those of the pass before, or not as many as a release is certified
        for.
        """
        work = Work(self.parts, self.steps, summarise, add, self.marked, is_exact and self.is_grouped)
        total = self._passed(work) if self.group is None else self.group(work, self._passed)
        if self.count not in (None, total.count):
            raise ValueError(CHANGED)
        known = total.count, total.marks
        if self.seen is not None and total.marks is not None and self.seen.setdefault("marks", known) != known:
            raise ValueError(CHANGED)
        return total.sum

    def _passed(self, work: Work) -> Total:
        self._require_there()
        grouped = reading(lambda: self.engine.grouped(self.parts.names)) if work.is_grouped else None
        engine, names = (self.engine, self.parts.names) if grouped is None else (grouped, list)
        work = work._replace(is_grouped=grouped is not None)
        # How many rows are different is private, and workers do not tell how far they are.
        count = self.count if grouped is None and engine.tells_batches else None
        with bar_of_pass(self.engine.name, count) as moved:
            replies = engine.replies(names, work, moved)
        totals = [total for _, total in sorted(replies, key=operator.itemgetter(0))]
        while len(totals) > 1:
            pairs = zip(totals[::2], totals[1::2], strict=False)
            totals = [one.plus(two, work.add) for one, two in pairs] + totals[len(totals) // 2 * 2 :]
        return totals[0] if totals else Total(0, None)

    def collected(self, of: Callable[[Any], list[Any]]) -> list[Any]:
        """Gathers here what `of` makes of every batch. Private, and as large as what it gathers."""
        return self.total(functools.partial(_listed, of)) or []

    def _require_there(self) -> None:
        if self.engine.is_gone:
            raise UnfitShape(_READ_BEFORE)


def _listed(of: Callable[[Any], list[Any]], batch: Any) -> Total:
    return Total(0, of(batch))
