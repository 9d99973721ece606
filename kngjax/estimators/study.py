"""A table with its public facts, said once; its analyses, and plans of them before any is carried out."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

import kngjax as kng
from kngjax.core.errors import run_telling_refusals
from kngjax.core.html import html_table
from kngjax.data import formulas
from kngjax.data.terms.base import is_number
from kngjax.estimators import estimates, regressions
from kngjax.estimators.analyses import Analysis, Step, table_of
from kngjax.estimators.carrying_out import Made, carry_out, in_words, together
from kngjax.estimators.estimate_results import EstimateResults
from kngjax.estimators.grouped_results import GroupedResults
from kngjax.estimators.grouping import GroupedAnalysis, GroupedStep, Grouping
from kngjax.estimators.groups import Groups
from kngjax.estimators.moment_results import MomentResults
from kngjax.estimators.regression_results import RegressionResults
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults
from kngjax.estimators.survey_weights import SurveyWeights
from kngjax.estimators.table_results import TableResults
from kngjax.estimators.tabulations import AbstractTabulations, Summed, Tabled


@dataclasses.dataclass(frozen=True)
class PublicFacts:
    """What is said of a table without looking at it, as `Study` takes it. `count`: n where it is public, or a guess."""

    bounds: dict[str, tuple[float | int, float | int]]
    levels: dict[str, tuple[Any, ...]]
    adjacency: kng.Adjacency
    missing: Mapping[str, Any] | str | None
    count: int | None
    weights: SurveyWeights | None = None

    @classmethod
    def of(
        cls,
        bounds: Any,
        levels: Any,
        adjacency: kng.Adjacency,
        missing: Any,
        count: int | None,
        weights: Any = None,
    ) -> "PublicFacts":
        """As `Study` is given them; raises TypeError or ValueError for what are no bounds, levels or policies."""
        for name, given, example in (("bounds", bounds, "(0, 99)"), ("levels", levels, "('no', 'yes')")):
            if not isinstance(given, Mapping):
                raise TypeError(f"{name} must be by column, {name}={{'age': {example}}}, not a {type(given).__name__}")
        ends: dict[str, tuple[float | int, float | int]] = {}
        for name, pair in bounds.items():
            low, high = _plain(pair, f"the bounds of {name!r} must be a pair of numbers, like (0, 99)", 2)
            if not (is_number(low) and is_number(high) and math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"the bounds of {name!r} must be finite numbers, the lower one first, not {pair!r}")
            ends[name] = low, high
        choices = {
            name: _plain(given, f"the levels of {name!r} must be several, like ('north', 'south')")
            for name, given in levels.items()
        }
        if both := sorted(set(ends) & set(choices)):
            raise ValueError(f"columns {both} have bounds and levels: numbers have bounds, categories have levels")
        if isinstance(missing, Mapping):
            if unknown := [name for name in missing if name not in ends and name not in choices]:
                raise ValueError(f"missing names {unknown}, which have neither bounds nor levels")
            missing = {name: _item(value) for name, value in missing.items()}
        elif missing not in (None, "drop"):
            raise TypeError("missing must be 'drop' or name columns, like missing={'age': 40}")
        return cls(ends, choices, adjacency, missing, count, SurveyWeights.of(weights, ends, missing))

    def response(self, column: str, transform: str | None = None) -> Response:
        """A column as a response."""
        missing = self.missing if isinstance(self.missing, str) else (self.missing or {}).get(column)
        if column in self.levels:
            return Response(column, transform, None, self.levels[column], missing)
        return Response(column, transform, self.bounds.get(column), None, missing)

    def weighted(self, analysis: Any) -> Any:
        """The analysis with the weights of the records, if they have some; raises where it does not take them.

        Those of groups were given theirs one by one.
        """
        is_single = isinstance(analysis, Analysis)
        return self.weights.given_to(analysis) if self.weights is not None and is_single else analysis

    def read(self, formula: str) -> tuple[formulas.Formula, Response]:
        """The terms and the response of a formula."""
        read = formulas.read(formula, self.bounds, self.levels, self.missing)
        return read, self.response(read.response, read.transform)


def _plain(given: Any, words: str, number: int | None = None) -> tuple[Any, ...]:
    """Numbers of NumPy as Python's, which JSON has."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(f"{words}, not {given!r}")
    if number is not None and len(given) != number:
        raise ValueError(f"{words}, not {given!r}")
    return tuple(_item(one) for one in given)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


Regressed = TypeVar("Regressed")
Estimated = TypeVar("Estimated")


