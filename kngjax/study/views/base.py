"""The base of all views: names of released numbers, what is proved of them together, a frame, and intervals."""

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.later import pd
from kngjax.inference.intervals import Interval
from kngjax.inference.with_intervals import ReleaseWithIntervals
from kngjax.releases import totals
from kngjax.study.expectations import Expectations
from kngjax.study.views import public_json
from kngjax.study.views.interval_frames import rows_of, stacked

# Facts of an analysis that a view keeps, where it has a field of this name.
_KEPT = ("title", "formula", "response", "design", "names", "link", "expected")
_OF_THE_TABLE = ("they are of the table's own records, not of a population",)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AbstractView(abc.ABC):
    """Names what was released by one kind of analysis. All of it is public, and what is computed here is free.

    **Arguments:** `title`: what was estimated. `labels`: one a release. `releases`: each with its certificate.
    `expected`: what public facts said of the noise beforehand.
    """

    kind: ClassVar[str]
    title: str
    labels: tuple[str, ...]
    releases: tuple[Any, ...]
    expected: Expectations | None = None

    @classmethod
    def of(cls, analysis: Any, releases: list[Any], **facts: Any) -> Any:
        """Views the releases of an analysis that was carried out. **Arguments:** `facts`: fields of the view."""
        own = {field.name for field in dataclasses.fields(cls)} - facts.keys()
        kept: dict[str, Any] = {name: getattr(analysis, name) for name in _KEPT if name in own}
        labels = tuple(part.label for part in analysis.parts)
        return cls(**kept, **facts, labels=labels, releases=tuple(releases))

    @property
    @abc.abstractmethod
    def index(self) -> "pd.Index":
        """Returns the names of the rows of `params`."""

    @property
    @abc.abstractmethod
    def columns(self) -> dict[str, Any]:
        """Returns the released numbers in own units by the labels of the columns of `params`."""

    @property
    def params(self) -> "pd.Series | pd.DataFrame":
        """Returns the released numbers in own units, by name: a series, or a frame with a column a release."""
        return self._named(self.columns)

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """Returns the standard deviation of the noise of each of `params`; None as `noise_in_words` says."""
        known: Any = () if self.expected is None else self.expected.noise
        if not known or None in known:
            return None
        labels = [*self.columns]
        return self._named({"noise": np.ravel(known)} if len(labels) == 1 else dict(zip(labels, known, strict=True)))

    def _named(self, columns: dict[str, Any]) -> "pd.Series | pd.DataFrame":
        """Names the numbers of a column, or of several."""
        frame = pd.DataFrame(columns, self.index)
        return frame if frame.shape[1] > 1 else frame.iloc[:, 0]

    @property
    def value(self) -> float | int:
        """Returns the only number; raises ValueError where there are several, which `params` has by name."""
        numbers = self.params.to_numpy().ravel()
        if numbers.size > 1:
            raise ValueError(f"there are {numbers.size} numbers: take params, or of a table to_table()")
        return numbers.item()

    @property
    def noise_in_words(self) -> str:
        """Says how `noise` is known, or why there is none; empty where nothing is said of it."""
        return ("" if self.expected is None else self.expected.words) or ""

    @property
    def _bounds(self) -> dict[str, Any]:
        """The bounds of the records of the first release, as its certificate has them."""
        return self.releases[0].certificate.mechanism.get("bounds") or {}

    @property
    def budget_in_words(self) -> str:
        """Says how ε is divided among releases that are parts of one estimate; empty elsewhere."""
        return ""

    @property
    def groups_in_words(self) -> str:
        """Says how records are divided into groups; empty where they are not."""
        return ""

    def intervals(self, level: float | None = None) -> Any:
        """Computes the intervals of the only release, as `Release.intervals`: `quantile_interval` makes one release.

        Where the law of the noise is known they are those of `conf_int`.
        """
        only, *others = self.releases
        if others:
            raise ValueError("there are several releases, and no interval of them together: ask for one level")
        asked = 0.95 if level is None else level
        if known := self.ends(asked):
            [frame] = known.values()
            sides = frame["lower"].to_numpy(), frame["upper"].to_numpy()
            return Interval(*sides, asked, *self.ends_rest_on, tuple(map(str, frame.index)))
        return only.intervals(level)

    @property
    def ends_rest_on(self) -> tuple[str, tuple[str, ...]]:
        """Tells how `ends` are made and what they assume, in words, where the law of the noise is known."""
        return "the law of the noise", _OF_THE_TABLE

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        """Standard errors and intervals of `params` by label, as of `with_errors`; empty where none were asked for."""
        return {}

    @property
    def estimate_in_words(self) -> str:
        """Says how `params` come of what was released, where they are not that itself; empty elsewhere."""
        return ""

    @property
    def heaps_in_words(self) -> str:
        """Says by public facts what heaped values would do, and which setting is the remedy; empty elsewhere."""
        return ""

    @property
    def why_no_difference(self) -> str:
        """Says what a difference of two such results would need; asked of results that have no `draws`."""
        return "how far both may be off is not known"

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        """Says how intervals were made and what they assume; empty where none were asked for.

        **Arguments:** `in_full`: False, for summaries, leaves out what they assume, and details of how they were made.
        """
        return ""

    @property
    @abc.abstractmethod
    def clipped(self) -> dict[str, tuple[float, float]]:
        """Returns the public bounds, in own units, that columns of numbers were clipped to."""

    @property
    def guarantee(self) -> Guarantee | None:
        """Composes what is proved of all releases, with those for intervals; None where nothing is proved of one."""
        return totals.total(priced(one).cost for one in self.releases)

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row: its release if there are several, name, `estimate` in own units, and interval.

        Where there are intervals the columns are `std. error`, `lower`, `upper` and `level` besides.

        **Arguments:** `level`: of the intervals.
        """
        ends = self.ends(level)
        return stacked(
            {
                label: rows_of(pd.Series(column, self.index), ends.get(label), level)
                for label, column in self.columns.items()
            }
        )

    def with_noise(self, level: float) -> "pd.DataFrame":
        """Puts the noise of each number beside the estimates of `to_frame`; NaN where it is not known."""
        frame, noise = self.to_frame(level), self.noise
        known = np.nan if noise is None else np.ravel(noise.to_numpy(), "F")
        frame.insert(list(frame).index("estimate") + 1, "noise", known)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Returns all that is public, JSON-ready."""
        return {field.name: public_json.in_json(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Any:
        """Reads what `to_dict` writes."""
        return cls(**{name: public_json.from_json(name, written) for name, written in fields.items()})


def priced(release: Any) -> Any:
    """Returns what has the `cost` of a release and its `guarantee`: its certificate; with intervals the release."""
    return release if isinstance(release, ReleaseWithIntervals) else release.certificate
