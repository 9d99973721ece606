"""Classifies records for tables, and makes mechanisms of counts with whole noise on each, by public facts alone."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int

from kngjax.accounting.adjacency import Adjacency, plural
from kngjax.core.errors import about
from kngjax.data import cells, conditions, dates
from kngjax.data.bounds import Bounds
from kngjax.data.conditions import Condition
from kngjax.data.missing import DROP
from kngjax.data.named_columns import Columns
from kngjax.data.persons import Unit, check_identifiers, codes_of
from kngjax.data.records import NOT_FINITE
from kngjax.data.terms import Categorical
from kngjax.data.terms.base import is_number, refuse_missing
from kngjax.mechanisms.geometric import GeometricMechanism
from kngjax.study.analyses import Analysis, Part
from kngjax.study.responses import AbstractResponse, check_column


@dataclass(frozen=True)
class Axis:
    """Describes a side of a table: the levels of a category, or intervals between public edges. Public.

    **Arguments:** `column`: its name. `levels`: of a category. `edges`: in place of levels, increasing numbers; an
    interval contains its left end, and the last one both. Numbers beyond the edges count in the first and in the last
    interval. `missing`: a level or a number for missing cells, "drop" under add_remove, or None to refuse them.

    **Raises:** ValueError or TypeError for levels, edges or a policy that cannot be.
    """

    column: str
    levels: tuple[Any, ...] | None = None
    edges: tuple[float | int, ...] | None = None
    missing: str | float | int | bool | None = None

    def __post_init__(self) -> None:
        if self.levels is not None:
            # The rules for categories hold for axes too.
            Categorical(self.column, self.levels, missing=self.missing)
            return
        edges = self.edges or ()
        if not all(is_number(edge) and math.isfinite(edge) for edge in edges) or len(edges) < 3:
            raise ValueError(
                f"the edges of {self.column!r} must be three numbers or more, like [0, 10, 100], or as many dates "
                f"where its bounds are dates, not {edges}"
            )
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise ValueError(f"the edges of {self.column!r} must increase, not {edges}")
        if self.missing not in (None, DROP) and not (
            is_number(self.missing) and edges[0] <= float(self.missing) <= edges[-1]
        ):
            raise ValueError(f"missing of {self.column!r} must be a number between its edges or 'drop'")

    @property
    def labels(self) -> tuple[Any, ...]:
        """Returns the levels, or the intervals as text, like "[0, 10)"."""
        if self.levels is not None:
            return self.levels
        edges = self.edges or ()
        ends = [")"] * (len(edges) - 2) + ["]"]
        pairs = zip(edges[:-1], edges[1:], ends, strict=True)
        return tuple(f"[{low:g}, {high:g}{end}" for low, high, end in pairs)

    def places(self, values: Any) -> Int[np.ndarray, " records"]:
        """Finds the place of each private cell, shape (n,), among the labels; -1 where its record is to be dropped.

        Raises ValueError for missing cells without a policy; the message tells no value.
        """
        found, absent = self._read(values)
        refuse_missing(self.column, self.missing, absent)
        if self.missing in (None, DROP):
            return np.where(absent, -1, found)
        return np.where(absent, self._read([self.missing])[0][0], found)

    def _read(self, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """The place of each cell, and which cells have none."""
        if self.levels is not None:
            places = cells.levels(values, self.levels)
            return places, places < 0
        numbers, edges = cells.numbers(values), np.asarray(self.edges, np.float64)
        return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2), np.isnan(numbers)


@dataclass(frozen=True)
class Classification(AbstractResponse):
    """Numbers the cell that a record lies in, the last axis running fastest. **Arguments:** `axes`: one a column.

    Raises ValueError for two axes of one column.
    """

    axes: tuple[Axis, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(axis.column for axis in self.axes)

    def __post_init__(self) -> None:
        names = [axis.column for axis in self.axes]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a table needs columns, each once, not {names}")

    @property
    def name(self) -> str:
        return " by ".join(axis.column for axis in self.axes)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {axis.column: (float(axis.edges[0]), float(axis.edges[-1])) for axis in self.axes if axis.edges}

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Returns the number of places of each axis."""
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def substitute(self) -> float | str | None:
        """Returns what a record with a missing cell counts as: for a single column the number of a cell, or "drop"."""
        policies = [axis.missing for axis in self.axes]
        if DROP in policies:
            return DROP
        if len(policies) > 1 or policies[0] is None:
            return None
        return float(self.axes[0].places([policies[0]])[0])

    def check(self, table: nw.DataFrame | Columns) -> None:
        for axis in self.axes:
            check_column(table, axis.column, "the table")

    def of_table(self, table: nw.DataFrame | Columns) -> Float[np.ndarray, " records"]:
        places = self.places(table)
        return np.where(places < 0, np.nan, places.astype(np.float64))

    def places(self, table: Any) -> Int[np.ndarray, " records"]:
        """Finds the number of each record's cell, by its own cells alone; -1 where it is dropped. Private.

        **Arguments:** `table`: or a mapping of columns to cells. Raises as `Axis.places`.
        """
        places = [axis.places(table[axis.column]) for axis in self.axes]
        numbers = np.ravel_multi_index([np.maximum(one, 0) for one in places], self.shape)
        return np.where(np.min(places, axis=0) < 0, -1, numbers)


