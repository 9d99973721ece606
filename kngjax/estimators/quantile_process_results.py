"""A released quantile process: curves with names, quantiles at any level, responses drawn from them."""

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, PRNGKeyArray

import kngjax as kng
from kngjax.data.terms import Design
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.fitted_curves import AbstractFittedCurves
from kngjax.estimators.public_json import design_from_json, design_in_json
from kngjax.estimators.quantile_processes import labels_of
from kngjax.estimators.responses import Response
from kngjax.estimators.results import releases_from, response_from

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class QuantileProcessResults(AbstractFittedCurves):
    """Released curves of several levels, by one release. **Arguments:** `formula`: as it was written. `design`: its
    public terms. `releases`: the only one, `kngjax.QuantileCurves` of the basis.
    """

    title: str
    formula: str
    response: Response
    design: Design
    labels: tuple[str, ...]
    releases: tuple[kng.QuantileCurves, ...]
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Analysis, releases: list[Any]) -> "QuantileProcessResults":
        """Makes the results of an analysis that was carried out."""
        assert analysis.design is not None
        assert isinstance(analysis.response, Response)
        labels = tuple(part.label for part in analysis.parts)
        public = analysis.title, analysis.formula or "", analysis.response, analysis.design
        return cls(*public, labels, tuple(releases), analysis.expected)

    @property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """τ, increasing."""
        return self._released.levels

    @property
    def curves(self) -> dict[str, np.ndarray]:
        return dict(zip(labels_of(self.levels), self._released.value, strict=True))

    @property
    def budget_in_words(self) -> str:
        shares: dict[str, list[str]] = {}
        for part in self.certificate.sampler["parts"]:
            shares.setdefault(f"{part['epsilon']:.6g}", []).append(f"{part['level']:g}")
        each = [f"{', '.join(levels)} at {epsilon}" for epsilon, levels in shares.items()]
        return f"epsilon of a curve at its depth of the tree: {'; '.join(each)}"

    def predict(self, new: Any, tau: Any = None, *, original: bool = False) -> "pd.Series | pd.DataFrame":
        """Quantiles of the response at new cells, a column a level; a higher level never has a lower quantile.

        Cells are clipped to the public bounds, and quantiles stay within those of the response. Between the released
        levels they are linear in the normal score of their level, as of `kngjax.QuantileCurves.quantiles`.

        **Arguments:** `new`: a frame, or a mapping of names to arrays or single values. `tau`: one level, for a series,
        or several, for a frame; the released ones if left out. `original`: for a response log(y) the quantiles of y.
        """
        import pandas as pd

        asked = self.levels if tau is None else tau
        found = self._released.quantiles(self._basis_of(new, original), asked)
        found = np.exp(found) if original else found
        index = new.index if isinstance(new, pd.DataFrame) else None
        if found.ndim == 1:
            return pd.Series(found, index, name=labels_of([asked])[0])
        return pd.DataFrame(found, index, pd.Index(labels_of(asked)))

    def draw(self, new: Any, key: PRNGKeyArray, *, original: bool = False) -> "pd.Series":
        """A response for each row of new cells, drawn from the released quantiles: `predict` at a level by chance.

        **Arguments:** `new`, `original`: as of `predict`; rows of private records may not be published with these.
        `key`: `kngjax.research_key(seed)`; it may be public.
        """
        import pandas as pd

        found = self._released.draw(self._basis_of(new, original), key)
        index = new.index if isinstance(new, pd.DataFrame) else None
        name = self.response.column if original else self.response.name
        return pd.Series(np.exp(found) if original else found, index, name=name)

    def plot(
        self, x: str | None = None, at: Mapping[str, Any] | None = None, *, original: bool = False, ax: Any = None
    ) -> Any:
        """The curve of each released level over the public range of one column; returns the axes of Matplotlib.

        **Arguments:** as of `kngjax.RegressionResults.plot`, where there are bands too.
        """
        return self._drawn_over(x, at, original, ax, lambda cells: self.predict(cells, original=original))

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "formula": self.formula,
            "response": dataclasses.asdict(self.response),
            "design": design_in_json(self.design),
            "labels": list(self.labels),
            "releases": [json.loads(one.to_json()) for one in self.releases],
            "expected": None if self.expected is None else dataclasses.asdict(self.expected),
        }

    @classmethod
    def from_json(cls, text: str) -> "QuantileProcessResults":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls(
            fields["title"],
            fields["formula"],
            response_from(fields["response"]),
            design_from_json(fields["design"]),
            tuple(fields["labels"]),
            tuple(map(kng.QuantileCurves, releases_from(fields["releases"]))),
            Expectations.from_dict(fields.get("expected")),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return QuantileProcessResults.from_json, (self.to_json(),)

    @property
    def _released(self) -> kng.QuantileCurves:
        [only] = self.releases
        return only
