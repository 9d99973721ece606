"""Private estimators: regressions of quantiles, means, robust means and counts, and classification into two classes."""

import dataclasses
import functools
import numbers
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, d2_pinball_score, d2_tweedie_score
from sklearn.utils import ClassifierTags, RegressorTags

from kngjax.data.named_columns import Columns
from kngjax.sklearn.base import AbstractPrivateEstimator, ends_of, levels_of
from kngjax.sklearn.column_facts import plain
from kngjax.sklearn.rowwise import exponentials, predictors, probabilities
from kngjax.study.analyses import Analysis
from kngjax.study.regressions import MOST_QUANTILES, Regression
from kngjax.study.responses import Response


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class AbstractPrivateRegressor(AbstractPrivateEstimator):
    """Fits a private regression of numbers.

    **Arguments:** as of `AbstractPrivateEstimator`; `bounds_y`: the least and the largest response, in the units of y;
    other responses are clipped.
    """

    bounds_y: Any = None

    def _response(self, name: str) -> Response:
        return Response(name, None, ends_of(self.bounds_y), None, self.missing_y)

    def _require_bounds(self, response: Response, dimension: int) -> None:
        if response.ends is None:
            raise ValueError("y needs public bounds in own units, bounds_y=(lower, upper)")

    def predict(self, X: Any) -> np.ndarray:
        return self._linear(X)

    def _losses(self, predicted: Any, table: Columns, y: np.ndarray) -> np.ndarray:
        ends = self._response("y").ends
        assert ends is not None
        low, high = ends
        eta = predictors(predicted._design(), predicted.basis_coef_, table)
        errors = (np.clip(y, low, high) - np.clip(predicted._mean(eta), low, high)) / (high - low)
        return self._of_errors(errors)

    def _require_comparable(self) -> None:
        if self._response("y").ends is None:
            raise ValueError("bounds_y is needed to compare settings: losses are in widths of it")

    def _mean(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def _of_errors(self, errors: np.ndarray) -> np.ndarray:
        """Losses in [0, 1] of errors in [-1, 1], in widths of the bounds of y: squares unless told."""
        return errors * errors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Little can be learned of some hundred records.
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor_score=True)
        return tags


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantileRegressor(AbstractPrivateRegressor):
    """Fits a quantile regression under ε-differential privacy: the τ-quantile of y is linear in X.

    It takes KNG with the quantile loss for up to four coefficients, and objective perturbation with a smoothed quantile
    loss for more.

    **Arguments:** `quantile`: τ in (0, 1). `scale`: a public guess of how far responses scatter about the regression,
    with five and more coefficients. `dither`: with up to four, the unit that y was rounded to; uniform noise of this
    width is added to each response, because KNG is nearly blind on heaps. Others as of `AbstractPrivateRegressor`;
    `bounds_y` or `domain` is needed.
    """

    quantile: Any = 0.5
    scale: Any = None
    dither: Any = None

    def _response(self, name: str) -> Response:
        return dataclasses.replace(super()._response(name), dither=plain(self.dither))

    def _require_bounds(self, response: Response, dimension: int) -> None:
        needs_scale = dimension > MOST_QUANTILES
        if response.ends is None and (self.domain is None or (needs_scale and self.scale is None)):
            scale = ", together with scale=2.0, how far y scatters, a public guess" if needs_scale else ""
            raise ValueError(
                "y needs public bounds in own units, bounds_y=(lower, upper), or in their place "
                f"domain=kngjax.Box(lower, upper) of the coefficients{scale}"
            )

    def _analysis(self, asked: Regression) -> Analysis:
        _check_quantile(self.quantile)
        return asked.quantiles(self.quantile, self.epsilon)

    def owner_score(self, X: Any, y: Any) -> float:
        return float(d2_pinball_score(y, self.predict(X), alpha=self.quantile))

    def _of_errors(self, errors: np.ndarray) -> np.ndarray:
        _check_quantile(self.quantile)
        return np.where(errors > 0, self.quantile * errors, (self.quantile - 1.0) * errors)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegressor(AbstractPrivateRegressor):
    """Fits least squares: ε-DP by KNG or objective perturbation, or with a δ (ε, δ)-DP by `kngjax.AdaSSP`.

    It takes KNG for up to five coefficients.

    **Arguments:** `delta`: δ, or None for pure ε. Others as of `AbstractPrivateRegressor`; `bounds_y` is needed;
    `domain` is for pure ε alone.
    """

    delta: Any = None

    def _analysis(self, asked: Regression) -> Analysis:
        if self.delta is not None and self.domain is not None:
            raise ValueError(
                "domain is for pure epsilon: with a delta coefficients are not bound, leave one of both out"
            )
        return asked.linear(self.epsilon, "squared" if self.delta is None else "adassp", self.delta)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivateRobustRegressor(AbstractPrivateRegressor):
    """Fits a linear regression that outliers move little, by the pseudo-Huber loss: ε-DP.

    **Arguments:** `scale`: how far responses scatter about the regression, a public guess, for the threshold; a tenth
    of the width of `bounds_y` if it is left out. Others as of `AbstractPrivateRegressor`; `bounds_y` is needed.
    """

    scale: Any = None

    def _analysis(self, asked: Regression) -> Analysis:
        return asked.linear(self.epsilon)

    def _of_errors(self, errors: np.ndarray) -> np.ndarray:
        return np.abs(errors)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivatePoissonRegressor(AbstractPrivateRegressor):
    """Fits a Poisson regression under ε-DP: log E y is linear in X.

    **Arguments:** as of `AbstractPrivateRegressor`; `bounds_y` is needed, like (0, 30).
    """

    _score = staticmethod(functools.partial(d2_tweedie_score, power=1))

    def _analysis(self, asked: Regression) -> Analysis:
        return asked.poisson(self.epsilon)

    def predict(self, X: Any) -> np.ndarray:
        return np.exp(self._linear(X))

    def _mean(self, eta: np.ndarray) -> np.ndarray:
        return exponentials(eta)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _check_quantile(quantile: Any) -> None:
    if not (isinstance(quantile, numbers.Real) and not isinstance(quantile, bool) and 0.0 < float(quantile) < 1.0):
        raise ValueError(f"quantile must be one level in (0, 1), like 0.5, not {quantile!r}")


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(AbstractPrivateEstimator):
    """Fits a logistic regression under ε-DP: log odds of the second class are linear in X.

    **Arguments:** `classes`: two public labels, the event second; they are never read off y, and responses that are
    neither count as missing. Others as of `AbstractPrivateEstimator`; coefficients lie in
    [-10240, 10240] each if `domain` is left out. `coef_` has shape (1, columns) and `intercept_` shape (1,), as
    scikit-learn's.
    """

    classes: Any = (0, 1)
    _score = staticmethod(accuracy_score)

    def _response(self, name: str) -> Response:
        return Response(name, None, None, levels_of(self.classes), self.missing_y)

    def _analysis(self, asked: Regression) -> Analysis:
        return asked.logistic(self.epsilon)

    def _keep(self, analysis: Analysis, releases: list[Any]) -> None:
        super()._keep(analysis, releases)
        response = analysis.response
        assert isinstance(response, Response)
        assert response.levels is not None
        self.classes_ = np.array(response.levels)
        self.coef_, self.intercept_ = self.coef_[None, :], np.array([self.intercept_])

    def decision_function(self, X: Any) -> np.ndarray:
        """Returns the log odds of the second class, shape (m,). Private if X is."""
        return self._linear(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns the probability of each class, shape (m, 2). Private if X is."""
        event = 0.5 * (1.0 + np.tanh(0.5 * self._linear(X)))
        return np.column_stack([1.0 - event, event])

    def predict(self, X: Any) -> np.ndarray:
        is_event = self._linear(X) > 0
        return self.classes_[is_event.astype(int)]

    def _losses(self, predicted: Any, table: Columns, y: np.ndarray) -> np.ndarray:
        # Brier's score, which is least for the true probability.
        return (y - probabilities(predictors(predicted._design(), predicted.basis_coef_, table))) ** 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        return tags
