"""The rows of a ledger: how each follows from the one before, and what they say together. Imports no JAX.

    digest_k = SHA-256(number, phase, reservation, guarantee, content, digest_{k-1})

The first row is the budget; later ones reserve a part of it, say that a reservation is being drawn
from, or hold the release that a reservation led to.
"""

import dataclasses
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency
from kngjax.accounting.guarantees import Guarantee
from kngjax.ledger.budgets import Budget

FORMAT = 3
BEFORE_ALL = "0" * 64
OPENED, RESERVED, DRAWN, RELEASED = "opened", "reserved", "drawn", "released"
# What is told of each debit.
COLUMNS: tuple[str, ...] = (
    "reservation",
    "time",
    "label",
    "job",
    "data",
    "state",
    "proved",
    "epsilon",
    "delta",
    "rho",
    "release",
)
# A ledger refuses or allows releases of which nothing is proved.
REFUSE, ALLOW = "refuse", "allow"


class LedgerError(RuntimeError):
    """Is raised where a ledger cannot be used: it is none, was changed, or cannot be written. Nothing is released."""


@dataclasses.dataclass(frozen=True)
class Row:
    """Holds one row of the file; `guarantee` and `content` are canonical JSON."""

    number: int
    phase: str
    reservation: int | None
    guarantee: str | None
    content: str
    previous: str
    digest: str

    @classmethod
    def following(
        cls, number: int, phase: str, reservation: int | None, guarantee: str | None, content: Any, previous: str
    ) -> "Row":
        """Makes the row that follows `previous`, with its digest."""
        bare = cls(number, phase, reservation, guarantee, canonical(content), previous, "")
        return dataclasses.replace(bare, digest=bare.computed())

    def computed(self) -> str:
        """Computes the SHA-256 of everything in the row but its digest."""
        fields = [self.number, self.phase, self.reservation, self.guarantee, self.content, self.previous]
        return digest_of(canonical(fields))


def canonical(content: Any) -> str:
    """Writes JSON with sorted keys; what JSON cannot say, infinities and NaN included, is refused."""
    return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))


