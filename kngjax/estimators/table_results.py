"""Released counts with names: of records, of a histogram, of a cross table."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kngjax as kng
from kngjax.data import cells
from kngjax.estimators import consistency
from kngjax.estimators.analyses import Analysis
from kngjax.estimators.classifications import Axis, Classification
from kngjax.estimators.public_json import with_tuples
from kngjax.estimators.results import AbstractResults, releases_from

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TableResults(AbstractResults):
    """Holds released counts. **Arguments:** `name`: what a table without axes counts. `axes`: those of a table.

    `deviation`: the standard deviation of the noise of each count. `is_nonnegative`, `total`, `margins`: what the
    counts were made consistent with after the release, margins by the names of their axes.
    """

    title: str
    name: str
    axes: tuple[Axis, ...]
    labels: tuple[str, ...]
    releases: tuple[kng.Release, ...]
    deviation: float
    is_nonnegative: bool = False
    total: float | None = None
    margins: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @classmethod
    def of(cls, analysis: Analysis, releases: list[kng.Release]) -> "TableResults":
        """Makes the results of an analysis that was carried out."""
        response, (part,) = analysis.response, analysis.parts
        axes = response.axes if isinstance(response, Classification) else ()
        deviation = float(part.mechanism.noise.deviations(part.mechanism.dimension, None)[0])
        return cls(analysis.title, response.name, axes, (part.label,), tuple(releases), deviation)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def has_weights(self) -> bool:
        """Whether the counts are sums of the weights of records."""
        return (self.releases[0].certificate.mechanism.get("bounds") or {}).get("weight") is not None

    @property
    def counts(self) -> np.ndarray:
        """The counts in the shape of the table: whole numbers as released, or what makes them consistent.

        With weights of records sums of them, which are not whole.
        """
        released = self.releases[0].value.reshape(self.shape)
        if not self.adjustments:
            # Beyond 2^53 noise is all that there is to see.
            return (
                released.astype(np.int64) if np.all(np.abs(released) < 2.0**53) and not self.has_weights else released
            )
        places = {axis.column: place for place, axis in enumerate(self.axes)}
        margins = {places[column]: np.asarray(margin) for column, margin in self.margins}
        found = consistency.nearest(released, nonnegative=self.is_nonnegative, total=self.total, margins=margins)
        is_whole = self.total is None and not margins and not self.has_weights and np.all(np.abs(found) < 2.0**53)
        return found.astype(np.int64) if is_whole else found

    @property
    def adjustments(self) -> tuple[str, ...]:
        """Says in words what the counts were made consistent with; empty for counts as they were released."""
        return (
            *(["no count below 0"] if self.is_nonnegative else []),
            *([f"a total of {self.total:g}"] if self.total is not None else []),
            *(f"margins of {column}" for column, _ in self.margins),
        )

    @property
    def params(self) -> "pd.Series":
        """The counts by the levels of the table, whole as they were released."""
        return self._series(self.counts.ravel())

    @property
    def noise(self) -> "pd.Series | None":
        """The standard deviation of the noise of each count, public and exact; None of counts made consistent."""
        return None if self.adjustments else self._series(np.full(self.counts.size, self.deviation))

    def _series(self, values: np.ndarray) -> "pd.Series":
        import pandas as pd

        if not self.axes:
            index = pd.Index([self.name], name="records")
        elif len(self.axes) == 1:
            index = pd.Index(self.axes[0].labels, name=self.axes[0].column)
        else:
            columns = [axis.column for axis in self.axes]
            index = pd.MultiIndex.from_product([axis.labels for axis in self.axes], names=columns)
        return pd.Series(values, index, name=self.labels[0])

    @property
    def value(self) -> int | float:
        """The only count; `params` has the counts of a table by level."""
        if self.axes:
            raise ValueError(f"there are {self.counts.size} counts: take params or to_table()")
        return self.counts.item()

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return Classification(self.axes).ranges if self.axes else {}

    def nonnegative(self) -> "TableResults":
        """The nearest counts that are no less than 0, and as was asked before. It costs nothing.

        Raises as `kngjax.estimators.consistency.nearest`.
        """
        return self._adjusted(is_nonnegative=True)

    def with_total(self, total: Any) -> "TableResults":
        """The nearest counts that add up to a public number, as n under replace, or to a count that was released.

        Raises ValueError of a single count, which has no others, and as `nonnegative`.
        """
        if not self.axes:
            raise ValueError("a single count has no others that it adds up with")
        if not math.isfinite(float(total)):
            raise ValueError(f"the total must be a finite number, not {total!r}")
        return self._adjusted(total=float(total))

    def with_margin(self, column: str, counts: "Mapping[Any, Any] | TableResults") -> "TableResults":
        """The nearest counts that add up, for each level of a column, to a number that is public or was released.

        **Arguments:** `column`: of this table. `counts`: by its labels, or a table of this column alone; they are taken
        as they are, without their noise. Raises ValueError for a column or levels that are not the table's, and as
        `nonnegative`.
        """
        if isinstance(counts, TableResults):
            counts = dict(zip(counts.params.index, counts.params.tolist(), strict=True))
        found = [axis for axis in self.axes if axis.column == column]
        if not found or len(self.axes) < 2:
            known = ", ".join(axis.column for axis in self.axes)
            raise ValueError(f"{column!r} is no column of a table of two and more, but of one by {known or 'nothing'}")
        labels = found[0].labels
        given = [[value for key, value in counts.items() if cells.same_level(key, label)] for label in labels]
        if len(counts) != len(labels) or any(len(values) != 1 for values in given):
            raise ValueError(f"a margin of {column!r} needs a count for each of {', '.join(map(str, labels))}")
        margin = column, tuple(float(values[0]) for values in given)
        return self._adjusted(margins=(*(other for other in self.margins if other[0] != column), margin))

    def _adjusted(self, **changed: Any) -> "TableResults":
        made = dataclasses.replace(self, **changed)
        # Contradictions are refused here, and not where the counts are shown.
        _ = made.counts
        return made

    def to_table(self) -> "pd.DataFrame":
        """Puts the counts into a frame, with the last column's levels side by side if there are several columns."""
        import pandas as pd

        if len(self.axes) < 2:
            return pd.DataFrame(self.params)
        *rows, across = self.axes
        names = [axis.column for axis in rows]
        index = (
            pd.Index(rows[0].labels, name=names[0])
            if len(rows) == 1
            else pd.MultiIndex.from_product([axis.labels for axis in rows], names=names)
        )
        values = self.counts.reshape(-1, len(across.labels))
        return pd.DataFrame(values, index, pd.Index(across.labels, name=across.column))

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every count in a row, with its levels."""
        return self.params.reset_index()

    def plot(self, ax: Any = None) -> Any:
        """Bars, of two columns side by side; returns the axes of Matplotlib. **Arguments:** `ax`: axes to draw on.

        Raises ValueError for a single count, and for tables of three columns and more.
        """
        names = [axis.column for axis in self.axes]
        if len(names) not in (1, 2):
            raise ValueError(f"bars are drawn of tables of one or two columns, and this one has {len(names)}")
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if ax is None else ax
        labels = [list(map(str, axis.labels)) for axis in self.axes]
        series = labels[1] if len(labels) > 1 else [None]
        counts = self.counts.reshape(len(labels[0]), len(series))
        width, places = 0.8 / len(series), np.arange(len(labels[0]))
        for number, (label, heights) in enumerate(zip(series, counts.T, strict=True)):
            axes.bar(places + (number - 0.5 * (len(series) - 1)) * width, heights, width, label=label)
        axes.set_xticks(places, labels[0])
        axes.set_xlabel(names[0])
        axes.set_ylabel(self.labels[0])
        if len(names) > 1:
            axes.legend(title=names[1])
        return axes

    def to_dict(self) -> dict[str, Any]:
        public = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        axes = [dataclasses.asdict(axis) for axis in self.axes]
        return public | {"axes": axes, "releases": [json.loads(one.to_json()) for one in self.releases]}

    @classmethod
    def from_json(cls, text: str) -> "TableResults":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        releases = releases_from(fields.pop("releases"))
        fields = with_tuples(fields)
        fields["axes"] = tuple(Axis(**with_tuples(axis)) for axis in fields["axes"])
        fields["margins"] = tuple((column, tuple(margin)) for column, margin in fields["margins"])
        return cls(**fields, releases=releases)

    def __reduce__(self) -> tuple[Any, ...]:
        return TableResults.from_json, (self.to_json(),)
