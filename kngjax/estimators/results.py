"""Results hold released values in own units, with names, what is proved of them, and a table for reading."""

import abc
import dataclasses
import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import kngjax as kng
from kngjax.core.html import html_table
from kngjax.estimators.carrying_out import Released
from kngjax.estimators.expectations import Expectations
from kngjax.estimators.public_json import with_tuples
from kngjax.estimators.responses import Exposure, Response
from kngjax.releases import totals
from kngjax.releases.debits import owed

if TYPE_CHECKING:
    import pandas as pd

_OF_UNCERTAINTY = ("bse", "tvalues", "pvalues", "conf_int", "cov_params", "scale")
# Other packages' results have these, and no release has: each would be computed from the records once more.
_NOT_RELEASED = frozenset(
    (
        *("resid", "residuals", "fittedvalues", "rsquared", "rsquared_adj", "nobs", "aic", "bic", "llf", "score"),
        *_OF_UNCERTAINTY,
    )
)


_INTERVALS = (
    ". Intervals are released with the estimate or not at all: quantile_interval of a column, kngjax.WithIntervals of "
    "a mechanism, intervals=True of a study's regression; `noise` is what privacy adds"
)


# The function that reads what `to_json` of a class writes, by class.
_READERS: dict[type, Callable[[type, str], Any]] = {}


def _refusing(read: Callable[[type, str], Any]) -> Callable[[type, str], Any]:
    """Makes a reader raise ValueError for text that it cannot read, with the class that can, where there is one."""

    @functools.wraps(read)
    def from_json(cls: type, text: str) -> Any:
        try:
            return read(cls, text)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            others = [kind.__name__ for kind in _READERS if _reads(kind, text)]
            instead = (
                f"it is read by kngjax.{others[0]}.from_json"
                if others
                else "take the whole text of the file that it was written to, pathlib.Path(name).read_text()"
            )
            raise ValueError(f"this is not what {cls.__name__}.to_json() writes: {instead}") from error

    return from_json


def _reads(kind: type, text: str) -> bool:
    try:
        return json.loads(_READERS[kind](kind, text).to_json()) == json.loads(text)
    except Exception:
        return False


