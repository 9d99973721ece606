"""Plans of synthetic tables: which columns, in which order, from which others, at which part of ε."""

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import kngjax as kng
from kngjax.accounting.exact_costs import exactly, inward
from kngjax.accounting.wording import amounts
from kngjax.core.errors import UnfitShape
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.data import formulas
from kngjax.data.passes import Passes
from kngjax.data.schema import EMPTY
from kngjax.data.tables import opened, records_of
from kngjax.draws.lattice.lattice import LARGEST_DIMENSION
from kngjax.mechanisms.parameters import check_count, check_epsilon
from kngjax.owner.utility_report import UtilityReport
from kngjax.releases import totals
from kngjax.releases.debits import owed
from kngjax.releases.plan import Plan
from kngjax.study.analyses import table_of, tables_of
from kngjax.study.carrying_out import AbstractAnalysis, resolved_once
from kngjax.study.checks import DeclaredColumn
from kngjax.study.quantile_processes import process_of
from kngjax.study.responses import check_column
from kngjax.study.synthesis.column_order import check_order, check_written, shares_of
from kngjax.study.synthesis.columns import AbstractColumn, Category, Ordinal, refuse_auto
from kngjax.study.synthesis.comparisons import compare
from kngjax.study.synthesis.numbers import AbstractCurvedColumn, Count, Numeric
from kngjax.study.synthesis.parts import AbstractPart, CurvesPart, TablePart, Values, drawn

