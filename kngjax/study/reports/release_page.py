"""Writes the report of releases: asked and released, guaranteed and for whom, budget, assumptions, how to check it."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency, plural
from kngjax.accounting.guarantees import Guarantee
from kngjax.ledger.budgets import Budget
from kngjax.releases.certificate import Certificate
from kngjax.study.reports import drawings
from kngjax.study.reports.layout import beside, budget, facts, items, page, paragraph, section, table
from kngjax.study.reports.markup import Markup, element, joined
from kngjax.study.reports.page_contents import digest, level_of, releases_in

ESTIMATE, ENDS = "estimate", ("std. error", "lower", "upper", "level")
_NAMED = ("coefficient", "statistic")
# False alarms of a test, of which a page says how often the test may be right.
_ALARMS = (0.01, 0.05, 0.1)
_POINTS = 128
# More rows than that are read off the table.
_MOST_DRAWN = 40
_HEADS = ["release", "mechanism", "drawn by", "assurance", "sensitivity", "SHA-256"]


@dataclasses.dataclass(frozen=True)
class _Signed:
    """Holds one release with its label and its digest."""

    label: str
    certificate: Certificate
    digest: str


def report(document: dict[str, Any], results: Sequence[Any], total: Guarantee | None) -> str:
    """Writes the page of a document as HTML; the same document makes the same page.

    **Arguments:** `document`: of `page_contents.document_of`. `results`: of its analyses, as objects. `total`: what is
    proved of all of them together.
    """
    published, ledger = document["published"], document["ledger"]
    name, signed = published.get("name"), [*_signed(published["analyses"])]
    title = "Report of a private release" + (f": {name}" if name else "")
    analyses, number = len(published["analyses"]), len(signed)
    lead = [
        paragraph(
            f"{analyses} {'analyses' if analyses > 1 else 'analysis'}",
            f"{'' if total is None else ' with differential privacy'}, in {number} release{'s' if number > 1 else ''}",
            joined(" from the data ", element("code", published["data"])) if published.get("data") else None,
            ".",
            kind="lead",
        ),
        paragraph("This page holds nothing of the data but what was released, and what was public before."),
    ]
    sections = [
        _guaranteed(total, signed),
        section("What was asked and released", *_every_analysis(published["analyses"], results)),
        _spent(ledger),
        _assumed(signed),
        _checked(signed, document),
    ]
    return page(title, lead, sections, document)


def _signed(analyses: Sequence[Any]) -> Any:
    for one in analyses:
        releases = [*releases_in(one["result"])]
        labels = one["labels"] if len(one["labels"]) == len(releases) else None
        for place, release in enumerate(releases):
            label = labels[place] if labels else f"{one['labels'][0]}, part {place + 1} of {len(releases)}"
            yield _Signed(label, Certificate.from_dict(release["certificate"]), digest(release))


def most_power(guarantee: Guarantee, alarms: float) -> float:
    """Bounds how often any test finds out a record, that gives false alarm at this rate: its greatest power.

    A law P(A) ≤ e^ε Q(A) + δ, for both orders of the neighbours, bounds the power of a test of level α by e^ε α + δ and
    by 1 - e^-ε (1 - α - δ); both hold at every ε of the privacy profile, so the least over any of them does.
    """
    least = 1.0
    for epsilon, delta in _profile(guarantee):
        high = min(math.exp(min(epsilon, 50.0)) * alarms + delta, 1.0 - math.exp(-epsilon) * (1.0 - alarms - delta))
        least = min(least, high)
    return max(least, alarms)


@functools.lru_cache(maxsize=8)
def _profile(guarantee: Guarantee) -> list[tuple[float, float]]:
    largest = guarantee.epsilon if math.isfinite(guarantee.epsilon) else 20.0
    every = [largest * place / _POINTS for place in range(_POINTS + 1)]
    return [(epsilon, guarantee.at(epsilon=epsilon)) for epsilon in every]


def _percent(share: float) -> str:
    """Writes a share as a percentage, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}%"


