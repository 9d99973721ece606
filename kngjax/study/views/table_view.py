"""The view of released counts: of records, of a histogram, of a cross table."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import kngjax as kng
from kngjax.accounting.adjacency import RECORD, plural
from kngjax.core.later import pd
from kngjax.core.pictures import HATCHES, axes_of, style
from kngjax.data import cells
from kngjax.data.weights import unit
from kngjax.inference import known_noise
from kngjax.inference.given_sums import counts_given, expected_counts_given, shares_given
from kngjax.study import consistency
from kngjax.study.classifications import Axis, Classification
from kngjax.study.views.base import AbstractView
from kngjax.study.views.interval_frames import difference_of, errors_of, with_errors


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TableView(AbstractView):
    """Names released counts. **Arguments:** `name`: what a table without axes counts. `axes`: those of a table.

    `deviation`: the standard deviation of the noise of each count. `is_nonnegative`, `total`, `margins`: what the
    counts were made consistent with after the release, margins by the names of their axes.
    """

    kind: ClassVar[str] = "table"
    name: str
    axes: tuple[Axis, ...]
    deviation: float
    is_nonnegative: bool = False
    total: float | None = None
    margins: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @classmethod
    def of(cls, analysis: Any, releases: list[Any], **facts: Any) -> Any:
        response, mechanism = analysis.response, analysis.parts[0].mechanism
        axes = response.axes if isinstance(response, Classification) else ()
        deviation = float(mechanism.noise.deviations(mechanism.dimension, None)[0])
        return super().of(analysis, releases, name=response.name, axes=axes, deviation=deviation, **facts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the number of levels of each axis."""
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def has_weights(self) -> bool:
        """Tells whether the counts are sums of the weights of records."""
        return self._bounds.get("weight") is not None

    @property
    def counts(self) -> np.ndarray:
        """Returns the counts in the shape of the table: whole numbers as released, or what makes them consistent.

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
    def columns(self) -> dict[str, Any]:
        return {self.labels[0]: self.counts.ravel()}

    @property
    def index(self) -> "pd.Index":
        return _index(self.axes) if self.axes else pd.Index([self.name], name=self._counted)

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """Returns the standard deviation of each count's noise, public and exact; None of counts made consistent."""
        return None if self.adjustments else self._named({self.labels[0]: self.deviation})

    def conf_int(self, level: float = 0.95, of: str = "table") -> "pd.DataFrame":
        """Intervals of the counts as they were released: a row a count, columns lower and upper. Free.

        An interval of the table holds the count of the table's own records, by the law of the noise alone. An interval
        of the population holds the count that a table of as many records, drawn at random, has on average. Each has its
        level by itself: several intervals hold at once less often. Weights are taken as rounded to their unit.

        **Arguments:** `level`: between 0 and 1. `of`: "table" or "population". Raises ValueError for others, and for
        sums of weights as those of a population.
        """
        known_noise.require_asked(level, of)
        released = np.ravel(self.releases[0].value)
        if of == "table":
            margin = self._unit * known_noise.margin_of_count(self._rate, level)
            count = self.releases[0].certificate.num_records
            most = np.inf if count is None or self.has_weights else float(count)
            ends = [np.clip(released - margin, 0.0, most), np.clip(released + margin, 0.0, most)]
        elif self.has_weights:
            if self._unit_of_persons is None:
                raise ValueError("sums of weights have intervals of the table alone: how weights vary is not released")
            raise ValueError(
                f"sums of votes have intervals of the table alone: how votes vary from {self._unit_of_persons} to "
                f"{self._unit_of_persons} is not released; count(..., of='persons') has intervals of the population"
            )
        else:
            given = self._rate, level, self.releases[0].certificate.num_records
            ends = [known_noise.count_of_population(float(count), *given) for count in released.tolist()]
            ends = np.transpose(ends)
        return pd.DataFrame(dict(zip(("lower", "upper"), ends, strict=True)), self.index)

    def shares(self, level: float = 0.95, of: str = "population") -> "pd.DataFrame":
        """Computes the share of each cell in its row, with standard errors and intervals: a row a cell. Free.

        A row is that of `to_table()`: the levels of the last column, where those of all others are the same; of a
        histogram, all records. Of a histogram with a public number of records the shares are of that number, and
        otherwise of the counts of the row, which have noise themselves (`kngjax.inference.known_noise.share_of_row`).
        A standard error is the width of the interval at the level .95 over 3.92. Each has its level by itself.

        **Arguments:** as of `conf_int`. Raises ValueError for a single count, for counts made consistent, and for
        weights.
        """
        if not self.axes:
            raise ValueError("a single count is no share: take a histogram or a cross table")
        self._require_own_counts("shares")
        known_noise.require_asked(level, of)
        released, count = self.releases[0].value.reshape(-1, self.shape[-1]), self._total
        totals = released.sum(axis=1, keepdims=True) if count is None else np.array([[float(count)]])
        found = np.clip(released / np.maximum(totals, 1.0), 0.0, 1.0).ravel()
        shares = pd.Series(found, self.index, name="share")
        ends, wide = self._ends_of_shares(of, level), self._ends_of_shares(of, 0.95)
        return shares.to_frame().join(with_errors(ends, errors_of(wide)))

    def _ends_of_shares(self, of: str, level: float) -> "pd.DataFrame":
        if self._total is not None:
            return self.conf_int(level, of) / max(self._total, 1)
        released = self.releases[0].value.reshape(-1, self.shape[-1])
        given = self.shape[-1] - 1, self._rate, level, of == "population"
        ends = [known_noise.share_of_row(float(one), float(row.sum() - one), *given) for row in released for one in row]
        return pd.DataFrame(ends, self.index, ["lower", "upper"])

    def draws(self, of: str = "population", *, shares: bool = False, seed: int = 0) -> "pd.DataFrame":
        """Draws what the counts may be without their noise, given what was released: a column of 16,000 each. Free.

        Counts of several results that were released one by one are as independent as draws of different seeds: of their
        difference, or any other function, the quantiles of that of the draws are the ends of an interval.

        **Arguments:** `of`: as of `conf_int`. `shares`: whether of the shares of each row, as of `shares`, in the place
        of counts. Raises ValueError as these.
        """
        self._require_own_counts("draws")
        known_noise.require_asked(0.95, of)
        random, is_public = np.random.default_rng(seed), self._total is not None
        made = counts_given(np.ravel(self.releases[0].value), self._rate, random)
        if shares and not is_public:
            rows = made.reshape(len(made), -1, self.shape[-1] if self.axes else 1)
            made = shares_given(rows, random, of == "population").reshape(made.shape)
        else:
            # Counts of what policies drop are not among these.
            is_whole = bool(self.axes) and not any(axis.missing == "drop" for axis in self.axes)
            has_total = self.releases[0].certificate.num_records is not None and is_whole
            made = expected_counts_given(made, random, has_total) if of == "population" else made
            made = made / max(self._total or 1, 1) if shares else made
        return pd.DataFrame(made, columns=self.index)

    def difference(
        self, first: Any, second: Any, level: float = 0.95, of: str = "population", *, shares: bool = False
    ) -> "pd.DataFrame":
        """Computes the count of one cell less that of another, or of their shares, with its interval. Free.

        **Arguments:** `first`, `second`: the labels of two cells, of several columns tuples of them. `level`: of the
        interval, the quantiles of the difference of `draws`. `of`, `shares`: as of `draws`.
        """
        draws = self.draws(of, shares=shares)
        estimates = self.shares(level, of)["share"] if shares else self.params
        return difference_of(
            f"{first} - {second}",
            estimates[[first]] - estimates[second],
            draws[[first]].sub(draws[second], axis=0),
            level,
        )

    @property
    def _total(self) -> int | None:
        """The public number of records that all counts are parts of; None where that of each row is private."""
        return self.releases[0].certificate.num_records if len(self.axes) == 1 and not self.has_weights else None

    def _require_own_counts(self, what: str) -> None:
        if self.adjustments or self.has_weights:
            raise ValueError(
                f"{what} are of counts of records as they were released: not made consistent, nor weighted, nor of "
                "votes that rows share"
            )

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        # Ends are cut at 0 and at n, so that the exact deviation of the noise does not follow from them.
        return {} if self.adjustments else {self.labels[0]: with_errors(self.conf_int(level), self.deviation)}

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        if self.adjustments:
            return ""
        population = "" if self.has_weights else "; conf_int(of='population') is of the population"
        return f"each holds the table's own count with probability {level:g} or more{population}"

    @property
    def _unit(self) -> float:
        """The unit that sums of weights are multiples of; 1 without weights."""
        largest = self._bounds.get("weight")
        return 1.0 if largest is None else unit(largest)

    @property
    def _counted(self) -> str:
        """Names what a single count is of, for the name of its index."""
        if self._unit_of_persons is not None:
            return "votes"
        return plural((self._bounds.get("unit") or {}).get("name", RECORD))

    @property
    def _unit_of_persons(self) -> str | None:
        """The unit whose rows share votes; None where each row counts by itself."""
        whose = self._bounds.get("unit") or {}
        return None if whose.get("most_rows") is None else whose["name"]

    @property
    def _rate(self) -> float:
        """The rate of the noise a unit, from its standard deviation, unit/(√2·sinh(rate/2))."""
        return 2.0 * math.asinh(self._unit * math.sqrt(0.5) / self.deviation) if self.deviation else math.inf

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return Classification(self.axes).ranges if self.axes else {}

    def nonnegative(self) -> Any:
        """Finds the nearest counts that are no less than 0, and as was asked before. It costs nothing.

        Raises as `kngjax.study.consistency.nearest`.
        """
        return self._adjusted(is_nonnegative=True)

    def with_total(self, total: Any) -> Any:
        """Finds the nearest counts that add up to a public or a released number, as n under replace.

        Raises ValueError of a single count, which has no others, and as `nonnegative`.
        """
        if not self.axes:
            raise ValueError("a single count has no others that it adds up with")
        if not math.isfinite(float(total)):
            raise ValueError(f"the total must be a finite number, not {total!r}")
        return self._adjusted(total=float(total))

    def with_margin(self, column: str, counts: Any) -> Any:
        """Finds the nearest counts that add up, for each level of a column, to a public or a released number.

        **Arguments:** `column`: of this table. `counts`: by its labels, or a table of this column alone; they are taken
        as they are, without their noise. Raises ValueError for a column or levels that are not the table's, and as
        `nonnegative`.
        """
        if isinstance(counts, kng.Results):
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

    def _adjusted(self, **changed: Any) -> Any:
        made = dataclasses.replace(self, **changed)
        # Contradictions are refused here, and not where the counts are shown.
        _ = made.counts
        return kng.Results(made)

    def to_table(self) -> "pd.DataFrame":
        """Puts the counts into a frame, with the last column's levels side by side if there are several columns."""
        if len(self.axes) < 2:
            return pd.DataFrame(self.params)
        *rows, across = self.axes
        return pd.DataFrame(self.counts.reshape(-1, len(across.labels)), _index(rows), _index([across]))

    def plot(self, ax: Any = None) -> Any:
        """Bars with their intervals, of two columns side by side; returns the axes of Matplotlib.

        **Arguments:** `ax`: axes to draw on.

        Raises ValueError for a single count, and for tables of three columns and more.
        """
        names = [axis.column for axis in self.axes]
        if len(names) not in (1, 2):
            raise ValueError(f"bars are drawn of tables of one or two columns, and this one has {len(names)}")
        axes = axes_of(ax)
        labels = [list(map(str, axis.labels)) for axis in self.axes]
        series = labels[1] if len(labels) > 1 else [None]
        counts = self.counts.reshape(len(labels[0]), len(series))
        width, places = 0.8 / len(series), np.arange(len(labels[0]))
        for number, (label, heights) in enumerate(zip(series, counts.T, strict=True)):
            at, looks = places + (number - 0.5 * (len(series) - 1)) * width, style(number, hatch=HATCHES)
            axes.bar(at, heights, width, label=label, edgecolor="white", **looks)
            for ends in self.ends(0.95).values():
                axes.vlines(
                    at, *ends[["lower", "upper"]].to_numpy()[number :: len(series)].T, color="black", linewidth=1.2
                )
        axes.set_xticks(places, labels[0])
        axes.set_xlabel(names[0])
        axes.set_ylabel(self.labels[0])
        if len(names) > 1:
            axes.legend(title=names[1], frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes


def _index(axes: Sequence[Axis]) -> "pd.Index":
    labels, columns = [axis.labels for axis in axes], [axis.column for axis in axes]
    return pd.Index(labels[0], name=columns[0]) if len(axes) == 1 else pd.MultiIndex.from_product(labels, names=columns)
