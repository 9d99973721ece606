"""A view of a released quantile process: its curves by level, their predictions, and draws from them."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from kngjax.core.later import pd
from kngjax.inference.intervals import Interval
from kngjax.releases.curves.quantile_curves import QuantileCurves
from kngjax.study.quantile_processes import labels_of
from kngjax.study.views.curve_views import AbstractCurveView


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ProcessView(AbstractCurveView):
    """Names a released quantile process. Its only release is `kngjax.releases.QuantileCurves` of the basis."""

    kind: ClassVar[str] = "process"

    def __post_init__(self) -> None:
        [only] = self.releases
        curves = only if isinstance(only, QuantileCurves) else QuantileCurves(only)
        object.__setattr__(self, "releases", (curves,))

    @property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """Returns the levels τ, increasing."""
        return self.releases[0].levels

    @property
    def curves(self) -> dict[str, np.ndarray]:
        return dict(zip(labels_of(self.levels), self.releases[0].value, strict=True))

    @property
    def budget_in_words(self) -> str:
        shares: dict[str, list[str]] = {}
        for part in self.releases[0].certificate.sampler["parts"]:
            shares.setdefault(f"{part['epsilon']:.6g}", []).append(f"{part['level']:g}")
        each = [f"{', '.join(levels)} at {epsilon}" for epsilon, levels in shares.items()]
        return f"epsilon of a curve at its depth of the tree: {'; '.join(each)}"

    def intervals(self, level: float | None = None) -> Any:
        """Says why there are none."""
        return Interval.of(self.releases[0].release, level)

    def draw(self, new: Any, key: PRNGKeyArray, *, original: bool = False) -> "pd.Series":
        """Draws a response for each row of new cells from the released quantiles: `predict` at a level by chance.

        **Arguments:** `new`, `original`: as of `predict`; rows of private records may not be published with these.
        `key`: `kngjax.research_key(seed)`; it may be public.
        """
        x, index = self._cells(new, original)
        name = self.response.column if original else self.response.name
        return pd.Series(self._mean_of(self.releases[0].draw(x, key), original), index, name=name)

    def _predicted(self, x: np.ndarray, tau: Any) -> "pd.DataFrame":
        levels = np.atleast_1d(self.levels if tau is None else tau)
        return pd.DataFrame(self.releases[0].quantiles(x, levels), columns=labels_of(levels))
