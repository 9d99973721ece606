"""A released sum or variance of a column, with names."""

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults, releases_from, response_from
from kngjax.estimators.sums_and_variances import CentredSquares, noise_of_variance, variance_of

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MomentResults(AbstractResults):
    """Holds a released sum or variance of one column.

    **Arguments:** `names`: of the released numbers. `deviations`: the standard deviations of their noise. `ddof`: what
    is taken off n in the divisor of a variance; None for a sum. `count`: n where it is public and the divisor, else
    None.
    """

    title: str
    response: Response
    names: tuple[str, ...]
    labels: tuple[str, ...]
    releases: tuple[kng.Release, ...]
    deviations: tuple[float, ...] | None
    ddof: float | None = None
    count: int | None = None
    expected: Expectations | None = None

    @classmethod
    def of(
        cls, analysis: Analysis, releases: list[kng.Release], ddof: float | None = None, count: int | None = None
    ) -> "MomentResults":
        """Makes the results of an analysis that was carried out. **Arguments:** `ddof`, `count`: of the class."""
        columns, (part,) = analysis.response, analysis.parts
        response = columns.response if isinstance(columns, CentredSquares) else columns
        assert isinstance(response, Response)
        if isinstance(columns, CentredSquares) and columns.has_ones:
            # The divisor is among the sums.
            count = None
        found = part.mechanism.noise.deviations(len(analysis.names), count)
        deviations = None if found is None else tuple(found.tolist())
        public = analysis.title, response, analysis.names, (part.label,)
        return cls(*public, tuple(releases), deviations, ddof, count, analysis.expected)

    @property
    def value(self) -> float:
        """The sum, or the variance."""
        released = self.releases[0].value
        if self.ddof is None:
            return float(released[0])
        weight = self.certificate.mechanism["bounds"].get("weight")
        return variance_of(released, self._columns.half_width, self.count, self.ddof, 1.0 if weight is None else weight)

    @property
    def std(self) -> float:
        """The root of the variance; raises ValueError for a sum."""
        if self.ddof is None:
            raise ValueError("a sum has no std: release a variance")
        return math.sqrt(self.value)

    @property
    def _columns(self) -> CentredSquares:
        return CentredSquares(self.response, len(self.names) == 3)

    @property
    def params(self) -> "pd.Series":
        """The sum or the variance, by name."""
        return self._series([self.title], [self.value], "estimate")

    @property
    def sums(self) -> "pd.Series":
        """The released numbers themselves, by name: the sums that a variance is made of."""
        return self._series(list(self.names), self.releases[0].value, "sum")

    @property
    def noise(self) -> "pd.Series | None":
        """The standard deviation of the noise: exact for a sum, estimated from the released sums for a variance.

        None where it is not known: `noise_in_words` says why.
        """
        found = self._noise
        return None if isinstance(found, str) else self._series([self.title], [found], "estimate")

    @property
    def noise_in_words(self) -> str:
        found, what = self._noise, "the standard deviation of what is added for privacy"
        if isinstance(found, str):
            is_cut = self.ddof is not None and self.value == 0.0
            return f"not stated: {'the released sums make less than 0, and it is cut there' if is_cut else found}"
        if self.ddof is None:
            return f"{what}: exact, whatever the records are"
        return f"{what}: to first order, by the sums that were released"

    @property
    def _noise(self) -> float | str:
        if self.deviations is None:
            return "the norm has no closed form"
        if self.ddof is None:
            return self.deviations[0]
        given = np.asarray(self.deviations), self._columns.half_width, self.count, self.ddof
        return noise_of_variance(self.releases[0].value, *given)

    def _series(self, names: list[str], values: Any, what: str) -> "pd.Series":
        import pandas as pd

        return pd.Series(np.asarray(values, np.float64), pd.Index(names, name=what), name=self.labels[0])

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.response.ranges

    def to_dict(self) -> dict[str, Any]:
        public = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        releases = [json.loads(one.to_json()) for one in self.releases]
        expected = None if self.expected is None else dataclasses.asdict(self.expected)
        return public | {"response": dataclasses.asdict(self.response), "releases": releases, "expected": expected}

    @classmethod
    def from_json(cls, text: str) -> "MomentResults":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        for name in ("names", "labels", "deviations"):
            fields[name] = None if fields[name] is None else tuple(fields[name])
        releases, response = releases_from(fields.pop("releases")), response_from(fields.pop("response"))
        expected = Expectations.from_dict(fields.pop("expected", None))
        return cls(**fields, releases=releases, response=response, expected=expected)

    def __reduce__(self) -> tuple[Any, ...]:
        return MomentResults.from_json, (self.to_json(),)
