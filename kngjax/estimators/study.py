"""A table with its public facts, said once; its analyses, and plans of them before any is carried out."""

import abc
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
from kngjax.estimators.analyses import Analysis, table_of
from kngjax.estimators.analysis_previews import AnalysisPreview
from kngjax.estimators.estimate_results import EstimateResults
from kngjax.estimators.expectations import Expectations, expect
from kngjax.estimators.regression_results import RegressionResults
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults
from kngjax.releases import totals
from kngjax.releases.debits import owed


@dataclasses.dataclass(frozen=True)
class PublicFacts:
    """What is said of a table without looking at it, as `Study` takes it. `count`: n where it is public, or a guess."""

    bounds: dict[str, tuple[float | int, float | int]]
    levels: dict[str, tuple[Any, ...]]
    adjacency: kng.Adjacency
    missing: Mapping[str, Any] | str | None
    count: int | None

    @classmethod
    def of(
        cls,
        bounds: Mapping[str, Any],
        levels: Mapping[str, Any],
        adjacency: kng.Adjacency,
        missing: Any,
        count: int | None,
    ) -> "PublicFacts":
        """As `Study` is given them; raises TypeError or ValueError for what are no bounds, levels or policies."""
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
        return cls(ends, choices, adjacency, missing, count)

    def response(self, column: str, transform: str | None = None) -> Response:
        """A column as a response."""
        missing = self.missing if isinstance(self.missing, str) else (self.missing or {}).get(column)
        if column in self.levels:
            return Response(column, transform, None, self.levels[column], missing)
        return Response(column, transform, self.bounds.get(column), None, missing)

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


class AbstractAnalyses(abc.ABC, Generic[Regressed, Estimated]):
    """What can be asked of a table. All arguments are public; ε is that of all releases of one call together."""

    facts: PublicFacts

    @abc.abstractmethod
    def _carry_out(self, analysis: Analysis, results: Callable[[Analysis, list[kng.Release]], Any]) -> Any:
        """What an analysis comes to. **Arguments:** `results`: what to make of its releases."""

    def quantile_regression(
        self,
        formula: str,
        *,
        tau: float | Sequence[float],
        epsilon: Any,
        domain: Any = None,
        scale: Any = None,
        force: bool = False,
    ) -> Regressed:
        """Quantiles of the response at the levels τ, which share ε equally.

        **Arguments:** `formula`: as in `kngjax.data.formulas`. `domain`: Θ of the coefficients of the basis; made of
        the bounds of the response if it is left out. `scale`: for five and more coefficients, how far responses scatter
        about the regression, a public guess. `force`: release also what public facts say is little but noise.
        """
        facts = self.facts
        read, response = facts.read(formula)
        made = regressions.quantile_regression(
            read, response, tau, epsilon, facts.adjacency.value, facts.count, domain, scale
        )
        return self._carry_out(made.forced(force), RegressionResults.of)

    def linear_regression(
        self,
        formula: str,
        *,
        epsilon: Any,
        method: str = "robust",
        delta: Any = None,
        domain: Any = None,
        scale: Any = None,
        force: bool = False,
    ) -> Regressed:
        """The mean of the response: "robust" against outliers, by least squares, "squared", or "adassp", with a δ.

        **Arguments:** as `quantile_regression`; `scale` is for "robust" with any number of coefficients.
        """
        facts = self.facts
        read, response = facts.read(formula)
        made = regressions.linear_regression(
            read, response, epsilon, facts.adjacency.value, facts.count, method, delta, domain, scale
        )
        return self._carry_out(made.forced(force), RegressionResults.of)

    def logistic_regression(self, formula: str, *, epsilon: Any, domain: Any = None, force: bool = False) -> Regressed:
        """The logarithm of the odds of the response's second level. **Arguments:** as `quantile_regression`."""
        facts = self.facts
        made = regressions.logistic_regression(
            *facts.read(formula), epsilon, facts.adjacency.value, facts.count, domain
        )
        return self._carry_out(made.forced(force), RegressionResults.of)

    def poisson_regression(self, formula: str, *, epsilon: Any, domain: Any = None, force: bool = False) -> Regressed:
        """The logarithm of the mean of a response of counts. **Arguments:** as `quantile_regression`."""
        facts = self.facts
        made = regressions.poisson_regression(*facts.read(formula), epsilon, facts.adjacency.value, facts.count, domain)
        return self._carry_out(made.forced(force), RegressionResults.of)

    def mean(self, column: str, *, epsilon: Any, force: bool = False) -> Estimated:
        """The mean of a column of numbers, or the share of the second of its two levels."""
        made = estimates.mean(self.facts.response(column), epsilon, self.facts.adjacency.value)
        return self._carry_out(made.forced(force), EstimateResults.of)

    def quantile(
        self,
        column: str,
        *,
        tau: float | Sequence[float],
        epsilon: Any,
        budget: str = "split",
        force: bool = False,
    ) -> Estimated:
        """Quantiles of a column of numbers. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
        made = estimates.quantile(self.facts.response(column), tau, epsilon, self.facts.adjacency.value, budget)
        return self._carry_out(made.forced(force), EstimateResults.of)

    def median(self, column: str, *, epsilon: Any, force: bool = False) -> Estimated:
        """The median of a column of numbers."""
        return self.quantile(column, tau=0.5, epsilon=epsilon, force=force)


class Study(AbstractAnalyses[RegressionResults, EstimateResults]):
    """Analyses of one private table, each with its own ε, debited from one ledger.

    **Arguments:** `frame`: private; pandas, polars or pyarrow. All others are public, and chosen without looking at it.
    `bounds`: the least and the largest value of each column of numbers, in own units. `levels`: those of each category,
    the reference first; of a response of logistic regression the second one is the event. `adjacency`: "replace" (one
    record exchanged, their number public) or "add_remove" (one more or less); there is no default. `ledger`: the budget
    that all analyses are debited from. `missing`: by column what a missing cell counts as, or "drop", under add_remove;
    "drop" alone is for all columns. `num_records`: a public guess of n under add_remove, for what depends on it.

    Its analyses return results with names. What columns, types and settings refuse is refused before anything is spent,
    and so is what public facts say would be little but noise, unless an analysis is asked for with force=True.
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
        self.facts = PublicFacts.of(bounds or {}, levels or {}, meant, missing, num_records)
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

    def preview(self, *, design: Any = None, residual: Any = None) -> "Previews":
        """Ask it what you would ask the study: it says what that would be worth. Nothing is spent, and no value seen.

        **Arguments:** as of `kngjax.preview`. `design`: a frame, or a mapping of names to arrays, of public or made-up
        cells in own units; never the private ones.
        """
        return Previews(self.facts, design, residual)

    def expect(self, analysis: Analysis) -> Expectations:
        """What public facts say of an analysis; raises what its release would before anything is spent of it.

        ValueError where it would be little but noise, unless it is forced; and as `Analysis.check`.
        """
        _, refusal = run_telling_refusals(lambda: analysis.check(self._frame))
        if refusal is not None:
            raise refusal
        return expect(analysis, self.facts.count)

    def _carry_out(self, analysis: Analysis, results: Callable[[Analysis, list[kng.Release]], Any]) -> Any:
        expected = self.expect(analysis)
        return results(dataclasses.replace(analysis, expected=expected), analysis.release(self._frame, self.ledger))


