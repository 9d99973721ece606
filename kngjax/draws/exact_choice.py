"""Private choices by the exponential mechanism, with every rounding in the proof."""

import dataclasses
import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly
from kngjax.core.balls import ball_of
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.uniforms import Bits, chosen
from kngjax.mechanisms.private_choice import PrivateChoice
from kngjax.sensitivity import loss_changes

# Losses are whole multiples of 2^-20, each rounded by itself.
_DIGITS = 20


@dataclasses.dataclass(frozen=True)
class ExactChoice(AbstractDraw):
    """A choice as real arithmetic makes it, of losses that are whole numbers."""

    mechanism: PrivateChoice
    grid: None = None
    serves: ClassVar[tuple[type, ...]] = (PrivateChoice,)

    @classmethod
    def of(cls, mechanism: PrivateChoice, facts: Schema) -> "ExactChoice":
        """Returns the draw, which serves every choice."""
        return cls(mechanism)

    @property
    def settings(self) -> dict[str, Any]:
        return {"type": "Direct", "digits_of_losses": _DIGITS}

    @property
    def method(self) -> str:
        return (
            f"Each loss is rounded by itself to a multiple of 2^-{_DIGITS}, and they are added up as whole numbers. A "
            "uniform number is drawn to as many bits as tell which candidate it chooses, by balls that contain the "
            "probabilities."
        )

    def prepare(self, X: Any, y: Any) -> list[int]:
        """Returns the sum of each candidate's losses, in units of 2^-20."""
        losses = self.mechanism.intake.records(X, y).x
        return np.rint(np.asarray(losses) * 2.0**_DIGITS).astype(np.int64).sum(axis=0).tolist()

    def draw(self, data: Sequence[int], bits: Bits) -> Float[np.ndarray, " dimension"]:
        epsilon = exactly(float(self.mechanism.epsilon))
        chosen = choose(data, loss_changes.choice_rate(epsilon, self.mechanism.adjacency) / 2**_DIGITS, bits)
        return np.eye(len(data))[chosen]


def choose(sums: Sequence[int], rate: Fraction, bits: Bits) -> int:
    """k with P(k) ∝ exp(-rate·sums_k), as real arithmetic chooses."""
    least = min(sums)

    def cumulated(digits: int) -> list[arb]:
        return list(itertools.accumulate(ball_of(-rate * (total - least)).exp() for total in sums))

    return chosen(cumulated, bits)
