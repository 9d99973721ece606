"""An analysis states in full, before a table is looked at, what is released from it: terms, response, mechanisms."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.core.errors import UNREADABLE, UnfitShape, UnfitType, hiding
from kngjax.data import dates
from kngjax.data.missing import Codes, explain_codes, without_codes
from kngjax.data.named_columns import Columns
from kngjax.data.passes import Passes
from kngjax.data.persons import Shares
from kngjax.data.schema import EMPTY
from kngjax.data.tables import on_its_engine, records_of, require_whole_persons
from kngjax.data.terms import Design
from kngjax.data.weights import with_weights
from kngjax.releases.debits import settings
from kngjax.releases.plan import Plan
from kngjax.releases.release import plan_for
from kngjax.releases.told import telling
from kngjax.study.carrying_out import AbstractAnalysis, Step, resolved_once
from kngjax.study.responses import AbstractResponse, Response

# Basis, response and weights, one row a record.
Prepared = tuple[np.ndarray | None, np.ndarray, Any]


@dataclass(frozen=True)
class Part:
    """Describes one release of an analysis. Public.

    **Arguments:** `label`: its name in tables. `mechanism`: its settings. `plan`: of the estimate with intervals,
    `mechanism` being that of the estimate alone, at what the plan leaves it of ε; or of curves of several levels,
    `mechanism` being that of the first one; None of one mechanism alone. `kept`: of what is drawn with others by one
    plan, the part of ε that has the same noise alone.
    """

    label: str
    mechanism: Any
    plan: kng.WithIntervals | kng.QuantileProcess | None = None
    kept: float = 1.0

    @property
    def has_intervals(self) -> bool:
        """Tells whether what intervals are made of is released with it."""
        return isinstance(self.plan, kng.WithIntervals)

    def changed(self, made: Callable[[Any], Any], of_bounds: Callable[[kng.Bounds], kng.Bounds]) -> "Part":
        """Copies the part with another mechanism, and its plan with it.

        **Arguments:** `made`: makes the mechanism of the one that is there. `of_bounds`: alike the bounds of curves of
        several levels.
        """
        if self.plan is None:
            return replace(self, mechanism=made(self.mechanism))
        if isinstance(self.plan, kng.QuantileProcess):
            plan = replace(self.plan, bounds=of_bounds(self.plan.bounds))
            return replace(self, mechanism=plan.halving().first, plan=plan)
        plan = replace(self.plan, mechanism=made(self.plan.mechanism))
        return replace(self, mechanism=plan.making().mechanism, plan=plan)

    def protecting(self, unit: kng.Unit) -> "Part":
        """Copies the part for a unit of which each record is one."""

        def of_mechanism(mechanism: Any) -> Any:
            return eqx.tree_at(lambda one: one.bounds, mechanism, mechanism.bounds.protecting(unit))

        return self.changed(of_mechanism, lambda bounds: bounds.protecting(unit))

    @functools.cached_property
    def alone(self) -> "tuple[Part, ...]":
        """Splits the part for previews: a quantile process into a mechanism for each level with the same noise."""
        if not isinstance(self.plan, kng.QuantileProcess):
            return (self,)
        each = zip(self.plan.levels, self.plan.halving().stand_ins(self.plan.levels), strict=True)
        whole = float(self.plan.epsilon)
        return tuple(Part(of_level(level), one, kept=float(one.epsilon) / whole) for level, one in each)

    @property
    def whole(self) -> Any:
        """Returns the plan, or without one the mechanism: what `kngjax.release` is asked for."""
        return self.mechanism if self.plan is None else self.plan

    @property
    def settings(self) -> Any:
        """Lists the settings of the mechanism or plan, JSON-ready."""
        return settings(self.mechanism) if self.plan is None else self.plan.settings()

    @resolved_once
    def plan_for(self, num_records: int | None, sampler: Any = None) -> Plan:
        """Resolves the draws of the part, once for what certificates are told to say. Its records are `Prepared`.

        **Arguments:** `num_records`: used where it is public. `sampler`: what is asked for, or None.
        """
        count = self.mechanism.adjacency.public_count(num_records)
        return plan_for(self.whole, count, sampler).of(functools.partial(pair_of, self.mechanism, count))


def pair_of(mechanism: Any, count: int | None, columns: Prepared | Passes) -> tuple[Any, Any]:
    """Returns X, with weights if records have them, and y, as a mechanism takes them. Private.

    **Arguments:** `count`: n, where it is public. `columns`: as of `Analysis.records`.
    """
    if isinstance(columns, Passes):
        return columns.mapped(functools.partial(pair_of, mechanism, None), count), None
    x, y, weights = columns
    if count not in (None, weights.persons if isinstance(weights, Shares) else len(y)):
        raise RuntimeError("the frame has another number of records than its releases are certified for")
    if mechanism.loss.has_response:
        return with_weights(x, weights), y
    # Means and sums have columns alone.
    return with_weights(y[:, None] if y.ndim == 1 else y, weights), None


@dataclass(frozen=True, repr=False)
class Analysis(AbstractAnalysis):
    """Releases from one table that belong together, as quantile regressions of several levels do. Public.

    **Arguments:** `title`: what it is, in words. `response`: what is regressed, averaged or counted of each record.
    `design`: the terms; None where there are none. `parts`: one a release. `formula`: as it was written, or None.
    `names_of_values`: of what is released, where that is no regression. `link`: what a prediction is the mean by,
    "identity", "odds" (their logarithm is predicted) or "rate" (its logarithm is). `weights`: the column of the
    records' weights, a `SurveyWeights`, or of `Persons` who share votes; None where they have none: then no mechanism
    of the parts has bounds for it. `unweighted`: the same without them, of which more is known beforehand. `sampler`:
    what is asked for of each release, or None. `scale`: how far responses scatter, a public guess, or None. `force`:
    whether it is released although public facts say that it is little but noise. `expected`: what they say, once that
    was asked. `remake`: makes the same of another `epsilon` of all parts and another `count` of records, on which its
    settings depend; None where they do not. `codes`: by column what stands for a missing cell. `dates`: the columns of
    dates, which count as days. `sizes`: by column how many different cells its bounds or levels let expect, if they are
    whole numbers or levels.
    """

    title: str
    response: AbstractResponse
    design: Design | None
    parts: tuple[Part, ...]
    formula: str | None = None
    names_of_values: tuple[str, ...] | None = None
    link: str = "identity"
    weights: Any = None
    unweighted: "Analysis | None" = None
    sampler: Any = None
    scale: float | None = None
    force: bool = False
    expected: Any = None
    remake: Callable[..., "Analysis"] | None = None
    codes: Codes = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    sizes: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        kinds = sorted({type(part.mechanism).__name__ for part in self.parts})
        return f"<Analysis: {self.what}, by {', '.join(kinds)}>"

    @property
    def previewed(self) -> tuple[Part, ...]:
        """Lists the parts that previews show: a quantile process has one for each level."""
        return tuple(one for part in self.parts for one in part.alone)

    @property
    def names(self) -> tuple[str, ...]:
        """Names the numbers that a released value consists of, in own units."""
        if self.names_of_values is not None:
            return self.names_of_values
        return (self.response.name,) if self.design is None else self.design.names

    def names_of(self, part: Part) -> tuple[str, ...]:
        """Names the numbers of one release: a single one where several are released one by one, else all `names`."""
        if self.names_of_values is None or len(self.parts) == 1:
            return self.names
        return (self.names_of_values[[one.label for one in self.parts].index(part.label)],)

    def at(self, epsilon: float, count: int) -> "Analysis | None":
        """Makes the analysis for another ε of all parts and another n.

        The result is None where no setting depends on them, or where no such analysis can be made.
        """
        if self.remake is None:
            return None
        try:
            made = self.remake(epsilon=epsilon, count=count)
            return made if self.weights is None else self.weights.given_to(made)
        except ValueError:
            return None

    def protecting(self, unit: kng.Unit) -> "Analysis":
        """Copies the analysis for a unit of which each record is one."""
        return replace(self, parts=tuple(part.protecting(unit) for part in self.parts))

    def forced(self, force: bool) -> "Analysis":
        """Copies the analysis with this `force`."""
        return replace(self, force=bool(force))

    def steps(self, number: int | None = None) -> list["Step"]:
        if number is None:
            return [Step(part.label, self, part) for part in self.parts]
        return [Step(self.label(number, part.label), self, part) for part in self.parts]

    def words_of(self, part: Part) -> dict[str, Any]:
        told = {"read": list(self.told)} if self.told else {}
        about = {"analysis": self.title, "formula": self.formula, "response": self.response.name}
        return about | {"mechanism": part.settings} | told

    def plan_of(self, part: Part, num_records: int | None) -> Plan:
        with telling(*self.told, *(() if part.plan is None else part.plan.told)):
            return part.plan_for(num_records, self.sampler)

    def prepare(self, part: Part, records: Prepared | Passes) -> None:
        part.mechanism.prepare(*pair_of(part.mechanism, None, records))

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the columns that the analysis reads."""
        of_design = () if self.design is None else self.design.columns
        of_weights = () if self.weights is None else (self.weights.column,)
        return tuple(dict.fromkeys((*self.response.columns, *of_design, *of_weights)))

    @property
    def person(self) -> str | None:
        """Returns the column that identifies persons; None where each record is one."""
        return (self.response if self.weights is None else self.weights).person

    @property
    def told(self) -> tuple[str, ...]:
        """Says for certificates which codes and dates are read, and how the response is made."""
        return self.told_with(())

    def told_with(self, others: Sequence[str]) -> tuple[str, ...]:
        """Says the same of these columns too, which groups are by."""
        columns = (*others, *self.columns)
        read = *explain_codes(self.codes, columns, self.dates), *dates.explain(self.dates, columns)
        return (*read, *self.response.told)

    def check(self, frame: Any) -> Any:
        """Returns the table of a frame, if its columns and types serve; no value is looked at.

        Raises `UnfitType` for what is no frame and for columns of dates or lists; `UnfitShape` for absent columns, and
        for no record where n is public, under replace.
        """
        first, *others = tables_of(frame)
        table = self._checked(first)
        for other in others:
            self._checked(other)
        require_whole_persons(first, self.person)
        if self.adjacency is kng.Adjacency.REPLACE and len(table) == 0:
            raise UnfitShape(EMPTY)
        return table

    def _checked(self, table: Any) -> Any:
        table = dates.with_days(table, self.dates)
        self.response.check(table)
        if self.design is not None:
            self.design.check(table)
        if self.weights is not None:
            self.weights.check(table)
        return table

    def count_of(self, table: Any) -> int:
        return (self.response if self.weights is None else self.weights).count(table)

    @property
    def adjacency(self) -> kng.Adjacency:
        """Returns the adjacency of the mechanisms."""
        return self.parts[0].mechanism.adjacency

    def records(self, frame: Any) -> Prepared | Passes:
        """Maps each record by itself to its basis columns, its response and its weight. Private.

        The arrays are (n, k), None without terms; (n,) or (n, columns); and (n,), None without weights. Records that
        are dropped are NaN. Raises as `check`, and ValueError for missing cells without a policy; no message tells a
        value. Of a table on an engine they are those of each batch.
        """
        return records_of(table_of(frame), self.columns, self.reader.read, sizes=self.sizes, person=self.person)

    @property
    def reader(self) -> "Analysis":
        """Copies what reading needs, as it is sent to where tables rest."""
        nothing: Any = {"unweighted": None, "expected": None, "remake": None, "sizes": {}}
        return replace(self, **nothing)

    def read(self, table: Any, places: np.ndarray | None = None) -> Prepared:
        """Makes `records` of a table in memory. Private. **Arguments:** `places`: of groups, if records are in some."""
        table = without_codes(self._checked(table_of(table)), self.codes)
        x = None if self.design is None else self.design.matrix(table)
        y = self.response.of_table(table)
        if self.weights is None:
            return x, y, None
        is_kept = ~np.isnan(y).any(axis=tuple(range(1, y.ndim)))
        if x is not None:
            is_kept &= ~np.isnan(x).any(axis=1)
        read = [one for one in (x, y, places) if one is not None]
        return x, y, self.weights.cells_of(table, read, is_kept)

    def made_by(self, steps: Sequence[Any]) -> "Analysis":
        return replace(self, parts=tuple(step.part for step in steps))


