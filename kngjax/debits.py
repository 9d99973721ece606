"""Where a release meets a ledger: its cost is reserved before the data are touched, and committed at the end."""

import json
from typing import Any

from kngjax.accounting.guarantees import Guarantee
from kngjax.certificate import Certificate, describe
from kngjax.ledger import Ledger, LedgerError, Reservation
from kngjax.mechanisms import AbstractMechanism
from kngjax.shards import Shards


def cost(mechanism: AbstractMechanism) -> Guarantee:
    """The guarantee of one draw, from public settings alone.

    Raises ValueError where it depends on the number of columns and scalar bounds leave that open.
    """
    return mechanism.guarantee if mechanism.dimension is None else mechanism.guarantee_for(mechanism.dimension)


def settings(mechanism: AbstractMechanism) -> Any:
    """All public settings of a mechanism, JSON-ready; infinities as words."""
    return in_json(describe(mechanism))


def in_json(described: Any) -> Any:
    """What `describe` makes of a part, with infinities as words."""
    return json.loads(json.dumps(described), parse_constant=str)


def reserve(ledger: Ledger | Reservation | None, certificate: Certificate, X: Any) -> Reservation | None:
    """What the release of this certificate costs, spent; None without a ledger.

    **Arguments:** `ledger`: or a reservation made beforehand, for this very guarantee or its `to_replace()`. Of
    processes that share `X`, the first one's counts.

    Raises as `Ledger.reserve`; TypeError for what is no ledger, ValueError for a reservation of another guarantee.
    """

    def own() -> Reservation | None:
        if isinstance(ledger, Ledger):
            return ledger.reserve(certificate.guarantee, in_json(certificate.mechanism))
        if ledger is None:
            return None
        if not isinstance(ledger, Reservation):
            raise TypeError(f"ledger must be a Ledger(path) or a Reservation of one, not a {type(ledger).__name__}")
        if not ledger.covers(certificate.guarantee):
            raise ValueError(
                "this reservation was made for another guarantee: reserve mechanism.guarantee, or its to_replace()"
            )
        ledger.check_unused()
        return ledger

    return X.on_first(own) if isinstance(X, Shards) else own()


def commit(reservation: Reservation | None, certificate: Certificate, released: str, X: Any) -> None:
    """Say that a reservation led to this release, on the disk before anybody sees it.

    **Arguments:** `certificate`: its own. `released`: its canonical JSON, which the ledger keeps.

    Raises LedgerError where that cannot be said, and the release must not be returned.
    """

    def own() -> None:
        if reservation is None:
            return
        if not reservation.covers(certificate.guarantee):
            raise LedgerError("the release costs another guarantee than was reserved: nothing is released")
        reservation.commit(released, exact=certificate.exact)

    if isinstance(X, Shards):
        X.on_first(own)
    else:
        own()
