"""A study holds a table with its public facts, which are said once, and offers its analyses."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import kngjax as kng
from kngjax.core.errors import holders_of_records, run_telling_refusals
from kngjax.data.tables import is_elsewhere, on_its_engine
from kngjax.study.analyses import table_of
from kngjax.study.asked import AbstractAnalyses
from kngjax.study.checks import Check
from kngjax.study.checks import check as look
from kngjax.study.groups import GroupedAnalyses, Sizes, groups_of
from kngjax.study.public_facts import PublicFacts
from kngjax.study.results import Results
from kngjax.study.study_plan import Previews, StudyPlan
from kngjax.study.survey_weights import Persons


@holders_of_records
class Study(AbstractAnalyses[Results]):
    """Analyses of one private table, each with its own ε, debited from one ledger.

    **Arguments:** `frame`: private; pandas, polars or pyarrow; or a table that is read in passes where it rests: the
    path of Parquet files, as "people/*.parquet", a relation of DuckDB, a LazyFrame of polars, a DataFrame of Spark or
    Dask, a Dataset of Ray. All others are public, and chosen without looking at it.
    `bounds`: the least and the largest value of each column of numbers, in own units. `levels`: those of each category,
    the reference first; of a response of logistic regression the second one is the event. `adjacency`: "replace" (one
    record exchanged, their number public) or "add_remove" (one more or less); there is no default. `ledger`: the budget
    that all analyses are debited from. `missing`: by column what a missing cell counts as, or "drop", under add_remove;
    "drop" alone is for all columns. `num_records`: a public guess of n under add_remove, for what depends on it; under
    replace n itself, of tables alone that do not tell it without being read, as queries do not.
    `weights`: the column of the records' weights, as of a survey, whose largest is that of its bounds; noise grows with
    it. Analyses that are not proved with weights are refused. `dither`: by column the unit that its numbers were
    rounded to, as dollars to hundreds: quantiles and quantile regressions with up to four coefficients, which are
    nearly blind on heaps, add uniform noise of this width to each number; all else needs none, and takes none.
    `missing_codes`: by column the codes that stand for a missing cell, `missing_codes={"wage": [9999999, -1]}`: a cell
    that holds one counts as `missing` says of that column. `person`: the column that identifies persons, where several
    rows may be one person's: guarantees then protect a person with all rows, and the rows of one share that person's
    one vote, or `most_rows` votes. `unit`: whom guarantees protect, in words, like "patient"; without `person` each row
    is one of them.

    Its analyses return results with names. Unfit columns, types and settings are refused before anything is spent, and
    so is an analysis that would be little but noise by public facts, unless it is asked for with force=True.
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
        """Makes an empty plan: ask the plan what you would ask the study, print it, and `run` it, or do not."""
        return StudyPlan(self)

    def by(self, *columns: Any, num_records: Sizes = None) -> GroupedAnalyses[Results]:
        """The groups of the table by public levels of columns: each of its analyses is of every group, at one price.

        **Arguments:** `columns`: the names of one or several, with `levels`. Records without a declared level are in no
        group if `missing` says "drop", in that of the level which it names, or else make the release fail.
        `num_records`: a public guess of how many records each group has, or by its level, or the counts that a
        histogram or cross table of the groups released; an equal share of the study's if it is left out. For
        `quantile_interval` it is how many each has at least; left out, the groups are counted first, for a fifth of ε.
        """
        return groups_of(self, columns, num_records)

    def preview(self, *, design: Any = None, residual: Any = None) -> Previews:
        """Previews analyses: ask the preview what you would ask the study. Nothing is spent, and no value seen.

        **Arguments:** as of `kngjax.preview`. `design`: a frame, or a mapping of names to arrays, of public or made-up
        cells in own units; never the private ones.
        """
        return Previews(self.facts, design, residual)

    def check(self) -> Check:
        """Looks whether analyses can read the records, and in words why not. FOR THE DATA OWNER ONLY.

        It tells what would make a release fail once it is paid: cells that are missing, no number or of no declared
        level where `missing` says nothing; and what is read otherwise than meant: numbers with other marks, as "1,234",
        numbers that recur beyond the bounds or at their ends, as codes do, and what is beyond bounds or levels. Nothing
        is spent, released or told of single values; what it finds has no noise: to publish it, or to choose bounds or
        levels by it, voids the guarantee of the releases. `StudyPlan.check` looks at its analyses too.
        """
        return look(self._frame, self.facts.columns)

    def require_all_records(self) -> None:
        """Raises ValueError where the frame has another number of records than when it was given, under replace.

        Persons are counted again for each analysis, which its certificates then say.
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
    """Whom a study's guarantees protect; None for one record. **Arguments:** as of `Study`."""
    if person is None:
        if most_rows is not None:
            raise ValueError("most_rows is of persons with several rows: name the column that identifies them, person=")
        return None if unit is None else kng.Unit(unit)
    if not isinstance(person, str):
        raise TypeError(f"person must be the name of a column of the table, not a {type(person).__name__}")
    policy = missing if isinstance(missing, str) else (missing or {}).get(person)
    return kng.Unit("person" if unit is None else unit, 1 if most_rows is None else most_rows, person, policy)


def count_of(frame: Any, unit: kng.Unit | None) -> int:
    """Counts the records of a frame, or the persons of a column. Public under replace alone."""
    table = table_of(frame)
    if unit is None or unit.column is None:
        return len(table)
    of_persons = Persons(unit)
    of_persons.check(table)
    return of_persons.count(table)
