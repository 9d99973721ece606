"""The view of results of every group of a table, by the levels of its groups."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

import kngjax as kng
from kngjax.accounting.adjacency import RECORD
from kngjax.core.later import pd
from kngjax.core.pictures import axes_of
from kngjax.releases import totals
from kngjax.releases.debits import owed
from kngjax.releases.division import how_priced
from kngjax.releases.group_plans import owed_together
from kngjax.study.analyses import Analysis, table_of
from kngjax.study.grouping import GroupedAnalysis, Grouping
from kngjax.study.responses import Response
from kngjax.study.views.base import AbstractView, priced
from kngjax.study.views.column_views import RefusedView
from kngjax.study.views.interval_frames import difference_of, said_once, side_by_side, with_columns
from kngjax.study.views.points import coefficients_of, points_of
from kngjax.study.views.public_json import from_json, in_json
from kngjax.study.views.table_view import TableView


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class GroupsView(AbstractView):
    """Names what was released of each group: `results["north"]`, or with several columns `results["north", 1]`.

    **Arguments:** `grouping`: the columns and their public levels. `adjacency`: of the whole table. `each`: the results
    of each group, in order. `counted`: the table of counts that decided which groups have an interval; else None.
    """

    kind: ClassVar[str] = "groups"
    grouping: Grouping
    adjacency: kng.Adjacency
    each: tuple[Any, ...]
    counted: Any = None

    @classmethod
    def of(cls, analysis: Any, releases: list[Any], *, results: Any, **facts: Any) -> Any:
        """Views the releases of all groups. **Arguments:** `results`: makes the results of one group."""
        counted = None
        if not isinstance(analysis, GroupedAnalysis):
            first, *releases = releases
            of_counts = analysis if isinstance(analysis, Analysis) else analysis.counts
            counted = kng.Results(TableView.of(of_counts, [first]))
            if isinstance(analysis, Analysis):
                # Nothing else was released yet.
                return counted.view
            analysis = analysis.informed(first)
        waiting = iter(releases)
        each = []
        for one in analysis.analyses:
            refused = not one.parts
            made = RefusedView.of(one, [], reason=one.expected.warning, expected=None) if refused else None
            each.append(results(one, [next(waiting) for _ in one.parts]) if made is None else kng.Results(made))
        return cls._of(analysis.grouping, analysis.adjacency, tuple(each), counted)

    @classmethod
    def _of(cls, grouping: Grouping, adjacency: kng.Adjacency, each: tuple[Any, ...], counted: Any = None) -> Any:
        division = grouping.division
        if len(each) != len(division):
            raise ValueError(f"there are {len(division)} groups, and results of {len(each)}")
        # What is expected of the first group with a warning, or of the first one where there is none.
        warned = [one.expected for one in each if one.expected is not None and one.expected.warning]
        named = zip(map(division.name, division.groups()), each, strict=True)
        labels, releases = ((), ()) if counted is None else (counted.labels, counted.releases)
        return cls(
            title=f"{each[0].title} by {' and '.join(division.by)}",
            labels=(*labels, *(", ".join((name, label)) for name, one in named for label in one.labels)),
            releases=(*releases, *(release for one in each for release in one.releases)),
            counted=counted,
            expected=(warned or [each[0].expected])[0],
            grouping=grouping,
            adjacency=adjacency,
            each=each,
        )

    @property
    def formula(self) -> str:
        """Returns the formula as it was written; empty where the analysis is no regression."""
        return getattr(self.each[0].view, "formula", "")

    @property
    def response(self) -> Response:
        """Returns the response of the analysis of each group."""
        return self.each[0].response

    @property
    def guarantee(self) -> kng.Guarantee | None:
        """Composes what is proved of the releases of all groups together, for the adjacency of the whole table."""
        own = [] if self.counted is None else [self.counted.guarantee]
        if any(one.releases for one in self.each):
            costs = [[owed(priced(release)) for release in one.releases] for one in self.each]
            together, proved = owed_together(costs, self.adjacency)
            own.append(together if proved else None)
        return totals.total(own)

    @property
    def groups_in_words(self) -> str:
        number, every = sum(bool(one.releases) for one in self.each), len(self.each)
        has = "every group has a release" if number == every else f"{number} of {every} groups have a release"
        units = [release.certificate.guarantee.unit for one in self.each for release in one.releases]
        unit = next(iter(units), RECORD)
        return f"{self.grouping.division.explain(unit)}, and {has}; {how_priced(self.adjacency, unit)}"

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.each[0].clipped

    def keys(self) -> list[Any]:
        """Returns the level of each group, or of several columns a tuple of levels."""
        return self.grouping.keys()

    def values(self) -> list[Any]:
        """Returns the results of each group."""
        return list(self.each)

    def items(self) -> list[tuple[Any, Any]]:
        """Levels and results."""
        return list(zip(self.keys(), self.each, strict=True))

    @property
    def budget_in_words(self) -> str:
        if self.counted is None:
            return self.each[0].budget_in_words
        spent = "the rest for the intervals of all groups together"
        if not any(one.releases for one in self.each):
            spent = "the rest was not spent, as no group has enough records"
        epsilon = self.counted.guarantee.epsilon
        counted = "the sizes of the groups (counted.params), which decide who has an interval"
        return f"epsilon = {epsilon:g} for {counted}; {spent}"

    @property
    def columns(self) -> dict[str, Any]:
        return {str(name): column for name, column in pd.DataFrame(self.params).items()}

    @property
    def params(self) -> "pd.Series | pd.DataFrame":
        """Puts the released numbers into a frame with a row for each group, or a single number of each into a series.

        The rows are as `groupby` has them. Where one group has a table of several releases, the table is below the
        level of the group: `params.loc["north"]` is `results["north"].params`.
        """
        return self._by_group([one.params for one in self.each])

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """Puts the standard deviations of the noise into the shape of `params`.

        It has NaN for groups whose noise is not known; None where no group's noise is.
        """
        found = [one.noise for one in self.each]
        if all(one is None for one in found):
            return None
        each = zip(self.each, found, strict=True)
        return self._by_group([one.params * float("nan") if own is None else own for one, own in each])

    @property
    def noise_in_words(self) -> str:
        return "; ".join(dict.fromkeys(one.noise_in_words for one in self.each if one.noise_in_words))

    @property
    def heaps_in_words(self) -> str:
        return next((one.heaps_in_words for one in self.each if one.heaps_in_words), "")

    def _by_group(self, found: list[Any]) -> "pd.Series | pd.DataFrame":
        index = self.index
        if all(isinstance(one, pd.Series) for one in found):
            table = pd.DataFrame([one.to_numpy() for one in found], index, found[0].index)
            return table.iloc[:, 0].rename(str(table.columns[0])) if table.shape[1] == 1 else table
        names = [*self.grouping.division.by, *found[0].index.names]
        return pd.concat(dict(zip(index, found, strict=True)), names=names)

    def intervals(self, level: float | None = None) -> dict[Any, Any]:
        """Computes the intervals of each group by its level, as `results["north"].intervals()` does. Free.

        Each interval has its level by itself: all intervals of several groups hold at once less often.
        **Arguments:** `level`: 0.95, or the level that the releases were made for, if it is left out.
        """
        return {key: one.intervals(level) for key, one in self.items()}

    def conf_int(self, level: float = 0.95, **asked: Any) -> "pd.DataFrame":
        """Intervals of `params`: a row a group, columns lower and upper below each number's name.

        Several releases have the shape of their table in `params`, below their labels. Where there is no interval the
        ends are infinite: `intervals` has the reason. **Arguments:** as of the results of one group, which raise the
        same errors where no intervals were asked for. With `asked`, as of="population", the intervals of one group are
        below those of another.
        """
        each = [one.conf_int(level, **asked) for one in self.each]
        if asked or len(self.each[0].labels) > 1:
            return cast("pd.DataFrame", self._by_group(each))
        names = each[0].index
        return side_by_side(
            {str(name): pd.DataFrame([one.loc[name].to_dict() for one in each], self.index) for name in names}
        )

    def difference(self, first: Any, second: Any, level: float = 0.95, **asked: Any) -> "pd.DataFrame":
        """Computes the numbers of one group less those of another, with standard errors and intervals. Free.

        Groups are released one by one, so that an interval has the quantiles of the difference of their `draws`.

        **Arguments:** `first`, `second`: keys of two groups. `level`: of each interval by itself. `asked`: as of the
        `draws` of one group: of="table", of tables shares=True. Raises AttributeError where results have no draws, as
        means that were released without `intervals=True`, with what would tell a difference.
        """
        pair = [kng.Results(self)[key] for key in (first, second)]
        for key, results in zip((first, second), pair, strict=True):
            if not hasattr(results.view, "draws"):
                raise AttributeError(
                    f"the {results.title} has no draws in the group {key!r}, which a difference is made of: "
                    f"{results.view.why_no_difference}"
                )
        one, other = (results.draws(seed=seed, **asked) for seed, results in enumerate(pair))
        if asked.get("shares"):
            mine, others = (results.shares(level)["share"] for results in pair)
        else:
            mine, others = (results.params for results in pair)
        return difference_of(f"{first} - {second}", mine - others, one - other, level)

    def interval_in_words(self, level: float, in_full: bool = True) -> str:
        return "; ".join(said_once({name: one.interval_in_words(level, in_full) for name, one in self._by_name()}))

    @property
    def estimate_in_words(self) -> str:
        return "; ".join(said_once({name: one.estimate_in_words for name, one in self._by_name()}))

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row: the level of the group, and then as the results of one group do.

        **Arguments:** as of the results of one group.
        """
        return self._stacked([one.to_frame(level) for one in self.each])

    def with_noise(self, level: float) -> "pd.DataFrame":
        return self._stacked([one.view.with_noise(level) for one in self.each])

    def contrast(self, weights: Any, level: float = 0.95) -> "pd.DataFrame":
        """Estimates combinations of the coefficients of each group. **Arguments:** as of the regression of one group.

        Raises AttributeError where the results are no regressions.
        """
        return self._stacked([one.contrast(weights, level) for one in self.each])

    def wald_test(self, of: Any) -> dict[Any, Any]:
        """Tests coefficients of each group, by its level. **Arguments:** as of the regression of one group.

        Raises AttributeError where the results are no regressions.
        """
        return {key: one.wald_test(of) for key, one in self.items()}

    def _stacked(self, tables: "list[pd.DataFrame]") -> "pd.DataFrame":
        """Puts tables of each group below one another, behind the level of the group."""
        by, groups = self.grouping.division.by, self.grouping.division.groups()
        levels = [
            pd.DataFrame(dict(zip(by, group, strict=True)), one.index)
            for group, one in zip(groups, tables, strict=True)
        ]
        named = [with_columns(before, one) for before, one in zip(levels, tables, strict=True)]
        return pd.concat(named, ignore_index=True)

    def predict(self, new: Any, **settings: Any) -> "pd.Series | pd.DataFrame":
        """Predicts each row by the regression of its own group, NaN for rows that belong to no group.

        **Arguments:** `new`, `settings`: as of the regression of one group, with the columns of the groups. Raises
        AttributeError where the results are no regressions, and ValueError for levels that are not declared, as the
        analysis would.
        """
        table = self._of_own_groups("predict", new, **settings)
        return table if len(self.each[0].labels) > 1 else table.iloc[:, 0]

    def predict_interval(self, new: Any, level: float = 0.95, **settings: Any) -> "pd.DataFrame":
        """Intervals of what `predict` says, by each row's own group. **Arguments:** as of `predict`, and `level`."""
        return self._of_own_groups("predict_interval", new, level=level, **settings)

    def _of_own_groups(self, method: str, new: Any, **settings: Any) -> "pd.DataFrame":
        """Asks the results of each row's own group by the name of a method."""
        asked = [getattr(one, method) for one in self.each]
        columns = table_of(_broadcast(new) if isinstance(new, Mapping) else new)
        if absent := [name for name in self.grouping.division.by if name not in columns.columns]:
            raise ValueError(f"predictions need the columns of the groups, and {absent} are not there")
        places = self.grouping.places(columns)

        def of(group: int) -> "pd.DataFrame":
            own = np.flatnonzero(places == group)
            return pd.DataFrame(asked[group](columns[own.tolist()].to_native(), **settings)).set_axis(own, axis=0)

        # Without any row of a group the columns are those of no row of the first one.
        found = [of(group) for group in sorted(set(places[places >= 0].tolist()))] or [of(0)]
        table = pd.concat(found).reindex(range(len(places)))
        return table.set_axis(new.index, axis=0) if isinstance(new, pd.DataFrame) else table

    def plot(
        self, x: str | None = None, at: Mapping[str, Any] | None = None, *, ax: Any = None, **settings: Any
    ) -> Any:
        """Draws the curves of every group over the public range of one column; returns the axes of Matplotlib.

        Of results that are no regressions it draws the numbers of every group, with their intervals if they have some.

        **Arguments:** as of the regression of one group; of other results `ax` and `level` alone, and ValueError is
        raised for others.
        """
        if not hasattr(self.each[0].view, "predict"):
            asked, level = {"x": x, "at": at, **settings}, settings.pop("level", 0.95)
            if given := [name for name in ("x", "at", *settings) if asked[name] is not None]:
                raise ValueError(f"the {self.title} is no curve over a column: leave {' and '.join(given)} out")
            return points_of(self.to_frame(level), self.index, self.each[0].title, ax)
        axes = axes_of(ax)
        for name, one in self._by_name():
            known = len(axes.get_lines())
            one.plot(x, at, ax=axes, **settings)
            for label, line in zip(one.labels, axes.get_lines()[known:], strict=True):
                line.set_label(name if len(one.labels) == 1 else f"{name}, {label}")
        axes.legend(frameon=False, handlelength=3.2)
        return axes

    def plot_coefficients(self, names: Sequence[str] | None = None, *, ax: Any = None, level: float = 0.95) -> Any:
        """Points with their intervals, the coefficients of all groups side by side; returns the axes of Matplotlib.

        **Arguments:** as of the regression of one group. Raises AttributeError where the results are no regressions.
        """
        _ = self.each[0].plot_coefficients
        return coefficients_of(self.to_frame(level), names, ax)

    def to_dict(self) -> dict[str, Any]:
        return {
            "groups": in_json(self.grouping.terms),
            "adjacency": str(self.adjacency),
            "in_words": self.groups_in_words,
            "together": None if (guarantee := self.guarantee) is None else guarantee.to_dict(),
            "each": [one.to_dict() for one in self.each],
        } | ({} if self.counted is None else {"counted": self.counted.to_dict()})

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Any:
        """Reads what `to_dict` writes. Raises ValueError for results of another number of groups."""
        grouping = Grouping(from_json("groups", fields["groups"]))
        each = tuple(map(kng.Results.from_dict, fields["each"]))
        counted = fields.get("counted")
        counted = None if counted is None else kng.Results.from_dict(counted)
        return cls._of(grouping, kng.Adjacency.parse(fields["adjacency"]), each, counted)

    def _by_name(self) -> list[tuple[str, Any]]:
        return list(zip(map(self.grouping.division.name, self.grouping.division.groups()), self.each, strict=True))

    @property
    def index(self) -> "pd.Index":
        """Returns the levels of each group."""
        by, groups = self.grouping.division.by, list(self.grouping.division.groups())
        if len(by) == 1:
            return pd.Index([level for (level,) in groups], name=by[0])
        return pd.MultiIndex.from_tuples(groups, names=by)


def _broadcast(new: Mapping[str, Any]) -> "pd.DataFrame":
    """Makes a frame of arrays and single values, cell by cell."""
    each = (column if hasattr(column, "dtype") else np.asarray(column, dtype=object) for column in new.values())
    return pd.DataFrame(dict(zip(new, np.broadcast_arrays(np.zeros(1), *each)[1:], strict=True)))
