"""Debits a release from a ledger: its cost is reserved before the data are touched, and committed at the end."""

import json
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.core.representation import describe
from kngjax.ledger.ledgers import BudgetExceeded, Ledger, Reservation
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import Certificate


def owed(certificate: Any) -> tuple[Guarantee, bool]:
    """States what a ledger debits for the release of this certificate, and whether it is proved to cost no more.

    It serves a `Certificate`, and a release with intervals, which has the same `cost` and `guarantee` of all its parts.

    Where nothing is proved of the release, that is the guarantee of the law that a Markov chain approximates, and only
    a ledger that was created with `unproved="allow"` takes it.
    """
    return (certificate.guarantee, False) if certificate.cost is None else (certificate.cost, True)


def is_allowed(ledger: Any, certificate: Certificate) -> bool:
    """Says whether a ledger has room for the release of this certificate now; of what is no ledger, that it has."""
    if not isinstance(ledger, Ledger):
        return True
    guarantee, proved = owed(certificate)
    try:
        ledger.require([guarantee], proved=proved)
    except BudgetExceeded:
        return False
    return True


def settings(mechanism: AbstractMechanism) -> Any:
    """Lists all public settings of a mechanism, JSON-ready; infinities as words."""
    return in_json(describe(mechanism))


def in_json(described: Any) -> Any:
    """Makes what `describe` says of a part JSON-ready, with infinities as words."""
    return json.loads(json.dumps(described), parse_constant=str)


def reserve_cost(
    ledger: Ledger | Reservation | None, guarantee: Guarantee, proved: bool, what: Any
) -> Reservation | None:
    """Reserves in a ledger what is owed, which spends it, and marks it as drawn from; returns None without a ledger.

    No reservation is drawn from twice, since a failed draw or a process that died tells something too.

    **Arguments:** `ledger`: or a reservation made beforehand, for this very guarantee or its `to_replace()`, and not
    drawn from before. `what`: a public description for the ledger.

    Raises as `Ledger.reserve`; TypeError for what is no ledger, ValueError for a reservation of another guarantee.
    """
    if ledger is None:
        return None
    if isinstance(ledger, Ledger):
        return ledger.reserve(guarantee, what, proved=proved, drawn=True)
    if not isinstance(ledger, Reservation):
        raise TypeError(f"ledger must be a Ledger(path) or a Reservation of one, not a {type(ledger).__name__}")
    require_cover(ledger, guarantee, proved)
    ledger.take()
    return ledger


def require_cover(reservation: Reservation, guarantee: Guarantee, proved: bool) -> None:
    """Raises ValueError for a reservation of another guarantee, of public facts alone."""
    if (reserved := reservation.guarantee.unit) != guarantee.unit:
        raise ValueError(
            f"this reservation was made for a release that protects each {reserved}, and this one protects each "
            f"{guarantee.unit}: nothing was drawn, and the reservation can still be used"
        )
    if not (reservation.covers(guarantee) and (proved or not reservation.proved)):
        raise ValueError(
            "this reservation was made for another guarantee: reserve what the release costs, "
            "kngjax.certify(mechanism, X, y).cost, or its to_replace()"
        )