_KINDS = {kind.__name__: kind for kind in (Category, Ordinal, Count, Numeric)}
_HEAPS = Fraction(1, 4)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SynthesisPlan(AbstractAnalysis, AbstractSummarised):
    """Plans the tables and curves that are released for a synthetic table, and what each costs: print it.

    `kngjax.synthesis.plan` makes a plan, and `kngjax.synthesize` carries it out. All of a plan is public; before that
    nothing is spent, and no value is seen.

    **Arguments:** as of `kngjax.synthesis.plan`, `rows_share` being `rows` as a fraction of ε, 0 under replace.
    """

    columns: tuple[AbstractColumn, ...]
    epsilon: float
    adjacency: kng.Adjacency
    rows_share: Fraction
    max_records: int | None = None
    force: bool = False
    unit: kng.Unit | None = None
    title: str = dataclasses.field(default="synthesis", init=False)

    def __post_init__(self) -> None:
        # Impossible plans are refused here.
        check_order(self.columns)
        for column in self.columns:
            check_written(column)
        labels = [part.label for part in self.parts()]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"two releases would be called {twice[0]!r}: give the column another name in the frame")

    @functools.cached_property
    def shares(self) -> dict[str, Fraction]:
        """Returns the part of ε that each column has, by name."""
        return shares_of(self.columns, self.rows_share)

    @resolved_once
    def parts(self, num_records: int | None = None) -> list[AbstractPart]:
        """Lists the releases, in order. **Arguments:** `num_records`: n, where it is public."""
        whole = exactly(self.epsilon)
        most = self.max_records if num_records is None else num_records
        made: list[AbstractPart] = []
        if self.rows_share:
            made.append(TablePart("rows", whole * self.rows_share, self.adjacency, (), self.unit))
        for place, column in enumerate(self.columns):
            made += self._parts_of(column, self.columns[:place], whole * self.shares[column.name], most)
        return made

    def _parts_of(
        self, column: AbstractColumn, earlier: tuple[AbstractColumn, ...], epsilon: Fraction, most: int | None
    ) -> list[AbstractPart]:
        adjacency, known = self.adjacency, {one.name: one for one in earlier}
        parents = tuple(known[parent] for parent in column.parents)
        if not isinstance(column, AbstractCurvedColumn):
            return [TablePart(column.name, epsilon, adjacency, (*parents, column), self.unit)]
        later = [one.name for one in self.columns[len(earlier) + 1 :]]
        design, has_heaps = _design(column, earlier, later), bool(column.heaps)
        of_curves = epsilon * (1 - _HEAPS) if has_heaps else epsilon
        # The number of the records beside the heaps is private, see `CurvesPart`.
        is_private = has_heaps or adjacency is kng.Adjacency.ADD_REMOVE
        halved = has_heaps and adjacency is kng.Adjacency.REPLACE
        try:
            process = process_of(
                design,
                column.response,
                column.levels,
                inward(of_curves / 2 if halved else of_curves),
                "add_remove" if is_private else "replace",
                most if is_private else None,
                force=self.force,
                allow_large_epsilon=True,
            )
        except (ValueError, TypeError) as error:
            raise type(error)(f"column {column.name!r}: {error}") from None
        if self.unit is not None:
            process = dataclasses.replace(process, bounds=process.bounds.protecting(self.unit))
        curves = CurvesPart(column.name, of_curves, adjacency, column, earlier, design, process, not has_heaps)
        if not has_heaps:
            return [curves]
        table = TablePart(f"{column.name}, heaps", epsilon * _HEAPS, adjacency, (*parents, column), self.unit)
        return [table, dataclasses.replace(curves, label=f"{column.name}, beside heaps")]

    @resolved_once
    def plan_for(self, num_records: int | None = None) -> Plan:
        """Resolves all releases, before anything is spent. **Arguments:** as of `parts`. Its records are of `read`.

        Each part is a mechanism of the same records, drawn by itself: costs add up.
        """
        plans = [(part, part.plan_for(num_records)) for part in self.parts(num_records)]
        certificates = tuple(one for _, plan in plans for one in plan.certificates)
        return Plan(certificates, *self.owed(certificates), functools.partial(drawn, plans, num_records))

    def certificates(self, num_records: int | None = None) -> dict[str, kng.releases.Certificate]:
        """Certifies each release before anything is spent, by its label. **Arguments:** as of `parts`."""
        labels = [part.label for part in self.parts(num_records)]
        return dict(zip(labels, self.plan_for(num_records).certificates, strict=True))

    def price(self, certificate: kng.releases.Certificate) -> tuple[kng.Guarantee, bool]:
        """Computes what a release costs for neighbours of the whole table, and whether that is proved."""
        cost, proved = owed(certificate)
        return (cost if cost.adjacency is self.adjacency else cost.to_replace()), proved

    def owed(self, certificates: Sequence[kng.releases.Certificate]) -> tuple[kng.Guarantee, bool]:
        """Computes what a ledger debits for releases of these certificates, and whether they provably cost no more."""
        costs = [self.price(one) for one in certificates]
        return totals.composed([cost for cost, _ in costs]), all(proved for _, proved in costs)

    @property
    def cost(self) -> kng.Guarantee:
        """Composes the guarantees of all releases; synthetic tables that are drawn from them add nothing."""
        return self.plan_for().cost

    def check(self, frame: Any) -> Any:
        """Returns a frame's table if columns and types serve; no value is looked at. Raises as `Analysis.check`."""
        tables = tables_of(frame)
        for table, column in itertools.product(tables, self.columns):
            check_column(table, column.name, "the plan")
        if self.adjacency is kng.Adjacency.REPLACE and len(tables[0]) == 0:
            raise UnfitShape(EMPTY)
        return tables[0]

    def read(self, frame: Any) -> Values:
        """Returns the values of all columns by name, each of its own cell alone. Private.

        Raises as `check`, and ValueError for missing cells without a policy; no message tells a value.
        """
        table = self.check(opened(table_of(frame)))
        return {column.name: column.read(table[column.name]) for column in self.columns}

    def records(self, frame: Any) -> Values | Passes:
        """Reads as `read` does, or of a table on an engine batch by batch. Private."""
        return records_of(table_of(frame), [column.name for column in self.columns], self.read)

    @property
    def notes(self) -> list[str]:
        return [f"{self.title}, {part.label}: {part.what}" for part in self.parts()]

    def words_of(self, part: None) -> dict[str, Any]:
        return {"synthesis": self.to_dict()}

    def plan_of(self, part: None, num_records: int | None) -> Plan:
        return self.plan_for(self.adjacency.public_count(num_records))

    def prepare(self, part: None, records: Any) -> None:
        """Does nothing: values that were read need no preparation."""

    @property
    def declared(self) -> list[DeclaredColumn]:
        """Lists what was said of each column, for the owner's check."""
        return [
            DeclaredColumn(one.name, None, one.levels, one.missing, has_others=True)
            if isinstance(one, Category)
            else DeclaredColumn(one.name, one.facts[0], None, getattr(one, "missing", None))
            for one in self.columns
        ]

    def compared(self, frame: Any, drawn: Any, formula: str | None = None) -> UtilityReport:
        """Compares a drawn table with the private one, for `kngjax.owner.utility`. FOR THE DATA OWNER ONLY.

        **Arguments:** `drawn`: a data frame with these columns, whoever made it, read as the private one is.
        """
        return compare(self, self.shown(frame), self.shown(drawn), formula)

    def shown(self, frame: Any) -> dict[str, np.ndarray]:
        """Returns the columns of a table as synthetic ones have them, each cell by itself. Private, where the table is.

        Raises as `read`, and ValueError for a table without records.
        """
        values = self.read(frame)
        columns = {column.name: column.shown(values[column.name]) for column in self.columns}
        if not len(next(iter(columns.values()))):
            raise ValueError("a table has no record: there is nothing to compare")
        return columns

    @functools.cached_property
    def facts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the bounds of the columns of numbers and the levels of the others, as formulas take them."""
        return _facts(self.columns)

    def summary(self) -> SummaryTable:
        """Lays out what is released for each column and what that costs, and the sum."""
        return self.table_of("Synthesis", self.parts(), self.certificates())

    def table_of(
        self, title: str, parts: Sequence[AbstractPart], of: Mapping[str, kng.releases.Certificate]
    ) -> SummaryTable:
        """Lays out what parts release, their assurance and their ε, and the sum.

        **Arguments:** `of`: the certificate of each part, by label.
        """
        total, made = self.owed(list(of.values()))[0], [(part.label, of[part.label]) for part in parts]
        rows = [(label, one.assurance, amounts(self.price(one)[0])[0]) for label, one in made]
        rows += [("all together", "", amounts(total)[0])]
        notes = [*(f"{part.label}: {part.what}" for part in parts), f"all together: {total.explain()}"]
        return SummaryTable(title, (), ("release", "assurance", "epsilon"), rows, 2, notes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as JSON-ready values."""
        columns = [column.to_dict() for column in self.columns]
        fields = {"columns": columns, "epsilon": self.epsilon, "adjacency": str(self.adjacency)}
        fields |= {"rows": str(self.rows_share), "max_records": self.max_records, "force": self.force}
        # Of a record as other versions write it.
        fields |= {} if self.unit is None else {"unit": self.unit.name}
        return json.loads(json.dumps(fields))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "SynthesisPlan":
        """Makes the plan of such values again."""
        columns = []
        for one in fields["columns"]:
            if one["type"] not in _KINDS:
                raise ValueError(f"there is no column of the kind {one['type']!r}; there are {', '.join(_KINDS)}")
            columns.append(_KINDS[one["type"]](**{name: field for name, field in one.items() if name != "type"}))
        adjacency = kng.Adjacency.parse(fields["adjacency"])
        unit = fields.get("unit")
        rest = fields["max_records"], fields["force"], None if unit is None else kng.Unit(unit)
        return cls(tuple(columns), fields["epsilon"], adjacency, Fraction(fields["rows"]), *rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SynthesisPlan) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))


