"""Views of one column: a released mean, median or other quantiles; a released sum or variance."""

import abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kngjax.inference import known_noise
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.study.responses import Response
from kngjax.study.sums_and_variances import CentredSquares, noise_of_variance, variance_of
from kngjax.study.views.base import AbstractView
from kngjax.study.views.interval_frames import rows_of, standard_errors_of

if TYPE_CHECKING:
    import pandas as pd


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
        import pandas as pd

        return pd.Index(self.names, name="statistic")

    @property
    @abc.abstractmethod
    def _deviation(self) -> float | None:
        """The standard deviation of the noise of a sum or mean, where it has Laplace's law; None elsewhere."""

    @property
    def _public_count(self) -> int | None:
        """n, where it is public and records have no weights."""
        release = self.releases[0].certificate
        return None if release.mechanism["bounds"].get("weight") is not None else release.num_records

    def conf_int(self, level: float = 0.95, of: str = "table") -> "pd.DataFrame":
        """An interval of a mean or sum: a row, columns lower and upper. Free.

        That of the table holds the mean or sum of its own values, clipped to their bounds, by the law of the noise
        alone. That of the population, where n is public, holds the mean of clipped values in the population that the
        records were drawn from, n times that of a sum: of values with any law within the bounds, so that it is as wide
        as that of values at the bounds alone, and far wider than need be where few are near them.

        **Arguments:** `level`: between 0 and 1. `of`: "table" or "population". Raises ValueError for others, and where
        the law of the noise is not known beforehand: of quantiles, of variances, of means of a private number.
        """
        deviation, count = self._deviation, self._public_count
        if deviation is None:
            raise ValueError(
                f"the noise of the {self.title} depends on the records, or on their number where that is private: an "
                "interval is released with an estimate or not at all, by quantile_interval of a column, or of a "
                "regression by intervals=True"
            )
        known_noise.require_asked(level, of)
        # The mean of a column of two levels is the part of the second.
        [ends] = [*self.clipped.values()] or [(0.0, 1.0)]
        value, times = float(np.ravel(self.params)[0]), 1 if isinstance(self, EstimateView) else count
        if of == "table":
            margin = known_noise.margin_of_sum(deviation, level)
            lower, upper = value - margin, value + margin
        elif times is None or count is None:
            raise ValueError("a population has an interval where the number of records is public and none has a weight")
        else:
            given = value / times, deviation / times, ends, count, level
            lower, upper = (times * end for end in known_noise.mean_of_population(*given))
        import pandas as pd

        least, most = (-math.inf, math.inf) if times is None else (times * end for end in ends)
        return pd.DataFrame([np.clip([lower, upper], least, most)], self.index, ["lower", "upper"])

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        return {} if self._deviation is None else {self.labels[0]: self.conf_int(level)}

    @property
    def standard_errors(self) -> "dict[str, pd.DataFrame]":
        """The standard deviation of the noise, all that stands between the number and the table's own: exact.

        Ends are cut at public bounds, so that it does not follow from them.
        """
        if self._deviation is None:
            return {}
        return {self.labels[0]: self._named({self.labels[0]: [self._deviation]}).to_frame("std. error")}

    def interval_in_words(self, level: float) -> str:
        if self._deviation is None:
            return ""
        population = "" if self._public_count is None else "; conf_int(of='population') is of its population"
        return f"holds the {self.labels[0]} of the table's own clipped values with probability {level:g}{population}"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EstimateView(AbstractColumnView):
    """Names a released mean, median or other quantiles of a column.

    The numbers come from one release; or each quantile of several levels has a release of its own, as with weights:
    then `params` are put in the order of their levels, which is post-processing.
    """

    kind: ClassVar[str] = "estimate"

    @property
    def columns(self) -> dict[str, Any]:
        if len(self.releases) == 1:
            return {self.labels[0]: self.releases[0].value}
        # Levels increase, as those of every mechanism of several.
        return {"quantile": np.sort(np.concatenate([one.value for one in self.releases]))}

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row, as of all results; an interval in one, with its middle and its own level."""
        found = self.intervals() if self._is_interval else None
        if not isinstance(found, Interval):
            return super().to_frame(level)
        import pandas as pd

        ends = pd.DataFrame(
            {"lower": found.lower, "upper": found.upper}, self.index[:1].str.removesuffix(", lower end")
        )
        return rows_of(ends.mean(axis=1), standard_errors_of(ends, found.level), ends, found.level)

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

    def interval_in_words(self, level: float) -> str:
        """Describes the interval for the summary; empty where there is none."""
        if not self._is_interval:
            return super().interval_in_words(level)
        found = self.intervals()
        if isinstance(found, NoInterval):
            return f"none: {found.reason}"
        return f"{found.level:.12g}: [{found.lower[0]:.5g}, {found.upper[0]:.5g}], by {found.method}"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MomentView(AbstractColumnView):
    """Names a released sum or variance of a column.

    **Arguments:** `names`: of the released numbers. `deviations`: the standard deviations of their noise. `ddof`: what
    is taken off n in the divisor of a variance; None for a sum. `count`: n where it is public and the divisor, else
    None.
    """

    kind: ClassVar[str] = "moment"
    deviations: tuple[float, ...] | None
    ddof: float | None = None
    count: int | None = None

    @classmethod
    def of(
        cls, analysis: Any, releases: list[Any], *, ddof: float | None = None, count: int | None = None, **facts: Any
    ) -> Any:
        columns, (part,) = analysis.response, analysis.parts
        if isinstance(columns, CentredSquares):
            # The divisor may be among the sums.
            facts, count = facts | {"response": columns.response}, None if columns.has_ones else count
        found = part.mechanism.noise.deviations(len(analysis.names), count)
        facts |= {"deviations": None if found is None else tuple(found.tolist()), "ddof": ddof, "count": count}
        return super().of(analysis, releases, **facts)

    @property
    def value(self) -> float:
        """The sum, or the variance."""
        released = self.releases[0].value
        if self.ddof is None:
            return float(released[0])
        weight = self.releases[0].certificate.mechanism["bounds"].get("weight")
        return variance_of(released, self._squares.half_width, self.count, self.ddof, 1.0 if weight is None else weight)

    @property
    def std(self) -> float:
        """The root of the variance; raises ValueError for a sum."""
        if self.ddof is None:
            raise ValueError("a sum has no std: release a variance")
        return math.sqrt(self.value)

    @property
    def _deviation(self) -> float | None:
        return None if self.deviations is None or self.ddof is not None else self.deviations[0]

    @property
    def _squares(self) -> CentredSquares:
        return CentredSquares(self.response, len(self.names) == 3)

    @property
    def columns(self) -> dict[str, Any]:
        return {self.labels[0]: self.value}

    @property
    def index(self) -> "pd.Index":
        import pandas as pd

        return pd.Index([self.title], name="statistic")

    @property
    def sums(self) -> "pd.Series":
        """The released numbers themselves, by name: the sums that a variance is made of."""
        import pandas as pd

        return pd.Series(self.releases[0].value, pd.Index(self.names, name="sum"), name=self.labels[0])

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """The standard deviation of the noise: exact for a sum, estimated from the released sums for a variance.

        None where it is not known: `noise_in_words` says why.
        """
        found = self._noise
        return None if isinstance(found, str) else self._named({self.labels[0]: found})

    @property
    def noise_in_words(self) -> str:
        found, what = self._noise, "the standard deviation of what is added for privacy"
        if isinstance(found, str):
            is_cut = self.ddof is not None and self.value == 0.0
            return f"not stated: {'the released sums make less than 0, and it is cut there' if is_cut else found}"
        if self.ddof is None:
            return f"{what}: exact, whatever the records are"
        return f"{what}: to first order, by the sums that were released"

    @property
    def _noise(self) -> float | str:
        if self.deviations is None:
            return "the norm has no closed form"
        if self.ddof is None:
            return self.deviations[0]
        given = np.asarray(self.deviations), self._squares.half_width, self.count, self.ddof
        return noise_of_variance(self.releases[0].value, *given)
