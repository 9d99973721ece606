"""Bars of passes over tables on engines: which pass is under way, and for how long."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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
