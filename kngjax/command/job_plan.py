"""Plans a job: its public parts, made before a value is seen, what each release costs, and results of the releases."""

import json
from collections.abc import Sequence
from typing import Any

from kngjax.command import job_figure, named_parts
from kngjax.command.error_words import told
from kngjax.command.job_file import FIT, Asked, JobFile, parameters, takes_several
from kngjax.command.synthesis_file import KINDS, SYNTHESIS
from kngjax.command.toml import plain
from kngjax.core.later import pd
from kngjax.core.summary_table import SummaryTable
from kngjax.releases import totals
from kngjax.study.carrying_out import Made, in_words
from kngjax.study.reports.page_contents import numbers_of, privacy_of
from kngjax.study.study import Study
from kngjax.study.synthesis.plans import SynthesisPlan, plan
from kngjax.study.synthesis.synthetic_tables import MOST_ROWS, SyntheticTable


class JobPlan:
    """Plans the releases of a job from its public settings alone.

    `steps`: its releases, in order, each as a `kngjax.study.carrying_out.Step`. `columns`: of the data, with their
    public bounds or levels, for the owner's check.

    **Arguments:** `num_records`: n, which under replace is public and decides which mechanisms serve; None under
    add_remove. Raises ValueError or TypeError that names the file and the table whose settings make no mechanism.
    """

    def __init__(self, file: JobFile, num_records: int | None):
        self.file = file
        if file.adjacency == "replace" and num_records is None:
            raise ValueError(
                f"{file.path}: under replace what is released may depend on the number of records, which is public: "
                "give it, --records N, or a file of data"
            )
        with told(f"{file.path}: [study] "):
            study = Study(_rows_alone(num_records or 1, file.study.get("person")), **plain(file.study))
        self._plan, self.columns = study.plan(), list(study.facts.columns)
        refusals = []
        for number, asked in enumerate(file.analyses, start=1):
            where = f"{file.path}: [[analyses]] number {number}, {asked.method}"
            try:
                made = self._synthesis(asked, where) if asked.method == SYNTHESIS else self._asked(asked, where)
                if file.figure is not None and number == file.figure.analysis:
                    with told(f"{file.path}: [figure] "):
                        job_figure.check(file.figure, made)
            except (TypeError, ValueError) as error:
                refusals.append(error)
        if len(refusals) > 1:
            every = "; ".join(str(one).removeprefix(f"{file.path}: ").rstrip(".") for one in refusals)
            raise ValueError(f"{file.path}: {len(refusals)} analyses are refused: {every}")
        if refusals:
            raise refusals[0]
        with told(f"{file.path}: "):
            self._plan = self._plan.settled()
        self.steps = self._plan.steps()

    def _asked(self, asked: Asked, where: str) -> Any:
        given, known = plain(asked.arguments), parameters(asked.method)
        if "domain" in given:
            with told(f"{where}: domain: "):
                given["domain"] = named_parts.domain(given["domain"])
        if FIT in given:
            given["method"] = given.pop(FIT)
        if "intervals" in known:
            given["intervals"] = self._intervals(asked)
        several = [value for name in known if takes_several(known[name]) for value in given.pop(name)]
        with told(f"{where}: "):
            owner = self._plan.by(*asked.by, num_records=asked.num_records) if asked.by else self._plan
            made = getattr(owner, asked.method)(*several, **given)
        if asked.sampler is not None:
            with told(f"{where}: sampler: "):
                self._plan.draw_by(named_parts.sampler(asked.sampler))
        return made

    def _intervals(self, asked: Asked) -> Any:
        """Its own, or those of [intervals]; False without any."""
        own = asked.intervals if "intervals" in asked.arguments else self.file.intervals
        return False if own is None else own.asked

    def _synthesis(self, asked: Asked, where: str) -> SynthesisPlan:
        facts, arguments = self._plan.facts, asked.arguments
        if facts.unit is not None:
            raise ValueError(
                f"{where}: [study] {'unit' if facts.unit.column is None else 'person'}: a synthesis protects one "
                "record: write it as a job of its own, if no two records are of one "
                f"{facts.unit.name}"
            )
        if facts.weights is not None:
            raise ValueError(f"{where}: [study] weights: a synthesis takes none: write it as a job of its own")
        names = [one["name"] for one in arguments["columns"]]
        for key, columns in (("dither", facts.dither), ("missing_codes", facts.codes)):
            if read := [name for name in names if name in columns]:
                raise ValueError(f"{where}: [study.{key}] {read[0]}: a synthesis reads this column without it")
        made, known = _synthesis_of(asked, self.file.adjacency, where), {one.name for one in self.columns}
        self.columns += [one for one in made.declared if one.name not in known]
        count = made.adjacency.public_count(facts.count)
        self._plan.add(made, lambda analysis, releases: SyntheticTable(analysis, releases, count))
        return made

    def by_analysis(self) -> list[list[Any]]:
        """Lists the steps of each analysis, in the order of the file."""
        steps: dict[int, list[Any]] = {}
        for step in self.steps:
            steps.setdefault(id(step.analysis), []).append(step)
        return list(steps.values())

    def previews(self, **described: Any) -> list[Any]:
        """Previews each analysis, but for syntheses. **Arguments:** as of `kngjax.Study.preview`."""
        return self._plan.preview(**described)

    def missing(self, labels: Sequence[str]) -> list[str]:
        """Lists the labels of the steps that are not among these."""
        return sorted({step.label for step in self.steps} - set(labels))

    def results(self, made: Made) -> list[Any]:
        """Makes results of the releases by the labels of `steps`, None for an analysis of which nothing is there."""
        return self._plan.results(made)

    def summary(self) -> SummaryTable:
        """Lays out how each release would be made and what it costs."""
        return self._plan.summary()

    def text(self, results: Sequence[Any]) -> str:
        """Writes the results as the command prints them."""
        made = [one for one in results if one is not None]
        said = [str(one.summary() if isinstance(one, SyntheticTable) else one.summary(self.file.level)) for one in made]
        return "\n\n".join([*said, f"All together: {in_words(totals.total(one.guarantee for one in made))}"])

    def to_dict(self, results: Sequence[Any]) -> dict[str, Any]:
        """Makes the results JSON-ready: all that may be published, and what is needed to predict with it."""
        cost = totals.total(one.guarantee for one in results if one is not None)
        written = []
        for asked, own, result in zip(self.file.analyses, self.by_analysis(), results, strict=True):
            if result is not None:
                labels = [step.label for step in own if step.is_in(result)]
                about = {"asked": asked.public, "labels": labels, "result": json.loads(result.to_json())}
                # In own units, with intervals: for readers without this package.
                numbers = numbers_of(result, self.file.level)
                written.append(about | ({"numbers": numbers} if numbers else {}))
        return {
            "missing": self.missing([label for one in written for label in one["labels"]]),
            "privacy": privacy_of(cost, self.file.adjacency),
            "study": self.file.public["study"],
            "analyses": written,
        }


def _synthesis_of(asked: Any, adjacency: str, where: str) -> SynthesisPlan:
    """Plans what a table [[analyses]] asks of a synthesis. Raises ValueError and TypeError that start with `where`."""
    arguments, draws, columns = asked.arguments, asked.draws, []
    for number, one in enumerate(arguments["columns"], start=1):
        settings = {name: value for name, value in one.items() if name != "kind"}
        with told(f"{where}, [[analyses.columns]] number {number}, {one['kind']}: "):
            columns.append(named_parts.public(KINDS[one["kind"]])(**settings))
    if draws is not None and (rows := draws.num_rows or 0) > MOST_ROWS:
        raise ValueError(f"{where}, [analyses.draws] num_rows: must be at most {MOST_ROWS:,}, not {rows:,}")
    others = {name: value for name, value in arguments.items() if name != "columns"}
    with told(f"{where}: "):
        return plan(columns, adjacency=adjacency, **others)


def _rows_alone(count: int, person: Any) -> Any:
    """Makes a table of so many records, or persons, and nothing else: a plan looks at their number alone."""
    numbers = pd.RangeIndex(count)
    return pd.DataFrame({} if person is None else {person: numbers}, index=numbers)