# Advice for types that are often given in place of a frame.
_FRAMES = {
    "ndarray": ": name its columns, pandas.DataFrame(array, columns=['age', 'height'])",
    "Series": ": give one with its column, series.to_frame()",
    "DuckDBPyConnection": ": give a query, connection.sql('FROM people')",
    "TextFileReader": ": give the file's path, or a query of it by DuckDB or polars",
    "list": ": several files are a folder or a pattern, 'people/*.parquet'",
    "Passes": ": give what the stream is of, a path, a query or a frame",
}


def table_of(frame: Any) -> Any:
    """Turns a frame into a table of narwhals, and what rests on an engine into `Columns`, which it returns as they are.

    Raises `UnfitType` for anything else, without a word of its contents.
    """
    frame = on_its_engine(frame)
    if isinstance(frame, Columns):
        return frame
    # The words of other packages may tell a frame's own names.
    read = functools.partial(nw.from_native, frame, eager_only=True, pass_through=True)
    table = hiding(read, UnfitType(UNREADABLE))
    if not isinstance(table, nw.DataFrame):
        advice = _FRAMES.get(type(frame).__name__, "")
        raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}{advice}")
    return table


def tables_of(frame: Any) -> list[Any]:
    """Lists the tables that show the columns and types of a frame: one, or of files one each."""
    table = table_of(frame)
    return [table, *table.others] if isinstance(table, Columns) else [table]


