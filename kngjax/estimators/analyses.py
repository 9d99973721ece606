"""An analysis states in full, before a table is looked at, what is released from it: terms, response, mechanisms."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.accounting.kinds import Kind
from kngjax.core.errors import UNREADABLE, UnfitShape, UnfitType, raise_from_outside
from kngjax.data import dates
from kngjax.data.admission import EMPTY, Facts
from kngjax.data.columns import Columns, opened
from kngjax.data.missing import Codes, explain_codes, without_codes
from kngjax.data.terms import Design
from kngjax.estimators.carrying_out import Released, SharedRecords, carry_out, in_short
from kngjax.estimators.responses import AbstractResponse, Response
from kngjax.releases import totals
from kngjax.releases.debits import owed, settings
from kngjax.releases.told import telling

# Basis, response and weights, one row a record.
Prepared = tuple[np.ndarray | None, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Part:
    """Describes one release of an analysis. Public.

    **Arguments:** `label`: its name in tables. `mechanism`: its settings. `epsilon`: its exact part of a total, where
    one was declared. `plan`: of the estimate with intervals, `mechanism` being that of the estimate alone, at what the
    plan leaves it of ε; or of curves of several levels, `mechanism` being that of the first one; None of one mechanism
    alone. `kept`: of what is drawn with others by one plan, the part of ε that has the same noise alone.
    """

    label: str
    mechanism: Any
    epsilon: Fraction | None = None
    plan: kng.WithIntervals | kng.QuantileProcess | None = None
    kept: float = 1.0

    @property
    def has_intervals(self) -> bool:
        """Whether what intervals are made of is released with it."""
        return isinstance(self.plan, kng.WithIntervals)

    @functools.cached_property
    def alone(self) -> "tuple[Part, ...]":
        """Splits the part for previews: a quantile process into a mechanism for each level with the same noise."""
        if not isinstance(self.plan, kng.QuantileProcess):
            return (self,)
        each = zip(self.plan.levels, self.plan.making().stand_ins(), strict=True)
        whole = float(self.plan.epsilon)
        return tuple(Part(of_level(level), one, kept=float(one.epsilon) / whole) for level, one in each)

    @functools.cached_property
    def making(self) -> Any:
        """Every setting of its plan."""
        assert self.plan is not None
        return self.plan.making()

    @property
    def whole(self) -> Any:
        """The plan, or without one the mechanism: what `kngjax.release` is asked for."""
        return self.mechanism if self.plan is None else self.plan

    @property
    def settings(self) -> Any:
        """Lists the settings of the mechanism or plan, JSON-ready."""
        return settings(self.mechanism) if self.plan is None else self.plan.settings()

    @property
    def drawn(self) -> Any:
        """Returns the object that draws the release, every setting known: the mechanism, or the making of its plan."""
        return self.mechanism if self.plan is None else self.making

    def of_parts(self, parts: Sequence[kng.Release]) -> Released:
        """Puts a release together from those that a ledger keeps: an estimate with intervals has several there."""
        if self.plan is not None:
            return self.plan.of_parts(parts)
        [only] = parts
        return only

    def certificates(self, sampler: Any, num_records: int) -> list[kng.Certificate]:
        """Certifies all that one debit pays for. **Arguments:** as of `kngjax.releases.totals.certify`."""
        if self.plan is None:
            return [totals.certify(self.mechanism, sampler, num_records)]
        if sampler is not None:
            what = "estimates with intervals" if self.has_intervals else "quantile processes"
            raise ValueError(f"{what} take no sampler: leave it out")
        facts = Facts(self.mechanism.dimension or 1, self.mechanism.adjacency.public_count(num_records))
        made = self.plan.drawing(facts) if isinstance(self.plan, kng.QuantileProcess) else self.making
        return made.certify(facts)

    def owed(self, certificates: Sequence[kng.Certificate]) -> tuple[kng.Guarantee, bool]:
        """Computes what a ledger debits for releases of these certificates, and whether they provably cost no more."""
        return owed(*certificates) if self.plan is None else self.making.owed(certificates)

    @property
    def law(self) -> kng.Guarantee:
        """States the guarantee of a draw from exactly the mechanism's law.

        It is stated for the exact ε where one was declared and ε is the whole guarantee.
        """
        if self.plan is not None:
            return totals.composed(self.making.laws)
        stated = self.mechanism.guarantee_for(self.mechanism.dimension)
        exactly = {Kind.PURE: kng.Guarantee.pure, Kind.BOUNDED_RANGE: kng.Guarantee.bounded_range}.get(stated.kind)
        return stated if self.epsilon is None or exactly is None else exactly(self.epsilon, self.mechanism.adjacency)


@dataclass(frozen=True, repr=False)
class Analysis:
    """Releases from one table that belong together, as quantile regressions of several levels do. Public.

    **Arguments:** `title`: what it is, in words. `response`: what is regressed, averaged or counted of each record.
    `design`: the terms; None where there are none. `parts`: one a release. `formula`: as it was written, or None.
    `names_of_values`: of what is released, where that is no regression. `link`: what a prediction is the mean by,
    "identity", "odds" (their logarithm is predicted) or "rate" (its logarithm is). `weights`: the column of the
    records' weights, a `SurveyWeights`; None where they have none: then no mechanism of the parts has bounds for it.
    `unweighted`: the same without them, of which more is known beforehand.
    `sampler`: what is asked for of each release, or None. `scale`: how far responses scatter, a public guess, or None.
    `force`: whether it is released although public facts say that it is little but noise. `expected`: what they say,
    once that was asked. `remake`: makes the same of another `epsilon` of all parts and another `count` of records, on
    which its settings depend; None where they do not. `codes`: by column what stands for a missing cell. `dates`:
    the columns of dates, which count as days.
    `with_covariance`: makes the same with intervals by another covariance; None without intervals.
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
    with_covariance: "Callable[[Any], Analysis] | None" = None

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

    def forced(self, force: bool) -> "Analysis":
        """Copies the analysis with this `force`."""
        return replace(self, force=bool(force))

    def steps(self, number: int | None = None) -> list["Step"]:
        """Lists the steps, each with its debit. **Arguments:** `number`: of the analysis, where there are several."""
        start = "" if number is None else f"{number}. {self.what}, "
        return [Step(f"{start}{part.label}", self, part) for part in self.parts]

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Certifies the releases before any is debited. **Arguments:** `num_records`: used where it is public."""
        return [one for step in self.steps() for one in step.certificates(num_records)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the analysis reads."""
        of_design = () if self.design is None else self.design.columns
        of_weights = () if self.weights is None else (self.weights.column,)
        return tuple(dict.fromkeys((*self.response.columns, *of_design, *of_weights)))

    @property
    def told(self) -> tuple[str, ...]:
        """Says for certificates which codes and dates are read, and how the response is made."""
        read = explain_codes(self.codes, self.columns, self.dates), dates.explain(self.dates, self.columns)
        return (*read[0], *read[1], *self.response.told)

    @property
    def what(self) -> str:
        """The title of the analysis with the formula, if there is one."""
        return self.title if self.formula is None else f"{self.title} {self.formula}"

    def check(self, frame: Any) -> Any:
        """The table of a frame, if its columns and types serve; not a value is looked at.

        Raises `UnfitType` for what is no frame and for columns of dates or lists; `UnfitShape` for absent columns, and
        for no record where n is public, under replace.
        """
        table = dates.with_days(table_of(frame), self.dates)
        self.response.check(table)
        if self.design is not None:
            self.design.check(table)
        if self.weights is not None:
            self.weights.check(table)
        if len(table) == 0 and any(part.mechanism.adjacency is kng.Adjacency.REPLACE for part in self.parts):
            raise UnfitShape(EMPTY)
        return table

    def records(self, frame: Any) -> Prepared:
        """Maps each record by itself to its basis columns, its response and its weight. Private.

        The arrays are (n, k), None without terms; (n,) or (n, columns); and (n,), None without weights. Records that
        are dropped are NaN. Raises as `check`, and ValueError for missing cells without a policy; no message tells a
        value.
        """
        return self.of_table(without_codes(self.check(opened(frame)), self.codes))

    def of_table(self, table: Any) -> Prepared:
        """Makes `records` of a table that was checked and in which codes are missing cells. Private."""
        x = None if self.design is None else self.design.matrix(table)
        return x, self.response.of_table(table), None if self.weights is None else self.weights.cells_of(table)

    def made_by(self, steps: Sequence[Any]) -> "Analysis":
        """Restricts the analysis to the parts that these steps release."""
        return replace(self, parts=tuple(step.part for step in steps))

    def release(self, frame: Any, ledger: kng.Ledger | Sequence[kng.Reservation] | None) -> list[Any]:
        """All releases, in order, as `kngjax.estimators.carrying_out.carry_out`."""
        try:
            made = carry_out(self.steps(), frame, ledger)
        finally:
            # Frames of a traceback hold their local variables.
            del frame
        return [one for releases in made.values() for one in releases]


