"""What an analysis would be worth: the previews of its releases, with names."""

import dataclasses
from typing import TYPE_CHECKING, Any

import kngjax as kng
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.expectations import preview_of

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, repr=False)
class AnalysisPreview:
    """Previews of the releases of one analysis, of public facts alone. Print it for what they say.

    **Arguments:** `title`: what it is. `labels`: one a release, or of several levels that are drawn together one a
    level. `previews`: of each, None where nothing is known. `number`: of releases, which have equal parts of ε.
    `of_counts`: of a table the standard deviation of the noise of each count, which is exact; None of what is no table.
    """

    title: str
    labels: tuple[str, ...]
    previews: tuple[kng.Preview | None, ...]
    number: int
    of_counts: float | None = None

    @classmethod
    def of(cls, analysis: Analysis, count: int | None, design: Any = None, residual: Any = None) -> "AnalysisPreview":
        """That of an analysis of n records, or of a guess of n. **Arguments:** as of `kngjax.preview`."""
        parts, assumed = analysis.previewed, (design, residual, False)
        title = analysis.title if analysis.formula is None else f"{analysis.title} {analysis.formula}"
        previews = tuple(preview_of(analysis, part, count, *assumed) for part in parts)
        return cls(title, tuple(part.label for part in parts), previews, len(analysis.parts), _of_counts(analysis))

    @property
    def noise(self) -> "pd.DataFrame":
        """The standard deviation of the noise of each coefficient in own units, a column a release.

        Of counts there is one row, for each of them.
        """
        if self.of_counts is not None:
            import pandas as pd

            return pd.DataFrame(dict.fromkeys(self.labels, self.of_counts), index=["each count"])
        return self._table("noise")

    @property
    def standard_error(self) -> "pd.DataFrame":
        """The standard error of the estimate without privacy, a column a release."""
        return self._table("standard_error")

    @property
    def ratio(self) -> "pd.DataFrame":
        """Noise over standard error, a column a release."""
        return self._table("ratio")

    @property
    def width(self) -> "pd.DataFrame":
        """The width of each coefficient's 95% interval over that without privacy, a column a release.

        Infinite where none is expected; raises ValueError where no intervals were asked for, or nobody knows.
        """
        if any(one.width is None for one in self._known()):
            raise ValueError("no width is known of these intervals: ask with intervals=True, or a covariance")
        return self._table("width")

    @property
    def trusted(self) -> bool:
        """Whether each preview is."""
        return all(one is not None and one.trusted for one in self.previews)

    @property
    def hopeless(self) -> str | None:
        """Why one of them would be little but noise; None where none would, and where that is not known."""
        return next((one.hopeless for one in self.previews if one is not None and one.hopeless), None)

    def epsilon_for(self, ratio: float = 0.5) -> float:
        """ε of all releases together, in equal parts, with noise of at most `ratio` standard errors everywhere."""
        return self.number * max(one.epsilon_for(ratio) for one in self._known())

    def num_records_for(self, ratio: float = 0.5) -> float | int:
        """The least n with noise of at most `ratio` standard errors in every coefficient."""
        return max(one.num_records_for(ratio) for one in self._known())

    def explain(self) -> str:
        """What is expected of each release, in words."""
        unknown = (
            "not previewed. Regressions, means and quantiles are, of a number of records, which under add_remove is a "
            "public guess, num_records=10_000; of counts and sums the noise is exact, and stands beside each number."
        )
        if self.of_counts is not None:
            unknown = f"noise of standard deviation {self.of_counts:.3g} on each count, exactly."
        lines = [
            f"{label}: {unknown if one is None else one.explain()}"
            for label, one in zip(self.labels, self.previews, strict=True)
        ]
        return "\n\n".join([f"Preview of {self.title}", *lines])

    __repr__ = explain

    def _known(self) -> list[kng.Preview]:
        known = [one for one in self.previews if one is not None]
        if len(known) < len(self.previews):
            raise ValueError("the noise of this analysis is not known beforehand")
        return known

    def _table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame({label: getattr(one, name) for label, one in zip(self.labels, self._known(), strict=True)})


def _of_counts(analysis: Analysis) -> float | None:
    """The deviation of the noise of each count, where all that is released are counts."""
    mechanisms = [part.mechanism for part in analysis.parts]
    if not all(isinstance(one, kng.GeometricMechanism) for one in mechanisms):
        return None
    return max(float(one.noise_deviations(one.dimension, None)[0]) for one in mechanisms)
