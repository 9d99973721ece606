"""Writes the page of a plan: what each analysis would be worth at several ε, before anything is spent. Public."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from kngjax.study.analysis_previews import AbstractTablePreview, GroupsPreview
from kngjax.study.reports import drawings
from kngjax.study.reports.layout import beside, budget, facts, items, page, paragraph, section, table
from kngjax.study.reports.markup import Markup, element

# What the ε that is asked for is called.
ASKED = "ε"
# Of 95% intervals, in standard errors.
_WIDE = 2 * 1.96
# Two shares of noise that are shown as one.
_ALIKE = 0.02


@dataclasses.dataclass(frozen=True)
class Foreseen:
    """Holds what is expected of one number.

    **Arguments:** `label`: of its release. `name`: its own. `noise`: the standard deviation of what is added for
    privacy, in own units. `error`: the standard error without privacy; None where nobody knows. `width`: of the 95%
    interval that is released, over that without privacy; None where none is. `is_stated`: whether noise and error are
    more than a guess. `own`: the width of the 95% interval of the table's own number, where one is released; else None.
    """

    label: str
    name: str
    noise: float
    error: float | None
    width: float | None
    is_stated: bool
    own: float | None = None

    @property
    def with_noise(self) -> float:
        """The standard error with privacy; that of the noise alone where the other is not known."""
        return math.hypot(self.noise, self.error or 0.0)

    @property
    def interval(self) -> float:
        """The width of the 95% interval in own units; 3.92 errors where none is released."""
        if self.own is not None:
            return self.own
        return _WIDE * (self.with_noise if self.width is None or self.error is None else self.width * self.error)

    @property
    def times(self) -> float | None:
        """How many times as wide intervals are as without privacy; None where nobody knows."""
        if self.width is not None:
            return self.width
        return self.with_noise / self.error if self.is_stated and self.error else None


@dataclasses.dataclass(frozen=True)
class Planned:
    """Holds one analysis of a plan.

    **Arguments:** `title`: of it. `cost`: in words. `refusal`: why it is refused as it was asked for; None where it is
    not. `at`: for each ε, as it is called, what is expected of each number, or in words why nothing is. `said`: what is
    expected of intervals there, in words. `words`: what was assumed.
    """

    title: str
    cost: str
    refusal: str | None
    at: dict[str, list[Foreseen] | str]
    said: dict[str, tuple[str, ...]]
    words: tuple[str, ...] = ()


def foreseen(preview: AbstractTablePreview) -> list[Foreseen]:
    """Lists what a preview expects of each number; none where it expects nothing."""
    groups = preview.grouping.division if isinstance(preview, GroupsPreview) else None
    names = [""] if groups is None else [f"{groups.name(one)}: " for one in groups.groups()]
    alike: dict[int, list[str]] = {}
    for name, one in zip(names, preview.each, strict=True):
        alike.setdefault(id(one), []).append(name)
    found = []
    for one in {id(one): one for one in preview.each if one is not None}.values():
        of_group = "; ".join(name.removesuffix(": ") for name in alike[id(one)]) + (": " if groups else "")
        for label, part in zip(one.labels, one.previews, strict=True):
            if part is None or part.noise is None:
                continue
            noise = part.noise
            errors, widths = ([None] * len(noise) if of is None else of for of in (part.standard_error, part.width))
            own = getattr(part, "own_width", None)
            found += [
                Foreseen(of_group + label, *number, part.withheld is None, own)
                for number in zip(noise.index, noise, errors, widths, strict=True)
            ]
    return found


def plan_page(name: str, planned: Sequence[Planned], together: str, amounts: Sequence[Any] | None, refusal: str) -> str:
    """Writes the page of a plan as HTML.

    **Arguments:** all public. `name`: of the job. `together`: what all analyses cost, in words. `amounts`: of
    `page_contents.amounts`, None without a ledger. `refusal`: of the ledger; empty where it allows all.
    """
    refused = [f"{one.title}: {one.refusal}" for one in planned if one.refusal] + ([refusal] if refusal else [])
    said = "Nothing is refused." if not refused else "As it stands this plan is refused:"
    lead = [
        paragraph("Nothing is spent yet, and no value of the data was looked at.", kind="lead"),
        paragraph(said, kind="bad" if refused else None),
        items(refused) if refused else None,
    ]
    analyses = [_analysis(f"a{place}", place, one) for place, one in enumerate(planned, start=1)]
    words = (
        "Each analysis is shown at half, one and two times the ε that it asks for. Figures rest on public facts and on "
        "what is assumed beside them, never on the data. Errors are of the population: of sampling and privacy "
        "together. A width is that of the 95% interval of the release, which for counts holds the table's own count. "
        "Where a release has no interval of the population, 3.92 errors stand in its place."
    )
    sections = [_budget(together, amounts), section("What each analysis would be worth", paragraph(words), *analyses)]
    return page(f"Plan of a private release: {name}", lead, sections)


def _budget(together: str, amounts: Sequence[Any] | None) -> Markup:
    cost = paragraph("All together: ", together, ".")
    if amounts is None:
        return section("Budget", cost, paragraph("No ledger is named: nothing holds the sum of these costs."))
    note = "Debits that led to no release are for the owner alone, and are not counted here."
    parts = ("this plan", "released before", "left then, at most")
    return section("Budget", cost, *budget("The budget with this plan", parts, amounts), paragraph(note, kind="note"))


def _analysis(name: str, place: int, one: Planned) -> Markup:
    body: list[Any] = [facts([("cost", one.cost)])]
    if one.refusal:
        body.append(paragraph("Refused: ", one.refusal, kind="bad"))
    body += [paragraph(f"At {at}: {found}") for at, found in one.at.items() if isinstance(found, str)]
    body += [paragraph(f"At {at}: {words}") for at, every in one.said.items() for words in every]
    known = {at: found for at, found in one.at.items() if not isinstance(found, str)}
    numbers: dict[tuple[str, str], dict[str, Foreseen]] = {}
    for at, found in known.items():
        for number in found:
            numbers.setdefault((number.label, number.name), {})[at] = number
    if numbers:
        body += [*_drawn(name, numbers, [*one.at]), _listed(f"Analysis {place}", numbers, [*known])]
    elif known and not any(one.said.values()):
        body.append(paragraph("How large its errors will be is not known beforehand."))
    if one.words:
        said = element("summary", "What is assumed"), *map(paragraph, one.words)
        body.append(element("details", *said, open="open"))
    return section(f"{place}. {one.title}", *body, level=3)


def _drawn(name: str, numbers: Mapping[Any, Mapping[str, Foreseen]], at_each: Sequence[str]) -> list[Any]:
    """Draws how much wider intervals are than without privacy; where nobody knows, how noise goes with ε."""
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    relative: dict[str, list[float]] = {}
    for (label, number), each in numbers.items():
        for at, one in each.items():
            if (times := one.times) is not None:
                panels.setdefault(label, {}).setdefault(number, []).append((at, times))
            elif ASKED in each and each[ASKED].noise > 0:
                relative.setdefault(at, []).append(one.noise / each[ASKED].noise)
    made = [
        drawings.bars(f"{name}-{number}", label, [*rows.items()], [*at_each], "×")
        for number, (label, rows) in enumerate(panels.items())
    ]
    if relative and all(max(one) <= (1 + _ALIKE) * min(one) for one in relative.values()):
        rows = [("", [(at, max(one)) for at, one in relative.items()])]
        title = "Noise of each number over its noise at the ε that is asked for"
        made.append(drawings.bars(f"{name}-relative", title, rows, [*at_each], "×"))
    said = "Bars say how many times as wide intervals of the population are as they would be without privacy."
    return [paragraph(said, kind="note") if panels else None, beside(made)]


def _listed(title: str, numbers: Mapping[Any, Mapping[str, Foreseen]], at_each: Sequence[str]) -> Markup:
    """Lists a row for each number, with its errors at every ε."""
    stated = {key: {at: one for at, one in each.items() if one.is_stated} for key, each in numbers.items()}
    if not any(stated.values()):
        return paragraph("Noise is not stated in figures: what is assumed below says why.", kind="note")
    heads = ["release", "number", "error without privacy"]
    heads += [f"{what} at {at}" for what in ("error", "width") for at in at_each]
    lines = []
    for key, each in stated.items():
        if each:
            without = next(iter(each.values())).error
            figures = [math.nan if without is None else without]
            figures += [each[at].with_noise if at in each else math.nan for at in at_each]
            figures += [each[at].interval if at in each else math.nan for at in at_each]
            lines.append([*key, *(drawings.number(one, 3) for one in figures)])
    return table(f"{title}: expected errors and widths, in own units", heads, lines, words=2)


def said_of(preview: AbstractTablePreview) -> tuple[str, ...]:
    """Lists what a preview expects of intervals in words, each once."""
    every = [one for one in preview.each if one is not None]
    return tuple(dict.fromkeys(words for one in every for words in one.of_intervals if words))


def assumed(preview: AbstractTablePreview) -> tuple[str, ...]:
    """Lists what a preview assumes, and why it withholds figures, each once."""
    found: list[str] = []
    for part in (part for one in preview.each if one is not None for part in one.previews if part is not None):
        found += [] if part.withheld is None else [f"Noise is not stated: {part.withheld}."]
        found += [] if part.setting is None else [f"Assumed: {'; '.join(part.setting.words)}."]
    return tuple(dict.fromkeys(found))
