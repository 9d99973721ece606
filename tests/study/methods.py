"""Each method of a study as one row: what is asked, the names of what is released, its price, and what is refused."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.study.people import LEVELS, PEOPLE

LINE = ("intercept", "education")
QUARTILES = ("tau = 0.25", "tau = 0.75")


@dataclasses.dataclass(frozen=True)
class Method:
    """A method of `kngjax.Study`, asked of the table of people.

    **Arguments:** `what`: what is estimated, and `given` the other arguments but ε. `misspelt`: the same of a column
    that is not declared. `index`, `columns`: names of the released numbers; no columns of a series. `truth`: the
    numbers without privacy, and `error` how far releases at ε = 20 may be from them. `delta`: δ of the guarantee.
    `releases`: how many a ledger keeps. `groups`: whether groups have it. `hopeless`: an ε at which 60 records say
    little but noise; None where that is never refused.
    """

    name: str
    what: Any
    misspelt: Any
    kind: str
    index: tuple[str, ...]
    truth: Any
    error: float
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    delta: float = 0.0
    releases: int = 1
    groups: bool = True
    hopeless: float | None = 0.1
    mechanism: str = "KNG"

    def ask(self, asked: Any, epsilon: Any = 20, **changed: Any) -> Any:
        """The analysis, of a study, a plan, a preview or groups."""
        return getattr(asked, self.name)(*self.positional(self.what), epsilon=epsilon, **{**self.given, **changed})

    def ask_misspelt(self, asked: Any) -> Any:
        """The same of a column that is not there."""
        return getattr(asked, self.name)(*self.positional(self.misspelt), epsilon=20, **self.given)

    @staticmethod
    def positional(what: Any) -> tuple[Any, ...]:
        return tuple(what) if isinstance(what, list) else (what,)

    def expected(self) -> np.ndarray:
        """The numbers without privacy."""
        return np.asarray(self.truth(PEOPLE) if callable(self.truth) else self.truth, float)


def least_squares(frame: Any) -> list[float]:
    """Coefficients of log(wage) on education."""
    return np.polyfit(frame["education"], np.log(frame["wage"]), 1)[::-1]


def quartiles(frame: Any) -> np.ndarray:
    """Least squares with the residuals' quartiles added: a column a level."""
    intercept, slope = least_squares(frame)
    residuals = np.log(frame["wage"]) - intercept - slope * frame["education"]
    return np.array([intercept + residuals.quantile([0.25, 0.75]), [slope, slope]])


def regression(name: str, response: str, truth: Any, error: float, **settings: Any) -> Method:
    """A regression on education."""
    of = {"kind": "regression", "index": LINE, "truth": truth, "error": error, "hopeless": 0.5}
    of |= settings
    return Method(name, f"{response} ~ education", f"{response} ~ edukation", **of)


def of_column(name: str, column: str, label: str, truth: Callable[[Any], Any], error: float, **settings: Any) -> Method:
    """An estimate of one column."""
    of = {"kind": "estimate", "index": (f"{label} of {column}",), "truth": truth, "error": error} | settings
    return Method(name, column, column[:-1], **of)


def counts(frame: Any) -> list[int]:
    """Of each region."""
    return [(frame["region"] == level).sum() for level in LEVELS["region"]]


METHODS = {
    "quantile regression": regression(
        "quantile_regression", "log(wage)", quartiles, 0.1,
        given={"tau": [0.25, 0.75]}, columns=QUARTILES, releases=2,
    ),
    "quantile process": regression(
        "quantile_process", "log(wage)", quartiles, 0.1,
        given={"levels": [0.25, 0.75]}, columns=QUARTILES, groups=False, kind="process",
        mechanism="QuantileProcess",
    ),
    "robust": regression("linear_regression", "log(wage)", least_squares, 0.15, mechanism="ObjectivePerturbation"),
    "least squares": regression(
        "linear_regression", "log(wage)", least_squares, 0.15, given={"method": "squared"}
    ),
    "AdaSSP": regression(
        "linear_regression", "log(wage)", least_squares, 0.3, given={"method": "adassp", "delta": 1e-6},
        delta=1e-6, mechanism="AdaSSP",
    ),
    "logistic": regression("logistic_regression", "parttime", [-2.0, 0.1], 0.5, mechanism="ObjectivePerturbation"),
    "Poisson": regression("poisson_regression", "sick", [1.0, -0.05], 0.5, mechanism="ObjectivePerturbation"),
    "mean": of_column(
        "mean", "education", "mean", lambda frame: [frame["education"].mean()], 0.05, mechanism="KNormMechanism"
    ),
    "quantiles": of_column(
        "quantile", "wage", "", lambda frame: frame["wage"].quantile([0.25, 0.75]), 30.0,
        given={"tau": [0.25, 0.75]}, index=("0.25-quantile of wage", "0.75-quantile of wage"),
        mechanism="PrivateQuantile",
    ),
    "interval": of_column(
        "quantile_interval", "wage", "", lambda frame: [frame["wage"].median()] * 2, 60.0, given={"tau": 0.5},
        index=("0.5-quantile of wage, lower end", "0.5-quantile of wage, upper end"), hopeless=None,
        mechanism="QuantileInterval",
    ),
    "median": of_column(
        "median", "wage", "", lambda frame: [frame["wage"].median()], 30.0, index=("0.5-quantile of wage",),
        mechanism="PrivateQuantile",
    ),
    "count": Method(
        "count", "region == 'north'", "regio == 'north'", "table", ("region == 'north'",),
        lambda frame: counts(frame)[:1], 3.0, hopeless=None, mechanism="GeometricMechanism",
    ),
    "sum": of_column(
        "sum", "education", "sum", lambda frame: [frame["education"].sum()], 15.0, kind="moment",
        mechanism="KNormMechanism",
    ),
    "variance": of_column(
        "variance", "education", "variance", lambda frame: [frame["education"].var()], 0.2, kind="moment",
        mechanism="KNormMechanism",
    ),
    "histogram": Method(
        "histogram", "region", "regio", "table", LEVELS["region"], counts, 5.0, hopeless=None,
        mechanism="GeometricMechanism",
    ),
    "crosstab": Method(
        "crosstab", ["region", "parttime"], ["region", "partime"], "table",
        tuple((region, kind) for region in LEVELS["region"] for kind in LEVELS["parttime"]),
        lambda frame: frame.groupby(["region", "parttime"]).size(), 5.0, hopeless=None,
        mechanism="GeometricMechanism",
    ),
}  # fmt: skip
