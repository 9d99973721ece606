"""A ledger as its users see it: a path, a reservation before every release, a commit after it. Imports no JAX."""

import dataclasses
import datetime
import json
import operator
import os
import pathlib
import secrets
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.adjacency import RECORD, Adjacency
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.later import pd
from kngjax.ledger import store
from kngjax.ledger.book import (
    ALLOW,
    BEFORE_ALL,
    COLUMNS,
    DRAWN,
    FORMAT,
    OPENED,
    REFUSE,
    RELEASED,
    RESERVED,
    Book,
    LedgerError,
    Row,
    canonical,
    digest_of,
    guarantee_of,
)
from kngjax.ledger.budgets import Budget


class BudgetExceeded(ValueError):
    """Is raised where the budget does not allow a release: nothing was spent, drawn, or read of the data."""


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Holds a part of a ledger's budget that is spent for one release: `kngjax.release(..., ledger=reservation)`.

    A reservation names a row of the ledger, and reads there what it covers.

    **Arguments:** `ledger`; `number`: of its row.
    """

    ledger: "Ledger"
    number: int

    @property
    def guarantee(self) -> Guarantee:
        """Reads the guarantee that the reservation covers off its row; raises LedgerError if there is no such row."""
        return guarantee_of(self.ledger._reserved(self.number)[0])

    @property
    def proved(self) -> bool:
        """Tells whether the reservation is for a release that is proved to cost no more than it covers."""
        return self.ledger._reserved(self.number)[1]["proved"]

    def covers(self, guarantee: Guarantee) -> bool:
        """Tells whether the reservation was made for this guarantee, or for what `to_replace` makes of it."""
        own, asked = self.guarantee, [guarantee]
        if guarantee.adjacency is Adjacency.ADD_REMOVE and own.adjacency is Adjacency.REPLACE:
            asked.append(guarantee.to_replace())
        return any(canonical(own.to_dict()) == canonical(guarantee_of(_text(one)).to_dict()) for one in asked)

    def take(self) -> None:
        """Says in the ledger, before a draw, that the reservation is drawn from: once, whether or not that leads to a
        release.

        Raises LedgerError if it was drawn from already, is no row of the ledger, or that cannot be written.
        """
        self.ledger._follow(self.number, DRAWN)

    def commit(self, released: str, *, exact: bool) -> None:
        """Keeps the release that the reservation led to, once, before it is shown to anybody.

        No time is written: how long a draw took depends on the data.

        **Arguments:** `released`: the released value with its certificate, or a list of such, as JSON. `exact`: whether
        the draw is from exactly the law that the certificate's guarantee is of.

        Raises LedgerError for what is no row of the ledger, or was committed before; ValueError for what is no JSON;
        TypeError for a number that is no whole one.
        """
        json.loads(released)
        content = {"certificate": digest_of(released), "exact": exact, "release": released}
        self.ledger._follow(self.number, RELEASED, content)


class Ledger:
    """Keeps the budget of one data set in a file that all processes and all copies of this object share.

    A release is debited before the data are touched and before any randomness is drawn, and the debit is on the disk by
    then. What fails or is killed later stays spent. The object is the file's path and the random identity that was
    made with the file: copies, pickles and clones reset nothing, and another file under the same name is refused.

    **Arguments:** `path`: of a file made by `Ledger.create`.

    Raises FileNotFoundError; LedgerError for what is no ledger, or was changed.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path).resolve()
        book = store.read(self.path)
        self.identity, self.unproved = book.identity, book.unproved

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        budget: Budget | None = None,
        *,
        adjacency: str | Adjacency,
        dataset: str,
        unit: str = RECORD,
        unproved: str = REFUSE,
        **refused: Any,
    ) -> "Ledger":
        """Makes a new file with this budget, which nothing changes afterwards.

        **Arguments:**

        - `budget`: `Budget.pure`, `zcdp`, `approximate` or `converted`.
        - `adjacency`: that of every release of this ledger; required.
        - `dataset`: a public label. Take no digest of the data, which would confirm a guess of them.
        - `unit`: whom every release protects, in public words: "record", or like "patient" as `kngjax.Unit` names it. A
            release that protects another unit is refused.
        - `unproved`: "refuse" releases of which nothing is proved, as of Markov chains whose distance from their law
          nobody knows; or "allow" them at the cost of that law, which every sum of this ledger then says.

        Raises FileExistsError rather than to reset a ledger.
        """
        if refused or not isinstance(budget, Budget):
            raise TypeError(_meant(budget, refused))
        for name, label in (("dataset", dataset), ("unit", unit)):
            if not isinstance(label, str) or not label.strip():
                raise ValueError(f"{name} must be a public label in words, got {label!r}")
        if unproved not in (REFUSE, ALLOW):
            raise ValueError(f"unproved must be 'refuse' or 'allow', got {unproved!r}")
        content = {
            "format": FORMAT,
            "id": secrets.token_hex(16),
            "dataset": dataset,
            "unit": unit.strip(),
            "adjacency": str(Adjacency.parse(adjacency)),
            "budget": budget.to_dict(),
            "unproved": unproved,
            "time": _now(),
        }
        store.create(pathlib.Path(path).resolve(), Row.following(1, OPENED, None, None, content, BEFORE_ALL))
        return cls(path)

    def __repr__(self) -> str:
        allowed = ", which allows releases of which nothing is proved" if self.unproved == ALLOW else ""
        return f"<Ledger {str(self.path)!r}{allowed}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and (self.path, self.identity) == (other.path, other.identity)

    def __hash__(self) -> int:
        return hash((self.path, self.identity))

    def read(self, until: str | None = None) -> Book:
        """Reads the ledger, for the owner; raises LedgerError if its chain of digests does not hold.

        **Arguments:** `until`: a digest that `head()` gave earlier, for the ledger as it was then; None for now.
        """
        return self._own(store.read(self.path, until=until))

    def to_frame(self) -> "pd.DataFrame":
        """Lists the debits in a frame, for the owner: `Book.rows`."""
        rows = self.read().rows()
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def head(self) -> str:
        """Returns the digest of the last row, for a note elsewhere: see `verify`."""
        return self.read().head

    def verify(self, head: str | None = None) -> Book:
        """Checks everything that the file can be checked for, and returns what it says.

        SQLite's pages, the table and its triggers, every digest of the chain, and the sum of all debits against the
        budget. **Arguments:** `head`: a digest that `head()` gave earlier; the chain must contain it, so a file that
        was set back to a time before it is found out. Raises LedgerError.
        """
        book = self._own(store.read(self.path, thorough=True))
        if head is not None and head not in book.digests:
            raise LedgerError(store.WITHOUT_HEAD)
        return book

    def releases(self) -> dict[int, str]:
        """Returns the JSON of every release that was paid for, by the number of its reservation.

        `kngjax.Release.from_json` reads them; where one debit paid for all groups of a table it is a list of them.
        """
        return self.read().releases

    def require(self, guarantees: Sequence[Guarantee], *, proved: bool = True, book: Book | None = None) -> None:
        """Raises BudgetExceeded if these guarantees could not be reserved together now. Spends nothing.

        **Arguments:** `book`: what the ledger says, as `Book.public`; None for all that it says now.
        """
        self._debits(self.read() if book is None else book, [_text(guarantee) for guarantee in guarantees], proved)

    def reserve(
        self, guarantee: Guarantee, what: Any = None, *, proved: bool = True, drawn: bool = False
    ) -> Reservation:
        """Spends what one release costs, durably. See `reserve_all`."""
        return self.reserve_all([guarantee], [what], proved=proved, drawn=drawn)[0]

    def reserve_all(
        self,
        guarantees: Sequence[Guarantee],
        what: Sequence[Any] | None = None,
        *,
        proved: bool = True,
        drawn: bool = False,
    ) -> list[Reservation]:
        """Spends what several releases cost, all of them or none.

        **Arguments:** `guarantees`: what the releases cost, `Certificate.cost`, for the ledger's adjacency. `what`:
        public JSON-ready descriptions. `proved`: False where nothing is proved of the releases, and the guarantees are
        of laws that they approximate; refused unless the ledger was created with `unproved="allow"`. `drawn`: whether
        the reservations are drawn from at once, as `Reservation.take` would write later.

        Raises BudgetExceeded, which says what is left; ValueError for another unit, and for another adjacency, where
        `to_replace()` may help; LedgerError where nothing can be written. Then nothing is spent.
        """
        texts = [_text(guarantee) for guarantee in guarantees]
        about = [None] * len(texts) if what is None else list(what)

        def following(book: Book) -> tuple[list[Row], list[Reservation]]:
            self._debits(self._own(book), texts, proved)
            rows, made, time = [], [], _now()

            def add(phase: str, text: str | None, content: Any) -> None:
                previous = rows[-1].digest if rows else book.head
                rows.append(Row.following(book.num_rows + len(rows) + 1, phase, None, text, content, previous))

            for text, words in zip(texts, about, strict=True):
                add(RESERVED, text, {"time": time, "what": words, "proved": proved})
                made.append(Reservation(self, rows[-1].number))
            for reservation in made if drawn else ():
                add(DRAWN, None, reservation.number)
            return rows, made

        return store.append(self.path, following)

    def _follow(self, number: int, phase: str, content: Any = None) -> None:
        """Writes, once, that a reservation is drawn from, or the release that it led to."""
        # SQLite would keep a float as the whole number that it is, of which the digest is another.
        number = operator.index(number)

        def following(book: Book) -> tuple[list[Row], None]:
            if number not in self._own(book).reserved:
                raise self._without(number)
            if number in book.released or (phase == DRAWN and number in book.drawn):
                raise LedgerError(f"reservation {number} was drawn from already: reserve again for another release")
            # Each number is unique in the column for reservations, and a release's row has it.
            about = (None, None, number) if phase == DRAWN else (number, None, content)
            return [Row.following(book.num_rows + 1, phase, *about, book.head)], None

        store.append(self.path, following)

    def _reserved(self, number: int) -> tuple[str, dict[str, Any]]:
        """The guarantee and the content of a reservation's row."""
        book = self.read()
        if number not in book.reserved:
            raise self._without(number)
        return book.reserved[number], book.what[number]

    def _without(self, number: int) -> LedgerError:
        return LedgerError(f"there is no reservation {number} in {self.path}")

    def _own(self, book: Book) -> Book:
        if book.identity != self.identity:
            raise LedgerError(f"{self.path} is another ledger than the one that was opened here: it was replaced")
        return book

    def _debits(self, book: Book, texts: list[str], proved: bool) -> None:
        asked = [(guarantee_of(text), 1) for text in texts]
        if not proved and book.unproved != ALLOW:
            raise BudgetExceeded(
                "nothing is proved of this release, and this ledger debits what is proved alone: leave the sampler "
                "out, and release takes one with a proof or says what else is proved; or take a ledger that was "
                "created with unproved='allow' (kngjax ledger create --allow-unproved). Nothing was spent, drawn, or "
                "read of the data"
            )
        for guarantee, _ in asked:
            if (refusal := book.refusal_of(guarantee.unit)) is not None:
                raise ValueError(refusal)
            if guarantee.adjacency != book.adjacency:
                raise ValueError(
                    f"this ledger is for the adjacency '{book.adjacency}', and the guarantee for "
                    f"'{guarantee.adjacency}': "
                    + (
                        "reserve its to_replace(), which costs about twice as much, and give the reservation to release"
                        if book.adjacency is Adjacency.REPLACE
                        else "nothing follows from it; state the mechanism for 'add_remove'"
                    )
                )
        if not book.budget.admits([*book.parts, *asked]):
            raise BudgetExceeded(
                f"the budget does not allow this: {book.left} is left, and {book.budget.price(asked)} was asked. "
                + (f"{advice}. " if (advice := book.budget.advice(asked)) else "")
                + "Nothing was spent, drawn, or read of the data"
            )


def _text(guarantee: Guarantee) -> str:
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"a ledger reserves guarantees, like certificate.cost, not a {type(guarantee).__name__}")
    return canonical(guarantee.to_dict())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _meant(budget: Any, refused: dict[str, Any]) -> str:
    """Advises what to give as the budget, for a caller who gave its numbers or something else."""
    if unknown := sorted(set(refused) - {"epsilon", "delta", "rho"}):
        known = "path, budget, adjacency, dataset, unit, unproved"
        return f"Ledger.create has no argument {', '.join(unknown)}; it takes {known}"
    if refused:
        epsilon, delta, rho = (refused.get(name) for name in ("epsilon", "delta", "rho"))
        meant = f"pure({epsilon})" if delta is None else f"approximate({epsilon}, {delta})"
        return f"a budget is one object: give Budget.{meant if rho is None else f'zcdp({rho})'} after the path"
    return f"budget must be a Budget, like Budget.pure(3), not a {type(budget).__name__}"