@dataclass(frozen=True)
class Step:
    """Releases one part of an analysis by one debit. Public. **Arguments:** `label`: its name among all steps."""

    label: str
    analysis: Analysis
    part: Part

    @property
    def words(self) -> dict[str, Any]:
        """Describes the debit for the ledger."""
        about = {"analysis": self.analysis.title, "formula": self.analysis.formula}
        told = {"read": list(self.analysis.told)} if self.analysis.told else {}
        return about | {"response": self.analysis.response.name, "mechanism": self.part.settings} | told

    @property
    def mechanisms(self) -> tuple[Any, ...]:
        """Lists the step's only mechanism."""
        return (self.part.mechanism,)

    @property
    def sampler(self) -> Any:
        """Returns the sampler that was asked for, or None."""
        return self.analysis.sampler

    @property
    def law(self) -> kng.Guarantee:
        """States the guarantee of a draw from exactly the mechanism's law, with the sums that intervals need."""
        return self.part.law

    def certificates(self, num_records: int) -> list[kng.Certificate]:
        """Certifies beforehand all that the debit pays for. **Arguments:** `num_records`: used where it is public."""
        with telling(*self.analysis.told):
            return self.part.certificates(self.analysis.sampler, num_records)

    def row(self, num_records: int) -> tuple[str, str]:
        """Describes the step for a plan: what is released, and how and at which price."""
        certificates = self.certificates(num_records)
        return f"{self.analysis.what}, {self.part.label}", in_short(certificates, *self.part.owed(certificates))

    def is_in(self, results: Any) -> bool:
        """Whether its release is among these results of its analysis."""
        return self.part.label in results.labels

    def owed(self, num_records: int) -> tuple[kng.Guarantee, bool]:
        """Computes what a ledger debits for the release, and whether it provably costs no more."""
        return self.part.owed(self.certificates(num_records))

    def prepare(self, columns: Prepared) -> None:
        """Raises what its mechanism says of these records of its analysis. Private: for the owner alone."""
        self.part.mechanism.prepare(**arguments(self.part.mechanism, *columns))

    def release(self, records: SharedRecords, debit: kng.Reservation | None, progress: bool | None = None) -> list[Any]:
        """The release, after its debit. Raises as `kngjax.release`."""
        given = arguments(self.part.mechanism, *records.of(self.analysis, debit))
        with telling(*self.analysis.told):
            asked = {"sampler": self.analysis.sampler, "ledger": debit, "progress": progress}
            return [kng.release(self.part.whole, **given, **asked)]

    def kept(self, releases: Sequence[Released]) -> list[Any]:
        """Puts the release together from what a ledger keeps: an estimate with intervals has several parts there."""
        parts = [one for one in releases if isinstance(one, kng.Release)]
        return list(releases) if len(parts) < len(releases) else [self.part.of_parts(parts)]


