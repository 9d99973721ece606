"""Curves that were released, whatever drew them: coefficients in own units, and a picture."""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kngjax.data.terms import Design
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults

if TYPE_CHECKING:
    import pandas as pd


class AbstractFittedCurves(AbstractResults):
    """Released coefficients of the basis of a formula. `formula`: as it was written. `design`: its public terms."""

    formula: str
    response: Response
    design: Design

    @property
    @abc.abstractmethod
    def curves(self) -> dict[str, np.ndarray]:
        """The released coefficients of each curve by its label, in order."""

    @property
    def params(self) -> "pd.Series | pd.DataFrame":
        """Coefficients in own units, by name: a series, or of several curves a frame with a column for each."""
        return self._by_curve([self.design.in_own_units(one) for one in self.curves.values()])

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """The standard deviation of the noise for privacy of each of `params`; None where it depends on the records.

        `noise_in_words` says what it depends on.
        """
        if self.expected is None or any(one is None for one in self.expected.noise):
            return None
        return self._by_curve(list(self.expected.noise), "noise")

    @property
    def basis_params(self) -> "pd.DataFrame":
        """The released numbers themselves: coefficients of the basis, a column for each curve."""
        import pandas as pd

        return pd.DataFrame(self.curves, index=pd.Index(self.design.basis_names, name="coefficient"))

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges | self.design.ranges

    def _by_curve(self, values: list[Any], name: str | None = None) -> "pd.Series | pd.DataFrame":
        """A series of the only curve, or a frame. **Arguments:** `name`: of the series, its label if left out."""
        import pandas as pd

        labels, index = list(self.curves), self._index()
        if len(labels) == 1:
            return pd.Series(values[0], index, name=name or labels[0])
        return pd.DataFrame(dict(zip(labels, values, strict=True)), index=index)

    def _index(self) -> "pd.Index":
        import pandas as pd

        return pd.Index(self.design.names, name="coefficient")

    def _basis_of(self, new: Any, original: bool) -> np.ndarray:
        """The basis columns of new cells. **Arguments:** `original`: refused unless the response is a logarithm."""
        if original and self.response.transform != "log":
            raise ValueError(
                "original=True is for a response log(y), and this one is not transformed: leave it out, and "
                "predictions are means or quantiles of the response, of a logistic regression probabilities"
            )
        return self.design.matrix_of(new) if isinstance(new, Mapping) else self.design.matrix(new)

    def _drawn_over(
        self,
        x: str | None,
        at: Mapping[str, Any] | None,
        original: bool,
        ax: Any,
        predict: Callable[[Any], Any],
        bands_at: "Callable[[Any], dict[str, pd.DataFrame]]" = lambda _: {},
    ) -> Any:
        """Draws what `predict` returns over the public range of one column, and returns the axes of Matplotlib.

        **Arguments:** as of `RegressionResults.plot`. `bands_at`: of given cells, by label; empty without any.
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
        predicted = pd.DataFrame(predict(cells))
        # Predictions may be named by what they are, as probabilities, and bands are by curve, in the same order.
        bands = [*bands_at(cells).values()] or [None] * predicted.shape[1]
        for label, band in zip(predicted, bands, strict=True):
            (line,) = axes.plot(grid, predicted[label], label=label)
            if band is not None:
                axes.fill_between(grid, band["lower"], band["upper"], color=line.get_color(), alpha=0.2, linewidth=0.0)
        axes.set_xlabel(x)
        axes.set_ylabel(self.response.column if original else self.response.name)
        if predicted.shape[1] > 1:
            axes.legend()
        return axes
