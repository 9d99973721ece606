"""Declares the analyses that studies, plans and previews offer: each is a method, with the same arguments in all."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from kngjax.accounting.adjacency import Adjacency
from kngjax.study import column_estimates, quantile_processes, sums_and_variances
from kngjax.study.analyses import Analysis
from kngjax.study.analysis_intervals import require_way, with_intervals
from kngjax.study.public_facts import PublicFacts
from kngjax.study.regressions import Regression
from kngjax.study.results import Results
from kngjax.study.tabulations import AbstractTabulations, Answer, checking_epsilon

_OFFSET = (
    "name the column of what it is the logarithm of, exposure='years', with bounds above 0; of logarithms alone make "
    "that column before the call, each record by itself"
)
_ORDER = "curves are drawn by halving alone, so leave it out"
# Of an interval of a quantile, where nobody says another one.
LEVEL = 0.95
Given = ParamSpec("Given")
Made = TypeVar("Made")


def _not_called(**others: str) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Makes a method refuse arguments that others have. **Arguments:** by their names what to do instead, in words."""

    def of(method: Callable[Given, Made]) -> Callable[Given, Made]:
        @functools.wraps(method)
        def told_apart(*positional: Given.args, **named: Given.kwargs) -> Made:
            for other, instead in others.items():
                if other in named:
                    raise TypeError(f"{method.__name__} has no argument {other!r}: {instead}")
            return method(*positional, **named)

        return told_apart

    return of


@checking_epsilon
class AbstractAnalyses(AbstractTabulations[Answer]):
    """Offers the analyses of a table as methods. All arguments are public; ε is for all releases of a call together."""

    facts: PublicFacts

    @_not_called(levels="it is called 'tau' there")
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

    @_not_called(tau="it is called 'levels' there", order=_ORDER)
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

    @_not_called(offset=_OFFSET)
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
            made = sums_and_variances.mean(response, epsilon, facts.weights and facts.weights.no_intervals)
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
