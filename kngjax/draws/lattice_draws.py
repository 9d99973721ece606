"""Mechanisms drawn on a public lattice, in whole numbers, with every rounding in the proof."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.representation import describe
from kngjax.data.schema import Schema
from kngjax.draws.base import ON_REQUEST, TOO_MANY, AbstractDraw
from kngjax.draws.lattice.lattice import Lattice, Prepared
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.sensitivity.in_fractions import kind_of

RECORDS_LIMITED = (
    "of a quantile loss under add_remove there are at most max_records records: a release of more fails, and that it "
    "failed is not covered",
)
REASON = "Chosen because its proof covers every rounding."


@dataclasses.dataclass(frozen=True)
class LatticeDraw(AbstractDraw):
    """Draws θ on a lattice. **Arguments:** `lattice`: its settings, none of them left open. `reason`: why it serves."""

    mechanism: AbstractMechanism
    lattice: Lattice
    reason: str

    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (AbstractMechanism,)

    @classmethod
    def of(cls, mechanism: AbstractMechanism, facts: Schema) -> "LatticeDraw | None":
        """Plans the draw; None where nothing is drawn on a lattice."""
        try:
            return cls(mechanism, Lattice().resolve(mechanism, facts.dimension, facts.num_records), REASON)
        except (ValueError, OverflowError):
            return None

    @classmethod
    def requested(cls, mechanism: AbstractMechanism, lattice: Lattice, facts: Schema) -> "LatticeDraw":
        """Plans the draw by these settings. Raises ValueError or OverflowError for what they cannot draw."""
        return cls(mechanism, lattice.resolve(mechanism, facts.dimension, facts.num_records), ON_REQUEST)

    @property
    def settings(self) -> dict[str, Any]:
        return describe(self.lattice)

    @property
    def method(self) -> str:
        return self.reason

    @property
    def duration(self) -> str:
        return (
            "up to a second, and some with four coefficients; minutes or longer where one response in two is the same"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return RECORDS_LIMITED if self.lattice.max_records is not None else ()

    @property
    def proofs(self) -> tuple[str, ...]:
        return ("lattice", "check-scores") if kind_of(self.mechanism.loss) == "check" else ("lattice",)

    @property
    def failures(self) -> tuple[str, ...]:
        return TOO_MANY if self.lattice.max_records is not None else ()

    def prepare(self, X: Any, y: Any) -> Prepared:
        return self.lattice.prepare(self.mechanism, X, y)

    def draw_all_alone(
        self, data: Prepared, bits: Bits, progress: bool | None = False
    ) -> Float[np.ndarray, " dimension"]:
        """Draws without holding other threads up: an envelope takes long, and its records are read by several threads.

        Whatever is decided in balls sets their digits by itself.
        """
        return self.draw(data, bits)

    def draw(self, data: Prepared, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.lattice.draw(self.mechanism, data, bits)
