"""A released regression: coefficients with names, predictions, curves."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.data.terms import Design
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.carrying_out import Released
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.fitted_curves import AbstractFittedCurves
from kngjax.estimators.fitted_intervals import frames_of, in_words, intervals_of, side_by_side
from kngjax.estimators.public_json import design_from_json, design_in_json
from kngjax.estimators.responses import Response
from kngjax.estimators.results import releases_from, response_from

if TYPE_CHECKING:
    import pandas as pd

_MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": np.asarray,
    "odds": lambda eta: 0.5 * (1.0 + np.tanh(0.5 * eta)),
    "rate": np.exp,
}
# The names of predictions by link, where they are not on the scale of the coefficients.
_PREDICTED = {"odds": "probability", "rate": "mean"}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RegressionResults(AbstractFittedCurves):
    """A released regression. **Arguments:** `formula`: as it was written. `design`: its public terms. `link`: of
    `Analysis`.
    """

    title: str
    formula: str
    response: Response
    design: Design
    labels: tuple[str, ...]
    releases: tuple[Released, ...]
    link: str = "identity"
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Analysis, releases: list[Any]) -> "RegressionResults":
        """Makes the results of an analysis that was carried out."""
        assert analysis.design is not None
        assert isinstance(analysis.response, Response)
        labels = tuple(part.label for part in analysis.parts)
        public = analysis.title, analysis.formula or "", analysis.response, analysis.design
        return cls(*public, labels, tuple(releases), analysis.link, analysis.expected)

    @property
    def curves(self) -> dict[str, np.ndarray]:
        return {label: one.value for label, one in self._pairs()}

    @property
    def has_intervals(self) -> bool:
        """Whether intervals were asked for."""
        return all(isinstance(one, kng.ReleaseWithIntervals) for one in self.releases)

    def intervals(self, level: float = 0.95) -> "kng.Interval | kng.NoInterval | dict[str, Any]":
        """Intervals of `params`, with how they were made and what they rest on; of several releases by label. Free.

        A coefficient that mixes several of the basis has an interval of their sum, whose errors depend on one another.
        Each interval has its level by itself: several intervals hold at once less often.

        **Arguments:** `level`: between 0 and 1. Raises ValueError where no intervals were asked for.
        """
        names = self.design.names
        found = {
            label: dataclasses.replace(one, names=names) if isinstance(one, kng.Interval) else one
            for label, one in self._intervals(level).items()
        }
        return found[self.labels[0]] if len(self.labels) == 1 else found

    def conf_int(self, level: float = 0.95) -> "pd.DataFrame":
        """Intervals of `params`: a row a coefficient, columns lower and upper, of several releases below their labels.

        The ends are NaN where there is no interval: `intervals` has the reason. **Arguments:** as of `intervals`.
        """
        return side_by_side(frames_of(self._intervals(level), self._index()))

    def predict_interval(self, new: Any, level: float = 0.95, *, original: bool = False) -> "pd.DataFrame":
        """Intervals of what `predict` says of new cells, as confidence bands: of the regression, not of new responses.

        **Arguments:** as of `predict` and `intervals`; each row is by itself.
        """
        return side_by_side(self._bands(new, level, original))

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        if not self.has_intervals:
            return {}
        return frames_of(self._intervals(level), self._index())

    def interval_in_words(self, level: float) -> str:
        if not self.has_intervals:
            return ""
        mixed = np.count_nonzero(self.design.own_units_matrix, axis=1) > 1
        return in_words(self._intervals(level), self.design.names, mixed.tolist())

    def predict(self, new: Any, *, original: bool = False) -> "pd.Series | pd.DataFrame":
        """Predicts the response at new cells, which the basis clips to the public bounds.

        A logistic regression predicts probabilities and a Poisson regression means; others predict the response as it
        stands to the left of "~".

        **Arguments:** `new`: a frame, or a mapping of names to arrays or single values. `original`: for a response
        log(y) the exponential: the quantile of y itself in a quantile regression, and about the median of y where the
        mean of log(y) is predicted.
        """
        import pandas as pd

        x, of = self._basis_of(new, original), self._mean_by(original)
        rows = self.design.with_constant(x)
        values = {label: of(rows @ one) for label, one in self.curves.items()}
        index = new.index if isinstance(new, pd.DataFrame) else None
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], index, name=_PREDICTED.get(self.link, self.labels[0]))
        return pd.DataFrame(values, index=index)

    def plot(
        self,
        x: str | None = None,
        at: Mapping[str, Any] | None = None,
        *,
        original: bool = False,
        ax: Any = None,
        level: float = 0.95,
    ) -> Any:
        """The curve of each release over the public range of one column; returns the axes of Matplotlib.

        With intervals each has a band, as of `predict_interval`.

        **Arguments:** `x`: the column; the only one of numbers if it is left out. `at`: values of the other columns;
        numbers are at the middle of their bounds and categories at their reference if left out. `original`: as in
        `predict`. `ax`: axes to draw on. `level`: of the bands.
        """
        bands = functools.partial(self._bands, level=level, original=original)
        predict = functools.partial(self.predict, original=original)
        return self._drawn_over(x, at, original, ax, predict, bands if self.has_intervals else lambda _: {})

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "formula": self.formula,
            "response": dataclasses.asdict(self.response),
            "design": design_in_json(self.design),
            "labels": list(self.labels),
            "link": self.link,
            "releases": [json.loads(one.to_json()) for one in self.releases],
            "expected": None if self.expected is None else dataclasses.asdict(self.expected),
        }

    @classmethod
    def from_json(cls, text: str) -> "RegressionResults":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls(
            fields["title"],
            fields["formula"],
            response_from(fields["response"]),
            design_from_json(fields["design"]),
            tuple(fields["labels"]),
            releases_from(fields["releases"]),
            fields["link"],
            Expectations.from_dict(fields.get("expected")),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RegressionResults.from_json, (self.to_json(),)

    def _intervals(self, level: float) -> dict[str, kng.Interval | kng.NoInterval]:
        """Computes the intervals of the coefficients in own units, by label."""
        return intervals_of(dict(self._pairs()), level, self.design.own_units_matrix)

    def _bands(self, new: Any, level: float, original: bool) -> "dict[str, pd.DataFrame]":
        """Intervals of predictions by label: of what is between them and the linear predictor, which is monotone."""
        import pandas as pd

        x, of = self._basis_of(new, original), self._mean_by(original)
        found = intervals_of(dict(self._pairs()), level, self.design.with_constant(x))
        index = new.index if isinstance(new, pd.DataFrame) else pd.RangeIndex(len(x))
        return {label: pd.DataFrame(frame.apply(of)) for label, frame in frames_of(found, index).items()}

    def _mean_by(self, original: bool) -> Callable[[Any], Any]:
        """Returns the function that makes a prediction of a linear predictor."""
        return np.exp if original else _MEANS[self.link]

    def _pairs(self) -> list[tuple[str, Released]]:
        return list(zip(self.labels, self.releases, strict=True))