def names_of_values(mechanism: Any, of: str) -> tuple[str, ...]:
    """Names the numbers that a released value of one column consists of. **Arguments:** `of`: the column."""
    if isinstance(mechanism, kng.PrivateQuantile):
        return tuple(f"{float(tau)!r}-quantile of {of}" for tau in np.ravel(mechanism.tau))
    if isinstance(mechanism, kng.QuantileInterval):
        return tuple(f"{float(mechanism.tau)!r}-quantile of {of}, {end} end" for end in ("lower", "upper"))
    if isinstance(mechanism, kng.GeometricMechanism):
        cells = mechanism.counted or range(mechanism.ends[0], mechanism.ends[1] + 1)
        return tuple(f"count of {of} = {cell}" for cell in cells)
    return (f"{getattr(mechanism, 'statistic', 'mean')} of {of}",)


def of_level(level: float) -> str:
    """Names the curve of this level."""
    return f"tau = {level!r}"


def bounds_of(
    design: Design | None, response: Response, of_response: Mapping[str, Any] | None = None, hull: Any = None
) -> kng.Bounds:
    """Returns the public promises of the basis columns and of the transformed response.

    **Arguments:** `of_response`: what the bounds say of y; its ends if left out. `hull`: of the basis columns, or None.

    The policy of missing cells is applied where cells become columns; here the certificate is told of it, in units of
    the basis.
    """
    given = {"y": response.ends} if of_response is None else of_response
    if design is None:
        return kng.Bounds(missing_y=response.substitute, **given)
    missing = [policy for term in design.terms for policy in term.substitutes]
    of_columns = {"intercept": design.intercept, "hull": hull, "columns": design.column_names, "missing": missing}
    return kng.Bounds((design.lower, design.upper), missing_y=response.substitute, **of_columns, **given)
