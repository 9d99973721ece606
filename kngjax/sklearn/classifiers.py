"""Private classification into two classes."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import ClassifierTags

from kngjax.data.named_columns import Columns
from kngjax.sklearn.base import AbstractPrivateEstimator, levels_of
from kngjax.sklearn.rowwise import predictors, probabilities
from kngjax.study.analyses import Analysis
from kngjax.study.regressions import Regression
from kngjax.study.responses import Response


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(AbstractPrivateEstimator):
    """Fits a logistic regression under ε-DP: log odds of the second class are linear in X.

    **Arguments:** `classes`: two public labels, the event second; they are never read off y, and responses that are
    neither count as missing. Others as of `AbstractPrivateEstimator`; coefficients lie in
    [-10240, 10240] each if `domain` is left out. `coef_` has shape (1, columns) and `intercept_` shape (1,), as
    scikit-learn's.
    """

    classes: Any = (0, 1)

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

    def owner_score(self, X: Any, y: Any) -> float:
        return float(accuracy_score(y, self.predict(X)))

    def _losses(self, predicted: Any, table: Columns, y: np.ndarray) -> np.ndarray:
        # Brier's score, which is least for the true probability.
        return (y - probabilities(predictors(predicted._design(), predicted.basis_coef_, table))) ** 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        return tags
