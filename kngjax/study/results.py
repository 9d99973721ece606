"""Offers results: released values in own units, with names, what is proved of them, and a table for reading."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import kngjax as kng
from kngjax.accounting.wording import figures
from kngjax.core.kept_as_json import AbstractKeptAsJson
from kngjax.core.later import pd
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.inference.with_intervals import ReleaseWithIntervals
from kngjax.study import views
from kngjax.study.reports.page_contents import document_of, numbers_of, privacy_of
from kngjax.study.reports.release_page import report
from kngjax.study.views.base import AbstractView

_VIEWS: dict[str, type[AbstractView]] = {getattr(views, name).kind: getattr(views, name) for name in views.__all__}
# A field that tells the kind of results which were written before they said it, in this order.
_OLDER = {
    "each": "groups", "axes": "table", "deviations": "moment", "link": "regression", "design": "process",
    "names": "estimate",
}  # fmt: skip
_OF_UNCERTAINTY = ("bse", "tvalues", "pvalues", "conf_int", "cov_params", "scale")
# Other packages' results have these, and no release has: each would be computed from the records once more.
_NOT_RELEASED = frozenset(
    (
        *("resid", "residuals", "fittedvalues", "rsquared", "rsquared_adj", "nobs", "aic", "bic", "llf", "score"),
        *_OF_UNCERTAINTY,
    )
)
# What bounds of records say in numbers: the largest is told.
_NUMBERS = ("weight", "dither")
_INTERVALS = (
    ". Intervals are released with the estimate or not at all: quantile_interval of a column, kngjax.WithIntervals of "
    "a mechanism, intervals=True of a study's regression; `noise` is what privacy adds"
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Results(AbstractKeptAsJson, AbstractSummarised):
    """Released values with names. Nothing here is private, and what is computed is post-processing, which is free.

    All results have `title`, what was estimated; `labels`, one a release, and `releases`, each with its certificate;
    `params`, `value` of a single number, `noise` and `noise_in_words`, `clipped`, the public bounds, and `expected`,
    what they said beforehand; `explain` says in full what `summary` says in short. The rest depends on what was asked
    for:

    - of regressions `predict`, `predict_interval`, `conf_int`, `contrast`, `wald_test`, `plot`, `curves`,
      `basis_params`, `formula`, `design`,
    - of quantile processes these but for intervals, `levels`, and `draw` for responses,
    - of counts `counts`, `conf_int`, `shares`, `to_table`, `plot`, `nonnegative`, `with_total`, `with_margin`,
    - of variances `std` and `sums`, of these, sums and means `conf_int`,
    - of counts, means and variances `draws`, what they may be without their noise, and of groups and of counts
      `difference("north", "south")`,
    - of groups `results["north"]`, or with several columns `results["north", 1]`, `keys`, `values`, `items`, and what
      the results of each group have, for all of them together.

    **Arguments:** `view`: what the releases mean, one of `kngjax.study.views`.
    """

    view: AbstractView

    @classmethod
    def of(cls, kind: str, **facts: Any) -> "Callable[[Any, list[Any]], Results]":
        """Returns what makes results of an analysis and its releases. **Arguments:** `facts`: as of the kind's view."""
        return lambda analysis, releases: cls(_VIEWS[kind].of(analysis, releases, **facts))

    def __getattr__(self, name: str) -> Any:
        if name in _public(self.view):
            return getattr(self.view, name)
        if name in _NOT_RELEASED:
            if name in _OF_UNCERTAINTY and getattr(self.view, "has_intervals", False):
                raise AttributeError(
                    f"a private estimate has no {name}, and in its place to_frame() has a column 'std. error', noise "
                    "for privacy contained, conf_int(level) has intervals, wald_test(names) tests and p-values, and "
                    "contrast(weights) sums of coefficients"
                )
            raise AttributeError(
                f"a private estimate has no {name}: it would be a second release of the same records, without a "
                "guarantee. Only the data owner may look at kngjax.owner.nonprivate and kngjax.sample; kngjax.simulate "
                f"tells errors beforehand, on made-up data{_INTERVALS if name in _OF_UNCERTAINTY else ''}"
            )
        others = ", ".join(kind for kind, view in _VIEWS.items() if name in _public(view))
        raise AttributeError(
            f"the {self.view.title} has no {name}{f', which results of the kind {others} have' if others else ''}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_public(self.view)})

    @property
    def params(self) -> Any:
        """Returns the estimates in own units, by name: a series, or for several releases a frame with a column each.

        An estimate is the released number; for a regression with intervals it is the middle of the interval.
        """
        return self.view.params

    @property
    def noise(self) -> Any:
        """Returns the standard deviation of the noise of each of `params`; None as `noise_in_words` says."""
        return self.view.noise

    @property
    def certificate(self) -> kng.releases.Certificate:
        """Returns the certificate of the only release; each of several has its own, `releases[k].certificate`."""
        only, *others = self.view.releases
        if others:
            raise ValueError("there are several releases: each has its own, results.releases[0].certificate")
        return only.certificate

    @property
    def guarantee(self) -> kng.Guarantee | None:
        """Composes what is proved of all releases, with those for intervals; None where nothing is proved of one."""
        return self.view.guarantee

    def intervals(self, level: float | None = None) -> Any:
        """Computes intervals of `params`, and says how they were made, or why there are none.

        They are by label for several releases, and by group for groups.

        **Arguments:** `level`: between 0 and 1; that of the release, or 0.95, if left out.
        """
        return self.view.intervals(level)

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row, with the same columns for all kinds of results.

        They are those of the groups, `release` where there are several, the number's name, `estimate` in own units; and
        where there are intervals `std. error`, noise for privacy contained, `lower`, `upper` and `level`. A column of
        the table that has one of these names is called "column NAME".

        **Arguments:** `level`: of the intervals; one that was released for a level of its own has that.
        """
        return self.view.to_frame(level)

    def to_dict(self) -> dict[str, Any]:
        """Lists all facts of the results, JSON-ready."""
        return {"kind": self.view.kind} | self.view.to_dict()

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> "Results":
        """Reads what `to_dict` writes, and what earlier versions wrote."""
        fields = {**written}
        # Groups used to say the class of their results.
        _ = fields.pop("type", None)
        kind = fields.pop("kind", None) or next(kind for name, kind in _OLDER.items() if name in fields)
        return cls(_VIEWS[kind].from_dict(fields))

    def to_json(self) -> str:
        """Writes all that prediction and a check of the guarantee need."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Results":
        """Reads what `to_json` writes, and what earlier versions wrote; raises ValueError for other text."""
        try:
            return cls.from_dict(json.loads(text))
        except (KeyError, TypeError, AttributeError, StopIteration, json.JSONDecodeError) as error:
            raise ValueError(
                "this is not what Results.to_json() writes: take the whole text of the file that it was written to, "
                "pathlib.Path(name).read_text()"
            ) from error

    def summary(self, level: float = 0.95) -> SummaryTable:
        """Lays out what was asked, what is proved, and a line for each number. Print it, or show it in a notebook.

        **Arguments:** `level`: of the intervals, where there are some.
        """
        view = self.view
        formula = getattr(view, "formula", "")
        frame = view.with_noise(level)
        levels = [f"{one:g}" for one in frame.pop("level").dropna().unique()] if "level" in frame else []
        facts = [*self._facts(level), *(("level", one) for one in levels)]
        title = f"Private {view.title}{f': {formula}' if formula else ''}"
        return SummaryTable.of_frame(title, facts, frame, list(frame).index("estimate"))

    def explain(self, level: float = 0.95) -> str:
        """Says in full what `summary` says above its numbers, and then what is proved of each release, and how.

        **Arguments:** `level`: of the intervals.
        """
        view = self.view
        facts = dict(self._facts(level)) | {"interval": view.interval_in_words(level)}
        said = [f"{name}: {words}" for name, words in facts.items() if words]
        for label, one in zip(view.labels, view.releases, strict=True):
            together = f"{one.cost_in_words}\n" if isinstance(one, ReleaseWithIntervals) else ""
            said.append(f"{label}: {together}{one.certificate.explain()}")
        return "\n\n".join([view.title, *said])

    def report(self, path: "str | os.PathLike[str]", *, level: float = 0.95, ledger: kng.Ledger | None = None) -> None:
        """Writes the results as one HTML page, for a review board or an appendix; `kngjax verify` checks it.

        **Arguments:** `path`: of the page. `level`: of the intervals. `ledger`: the one that paid, for its budget; None
        leaves the budget out. Raises ValueError for a ledger that did not pay for these releases.
        """
        total, first = self.guarantee, self.view.releases[0].certificate
        written = {
            "labels": list(self.view.labels),
            "result": json.loads(self.to_json()),
            "numbers": numbers_of(self, level),
        }
        adjacency = str((first.guarantee if total is None else total).adjacency)
        published = {"privacy": privacy_of(total, adjacency), "analyses": [written]}
        document = document_of(published, None if ledger is None else ledger.read())
        pathlib.Path(path).write_text(report(document, [self], total), encoding="utf-8", newline="\n")

    def _facts(self, level: float) -> list[tuple[str, str]]:
        """Names what is said above the numbers and below them."""
        view, releases, guarantee = self.view, self.view.releases, self.view.guarantee
        bounds = [f"{name} in [{low:g}, {high:g}]" for name, (low, high) in view.clipped.items()]
        records = [one.certificate.mechanism.get("bounds") or {} for one in releases]
        weight, width = (max((one[name] for one in records if one.get(name)), default=None) for name in _NUMBERS)
        short, full = (view.interval_in_words(level, in_full) for in_full in (False, True))
        dither = f"quantiles are of responses with uniform noise of width {width or 0.0:g} on each"
        facts = [
            ("mechanism", ", ".join(sorted({str(one.certificate.mechanism["type"]) for one in releases}))),
            ("assurance", ", ".join(sorted({one.certificate.assurance for one in releases}))),
            *figures(guarantee),
            ("guarantee", guarantee and guarantee.explain()),
            ("budget", view.budget_in_words),
            ("groups", view.groups_in_words),
            ("clipped to", ", ".join(bounds)),
            ("weights", _of_weights(weight, records)),
            ("dither", view.heaps_in_words if width is None else dither),
            ("made consistent with", ", ".join(getattr(view, "adjustments", ()))),
            ("estimate", view.estimate_in_words),
            ("interval", short if short == full else f"{short}; explain() says how, and what is assumed"),
            ("noise", view.noise_in_words),
            ("warning", ("" if view.expected is None else view.expected.warning) or ""),
        ]
        return [(name, words) for name, words in facts if words]

    def __getitem__(self, level: Any) -> "Results":
        for key, one in self.items():
            if key == level:
                return one
        raise KeyError(f"there is no group {level!r}; there are {', '.join(map(repr, self.keys()))}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True


def _of_weights(largest: float | None, records: list[dict[str, Any]]) -> str:
    """Says how records count. **Arguments:** `records`: their bounds, of each release."""
    unit = next((one["unit"] for one in records if (one.get("unit") or {}).get("most_rows") is not None), None)
    if unit is None:
        return "" if largest is None else f"each record counts times its own, which is at most {largest:g}"
    votes = "one vote" if unit["most_rows"] == 1 else f"up to {unit['most_rows']} votes"
    return f"rows of one {unit['name']} share {votes}"


def _public(view: AbstractView | type[AbstractView]) -> list[str]:
    return [name for name in dir(view) if not name.startswith("_")]
