"""Classifies records for tables: by the public cell that each lies in, or by whether it meets a public condition."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int

from kngjax.accounting.adjacency import plural
from kngjax.data import cells
from kngjax.data.conditions import Condition
from kngjax.data.missing import DROP
from kngjax.data.named_columns import Columns
from kngjax.data.persons import Unit, check_identifiers, codes_of, count_in
from kngjax.data.records import NOT_FINITE
from kngjax.data.terms import Categorical
from kngjax.data.terms.base import is_number, refuse_missing
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
        places = [axis.places(table[axis.column]) for axis in self.axes]
        dropped = np.any([one < 0 for one in places], axis=0)
        numbers = np.ravel_multi_index([np.maximum(one, 0) for one in places], self.shape)
        return np.where(dropped, np.nan, numbers.astype(np.float64))


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
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {}

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
    def person(self) -> str | None:
        return self.unit.column

    @property
    def name(self) -> str:
        several = plural(self.unit.name)
        return f"{several} with {self.rows.text}" if self.rows.text else several

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {}

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

    def count(self, table: Any) -> int:
        return count_in(table, self.unit)

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
