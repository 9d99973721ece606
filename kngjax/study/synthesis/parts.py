"""Releases the counts and quantile curves of a synthetic table, each with its price."""

import abc
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.accounting.exact_costs import inward
from kngjax.data.passes import Passes
from kngjax.data.terms import Design
from kngjax.mechanisms.geometric import MOST_CELLS
from kngjax.releases.plan import Plan
from kngjax.releases.release import plan_for
from kngjax.study.synthesis.columns import AbstractColumn
from kngjax.study.synthesis.numbers import AbstractCurvedColumn

Values = Mapping[str, np.ndarray]


class AbstractPart(abc.ABC):
    """Describes one release for a synthetic table. All of it is public.

    `label`: its name among all parts. `epsilon`: the part of the plan's ε that is its own. `adjacency`: of the table.
    `mechanism`: that makes the release, unless a quantile process does.
    """

    label: str
    epsilon: Fraction
    adjacency: kng.Adjacency
    mechanism: Any

    @property
    def column_name(self) -> str:
        """Returns the column that is drawn from the release; empty where none is."""
        return ""

    @property
    @abc.abstractmethod
    def what(self) -> str:
        """Describes in words what is released."""

    @abc.abstractmethod
    def records(self, values: Values, rows: int) -> tuple[Any, Any]:
        """Returns X and y of the mechanism, each row made of its record alone. Private.

        **Arguments:** `values`: of the columns by name, as these read them. `rows`: n.
        """

    def plan_for(self, num_records: int | None) -> Plan:
        """Resolves the draw, before a value is looked at. **Arguments:** `num_records`: n where it is public."""
        return plan_for(self.mechanism, num_records)


@dataclasses.dataclass(frozen=True)
class TablePart(AbstractPart):
    """Counts the records of each combination of levels of columns, plus whole noise (`kngjax.GeometricMechanism`).

    A record is in one cell, so that one more or less changes one count by 1, and an exchanged one changes two: the law
    of each count has the rate ε under add_remove, and ε/2 under replace.

    **Arguments:** `columns`: the parents, then the column itself; none where the number of all records is counted,
    under add_remove. `unit`: of which each record is one.
    """

    label: str
    epsilon: Fraction
    adjacency: kng.Adjacency
    columns: tuple[AbstractColumn, ...]
    unit: kng.Unit | None = None

    def __post_init__(self) -> None:
        if math.prod(self.shape) > MOST_CELLS:
            raise ValueError(
                f"the table of {self.label} has {math.prod(self.shape):,} cells: {MOST_CELLS:,} is the most, and noise "
                "drowns far fewer. Take fewer parents"
            )

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Returns the number of levels of each column."""
        return tuple(len(column.labels) for column in self.columns)

    @property
    def column_name(self) -> str:
        return self.columns[-1].name if self.columns else ""

    @property
    def what(self) -> str:
        if not self.columns:
            return "the number of records"
        *parents, own = self.columns
        by = f" by {', '.join(parent.name for parent in parents)}" if parents else ""
        counted = f"{self.shape[-1]} levels" if own.is_parent else f"{self.shape[-1] - 1} heaps and all beside them"
        noise = float(self.mechanism.noise.deviations(1, None)[0])
        return f"counts of {counted}{by}, {math.prod(self.shape)} cells; noise of each has the deviation {noise:.3g}"

    @functools.cached_property
    def mechanism(self) -> kng.GeometricMechanism:
        """Makes the mechanism that counts the records of all cells; without columns all records are in cell 1."""
        bounds = kng.Bounds(y=(0.0, max(math.prod(self.shape) - 1.0, 1.0)), unit=self.unit)
        given = bounds, inward(self.epsilon), self.adjacency, None if self.columns else [1]
        return kng.GeometricMechanism(*given, allow_large_epsilon=True)

    def records(self, values: Values, rows: int) -> tuple[None, np.ndarray]:
        if not self.columns:
            return None, np.ones(rows)
        places = [column.places(values[column.name]) for column in self.columns]
        return None, np.ravel_multi_index(places, self.shape).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class CurvesPart(AbstractPart):
    """Releases quantile curves of a column, of all records or of those that are at none of its heaps, by halving.

    **All records.** The process is a `kngjax.QuantileProcess` for the adjacency of the table, at ε.

    **Records beside the heaps.** Their number is private under either adjacency, and an exchanged record may leave
    them, enter them, or both. The process is one for add_remove, which is ε'-private for one record of it more or less
    and whose law does not use their number. Let D, D' be neighbours, and S, S' their records beside the heaps; each
    record says by itself whether it is one of them.

    - add_remove: S' is S, or has one record more or less. ε' = ε.
    - replace: S' is S without one record, or with one more, or both, S → S∖{r} → S∖{r} ∪ {r'}: two steps of ε' each
      at most, so that P(output | S) ≤ e^{2ε'}·P(output | S'). ε' = ε/2. One step would not do: a record that goes from
      far below all curves to far above them makes both in the same direction.

    So its price is ε again, of which `Guarantee.to_replace` is the proof for every kind of guarantee. Nothing is lost
    beside a process for replace but at the first depth: all others have these prices there too.

    **Arguments:** `column`: whose curves. `earlier`: the columns before it. `design`: the terms; None where they depend
    on nothing. `process`: at ε'. `are_all`: whether of all records.
    """

    label: str
    epsilon: Fraction
    adjacency: kng.Adjacency
    column: AbstractCurvedColumn
    earlier: tuple[AbstractColumn, ...]
    design: Design | None
    process: kng.QuantileProcess
    are_all: bool

    @property
    def column_name(self) -> str:
        return self.column.name

    @property
    def what(self) -> str:
        given = f" given {self.column.given}" if self.column.given else ""
        which = "" if self.are_all else ", of the records beside its heaps"
        return f"{len(self.process.levels)} quantile curves of {self.column.response.name}{given}{which}"

    def plan_for(self, num_records: int | None) -> Plan:
        try:
            return plan_for(self.process, num_records)
        except ValueError as error:
            raise ValueError(f"column {self.column.name!r}: {error}") from None

    def records(self, values: Values, rows: int) -> tuple[np.ndarray | None, np.ndarray]:
        own = values[self.column.name]
        chosen = np.ones(rows, bool) if self.are_all else self.column.are_beside_heaps(own)
        return self.matrix({name: column[chosen] for name, column in values.items()}), self.column.response.of(
            own[chosen]
        )

    def matrix(self, values: Values) -> np.ndarray | None:
        """Returns the columns of the design, shape (n, k), of values of the columns by name; None without terms."""
        if self.design is None:
            return None
        named = [column for column in self.earlier if column.name in self.design.columns]
        return self.design.matrix_of({column.name: column.in_formulas(values[column.name]) for column in named})


def drawn(
    plans: Sequence[tuple[AbstractPart, Plan]], count: int | None, values: Values | Passes, progress: bool | None
) -> list[kng.Release]:
    """Draws what all parts release, of the same records. Private until all are kept. **Arguments:** `count`: n or None.

    Raises RuntimeError for another number of records.
    """
    made = []
    for part, plan in plans:
        of_part = functools.partial(_of_part, part, count)
        one_by_one = functools.partial(_of_part, part, None)
        own = (values.mapped(one_by_one, count), None) if isinstance(values, Passes) else of_part(values)
        made += plan.draw(own, False)
    return made


def _of_part(part: AbstractPart, count: int | None, values: Values) -> tuple[Any, Any]:
    rows = len(next(iter(values.values())))
    if count not in (None, rows):
        raise RuntimeError("the frame has another number of records than its releases are certified for")
    return part.records(values, rows)
