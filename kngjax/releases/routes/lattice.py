"""The lattice route: a draw on a public lattice, with every rounding in its proof."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.data.admission import Facts
from kngjax.data.exact_sums import ExactSums
from kngjax.data.records import Records
from kngjax.draws.lattice.lattice import Lattice
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.releases.certificate import EXACT_ARITHMETIC, TOO_MANY, Certificate, describe
from kngjax.releases.routes.base import ON_REQUEST, AbstractRoute

RECORDS_LIMITED = (
    "of a quantile loss under add_remove there are at most max_records records: a release of more fails, and that it "
    "failed is not covered",
)
TAKES_SECONDS = (
    "Chosen because its proof covers every rounding. It takes seconds (under add_remove, quantile losses: up to about "
    "10^5 records)."
)


@dataclasses.dataclass(frozen=True)
class LatticeRoute(AbstractRoute):
    """Draws once on a lattice.

    **Arguments:** `mechanism`, `facts`: as for `AbstractRoute.admits`. `settings`: of the lattice, none of them left
    open. `reason`: why it is taken.
    """

    mechanism: AbstractMechanism
    facts: Facts
    settings: Lattice
    reason: str

    requests: ClassVar[type | None] = Lattice

    @classmethod
    def admits(cls, mechanism: AbstractMechanism, sampler: Any, facts: Facts) -> "LatticeRoute | None":
        if not isinstance(sampler, Lattice | None):
            return None
        if sampler is None:
            return cls._by_default(mechanism, facts)
        if not _has_records(mechanism, facts):
            raise TypeError(
                "of a stream or shards Lattice draws quadratic losses alone: give X and y as arrays or frames, or ask "
                "for Exact()"
            )
        return cls(mechanism, facts, sampler.resolve(mechanism, facts.dimension, facts.num_records), ON_REQUEST)

    @classmethod
    def _by_default(cls, mechanism: AbstractMechanism, facts: Facts) -> "LatticeRoute | None":
        """This route where it serves and takes seconds."""
        if not _has_records(mechanism, facts):
            return None
        settings = Lattice()
        try:
            if settings.takes_seconds(mechanism, facts.dimension, facts.num_records):
                settings = settings.resolve(mechanism, facts.dimension, facts.num_records)
                return cls(mechanism, facts, settings, TAKES_SECONDS)
        except (ValueError, OverflowError):
            pass
        return None

    def certify(self) -> Certificate:
        is_limited = self.settings.max_records is not None
        return Certificate.of(
            self.mechanism,
            self.facts,
            describe(self.settings),
            self.reason,
            is_rounded=False,
            assumptions=(*EXACT_ARITHMETIC, *(RECORDS_LIMITED if is_limited else ())),
            failures=TOO_MANY if is_limited else (),
        )

    def prepare(self, X: Any, y: Any) -> Records | ExactSums:
        return self.settings.prepare(self.mechanism, X, y)

    def draw(self, data: Records | ExactSums, progress: bool | None) -> Float[np.ndarray, " dimension"]:
        return self.settings.draw(self.mechanism, data)


def _has_records(mechanism: AbstractMechanism, facts: Facts) -> bool:
    """Whether the records come in a form that a lattice can take: those of quadratic losses may be sums."""
    return facts.are_in_memory or mechanism.loss.is_quadratic
