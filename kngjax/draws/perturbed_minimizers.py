"""Objective perturbation with every rounding in its proof: exact minimisers for exact noise, rounded once.

The proof of `kngjax.mechanisms.objective_perturbation` is one of real arithmetic: b ↦ θ is a function, and what is
released is the cell of a public grid that θ lies in. A centre c of the ridge is a fraction, as every float64 is, and
enters as b - γc in place of b. That cell is decided in balls: of b, as wide as the digits of it
that are known; and of θ, for this b. So no search ever ends short of the minimiser, whatever the loss.
"""

import abc
import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from flint import arb, arb_mat
from jaxtyping import Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.core.balls import ball_of, precision
from kngjax.core.compiling import Compiled
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.grid_cells import Grid, cell_of
from kngjax.draws.minima.objectives_by_passes import ObjectiveByPasses, objective_of
from kngjax.draws.minima.quadratic_minima import Place, minimum
from kngjax.draws.minima.smooth_objectives import Objective
from kngjax.draws.minima.verified_minima import CertifiedMinimizer
from kngjax.draws.noises import draw_noise
from kngjax.draws.uniforms import Bits
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.losses.verified_scores import AbstractVerifiedScore, fraction_of, number
from kngjax.mechanisms.objective_perturbation import ObjectivePerturbation
from kngjax.sensitivity.record_facts import RecordFacts, gradient_noise

# Cells of losses whose minimisers have no closed form are so many binary digits finer than the noise of n records, or
# of 2^20 where n is not public: coarse enough that float64 tells nearly always which is which.
_DIGITS, _UNKNOWN = 4, 20
# Binary digits of γ.
_RIDGE_DIGITS = 128


class ObjectiveLaw(NamedTuple):
    """The law of b and the ridge, exactly. Public.

    **Arguments:** `noise`: of b, with density ∝ exp(-(qε/Δ)‖b‖). `ridge`: γ ≥ λ/(e^{(1-q)ε} - 1), of
    persons γ ≥ λ/((1-q)ε), above it by less than a part in 10³⁰. `curvature`: λ. `scores`: those of the loss that is
    minimised.
    """

    noise: ScaledNorm
    ridge: Fraction
    curvature: Fraction
    scores: AbstractVerifiedScore

    @classmethod
    def of(
        cls,
        loss: AbstractPredictorLoss,
        bounds: Bounds,
        domain: AbstractDomain | None,
        budget: tuple[Fraction, Fraction],
        adjacency: Adjacency,
        norm: AbstractNorm | None,
        dimension: int,
    ) -> "ObjectiveLaw | None":
        """Computes the law from public facts; None where Δ or λ is not known in fractions.

        **Arguments:** `budget`: ε and q.
        """
        facts = RecordFacts.of(loss, bounds, domain, dimension)
        if facts is None:
            return None
        epsilon, share = budget
        noise = gradient_noise(facts.changes(adjacency), norm, share * epsilon)
        curvature = facts.curvature * facts.largest_square
        if noise is None or not noise.is_everywhere or curvature <= 0:
            return None
        with precision(_RIDGE_DIGITS):
            left = ball_of((1 - share) * epsilon)
            ridge = ball_of(curvature) / (left if bounds.of_persons else left.expm1())
            least = ridge.upper()
        return cls(noise, fraction_of(least), curvature, facts.scores) if least.is_finite() else None

    def grid(self, digits: int | None) -> Grid | None:
        """Returns a grid finer, by 2^-digits, than the shift of θ by b where one record has the largest Hessian."""
        scale = 1 / (self.ridge + self.curvature) ** 2
        return Grid.for_noise(self.noise.scaled(scale), digits)