def digest_of(text: str) -> str:
    """Computes the SHA-256 of canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1024)
def guarantee_of(text: str) -> Guarantee:
    """Returns the guarantee of a row."""
    return Guarantee.from_dict(json.loads(text))


@dataclasses.dataclass(frozen=True)
class Book:
    """Sums up the rows of a ledger whose chain of digests was checked.

    A book is for the owner: which reservations led to no release may depend on the data.

    **Arguments:**

    - `identity`: random, made with the ledger. `dataset`: a public label of the data. `unit`: whom every release
        protects.
    - `adjacency`, `budget`: of every release.
    - `reserved`: the guarantee of each reservation as canonical JSON, by its number. `what`: its public description.
    - `drawn`: reservations that were drawn from, which is said before the draw.
    - `released`: what was committed of each reservation that led to a release, by the reservation's number.
    - `unproved`: "allow" if releases of which nothing is proved are debited at what the laws that they approximate
        cost, else "refuse".
    - `num_rows`, `head`: how many rows there are, and the digest of the last. `last_release`: the digest of the last
        row that holds a release, which does not tell whether debits followed that led to none; None before the first.
    """

    identity: str
    dataset: str
    unit: str
    adjacency: Adjacency
    budget: Budget
    reserved: dict[int, str]
    what: dict[int, Any]
    drawn: frozenset[int]
    released: dict[int, Any]
    digests: tuple[str, ...]
    unproved: str
    last_release: str | None = None

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Book":
        """Follows the chain from the first row; raises LedgerError, naming the row, where it does not hold."""
        opened: dict[str, Any] = {}
        reserved, what, drawn, released, digests = {}, {}, set(), {}, []
        previous, last_release = BEFORE_ALL, None
        for number, row in enumerate(rows, start=1):
            if row.number != number or row.previous != previous or row.digest != row.computed():
                raise LedgerError(f"the chain of this ledger breaks at row {number}: the file was changed")
            previous = row.digest
            digests.append(previous)
            content = json.loads(row.content)
            match row.phase:
                case "opened" if number == 1:
                    if content.get("format") != FORMAT:
                        raise LedgerError(
                            "this file is no ledger of this version of kngjax: make one with Ledger.create"
                        )
                    opened = content
                case "reserved" if opened and row.guarantee is not None:
                    reserved[number], what[number] = row.guarantee, content
                case "drawn" if content in reserved and content not in drawn and content not in released:
                    drawn.add(content)
                case "released" if row.reservation in reserved and row.reservation not in released:
                    if digest_of(content["release"]) != content["certificate"]:
                        raise LedgerError(f"the release of row {number} is not the one that was committed")
                    released[row.reservation], last_release = content, row.digest
                case _:
                    raise LedgerError(f"row {number} of this ledger cannot stand where it does: the file was changed")
        if not opened:
            raise LedgerError("this file is no ledger: make one by Ledger.create")
        book = cls(
            opened["id"],
            opened["dataset"],
            opened["unit"],
            Adjacency.parse(opened["adjacency"]),
            Budget.from_dict(opened["budget"]),
            reserved,
            what,
            frozenset(drawn),
            released,
            tuple(digests),
            opened["unproved"],
            last_release,
        )
        guarantees = [guarantee_of(text) for text in set(reserved.values())]
        if any(one.adjacency != book.adjacency for one in guarantees):
            raise LedgerError("this ledger holds guarantees for another adjacency than its own: the file was changed")
        if any(one.unit != book.unit for one in guarantees):
            raise LedgerError("this ledger holds guarantees that protect another unit than its own: it was changed")
        if not book.budget.admits(book.parts):
            raise LedgerError("more was spent than this ledger's budget: the file was changed")
        return book

    def refusal_of(self, unit: str) -> str | None:
        """Says in words why a release that protects this unit is refused; None where it is not."""
        if unit == self.unit:
            return None
        if unit == RECORD:
            return (
                f"this ledger protects each {self.unit}, and the release each record: say unit={self.unit!r} in Study "
                f"or Bounds, and where several rows may be one {self.unit}'s give identifiers too, person=. Nothing "
                "was spent"
            )
        return (
            f"this ledger protects each {self.unit}, and the release each {unit}: a release that protects each {unit} "
            f"needs a ledger of its own, Ledger.create(..., unit={unit!r}). Nothing was spent"
        )

    @property
    def public(self) -> "Book":
        """Copies the book without the debits that led to no release, which may depend on the data."""
        reserved, what = ({number: each[number] for number in self.released} for each in (self.reserved, self.what))
        return dataclasses.replace(self, reserved=reserved, what=what)

    @property
    def parts(self) -> tuple[tuple[Guarantee, int], ...]:
        """Returns the guarantees of all reservations, with how many times each: committed or not, they are spent."""
        return tuple((guarantee_of(text), count) for text, count in Counter(self.reserved.values()).items())

    @property
    def spent(self) -> Guarantee | None:
        """Returns the composition of all reservations; None before the first."""
        return Guarantee.counted(self.parts) if self.reserved else None

    @property
    def left(self) -> str:
        """Says in words how much of the budget is left, and how many debits are not proved."""
        return self.budget.left(self.parts) + self.caveat

    @property
    def not_proved(self) -> list[int]:
        """Reservations for releases of which nothing is proved: Markov chains after finitely many sweeps."""
        return sorted(number for number, one in self.what.items() if not one["proved"])

    @property
    def caveat(self) -> str:
        """Warns beside every sum of this ledger how many debits are not proved.

        The warning is empty where all debits are proved and must be.
        """
        if self.unproved != ALLOW and not self.not_proved:
            return ""
        return (
            f" (NOT PROVED of {len(self.not_proved)} of the {len(self.reserved)} debits, each counted as the law that "
            "its Markov chain approximates)"
        )

    @property
    def releases(self) -> dict[int, str]:
        """Returns the JSON of each committed release, by the number of its reservation."""
        return {number: content["release"] for number, content in self.released.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Lists the debits, for the owner, each with `COLUMNS`: a release by its digest, None for what is not there."""
        found = []
        for number, text in sorted(self.reserved.items()):
            content, guarantee = self.what[number], guarantee_of(text)
            about = content.get("what")
            told = about if isinstance(about, dict) else {"label": about}
            state = RELEASED if number in self.released else DRAWN if number in self.drawn else RESERVED
            costs = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
            digest = self.released.get(number, {}).get("certificate")
            row = {name: told.get(name) for name in ("label", "job", "data")}
            row |= {"reservation": number, "time": content.get("time"), "state": state}
            row |= {"proved": number not in self.not_proved, "release": digest} | costs
            found.append({name: row[name] for name in COLUMNS})
        return found

    @property
    def unfinished(self) -> list[int]:
        """Reservations that led to no release, or to none yet; spent all the same. They may depend on the data."""
        return sorted(self.reserved.keys() - self.released.keys())

    @property
    def num_rows(self) -> int:
        """Counts the rows of the ledger."""
        return len(self.digests)

    @property
    def head(self) -> str:
        """Returns the last row's digest: note it elsewhere, and `verify(head=...)` finds a file that was set back."""
        return self.digests[-1]

    @property
    def _whom(self) -> str:
        if self.unit == RECORD:
            return "one record"
        return f"one {self.unit}, with all records of that {self.unit},"

    def explain(self) -> str:
        """Explains the ledger in words, for the owner."""
        lines = [
            f"Ledger of {self.dataset!r}: {self._whom} is protected, adjacency {self.adjacency!s}{self.caveat}.",
            f"Budget: {self.budget.explain()}{self.caveat}.",
            f"Left: {self.left}.",
            f"Debits: {len(self.reserved)}, of which {len(self.released)} led to a release and "
            f"{len(self.unfinished)} did not; all are spent{self.caveat}.",
        ]
        if self.spent is not None:
            lines.append(f"Spent: {self.spent.explain()}{self.caveat}.")
        return "\n".join([*lines, f"Head: row {self.num_rows}, {self.head}{self.caveat}."])
