"""Groups of a table by the public levels of its columns, and an analysis of each group that one debit pays for."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.data.missing import Codes, without_codes
from kngjax.data.named_columns import Columns
from kngjax.data.passes import Passes
from kngjax.data.tables import records_of
from kngjax.data.terms import Categorical
from kngjax.inference.known_noise import margin_of_count
from kngjax.mechanisms.quantile_interval import MOST_RECORDS
from kngjax.releases.division import Division
from kngjax.releases.group_plans import plan_of_groups
from kngjax.releases.plan import Plan
from kngjax.releases.told import telling
from kngjax.study.analyses import Analysis, Prepared, table_of, tables_of
from kngjax.study.carrying_out import AbstractAnalysis, resolved_once
from kngjax.study.classifications import AnyRow, Axis, Classification
from kngjax.study.responses import check_column

# Times the noise of a released number of records, below which it says little of how many there are.
_KNOWN_FROM = 10.0
# The part of what an interval may miss that is for released counts which are too large.
_MISSED = 0.1


@dataclass(frozen=True)
class GroupSize:
    """Holds how many records a group has, as far as anybody said.

    **Arguments:** `count`: n, or a guess of it, or None. `noise`: the standard deviation of the noise of a number that
    was released; 0 for one that was said; None for an equal share of all records, which nobody said. `miss`: the
    probability that there are fewer records than `count`, of a bound from below that a released number has.
    """

    count: int | None
    noise: float | None = 0.0
    miss: float = 0.0

    @property
    def is_known(self) -> bool:
        """Tells whether somebody said the number, or released it with noise of less than a tenth."""
        return self.count is not None and self.noise is not None and self.count > _KNOWN_FROM * self.noise

    def at_least(self, level: float) -> "GroupSize":
        """Bounds the size from below for intervals of this level, which count in how often the bound is too large.

        A released ñ is n + R with two-sided geometric R, so that n_L = ñ - k exceeds n with probability
        P(R > k) = q^(k+1)/(1 + q) at most a = (1 - level)/10, q = e^-c: half of what `margin_of_count` bounds. The rate
        c is the count's, which its standard deviation 1/(√2·sinh(c/2)) tells.
        """
        if self.count is None or not self.noise:
            return self
        bound = min(max(self.count - self.margin(level), 1), MOST_RECORDS)
        return replace(self, count=bound, miss=_MISSED * (1.0 - level))

    def margin(self, level: float) -> int:
        """Returns k of `at_least`; 0 of a number that was said."""
        if not self.noise:
            return 0
        rate = 2.0 * math.asinh(math.sqrt(0.5) / self.noise)
        return margin_of_count(rate, 1.0 - 2.0 * _MISSED * (1.0 - level))

    @property
    def in_words(self) -> str:
        """Says how many records a figure is for: as many as the released counts say, or as `num_records`."""
        return "as many as the released counts say" if self.noise else "as many as num_records says"

    @property
    def why_unknown(self) -> str:
        """Says why no figure can be based on this size."""
        if self.noise is None:
            return (
                "sizes of the groups are not known: give num_records= to by, one for all or one for each, "
                "by('region', num_records=500), or the counts that a histogram of the groups released"
            )
        return "the released number of records of this group has so much noise itself"


@dataclass(frozen=True)
class Grouping:
    """Names the columns that a table is divided by. Public.

    **Arguments:** `terms`: each column with its levels and its policy for cells that have none of them: a level, or
    "drop", which puts the record into no group, or None, which fails.
    """

    terms: tuple[Categorical, ...]

    @classmethod
    def of(cls, columns: Sequence[Any], levels: Mapping[str, tuple[Any, ...]], missing: Any) -> "Grouping":
        """Groups by columns with public levels. **Arguments:** as of `Study`.

        Raises TypeError or ValueError for no column, for one twice, and for one without levels.
        """
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
        """Returns the groups: all combinations of levels."""
        return Division(tuple(term.column for term in self.terms), tuple(term.levels for term in self.terms))

    def keys(self) -> list[Any]:
        """Returns the level of each group, or of several columns a tuple of levels."""
        return [group[0] if len(group) == 1 else group for group in self.division.groups()]

    def check(self, table: nw.DataFrame | Columns) -> None:
        """Raises `UnfitShape` or `UnfitType` for absent columns and for types that have no levels; sees no value."""
        for column in self.division.by:
            check_column(table, column, "by()")

    def places(self, columns: Mapping[str, Any] | nw.DataFrame | Columns) -> np.ndarray:
        """Finds the place of each record's group in `division.groups()`, by its own cells alone; -1 if it is in none.

        **Arguments:** `columns`: private, of a released regression's `predict` public; each of shape (n,). Raises
        ValueError for cells that have no declared level, where there is no policy; the message tells no value.
        """
        return self.cells.places(columns)

    @property
    def cells(self) -> Classification:
        """Returns the table whose cells are the groups."""
        return Classification(tuple(Axis(one.column, one.levels, missing=one.missing) for one in self.terms))


@dataclass(frozen=True)
class GroupedAnalysis(AbstractAnalysis):
    """Applies one analysis to every group of a table. Public.

    **Arguments:** `grouping`: by which columns. `adjacency`: of the whole table. `analyses`: one a group, in order,
    with mechanisms for 'add_remove'; they may differ in what follows from a guess of the number of records. `sizes`:
    what was said of the size of each group.
    """

    grouping: Grouping
    adjacency: kng.Adjacency
    analyses: tuple[Analysis, ...]
    sizes: tuple[GroupSize, ...]

    def __post_init__(self) -> None:
        first = self.analyses[0]
        if first.sampler is not None:
            raise ValueError("groups take no sampler: each release takes the best one")
        if any(isinstance(part.plan, kng.QuantileProcess) for part in first.parts):
            raise ValueError(
                "groups have no quantile process: ask for quantile_regression of each group, or for a quantile process "
                "of all records with the column of the groups as a term"
            )
        if isinstance(first.response, AnyRow):
            raise ValueError(
                "one person may have rows in several groups: count persons of one group after another, by a condition"
            )
        named = (*first.response.columns, *(() if first.design is None else first.design.columns))
        for column in self.grouping.division.by:
            if column in named:
                raise ValueError(f"groups are by {column!r}, of which all records of one have the same: leave it out")

    @property
    def title(self) -> str:
        """Names the analysis and the columns of its groups."""
        return f"{self.analyses[0].title} by {' and '.join(self.grouping.division.by)}"

    @property
    def formula(self) -> str | None:
        """Returns the formula of each analysis, or None."""
        return self.analyses[0].formula

    @property
    def times(self) -> float:
        """Returns ε of all groups, which was asked for, over that of one."""
        return 2.0 if self.adjacency is kng.Adjacency.REPLACE else 1.0

    @property
    def foreseen(self) -> "GroupedAnalysis":
        """Returns the analysis itself, as nothing of it depends on what is released first."""
        return self

    def takes(self, size: GroupSize) -> str:
        """Says nothing: no group is refused by a released count."""
        return ""

    def require_intervals(self) -> None:
        """Raises ValueError for intervals of a quantile of a group that is said to have too few records for one."""
        # Groups of which the same is known share an analysis: the first of each is looked at.
        firsts: dict[int, Any] = {}
        for group, one in zip(self.grouping.division.groups(), self.analyses, strict=True):
            firsts.setdefault(id(one), (group, one))
        for group, one in firsts.values():
            mechanism = one.parts[0].mechanism
            is_asked = isinstance(mechanism, kng.QuantileInterval) and not one.force
            if is_asked and (why := mechanism.refusal(times=self.times)) is not None:
                raise ValueError(f"{self.grouping.division.name(group)}: {why}")

    @property
    def codes(self) -> Codes:
        """Returns the codes that stand for a missing cell, by column."""
        return self.analyses[0].codes

    @property
    def told(self) -> tuple[str, ...]:
        """Says for certificates which codes and dates are read, and how the response is made."""
        return self.analyses[0].told_with(self.grouping.division.by)

    def check(self, frame: Any) -> nw.DataFrame | Columns:
        """Checks the columns of the analysis, as `Analysis.check`, and those of the groups."""
        table = self.analyses[0].check(frame)
        for one in tables_of(frame):
            self.grouping.check(one)
        return table

    def count_of(self, table: Any) -> int:
        return self.analyses[0].count_of(table)

    def records(self, frame: Any) -> tuple[Prepared, np.ndarray] | Passes:
        """Returns the columns of all records, as `Analysis.records`, and the place of each record's group. Private."""
        columns = (*self.grouping.division.by, *self.analyses[0].columns)
        read, table = functools.partial(_read, self.analyses[0].reader, self.grouping, self.codes), table_of(frame)
        count = len(table) if self.adjacency is kng.Adjacency.REPLACE else None
        return records_of(table, columns, read, count, self.analyses[0].sizes, self.analyses[0].person)

    def words_of(self, part: None) -> dict[str, Any]:
        first = self.analyses[0]
        made = next((one for one in self.analyses if one.parts), first)
        parts = [{"label": one.label, "mechanism": one.settings} for one in made.parts]
        about = {"analysis": self.title, "formula": first.formula, "response": first.response.name}
        told = {"read": list(self.told)} if self.told else {}
        return about | {"groups": self.grouping.division.to_dict(), "parts_of_the_first": parts} | told

    def plan_of(self, part: None, num_records: int | None) -> Plan:
        with telling(*self.told):
            return self._plan()

    @resolved_once
    def _plan(self) -> Plan:
        plans = [[one.plan_for(None) for one in analysis.parts] for analysis in self.analyses]
        return plan_of_groups(plans, self.grouping.division, self.adjacency)

    def certificates_of(self, part: None, num_records: int | None) -> list[kng.releases.Certificate]:
        """Certifies the first group; others may differ in what follows from a guess of their size."""
        with telling(*self.told):
            return [one for part in self.analyses[0].parts for one in part.plan_for(None).certificates]

    def prepare(self, part: None, records: tuple[Prepared, np.ndarray] | Passes) -> None:
        """Raises what the mechanisms of the first group say of all records. Private: for the owner alone."""
        for one in self.analyses[0].parts:
            own = records.mapped(_of_all) if isinstance(records, Passes) else records[0]
            self.analyses[0].prepare(one, own)


def _read(analysis: Analysis, grouping: Grouping, codes: Codes, table: Any) -> tuple[Prepared, np.ndarray]:
    places = grouping.places(without_codes(table_of(table), codes))
    return analysis.read(table, places), places


def _of_all(records: tuple[Prepared, np.ndarray]) -> Prepared:
    return records[0]
