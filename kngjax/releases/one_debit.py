"""Several releases that one debit pays for."""

import functools
import json
from collections.abc import Callable
from typing import Any, TypeVar

from kngjax.accounting.guarantees import Guarantee
from kngjax.core import arithmetic, side_doors
from kngjax.core.errors import holding_no_records, run_hiding_errors, run_telling_refusals
from kngjax.data.admission import Facts
from kngjax.ledger.book import LedgerError
from kngjax.ledger.ledgers import Ledger, Reservation
from kngjax.releases.debits import reserve_cost
from kngjax.releases.plans import AbstractDrawing
from kngjax.releases.release import Release

Drawing = TypeVar("Drawing", bound=AbstractDrawing)


@holding_no_records
def release_by_one_debit(
    draw: Callable[[], list[Release]],
    owed: Callable[[list[Release] | None], tuple[Guarantee, bool]],
    ledger: Ledger | Reservation | None,
    what: Any,
) -> list[Release]:
    """Releases that are drawn after one debit of what all of them cost together.

    The debit is made before a value is looked at, and drawn from once. The ledger keeps all releases at once, as one
    list, before anybody sees one. If one of them fails, nothing is released and the debit stays.

    **Arguments:** `draw`: makes them; whatever it raises is `kngjax.ReleaseFailed`. `owed`: what a ledger debits for
    them, and whether that is proved; of what was drawn, or beforehand, of None. `ledger`: or a reservation of that,
    made beforehand. `what`: a public description for the ledger. Raises as `kngjax.release`.
    """
    side_doors.refuse()
    arithmetic.require_right()
    together, proved = owed(None)
    # Drawn from at once, so that no other release can be paid for by it meanwhile.
    debit = ledger.reserve(together, what, proved=proved) if isinstance(ledger, Ledger) else ledger
    reservation = reserve_cost(debit, together, proved, what)
    drawn, refusal = run_hiding_errors(draw)
    if refusal is not None:
        raise refusal
    if owed(drawn) != (together, proved):
        raise LedgerError("the releases cost another guarantee than was reserved: nothing is released")
    if reservation is not None:
        every = [json.loads(one.to_json()) for one in drawn]
        exact = all(one.certificate.exact for one in drawn)
        reservation.commit(json.dumps(every, sort_keys=True, allow_nan=False), exact=exact)
    return drawn


@holding_no_records
def release_of_records(
    admit: Callable[[Any, Any], Facts],
    drawing_of: Callable[[Facts], Drawing],
    X: Any,
    y: Any,
    ledger: Ledger | Reservation | None,
    what: Any,
    progress: bool | None,
) -> tuple[Drawing, list[Release]]:
    """Draws what a plan asks of its records by one debit, and says how; no traceback of a refusal holds the records.

    **Arguments:** `admit`: looks at types and shapes of X and y alone. `drawing_of`: every setting of the releases, of
    these public facts; raises ValueError for what they refuse. `ledger`, `what`: as of `release_by_one_debit`.
    `progress`: whether a bar shows how far a draw is. Raises as `kngjax.release`.
    """
    facts, refusal = run_telling_refusals(functools.partial(admit, X, y))
    if refusal is not None:
        raise refusal
    drawing = drawing_of(facts)
    drawing.check(X, y)
    certificates = drawing.certify(facts)
    released = release_by_one_debit(
        functools.partial(drawing.draw, X, y, progress),
        lambda drawn: drawing.owed(certificates if drawn is None else [one.certificate for one in drawn]),
        ledger,
        what,
    )
    return drawing, released