def _guaranteed(total: Guarantee | None, signed: Sequence[_Signed]) -> Markup:
    unproved = sorted({words for one in signed for words in one.certificate.unproved})
    warned = [paragraph("Not proved: ", words, ".", kind="bad") for words in unproved]
    name = "What is guaranteed, and for whom"
    if total is None:
        return section(name, paragraph("Of at least one release nothing is proved.", kind="bad"), *warned)
    unit, several, is_replace = total.unit, plural(total.unit), total.adjacency is Adjacency.REPLACE
    whom = "each record: one row of the table" if unit == RECORD else f"each {unit}, with all rows of that {unit}"
    # Neighbours of add_remove have one record more or less; to exchange one costs twice as much.
    changed, tested = (
        ("exchanged for another", "had one value or another")
        if is_replace
        else ("left out, or added", "is in the data or not")
    )
    counts = {one.certificate.num_records for one in signed} - {None}
    count = f": {counts.pop():,}" if len(counts) == 1 else ""
    public = f"public{count}" if is_replace else "private"
    tests = [(_percent(one), _percent(most_power(total, one))) for one in _ALARMS]
    alarms, power = tests[1]
    return section(
        name,
        *warned,
        paragraph(
            f"The releases protect {whom}. They would have come out almost as likely had any one {unit} been "
            f"{changed}. The number of {several} is {public}."
        ),
        paragraph(f"All releases together: {total.explain()}. The smaller these numbers are, the better."),
        paragraph(
            f"In words: suppose that somebody knows everything about all others, and tests by these releases whether "
            f"one {unit} {tested}. A test that accuses the innocent {alarms} of the time finds out the truth at most "
            f"{power} of the time. With ε = 0 and δ = 0 that would be {alarms} too."
        ),
        table("What any test can find out", ["false alarms", "right alarms, at most"], tests),
        paragraph(
            "The guarantee is of the procedure. It says nothing of how useful the numbers are, and nothing of other "
            f"releases about the same {several}, whose costs add up."
        ),
    )


def _every_analysis(analyses: Sequence[Any], results: Sequence[Any]) -> list[Markup]:
    made = []
    for place, (one, result) in enumerate(zip(analyses, results, strict=True), start=1):
        numbers = one.get("numbers") or []
        summary = _rows_of(result, level_of(numbers))
        asked = [(name, _plain(value)) for name, value in sorted(one.get("asked", {}).items())]
        body = [facts(summary)]
        if asked:
            body.append(element("details", element("summary", "As it was asked for"), facts(asked), open="open"))
        title = f"{place}. {result.title[:1].upper()}{result.title[1:]}"
        body += _numbers(f"a{place}", title, numbers)
        made.append(section(title, *body, level=3))
    return made


def _rows_of(result: Any, level: float) -> list[tuple[str, str]]:
    if not hasattr(result, "view"):
        return [(name, words) for name, _, words in (note.partition(": ") for note in result.summary().notes)]
    rows = dict(result.summary(level).facts) | {"interval": result.view.interval_in_words(level)}
    return [row for row in rows.items() if row[1]]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_plain(one)}" for name, one in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def _numbers(name: str, title: str, numbers: Sequence[dict[str, Any]]) -> list[Any]:
    """Draws the numbers of an analysis, and lists them."""
    if not numbers:
        return [paragraph("Tables are drawn from what was released; it is kept in this page as JSON.")]
    keys = [key for key in numbers[0] if key not in (ESTIMATE, *ENDS)]
    has_ends = any(row.get("lower") is not None for row in numbers)
    panels: dict[str, list[Any]] = {}
    for row in numbers:
        # A panel has the numbers of one scale: those of one coefficient, whichever release and group they are of.
        is_one = len(keys) > 1 or keys[0] == _NAMED[0]
        label = ", ".join(str(row[key]) for key in (keys[:-1] if is_one else keys)) or ESTIMATE
        last = (str(row[keys[-1]]) if keys[-1] in _NAMED else f"{keys[-1]} = {row[keys[-1]]}") if is_one else title
        if row[ESTIMATE] is not None:
            panels.setdefault(last, []).append((label, row[ESTIMATE], row.get("lower"), row.get("upper")))
    drawn = [
        drawings.intervals(f"{name}-{place}", panel, rows[:_MOST_DRAWN])
        for place, (panel, rows) in enumerate(panels.items())
        # A point alone shows nothing.
        if len(rows) > 1 or rows[0][2] is not None
    ][:_MOST_DRAWN]
    known = [one for one in (ESTIMATE, *ENDS) if any(row.get(one) is not None for row in numbers)]
    lines = []
    for row in numbers:
        shown = ["" if row.get(one) is None else drawings.number(row[one]) for one in known]
        lines.append([*(str(row[key]) for key in keys), *shown])
    said = (
        "Points are estimates, lines their intervals, which hold the noise for privacy too."
        if has_ends
        else "No intervals were released with these estimates."
    )
    listed = table(f"{title}: released numbers, in own units", [*keys, *known], lines, words=len(keys))
    return [paragraph(said, kind="note"), beside(drawn), listed]