@dataclasses.dataclass(frozen=True)
class PerturbedMinimizer(AbstractDraw):
    """argmin J, J(θ) = ℓ_n(θ; D) + (γ/2)|θ - c|² + b'θ, rounded once. **Arguments:** `law`: of b. `grid`: what to."""

    mechanism: Any
    law: ObjectiveLaw
    grid: Grid
    serves: ClassVar[tuple[type, ...]] = (ObjectivePerturbation,)

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> "PerturbedMinimizer | None":
        """Returns the draw; None where Δ or λ is not known in fractions, and where float64 does not hold the grid."""
        law = ObjectiveLaw.of(
            mechanism.loss,
            mechanism.bounds,
            mechanism.domain,
            mechanism.exact_budget,
            mechanism.adjacency,
            mechanism.norm,
            facts.dimension,
        )
        if law is None:
            return None
        quadratic = mechanism.loss.is_quadratic
        more = _UNKNOWN if facts.num_records is None else facts.num_records.bit_length()
        grid = law.grid(None if quadratic else _DIGITS + more)
        if grid is None:
            return None
        return (QuadraticMinimum if quadratic else SmoothMinimum)(mechanism, law, grid)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ()

    def draw(self, data: Any, bits: Bits) -> Float[np.ndarray, " dimension"]:
        noise, search, pulls = self.law.noise, self.search(data), [self.law.ridge * c for c in self.centre]

        def places(standard: list[arb]) -> Sequence[Place] | None:
            tilt = [a * z - ball_of(pull) for a, z, pull in zip(noise.ball_scales, standard, pulls, strict=True)]
            return search.places(tilt) if all(number.is_finite() for number in tilt) else None

        value = self.grid.values(cell_of(self.grid, draw_noise(noise, bits).balls, places))
        domain = self.mechanism.domain
        if domain is None:
            return value
        with float64():
            return np.array(_projected(domain, value))

    @property
    def centre(self) -> list[Fraction]:
        """c, exactly."""
        centre = self.mechanism.centre
        if centre is None:
            return [Fraction(0)] * len(self.law.noise.weights)
        return [Fraction(one) for one in np.asarray(centre, np.float64).tolist()]

    @abc.abstractmethod
    def search(self, data: Any) -> "MinimizerSearch":
        """Prepares the search that finds θ for one draw of b. Private."""


class MinimizerSearch(Protocol):
    """Finds the minimiser for one b, ever more exactly. Private."""

    def places(self, tilt: Sequence[arb]) -> Sequence[Place] | None:
        """Balls that contain the minimiser for every b in these balls; None where they are not known well enough."""
        ...


@dataclasses.dataclass(frozen=True)
class QuadraticMinimum(PerturbedMinimizer):
    """Draws the minimiser of a quadratic loss over Θ, from exact sums."""

    takes_weights: ClassVar[bool] = True

    @property
    def method(self) -> str:
        return (
            "Exact K-norm noise in the objective, and its minimiser over the domain by the exact sums of the records. "
            "It is computed in balls that contain it, and rounded once, to the nearest multiple of a public power of "
            "two, as real arithmetic would round it."
        )

    def search(self, data: ExactSums) -> "QuadraticSearch":
        return QuadraticSearch(self.mechanism.domain, data, self.law.ridge)


class QuadraticSearch:
    """Finds the minimiser from X'X and X'y. Private."""

    def __init__(self, domain: AbstractDomain, sums: ExactSums, ridge: Fraction):
        self._domain, self._moment = domain, [Fraction(number) for number in sums.moment]
        self._matrix = [[Fraction(number) for number in row] for row in sums.gram]
        for j, row in enumerate(self._matrix):
            row[j] += ridge

    def places(self, tilt: Sequence[arb]) -> list[Place] | None:
        matrix = arb_mat([[ball_of(number) for number in row] for row in self._matrix])
        vector = [ball_of(number) - b for number, b in zip(self._moment, tilt, strict=True)]
        return minimum(self._domain, matrix, vector)


@dataclasses.dataclass(frozen=True)
class SmoothMinimum(PerturbedMinimizer):
    """Draws the minimiser of another loss over R^d by a search that is proved, and projects it onto Θ."""

    takes_weights: ClassVar[bool] = True

    @property
    def method(self) -> str:
        return (
            "Exact K-norm noise in the objective, and its minimiser, found by Newton's method. Balls that contain it "
            "are proved with every rounding, and refined until they tell to which multiple of a public power of two it "
            f"is rounded. What output_share = {number(self.mechanism.output_share):g} sets aside of epsilon for output "
            "noise is not spent: the minimiser has no error that such noise would have to hide."
        )

    def prepare(self, X: Any, y: Any) -> Objective | ObjectiveByPasses:
        with float64():
            return objective_of(self.mechanism, X, y, self.law.scores, self.law.ridge, self.law.curvature)

    def search(self, data: Objective | ObjectiveByPasses) -> CertifiedMinimizer:
        return CertifiedMinimizer(data, np.array([float(one) for one in self.centre]))


@Compiled
def _projected(domain, value):
    return jnp.asarray(domain.project(value))