@dataclass(frozen=True)
class Meets(AbstractResponse):
    """Maps records that meet all conditions to 1, and others to 0.

    **Arguments:** `text`: the conditions as written. `counted`: what is counted, in words.
    """

    text: str
    conditions: tuple[Condition, ...]
    counted: str = "records"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(condition.term.column for condition in self.conditions)

    @property
    def name(self) -> str:
        return self.text or self.counted

    @property
    def substitute(self) -> str | None:
        """Returns "drop" where a column's policy is that."""
        return DROP if any(one.term.missing == DROP for one in self.conditions) else None

    def check(self, table: nw.DataFrame | Columns) -> None:
        for one in self.conditions:
            check_column(table, one.term.column, "the condition")

    def of_table(self, table: nw.DataFrame | Columns) -> Float[np.ndarray, " records"]:
        meets = np.ones(len(table))
        for one in self.conditions:
            meets = meets * one.of(table)
        return meets


@dataclass(frozen=True)
class AnyRow(AbstractResponse):
    """Maps persons, and not rows, to 1 where any row of one meets all conditions, and to 0 else.

    Each number is made of one person's rows alone, and each person has one: so neighbouring tables of persons become
    neighbouring tables of records. **Arguments:** `rows`: the conditions. `unit`: with a column of identifiers.
    """

    rows: Meets
    unit: Unit

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.rows.columns, self.unit.column or "")

    @property
    def name(self) -> str:
        several = plural(self.unit.name)
        return f"{several} with {self.rows.text}" if self.rows.text else several

    @property
    def substitute(self) -> str | None:
        """Returns "drop" where a column's policy is that: who has no other row is left out."""
        return self.rows.substitute

    @property
    def told(self) -> tuple[str, ...]:
        return (
            f"each {self.unit.name} became one record, 1 if any row of that {self.unit.name} meets the condition and "
            f"0 else; {self.unit.explain()[0]}",
        )

    def check(self, table: nw.DataFrame | Columns) -> None:
        self.rows.check(table)
        check_identifiers(table, self.unit)

    def of_table(self, table: nw.DataFrame | Columns) -> Float[np.ndarray, " persons"]:
        codes, meets = codes_of(table[self.unit.column or ""]), self.rows.of_table(table)
        known = codes >= 0
        if self.unit.missing != DROP and not known.all():
            raise ValueError(NOT_FINITE)
        codes, meets = codes[known], meets[known]
        made = np.full(int(np.max(codes, initial=-1)) + 1, np.nan)
        # NaN stays NaN in one of these, and is passed over in the other.
        most = np.fmax if self.substitute == DROP else np.maximum
        made[codes] = -np.inf
        most.at(made, codes, meets)
        return np.where(np.isneginf(made), np.nan, made)


# The number of intervals where nobody says how many.
_INTERVALS = 10


