"""Summaries of results: tables for reading, as text and in a notebook."""

import dataclasses
from typing import TYPE_CHECKING, Any

from kngjax.core.html import html_table
from kngjax.estimators.views.base import AbstractView

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, repr=False)
class Summary:
    """The table of `summary()`: print it, or show it in a notebook."""

    view: AbstractView
    level: float = 0.95

    def rows(self) -> list[tuple[str, str]]:
        """Names and statements above the numbers."""
        view, releases, guarantee = self.view, self.view.releases, self.view.guarantee
        bounds = [f"{name} in [{low:g}, {high:g}]" for name, (low, high) in view.clipped.items()]
        weight, width = _largest("weight", releases), _largest("dither", releases)
        rows = [
            ("formula", getattr(view, "formula", "")),
            ("mechanism", ", ".join(sorted({str(one.certificate.mechanism["type"]) for one in releases}))),
            ("guarantee", "nothing is proved of a release" if guarantee is None else guarantee.explain()),
            ("budget", view.budget_in_words),
            ("groups", view.groups_in_words),
            ("assurance", ", ".join(sorted({one.certificate.assurance for one in releases}))),
            ("clipped to", ", ".join(bounds)),
            ("weights", "" if weight is None else f"each record counts times its own, which is at most {weight:g}"),
            (
                "dither",
                "" if width is None else f"quantiles are of responses with uniform noise of width {width:g} on each",
            ),
            ("made consistent with", ", ".join(getattr(view, "adjustments", ()))),
            ("interval", view.interval_in_words(self.level)),
            ("noise", view.noise_in_words),
            ("warning", ("" if view.expected is None else view.expected.warning) or ""),
        ]
        return [row for row in rows if row[1]]

    def __str__(self) -> str:
        head = self.rows()
        width = max(len(name) for name, _ in head)
        lines = [f"Private {self.view.title}", *(f"{name:>{width}}: {value}" for name, value in head), ""]
        return "\n".join([*lines, self._numbers().to_string(float_format=_shortly)])

    __repr__ = __str__

    def _numbers(self) -> "pd.DataFrame":
        import pandas as pd

        numbers, ends = pd.DataFrame(self.view.params), self.view.ends(self.level)
        noise = None if self.view.noise is None else pd.DataFrame(self.view.noise)
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
        return html_table(f"Private {self.view.title}", self.rows()) + numbers


def _largest(name: str, releases: tuple[Any, ...]) -> float | None:
    """Finds the largest number that the bounds of releases have by this name; None where they have none."""
    given = [(one.certificate.mechanism.get("bounds") or {}).get(name) for one in releases]
    return max((float(one) for one in given if one is not None), default=None)


def _shortly(value: float) -> str:
    return f"{value:.5g}"
