"""Released results of every group of a table, by the levels of its groups."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

import kngjax as kng
from kngjax.data.terms import Categorical, Design
from kngjax.estimators.analyses import table_of
from kngjax.estimators.carrying_out import Released
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.fitted_intervals import side_by_side
from kngjax.estimators.grouping import GroupedAnalysis, Grouping
from kngjax.estimators.public_json import design_from_json, design_in_json
from kngjax.estimators.responses import Response
from kngjax.estimators.results import AbstractResults, owed_of
from kngjax.releases.divided import owed_together
from kngjax.releases.division import how_priced

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GroupedResults(AbstractResults):
    """Holds the released results of each group: `results["north"]`, or with several columns `results["north", 1]`.

    **Arguments:** `grouping`: the columns and their public levels. `adjacency`: of the whole table. `each`: the results
    of each group, in order.
    """

    grouping: Grouping
    adjacency: kng.Adjacency
    each: tuple[AbstractResults, ...]

    @classmethod
    def of(
        cls, results: Callable[..., AbstractResults], analysis: GroupedAnalysis, releases: list[Released]
    ) -> "GroupedResults":
        """Makes the results of an analysis that was carried out. **Arguments:** `results`: makes those of one group."""
        waiting = iter(releases)
        each = [results(one, [next(waiting) for _ in one.parts]) for one in analysis.analyses]
        return cls(analysis.grouping, analysis.adjacency, tuple(each))

    @property
    def title(self) -> str:
        return f"{self.each[0].title} by {' and '.join(self.grouping.division.by)}"

    @property
    def formula(self) -> str:
        """The formula as it was written; empty where the analysis is no regression."""
        return getattr(self.each[0], "formula", "")

    @property
    def response(self) -> Response:
        return self.each[0].response

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(", ".join((name, label)) for name, one in self._named() for label in one.labels)

    @property
    def releases(self) -> tuple[Released, ...]:
        return tuple(release for one in self.each for release in one.releases)

    @property
    def guarantee(self) -> kng.Guarantee | None:
        """Composes what is proved of the releases of all groups together, for the adjacency of the whole table."""
        costs = [[owed_of(release) for release in one.releases] for one in self.each]
        together, proved = owed_together(costs, self.adjacency)
        return together if proved else None

    @property
    def groups_in_words(self) -> str:
        return f"{self.grouping.division.explain()}; {how_priced(self.adjacency)}"

    @property
    def clipped(self) -> dict[str, tuple[float, float]]:
        return self.each[0].clipped

    def keys(self) -> list[Any]:
        """The level of each group, or of several columns a tuple of levels."""
        return [group[0] if len(group) == 1 else group for group in self.grouping.division.groups()]

    def values(self) -> list[AbstractResults]:
        """The results of each group."""
        return list(self.each)

    def items(self) -> list[tuple[Any, AbstractResults]]:
        """Levels and results."""
        return list(zip(self.keys(), self.each, strict=True))

    def __getitem__(self, level: Any) -> AbstractResults:
        for key, one in self.items():
            if key == level:
                return one
        raise KeyError(f"there is no group {level!r}; there are {', '.join(map(repr, self.keys()))}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.each)

    @property
    def budget_in_words(self) -> str:
        return next(iter(self.each)).budget_in_words

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
    def expected(self) -> Expectations | None:
        """Returns the expectations of the first group with a warning, or of the first group where there is none."""
        warned = [one for one in self.each if one.expected is not None and one.expected.warning]
        return (warned or self.each)[0].expected

    def _by_group(self, found: list[Any]) -> "pd.Series | pd.DataFrame":
        import pandas as pd

        index = self._index()
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
        return {key: one.intervals() if level is None else one.intervals(level) for key, one in self.items()}

    def conf_int(self, level: float = 0.95) -> "pd.DataFrame":
        """Intervals of `params`: a row a group, columns lower and upper below each number's name.

        Several releases have the shape of their table in `params`, below their labels. The ends are NaN where there is
        no interval: `intervals` has the reason. **Arguments:** as of `RegressionResults.conf_int`, which raises the
        same errors where no intervals were asked for.
        """
        found = self.ends(level)
        return side_by_side(found) if found else self.each[0].conf_int(level)

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        import pandas as pd

        each = [one.ends(level) for one in self.each]
        if not all(each):
            return {}
        index, labels = self._index(), self.each[0].labels
        if len(labels) > 1:
            names = [*self.grouping.division.by, *each[0][labels[0]].index.names]
            return {
                label: pd.concat(dict(zip(index, [one[label] for one in each], strict=True)), names=names)
                for label in labels
            }
        [own] = zip(*(one.values() for one in each), strict=True)
        return {str(name): pd.DataFrame([one.loc[name].to_dict() for one in own], index) for name in own[0].index}

    def interval_in_words(self, level: float) -> str:
        groups: dict[str, list[str]] = {}
        for name, one in self._named():
            groups.setdefault(one.interval_in_words(level), []).append(name)
        if len(groups) == 1:
            return next(iter(groups))
        return "; ".join(f"{', '.join(names)}: {words}" for words, names in groups.items())

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row: the level of the group, the release, the name, the value in own units; and ends.

        **Arguments:** as of the results of one group.
        """
        import pandas as pd

        frames = []
        for group, one in zip(self.grouping.division.groups(), self.each, strict=True):
            levels = dict(zip(self.grouping.division.by, group, strict=True))
            table = one.to_frame(level)
            frames.append(pd.concat([pd.DataFrame(levels, table.index), table], axis=1))
        return pd.concat(frames, ignore_index=True)

    def predict(self, new: Any, **settings: Any) -> "pd.Series | pd.DataFrame":
        """Predicts each row by the regression of its own group, NaN for rows that belong to no group.

        **Arguments:** `new`, `settings`: as of `RegressionResults.predict`, with the columns of the groups.
        Raises ValueError where the results are no regressions, and for levels that are not declared, as the analysis
        would.
        """
        table = self._of_own_groups(new, lambda fit, rows: fit.predict(rows, **settings))
        return table if len(self.each[0].labels) > 1 else table.iloc[:, 0]

    def predict_interval(self, new: Any, level: float = 0.95, **settings: Any) -> "pd.DataFrame":
        """Intervals of what `predict` says, by each row's own group. **Arguments:** as of `predict`, and `level`."""
        return self._of_own_groups(new, lambda fit, rows: fit.predict_interval(rows, level, **settings))

    def _of_own_groups(self, new: Any, ask: Callable[[Any, Any], "pd.Series | pd.DataFrame"]) -> "pd.DataFrame":
        import pandas as pd

        self._require_regressions("predictions")
        columns = _broadcast(new) if isinstance(new, Mapping) else table_of(new)
        present = columns.columns if isinstance(columns, nw.DataFrame) else columns
        if absent := [name for name in self.grouping.division.by if name not in present]:
            raise ValueError(f"predictions need the columns of the groups, and {absent} are not there")
        places = self.grouping.places(columns)

        def of(group: int) -> "pd.DataFrame":
            own = np.flatnonzero(places == group)
            if isinstance(columns, nw.DataFrame):
                rows: Any = columns[own.tolist()].to_native()
            else:
                rows = {name: column[own] for name, column in columns.items()}
            return pd.DataFrame(ask(self.each[group], rows)).set_axis(own, axis=0)

        # Without any row of a group the columns are those of no row of the first one.
        found = [of(group) for group in sorted(set(places[places >= 0].tolist()))] or [of(0)]
        table = pd.concat(found).reindex(range(len(places)))
        return table.set_axis(new.index, axis=0) if isinstance(new, pd.DataFrame) else table

    def plot(
        self, x: str | None = None, at: Mapping[str, Any] | None = None, *, ax: Any = None, **settings: Any
    ) -> Any:
        """The curves of every group over the public range of one column; returns the axes of Matplotlib.

        **Arguments:** as of `RegressionResults.plot`.
        """
        import matplotlib.pyplot as plt

        self._require_regressions("curves")
        axes = plt.subplots()[1] if ax is None else ax
        for name, one in self._named():
            known = len(axes.get_lines())
            one.plot(x, at, ax=axes, **settings)
            for label, line in zip(one.labels, axes.get_lines()[known:], strict=True):
                line.set_label(name if len(one.labels) == 1 else f"{name}, {label}")
        axes.legend()
        return axes

    def to_dict(self) -> dict[str, Any]:
        return {
            "groups": design_in_json(Design(self.grouping.terms)),
            "adjacency": str(self.adjacency),
            "in_words": self.groups_in_words,
            "together": None if (guarantee := self.guarantee) is None else guarantee.to_dict(),
            "type": type(self.each[0]).__name__,
            "each": [one.to_dict() for one in self.each],
        }

    @classmethod
    def from_json(cls, text: str) -> "GroupedResults":
        """The inverse of `to_json`. Raises ValueError for an unknown type of results and for another number."""
        fields = json.loads(text)
        kind: Any = getattr(kng, fields["type"], None)
        if not (isinstance(kind, type) and issubclass(kind, AbstractResults)):
            raise ValueError(f"there are no results of the type {fields['type']!r}")
        grouping = Grouping(tuple(t for t in design_from_json(fields["groups"]).terms if isinstance(t, Categorical)))
        if len(fields["each"]) != len(grouping.division):
            raise ValueError(f"there are {len(grouping.division)} groups, and results of {len(fields['each'])}")
        read: Any = kind
        each = tuple(read.from_json(json.dumps(one)) for one in fields["each"])
        return cls(grouping, kng.Adjacency.parse(fields["adjacency"]), each)

    def __reduce__(self) -> tuple[Any, ...]:
        return GroupedResults.from_json, (self.to_json(),)

    def _named(self) -> list[tuple[str, Any]]:
        return list(zip(map(self.grouping.division.name, self.grouping.division.groups()), self.each, strict=True))

    def _index(self) -> "pd.Index":
        import pandas as pd

        by, groups = self.grouping.division.by, list(self.grouping.division.groups())
        if len(by) == 1:
            return pd.Index([level for (level,) in groups], name=by[0])
        return pd.MultiIndex.from_tuples(groups, names=by)

    def _require_regressions(self, what: str) -> None:
        if not hasattr(type(self.each[0]), "predict"):
            raise ValueError(f"{what} are of regressions, and this is the {self.title}")


def _broadcast(new: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns of one length, cell by cell, of arrays and single values."""
    arrays = {
        name: np.asarray(column) if hasattr(column, "dtype") else np.asarray(column, dtype=object)
        for name, column in new.items()
    }
    shape = np.broadcast_shapes((1,), *(array.shape for array in arrays.values()))
    return {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
