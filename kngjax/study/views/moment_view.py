"""A view of a released sum or variance of one column, or of a mean that was released as sums."""

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from kngjax.core.later import pd
from kngjax.inference import known_noise
from kngjax.inference.given_sums import DRAWS, ends_of_draws, means_given
from kngjax.inference.noise_of_sums import noise_of_deviations
from kngjax.study.column_estimates import CentredSquares, noise_of_variance, variance_of
from kngjax.study.views.column_views import AbstractColumnView


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MomentView(AbstractColumnView):
    """Names a released sum or variance of a column, or a mean that was released as sums.

    **Arguments:** `names`: of the released numbers. `deviations`: the standard deviations of their noise. `ddof`: what
    is taken off n in the divisor of a variance; None for others. `count`: n where it is public and the divisor, else
    None. `is_mean`: whether it is a mean.
    """

    kind: ClassVar[str] = "moment"
    deviations: tuple[float, ...] | None
    ddof: float | None = None
    count: int | None = None
    is_mean: bool = False

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
        """Returns the sum, the variance or the mean."""
        released = self.releases[0].value
        if self.is_mean:
            count, first, _ = released
            half = self._squares.half_width
            return float(self._squares.middle + np.clip(first / max(count, 1.0), -half, half))
        if self.ddof is None:
            return float(released[0])
        return float(self._variance_of(released, self.ddof))

    @property
    def std(self) -> float:
        """Returns the root of the variance; raises ValueError for others."""
        if self.ddof is None:
            raise ValueError(f"a {self.labels[0]} has no std: release a variance")
        return math.sqrt(self.value)

    @property
    def _deviation(self) -> float | None:
        return None if self.deviations is None or len(self.names) > 1 else self.deviations[0]

    @property
    def _has_ends(self) -> bool:
        return self.deviations is not None

    @property
    def _is_of_population(self) -> bool:
        return self.is_mean

    @property
    def _range(self) -> tuple[float, float]:
        if self.is_mean:
            return super()._range
        if self.ddof is not None:
            return 0.0, math.inf
        count = self._public_count
        return (-math.inf, math.inf) if count is None else (count * self._ends[0], count * self._ends[1])

    @property
    def ends_rest_on(self) -> tuple[str, tuple[str, ...]]:
        if not self.is_mean:
            return super().ends_rest_on
        words = "the law of the noise of the released sums, which is drawn again, and the variance that they make"
        return words, ("records are independent, and so many that their mean is normal",)

    def draws(self, of: str | None = None, *, seed: int = 0) -> "pd.DataFrame":
        """Draws what the figure may be without its noise, given what was released: a column of 16,000. Free.

        Figures of several results that were released one by one are as independent as draws of different seeds: of
        their difference, or any other function, the quantiles of that of the draws are the ends of an interval.

        **Arguments:** `of`: as of `conf_int`. Raises ValueError for the variance or sum of a population, whose errors
        depend on what was not released.
        """
        of = ("population" if self.is_mean else "table") if of is None else of
        known_noise.require_asked(0.95, of)
        if self.deviations is None:
            raise ValueError(f"the {self.title} has no interval: the norm of its noise has no closed form")
        if of == "population" and not self.is_mean:
            powers = "fourth powers" if self.ddof is not None else "squares"
            raise ValueError(
                f"how a {self.labels[0]} varies from table to table depends on the sum of {powers} of the values, "
                "which is not released: its interval is of the table"
            )
        random = np.random.default_rng(seed)
        released = self.releases[0].value
        sums = released - noise_of_deviations(np.asarray(self.deviations), random, DRAWS)
        if self.is_mean:
            found = self._squares.middle + means_given(sums, self._squares.half_width, random, of == "population")
        elif self.ddof is None:
            found = sums[:, 0]
        else:
            found = self._variance_of(sums.T, self.ddof)
        return pd.DataFrame({self.index[0]: np.clip(found, *self._range)})

    def _ends_of(self, level: float, of: str) -> tuple[float, float]:
        # Of a single sum the law of the noise is in closed form.
        if self._deviation is not None:
            return super()._ends_of(level, of)
        lower, upper = ends_of_draws(self.draws(of).to_numpy()[:, 0], level)
        return float(lower), float(upper)

    def _variance_of(self, sums: np.ndarray, ddof: float) -> Any:
        weight = self._bounds.get("weight")
        return variance_of(sums, self._squares.half_width, self.count, ddof, 1.0 if weight is None else weight)

    @property
    def _squares(self) -> CentredSquares:
        return CentredSquares(self.response, len(self.names) == 3)

    @property
    def columns(self) -> dict[str, Any]:
        return {self.labels[0]: self.value}

    @property
    def index(self) -> "pd.Index":
        return pd.Index([self.title], name="statistic")

    @property
    def sums(self) -> "pd.Series":
        """Returns the released numbers themselves, by name: the sums that a variance is made of."""
        return pd.Series(self.releases[0].value, pd.Index(self.names, name="sum"), name=self.labels[0])

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """Returns the standard deviation of the noise: exact for a sum, estimated from released sums for a variance.

        None where it is not known: `noise_in_words` says why.
        """
        found = self._noise
        return None if isinstance(found, str) else self._named({self.labels[0]: found})

    @property
    def noise_in_words(self) -> str:
        found, what = self._noise, "the standard deviation of what is added for privacy"
        if isinstance(found, str):
            is_cut = self.ddof is not None and self.value == 0.0
            if self.is_mean:
                return f"not stated: {found}"
            return f"not stated: {'the released sums make less than 0, and it is cut there' if is_cut else found}"
        if self.ddof is None:
            return f"{what}: exact, whatever the records are"
        return f"{what}: to first order, by the sums that were released"

    @property
    def _noise(self) -> float | str:
        if self.deviations is None:
            return "the norm has no closed form"
        if self.is_mean:
            return "the standard error contains it"
        if self.ddof is None:
            return self.deviations[0]
        given = np.asarray(self.deviations), self._squares.half_width, self.count, self.ddof
        return noise_of_variance(self.releases[0].value, *given)
