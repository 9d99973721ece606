"""Previews the releases of an analysis, with names: how much they would be worth."""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import kngjax as kng
from kngjax.core.later import pd
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.inference.known_noise import margin_of_count
from kngjax.mechanisms.parameters import LARGEST_SENSIBLE_EPSILON
from kngjax.study.analyses import Analysis
from kngjax.study.expectations import preview_of
from kngjax.study.expected_intervals import interval_in_words, is_refused
from kngjax.study.grouping import Grouping, GroupSize
from kngjax.study.views.interval_frames import said_once

_SHARE = "Each group is taken to have an equal share of the {}, which nobody said; by(..., num_records=) takes numbers."

_NOT_PREVIEWED = (
    "not previewed. Regressions, means and quantiles are, of a number of records, which under add_remove is a public "
    "guess, num_records=10_000; of counts and sums the noise is exact, and stands beside each number."
)
_OF_COUNTS = (
    "of counts the noise is known, and their standard error is not: it goes by the number of records, which is private "
    "here. Give the study a public guess of it, num_records=10_000"
)
RECORDS = "records"


class AbstractTablePreview(AbstractSummarised):
    """Previews several releases, with figures in data frames. `each`: of the analyses, None where one is refused."""

    each: "tuple[AnalysisPreview | None, ...]"

    @abc.abstractmethod
    def _table(self, name: str) -> "pd.DataFrame":
        """Puts the figures of this name into a frame, a column a release."""

    @property
    def noise(self) -> "pd.DataFrame":
        """The standard deviation of the noise of each coefficient in own units, a column a release.

        Those of groups are below their levels. Counts share one row, which holds for each of them. Raises ValueError
        where it would be a guess, as do figures that follow from it: `withheld` says what of the records would have to
        be described.
        """
        return self._table("noise")

    @property
    def standard_error(self) -> "pd.DataFrame":
        """The standard error of the estimate without privacy, a column a release.

        For counts the records are taken to spread evenly over the cells; raises ValueError without a number of records.
        """
        return self._table("standard_error")

    @property
    def ratio(self) -> "pd.DataFrame":
        """Noise over standard error, a column a release."""
        return self._table("ratio")

    def explain(self) -> str:
        """Says in words what is expected of each release."""
        return self.summary().unwrapped()


@dataclasses.dataclass(frozen=True, repr=False)
class AnalysisPreview(AbstractTablePreview):
    """Previews of the releases of one analysis, of public facts alone. Print it for what they say.

    **Arguments:** `title`: what it is. `labels`: one a release, or of several levels that are drawn together one a
    level. `previews`: of each, None where nothing is known. `number`: of releases, which have equal parts of ε.
    `of_intervals`: says of each release of a mean or an interval how wide it will be; None of others. `counted`: what n
    is of, in words.
    """

    title: str
    labels: tuple[str, ...]
    previews: tuple[Any, ...]
    number: int
    of_intervals: tuple[str | None, ...] = ()
    counted: str = RECORDS

    @property
    def each(self) -> "tuple[AnalysisPreview]":
        """Returns the preview itself, the only one."""
        return (self,)

    @classmethod
    def of(
        cls, analysis: Analysis, count: int | None, design: Any = None, residual: Any = None, times: float = 1.0
    ) -> "AnalysisPreview":
        """Previews an analysis of n records, or of a guess of n.

        **Arguments:** as of `kngjax.preview`. `times`: ε of all groups over that of one; figures are of the former.
        """
        parts, assumed = analysis.previewed, (design, residual, times)
        counts, number = CountsPreview.of(analysis, count, times), len(analysis.parts)
        previews: Any = (counts,)
        if counts is None:
            previews = (None if is_refused(one, count) else preview_of(analysis, one, count, *assumed) for one in parts)
        words = tuple(interval_in_words(analysis, part, count, design, residual, times) for part in parts)
        labels, counted = tuple(part.label for part in parts), analysis.parts[0].mechanism.bounds.counted
        return cls(analysis.what, labels, tuple(previews), number, words, counted)

    @property
    def width(self) -> "pd.DataFrame":
        """Returns the width of each coefficient's 95% interval over that without privacy, a column a release.

        Infinite where none is expected; raises ValueError where no intervals were asked for, or nobody knows.
        """
        known = self._known()
        if any(isinstance(one, CountsPreview) for one in known):
            raise ValueError(
                "a count without privacy has no interval to compare with: the result has one unasked, conf_int()"
            )
        if any(one.width is None for one in known):
            raise ValueError("no width is known of these intervals: ask with intervals=True, or a covariance")
        return self._table("width", known)

    @property
    def withheld(self) -> str | None:
        """Tells why no figures of noise are stated, and what would tell them; None where they are."""
        return next((one.withheld for one in self.previews if one is not None and one.withheld), None)

    def of_size_unknown(self, size: GroupSize) -> "AnalysisPreview":
        """Copies the preview without figures that go by the number of records. **Arguments:** `size`: says why."""

        previews = tuple(
            one
            if one is None or one.expected is None or one.expected.noise.is_exact
            else dataclasses.replace(one, withheld=size.why_unknown)
            for one in self.previews
        )
        return dataclasses.replace(self, previews=previews)

    @property
    def trusted(self) -> bool:
        """Tells whether the figures of each preview are trusted."""
        return all(one is not None and one.trusted for one in self.previews)

    @property
    def hopeless(self) -> str | None:
        """Tells why one of them would be little but noise; None where none would, and where that is not known."""
        return next((one.hopeless for one in self.previews if one is not None and one.hopeless), None)

    def epsilon_for(self, ratio: float = 0.5) -> float:
        """Finds ε of all releases together that brings the noise down to `ratio` standard errors everywhere."""
        return self.number * max(one.epsilon_for(ratio) for one in self._stated())

    def num_records_for(self, ratio: float = 0.5) -> float | int:
        """Finds the least n with noise of at most `ratio` standard errors in every coefficient."""
        return max(one.num_records_for(ratio) for one in self._stated())

    def summary(self) -> SummaryTable:
        """Lays out noise and standard error of each coefficient, and what was assumed."""
        return _table_of(f"Preview of {self.title}", self.stated(), self.told())

    def stated(self) -> "dict[tuple[str, ...], pd.DataFrame]":
        """Returns the figures that are stated, by the label of the release."""
        each = zip(self.labels, self.previews, strict=True)
        return {(label,): frame for label, one in each if one is not None and (frame := one.stated()) is not None}

    def told(self) -> list[str]:
        """Says what is to be known of the releases, a sentence each."""
        each = zip(self.labels, self.previews, self.of_intervals, strict=True)
        return said_once(
            {
                label: [*filter(None, (words, *(() if one is None else one.told())))] or [_NOT_PREVIEWED]
                for label, one, words in each
            }
        )

    def _known(self) -> list[Any]:
        known = [one for one in self.previews if one is not None]
        if len(known) < len(self.previews):
            raise ValueError("the noise of this analysis is not known beforehand")
        return known

    def _stated(self) -> list[Any]:
        known, why = self._known(), self.withheld
        if why is not None:
            raise ValueError(f"the noise of the {self.title} is not stated: {why}")
        return known

    def _table(self, name: str, known: Any = None) -> "pd.DataFrame":
        figures = [getattr(one, name) for one in (self._stated() if known is None else known)]
        if any(one is None for one in figures):
            raise ValueError(_OF_COUNTS)
        return pd.DataFrame(dict(zip(self.labels, figures, strict=True)))


