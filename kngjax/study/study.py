"""Offers a study: a table with its public facts, its analyses, and plans of them with what each would cost."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import kngjax as kng
from kngjax.accounting.wording import AMOUNTS, amounts
from kngjax.core.errors import holders_of_records, run_telling_refusals
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.data.missing import policy_in
from kngjax.data.tables import is_elsewhere, on_its_engine
from kngjax.study.analyses import Analysis, table_of
from kngjax.study.analysis_previews import AnalysisPreview, GroupsPreview
from kngjax.study.carrying_out import Made, Step, carry_out, in_words, together
from kngjax.study.checks import Check
from kngjax.study.checks import check as look
from kngjax.study.grouping import GroupedAnalysis
from kngjax.study.groups import AbstractDivided
from kngjax.study.public_facts import PublicFacts
from kngjax.study.results import Results
from kngjax.study.survey_weights import Persons


class Previews(AbstractDivided[AnalysisPreview, GroupsPreview]):
    """Previews analyses from public facts alone, and holds no data. `Study.preview` makes one."""

    def __init__(self, facts: PublicFacts, design: Any = None, residual: Any = None):
        self.facts = facts
        self._assumed = design, residual

    def _carry_out(self, analysis: Any, results: Any) -> Any:
        return self.of(self.facts.weighted(analysis) if isinstance(analysis, Analysis) else analysis)

    def of(self, analysis: Any) -> Any:
        """Previews an analysis that has the weights and codes of its study already, as those of a plan have."""
        if not isinstance(analysis, Analysis):
            return GroupsPreview.of(analysis, *self._assumed)
        return AnalysisPreview.of(analysis, self.facts.count, *self._assumed)


@holders_of_records
class StudyPlan(AbstractDivided[Analysis, GroupedAnalysis], AbstractSummarised):
    """Analyses that are not carried out yet: what each would cost, and all together. Print it; `run` carries them out.

    Nothing is spent, drawn or seen of a value before `run`.
    """

    def __init__(self, study: Any):
        self._study = study
        self.facts = study.facts
        self._planned: list[tuple[Analysis | GroupedAnalysis, Callable[[Any, list[kng.Release]], Results]]] = []

    def _carry_out(self, analysis: Any, results: Callable[[Any, list[kng.Release]], Any]) -> Any:
        weighted = self.facts.weighted(analysis)
        self.add(weighted, results)
        return weighted

    def add(self, analysis: Any, results: Callable[[Any, list[Any]], Any]) -> None:
        """Adds an analysis that no method asks for, a synthesis. **Arguments:** `results`: makes them of releases."""
        self._planned.append((analysis, results))

    def draw_by(self, sampler: Any) -> None:
        """Draws the analysis that was asked for last by this sampler, in the place of the one that serves it."""
        analysis, results = self._planned.pop()
        self.add(dataclasses.replace(analysis, sampler=sampler), results)

    def settled(self) -> "StudyPlan":
        """Copies the plan with what public facts say of each analysis; raises ValueError for one of little but noise.

        Analyses that are asked for with force=True are let through.
        """
        plan = StudyPlan(self._study)
        for analysis, results in self._planned:
            plan.add(self.facts.expecting(analysis), results)
        return plan

    def steps(self) -> list[Step]:
        """Lists the steps that `run` debits and releases, in order, each with a label of its own."""
        return [step for number, (one, _) in enumerate(self._planned, start=1) for step in one.steps(number)]

    def run(self) -> list[Results]:
        """Carries out all analyses of the plan, in their order.

        Raises BudgetExceeded at first if the ledger does not allow all, and ValueError, as the study does, if one of
        them would be little but noise: then nothing is spent.
        """
        settled = self.settled()
        self._study.require_all_records()
        made = carry_out(settled.steps(), self._study._frame, self._study.ledger)
        return [one for one in settled.results(made) if one is not None]

    def check(self) -> Check:
        """Says whether the analyses of the plan can read the records, as `Study.check`. FOR THE DATA OWNER ONLY."""
        return look(self._study._frame, self.facts.columns, self.steps())

    def results(self, made: Made) -> list[Any]:
        """Makes the results of each analysis, None where nothing was released.

        **Arguments:** `made`: the releases by the labels of `steps`.
        """
        found = []
        for number, (analysis, results) in enumerate(self._planned, start=1):
            own = [step for step in analysis.steps(number) if step.label in made]
            releases = [one for step in own for one in made[step.label]]
            found.append(results(analysis.made_by(own), releases) if own else None)
        return found

    def preview(self, *, design: Any = None, residual: Any = None) -> list[AnalysisPreview | GroupsPreview]:
        """Previews each analysis. **Arguments:** as of `Study.preview`."""
        previews = Previews(self.facts, design, residual)
        return [previews.of(analysis) for analysis, _ in self._planned]

    @property
    def cost(self) -> kng.Guarantee | None:
        """Composes what is proved of all releases; None of an empty plan, or where nothing is proved of one of them."""
        return together(self.steps(), self.facts.count or 0)

    def summary(self) -> SummaryTable:
        """Lays out each release and what it costs, groups together, and the total."""
        count, steps = self.facts.count or 0, self.steps()
        total = together(steps, count)
        rows = [*(step.row(count) for step in steps), ("all together", "", "", *amounts(total))]
        notes = [note for step in steps for note in step.analysis.notes]
        heads = ("release", "mechanism and draw", "assurance", *AMOUNTS)
        return SummaryTable("Plan", (), heads, rows, 3, [*notes, f"all together: {in_words(total)}"])

    def __repr__(self) -> str:
        return str(self.summary()) if self._planned else "<Plan: nothing is planned>"


@holders_of_records
class Study(AbstractDivided[Results, Results]):
    """Holds one private table with its public facts, and offers its analyses, each with its own ε.

    **Arguments:** `frame`: the private table, in pandas, polars or pyarrow; or one that is read in passes where it
    rests: the path of Parquet files, as "people/*.parquet", a relation of DuckDB, a LazyFrame of polars, a DataFrame of
    Spark or Dask, a Dataset of Ray. All other arguments are public, and chosen without looking at it.
    `bounds`: the least and the largest value of each column of numbers, in own units. `levels`: the levels of each
    category, the reference first; the second level of a response of logistic regression is the event. `adjacency`:
    "replace" (one record exchanged, their number public) or "add_remove" (one more or less); there is no default.
    `ledger`: the budget that all analyses are debited from. `missing`: by column, the value that a missing cell counts
    as, or under add_remove "drop"; "drop" alone is for all columns. `num_records`: under add_remove a public guess of
    n; under replace n itself, for a query, which does not tell n before it is read.
    `weights`: the column of survey weights, which needs bounds; noise grows with the largest weight that they allow,
    and analyses that are not proved with weights are refused. `dither`: by column, the unit to which its numbers were
    rounded, as dollars to hundreds; quantiles, and quantile regressions with up to four coefficients, are nearly blind
    on heaps, and add uniform noise of this width to each number. `missing_codes`: by column, the codes that stand for a
    missing cell, `missing_codes={"wage": [9999999, -1]}`. `person`: the column that identifies persons, where several
    rows may be one person's: guarantees then protect a person with all rows, which share one vote. `most_rows`: how
    many votes the rows of one person share, 1 if left out. `unit`: whom guarantees protect, in words, like "patient";
    without `person` each row is one.

    Analyses return results with names. Unfit columns, types and settings are refused before anything is spent. An
    analysis that public facts call little but noise is refused too, unless you say force=True.
    """

    def __init__(
        self,
        frame: Any,
        *,
        bounds: Mapping[str, Any] | None = None,
        levels: Mapping[str, Any] | None = None,
        adjacency: str | None = None,
        ledger: Any = None,
        missing: Any = None,
        num_records: int | None = None,
        weights: Any = None,
        dither: Any = None,
        missing_codes: Any = None,
        person: Any = None,
        unit: str | None = None,
        most_rows: int | None = None,
    ):
        meant, whom = kng.Adjacency.parse(adjacency), whom_of(person, unit, most_rows, missing)
        if whom is not None and whom.column is not None and weights is not None:
            raise ValueError("rows of persons have shares of a vote for weights: leave weights or person out")
        is_public = meant is kng.Adjacency.REPLACE
        person = None if whom is None else whom.column
        frame = on_its_engine(frame, num_records if is_public else None, person)
        if is_public:
            if num_records is not None and not is_elsewhere(frame):
                raise ValueError("under replace the number of records is that of the table: leave num_records out")
            counted, refusal = run_telling_refusals(lambda: count_of(frame, whom))
            if refusal is not None:
                raise refusal
            num_records = counted
        if not isinstance(ledger, kng.Ledger | None):
            raise TypeError(f"ledger must be a kngjax.Ledger(path) or None, not a {type(ledger).__name__}")
        given = missing, num_records, weights, dither, missing_codes, whom
        self.facts = PublicFacts.of(bounds or {}, levels or {}, meant, *given)
        self.ledger = ledger
        self._frame = frame

    def __repr__(self) -> str:
        facts = self.facts
        known = [f"{name} in [{low:g}, {high:g}]" for name, (low, high) in facts.bounds.items()]
        known += [f"{name} one of {', '.join(map(str, choices))}" for name, choices in facts.levels.items()]
        if (unit := facts.unit) is not None:
            votes = "a record" if unit.column is None else f"rows with one {unit.column}, {unit.in_votes}"
            known.insert(0, f"each {unit.name} is protected, {votes}")
        return f"<Study by {facts.adjacency.value}: {'; '.join(known)}; OWNER ONLY, holds private data>"

    def __reduce__(self) -> Any:
        raise TypeError("a Study holds private data and is not pickled: make it anew where the data are")

    def plan(self) -> StudyPlan:
        """Makes an empty plan. Ask it what you would ask the study, print it, and `run` it if you like."""
        return StudyPlan(self)

    def preview(self, *, design: Any = None, residual: Any = None) -> Previews:
        """Previews analyses. Ask the preview what you would ask the study: nothing is spent, and no value is seen.

        **Arguments:** as of `kngjax.preview`. `design`: a frame, or a mapping of names to arrays, of public or made-up
        cells in own units; never the private ones.
        """
        return Previews(self.facts, design, residual)

    def check(self) -> Check:
        """Says whether analyses can read the records, and why not. FOR THE DATA OWNER ONLY.

        The check finds what would make a release fail once it is paid: cells that are missing, no number or of no
        declared level, where `missing` says nothing. It also finds what may be read otherwise than meant: numbers with
        other marks, as "1,234", numbers that recur beyond the bounds or at their ends, as codes do, and cells beyond
        bounds or levels. Nothing is spent or released. What it finds has no noise: to publish it, or to choose bounds
        or levels by it, voids the guarantee of the releases. `StudyPlan.check` tries the analyses of a plan too.
        """
        return look(self._frame, self.facts.columns)

    def require_all_records(self) -> None:
        """Raises ValueError where, under replace, the frame no longer has the number of records that it was given with.

        Persons are counted again for each analysis, and its certificates say how many there are.
        """
        unit = self.facts.unit
        is_counted = self.facts.adjacency is kng.Adjacency.REPLACE and (unit is None or unit.column is None)
        if is_counted and len(table_of(self._frame)) != self.facts.count:
            raise ValueError("the frame has another number of records than the study was made with: make it anew")

    def _carry_out(self, analysis: Any, results: Callable[[Any, list[kng.Release]], Any]) -> Any:
        weighted = self.facts.weighted(analysis)
        # Columns and types first: what is not there is said before what it would be worth.
        refusal = run_telling_refusals(functools.partial(weighted.check, self._frame))[1]
        if refusal is not None:
            raise refusal
        self.require_all_records()
        settled = self.facts.expecting(weighted)
        return results(settled, settled.release(self._frame, self.ledger))


def whom_of(person: Any, unit: Any, most_rows: Any, missing: Any) -> kng.Unit | None:
    """Returns whom a study's guarantees protect; None for one record. **Arguments:** as of `Study`."""
    if person is None:
        if most_rows is not None:
            raise ValueError("most_rows is of persons with several rows: name the column that identifies them, person=")
        return None if unit is None else kng.Unit(unit)
    if not isinstance(person, str):
        raise TypeError(f"person must be the name of a column of the table, not a {type(person).__name__}")
    policy = policy_in(missing, person)
    return kng.Unit("person" if unit is None else unit, 1 if most_rows is None else most_rows, person, policy)


def count_of(frame: Any, unit: kng.Unit | None) -> int:
    """Counts the records of a frame, or the persons of a column. Public under replace alone."""
    table = table_of(frame)
    if unit is None or unit.column is None:
        return len(table)
    of_persons = Persons(unit)
    of_persons.check(table)
    return of_persons.count(table)
