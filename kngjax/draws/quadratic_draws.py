"""KNG with a quadratic loss, drawn with every rounding in its proof."""

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid
from kngjax.draws.quadratic.bodies import AbstractBody, body_of
from kngjax.draws.quadratic.choices import Choice, draw_quadratic
from kngjax.draws.quadratic.envelopes import QuadraticEnvelope, QuadraticLaw
from kngjax.draws.uniforms import Bits
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.kng import KNG
from kngjax.sensitivity.change_sets import LARGEST_NUMBER, number_of_points
from kngjax.sensitivity.in_fractions import Ranges, change_vectors
from kngjax.sensitivity.record_facts import gradient_noise


@dataclasses.dataclass(frozen=True)
class QuadraticDraw(AbstractDraw):
    """θ with density ∝ exp(-(ε/2Δ)·‖Aθ - b‖) on Θ, rounded once to a grid 2^40 times finer than Θ, and into Θ.

    A and b are exact sums over the records, ε is the decimal number that it prints as, and Δ is a fraction. A draw ends
    with probability 1 for all data. It takes a proposal or two where noise about A^{-1}b stays in Θ; some dozens where
    Θ binds, or A is small in some directions; most where noise is about as wide as Θ in a dozen directions or more.

    **Arguments:** `noise`: of Aθ - b. `body`: Θ. `grid`: what θ is rounded to.
    """

    mechanism: AbstractDensityMechanism
    noise: ScaledNorm
    body: AbstractBody
    grid: Grid

    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (KNG,)
    kind: ClassVar[str] = "QuadraticDraw"
    rounding: ClassVar[str] = (
        "An exact draw by rejection, of which every decision is taken in balls that contain the numbers, rounded "
        "once, to a multiple of a public power of two next to it in the domain, as real arithmetic would round it."
    )

    @classmethod
    def of(cls, mechanism: KNG, facts: Schema) -> "QuadraticDraw | None":
        """Plans the draw for KNG with one sensitivity; None where Θ, the bounds or the norm are not of fractions."""
        noise, shape = noise_of(mechanism, facts.dimension), mechanism.domain.exact_shape(facts.dimension)
        if noise is None or shape is None or not noise.is_everywhere:
            return None
        body = body_of(shape)
        return cls(mechanism, noise, body, body.grid())

    @property
    def duration(self) -> str:
        return (
            "milliseconds where the domain holds the estimate and noise about it; else seconds with up to a dozen "
            "coefficients, and minutes or longer with 50"
        )

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        law = self.law(data)
        return self.grid.values(draw_quadratic(law, self.grid, bits, self.envelopes(law)))

    def law(self, data: ExactSums) -> QuadraticLaw:
        """Builds the law of θ for the sums of these records. Private."""
        gram = [[Fraction(number) for number in row] for row in data.gram.tolist()]
        return QuadraticLaw(gram, [Fraction(number) for number in data.moment.tolist()], self.noise, self.body)

    def envelopes(self, law: QuadraticLaw) -> Iterator[QuadraticEnvelope]:
        """Yields envelopes, which proposals are drawn from, one after another and without end. Private."""
        return Choice(law).envelopes()


def noise_of(mechanism: AbstractDensityMechanism, dimension: int) -> ScaledNorm | None:
    """2Δ/ε in the norm of KNG with a quadratic loss, without rounding; None where that has no such form.

    For the default norm, Δ = 1, with the most that each coordinate of a gradient changes by as weights. For others Δ is
    the largest norm of `change_vectors`; where their hull has too many points to list, as in what float64 computes and
    certificates say, that of the box around it.
    """
    loss, bounds, shape = mechanism.loss, mechanism.bounds, mechanism.domain.exact_shape(dimension)
    if not loss.is_quadratic or loss.whole_score is None or mechanism.exponent.is_pointwise or bounds.hull is not None:
        return None
    if shape is None or mechanism.exponent.scored_by != "gradient":
        return None
    rate = exactly(float(mechanism.epsilon)) / 2
    vectors = change_vectors(loss, Ranges.of(bounds, shape), mechanism.adjacency)
    if number_of_points(bounds.feature_blocks(dimension), mechanism.adjacency) > LARGEST_NUMBER:
        vectors = [[max(sizes) for sizes in zip(*vectors, strict=True)]]
    return gradient_noise(vectors, mechanism.exponent.given_norm, rate)