@dataclasses.dataclass(frozen=True, repr=False)
class GroupsPreview(AbstractTablePreview):
    """Previews the analysis of every group of a table: `preview["north"]` is that of one. Print it for what they say.

    **Arguments:** `grouping`: by which columns. `title`: what it is. `each`: the preview of each group, in order; None
    where a group would be refused. `sizes`: how many records each is taken to have. `is_share`: whether
    that is an equal share, which nobody said. `takes`: says what an interval of a group that would be refused takes.
    """

    grouping: Grouping
    title: str
    each: tuple[AnalysisPreview | None, ...]
    sizes: tuple[GroupSize, ...]
    is_share: bool
    takes: Callable[[GroupSize], str]

    @classmethod
    def of(cls, analysis: Any, design: Any = None, residual: Any = None) -> "GroupsPreview":
        """Previews the groups, of the sizes that were said, released or are equal shares. **Arguments:** as above."""
        made, known, each = analysis.foreseen, {}, []
        for one, size in zip(made.analyses, made.sizes, strict=True):
            key = id(one), size.count
            if key not in known:
                found = AnalysisPreview.of(one, size.count, design, residual, analysis.times) if one.parts else None
                known[key] = found if found is None or size.noise is not None else found.of_size_unknown(size)
            each.append(known[key])
        is_share = made is not analysis or any(one.noise is None for one in made.sizes)
        is_share &= made.sizes[0].count is not None
        return cls(made.grouping, made.title, tuple(each), made.sizes, is_share, analysis.takes)

    def __getitem__(self, level: Any) -> AnalysisPreview | None:
        return dict(zip(self.keys(), self.each, strict=True))[level]

    def keys(self) -> list[Any]:
        """Returns the level of each group, or of several columns a tuple of levels."""
        return self.grouping.keys()

    @property
    def hopeless(self) -> str | None:
        """Tells why one of them would be little but noise; None where none would, and where that is not known."""
        return next((one.hopeless for one in self.each if one is not None and one.hopeless), None)

    def epsilon_for(self, ratio: float = 0.5) -> float:
        """Finds ε of all groups together that brings the noise down to `ratio` standard errors in every group."""
        return max(one.epsilon_for(ratio) for one in self.each if one is not None)

    def summary(self) -> SummaryTable:
        """Lays out what is expected of each group, a line each, and what was assumed."""
        division, stated, told = self.grouping.division, {}, {}
        for group, one, size in zip(division.groups(), self.each, self.sizes, strict=True):
            if one is None:
                few = f"of as few as {size.count} records there would be no interval"
                told[division.name(group)] = few + self.takes(size)
                continue
            told[division.name(group)] = one.told()
            stated |= {(*map(str, group), *label): frame for label, frame in one.stated().items()}
        counted = next((one.counted for one in self.each if one is not None), RECORDS)
        notes = [*([_SHARE.format(counted)] if self.is_share else []), *said_once(told)]
        return _table_of(f"Preview of {self.title}", stated, notes, division.by)

    def _table(self, name: str) -> "pd.DataFrame":
        own = {key: getattr(one, name) for key, one in zip(self.keys(), self.each, strict=True) if one is not None}
        return pd.concat(own, names=list(self.grouping.division.by))


