"""Makes reports of releases.json, and checks them: whether a page says what its certificates and the ledger say."""

import dataclasses
import hmac
import json
import math
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.ledger.book import Book, guarantee_of
from kngjax.ledger.ledgers import Ledger
from kngjax.releases import totals
from kngjax.releases.certificate import Certificate
from kngjax.study.reports import page_contents
from kngjax.study.reports.markup import document_in
from kngjax.study.reports.release_page import report
from kngjax.study.results import Results
from kngjax.study.synthesis.synthetic_tables import SyntheticTable

# Of numbers that are computed again, on another processor perhaps.
_NEAR = 1e-9
_UNSEALED = "names, bounds and units of the numbers, and what was asked: the seal of a page made with --ledger has them"
# Letters of a text that differs.
_SHOWN = 60
# Of JSON that somebody else wrote.
_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)


@dataclasses.dataclass(frozen=True)
class Checked:
    """Holds what was compared of a report, and found to hold, found to differ, or left open."""

    holds: tuple[str, ...]
    differs: tuple[str, ...]
    open: tuple[str, ...] = ()

    def explain(self) -> str:
        """Says in a line each what was found, and at the end whether the report holds, or only agrees with itself."""
        every = (("holds", self.holds), ("DIFFERS", self.differs), ("not checked", self.open))
        lines = [f"{kind}: {words}" for kind, said in every for words in said]
        agreed = "The report holds, as far as it was checked."
        if len(self.open) > 1:
            agreed = "The report agrees with itself; whether its releases were made is not checked."
        end = "The report does not hold." if self.differs else agreed if self.open else "The report holds."
        return "\n".join([*lines, end])


def report_of(published: dict[str, Any], book: Book | None) -> str:
    """Writes the report of what a job published.

    **Arguments:** `published`: as `releases.json` has it. `book`: of the ledger that paid; None for none. Raises
    ValueError for JSON that no job wrote, whose numbers do not follow from its releases, or that the ledger did not
    pay for.
    """
    try:
        results, total = _read(published)
        wrong = _differences(published, results, total)
    except _UNREADABLE as error:
        raise ValueError("this is not what 'kngjax release' writes: take its releases.json") from error
    if wrong:
        raise ValueError(f"{wrong[0]}: these releases were changed, or written by another version")
    return report(page_contents.document_of(published, book), results, total)


def check_report(text: str, ledger: Ledger | None = None) -> Checked:
    """Checks the text of a report, and with the ledger that paid for it also its releases and its budget.

    Raises ValueError for a page that is no report, and LedgerError for a ledger that was changed.
    """
    document = document_in(text)
    try:
        published = document["published"]
        results, total = _read(published)
        differs = _differences(published, results, total)
        written = report(document, results, total)
    except _UNREADABLE:
        return Checked((), ("the JSON of the page is not what a report holds",))
    holds = [] if differs else ["numbers and costs follow from the releases and their certificates"]
    if text == written:
        holds.append("the page shows what its JSON says")
    else:
        other = "" if document["kngjax"] == page_contents.document_of(published, None)["kngjax"] else (
            f"; it was written by kngjax {document['kngjax']}, which alone can compare it"
        )  # fmt: skip
        differs.append(f"the page does not show what its JSON says{_first_difference(text, written)}{other}")
    if ledger is None:
        open_ = "that the ledger paid for these releases, and what is left of its budget: give --ledger FILE"
        return Checked(tuple(holds), tuple(differs), (open_, _UNSEALED))
    paid, unpaid = _on_ledger(document, ledger, total)
    return Checked((*holds, *paid), (*differs, *unpaid), () if document["ledger"] is not None else (_UNSEALED,))


def _first_difference(text: str, written: str) -> str:
    """Says what the page should show where it first differs; nothing where that is no text."""
    pairs = enumerate(zip(text, written, strict=False))
    place = next((place for place, (own, other) in pairs if own != other), min(len(text), len(written)))
    should = written[written.rfind(">", 0, place) + 1 : written.find("<", place)].strip()
    return f": it should say {should[:_SHOWN]!r}" if should else ""


def _read(published: dict[str, Any]) -> tuple[list[Any], Guarantee | None]:
    """Reads the results of a job as objects, and composes what is proved of all of them."""
    results = []
    for one in published["analyses"]:
        kind = SyntheticTable if "plan" in one["result"] else Results
        results.append(kind.from_json(json.dumps(one["result"])))
    return results, totals.total(one.guarantee for one in results)


def _differences(published: dict[str, Any], results: Sequence[Any], total: Guarantee | None) -> list[str]:
    """Says which numbers and costs do not follow from the releases."""
    found = []
    for place, (one, result) in enumerate(zip(published["analyses"], results, strict=True), start=1):
        said = one.get("numbers") or []
        if not _are_near(said, page_contents.numbers_of(result, page_contents.level_of(said))):
            found.append(f"the numbers of analysis {place} are not those of its releases")
        for release in page_contents.releases_in(one["result"]):
            certificate = release["certificate"]
            again = Certificate.from_dict(certificate).to_dict()
            if again["proved_of_this_release"] != certificate.get("proved_of_this_release"):
                found.append(f"a certificate of analysis {place} states another cost than follows from it")
    if published["privacy"] != page_contents.privacy_of(total, published["privacy"]["adjacency"]):
        found.append("the cost of all releases is not the sum of what their certificates prove")
    if total is not None and str(total.adjacency) != published["privacy"]["adjacency"]:
        found.append("the certificates are for another adjacency")
    return found


def _are_near(said: Any, again: Any) -> bool:
    if isinstance(said, list) and isinstance(again, list):
        return len(said) == len(again) and all(map(_are_near, said, again))
    if isinstance(said, dict) and isinstance(again, dict):
        return said.keys() == again.keys() and all(_are_near(said[name], again[name]) for name in said)
    # Counts are whole: of large ones no digit may differ.
    if isinstance(said, float | int) and isinstance(again, float | int) and float in (type(said), type(again)):
        return math.isclose(said, again, rel_tol=_NEAR, abs_tol=1e-12)
    return said == again


def _on_ledger(document: dict[str, Any], ledger: Ledger, total: Guarantee | None) -> tuple[list[str], list[str]]:
    """Says what of a report the ledger confirms, and what it does not."""
    facts, now = document["ledger"], ledger.verify()
    results = [one["result"] for one in document["published"]["analyses"]]
    if facts is not None and facts["head"] not in now.digests:
        return [], ["the ledger does not contain the head that the page names: it is another one, or was set back"]
    try:
        # As it was when the page was made.
        book = now if facts is None else ledger.read(until=facts["head"])
        debits = page_contents.debits_of(book, results)
    except ValueError as error:
        return [], [str(error)]
    holds, differs = ["the chain of the ledger holds", "the ledger paid for every release, by its digest"], []
    paid = Guarantee.counted([(guarantee_of(book.reserved[number]), 1) for number in debits])
    numbers = [(one.epsilon, one.delta, one.rho, one.adjacency, one.unit) for one in (paid, total) if one is not None]
    if len(set(numbers)) > 1:
        differs.append("the ledger was debited another cost than the page states")
    if facts is None:
        return [*holds, "the page states no budget"], differs
    if facts != page_contents.facts_of(book, results):
        differs.append("the budget on the page is not that of the ledger at its head")
    if not hmac.compare_digest(str(document.get("seal")).encode(), page_contents.seal_of(document, book).encode()):
        differs.append("the seal of the page is not of this ledger: names, bounds or what was asked may be others")
    return holds if differs else [*holds, "the budget and the seal of the page are those of the ledger"], differs
