"""A released regression: coefficients with names, predictions, curves."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.data.terms import Design
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import Expectations
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
    releases: tuple[kng.Release, ...]
    link: str = "identity"
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Analysis, releases: list[kng.Release]) -> "RegressionResults":
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

        names = pd.Index(self.design.names, name="coefficient")
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
        names = pd.Index(self.design.names, name="coefficient")
        values = dict(zip(self.labels, self.expected.noise, strict=True))
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], names, name="noise")
        return pd.DataFrame(values, index=names)

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

        if original and self.response.transform != "log":
            raise ValueError("original=True is for a response log(y), and this one is not transformed")
        x = self.design.matrix_of(new) if isinstance(new, Mapping) else self.design.matrix(new)
        of = np.exp if original else _MEANS[self.link]
        values = {label: of(one.value[0] + x @ one.value[1:]) for label, one in self._pairs()}
        index = new.index if isinstance(new, pd.DataFrame) else None
        if len(self.labels) == 1:
            return pd.Series(values[self.labels[0]], index, name=self.labels[0])
        return pd.DataFrame(values, index=index)

    def plot(
        self, x: str | None = None, at: Mapping[str, Any] | None = None, *, original: bool = False, ax: Any = None
    ) -> Any:
        """The curve of each release over the public range of one column; returns the axes of Matplotlib.

        **Arguments:** `x`: the column; the only one of numbers if it is left out. `at`: values of the other columns;
        numbers are at the middle of their bounds and categories at their reference if left out. `original`: as in
        `predict`. `ax`: axes to draw on.
        """
        import matplotlib.pyplot as plt

        if x is None:
            x, *others = self.design.ranges or [""]
            if others or not x:
                raise ValueError(f"name the column of the horizontal axis, plot(x={x or 'age'!r})")
        axes = plt.subplots()[1] if ax is None else ax
        given, grid = dict(at or {}), self.design.range_of(x)
        if unknown := [name for name in given if name not in self.design.columns]:
            raise ValueError(f"at names {unknown}, which are no columns of the formula")
        rest = {name: self.design.middle_of(name) for name in self.design.columns if name not in (x, *given)}
        predicted = self.predict(rest | given | {x: grid}, original=original)
        for label in self.labels:
            axes.plot(grid, predicted if len(self.labels) == 1 else predicted[label], label=label)
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

    def _pairs(self) -> list[tuple[str, kng.Release]]:
        return list(zip(self.labels, self.releases, strict=True))
