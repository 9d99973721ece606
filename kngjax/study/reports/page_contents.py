"""Gathers what a report is made of: the published JSON of releases, and the public facts of a ledger. Loads no JAX.

**Which facts of a ledger are public.** The whole budget is. So is what releases took of it that led to a published
value. A debit that led to none stays spent too, but whether there is one may depend on the data: it is not counted
here, and a page says that *at most* so much is left.
"""

import hmac
import importlib.metadata
import json
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from kngjax.ledger.book import ALLOW, Book, canonical, digest_of, guarantee_of
from kngjax.ledger.budgets import Budget

FORMAT = 1


def privacy_of(cost: Any, adjacency: str) -> dict[str, Any]:
    """States what is proved of releases together, JSON-ready. **Arguments:** `cost`: a guarantee; None for nothing."""
    return {
        "epsilon": None if cost is None or cost.exact_epsilon is None else cost.epsilon,
        "delta": None if cost is None else cost.delta,
        "adjacency": adjacency,
        "guarantee": None if cost is None else cost.to_dict(),
    }


def numbers_of(result: Any, level: float) -> list[dict[str, Any]]:
    """Lists every released number in own units, with its interval; none of a synthetic table."""
    if not hasattr(result, "to_frame"):
        return []
    return json.loads(result.to_frame(level).to_json(orient="records", double_precision=15))


def level_of(numbers: Iterable[dict[str, Any]]) -> float:
    """Finds the level of the intervals among numbers; 0.95 where there are none."""
    return next((row["level"] for row in numbers if row.get("level") is not None), 0.95)


def document_of(published: dict[str, Any], book: Book | None) -> dict[str, Any]:
    """Makes the document that a report shows and holds.

    **Arguments:** `published`: as `releases.json` has it. `book`: of the ledger that paid; None for none. Raises
    ValueError for a ledger that did not pay for one of the releases.
    """
    # Which releases a job owes still may depend on the data, as one that failed.
    shown = {name: one for name, one in published.items() if name != "missing"}
    facts = None if book is None else facts_of(book, [one["result"] for one in shown["analyses"]])
    document = {"format": FORMAT, "kngjax": importlib.metadata.version("kngjax"), "published": shown, "ledger": facts}
    return document if book is None else document | {"seal": seal_of(document, book)}


def seal_of(document: dict[str, Any], book: Book) -> str:
    """Computes the HMAC-SHA256 of a document under the ledger's identity, which is random and on no page."""
    sealed = {name: one for name, one in document.items() if name != "seal"}
    return hmac.new(book.identity.encode(), canonical(json.loads(json.dumps(sealed))).encode(), "sha256").hexdigest()


def releases_in(written: Any) -> Iterator[dict[str, Any]]:
    """Finds every single release in JSON: each value with its certificate, those for intervals and of groups too."""
    if isinstance(written, dict) and "certificate" in written:
        yield written
    elif isinstance(written, dict | list):
        for one in written.values() if isinstance(written, dict) else written:
            yield from releases_in(one)


def digest(release: dict[str, Any]) -> str:
    """SHA-256 of one release, value and certificate, whatever the order of its fields was."""
    return digest_of(canonical(release))


def debits_of(book: Book, results: Iterable[Any]) -> list[int]:
    """Finds the debits that paid for the releases in these results; raises ValueError where one was not paid for."""
    paid: dict[str, list[int]] = {}
    for number, text in book.releases.items():
        for one in releases_in(json.loads(text)):
            paid.setdefault(digest(one), []).append(number)
    found = set()
    for place, result in enumerate(results, start=1):
        for one in releases_in(result):
            if not (numbers := paid.get(digest(one))):
                raise ValueError(
                    f"the ledger holds no such release as of analysis {place}: it did not pay for it, or value or "
                    "certificate differ"
                )
            found.add(numbers.pop())
    return sorted(found)


def facts_of(book: Book, results: Sequence[Any]) -> dict[str, Any]:
    """States the public facts of a ledger and of these results on it, JSON-ready. Raises as `debits_of`."""
    here = debits_of(book, results)
    own = [(guarantee_of(book.reserved[number]), 1) for number in here]
    others = [(guarantee_of(text), 1) for number, text in book.public.reserved.items() if number not in here]
    return {
        "dataset": book.dataset,
        "protects": book.unit,
        "adjacency": str(book.adjacency),
        "budget": book.budget.to_dict(),
        "amounts": amounts(book.budget, own, others),
        "allows_unproved": book.unproved == ALLOW,
        # Later rows may be of debits that led to no release: pages of two heads would tell that there are some.
        "head": book.last_release,
    }


def amounts(budget: Budget, here: Sequence[Any], others: Sequence[Any]) -> list[list[str]]:
    """Lists each number of a budget: its name, what these releases take, what others took, and the whole."""
    own, every = budget.amounts(here), budget.amounts([*here, *others])
    return [
        [name, str(taken), str(all_taken - taken), str(whole)]
        for (name, taken, whole), (_, all_taken, _) in zip(own, every, strict=True)
    ]


def shares(amount: Sequence[str]) -> tuple[str, list[Fraction]]:
    """Reads one of `amounts`: its name, and what these releases take, what others took, and what is left at most."""
    name, here, others, whole = amount[0], *map(Fraction, amount[1:])
    return name, [here, others, whole - here - others]
