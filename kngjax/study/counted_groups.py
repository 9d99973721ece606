"""Intervals of a quantile for every group: groups are counted first, and only those with enough records have one."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from kngjax.accounting.adjacency import Adjacency
from kngjax.data.bounds import Bounds
from kngjax.data.missing import DROP
from kngjax.data.passes import Passes
from kngjax.mechanisms.geometric import GeometricMechanism
from kngjax.mechanisms.parameters import rounded_up
from kngjax.releases.certificate import Certificate
from kngjax.releases.plan import Plan
from kngjax.releases.told import telling
from kngjax.study.analyses import Analysis, Part, Prepared
from kngjax.study.carrying_out import AbstractAnalysis, Step
from kngjax.study.expectations import HOLDS_WITH_IT, Expectations
from kngjax.study.grouping import GroupedAnalysis, Grouping, GroupSize

COUNT = "count"
# The part of ε for counts: of groups that have an interval at all, widths are about the same between .1 and .3.
FOR_COUNTS = Fraction(1, 5)


@dataclasses.dataclass(frozen=True)
class Stage:
    """Names one of the two releases. Public.

    **Arguments:** `label`: what it releases. `after`: the label of the step that counts. `counted`: what that released.
    """

    label: str
    after: str | None = None
    counted: Any = None


@dataclasses.dataclass(frozen=True)
class CountedGroups(AbstractAnalysis):
    """Counts the records of all groups, then releases an interval of each whose count allows one. Public.

    Both are private, the second for all that the first may have released: what they cost adds up. The ranks of a group
    are those of a number of records that it has with a probability that its level counts in (`GroupSize.at_least`). A
    group whose number is too small is refused before the second debit, by released counts alone.

    **Arguments:** `counts`: the table of the groups. `usual`: the intervals as of groups of many records, for what
    does not depend on their counts. `of_size`: makes the interval of a group of some size. `level`: of the intervals.
    `share`: an equal share of the records, for previews; None where nobody guessed their number.
    """

    counts: Analysis
    usual: GroupedAnalysis
    of_size: Callable[[GroupSize], Analysis]
    level: float
    share: int | None = None

    @classmethod
    def of(
        cls,
        usual: GroupedAnalysis,
        of_size: Callable[[GroupSize], Analysis],
        level: float,
        epsilon: float,
        share: int | None,
    ) -> "CountedGroups":
        """Counts the records that the intervals are of: not those whose value a policy drops. **Arguments:** as above.

        `epsilon`: of the counts.
        """
        table, response = usual.grouping.cells, usual.analyses[0].response
        substitute = DROP if DROP in (table.substitute, getattr(response, "substitute", None)) else None
        unit = usual.analyses[0].parts[0].mechanism.bounds.unit
        bounds = Bounds(y=(0.0, len(usual.grouping.division) - 1.0), missing_y=substitute, unit=unit)
        made = GeometricMechanism(bounds, epsilon, usual.adjacency)
        title = f"number of records by {' and '.join(table.columns)}"
        return cls(Analysis(title, table, None, (Part(COUNT, made),), names_of_values=()), usual, of_size, level, share)

    @property
    def title(self) -> str:
        """Names the analysis and the columns of its groups."""
        return self.usual.title

    @property
    def adjacency(self) -> Adjacency:
        """Returns the adjacency of the whole table."""
        return self.usual.adjacency

    @property
    def grouping(self) -> Grouping:
        """Returns by which columns the groups are."""
        return self.usual.grouping

    @property
    def times(self) -> float:
        """Returns ε of all, which was asked for, over that of the interval of one group."""
        return self.usual.times / float(1 - FOR_COUNTS)

    def check(self, frame: Any) -> Any:
        return self.usual.check(frame)

    def count_of(self, table: Any) -> int:
        return self.usual.count_of(table)

    def records(self, frame: Any) -> Any:
        return self.usual.records(frame)

    def steps(self, number: int | None = None) -> list[Step]:
        counting = Step(self.label(number, COUNT), self, Stage(COUNT))
        return [counting, Step(self.label(number), self, Stage("intervals", counting.label))]

    def part_after(self, part: Stage, made: Mapping[str, list[Any]]) -> Stage:
        """Tells the second stage what the first one released."""
        if part.after is None or part.after not in made:
            return part
        return dataclasses.replace(part, counted=made[part.after][0])

    def informed(self, counted: Any) -> GroupedAnalysis:
        """Returns the intervals as the counts allow them; a refused group has no part, and a warning says why.

        **Arguments:** `counted`: the release of the counts.
        """
        return self._with([round(float(count)) for count in counted.value])

    @property
    def foreseen(self) -> GroupedAnalysis:
        """Returns the intervals as they would be if the counts were the sizes that are taken for granted beforehand."""
        share = self.share
        if share is None:
            return dataclasses.replace(self.usual, sizes=(GroupSize(None, None),) * len(self.usual.sizes))
        return self._with([share] * len(self.grouping.division))

    def _with(self, counts: list[int]) -> GroupedAnalysis:
        mechanism = self.counts.parts[0].mechanism
        noise = float(mechanism.noise.deviations(mechanism.dimension, None)[0])
        sizes = [GroupSize(count, noise) for count in counts]
        # Groups of which the same is known share an analysis.
        made = {one: self._allowed(one) for one in dict.fromkeys(sizes)}
        each = tuple(made[one] for one in sizes)
        return dataclasses.replace(self.usual, analyses=each, sizes=tuple(one.at_least(self.level) for one in sizes))

    def _allowed(self, counted: GroupSize) -> Analysis:
        size = counted.at_least(self.level)
        made = self.of_size(size)
        mechanism = made.parts[0].mechanism
        why = mechanism.refusal()
        if why is None or (made.force and (size.count or 0) >= 3):
            return dataclasses.replace(made, expected=Expectations((None,), f"not stated: {HOLDS_WITH_IT}"))
        warning = (
            f"nothing was released of this group: {counted.count:,} records were counted, with noise of standard "
            f"deviation {counted.noise:.3g}, too few{self.takes(size)}; narrower bounds or a guess, spread=, may need "
            "less"
        )
        return dataclasses.replace(made, parts=(), expected=Expectations((), None, warning))

    def takes(self, size: GroupSize) -> str:
        """Says which count, or which ε of all groups, an interval takes. **Arguments:** `size`: as of `at_least`."""
        mechanism = self.of_size(size).parts[0].mechanism
        enough, least = mechanism.records_needed(), mechanism.epsilon_needed()
        would = [] if enough is None else [f"a count of {enough + size.margin(self.level):,}"]
        would += [] if least is None else [f"epsilon = {rounded_up(self.times * least)} for all groups together"]
        return f", and an interval takes at least about {' or '.join(would)}" if would else ""

    def refusal(self, count: int | None) -> str | None:
        """Says why no group could have an interval, even one that all records are in; None if one could, or forced.

        **Arguments:** `count`: n, or a guess of it, or None.
        """
        if count is None or (made := self.of_size(GroupSize(count))).force:
            return None
        why = made.parts[0].mechanism.refusal(times=self.times)
        return None if why is None else f"even a group of all records has no interval: {why}"

    def words_of(self, part: Stage) -> dict[str, Any]:
        if part.after is None:
            return self.counts.words_of(self.counts.parts[0])
        if part.counted is None:
            return self.usual.words_of(None)
        made = self.informed(part.counted)
        sizes = [one.count if analysis.parts else None for one, analysis in zip(made.sizes, made.analyses, strict=True)]
        return made.words_of(None) | {"num_records": sizes}

    def plan_of(self, part: Stage, num_records: int | None) -> Plan:
        if part.after is None:
            with telling(*self.usual.told):
                only = self.counts.parts[0]
                return only.plan_for(num_records).of(_cells_of_records)
        if part.counted is None:
            return self.usual.plan_of(None, num_records)
        made = self.informed(part.counted)
        if any(one.parts for one in made.analyses):
            return made.plan_of(None, num_records)
        return dataclasses.replace(self.usual.plan_of(None, num_records), certificates=())

    def certificates_of(self, part: Stage, num_records: int | None) -> list[Certificate]:
        if part.after is None:
            return list(self.plan_of(part, num_records).certificates)
        return self.usual.certificates_of(None, num_records)

    def is_in(self, part: Stage, results: Any) -> bool:
        return part.after is None or results.view.kind == "groups"

    def prepare(self, part: Stage, records: Any) -> None:
        if part.after is None:
            self.counts.prepare(self.counts.parts[0], _cells_of_records(records))
        else:
            self.usual.prepare(None, records)

    def made_by(self, steps: Sequence[Any]) -> Any:
        """Restricts it to the counts, where nothing else was released yet."""
        return self if len(steps) > 1 else self.counts


def _cells_of_records(records: tuple[Prepared, np.ndarray] | Passes) -> Any:
    """Returns the number of each record's group as a table's cell, NaN of records that are dropped. Private."""
    if isinstance(records, Passes):
        return records.mapped(_cells)
    return _cells(records)


def _cells(records: tuple[Prepared, np.ndarray]) -> Prepared:
    (_, y, _), places = records
    return None, np.where((places < 0) | np.isnan(y), np.nan, places.astype(np.float64)), None
