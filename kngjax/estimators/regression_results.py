"""A released regression: coefficients with names, predictions, curves."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.data.terms import Design
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.carrying_out import Released
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.fitted_intervals import frames_of, in_words, intervals_of, side_by_side
from kngjax.estimators.public_json import design_from_json, design_in_json
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults, releases_from, response_from

if TYPE_CHECKING:
    import pandas as pd

_MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": np.asarray,
    "odds": lambda eta: 0.5 * (1.0 + np.tanh(0.5 * eta)),
    "rate": np.exp,
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RegressionResults(AbstractResults):
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
        """Those of an analysis that was carried out."""
        assert analysis.design is not None
        assert isinstance(analysis.response, Response)
        labels = tuple(part.label for part in analysis.parts)
        public = analysis.title, analysis.formula or "", analysis.response, analysis.design
        return cls(*public, labels, tuple(releases), analysis.link, analysis.expected)

    @property
    def params(self) -> "pd.Series | pd.DataFrame":
        """Coefficients in own units, by name: a series, or of several releases a frame with a column for each."""
        import pandas as pd

        names = self._index()
        values = {label: self.design.in_own_units(one.value) for label, one in self._pairs()}
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], names, name=self.labels[0])
        return pd.DataFrame(values, index=names)

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """The standard deviation of the noise for privacy of each of `params`; None where it is not known."""
        import pandas as pd

        if self.expected is None or any(one is None for one in self.expected.noise):
            return None
        names = self._index()
        values = dict(zip(self.labels, self.expected.noise, strict=True))
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], names, name="noise")
        return pd.DataFrame(values, index=names)

    @property
    def has_intervals(self) -> bool:
        """Whether they were asked for."""
        return all(isinstance(one, kng.ReleaseWithIntervals) for one in self.releases)

    def intervals(self, level: float = 0.95) -> "kng.Interval | kng.NoInterval | dict[str, Any]":
        """Intervals of `params`, with how they were made and what they rest on; of several releases by label. Free.

        Those of coefficients that mix several of the basis are of these sums, whose errors depend on one another. Each
        interval is by itself: all of several hold at once less often.

        **Arguments:** `level`: between 0 and 1. Raises ValueError where none were asked for.
        """
        names = self.design.names
        found = {
            label: dataclasses.replace(one, names=names) if isinstance(one, kng.Interval) else one
            for label, one in self._intervals(level).items()
        }
        return found[self.labels[0]] if len(self.labels) == 1 else found

    def conf_int(self, level: float = 0.95) -> "pd.DataFrame":
        """Intervals of `params`: a row a coefficient, columns lower and upper, of several releases below their labels.

        NaN where there is none: `intervals` has the reason. **Arguments:** as of `intervals`.
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

    @property
    def basis_params(self) -> "pd.DataFrame":
        """The released numbers themselves: coefficients of the basis, a column for each release."""
        import pandas as pd

        names = pd.Index(self.design.basis_names, name="coefficient")
        return pd.DataFrame({label: one.value for label, one in self._pairs()}, index=names)

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges | self.design.ranges

    def predict(self, new: Any, *, original: bool = False) -> "pd.Series | pd.DataFrame":
        """What the regression says of new cells: by the basis, which clips them to the public bounds.

        Of a logistic regression probabilities, of a Poisson regression means; of others what stands to the left of "~".

        **Arguments:** `new`: a frame, or a mapping of names to arrays or single values. `original`: of a response
        log(y) the exponential, which is the quantile of y itself, and of a mean only about its median.
        """
        import pandas as pd

        x, of = self._basis_of(new, original)
        values = {label: of(one.value[0] + x @ one.value[1:]) for label, one in self._pairs()}
        index = new.index if isinstance(new, pd.DataFrame) else None
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], index, name=self.labels[0])
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
        import matplotlib.pyplot as plt
        import pandas as pd

        if x is None:
            x, *others = self.design.ranges or [""]
            if others or not x:
                raise ValueError(f"name the column of the horizontal axis, plot(x={x or 'age'!r})")
        axes = plt.subplots()[1] if ax is None else ax
        given, grid = dict(at or {}), self.design.range_of(x)
        if unknown := [name for name in given if name not in self.design.columns]:
            raise ValueError(f"at names {unknown}, which are no columns of the formula")
        rest = {name: self.design.middle_of(name) for name in self.design.columns if name not in (x, *given)}
        cells = rest | given | {x: grid}
        predicted = pd.DataFrame(self.predict(cells, original=original))
        bands = self._bands(cells, level, original) if self.has_intervals else {}
        for label in self.labels:
            (line,) = axes.plot(grid, predicted[label], label=label)
            if (band := bands.get(label)) is not None:
                axes.fill_between(grid, band["lower"], band["upper"], color=line.get_color(), alpha=0.2, linewidth=0.0)
        axes.set_xlabel(x)
        axes.set_ylabel(self.response.column if original else self.response.name)
        if len(self.labels) > 1:
            axes.legend()
        return axes

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

    def _index(self) -> "pd.Index":
        import pandas as pd

        return pd.Index(self.design.names, name="coefficient")

    def _intervals(self, level: float) -> dict[str, kng.Interval | kng.NoInterval]:
        """Of the coefficients in own units."""
        return intervals_of(dict(self._pairs()), level, self.design.own_units_matrix)

    def _bands(self, new: Any, level: float, original: bool) -> "dict[str, pd.DataFrame]":
        """Intervals of predictions by label: of what is between them and the linear predictor, which is monotone."""
        import pandas as pd

        x, of = self._basis_of(new, original)
        found = intervals_of(dict(self._pairs()), level, np.hstack([np.ones((len(x), 1)), x]))
        index = new.index if isinstance(new, pd.DataFrame) else pd.RangeIndex(len(x))
        return {label: pd.DataFrame(frame.apply(of)) for label, frame in frames_of(found, index).items()}

    def _basis_of(self, new: Any, original: bool) -> tuple[np.ndarray, Callable[[Any], Any]]:
        """The basis columns of new cells, and what makes a prediction of a linear predictor."""
        if original and self.response.transform != "log":
            raise ValueError("original=True is for a response log(y), and this one is not transformed")
        x = self.design.matrix_of(new) if isinstance(new, Mapping) else self.design.matrix(new)
        return x, np.exp if original else _MEANS[self.link]

    def _pairs(self) -> list[tuple[str, Released]]:
        return list(zip(self.labels, self.releases, strict=True))
