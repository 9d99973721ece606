"""Plans hold the draws that one debit pays for, resolved once from public facts, with their certificates.

what is asked for, facts of the records  ->  Plan: certificates, cost
    ->  debited  ->  the records read  ->  all drawn  ->  kept by the ledger  ->  put together
"""

import abc
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import holding_no_records, run_hiding_errors, run_telling_refusals
from kngjax.data.passes import showing_passes
from kngjax.data.schema import Schema
from kngjax.ledger.book import LedgerError
from kngjax.ledger.ledgers import BudgetExceeded, Ledger, Reservation
from kngjax.releases.certificate import Certificate
from kngjax.releases.debits import is_allowed, reserve_cost
from kngjax.releases.told import telling


def _taken(X: Any, y: Any) -> None:
    """Takes all records that were admitted."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Holds draws of the same records that one debit pays for, all settled before a value is looked at. Public.

    **Arguments:** `certificates`: one a release. `cost`: what a ledger debits for all together. `proved`: whether they
    provably cost no more. `draw`: makes all releases from records; they stay private until all are kept, since a
    later failure may depend on the data. Its second argument says whether to show a progress bar. `joined`: puts
    releases together for the caller. `check`: raises `UnfitType` for records X and y of the wrong type, and sees no
    value. `is_one`: whether a ledger keeps the release itself, not a list of releases. `instead`: says which other draw
    a budget allows, if any; it is told which certificates the budget allows.
    """

    certificates: tuple[Certificate, ...]
    cost: Guarantee
    proved: bool
    draw: Callable[[Any, bool | None], list[Any]]
    joined: Callable[[Any], list[Any]] = list
    check: Callable[[Any, Any], None] = _taken
    is_one: bool = False
    instead: Callable[[Callable[[Certificate], bool]], str] | None = None

    @property
    def owed(self) -> tuple[Guarantee, bool]:
        """States what a ledger debits, and whether it is proved that the releases cost no more."""
        return self.cost, self.proved

    def of(self, read: Callable[[Any], Any]) -> "Plan":
        """Copies the plan for records in another form. **Arguments:** `read`: makes of them those of this plan."""
        return replace(self, draw=functools.partial(_draw_read, self.draw, read))

    @holding_no_records
    def release(
        self, read: Callable[[], Any], ledger: Ledger | Reservation | None, what: Any, progress: bool | None = False
    ) -> list[Any]:
        """Draws all releases after one debit, which is made before a value is looked at, and drawn from once.

        The ledger keeps all of them at once, before anybody sees one. If one fails, nothing is released and the debit
        stays.

        **Arguments:** `read`: gives the records; whatever it raises is `kngjax.ReleaseFailed`. `ledger`: or a
        reservation of the cost made there beforehand. `what`: a public description for the ledger. Raises as
        `kngjax.release`.
        """
        side_doors.refuse()
        arithmetic.require_right()
        try:
            reservation = reserve_cost(ledger, self.cost, self.proved, what)
        except BudgetExceeded as error:
            instead = "" if self.instead is None else self.instead(functools.partial(is_allowed, ledger))
            raise BudgetExceeded(f"{error}. {instead[:1].upper()}{instead[1:]}" if instead else str(error)) from None
        drawn, refusal = run_hiding_errors(functools.partial(_draw_of, self, read, progress))
        if refusal is not None:
            raise refusal
        # The last guard: whatever becomes of a certificate on the way, the ledger has what is released.
        if tuple(one.certificate for one in drawn) != self.certificates:
            raise LedgerError("the releases cost another guarantee than was reserved: nothing is released")
        if reservation is not None:
            every = [one.to_json() for one in drawn]
            kept = every[0] if self.is_one else json.dumps([*map(json.loads, every)], sort_keys=True, allow_nan=False)
            reservation.commit(kept, exact=all(one.certificate.exact for one in drawn))
        return drawn


def _draw_read(draw: Callable[..., Any], read: Callable[[Any], Any], records: Any, progress: bool | None) -> Any:
    return draw(read(records), progress)


def _draw_of(plan: Plan, read: Callable[[], Any], progress: bool | None) -> list[Any]:
    with showing_passes(progress):
        return plan.draw(read(), progress)


class AbstractReleasePlan(abc.ABC):
    """Asks for several releases of the same records that belong together. All of it is public."""

    @property
    def told(self) -> tuple[str, ...]:
        """Lists what certificates say besides what those of single releases do."""
        return ()

    @abc.abstractmethod
    def admit(self, X: Any, y: Any) -> Schema:
        """Returns the public facts of records, by types and shapes alone; raises as `AbstractIntake.check_schema`."""

    @abc.abstractmethod
    def resolve(self, facts: Schema) -> Plan:
        """Resolves all draws with their certificates; raises ValueError for what public facts refuse."""

    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""

    @holding_no_records
    def planned(self, X: Any = None, y: Any = None) -> Plan:
        """Resolves the plan for these records, before a value is looked at."""
        facts, refusal = run_telling_refusals(functools.partial(self.admit, X, y))
        del X, y
        if refusal is not None:
            raise refusal
        with telling(*self.told):
            return self.resolve(facts)

    @holding_no_records
    def release(
        self, X: Any = None, y: Any = None, *, ledger: Ledger | Reservation | None = None, progress: bool | None = False
    ) -> Any:
        """Releases what is made of the records, by one debit: `kngjax.release` of this plan calls it."""
        plan = self.planned(X, y)
        plan.check(X, y)
        [only] = plan.joined(plan.release(lambda: (X, y), ledger, self.settings(), progress))
        return only
