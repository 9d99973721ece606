"""Written by `python -m tests.estimators.function_stubs`, of the signatures of `Study` and its methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from kngjax.estimators.estimate_results import EstimateResults
from kngjax.estimators.moment_results import MomentResults
from kngjax.estimators.quantile_process_results import QuantileProcessResults
from kngjax.estimators.regression_results import RegressionResults
from kngjax.estimators.table_results import TableResults

def quantile_regression(
    formula: str,
    frame: Any,
    *,
    tau: float | Sequence[float],
    epsilon: Any,
    domain: Any = None,
    scale: Any = None,
    intervals: Any = False,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> RegressionResults:
    """Quantiles of the response at the levels τ, which share ε equally."""

def quantile_process(
    formula: str,
    frame: Any,
    *,
    tau: Sequence[float],
    epsilon: Any,
    order: str = "halving",
    domain: Any = None,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> QuantileProcessResults:
    """Quantiles of the response at several levels, drawn together for one ε: curves that never cross."""

def linear_regression(
    formula: str,
    frame: Any,
    *,
    epsilon: Any,
    method: str = "robust",
    delta: Any = None,
    domain: Any = None,
    scale: Any = None,
    intervals: Any = False,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> RegressionResults:
    """The mean of the response: "robust" against outliers, by least squares, "squared", or "adassp", with a δ."""

def logistic_regression(
    formula: str,
    frame: Any,
    *,
    epsilon: Any,
    domain: Any = None,
    intervals: Any = False,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> RegressionResults:
    """The logarithm of the odds of the response's second level. **Arguments:** as `quantile_regression`."""

def poisson_regression(
    formula: str,
    frame: Any,
    *,
    epsilon: Any,
    exposure: Any = None,
    most_rate: Any = None,
    domain: Any = None,
    intervals: Any = False,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> RegressionResults:
    """The logarithm of the mean of a response of counts, or of their rate by an exposure, as years at risk."""

def mean(
    column: str,
    frame: Any,
    *,
    epsilon: Any,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> EstimateResults:
    """The mean of a column of numbers, or the share of the second of its two levels."""

def quantile(
    column: str,
    frame: Any,
    *,
    tau: float | Sequence[float],
    epsilon: Any,
    budget: str = "split",
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> EstimateResults:
    """Quantiles of a column of numbers. **Arguments:** `budget`: as of `kngjax.PrivateQuantile`."""

def quantile_interval(
    column: str,
    frame: Any,
    *,
    tau: float,
    epsilon: Any,
    level: float = 0.95,
    spread: Any = None,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> EstimateResults:
    """An interval that holds a quantile of a column with probability `level`, sampling and privacy together."""

def median(
    column: str,
    frame: Any,
    *,
    epsilon: Any,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> EstimateResults:
    """The median of a column of numbers."""

def count(
    where: str | None,
    frame: Any,
    *,
    epsilon: Any,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> TableResults:
    """How many records meet a condition, or under add_remove without one, how many there are: a whole number."""

def sum(
    column: str,
    frame: Any,
    *,
    epsilon: Any,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> MomentResults:
    """The sum of a column of numbers, which are clipped to their bounds."""

def variance(
    column: str,
    frame: Any,
    *,
    epsilon: Any,
    ddof: Any = None,
    force: bool = False,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> MomentResults:
    """The variance of a column of numbers, which are clipped to their bounds; its root is `std` of the result."""

def histogram(
    column: str,
    frame: Any,
    *,
    epsilon: Any,
    edges: Any = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> TableResults:
    """How many records have each level of a category, or lie in each interval of a column of numbers."""

def crosstab(
    columns: Sequence[str],
    frame: Any,
    *,
    epsilon: Any,
    edges: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    ledger: Any = None,
    missing: Any = None,
    num_records: int | None = None,
    weights: Any = None,
    dither: Any = None,
    missing_codes: Any = None,
) -> TableResults:
    """How many records have each combination of levels."""
