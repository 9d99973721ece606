"""Declares the analyses that studies, plans and previews offer: each is a method, with the same arguments in all."""

import abc
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kngjax.accounting.adjacency import Adjacency
from kngjax.data.terms.base import is_number
from kngjax.mechanisms.parameters import whole_epsilon
from kngjax.releases.release import Release
from kngjax.study import classifications, column_estimates, quantile_processes
from kngjax.study.analyses import Analysis
from kngjax.study.analysis_intervals import require_way, with_intervals
from kngjax.study.public_facts import PublicFacts
from kngjax.study.regressions import Regression
from kngjax.study.results import Results

Answer = TypeVar("Answer")
Kind = TypeVar("Kind", bound=type)


# What other methods call their arguments, by method: a name that is not there, and what to do instead, in words.
_ELSEWHERE = {
    "quantile_regression": {"levels": "it is called 'tau' there"},
    "quantile_process": {
        "tau": "it is called 'levels' there",
        "order": "curves are drawn by halving alone, so leave it out",
    },
    "poisson_regression": {
        "offset": "name the column of what it is the logarithm of, exposure='years', with bounds above 0; of "
        "logarithms alone make that column before the call, each record by itself"
    },
}
# Of an interval of a quantile, where nobody says another one.
LEVEL = 0.95


def checking_arguments(kind: Kind) -> Kind:
    """Decorates a class of analyses: each looks first whether its `epsilon` is one, of all its releases together.

    Mechanisms would name their own arguments in a refusal, or refuse a part of it. Arguments that other methods have
    are refused in words.
    """
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and "epsilon" in getattr(inspect.signature(method), "parameters", {}):
            setattr(kind, name, _checked(method))
    return kind


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(*positional: Any, **named: Any) -> Any:
        for other, instead in _ELSEWHERE.get(method.__name__, {}).items():
            if other in named:
                raise TypeError(f"{method.__name__} has no argument {other!r}: {instead}")
        if "epsilon" in named:
            _ = whole_epsilon(named["epsilon"])
        return method(*positional, **named)

    return checked


