"""Studies, plans and previews offer the same analyses: each is a method, with the same arguments in all of them."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from kngjax.accounting.adjacency import Adjacency
from kngjax.study import column_estimates, quantile_processes, regressions, sums_and_variances
from kngjax.study.analyses import Analysis
from kngjax.study.analysis_intervals import require_way, with_intervals
from kngjax.study.public_facts import PublicFacts
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
        """Quantiles of the response at the levels τ, which share ε equally.

        **Arguments:** `formula`: as in `kngjax.data.formulas`. `domain`: Θ of the coefficients of the basis; made of
        the bounds of the response if it is left out. `scale`: for five and more coefficients, how far responses scatter
        about the regression, a public guess; and for the bandwidth of intervals. `intervals`: True, or a covariance
        like `kngjax.Sandwich(share=0.45)`, for confidence intervals: what they are made of is released for a part of ε
        (`kngjax.WithIntervals`). `force`: release also what public facts
        say is little but noise.
        """
        read, known = self.facts.read(formula), (epsilon, self.facts.adjacency.value, self.facts.count)
        made = regressions.quantile_regression(*read, tau, *known, domain, scale)
        return self._regressed(made, intervals, force)

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
        """Quantiles of the response at several levels, drawn together for one ε: curves that never cross.

        By `kngjax.QuantileProcess`, of up to four coefficients; the more levels, the less noise than that of
        `quantile_regression`, of which each level has its part of ε alone.

        **Arguments:** `levels`: τ, in increasing order. The others as of `quantile_regression`.
        """
        read, known = self.facts.read(formula), (epsilon, self.facts.adjacency.value, self.facts.count)
        made = quantile_processes.quantile_process(*read, levels, *known, domain, force)
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
        """The mean of the response: "robust" against outliers, by least squares, "squared", or "adassp", with a δ.

        **Arguments:** as `quantile_regression`; `scale` is for "robust" with any number of coefficients.
        """
        read, known = self.facts.read(formula), (epsilon, self.facts.adjacency.value, self.facts.count)
        made = regressions.linear_regression(*read, *known, method, delta, domain, scale, intervals is not False)
        return self._regressed(made, intervals, force)

    def logistic_regression(
        self, formula: str, *, epsilon: Any, domain: Any = None, intervals: Any = False, force: bool = False
    ) -> Answer:
        """The logarithm of the odds of the response's second level. **Arguments:** as `quantile_regression`."""
        read, known = self.facts.read(formula), (epsilon, self.facts.adjacency.value, self.facts.count)
        made = regressions.logistic_regression(*read, *known, domain, intervals is not False)
        return self._regressed(made, intervals, force)

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
        """The logarithm of the mean of a response of counts, or of their rate by an exposure, as years at risk.

        Of counts c and exposures e it minimises Σ exp(x'θ + log e) - c·x'θ = Σ e(exp(x'θ) - (c/e)·x'θ): rates c/e, each
        of weight e. `predict` says means for one unit of exposure.

        **Arguments:** `exposure`: the column of e, with public bounds above 0, to which each is clipped; None for
        counts alone. `most_rate`: R, the largest rate of a single record, to which c/e of each is clipped; noise grows
        with R and with the largest exposure. Left out it is the bound of the counts over the least exposure: always
        enough, and large where exposures differ by much. The others as `quantile_regression`.
        """
        facts = self.facts
        read, response = facts.read(formula)
        weights = None
        if exposure is not None or most_rate is not None:
            response, weights = facts.exposed(response, exposure, most_rate)
        known = epsilon, facts.adjacency.value
        made = regressions.poisson_regression(read, response, *known, domain, intervals is not False)
        return self._regressed(made, intervals, force, weights)

    def _regressed(self, made: Analysis, intervals: Any, force: bool, weights: Any = None) -> Answer:
        made = dataclasses.replace(with_intervals(made, intervals, self.facts), weights=weights)
        return self._carry_out(made.forced(force), Results.of("regression"))

    def mean(self, column: str, *, epsilon: Any, intervals: Any = False, force: bool = False) -> Answer:
        """The mean of a column of numbers, or the share of the second of its two levels.

        **Arguments:** `intervals`: True for one that holds the mean of the population, with what it takes to know how
        values vary released for a part of ε: their variance, or under add_remove and of groups their number and the sum
        of their squares. Without it `conf_int()` is of the table's own mean alone, or wider. A `kngjax.Sandwich` says
        which part, where n is public.
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
        """Quantiles of a column of numbers. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""
        made = column_estimates.quantile(self.facts.declared(column), tau, epsilon, self.facts.adjacency.value, budget)
        return self._carry_out(made.forced(force), Results.of("estimate"))

    def quantile_interval(
        self, column: str, *, tau: float, epsilon: Any, level: float = LEVEL, spread: Any = None, force: bool = False
    ) -> Answer:
        """An interval that holds a quantile of a column with probability `level`, sampling and privacy together.

        Under add_remove the study's `num_records` must be a number that there are at least. **Arguments:** as of
        `kngjax.QuantileInterval`.
        """
        facts = self.facts
        made = column_estimates.quantile_interval(facts.declared(column), tau, epsilon, facts, level, spread, force)
        return self._carry_out(made.forced(force), Results.of("estimate"))

    def median(self, column: str, *, epsilon: Any, force: bool = False) -> Answer:
        """The median of a column of numbers."""
        return self.quantile(column, tau=0.5, epsilon=epsilon, force=force)