def _table_of(
    title: str, stated: "Mapping[tuple[str, ...], pd.DataFrame]", notes: Sequence[str], by: Sequence[str] = ()
) -> SummaryTable:
    """Lays figures out below one another, behind the levels of the group and the label of the release."""
    if not stated:
        return SummaryTable(title, notes=notes)
    names = [*by, "release", "coefficient"]
    frame = pd.concat({(*key, name): row for key, own in stated.items() for name, row in own.iterrows()}, axis=1).T
    return SummaryTable.of_frame(title, (), frame.rename_axis(names).reset_index(), len(names), notes)


@dataclasses.dataclass(frozen=True)
class CountsPreview:
    """Previews each count of a table, as `kngjax.inference.Preview` does a coefficient. Public.

    **Arguments:** `mechanism`: the one that counts. `cells`: how many kinds of records there are, also those that no
    count is of. `num_records`: n, or a guess of it, or None. `times`: ε of all groups over that of one.
    """

    mechanism: kng.GeometricMechanism
    cells: int
    num_records: int | None
    times: float = 1.0

    # The noise is exact: nothing is assumed, withheld or hopeless.
    trusted: ClassVar[bool] = True
    setting = expected = withheld = hopeless = width = None

    @classmethod
    def of(cls, analysis: Analysis, count: int | None, times: float = 1.0) -> "CountsPreview | None":
        """Previews an analysis that releases nothing but counts; None for any other analysis."""
        mechanisms = [part.mechanism for part in analysis.parts]
        if len(mechanisms) != 1 or not isinstance(mechanisms[0], kng.GeometricMechanism):
            return None
        return cls(mechanisms[0], max(mechanisms[0].dimension or 1, 2), count, times)

    @property
    def noise(self) -> "pd.Series":
        """Returns the standard deviation of the noise of each count, exactly."""
        return _of_each(float(self.mechanism.noise.deviations(1, None)[0]))

    @property
    def own_width(self) -> float:
        """Returns the width of the 95% interval of each count of the table's own, where no end is cut at 0 or n."""
        return 2.0 * self.mechanism.unit * margin_of_count(float(self.mechanism.epsilon) / self.mechanism.change, 0.95)

    @property
    def standard_error(self) -> "pd.Series | None":
        """Computes √(np(1 - p)) of a cell that has its share p = 1/k of the records; None where n is not known."""
        return _of_each(self._error_of(self.num_records)) if self.num_records else None

    @property
    def ratio(self) -> "pd.Series | None":
        """Divides noise by standard error; None where n is not known."""
        return None if self.standard_error is None else self.noise / self.standard_error

    def epsilon_for(self, ratio: float) -> float:
        """Returns the least ε with noise of at most `ratio` standard errors: that of u/(√2·sinh(ε/(2Δ))), or inf."""
        if not self.num_records:
            raise ValueError(_OF_COUNTS)
        sinh = self.mechanism.unit * math.sqrt(0.5) / (ratio * self._error_of(self.num_records))
        least = 2.0 * self.mechanism.change * math.asinh(sinh)
        return self.times * least if least <= LARGEST_SENSIBLE_EPSILON else math.inf

    def num_records_for(self, ratio: float) -> int:
        """Returns the least n with noise of at most `ratio` standard errors."""
        return math.ceil((self.noise.item() / (ratio * self._error_of(1))) ** 2)

    def stated(self) -> "pd.DataFrame":
        """Returns the figures that are known."""
        known = {"noise": self.noise, "standard_error": self.standard_error, "ratio": self.ratio}
        return pd.DataFrame({name: one for name, one in known.items() if one is not None})

    def told(self) -> list[str]:
        """Says in words how much noise each count has."""
        said = f"noise of standard deviation {self.noise.item():.3g} on each count, exactly."
        if self.ratio is not None:
            said += (
                f" That is {self.ratio.item():.2g} standard errors of a count that has one in {self.cells} of "
                f"{self.num_records:,} {self.mechanism.bounds.counted}."
            )
        return [said]

    def _error_of(self, number: int) -> float:
        return math.sqrt(number * (self.cells - 1.0)) / self.cells


def _of_each(figure: float) -> "pd.Series":
    return pd.Series([figure], ["each count"])
