"""Collects the public facts that draws of KNG with losses of x'θ on a grid need, whatever their envelope."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from kngjax.accounting.exact_costs import exactly
from kngjax.data.schema import Schema
from kngjax.draws.quadratic.bodies import AbstractBody, body_of
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.sensitivity.record_facts import RecordFacts, gradient_noise


class SmoothFacts(NamedTuple):
    """Holds the public facts of KNG with a loss of x'θ that proved draws rest on.

    **Arguments:** `loss`: ρ. `known`: what is proved of one record. `noise`: with density ∝ exp(-(ε/2Δ)·‖z‖), where ε
    is the decimal number that it prints as, and Δ is a fraction. `body`, `shape`: Θ.
    """

    loss: AbstractPredictorLoss
    known: RecordFacts
    noise: ScaledNorm
    body: AbstractBody
    shape: Shape

    @classmethod
    def of(cls, mechanism: AbstractDensityMechanism, facts: Schema) -> "SmoothFacts | None":
        """Collects the facts for KNG with one sensitivity; None where Θ, bounds, norm or loss are not verified."""
        loss, dimension = mechanism.loss, facts.dimension
        if (
            not isinstance(loss, AbstractPredictorLoss)
            or loss.is_quadratic
            or mechanism.exponent.scored_by != "gradient"
        ):
            return None
        if mechanism.exponent.is_pointwise:
            return None
        shape = mechanism.domain.exact_shape(dimension)
        if shape is None:
            return None
        known = RecordFacts.of(loss, mechanism.bounds, mechanism.domain, dimension)
        if known is None:
            return None
        noise = gradient_noise(
            known.changes(mechanism.adjacency), mechanism.exponent.given_norm, exactly(float(mechanism.epsilon)) / 2
        )
        if noise is None or not noise.is_everywhere:
            return None
        return cls(loss, known, noise, body_of(shape), shape)

    @property
    def sizes(self) -> list[Fraction]:
        """max|x_j| of each feature within the bounds."""
        return [max(abs(low), abs(high)) for low, high in self.known.features]

    def are_moderate(self, power: int, others: Iterable[float | Fraction] = ()) -> bool:
        """Tells whether all public numbers but 0, and these others, lie within 2^±power.

        So that float64 neither overflows nor loses digits.
        """
        sides = [max(abs(low), abs(high)) for low, high in self.shape.sides]
        numbers = [*self.noise.scales.tolist(), *self.sizes, *sides, *self.shape.half_widths]
        smallest, largest = Fraction(2) ** -power, Fraction(2) ** power
        return all(smallest < number < largest for number in [*numbers, self.known.curvature, *others] if number)
