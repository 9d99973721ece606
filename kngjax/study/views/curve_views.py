"""Views of released regressions: coefficients with names, predictions, curves, intervals."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from kngjax.core.later import pd
from kngjax.core.pictures import LINES, axes_of, style
from kngjax.data.terms import Design
from kngjax.inference.intervals import Interval, NoInterval
from kngjax.inference.published import lies_at_the_edge
from kngjax.inference.wald_tests import WaldTest
from kngjax.inference.with_intervals import ReleaseWithIntervals
from kngjax.study.responses import Response
from kngjax.study.views import interval_frames as frames
from kngjax.study.views.base import AbstractView
from kngjax.study.views.contrasts import sums_of
from kngjax.study.views.new_cells import basis_of, counts_of
from kngjax.study.views.points import coefficients_of

_MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": np.asarray,
    "odds": lambda eta: 0.5 * (1.0 + np.tanh(0.5 * eta)),
    "rate": np.exp,
}
# The names of predictions by link, where they are not on the scale of the coefficients.
_PREDICTED = {"odds": "probability", "rate": "mean"}
_AT_THE_EDGE = "; the estimate lies on the edge of Theta, where they do not hold: take a wider domain="
_ROUGH = (
    "; no standard errors are told, as by public facts the noise of H is so large that they would be wrong by more "
    "than a factor of 1.3"
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AbstractCurveView(AbstractView):
    """Names released coefficients of the basis of a formula, whatever drew them.

    **Arguments:** `formula`: as it was written. `design`: its public terms. `link`: of `Analysis`.
    """

    formula: str
    response: Response
    design: Design
    link: str = "identity"

    @property
    @abc.abstractmethod
    def curves(self) -> dict[str, np.ndarray]:
        """Returns the coefficients of the basis of each curve by its label, in order."""

    @property
    def columns(self) -> dict[str, Any]:
        return {label: self.design.in_own_units(one) for label, one in self.curves.items()}

    @property
    def index(self) -> "pd.Index":
        return pd.Index(self.design.names, name="coefficient")

    @property
    def why_no_difference(self) -> str:
        return (
            "ask one regression of all records, with the column of the groups as a term and intervals=True: the "
            "coefficients of 'y ~ x * region' that name a level are differences from the first one"
        )

    @property
    def basis_params(self) -> "pd.DataFrame":
        """Coefficients of the basis, a column for each curve: `params` are sums of these.

        They are the released numbers themselves, but for regressions with intervals: there they are the middles of
        these, and what was released is `results.releases[k].value`.
        """
        return pd.DataFrame(self.curves, index=pd.Index(self.design.basis_names, name="coefficient"))

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges | self.design.ranges

    def predict(self, new: Any, tau: Any = None, *, original: bool = False) -> "pd.Series | pd.DataFrame":
        """Predicts the response at new cells, which the basis clips to the public bounds.

        A logistic regression predicts probabilities and a Poisson regression means; others predict the response as it
        stands to the left of "~". Of rates by an exposure it predicts those of one unit of it, and expected counts
        where `new` has the column of the exposure. A quantile process predicts a column a level, of which a higher one
        never has a lower quantile, within the bounds of the response; between the released levels quantiles are linear
        in the normal score of their level, as of `kngjax.releases.QuantileCurves.quantiles`. It warns of cells beyond
        the bounds.

        **Arguments:** `new`: a frame, or a mapping of names to arrays or single values. `tau`: of a quantile process
        one level, for a series, or several, for a frame; the released ones if left out. `original`: for a response
        log(y) the exponential: the quantile of y itself of quantiles, and about the median of y where the mean of
        log(y) is predicted.
        """
        x, index = self._cells(new, original)
        found = self._predicted(x, tau)
        frame = pd.DataFrame(self._mean_of(found.to_numpy(), original), index, found.columns)
        frame = counts_of(frame, self.response.exposure, new)
        if frame.shape[1] > 1 or np.ndim(tau):
            return frame
        return frame.iloc[:, 0].rename(_PREDICTED.get(self.link, frame.columns[0]))

    def plot(
        self,
        x: str | None = None,
        at: Mapping[str, Any] | None = None,
        *,
        original: bool = False,
        ax: Any = None,
        level: float = 0.95,
    ) -> Any:
        """Draws the curve of each release or level over the public range of one column; returns the axes of Matplotlib.

        With intervals each has a band, as of `predict_interval`.

        **Arguments:** `x`: the column; the only one of numbers if it is left out. `at`: values of the other columns;
        numbers are at the middle of their bounds and categories at their reference if left out. `original`: as in
        `predict`. `ax`: axes to draw on. `level`: of the bands.
        """
        if x is None:
            x, *others = self.design.ranges or [""]
            if others or not x:
                raise ValueError(f"name the column of the horizontal axis, plot(x={x or 'age'!r})")
        axes = axes_of(ax)
        given, grid = dict(at or {}), self.design.range_of(x)
        if unknown := [name for name in given if name not in self.design.columns]:
            raise ValueError(f"at names {unknown}, which are no columns of the formula")
        rest = {name: self.design.middle_of(name) for name in self.design.columns if name not in (x, *given)}
        cells = rest | given | {x: grid}
        predicted = pd.DataFrame(self.predict(cells, original=original))
        # Predictions may be named by what they are, as probabilities, and bands are by curve, in the same order.
        bands = [*self._bands(cells, level, original).values()] or [None] * predicted.shape[1]
        for label, band in zip(predicted, bands, strict=True):
            looks = style(len(axes.get_lines()), linestyle=LINES)
            axes.plot(grid, predicted[label], label=label, linewidth=1.8, **looks)
            if band is not None:
                sides = band["lower"], band["upper"]
                axes.fill_between(grid, *sides, color=looks["color"], alpha=0.18, linewidth=0.0)
        axes.set_xlabel(x)
        axes.set_ylabel(self.response.column if original else self.response.name)
        if predicted.shape[1] > 1:
            axes.legend(frameon=False, handlelength=3.2)
        return axes

    def plot_coefficients(self, names: Sequence[str] | None = None, *, ax: Any = None, level: float = 0.95) -> Any:
        """Points with their intervals, one for each coefficient of each release; returns the axes of Matplotlib.

        **Arguments:** `names`: of the coefficients that are drawn, all but the intercept if left out. `ax`: axes to
        draw on. `level`: of the intervals. Raises ValueError for unknown names.
        """
        return coefficients_of(self.to_frame(level), names, ax)

    @abc.abstractmethod
    def _predicted(self, x: np.ndarray, tau: Any) -> "pd.DataFrame":
        """Linear predictors, or quantiles, of basis columns, by label."""

    def _bands(self, new: Any, level: float, original: bool) -> "dict[str, pd.DataFrame]":
        """Intervals of predictions by label; empty without any."""
        return {}

    def _cells(self, new: Any, original: bool) -> "tuple[np.ndarray, pd.Index]":
        """The basis columns of new cells, and the index of their rows.

        **Arguments:** `original`: refused unless the response is a logarithm.
        """
        if original and self.response.transform != "log":
            raise ValueError(
                "original=True is for a response log(y), and this one is not transformed: leave it out, and "
                "predictions are means or quantiles of the response, of a logistic regression probabilities"
            )
        return basis_of(self.design, new)

    def _mean_of(self, eta: np.ndarray, original: bool) -> np.ndarray:
        """Makes predictions of linear predictors; it is monotone."""
        return np.exp(eta) if original else _MEANS[self.link](eta)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RegressionView(AbstractCurveView):
    """Names a released regression, of one or several levels, each by its own release, with intervals or without.

    With intervals the estimate of a released coefficient is the middle of its 95% interval, and `params`, predictions
    and contrasts are sums of these: so they agree with one another. The middle of the interval of a sum is not the sum
    of middles; these differ by up to a tenth of half its width. Middles of intervals in own units would not do: where
    columns lie far from 0, as years do, these coefficients cancel in predictions, and their middles do not.
    """

    kind: ClassVar[str] = "regression"

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """Returns the coefficients of the basis by label: the released ones, or the middles of their 95% intervals."""
        return {
            label: one.middle if isinstance(one, ReleaseWithIntervals) else one.value for label, one in self._pairs()
        }

    @functools.cached_property
    def at_the_edge(self) -> tuple[str, ...]:
        """Names the estimates that lie on the edge of Θ, where no figure of noise holds. Public, as both are."""
        pairs = [(label, one, one.certificate.mechanism) for label, one in self._pairs()]
        return tuple(label for label, one, made in pairs if lies_at_the_edge(made, one.value))

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        return None if self.at_the_edge else super().noise

    @property
    def noise_in_words(self) -> str:
        if not self.at_the_edge:
            return super().noise_in_words
        return (
            f"not stated: the estimate ({', '.join(self.at_the_edge)}) lies on the edge of Theta, which cut it off, so "
            "that it errs by more than noise. domain= takes a wider one; narrower bounds of columns make it err less"
        )

    @property
    def has_intervals(self) -> bool:
        """Tells whether intervals were asked for."""
        return all(isinstance(one, ReleaseWithIntervals) for one in self.releases)

    def intervals(self, level: float | None = None) -> "Interval | NoInterval | dict[str, Any]":
        """Intervals of `params`, with how they were made and what they rest on; of several releases by label. Free.

        A coefficient that mixes several of the basis has an interval of their sum, whose errors depend on one another.
        Each interval has its level by itself: several intervals hold at once less often.

        **Arguments:** `level`: between 0 and 1, 0.95 if left out. Raises ValueError where no intervals were asked for.
        """
        names = self.design.names
        found = {
            label: dataclasses.replace(one, names=names) if isinstance(one, Interval) else one
            for label, one in self._intervals(0.95 if level is None else level).items()
        }
        return found[self.labels[0]] if len(self.labels) == 1 else found

    def conf_int(self, level: float = 0.95) -> "pd.DataFrame":
        """Intervals of `params`: a row a coefficient, columns lower and upper, of several releases below their labels.

        The ends are infinite where there is no interval: `intervals` has the reason. **Arguments:** as of `intervals`.
        """
        return frames.side_by_side(frames.frames_of(self._intervals(level), self.index))

    def predict_interval(self, new: Any, level: float = 0.95, *, original: bool = False) -> "pd.DataFrame":
        """Intervals of what `predict` says of new cells, as confidence bands: of the regression, not of new responses.

        **Arguments:** as of `predict` and `intervals`; each row is by itself.
        """
        return frames.side_by_side(self._bands_of(new, level, original))

    def contrast(self, weights: Any, level: float = 0.95) -> "pd.DataFrame":
        """Estimates sums of coefficients, as differences: a row each, with columns as of `to_frame`. Free.

        The errors of coefficients depend on one another, so that these intervals do not follow from those of `params`.

        **Arguments:** `weights`: of coefficients by name, `{"region[south]": 1, "region[west]": -1}`; a frame with a
        column for each of some coefficients and a row a sum; or a matrix with a column for each of `params`. `level`:
        of each interval by itself. Raises ValueError for unknown names, and where no intervals were asked for.
        """
        sums = sums_of(weights, self.design.names)
        ends = self._told(sums.to_numpy() @ self.design.own_units_matrix, sums.index, level)
        return frames.stacked(
            {label: frames.rows_of(sums @ self.columns[label], ends[label], level) for label in self.labels}
        )

    def wald_test(self, of: Any) -> "WaldTest | NoInterval | dict[str, WaldTest | NoInterval]":
        """Tests that coefficients, or sums of them, are all 0, by draws of the joint law of their errors. Free.

        Of several releases there is a test each, by label. It says why there is none where the joint law is not known.

        **Arguments:** `of`: the name of a coefficient, or a list of names; or weights as of `contrast`. Raises
        ValueError for unknown names, for sums that follow from others, and where no intervals were asked for.
        """
        sums = sums_of(of, self.design.names)
        frames.require_intervals(self.releases)
        combinations, found = sums.to_numpy() @ self.design.own_units_matrix, {}
        for label, one in self._pairs():
            test = one.wald_test(combinations)
            found[label] = dataclasses.replace(test, names=tuple(sums.index)) if isinstance(test, WaldTest) else test
        return found[self.labels[0]] if len(self.labels) == 1 else found

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        return self._told(self.design.own_units_matrix, self.index, level) if self.has_intervals else {}

    def _told(self, combinations: np.ndarray, index: "pd.Index", level: float) -> "dict[str, pd.DataFrame]":
        """Puts standard errors of sums of coefficients, where widths tell them, before the ends of their intervals."""
        ends, wide = (frames.frames_of(self._intervals(one, combinations), index) for one in (level, 0.95))
        tells = frames.tell_errors(self.releases) and not self.at_the_edge
        return {
            label: frames.with_errors(one, frames.errors_of(wide[label]) if tells else np.nan)
            for label, one in ends.items()
        }

    @property
    def estimate_in_words(self) -> str:
        if not (self.has_intervals and any(isinstance(one, Interval) for one in self._intervals(0.95).values())):
            return ""
        sums = [name for name, is_mixed in zip(self.design.names, self._mixed, strict=True) if is_mixed]
        of_sums = f"; {', '.join(sums)}: a sum of several of these" if sums else ""
        return f"the middle of the interval of each released coefficient, corrected for the pull of a ridge{of_sums}"

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        if not self.has_intervals:
            return ""
        found = self._intervals(level)
        words = frames.in_words(found, self.design.names, self._mixed, in_full)
        if not any(isinstance(one, Interval) for one in found.values()):
            return words
        return words + (_AT_THE_EDGE if self.at_the_edge else "" if frames.tell_errors(self.releases) else _ROUGH)

    @property
    def _mixed(self) -> list[bool]:
        """Marks the coefficients in own units that are sums of several released ones."""
        return (np.count_nonzero(self.design.own_units_matrix, axis=1) > 1).tolist()

    def _predicted(self, x: np.ndarray, tau: Any) -> "pd.DataFrame":
        if tau is not None:
            raise ValueError("a regression predicts the levels that were released: leave tau out")
        rows = self.design.with_constant(x)
        return pd.DataFrame({label: rows @ one for label, one in self.curves.items()})

    def _intervals(self, level: float, combinations: np.ndarray | None = None) -> dict[str, Interval | NoInterval]:
        """Computes the intervals of the coefficients in own units, or of other combinations of the basis, by label.

        Raises ValueError for a release that was made without intervals.
        """
        frames.require_intervals(self.releases)
        rows = self.design.own_units_matrix if combinations is None else combinations
        return {label: one.intervals(level, rows) for label, one in self._pairs()}

    def _bands(self, new: Any, level: float, original: bool) -> "dict[str, pd.DataFrame]":
        return self._bands_of(new, level, original) if self.has_intervals else {}

    def _bands_of(self, new: Any, level: float, original: bool) -> "dict[str, pd.DataFrame]":
        """Computes intervals of predictions by label, from those of the linear predictor."""
        x, index = self._cells(new, original)
        found = frames.frames_of(self._intervals(level, self.design.with_constant(x)), index)
        return {
            label: counts_of(
                pd.DataFrame(self._mean_of(one.to_numpy(), original), index, one.columns), self.response.exposure, new
            )
            for label, one in found.items()
        }

    def _pairs(self) -> list[tuple[str, Any]]:
        return list(zip(self.labels, self.releases, strict=True))
