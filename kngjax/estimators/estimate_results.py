"""A released mean, median or other quantiles of a column, with names."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults, releases_from, response_from

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EstimateResults(AbstractResults):
    """Holds released numbers of one column. **Arguments:** `names`: of the numbers.

    The numbers come from one release; or each quantile of several levels has a release of its own, as with weights:
    then `params` are put in the order of their levels, which is post-processing.
    """

    title: str
    response: Response
    names: tuple[str, ...]
    labels: tuple[str, ...]
    releases: tuple[kng.Release, ...]
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Analysis, releases: list[kng.Release]) -> "EstimateResults":
        """Makes the results of an analysis that was carried out."""
        assert isinstance(analysis.response, Response)
        labels = tuple(part.label for part in analysis.parts)
        return cls(analysis.title, analysis.response, analysis.names, labels, tuple(releases), analysis.expected)

    @property
    def params(self) -> "pd.Series":
        """The released numbers, by name; of several levels never decreasing."""
        import pandas as pd

        values, label = np.concatenate([one.value for one in self.releases]), self.labels[0]
        if len(self.releases) > 1:
            # Levels increase, as those of every mechanism of several.
            values, label = np.sort(values), "quantile"
        return pd.Series(values, pd.Index(self.names, name="estimate"), name=label)

    @property
    def noise(self) -> "pd.Series | None":
        """The standard deviation of the noise for privacy of each number; None where it depends on the records.

        `noise_in_words` says what it depends on.
        """
        import pandas as pd

        if self.expected is None or any(one is None for one in self.expected.noise):
            return None
        values = [number for one in self.expected.noise if one is not None for number in one]
        return pd.Series(values, pd.Index(self.names, name="estimate"), name="noise")

    @property
    def value(self) -> float:
        """The only number; of several, `params` has them by name."""
        if len(self.names) > 1:
            raise ValueError(f"there are {len(self.names)} numbers: take params")
        return float(self.releases[0].value[0])

    def intervals(self, level: float | None = None) -> "kng.Interval | kng.NoInterval":
        """Computes the interval of the only release, as `Release.intervals`: `quantile_interval` makes one release."""
        only, *others = self.releases
        if others:
            raise ValueError("there are several releases, and no interval of them together: ask for one level")
        return only.intervals(level)

    @property
    def budget_in_words(self) -> str:
        """Says for the summary how ε is divided among releases; empty for a single one."""
        number = len(self.releases)
        if number == 1:
            return ""
        return f"{number} releases, one a level, each of an equal part of epsilon; then put in order"

    def interval_in_words(self, level: float) -> str:
        """Describes the interval for the summary, at the level of the release; empty where the release has none."""
        if self.releases[0].certificate.mechanism["type"] != "QuantileInterval":
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