class AbstractAnalyses(AbstractTabulations[Tabled, Summed], Generic[Regressed, Estimated, Tabled, Summed]):
    """What can be asked of a table. All arguments are public; ε is that of all releases of one call together."""

    facts: PublicFacts

    def quantile_regression(
        self, formula: str, *, tau: float | Sequence[float], epsilon: Any, domain: Any = None, scale: Any = None
    ) -> Regressed:
        """Quantiles of the response at the levels τ, which share ε equally.

        **Arguments:** `formula`: as in `kngjax.data.formulas`. `domain`: Θ of the coefficients of the basis; made of
        the bounds of the response if it is left out. `scale`: for five and more coefficients, how far responses scatter
        about the regression, a public guess.
        """
        facts = self.facts
        read, response = facts.read(formula)
        made = regressions.quantile_regression(
            read, response, tau, epsilon, facts.adjacency.value, facts.count, domain, scale
        )
        return self._carry_out(made, RegressionResults.of)

    def linear_regression(
        self,
        formula: str,
        *,
        epsilon: Any,
        method: str = "robust",
        delta: Any = None,
        domain: Any = None,
        scale: Any = None,
    ) -> Regressed:
        """The mean of the response: "robust" against outliers, by least squares, "squared", or "adassp", with a δ.

        **Arguments:** as `quantile_regression`; `scale` is for "robust" with any number of coefficients.
        """
        facts = self.facts
        read, response = facts.read(formula)
        made = regressions.linear_regression(
            read, response, epsilon, facts.adjacency.value, facts.count, method, delta, domain, scale
        )
        return self._carry_out(made, RegressionResults.of)

    def logistic_regression(self, formula: str, *, epsilon: Any, domain: Any = None) -> Regressed:
        """The logarithm of the odds of the response's second level. **Arguments:** as `quantile_regression`."""
        facts = self.facts
        made = regressions.logistic_regression(
            *facts.read(formula), epsilon, facts.adjacency.value, facts.count, domain
        )
        return self._carry_out(made, RegressionResults.of)

    def poisson_regression(self, formula: str, *, epsilon: Any, domain: Any = None) -> Regressed:
        """The logarithm of the mean of a response of counts. **Arguments:** as `quantile_regression`."""
        facts = self.facts
        made = regressions.poisson_regression(*facts.read(formula), epsilon, facts.adjacency.value, facts.count, domain)
        return self._carry_out(made, RegressionResults.of)

    def mean(self, column: str, *, epsilon: Any) -> Estimated:
        """The mean of a column of numbers, or the share of the second of its two levels."""
        made = estimates.mean(self.facts.response(column), epsilon, self.facts.adjacency.value)
        return self._carry_out(made, EstimateResults.of)

    def quantile(self, column: str, *, tau: float | Sequence[float], epsilon: Any, budget: str = "split") -> Estimated:
        """Quantiles of a column of numbers. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
        made = estimates.quantile(self.facts.response(column), tau, epsilon, self.facts.adjacency.value, budget)
        return self._carry_out(made, EstimateResults.of)

    def median(self, column: str, *, epsilon: Any) -> Estimated:
        """The median of a column of numbers."""
        return self.quantile(column, tau=0.5, epsilon=epsilon)


class _Asked(AbstractAnalyses[Any, Any, Any, Any]):
    """Analyses with what to make of their releases, and nothing else: of one group."""

    def __init__(self, facts: PublicFacts):
        self.facts = facts

    def _carry_out(self, analysis: Analysis, results: Callable[..., Any]) -> Any:
        return self.facts.weighted(analysis), results


def _groups(owner: Any, columns: Sequence[Any], num_records: int | Mapping[Any, int] | None) -> Groups[Any]:
    grouping = Grouping.of(columns, owner.facts.levels, owner.facts.missing)
    return Groups(owner, grouping, num_records, _Asked)


class Study(AbstractAnalyses[RegressionResults, EstimateResults, TableResults, MomentResults]):
    """Analyses of one private table, each with its own ε, debited from one ledger.

    **Arguments:** `frame`: private; pandas, polars or pyarrow. All others are public, and chosen without looking at it.
    `bounds`: the least and the largest value of each column of numbers, in own units. `levels`: those of each category,
    the reference first; of a response of logistic regression the second one is the event. `adjacency`: "replace" (one
    record exchanged, their number public) or "add_remove" (one more or less); there is no default. `ledger`: the budget
    that all analyses are debited from. `missing`: by column what a missing cell counts as, or "drop", under add_remove;
    "drop" alone is for all columns. `num_records`: a public guess of n under add_remove, for what depends on it.
    `weights`: the column of the records' weights, as of a survey, whose largest is that of its bounds; noise grows with
    it. Analyses that are not proved with weights are refused.

    Its analyses return results with names. What columns, types and settings refuse is refused before anything is spent.
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
    ):
        meant = kng.Adjacency.parse(adjacency)
        if meant is kng.Adjacency.REPLACE:
            if num_records is not None:
                raise ValueError("under replace the number of records is that of the table: leave num_records out")
            counted, refusal = run_telling_refusals(lambda: len(table_of(frame)))
            if refusal is not None:
                raise refusal
            num_records = counted
        if not isinstance(ledger, kng.Ledger | None):
            raise TypeError(f"ledger must be a kngjax.Ledger(path) or None, not a {type(ledger).__name__}")
        self.facts = PublicFacts.of(bounds or {}, levels or {}, meant, missing, num_records, weights)
        self.ledger = ledger
        self._frame = frame

    def __repr__(self) -> str:
        facts = self.facts
        known = [f"{name} in [{low:g}, {high:g}]" for name, (low, high) in facts.bounds.items()]
        known += [f"{name} one of {', '.join(map(str, choices))}" for name, choices in facts.levels.items()]
        return f"<Study by {facts.adjacency.value}: {'; '.join(known)}; OWNER ONLY, holds private data>"

    def __reduce__(self) -> Any:
        raise TypeError("a Study holds private data and is not pickled: make it anew where the data are")

    def plan(self) -> "Plan":
        """An empty plan: ask it what you would ask the study, print it, and `run` it, or do not."""
        return Plan(self)

    def by(self, *columns: Any, num_records: int | Mapping[Any, int] | None = None) -> Groups[GroupedResults]:
        """The groups of the table by public levels of columns: each of its analyses is of every group, at one price.

        **Arguments:** `columns`: the names of one or several, with `levels`. Records without a declared level are in no
        group if `missing` says "drop", in that of the level which it names, or else make the release fail.
        `num_records`: a public guess of how many records each group has, or by its level; an equal share of the
        study's if it is left out.
        """
        return _groups(self, columns, num_records)

    def _carry_out(self, analysis: Any, results: Callable[[Any, list[kng.Release]], Any]) -> Any:
        weighted = self.facts.weighted(analysis)
        return results(weighted, weighted.release(self._frame, self.ledger))


