"""Plans the draw of all curves of a quantile process, by halving, with one certificate."""

import dataclasses
import functools
from typing import Any

from kngjax.accounting.guarantees import Adjacency
from kngjax.core import arithmetic
from kngjax.data.passes import Passes
from kngjax.data.schema import Schema
from kngjax.draws.lattice_draws import LatticeDraw
from kngjax.releases.certificate import Certificate
from kngjax.releases.curves.halving import Halving
from kngjax.releases.curves.quantile_curves import QuantileCurves
from kngjax.releases.debits import owed
from kngjax.releases.plan import Plan
from kngjax.releases.release import Release

_REASON = (
    "Every curve is an exact draw on a lattice, of the records between the curves that were drawn before, on the part "
    "of the domain where it lies between them. No draw is given up."
)


def plan_of(halving: Halving, settings: dict[str, Any], facts: Schema) -> Plan:
    """Plans all curves. **Arguments:** `settings`: of the process, JSON-ready. `facts`: of the records."""
    first = halving.first
    # Under replace their number is public, and nothing is limited.
    limit = None if first.adjacency is Adjacency.REPLACE else halving.most
    draw = LatticeDraw(first, dataclasses.replace(halving.settings, max_records=limit), _REASON)
    of_first = Certificate.of(draw, facts)
    certificate = dataclasses.replace(
        of_first,
        mechanism=settings,
        sampler=halving.sampler(settings["levels"]),
        guarantee=halving.guarantee,
        sensitivity=halving.sensitivity,
        proofs=("docs/proofs/halving.md", *of_first.proofs),
    )
    drawing = functools.partial(_drawn, halving, certificate)
    return Plan((certificate,), *owed(certificate), drawing, lambda releases: [QuantileCurves(*releases)])


def _drawn(halving: Halving, certificate: Certificate, records: tuple[Any, Any], _: bool | None) -> list[Release]:
    X, y = records
    X = X.held(certificate.num_records) if isinstance(X, Passes) else X
    numbers = halving.draw(halving.prepare(X, y)).reshape(-1)
    # A library may have changed the arithmetic since it was tried: then nobody knows what was drawn.
    if arithmetic.broken():
        raise RuntimeError("the arithmetic that proofs rest on was changed during the draw")
    return [Release._of(numbers, certificate)]
