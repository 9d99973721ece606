"""Offers plans: analyses that are not carried out yet, with what each would cost and be worth."""

import dataclasses
from collections.abc import Callable
from typing import Any

import kngjax as kng
from kngjax.accounting.wording import AMOUNTS, amounts
from kngjax.core.errors import holders_of_records
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.study.analyses import Analysis
from kngjax.study.analysis_previews import AnalysisPreview, GroupsPreview
from kngjax.study.carrying_out import Made, Step, carry_out, in_words, together
from kngjax.study.checks import Check
from kngjax.study.checks import check as look
from kngjax.study.counted_groups import CountedGroups
from kngjax.study.grouping import GroupedAnalysis
from kngjax.study.groups import AbstractDivided
from kngjax.study.public_facts import PublicFacts
from kngjax.study.results import Results


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
            foreseen = isinstance(analysis, Analysis | GroupedAnalysis | CountedGroups)
            plan.add(self.facts.expecting(analysis) if foreseen else analysis, results)
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
