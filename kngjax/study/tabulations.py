"""Declares counts, tables, sums and variances, as they are asked of a study or of a plan."""

import abc
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import kngjax as kng
from kngjax.data.terms.base import is_number
from kngjax.mechanisms.parameters import whole_epsilon
from kngjax.study import sums_and_variances, tables
from kngjax.study.analyses import Analysis
from kngjax.study.results import Results

Answer = TypeVar("Answer")
Kind = TypeVar("Kind", bound=type)


def checking_epsilon(kind: Kind) -> Kind:
    """Decorates a class of analyses: each looks first whether its `epsilon` is one, of all its releases together.

    Mechanisms would name their own arguments in a refusal, or refuse a part of it.
    """
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and "epsilon" in getattr(inspect.signature(method), "parameters", {}):
            setattr(kind, name, _checked(method))
    return kind


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(*positional: Any, **named: Any) -> Any:
        if "epsilon" in named:
            _ = whole_epsilon(named["epsilon"])
        return method(*positional, **named)

    return checked


@checking_epsilon
class AbstractTabulations(abc.ABC, Generic[Answer]):
    """Offers counts, sums and variances as methods. All arguments are public; ε is for all numbers of a call together.

    `facts`: what is public of the table, as `kngjax.Study` takes it.
    """

    facts: Any

    @abc.abstractmethod
    def _carry_out(self, analysis: Analysis, results: Callable[[Analysis, list[kng.Release]], Any]) -> Any:
        """Turns an analysis into what its caller gets. **Arguments:** `results`: makes results of its releases."""

    def count(self, where: str | None = None, *, epsilon: Any, of: str = "rows") -> Answer:
        """Counts the records that meet a condition; under add_remove, without a condition, all records.

        With weights the count is the sum of the weights.

        **Arguments:** `where`: like "wage > 500", "region == 'north'", "day > '2020-01-31'" where the bounds of day are
        dates, or several with "and" between them; see `kngjax.data.conditions`. Under replace the number of all records
        is public, and refused but for weights, whose sum is not. `of`: of a study of persons "rows", each of which
        counts as its share of a person's votes, or "persons", who count as one if any of their rows meets the
        condition.
        """
        return self._carry_out(tables.count(self.facts, where, epsilon, of), Results.of("table"))

    def histogram(self, column: str, *, epsilon: Any, edges: Any = None) -> Answer:
        """Counts the records that have each level of a category, or lie in each interval of a column of numbers.

        With weights the counts are sums of the weights.

        **Arguments:** `edges`: of a column of numbers, how many equal intervals its bounds are cut into, ten if left
        out, or the public ends of all intervals, from one bound to the other: dates where its bounds are dates.
        """
        facts = self.facts
        axis = tables.axis(facts, column, edges)
        made = tables.table([axis], epsilon, facts.adjacency.value, "histogram")
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
        axes = [tables.axis(facts, name, given.get(name)) for name in names]
        made = tables.table(axes, epsilon, facts.adjacency.value, "cross table")
        return self._carry_out(made, Results.of("table"))

    def sum(self, column: str, *, epsilon: Any, force: bool = False) -> Answer:
        """Estimates the sum of a column of numbers, which are clipped to their bounds.

        **Arguments:** `force`: release also what public facts say is little but noise.
        """
        made = sums_and_variances.total(self.facts.declared(column), epsilon, self.facts.adjacency.value)
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
        is_public = facts.adjacency is kng.Adjacency.REPLACE
        if is_public and facts.count <= ddof:
            raise ValueError(f"a variance with the divisor n - {ddof:g} needs more records than {ddof:g}")
        made = sums_and_variances.variance(facts.declared(column), epsilon, facts.adjacency.value)
        count = facts.count if is_public else None
        return self._carry_out(made.forced(force), Results.of("moment", ddof=float(ddof), count=count))