@checking_arguments
class AbstractAnalyses(abc.ABC, Generic[Answer]):
    """Offers the analyses of a table as methods. All arguments are public; ε is for all releases of a call together."""

    facts: PublicFacts

    @abc.abstractmethod
    def _carry_out(self, analysis: Analysis, results: Callable[[Analysis, list[Release]], Any]) -> Any:
        """Turns an analysis into what its caller gets. **Arguments:** `results`: makes results of its releases."""

    def quantile_regression(
        self,
        formula: str,
        *,
        tau: float | Sequence[float],
        epsilon: Any,
        domain: Any = None,
        scale: Any = None,
        intervals: Any = False,
        force: bool = False,
    ) -> Answer:
        """Estimates quantiles of the response at the levels τ, which share ε equally.

        **Arguments:** `formula`: as in `kngjax.data.formulas`. `domain`: Θ, the set of the coefficients of the
        basis; without it the bounds of the response decide. `scale`: a public guess of how far responses scatter about
        the regression; five and more coefficients use it, and intervals. `intervals`: True, or a covariance like
        `kngjax.Sandwich(share=0.45)`, for confidence intervals, which take a part of ε (`kngjax.WithIntervals`).
        `force`: release also what public facts say is little but noise.
        """
        return self._regressed(self._of(formula, domain, scale).quantiles(tau, epsilon), intervals, force)

    def quantile_process(
        self,
        formula: str,
        *,
        levels: Sequence[float],
        epsilon: Any,
        domain: Any = None,
        force: bool = False,
    ) -> Answer:
        """Estimates quantiles of the response at several levels, drawn together for one ε: curves that never cross.

        The mechanism is `kngjax.QuantileProcess`, with up to four coefficients. With many levels it has less noise than
        `quantile_regression`, which gives each level a part of ε.

        **Arguments:** `levels`: τ, in increasing order. The others as of `quantile_regression`.
        """
        made = quantile_processes.quantile_process(self._of(formula, domain), levels, epsilon, force)
        return self._carry_out(made.forced(force), Results.of("process"))

    def linear_regression(
        self,
        formula: str,
        *,
        epsilon: Any,
        method: str = "robust",
        delta: Any = None,
        domain: Any = None,
        scale: Any = None,
        intervals: Any = False,
        force: bool = False,
    ) -> Answer:
        """Estimates the mean of the response, robust to outliers or by least squares.

        **Arguments:** `method`: "robust"; or least squares, "squared", or "adassp" with a `delta`. `scale`: a public
        guess of the residuals' standard deviation, by which "robust" limits each record; without it a tenth of the
        bounds of the response. The others as of `quantile_regression`.
        """
        asked = self._of(formula, domain, scale, intervals)
        return self._regressed(asked.linear(epsilon, method, delta), intervals, force)

    def logistic_regression(
        self, formula: str, *, epsilon: Any, domain: Any = None, intervals: Any = False, force: bool = False
    ) -> Answer:
        """Estimates the log odds of the response's second level. **Arguments:** as of `quantile_regression`."""
        asked = self._of(formula, domain, intervals=intervals)
        return self._regressed(asked.logistic(epsilon), intervals, force)

    def poisson_regression(
        self,
        formula: str,
        *,
        epsilon: Any,
        exposure: Any = None,
        most_rate: Any = None,
        domain: Any = None,
        intervals: Any = False,
        force: bool = False,
    ) -> Answer:
        """Estimates the log mean of a response of counts, or of their rate by an exposure, as years at risk.

        For counts c and exposures e it minimises Σ exp(x'θ + log e) - c·x'θ = Σ e(exp(x'θ) - (c/e)·x'θ). Each record is
        a rate c/e of weight e. `predict` gives means for one unit of exposure.

        **Arguments:** `exposure`: the column of e, whose public bounds lie above 0; None for counts alone. `most_rate`:
        R, to which the rate c/e of each record is clipped; noise grows with R and with the largest exposure. Without it
        R is the bound of the counts over the least exposure, which is large where exposures differ by much. The others
        as of `quantile_regression`.
        """
        asked, weights = self._of(formula, domain, intervals=intervals), None
        if exposure is not None or most_rate is not None:
            response, weights = self.facts.exposed(asked.response, exposure, most_rate)
            asked = dataclasses.replace(asked, response=response)
        return self._regressed(asked.poisson(epsilon), intervals, force, weights)

    def _of(self, formula: str, domain: Any = None, scale: Any = None, intervals: Any = False) -> Regression:
        known = self.facts.adjacency.value, self.facts.count
        return Regression(*self.facts.read(formula), *known, domain, scale, intervals is not False)

    def _regressed(self, made: Analysis, intervals: Any, force: bool, weights: Any = None) -> Answer:
        made = dataclasses.replace(with_intervals(made, intervals, self.facts), weights=weights)
        return self._carry_out(made.forced(force), Results.of("regression"))

    def mean(self, column: str, *, epsilon: Any, intervals: Any = False, force: bool = False) -> Answer:
        """Estimates the mean of a column of numbers, or the share of the second of its two levels.

        **Arguments:** `intervals`: True for an interval that holds the mean of the population. A part of ε then
        releases how values vary: their variance, or, under add_remove and for groups, their number and the sum of their
        squares. A `kngjax.Sandwich` says which part, where n is public. Without it `conf_int()` holds the table's own
        mean, or is wider.
        """
        facts = self.facts
        response = facts.declared(column)
        require_way(intervals)
        if intervals is not False and facts.adjacency is Adjacency.ADD_REMOVE:
            made = column_estimates.mean_by_sums(response, epsilon, facts.weights and facts.weights.no_intervals)
            return self._carry_out(made.forced(force), Results.of("moment", is_mean=True))
        made = column_estimates.mean(response, epsilon, facts.adjacency.value)
        made = with_intervals(made, intervals, facts)
        return self._carry_out(made.forced(force), Results.of("estimate", is_of_population=intervals is not False))

    def quantile(
        self,
        column: str,
        *,
        tau: float | Sequence[float],
        epsilon: Any,
        budget: str = "split",
        force: bool = False,
    ) -> Answer:
        """Estimates quantiles of a column of numbers. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
        made = column_estimates.quantile(self.facts.declared(column), tau, epsilon, self.facts.adjacency.value, budget)
        return self._carry_out(made.forced(force), Results.of("estimate"))

    def quantile_interval(
        self, column: str, *, tau: float, epsilon: Any, level: float = LEVEL, spread: Any = None, force: bool = False
    ) -> Answer:
        """Releases an interval that holds a quantile of a column with probability `level`, noise for privacy included.

        Under add_remove the study must have at least `num_records` records. **Arguments:** as of
        `kngjax.QuantileInterval`.
        """
        facts = self.facts
        made = column_estimates.quantile_interval(facts.declared(column), tau, epsilon, facts, level, spread, force)
        return self._carry_out(made.forced(force), Results.of("estimate"))

    def median(self, column: str, *, epsilon: Any, force: bool = False) -> Answer:
        """Estimates the median of a column of numbers."""
        return self.quantile(column, tau=0.5, epsilon=epsilon, force=force)

    def count(self, where: str | None = None, *, epsilon: Any, of: str = "rows") -> Answer:
        """Counts the records that meet a condition; under add_remove, without a condition, all records.

        With weights the count is the sum of the weights.

        **Arguments:** `where`: like "wage > 500", "region == 'north'", "day > '2020-01-31'" where the bounds of day are
        dates, or several with "and" between them; see `kngjax.data.conditions`. Under replace the number of all records
        is public, and refused but for weights, whose sum is not. `of`: of a study of persons "rows", each of which
        counts as its share of a person's votes, or "persons", who count as one if any of their rows meets the
        condition.
        """
        return self._carry_out(classifications.count(self.facts, where, epsilon, of), Results.of("table"))

    def histogram(self, column: str, *, epsilon: Any, edges: Any = None) -> Answer:
        """Counts the records that have each level of a category, or lie in each interval of a column of numbers.

        With weights the counts are sums of the weights.

        **Arguments:** `edges`: of a column of numbers, how many equal intervals its bounds are cut into, ten if left
        out, or the public ends of all intervals, from one bound to the other: dates where its bounds are dates.
        """
        facts = self.facts
        axis = classifications.axis(facts, column, edges)
        made = classifications.table([axis], epsilon, facts.adjacency.value, "histogram")
        return self._carry_out(made, Results.of("table"))

    def crosstab(self, *columns: str | Sequence[str], epsilon: Any, edges: Mapping[str, Any] | None = None) -> Answer:
        """Counts the records that have each combination of levels.

        **Arguments:** `columns`: two or more names, or a list of them. `edges`: by column, as of `histogram`.
        """
        if not isinstance(edges, Mapping | None):
            raise TypeError(f"edges must be by column, edges={{'age': 10}}, not a {type(edges).__name__}")
        facts, given = self.facts, dict(edges or {})
        names = [name for one in columns for name in ([one] if isinstance(one, str) else one)]
        if len(names) < 2:
            raise ValueError("a cross table needs two columns or more: of one take histogram(column, epsilon=...)")
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"edges name {unknown}, which are no columns of the table")
        axes = [classifications.axis(facts, name, given.get(name)) for name in names]
        made = classifications.table(axes, epsilon, facts.adjacency.value, "cross table")
        return self._carry_out(made, Results.of("table"))

    def sum(self, column: str, *, epsilon: Any, force: bool = False) -> Answer:
        """Estimates the sum of a column of numbers, which are clipped to their bounds.

        **Arguments:** `force`: release also what public facts say is little but noise.
        """
        made = column_estimates.total(self.facts.declared(column), epsilon, self.facts.adjacency.value)
        return self._carry_out(made.forced(force), Results.of("moment"))

    def variance(self, column: str, *, epsilon: Any, ddof: Any = None, force: bool = False) -> Answer:
        """Estimates the variance of a column of numbers, which are clipped to their bounds.

        The root of the variance is `std` of the result.

        **Arguments:** `ddof`: what is taken off n in the divisor: 1 if left out, as in pandas, or 0. With weights the
        divisor is their sum, and nothing is taken off. `force`: as of `sum`.
        """
        facts = self.facts
        if facts.weights is not None and ddof not in (None, 0):
            raise ValueError(
                f"with weights the divisor is their sum, of which no ddof = {ddof!r} is taken: leave it out"
            )
        if ddof is None:
            ddof = 1 if facts.weights is None else 0
        if not is_number(ddof) or not (math.isfinite(ddof) and ddof >= 0):
            raise ValueError(f"ddof must be a number of 0 or more, like 1, not {ddof!r}")
        is_public = facts.adjacency is Adjacency.REPLACE
        if is_public and (facts.count or 0) <= ddof:
            raise ValueError(f"a variance with the divisor n - {ddof:g} needs more records than {ddof:g}")
        made = column_estimates.variance(facts.declared(column), epsilon, facts.adjacency.value)
        count = facts.count if is_public else None
        return self._carry_out(made.forced(force), Results.of("moment", ddof=float(ddof), count=count))