class Plan(AbstractAnalyses[Analysis, Analysis, Analysis, Analysis]):
    """Analyses that are not carried out yet: what each would cost, and all together. Print it; `run` carries them out.

    Nothing is spent, drawn or seen of a value before `run`.
    """

    def __init__(self, study: Study):
        self._study = study
        self.facts = study.facts
        self._planned: list[tuple[Analysis | GroupedAnalysis, Callable[[Any, list[kng.Release]], AbstractResults]]] = []

    def by(self, *columns: Any, num_records: int | Mapping[Any, int] | None = None) -> Groups[GroupedAnalysis]:
        """Analyses of every group, as of `Study.by`, to be planned."""
        return _groups(self, columns, num_records)

    def _carry_out(self, analysis: Any, results: Callable[[Any, list[kng.Release]], Any]) -> Any:
        weighted = self.facts.weighted(analysis)
        self._planned.append((weighted, results))
        return weighted

    def steps(self) -> list[Step | GroupedStep]:
        """What `run` debits and releases, in order, each with a label of its own."""
        return [step for number, (one, _) in enumerate(self._planned, start=1) for step in one.steps(number)]

    def run(self) -> list[AbstractResults]:
        """Carries out all of them, in their order; raises BudgetExceeded at first if the ledger does not allow all."""
        made = carry_out(self.steps(), self._study._frame, self._study.ledger)
        return [one for one in self.results(made) if one is not None]

    def results(self, made: Made) -> list[AbstractResults | None]:
        """Of each analysis, or None of which nothing was released. **Arguments:** `made`: by the labels of `steps`."""
        found = []
        for number, (analysis, results) in enumerate(self._planned, start=1):
            own = [step for step in analysis.steps(number) if step.label in made]
            releases = [one for step in own for one in made[step.label]]
            found.append(results(analysis.made_by(own), releases) if own else None)
        return found

    @property
    def cost(self) -> kng.Guarantee | None:
        """What is proved of all together; None of an empty plan, and where of one nothing is proved."""
        return together(self.steps(), self.facts.count or 0)

    def rows(self) -> list[tuple[str, str]]:
        """Each release and what it costs, groups together, and the total."""
        count, steps = self.facts.count or 0, self.steps()
        return [*(step.row(count) for step in steps), ("all together", in_words(together(steps, count)))]

    def __repr__(self) -> str:
        if not self._planned:
            return "<Plan: nothing is planned>"
        return "\n".join(f"{name}: {cost}" for name, cost in self.rows())

    def _repr_html_(self) -> str:
        return html_table("Plan", self.rows())
