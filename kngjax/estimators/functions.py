"""A regression in one call: `Study(frame, ...)` and its method."""

from collections.abc import Sequence
from typing import Any

from kngjax.estimators.regression_results import RegressionResults
from kngjax.estimators.study import Study


def quantile_regression(
    formula: str,
    frame: Any,
    *,
    tau: float | Sequence[float],
    epsilon: Any,
    domain: Any = None,
    scale: Any = None,
    force: bool = False,
    **facts: Any,
) -> RegressionResults:
    """As `Study.quantile_regression`, with `facts` that `Study` takes: bounds, levels, adjacency, ledger, missing."""
    study = Study(frame, **facts)
    # Frames of a traceback hold their local variables.
    del frame
    return study.quantile_regression(formula, tau=tau, epsilon=epsilon, domain=domain, scale=scale, force=force)


def linear_regression(
    formula: str,
    frame: Any,
    *,
    epsilon: Any,
    method: str = "robust",
    delta: Any = None,
    domain: Any = None,
    scale: Any = None,
    force: bool = False,
    **facts: Any,
) -> RegressionResults:
    """As `Study.linear_regression`, with `facts` that `Study` takes: bounds, levels, adjacency, ledger, missing."""
    study = Study(frame, **facts)
    del frame
    return study.linear_regression(
        formula, epsilon=epsilon, method=method, delta=delta, domain=domain, scale=scale, force=force
    )


def logistic_regression(
    formula: str, frame: Any, *, epsilon: Any, domain: Any = None, force: bool = False, **facts: Any
) -> RegressionResults:
    """As `Study.logistic_regression`, with `facts` that `Study` takes: bounds, levels, adjacency, ledger, missing."""
    study = Study(frame, **facts)
    # Frames of a traceback hold their local variables.
    del frame
    return study.logistic_regression(formula, epsilon=epsilon, domain=domain, force=force)


def poisson_regression(
    formula: str, frame: Any, *, epsilon: Any, domain: Any = None, force: bool = False, **facts: Any
) -> RegressionResults:
    """As `Study.poisson_regression`, with `facts` that `Study` takes: bounds, levels, adjacency, ledger, missing."""
    study = Study(frame, **facts)
    # Frames of a traceback hold their local variables.
    del frame
    return study.poisson_regression(formula, epsilon=epsilon, domain=domain, force=force)
