"""The analyses of a study for every group of its table: `study.by("region").mean("wage", epsilon=1)`."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

import kngjax as kng
from kngjax.accounting.adjacency import RECORD
from kngjax.accounting.exact_costs import exactly, inward, with_both_orders
from kngjax.core.errors import holding_no_records
from kngjax.mechanisms.parameters import check_delta, whole_epsilon
from kngjax.releases.division import Division
from kngjax.study.analyses import Analysis
from kngjax.study.asked import LEVEL, AbstractAnalyses, Answer
from kngjax.study.counted_groups import FOR_COUNTS, CountedGroups
from kngjax.study.grouping import GroupedAnalysis, Grouping, GroupSize
from kngjax.study.public_facts import PublicFacts
from kngjax.study.results import Results

Outcome = TypeVar("Outcome")
# The types that `Study.by` takes for the numbers of records of its groups.
Sizes = int | Mapping[Any, int] | Results | None
# A number of records for what does not depend on it.
MANY = 1_000_000


class GroupedAnalyses(Generic[Outcome]):
    """Divides a table by public levels: each analysis is made of every group, and paid for once.

    A record is in one group at most. Under add_remove ε is spent once for all groups: each has a mechanism of its own
    at ε. Under replace an exchanged record may leave one group and enter another, so that each group has a mechanism
    for add_remove at ε/2, and sizes of groups are private. See `kngjax.Guarantee.parallel`.

    The analyses are those of a study, with the same arguments; ε and δ are for all groups together.

    **Arguments:** `owner`: a study or a plan. `grouping`: by which columns. `num_records`: as of `Study.by`.
    """

    def __init__(self, owner: Any, grouping: Grouping, num_records: Sizes):
        self._owner, self._grouping = owner, grouping
        self._sizes = _sizes_of(grouping, owner.facts.count, num_records)

    def __repr__(self) -> str:
        division = self._grouping.division
        return f"<{len(division)} groups by {' and '.join(division.by)} of {self._owner!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("groups hold private data and are not pickled: make them anew where the data are")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(_OfOneGroup) if not name.startswith("_"))})

    @holding_no_records
    def __getattr__(self, name: str) -> Callable[..., Outcome]:
        method = None if name.startswith("_") else getattr(_OfOneGroup, name, None)
        if not callable(method):
            raise AttributeError(f"groups have no {name}: they have the analyses of a study, like mean")

        # No frame of a traceback holds the groups, as one of a function that is made here would.
        return functools.update_wrapper(functools.partial(_ask, self, method), method)

    def _ask(self, method: Callable[..., Any], /, *positional: Any, **named: Any) -> Any:
        adjacency, sizes = self._owner.facts.adjacency, tuple(self._sizes)
        # An interval of a quantile holds where there are at least as many records as it takes for granted.
        if method.__name__ == AbstractAnalyses.quantile_interval.__name__:
            level = named.get("level", LEVEL)
            if any(one.noise is None for one in sizes) and "epsilon" in named:
                return self._ask_counted(method, positional, named, level)
            sizes = tuple(one.at_least(level) for one in sizes)
        named = named | _shares(named, adjacency)
        # Groups of which the same is known have the same mechanisms.
        facts, number = self._owner.facts, len(self._grouping.division)
        made = {one: method(_of_group(facts, one, number), *positional, **named) for one in dict.fromkeys(sizes)}
        analysis = GroupedAnalysis(self._grouping, adjacency, tuple(made[one][0] for one in sizes), sizes)
        return self._owner._carry_out(analysis, Results.of("groups", results=made[sizes[0]][1]))

    def _ask_counted(
        self, method: Callable[..., Any], positional: tuple[Any, ...], named: Mapping[str, Any], level: Any
    ) -> Any:
        """Asks for intervals of quantiles where nobody said how many records a group has at least."""
        adjacency, whole = self._owner.facts.adjacency, whole_epsilon(named["epsilon"])
        of_counts = inward(whole * FOR_COUNTS)
        named = dict(named) | {"epsilon": inward(whole - exactly(of_counts))}
        named |= _shares(named, adjacency)

        # The analysis is public, and keeps no hold of the owner.
        facts, number = self._owner.facts, len(self._grouping.division)

        def asked(size: GroupSize, **changed: Any) -> Any:
            return method(_of_group(facts, size, number), *positional, **named | changed)

        # What many records cost is what any number does.
        many = GroupSize(max(self._owner.facts.count or 0, MANY))
        usual, results = asked(many, force=True)
        known = GroupedAnalysis(self._grouping, adjacency, (usual,) * number, (many,) * number)
        analysis = CountedGroups.of(known, lambda size: asked(size)[0], level, of_counts, self._sizes[0].count)
        return self._owner._carry_out(analysis, Results.of("groups", results=results))


_ask = holding_no_records(GroupedAnalyses._ask)


def _of_group(facts: PublicFacts, size: GroupSize, number: int) -> "_OfOneGroup":
    """Offers the analyses of one group, by its public facts. Sizes are private whatever the adjacency of the table.

    **Arguments:** `number`: of groups, over which the rows of one person may be spread.
    """
    known: dict[str, Any] = {"adjacency": kng.Adjacency.ADD_REMOVE, "count": size.count, "miss": size.miss}
    made = dataclasses.replace(facts, **known)
    return _OfOneGroup(made if facts.unit_of_rows is None else made.over_groups(number))


def _shares(named: Mapping[str, Any], adjacency: kng.Adjacency) -> dict[str, Any]:
    """ε and δ of each group such that those of all together are what was asked for.

    Under replace (ε/2, δ/(1 + e^{ε/2})), of which (ε, δ) follows for an exchanged record, rounded so that no more does.
    Raises as `kngjax.mechanisms.parameters.check_epsilon` of the whole ε, before it is halved.
    """
    if adjacency is kng.Adjacency.ADD_REMOVE or "epsilon" not in named:
        return {}
    half = inward(whole_epsilon(named["epsilon"]) / 2)
    if named.get("delta") is None:
        return {"epsilon": half}
    delta = exactly(float(check_delta(named["delta"])), "delta") / with_both_orders(exactly(half), Fraction(1))
    return {"epsilon": half, "delta": inward(delta)}


def _sizes_of(grouping: Grouping, whole: int | None, given: Any) -> list[GroupSize]:
    """The size of each group, in order.

    **Arguments:** `whole`: n of the table, or a guess of it, or None. `given`: a number for all, one for each by its
    level, released counts of the groups, or None for an equal share of the whole. Raises ValueError for other levels,
    for what is no whole number from 1, and for tables that are not counts of the groups' records with their own noise.
    """
    keys = grouping.keys()
    noise: float | None = 0.0
    if isinstance(given, Results):
        _require_counts(grouping.division, given)
        noise = given.deviation
        # Counts that noise takes below 1 count as 1.
        given = {key: max(round(float(count)), 1) for key, count in given.params.items()}
    if isinstance(given, Mapping):
        if set(given) != set(keys):
            raise ValueError(f"by(num_records=) must have a number for each group, {keys}, and no other")
        return [GroupSize(_said(given[key]), noise) for key in keys]
    if given is not None:
        return [GroupSize(_said(given))] * len(keys)
    return [GroupSize(None if whole is None else max(whole // len(keys), 1), None)] * len(keys)


def _require_counts(division: Division, released: Results) -> None:
    """Raises ValueError unless a table counts the records of the groups, and its noise is known."""
    why, unit = None, released.releases[0].certificate.guarantee.unit
    if tuple(axis.column for axis in getattr(released.view, "axes", ())) != division.by:
        why = f"counts by {' and '.join(division.by)}, in this order, and not a {released.title}"
    elif released.has_weights and unit != RECORD:
        why = (
            f"counts of records, and these are votes that rows of one {unit} share: give about as many as numbers, "
            "num_records={'north': 500, 'south': 700}"
        )
    elif released.has_weights:
        why = "counts of records, and these are sums of weights: release the table of a Study without weights"
    elif released.total is not None or released.margins:
        why = "counts whose noise is known: give the table as it was released, without with_total() and with_margin()"
    if why is not None:
        raise ValueError(f"by(num_records=) must be {why}")


def _said(count: Any) -> int:
    """Checks a number of records that is said of a group; raises ValueError unless it is a whole number from 1."""
    if isinstance(count, bool | np.bool_) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(
            f"by(num_records=) must be whole numbers of at least 1, one for all or a dictionary of one for each, not "
            f"{count!r}: of noisy counts give the released table itself, or counts.params.clip(lower=1).to_dict()"
        )
    return int(count)


class _OfOneGroup(AbstractAnalyses[Any]):
    """Analyses with what to make of their releases, and nothing else."""

    def __init__(self, facts: PublicFacts):
        self.facts = facts

    def _carry_out(self, analysis: Analysis, results: Callable[..., Any]) -> Any:
        return self.facts.weighted(analysis), results


class AbstractDivided(AbstractAnalyses[Answer], Generic[Answer, Outcome]):
    """Offers analyses of a whole table, and of each of its groups."""

    def by(self, *columns: Any, num_records: Sizes = None) -> GroupedAnalyses[Outcome]:
        """Divides the table into groups by public levels; an analysis is then of every group, at one price.

        **Arguments:** `columns`: the names of one or several columns with `levels`. A record without a declared level
        is in no group if `missing` says "drop", and in the group of the level that `missing` names; otherwise the
        release fails. `num_records`: a public guess of the size of each group, one for all or by level, or the counts
        that a histogram or cross table of the groups released; an equal share of the study's if it is left out. For
        `quantile_interval` it is the least size of each group; without it the groups are counted first, for a fifth of
        ε.
        """
        return GroupedAnalyses(self, Grouping.of(columns, self.facts.levels, self.facts.missing), num_records)
