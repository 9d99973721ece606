"""How all curves of a quantile process are drawn and certified, by whichever order."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core import arithmetic
from kngjax.core.arrays import float64
from kngjax.core.randomness import secure_key
from kngjax.data.admission import Facts
from kngjax.mechanisms.kng import KNG
from kngjax.releases.certificate import (
    EXACT_ARITHMETIC,
    IN_FLOAT64,
    TOO_MANY,
    UNPROVED_OF_CHAINS,
    UNPROVED_OF_CONVERGENCE,
    Certificate,
    describe,
)
from kngjax.releases.curves.halving import Halving
from kngjax.releases.curves.joint import Joint
from kngjax.releases.curves.location_scale import LocationScale
from kngjax.releases.debits import owed
from kngjax.releases.plans import AbstractDrawing
from kngjax.releases.release import Release
from kngjax.releases.routes.base import ON_REQUEST
from kngjax.releases.routes.lattice import RECORDS_LIMITED
from kngjax.samplers.exact.exact import Exact
from kngjax.samplers.promises import EXACT, NONE


@dataclasses.dataclass(frozen=True, eq=False)
class DrawingOfCurves(AbstractDrawing):
    """How all curves are drawn, with every setting. All of it is public.

    **Arguments:** `levels`: τ. `settings`: of the plan, JSON-ready. `made`: what follows from the plan and public
    facts. `sampler`: of a joint draw; None of others.
    """

    levels: tuple[float, ...]
    settings: dict[str, Any]
    made: Halving | Joint | LocationScale
    sampler: Any = None

    @property
    def mechanism(self) -> KNG:
        """Of the first curve, of all records."""
        return self.made.first

    @property
    def laws(self) -> list[Guarantee]:
        """What a draw from exactly its law costs."""
        return [self.made.guarantee]

    def stand_ins(self) -> list[KNG]:
        """For previews, of each level KNG of all records that has the noise of its curve.

        Raises ValueError for curves of other orders, of which no previews are made.
        """
        if not isinstance(self.made, Halving):
            raise ValueError("previews are of curves by halving, and these are of another order")
        return self.made.stand_ins(self.levels)

    def check(self, X: Any, y: Any) -> None:
        """Takes all that is admitted."""

    def certify(self, facts: Facts) -> list[Certificate]:
        made = self.made
        certificate = self._jointly(made, facts) if isinstance(made, Joint) else self._on_lattices(made, facts)
        return [
            dataclasses.replace(
                certificate, mechanism=self.settings, guarantee=made.guarantee, sensitivity=made.sensitivity
            )
        ]

    def owed(self, certificates: Sequence[Certificate]) -> tuple[Guarantee, bool]:
        [only] = certificates
        return owed(only)

    def draw(self, X: Any, y: Any, progress: bool | None) -> list[Release]:
        """One draw by the operating system's randomness. Private until it is kept."""
        [certificate] = self.certify(self.mechanism.admit(X, y))
        if isinstance(self.made, Joint):
            with float64():
                numbers = self.made.draw(self.made.prepare(X, y), self.sampler, secure_key(), progress)
        else:
            numbers = self.made.draw(self.made.prepare(X, y)).reshape(-1)
        # A library may have changed the arithmetic since it was tried: then nobody knows what was drawn.
        if arithmetic.broken():
            raise RuntimeError("the arithmetic that proofs rest on was changed during the draw")
        if certificate.rounding is None:
            return [Release._of(numbers, certificate)]
        if not np.all(np.isfinite(numbers)):
            raise RuntimeError("the draw is not a number and is not released")
        numbers = certificate.rounding(numbers)
        value, totals = np.split(numbers, [len(numbers) - self.made.dimension])
        return [Release._of(value, certificate, published={"totals": totals})]

    def _on_lattices(self, made: Halving | LocationScale, facts: Facts) -> Certificate:
        is_limited = made.first.adjacency is not Adjacency.REPLACE
        return Certificate.of(
            made.first,
            facts,
            made.sampler(self.levels),
            made.reason,
            is_rounded=False,
            assumptions=(*EXACT_ARITHMETIC, *(RECORDS_LIMITED if is_limited else ())),
            failures=TOO_MANY if is_limited else (),
        )

    def _jointly(self, made: Joint, facts: Facts) -> Certificate:
        is_exact = isinstance(self.sampler, Exact)
        unproved = () if is_exact else (UNPROVED_OF_CHAINS[0], *self.sampler.unproved, *UNPROVED_OF_CONVERGENCE)
        certificate = Certificate.of(
            made.first,
            facts,
            {**describe(self.sampler), "published": ["totals"]},
            ON_REQUEST,
            promise=EXACT if is_exact else NONE,
            assumptions=(*IN_FLOAT64, *self.sampler.assumptions),
            failures=self.sampler.failures,
            unproved=unproved,
        )
        return dataclasses.replace(certificate, rounding=made.rounding(facts.num_records))