# Advice for types that are often given in place of a frame.
_FRAMES = {
    "ndarray": ": name its columns, pandas.DataFrame(array, columns=['age', 'height'])",
    "Series": ": give one with its column, series.to_frame()",
    "LazyFrame": ": collect it first, frame.collect()",
}


def table_of(frame: Any) -> Any:
    """Turns a frame into a table of narwhals, and returns `Columns` as they are.

    Raises `UnfitType` for anything else, without a word of its contents.
    """
    if isinstance(frame, Columns):
        return frame
    try:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
    except Exception as error:
        raise_from_outside(error)
        # The words of other packages may tell a frame's own names.
        raise UnfitType(UNREADABLE) from None
    if not isinstance(table, nw.DataFrame):
        advice = _FRAMES.get(type(frame).__name__, "")
        raise UnfitType(f"the data must be a pandas, polars or pyarrow frame, not {type(frame).__name__}{advice}")
    return table


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


def arguments(mechanism: Any, x: np.ndarray | None, y: np.ndarray | None, weights: np.ndarray | None) -> dict[str, Any]:
    """X, y and weights as `kngjax.release` takes them of this mechanism: means and sums have columns alone. Private."""
    assert y is not None
    if mechanism.loss.has_response:
        return {"X": x, "y": y, "weights": weights}
    return {"X": y[:, None] if y.ndim == 1 else y, "weights": weights}


def of_level(level: float) -> str:
    """Names the curve of this level."""
    return f"tau = {level!r}"


def bounds_of(
    design: Design | None, response: Response, of_response: Mapping[str, Any] | None = None, hull: Any = None
) -> kng.Bounds:
    """The public promises of the basis columns and of the transformed response.

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


def bounds_of_values(response: Response, ends: tuple[float, float]) -> kng.Bounds:
    """The public promises of a column whose mean or sum is asked for. **Arguments:** `ends`: its public bounds."""
    low, high = ends
    return kng.Bounds(x=(np.array([low]), np.array([high])), intercept=False, missing=response.substitute)