def count(facts: Any, where: str | None, epsilon: Any, of: str = "rows") -> Analysis:
    """Plans a count of the records, or of those that meet a condition.

    **Arguments:** `facts`: a `PublicFacts`. `of`: "rows", of which those of one person share votes, or "persons" by any
    of their rows.
    """
    unit, adjacency = facts.unit_of_rows, facts.adjacency.value
    if of not in ("rows", "persons") or (of == "persons" and unit is None):
        raise ValueError(f"of must be 'rows', or of a study with person= also 'persons', not {of!r}")
    # Under replace the sum of weights is not public as the number of records is.
    has_weights = facts.weights is not None and of == "rows" and not (unit is not None and unit.most_rows == 1)
    if where is None and adjacency == Adjacency.REPLACE.value and not has_weights:
        counted = "records is public: it is len(frame)"
        if unit is not None:
            votes = "" if of == "persons" else f", and all rows of one {unit.name} count as one"
            counted = f"{plural(unit.name)} is public{votes}"
        raise ValueError(
            f"under replace the number of {counted}. A count of some of them needs a condition, like "
            "count(\"region == 'north'\", epsilon=1)"
        )
    read = () if where is None else conditions.read(where, facts.levels, facts.missing, facts.dates)
    response: Any = Meets(where or "", read, "records" if unit is None else "votes")
    if unit is not None and of == "persons":
        response = AnyRow(response, unit)
    bounds = Bounds(y=(0.0, 1.0), missing_y=response.substitute)
    made = GeometricMechanism(bounds, epsilon, adjacency, counted=[1])
    title, condition = "number of records", f" where {where}" if where else ""
    if unit is not None:
        several = plural(unit.name)
        title, condition = {
            "persons": (f"number of {several}", condition and f" with a row{condition}"),
            "rows": (f"votes of {several}", condition and f" in rows{condition}"),
        }[of]
    return Analysis(f"{title}{condition}", response, None, (Part("count", made),), names_of_values=(response.name,))


def table(axes: Sequence[Axis], epsilon: Any, adjacency: str, title: str) -> Analysis:
    """Plans counts of the records in each cell of a table: each record is in one cell."""
    response = Classification(tuple(axes))
    cells = math.prod(response.shape)
    bounds = Bounds(y=(0.0, cells - 1.0), missing_y=response.substitute)
    made = GeometricMechanism(bounds, epsilon, adjacency)
    return Analysis(f"{title} of {response.name}", response, None, (Part("count", made),), names_of_values=())


def axis(facts: Any, column: str, edges: Any) -> Axis:
    """Returns the side of a table that a column makes.

    **Arguments:** `facts`: a `PublicFacts`. `edges`: of a column of numbers, in how many equal intervals its bounds are
    to be cut, ten if left out; or the ends of the intervals, from one bound to the other, as dates or days where bounds
    are dates. Raises ValueError for a column without bounds and levels, and for edges of levels or beside the bounds.
    """
    policy, of_dates = facts.policy_of(column), facts.dates
    if column in facts.levels:
        if edges is not None:
            raise ValueError(f"{column!r} is a category, whose public levels make the table: leave its edges out")
        return Axis(column, levels=tuple(facts.levels[column]), missing=policy)
    if column not in facts.bounds:
        words = (
            f"column {column!r} needs public levels, levels={{{column!r}: (...)}}, or public bounds in own units, "
            f"bounds={{{column!r}: (lower, upper)}}; none may be read off the data"
        )
        raise about(ValueError(words), "levels", column)
    low, high = facts.bounds[column]
    number = _INTERVALS if edges is None else edges
    if isinstance(number, int | np.integer) and not isinstance(number, bool):
        if number < 2:
            raise ValueError(f"edges must be at least two intervals, or their ends, not {number}")
        ends = np.linspace(low, high, int(number) + 1).tolist()
        return Axis(column, edges=(low, *ends[1:-1], high), missing=policy)
    if isinstance(number, str) or not isinstance(number, Sequence | np.ndarray):
        raise TypeError(f"edges of {column!r} must be a number of intervals, or their ends, not {edges!r}")
    ends = tuple(map(dates.plain, number))
    if column in of_dates:
        ends = tuple(map(dates.code_in_days, ends))
    elif any(map(dates.is_date, ends)):
        raise TypeError(f"edges of {column!r} are dates, and its bounds are numbers: give dates as bounds, or numbers")
    made = Axis(column, edges=ends, missing=policy)
    if (ends[0], ends[-1]) != (low, high):
        first, last = ((column in of_dates and dates.written(end)) or f"{end:g}" for end in (low, high))
        raise ValueError(
            f"edges of {column!r} must go from one public bound to the other, {first} to {last}, as its numbers are "
            "clipped to them"
        )
    return made
