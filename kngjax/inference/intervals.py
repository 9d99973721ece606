"""Confidence intervals of what was released, or why there are none."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from kngjax.core.html import html_table

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False)
class Interval:
    """A confidence interval of each released number. Public: it is made of released values and public facts.

    The privacy of what it is made of is that of the release. Its coverage is asymptotic.

    **Arguments:** `lower`, `upper`: the ends, shape (d,). `level`: the share of data sets whose interval contains the
    estimand, as the method has it in the limit. `method`: how it was made. `assumptions`: what that rests on. `names`:
    of the numbers, where they have some.
    """

    lower: Float[np.ndarray, " dimension"]
    upper: Float[np.ndarray, " dimension"]
    level: float
    method: str
    assumptions: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None

    @property
    def width(self) -> Float[np.ndarray, " dimension"]:
        """How long each is."""
        return self.upper - self.lower

    def to_frame(self) -> "pd.DataFrame":
        """A row a number: the two ends."""
        import pandas as pd

        labels = self.names if self.names is not None else range(len(self.lower))
        return pd.DataFrame({"lower": self.lower, "upper": self.upper}, pd.Index(labels, name="coefficient"))

    def explain(self) -> str:
        """The interval, the method and what it assumes, in words."""
        lines = [f"{self.level:.0%} confidence intervals: {self.method}"]
        lines.append(self.to_frame().to_string(float_format=lambda number: f"{number:.6g}"))
        lines += [f"Assumed: {'; '.join(self.assumptions)}."] if self.assumptions else []
        return "\n".join(lines)

    __repr__ = explain

    def _repr_html_(self) -> str:
        pairs = zip(self.names or map(str, range(len(self.lower))), self.lower, self.upper, strict=True)
        rows = [(name, f"{low:.6g} to {high:.6g}") for name, low, high in pairs]
        rows += [("method", self.method), ("assumed", "; ".join(self.assumptions))]
        return html_table(f"{self.level:.0%} confidence intervals", rows)


@dataclasses.dataclass(frozen=True)
class NoInterval:
    """That there is no interval, and why. Public. It is false, as None is."""

    reason: str

    def __bool__(self) -> bool:
        return False

    def explain(self) -> str:
        """In words."""
        return f"no interval: {self.reason}"

    __repr__ = explain
