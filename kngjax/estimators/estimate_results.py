"""A released mean, median or other quantiles of a column, with names."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import kngjax as kng
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults, releases_from, response_from

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EstimateResults(AbstractResults):
    """Released numbers of one column. **Arguments:** `names`: of the numbers."""

    title: str
    response: Response
    names: tuple[str, ...]
    labels: tuple[str, ...]
    releases: tuple[kng.Release, ...]
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Analysis, releases: list[kng.Release]) -> "EstimateResults":
        """Those of an analysis that was carried out."""
        assert isinstance(analysis.response, Response)
        labels = tuple(part.label for part in analysis.parts)
        return cls(analysis.title, analysis.response, analysis.names, labels, tuple(releases), analysis.expected)

    @property
    def params(self) -> "pd.Series":
        """The released numbers, by name."""
        import pandas as pd

        return pd.Series(self.releases[0].value, pd.Index(self.names, name="estimate"), name=self.labels[0])

    @property
    def noise(self) -> "pd.Series | None":
        """The standard deviation of the noise for privacy of each number; None where it is not known."""
        import pandas as pd

        values = None if self.expected is None else self.expected.noise[0]
        return None if values is None else pd.Series(values, pd.Index(self.names, name="estimate"), name="noise")

    @property
    def value(self) -> float:
        """The only number; of several, `params` has them by name."""
        if len(self.names) > 1:
            raise ValueError(f"there are {len(self.names)} numbers: take params")
        return float(self.releases[0].value[0])

    def intervals(self, level: float | None = None) -> "kng.Interval | kng.NoInterval":
        """As `Release.intervals`, of the only release: of `quantile_interval` there is one."""
        return self.releases[0].intervals(level)

    def interval_in_words(self, level: float) -> str:
        """For the summary, at the level that the release was made for; empty where it was made for none."""
        if self.certificate.mechanism["type"] != "QuantileInterval":
            return ""
        found = self.intervals()
        if isinstance(found, kng.NoInterval):
            return f"none: {found.reason}"
        return f"{found.level:.12g}: [{found.lower[0]:.5g}, {found.upper[0]:.5g}], by {found.method}"

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "response": dataclasses.asdict(self.response),
            "names": list(self.names),
            "labels": list(self.labels),
            "releases": [json.loads(one.to_json()) for one in self.releases],
            "expected": None if self.expected is None else dataclasses.asdict(self.expected),
        }

    @classmethod
    def from_json(cls, text: str) -> "EstimateResults":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls(
            fields["title"],
            response_from(fields["response"]),
            tuple(fields["names"]),
            tuple(fields["labels"]),
            releases_from(fields["releases"]),
            Expectations.from_dict(fields.get("expected")),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return EstimateResults.from_json, (self.to_json(),)
