"""How all curves of a quantile process are drawn and certified, by halving."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core import arithmetic
from kngjax.data.admission import Facts
from kngjax.mechanisms.kng import KNG
from kngjax.releases.certificate import EXACT_ARITHMETIC, TOO_MANY, Certificate
from kngjax.releases.curves.halving import Halving
from kngjax.releases.debits import owed
from kngjax.releases.plans import AbstractDrawing
from kngjax.releases.release import Release
from kngjax.releases.routes.lattice import RECORDS_LIMITED

_REASON = (
    "Every curve is an exact draw on a lattice, of the records between the curves that were drawn before, on the part "
    "of the domain where it lies between them. No draw is given up."
)


@dataclasses.dataclass(frozen=True, eq=False)
class DrawingOfCurves(AbstractDrawing):
    """How all curves are drawn, with every setting. All of it is public.

    **Arguments:** `levels`: τ. `settings`: of the plan, JSON-ready. `made`: what follows from the plan and public
    facts.
    """

    levels: tuple[float, ...]
    settings: dict[str, Any]
    made: Halving

    @property
    def mechanism(self) -> KNG:
        """Returns KNG of the first curve, of which all records are."""
        return self.made.first

    @property
    def laws(self) -> list[Guarantee]:
        """States what a draw from exactly its law costs."""
        return [self.made.guarantee]

    def stand_ins(self) -> list[KNG]:
        """For previews, of each level KNG of all records that has the noise of its curve."""
        return self.made.stand_ins(self.levels)

    def check(self, X: Any, y: Any) -> None:
        """Takes all that is admitted."""

    def certify(self, facts: Facts) -> list[Certificate]:
        made = self.made
        is_limited = made.first.adjacency is not Adjacency.REPLACE
        certificate = Certificate.of(
            made.first,
            facts,
            made.sampler(self.levels),
            _REASON,
            is_rounded=False,
            assumptions=(*EXACT_ARITHMETIC, *(RECORDS_LIMITED if is_limited else ())),
            failures=TOO_MANY if is_limited else (),
        )
        public = {"mechanism": self.settings, "guarantee": made.guarantee, "sensitivity": made.sensitivity}
        return [dataclasses.replace(certificate, **public)]

    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        [only] = certificates
        return owed(only)

    def draw(self, X: Any, y: Any, progress: bool | None) -> list[Release]:
        """Draws once with the operating system's randomness. Private until it is kept."""
        [certificate] = self.certify(self.mechanism.intake.check_schema(X, y))
        numbers = self.made.draw(self.made.prepare(X, y)).reshape(-1)
        # A library may have changed the arithmetic since it was tried: then nobody knows what was drawn.
        if arithmetic.broken():
            raise RuntimeError("the arithmetic that proofs rest on was changed during the draw")
        return [Release._of(numbers, certificate)]