def _spent(ledger: dict[str, Any] | None) -> Markup:
    if ledger is None:
        words = "No ledger was given when this page was made: it does not say what else was released of these data."
        return section("Budget", paragraph(words, kind="bad"))
    whole, protected = Budget.from_dict(ledger["budget"]).explain(), ledger["protects"]
    words = f" protects each {protected} (adjacency {ledger['adjacency']}). It holds {whole}."
    unproved = "It also allows releases of which nothing is proved." if ledger["allows_unproved"] else None
    parts = ("these releases", "other releases", "left, at most")
    return section(
        "Budget",
        paragraph("The ledger of ", element("code", ledger["dataset"]), words),
        unproved and paragraph(unproved, kind="bad"),
        *budget("The budget by the ledger", parts, ledger["amounts"]),
        paragraph(
            "A release that fails is paid for all the same. Whether one failed is for the owner of the data alone, so "
            "this page says what is left at most.",
            kind="note",
        ),
        paragraph("Digest of the last release on the ledger: ", element("code", ledger["head"]), "."),
    )


def _assumed(signed: Sequence[_Signed]) -> Markup:
    found: dict[str, list[str]] = {}
    for one in signed:
        for words in one.certificate.assumptions:
            found.setdefault(words, []).append(one.label)
    every = [
        words
        if len(labels) == len(signed)
        else joined(words, element("span", f" ({'; '.join(labels)})", class_="note"))
        for words, labels in found.items()
    ]
    return section("Assumptions", paragraph("The guarantee holds if all of this does:"), items(every))


def _checked(signed: Sequence[_Signed], document: dict[str, Any]) -> Markup:
    steps = [
        joined("Run ", element("code", "kngjax verify report.html"), ". It reads the releases that this page holds as "
               "JSON, computes numbers and costs anew from them, and compares every word of the page. Whoever writes "
               "other releases, names or bounds by the same program is not found out by that."),
        joined("The owner of the data runs ", element("code", "kngjax verify report.html --ledger FILE"), ". It finds "
               "every release in the ledger by its digest, adds up the budget again, and checks the seal of the page, "
               "which only the ledger could make: names, bounds and what was asked are those of its owner."),
        "A certificate is a function of public settings: whoever makes its mechanism anew can compute it again.",
        "That a value was drawn as its certificate says, and that nothing else was released, only the owner can know.",
    ]  # fmt: skip
    rows, assured = [], set()
    for one in signed:
        made = one.certificate
        about = dict(made.rows())
        assured.add(about["assurance"])
        kinds = about["mechanism"], made.sampler["type"], made.assurance, about["sensitivity"]
        rows.append([one.label, *kinds, element("code", one.digest)])
    used = sorted({f"{name} {number}" for one in signed for name, number in one.certificate.versions.items()})
    return section(
        "How to check it",
        items(steps if document["ledger"] is not None else [steps[0], *steps[2:]], "ol"),
        table("Each release, and the SHA-256 of its value with its certificate", _HEADS, rows, words=len(_HEADS)),
        items([f"Assurance: {words}." for words in sorted(assured)]),
        paragraph(f"Released with {', '.join(used)}. This page was written by kngjax {document['kngjax']}."),
    )