def plan(
    columns: Any,
    *,
    epsilon: Any,
    adjacency: str | None = None,
    rows: Any = None,
    max_records: Any = None,
    force: bool = False,
    allow_large_epsilon: bool = False,
    unit: str | None = None,
) -> SynthesisPlan:
    """Plans a synthetic table: its columns in the order in which they are drawn, each given earlier ones.

        P(x_1, ..., x_k) = ∏_j P(x_j | those of x_1, ..., x_{j-1} that column j names)

    `Category` and `Ordinal` are drawn from a table of noisy counts by the levels of their parents, `Count` and
    `Numeric` from quantile curves of a formula, `kngjax.QuantileProcess`. The parts of ε add up to it.

    **Proof.** Each record is read by itself (`SynthesisPlan.read`), so that neighbouring tables become neighbouring
    lists of values. Every part is a mechanism of all of these, at its own price for the adjacency of the plan
    (`TablePart`, `CurvesPart`), and none uses what another one released: the prices add up. What is drawn afterwards is
    a function of the releases and of random numbers alone. ∎

    **Arguments:** all public, and chosen without looking at the data; "auto" is refused.

    - `columns`: a list of `Category`, `Ordinal`, `Count` and `Numeric`. Columns with a `share` have that part of ε; the
        others divide the rest equally.
    - `epsilon`: ε of all together, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" (one record exchanged, their number public) or "add_remove" (one more or less).
    - `rows`: under add_remove the part of ε for the number of records, .05 if left out. Under replace it is public.
    - `max_records`: under add_remove a number that n does not exceed, 2^20 if left out; with more a release fails.
    - `force`: whether to release curves although public facts foresee little but noise.
    - `unit`: whom guarantees protect, like "patient", if each record is a patient; None for a record.

    Raises ValueError or TypeError for what cannot be, with the column's name.
    """
    refuse_auto("the plan", columns=columns, rows=rows, epsilon=epsilon, max_records=max_records)
    meant = kng.Adjacency.parse(adjacency)
    exact = float(check_epsilon(epsilon, allow_large_epsilon))
    if isinstance(columns, str | Mapping) or not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of Category, Ordinal, Count and Numeric, not {columns!r}")
    every = tuple(columns)
    for column in every:
        if not isinstance(column, AbstractColumn):
            raise TypeError(f"columns must be Category, Ordinal, Count or Numeric, not {type(column).__name__}")
    if not every:
        raise ValueError("a synthetic table needs a column")
    if meant is kng.Adjacency.REPLACE:
        if rows is not None or max_records is not None:
            raise ValueError("under replace the number of records is public: leave rows and max_records out")
        share = Fraction(0)
    else:
        share = exactly(0.05 if rows is None else rows, "rows")
        if not 0 < share < 1:
            raise ValueError(f"rows must be a part of epsilon between 0 and 1, like 0.05, not {rows!r}")
    most = None if max_records is None else int(check_count("max_records", max_records, "a number n does not exceed"))
    return SynthesisPlan(every, exact, meant, share, most, bool(force), None if unit is None else kng.Unit(unit))


def _facts(columns: tuple[AbstractColumn, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    facts = [(column.name, *column.facts) for column in columns]
    bounds = {name: ends for name, ends, _ in facts if ends is not None}
    return bounds, {name: levels for name, _, levels in facts if levels is not None}


def _design(column: AbstractCurvedColumn, earlier: tuple[AbstractColumn, ...], later: Sequence[str]) -> Any:
    """The terms of the column's formula; None without one."""
    if column.given is None:
        return None
    try:
        design = formulas.read(f"`{column.name}` ~ {column.given}", *_facts(earlier)).design
    except ValueError as error:
        before = ", ".join(repr(one.name) for one in earlier) or "none"
        too_late = [repr(name) for name in later if re.search(rf"\b{re.escape(name)}\b", column.given)]
        why = f"put {', '.join(too_late)} before {column.name!r}" if too_late else error
        raise ValueError(f"given of {column.name!r} may name earlier columns, here {before}: {why}") from None
    if len(design.names) > LARGEST_DIMENSION:
        raise ValueError(
            f"given of {column.name!r}, {column.given!r}, has {len(design.names)} coefficients with the intercept, and "
            f"curves by halving take up to {LARGEST_DIMENSION}: leave terms out"
        )
    return design