class Previews(AbstractAnalyses[AnalysisPreview, AnalysisPreview]):
    """What analyses would be worth, from public facts alone; it holds no data. `Study.preview` makes one."""

    def __init__(self, facts: PublicFacts, design: Any = None, residual: Any = None):
        self.facts = facts
        self._assumed = design, residual

    def _carry_out(self, analysis: Analysis, results: Any) -> AnalysisPreview:
        return AnalysisPreview.of(analysis, self.facts.count, *self._assumed)


class Plan(AbstractAnalyses[Analysis, Analysis]):
    """Analyses that are not carried out yet: what each would cost, and all together. Print it; `run` carries them out.

    Nothing is spent, drawn or seen of a value before `run`.
    """

    def __init__(self, study: Study):
        self._study = study
        self.facts = study.facts
        self._planned: list[tuple[Analysis, Callable[[Analysis, list[kng.Release]], AbstractResults]]] = []

    def _carry_out(self, analysis: Analysis, results: Callable[[Analysis, list[kng.Release]], Any]) -> Any:
        self._planned.append((analysis, results))
        return analysis

    def run(self) -> list[AbstractResults]:
        """Carries out all of them, in their order; raises BudgetExceeded at first if the ledger does not allow all.

        And ValueError at first if one of them would be little but noise, as the study does.
        """
        for analysis, _ in self._planned:
            self._study.expect(analysis)
        if self._study.ledger is not None:
            costs = [owed(certificate) for certificate in self._certificates()]
            self._study.ledger.require([cost for cost, _ in costs], proved=all(proved for _, proved in costs))
        return [self._study._carry_out(analysis, results) for analysis, results in self._planned]

    def preview(self, *, design: Any = None, residual: Any = None) -> list[AnalysisPreview]:
        """What each of them would be worth. **Arguments:** as of `Study.preview`."""
        settings = design, residual
        return [AnalysisPreview.of(analysis, self.facts.count, *settings) for analysis, _ in self._planned]

    def _certificates(self) -> list[kng.Certificate]:
        count = self.facts.count or 0
        return [one for analysis, _ in self._planned for one in analysis.certificates(count)]

    @property
    def cost(self) -> kng.Guarantee | None:
        """What is proved of all together; None of an empty plan, and where of one nothing is proved."""
        return totals.total_cost(self._certificates())

    def rows(self) -> list[tuple[str, str]]:
        """Each release and what it costs, and the total."""
        rows = []
        for analysis, _ in self._planned:
            for part, certificate in zip(analysis.parts, analysis.certificates(self.facts.count or 0), strict=True):
                what = analysis.title if analysis.formula is None else f"{analysis.title} {analysis.formula}"
                cost = "not proved" if certificate.cost is None else certificate.cost.explain()
                kind = certificate.mechanism["type"]
                rows.append((f"{what}, {part.label}", f"{kind}, {certificate.assurance}: {cost}"))
        total = self.cost
        return [*rows, ("all together", "nothing is proved" if total is None else total.explain())]

    def __repr__(self) -> str:
        if not self._planned:
            return "<Plan: nothing is planned>"
        return "\n".join(f"{name}: {cost}" for name, cost in self.rows())

    def _repr_html_(self) -> str:
        return html_table("Plan", self.rows())
