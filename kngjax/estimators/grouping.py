"""Groups of a table by the public levels of its columns, and an analysis of each group that one debit pays for."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.core.errors import UnfitShape, UnfitType, run_telling_refusals
from kngjax.data import cells
from kngjax.data.terms import Categorical
from kngjax.estimators.analyses import Analysis, arguments
from kngjax.releases import divided
from kngjax.releases.debits import settings
from kngjax.releases.division import Division


@dataclass(frozen=True)
class Grouping:
    """The columns that a table is divided by. Public. **Arguments:** `terms`: each with its levels and its policy for
    cells that have none of them: a level, "drop", which puts the record into no group, or None, which fails.
    """

    terms: tuple[Categorical, ...]

    @classmethod
    def of(cls, columns: Sequence[Any], levels: Mapping[str, tuple[Any, ...]], missing: Any) -> "Grouping":
        """**Arguments:** as of `Study`. Raises TypeError or ValueError for no column, one twice, one without levels."""
        if len(columns) == 1 and isinstance(columns[0], list | tuple):
            columns = columns[0]
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"name one or several different columns, like by('region'), not {columns!r}")
        for column in columns:
            if column not in levels:
                raise ValueError(
                    f"groups are by public levels, also those that no record has: levels={{{column!r}: (...)}}, given "
                    "to the study"
                )
        policies = missing if isinstance(missing, Mapping) else dict.fromkeys(columns, missing)
        return cls(tuple(Categorical(column, levels[column], policies.get(column)) for column in columns))

    @property
    def division(self) -> Division:
        """The groups: all combinations of levels."""
        return Division(tuple(term.column for term in self.terms), tuple(term.levels for term in self.terms))

    def check(self, table: nw.DataFrame) -> None:
        """Raises `UnfitShape` or `UnfitType` for absent columns and for types that have no levels; sees no value."""
        for column in self.division.by:
            if column not in table.columns:
                raise UnfitShape(f"groups are by the column {column!r}, which the data do not have")
            if not cells.is_readable(table[column]):
                raise UnfitType(f"the type of column {column!r} has no levels: convert it by a public rule")

    def places(self, columns: Mapping[str, Any] | nw.DataFrame) -> np.ndarray:
        """The place of each record's group in `division.groups()`, by its own cells alone; -1 for those in none.

        **Arguments:** `columns`: private, of a released regression's `predict` public; each of shape (n,). Raises
        ValueError for cells that have no declared level, where there is no policy; the message tells no value.
        """
        each = [term.places_of(columns[term.column]) for term in self.terms]
        places = np.zeros(len(each[0]), np.int64)
        for term, own in zip(self.terms, each, strict=True):
            places = places * len(term.levels) + own
        return np.where(np.min(each, axis=0) < 0, -1, places)


@dataclass(frozen=True)
class GroupedAnalysis:
    """The same analysis of every group of a table. Public.

    **Arguments:** `grouping`: by which columns. `adjacency`: of the whole table. `analyses`: one a group, in order,
    with mechanisms for 'add_remove'; they may differ in what follows from a guess of the number of records.
    """

    grouping: Grouping
    adjacency: kng.Adjacency
    analyses: tuple[Analysis, ...]

    def __post_init__(self) -> None:
        first = self.analyses[0]
        named = (getattr(first.response, "column", None), *(() if first.design is None else first.design.columns))
        for column in self.grouping.division.by:
            if column in named:
                raise ValueError(f"groups are by {column!r}, of which all records of one have the same: leave it out")

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"{self.analyses[0].title} by {' and '.join(self.grouping.division.by)}"

    @property
    def mechanisms(self) -> list[list[Any]]:
        """Those of each group."""
        return [[part.mechanism for part in analysis.parts] for analysis in self.analyses]

    @property
    def debit(self) -> tuple[kng.Guarantee, bool]:
        """What all groups cost together, and whether that is proved."""
        return divided.owed_together(divided.certify_groups(self.mechanisms), self.adjacency)

    @property
    def row(self) -> tuple[str, str]:
        """What a plan shows of it: the mechanisms of one group, and what all groups cost together."""
        first, (cost, proved) = self.analyses[0], self.debit
        [certificates] = divided.certify_groups(self.mechanisms[:1])
        kinds = dict.fromkeys(f"{one.mechanism['type']}, {one.assurance}" for one in certificates)
        named = self.title if first.formula is None else f"{self.title}, {first.formula}"
        priced = cost.explain() if proved else "not proved"
        what = ", ".join([named, *(part.label for part in first.parts)])
        return what, f"{'; '.join(kinds)}, {len(self.analyses)} groups together: {priced}"

    def check(self, frame: Any) -> nw.DataFrame:
        """As `Analysis.check`, of the columns of the groups too."""
        table = self.analyses[0].check(frame)
        self.grouping.check(table)
        return table

    def release(self, frame: Any, ledger: kng.Ledger | kng.Reservation | None) -> list[kng.Release]:
        """The releases of all groups, those of the first group first, by one debit; all of them or none.

        Raises as `check` and `kngjax.releases.divided.release_groups`.
        """
        made, refusal = None, None
        try:
            made = self._release(frame, ledger)
        except Exception as error:
            refusal = error.with_traceback(None)
        # Frames of a traceback hold their local variables.
        del frame
        if refusal is not None:
            raise refusal
        assert made is not None
        return [one for group in made for one in group]

    def _release(self, frame: Any, ledger: kng.Ledger | kng.Reservation | None) -> list[list[kng.Release]]:
        first, division = self.analyses[0], self.grouping.division
        table, refusal = run_telling_refusals(functools.partial(self.check, frame))
        if refusal is not None:
            raise refusal

        def read() -> tuple[divided.Columns, np.ndarray]:
            return first.records(frame), self.grouping.places(table)

        words = {"analysis": self.title, "formula": first.formula, "response": first.response.name}
        parts = [{"label": part.label, "mechanism": settings(part.mechanism)} for part in first.parts]
        words |= {"groups": division.to_dict(), "parts_of_the_first": parts}
        return divided.release_groups(self.mechanisms, division, self.adjacency, read, _named, ledger, words)


def _named(mechanism: Any, x: np.ndarray | None, y: np.ndarray) -> dict[str, Any]:
    return dict(zip(("X", "y"), arguments(mechanism, x, y), strict=True))