class AbstractResults(abc.ABC):
    """Released values with names. Nothing here is private, and what is computed is post-processing, which is free.

    `title`: what was estimated. `labels`: one a release. `releases`: each with its certificate.
    """

    title: str
    labels: tuple[str, ...]
    releases: tuple[Any, ...]
    expected: Expectations | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(own := vars(cls).get("from_json"), classmethod):
            _READERS[cls] = own.__func__
            cls.from_json = classmethod(_refusing(own.__func__))

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_RELEASED:
            raise AttributeError(
                f"a private estimate has no {name}: it would be a second release of the same records, without a "
                "guarantee. The data owner alone may look at kngjax.nonprivate and kngjax.sample; kngjax.simulate "
                f"tells errors beforehand, on made-up data{_INTERVALS if name in _OF_UNCERTAINTY else ''}"
            )
        raise AttributeError(f"{type(self).__name__} has no {name}")

    @property
    @abc.abstractmethod
    def params(self) -> "pd.Series | pd.DataFrame":
        """The released numbers in own units, by name: a series, or of several releases a frame with a column each."""

    @property
    def noise(self) -> "pd.Series | pd.DataFrame | None":
        """The standard deviation of the noise of each of `params`, labelled alike; None as `noise_in_words` says."""
        return None

    @property
    def noise_in_words(self) -> str:
        """Says how `noise` is known, or why there is none; empty where nothing is said of it."""
        return ("" if self.expected is None else self.expected.words) or ""

    @property
    def budget_in_words(self) -> str:
        """Says how ε is divided among releases that are parts of one estimate; empty elsewhere."""
        return ""

    @property
    def groups_in_words(self) -> str:
        """Says how records are divided into groups; empty where they are not."""
        return ""

    def ends(self, level: float) -> "dict[str, pd.DataFrame]":
        """Intervals of `params` by label, with columns lower and upper; empty where none were asked for."""
        return {}

    def interval_in_words(self, level: float) -> str:
        """Says how intervals were made and what they assume; empty where none were asked for."""
        return ""

    @property
    @abc.abstractmethod
    def clipped(self) -> dict[str, tuple[float, float]]:
        """The public bounds, in own units, that columns of numbers were clipped to."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All that is public of the results, JSON-ready."""

    @property
    def certificate(self) -> kng.Certificate:
        """The certificate of the only release; of several each has its own, `releases[k].certificate`."""
        only, *others = self.releases
        if others:
            raise ValueError("there are several releases: each has its own, results.releases[0].certificate")
        return only.certificate

    @property
    def guarantee(self) -> kng.Guarantee | None:
        """Composes what is proved of all releases, with those for intervals; None where nothing is proved of one."""
        return totals.total(map(cost_of, self.releases))

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """Lists every number in a row: the release, the name, the value in own units; with intervals their ends too.

        **Arguments:** `level`: of the intervals.
        """
        import pandas as pd

        table = pd.DataFrame(self.params)
        named = str(table.index.name)
        melted = table.reset_index().melt(named, var_name="release")
        made = pd.DataFrame(melted, columns=["release", named, "value"])
        if ends := self.ends(level):
            sides = pd.concat([ends[label] for label in self.labels], ignore_index=True)
            made = pd.concat([made, sides], axis=1)
        return made

    def to_json(self) -> str:
        """All that prediction and a check of the guarantee need."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)

    def summary(self, level: float = 0.95) -> "Summary":
        """A table for reading: what was asked, what is proved, the bounds, the numbers.

        **Arguments:** `level`: of the intervals, where a regression has some.
        """
        return Summary(self, level)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclasses.dataclass(frozen=True, repr=False)
class Summary:
    """The table of `summary()`: print it, or show it in a notebook."""

    results: AbstractResults
    level: float = 0.95

    def rows(self) -> list[tuple[str, str]]:
        """Names and statements above the numbers."""
        results = self.results
        guarantee, releases = results.guarantee, results.releases
        bounds = [f"{name} in [{low:g}, {high:g}]" for name, (low, high) in results.clipped.items()]
        rows = [
            ("formula", getattr(results, "formula", "")),
            ("mechanism", ", ".join(sorted({str(one.certificate.mechanism["type"]) for one in releases}))),
            ("guarantee", "nothing is proved of a release" if guarantee is None else guarantee.explain()),
            ("budget", results.budget_in_words),
            ("groups", results.groups_in_words),
            ("assurance", ", ".join(sorted({one.certificate.assurance for one in releases}))),
            ("clipped to", ", ".join(bounds)),
            ("weights", _weights(releases)),
            ("dither", _dither(releases)),
            ("made consistent with", ", ".join(getattr(results, "adjustments", ()))),
            ("interval", results.interval_in_words(self.level)),
            ("noise", results.noise_in_words),
            ("warning", ("" if results.expected is None else results.expected.warning) or ""),
        ]
        return [row for row in rows if row[1]]

    def __str__(self) -> str:
        head = self.rows()
        width = max(len(name) for name, _ in head)
        lines = [f"Private {self.results.title}", *(f"{name:>{width}}: {value}" for name, value in head), ""]
        return "\n".join([*lines, self._numbers().to_string(float_format=_shortly)])

    __repr__ = __str__

    def _numbers(self) -> "pd.DataFrame":
        import pandas as pd

        numbers, ends = pd.DataFrame(self.results.params), self.results.ends(self.level)
        noise = None if self.results.noise is None else pd.DataFrame(self.results.noise)
        columns = {}
        for place, label in enumerate(numbers):
            of = f" of {label}" if len(numbers.columns) > 1 else ""
            columns[label] = numbers.iloc[:, place]
            if noise is not None:
                columns[f"noise{of}"] = noise.iloc[:, place]
            for end, values in ends.get(str(label), {}).items():
                columns[f"{end}{of}"] = values
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        numbers = self._numbers().to_html(float_format=_shortly)
        return html_table(f"Private {self.results.title}", self.rows()) + numbers


def _weights(releases: tuple[Released, ...]) -> str:
    """Says in words how records are weighted; empty where they have no weights."""
    given = [(one.certificate.mechanism.get("bounds") or {}).get("weight") for one in releases]
    largest = max((float(one) for one in given if one is not None), default=None)
    return "" if largest is None else f"each record counts times its own, which is at most {largest:g}"


def _dither(releases: tuple[Released, ...]) -> str:
    """Says in words how much noise dithers the responses; empty where they got none."""
    given = [(one.certificate.mechanism.get("bounds") or {}).get("dither") for one in releases]
    width = max((float(one) for one in given if one is not None), default=None)
    return "" if width is None else f"quantiles are of responses with uniform noise of width {width:g} on each"


def _shortly(value: float) -> str:
    return f"{value:.5g}"


def response_from(written: dict[str, Any]) -> Response:
    """A response from its fields in JSON."""
    fields = with_tuples(written)
    if (exposure := fields.get("exposure")) is not None:
        fields["exposure"] = Exposure(**with_tuples(exposure))
    return Response(**fields)


def releases_from(written: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Releases from JSON, those with intervals too."""
    return tuple(
        (kng.ReleaseWithIntervals if "parts" in one else kng.Release).from_json(json.dumps(one)) for one in written
    )


def cost_of(release: Released) -> kng.Guarantee | None:
    """Returns the guarantee that is proved of a release, with the sums for its intervals; None where none is."""
    return release.cost if isinstance(release, kng.ReleaseWithIntervals) else release.certificate.cost


def owed_of(release: Released) -> tuple[kng.Guarantee, bool]:
    """Returns what a ledger was debited for a release, and whether the release provably costs no more."""
    if isinstance(release, kng.ReleaseWithIntervals):
        return release.guarantee, release.cost is not None
    return owed(release.certificate)
