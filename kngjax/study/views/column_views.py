"""Views of one column: a released mean, median or other quantiles, or why nothing was released."""

import dataclasses
import math
from typing import Any, ClassVar, cast

import numpy as np

from kngjax.accounting.adjacency import RECORD
from kngjax.core.later import pd
from kngjax.inference import known_noise
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.with_intervals import ReleaseWithIntervals
from kngjax.study.responses import Response
from kngjax.study.views.base import AbstractView
from kngjax.study.views.interval_frames import errors_of, rows_of, with_errors


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AbstractColumnView(AbstractView):
    """Names released numbers of one column. **Arguments:** `response`: the column. `names`: of the numbers."""

    response: Response
    names: tuple[str, ...]

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges

    @property
    def index(self) -> "pd.Index":
        return pd.Index(self.names, name="statistic")

    @property
    def _deviation(self) -> float | None:
        """The standard deviation of the noise of a sum or mean, where it has Laplace's law; None elsewhere."""
        return None

    @property
    def _public_count(self) -> int | None:
        """n, where it is public and records have no weights, or each person one vote."""
        has_weights = self._bounds.get("weight") is not None and (self._bounds.get("unit") or {}).get("most_rows") != 1
        return None if has_weights else self.releases[0].certificate.num_records

    @property
    def _is_of_population(self) -> bool:
        """Whether intervals were asked for with the release: those of the population."""
        return getattr(self, "is_of_population", False)

    def conf_int(self, level: float = 0.95, of: str | None = None) -> "pd.DataFrame":
        """Computes an interval of a mean, sum or variance: a row, columns lower and upper. Free.

        That of the table holds the figure of its own values, clipped to their bounds, by the law of the noise alone.
        That of the population holds the mean of clipped values in the population that the records were drawn from, by
        what `intervals=True` released of how they vary. Without it, where n is public, it is of values with any law
        within the bounds, n times that of a sum: as wide as that of values at the bounds alone, and far wider than need
        be where few are near them.

        **Arguments:** `level`: between 0 and 1. `of`: "table" or "population"; left out the latter where it was asked
        for with the release. Raises ValueError for others, and where the law of the noise is not known: of quantiles,
        and of means of a private number that were released without.
        """
        of = ("population" if self._is_of_population else "table") if of is None else of
        if not self._has_ends:
            raise ValueError(
                f"the noise of the {self.title} depends on the records, or on their number where that is private: an "
                "interval is released with an estimate or not at all, by quantile_interval of a column, or of a mean "
                "or regression by intervals=True"
            )
        known_noise.require_asked(level, of)
        (lower, upper), (least, most) = self._ends_of(level, of), self._range
        return pd.DataFrame([np.clip([lower, upper], least, most)], self.index, ["lower", "upper"])

    @property
    def _has_ends(self) -> bool:
        return self._deviation is not None

    @property
    def _ends(self) -> tuple[float, float]:
        # The mean of a column of two levels is the part of the second.
        [ends] = [*self.clipped.values()] or [(0.0, 1.0)]
        return ends

    @property
    def _range(self) -> tuple[float, float]:
        """Between which numbers the figure lies, whatever the records are."""
        return self._ends

    def _ends_of(self, level: float, of: str) -> tuple[float, float]:
        """The interval of a mean or sum by the law of its noise alone."""
        deviation, count = self._deviation, self._public_count
        assert deviation is not None
        value, times = float(np.ravel(self.params)[0]), 1 if isinstance(self, EstimateView) else count
        if of == "table":
            margin = known_noise.margin_of_sum(deviation, level)
            return value - margin, value + margin
        if times is None or count is None:
            raise ValueError(
                "a population has an interval where the number of records is public and none has a weight, or where "
                "that of persons is and each has one vote"
            )
        found = known_noise.mean_of_population(value / times, deviation / times, self._ends, count, level)
        return times * found[0], times * found[1]

    def _row_of(self, middle: float, ends: tuple[float, float], level: float) -> "pd.DataFrame":
        """Makes the row of an interval of a quantile; without a level it has no standard error."""
        made = pd.DataFrame([ends], self.index[:1].str.removesuffix(", lower end"), ["lower", "upper"])
        told = with_errors(made, math.nan if math.isnan(level) else errors_of(made, level))
        return rows_of(pd.Series([middle], made.index), told, level)

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        if not self._has_ends:
            return {}
        # Ends are cut at public bounds, so that an exact deviation of the noise does not follow from them.
        exact = None if self._is_of_population else self._deviation
        error = errors_of(self.conf_int(0.95)) if exact is None else exact
        return {self.labels[0]: with_errors(self.conf_int(level), error)}

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        if not self._has_ends:
            return ""
        if self._is_of_population:
            method, assumed = self.ends_rest_on
            said = f"holds the {self.labels[0]} of clipped values in the population with probability about {level:g}"
            return f"{said}, by {method}; assumed: {'; '.join(assumed)}" if in_full else said
        # Of sums by which a variance is made nothing says how they vary from table to table.
        has_another = self._public_count is not None and self._deviation is not None
        population = "; conf_int(of='population') is of its population" * has_another
        return f"holds the {self.labels[0]} of the table's own clipped values with probability {level:g}{population}"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EstimateView(AbstractColumnView):
    """Names a released mean, median or other quantiles of a column.

    The numbers come from one release; or each quantile of several levels has a release of its own, as with weights:
    then `params` are put in the order of their levels, which is post-processing.

    **Arguments:** `is_of_population`: whether an interval of the population was asked for with a mean.
    """

    kind: ClassVar[str] = "estimate"
    is_of_population: bool = False

    @property
    def columns(self) -> dict[str, Any]:
        if len(self.releases) == 1:
            return {self.labels[0]: self.releases[0].value}
        # Levels increase, as those of every mechanism of several.
        return {"quantile": np.sort(np.concatenate([one.value for one in self.releases]))}

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row, as of all results; an interval in one, with its middle and its own level.

        Of an interval that was forced, and is none, the ends are infinite.
        """
        if not self._is_interval:
            return super().to_frame(level)
        found, made_for = self.intervals(), self.releases[0].certificate.mechanism["level"]
        if isinstance(found, NoInterval):
            return self._row_of(float(np.mean(self.releases[0].value)), (-math.inf, math.inf), made_for)
        lower, upper = float(found.lower[0]), float(found.upper[0])
        return self._row_of(0.5 * (lower + upper), (lower, upper), made_for)

    @property
    def heaps_in_words(self) -> str:
        made = self.releases[0].certificate
        if not self._is_interval:
            return ""
        return self.response.heaps_in_words(made.mechanism.get("num_records") or made.num_records)

    @property
    def why_no_difference(self) -> str:
        if self._is_interval and isinstance(found := self.intervals(), NoInterval):
            return found.reason
        if self._is_interval:
            level = 2.0 * self.releases[0].certificate.mechanism["level"] - 1.0
            return (
                "the lower end of the one less the upper end of the other, and the upper less the lower, hold the "
                f"difference of the quantiles with probability {max(level, 0.0):.4g} at least"
            )
        if self.labels[0] == "mean":
            return "how values vary is released with a mean, by intervals=True, or not at all"
        return "how far a quantile is off depends on the records: two of quantile_interval hold a difference"

    @property
    def _is_interval(self) -> bool:
        return self.releases[0].certificate.mechanism["type"] == "QuantileInterval"

    @property
    def budget_in_words(self) -> str:
        if (number := len(self.releases)) == 1:
            return ""
        return f"{number} releases, one a level, each of an equal part of epsilon; then put in order"

    @property
    def _deviation(self) -> float | None:
        if self.releases[0].certificate.mechanism["type"] != "KNormMechanism" or self.noise is None:
            return None
        return float(self.noise.iloc[0])

    @property
    def ends_rest_on(self) -> tuple[str, tuple[str, ...]]:
        if not self.is_of_population:
            return super().ends_rest_on
        if isinstance(self.releases[0], ReleaseWithIntervals):
            found = cast("Interval", self.releases[0].intervals())
            return found.method, found.assumptions
        one = self.releases[0].certificate.guarantee.unit
        assumed = "records are independent" if one == RECORD else f"the data of each {one} are independent of others'"
        return "the law of values at the bounds alone, which vary most, and of the noise", (assumed,)

    def _ends_of(self, level: float, of: str) -> tuple[float, float]:
        if of == "table" or not isinstance(self.releases[0], ReleaseWithIntervals):
            return super()._ends_of(level, of)
        found = cast("Interval", self.releases[0].intervals(level))
        return float(found.lower[0]), float(found.upper[0])

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        if not self._is_interval:
            return super().interval_in_words(level, in_full)
        found = self.intervals()
        if isinstance(found, NoInterval):
            return f"none: {found.reason}"
        said = f"holds the quantile with probability {found.level:.12g}"
        if in_full:
            return f"{said}, by {found.method}; assumed: {'; '.join(found.assumptions)}"
        return said + ", wider for the dither than the released ends" * bool(self._bounds.get("dither"))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RefusedView(AbstractColumnView):
    """Names what was not released of a group whose released count is too small. **Arguments:** `reason`: says so."""

    kind: ClassVar[str] = "refused"
    reason: str

    @property
    def columns(self) -> dict[str, Any]:
        return {"nothing": np.full(len(self.names), np.nan)}

    @property
    def why_no_difference(self) -> str:
        return self.reason

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists the interval that was asked for in a row without numbers, so that tables of groups have one shape."""
        return self._row_of(math.nan, (math.nan, math.nan), math.nan)

    def intervals(self, level: float | None = None) -> NoInterval:
        """Says why there is no interval."""
        return NoInterval(self.reason)

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        return f"none: {self.reason if in_full else self.reason.partition(', and')[0].partition(';')[0]}"
