"""The moments of linear regression plus Gaussian noise, with every rounding in their proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.core.compiling import Compiled
from kngjax.data.exact_sums import Exact, ExactSums
from kngjax.data.public_units import PublicUnits
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.eigenvalues import nearest_multiple
from kngjax.draws.noisy_matrices import NoisyTriangle
from kngjax.draws.noisy_sums import NoisyNumbers, certified_shift_squared
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.ada_ssp import AdaSSP
from kngjax.sensitivity.moments_in_fractions import (
    SquaredRadii,
    eigenvalue_step,
    rounded_eigenvalue_change,
    squared_moment_changes,
)


@dataclasses.dataclass(frozen=True)
class NoisyMoments(AbstractDraw):
    """The moments of `AdaSSP` plus noise, each on a grid, and the ridge regression that they give in float64.

    Records in public units are fractions, (x_j - m_j)/h_j of float64 numbers, and so are X'X and X'y. λ_min(X'X) is
    not, so it is replaced by the nearest multiple of r, whose sensitivity is r⌈X²/r⌉, hardly more than X².
    With Δ_j² the squared sensitivities and w_j shares that add up to 1 exactly, noise of variances Δ_j²/(s²w_j) hides
    s deviations of all three parts: as in `AdaSSP`, and balls certify s. Off the diagonal of X'X the variance is half
    of that on it, and each entry is drawn once.

    Each noisy number is rounded to its grid, and that is all that the proof is about. What follows is a function of
    these numbers and of public ones. So a release publishes them too, in public units: `least_eigenvalue`, `moment` and
    `gram`, of which the estimate says nothing that they do not.

    **Arguments:** `units`: m and h. `step`: r. `least`, `moment`, `matrix`: the noise on λ_min, X'y and X'X. All
    public.
    """

    mechanism: AdaSSP
    units: PublicUnits
    step: Fraction
    least: NoisyNumbers
    moment: NoisyNumbers
    matrix: NoisyTriangle
    takes_weights: ClassVar[bool] = True
    serves: ClassVar[tuple[type, ...]] = (AdaSSP,)
    rounding: ClassVar[str] = (
        "Noisy moments are computed in balls that contain them, and each is rounded once, "
        "to the nearest multiple of a public power of two, as real arithmetic would round it; what is made of them "
        "is a function of these multiples, which are published with it."
    )

    @classmethod
    def of(cls, mechanism: AdaSSP, facts: Schema) -> "NoisyMoments | None":
        """Calibrates the noise on AdaSSP's moments for d coefficients; None without a proof, as with a hull."""
        dimension = facts.dimension
        units = mechanism.public_units(dimension)
        shift_squared = certified_shift_squared(mechanism.guarantee)
        radii = SquaredRadii.of(mechanism.bounds, dimension, units)
        if shift_squared is None or radii is None:
            return None
        step = eigenvalue_step(radii)
        matrix, moment = squared_moment_changes(radii, mechanism.adjacency)
        squares = (rounded_eigenvalue_change(radii, step) ** 2, moment, matrix)
        shares = [Fraction(share) for share in np.asarray(mechanism.shares, np.float64).tolist()]
        on_least, on_moment, on_matrix = (
            square * sum(shares) / (shift_squared * share) for square, share in zip(squares, shares, strict=True)
        )
        least = NoisyNumbers.of("gaussian", on_least, 1)
        moment = NoisyNumbers.of("gaussian", on_moment, dimension)
        matrix = NoisyTriangle.of("gaussian", on_matrix, dimension)
        if least is None or moment is None or matrix is None:
            return None
        return cls(mechanism, units, step, least, moment, matrix)

    @property
    def settings(self) -> dict[str, Any]:
        """Returns the exponents of the grids of λ_min, X'y, the diagonal of X'X and, if any, its other entries."""
        exponents = [part.grid.exponents[0] for part in (self.least, self.moment)]
        return {"type": "Direct", "grid_exponents": exponents + self.matrix.exponents}

    @property
    def published(self) -> dict[str, tuple[int, ...]]:
        dimension = len(np.asarray(self.units.middles))
        return {"least_eigenvalue": (), "moment": (dimension,), "gram": (dimension, dimension)}

    def draw(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " dimension"]:
        return self.draw_all(data, bits)[: data.dimension]

    def draw_all(self, data: ExactSums, bits: Bits) -> Float[np.ndarray, " numbers"]:
        least, moment, matrix = self.noisy_moments(data, bits)
        with float64():
            theta = np.array(_estimate(self.mechanism, least, moment, matrix))
        return np.concatenate([theta, least[None], moment, matrix.ravel()])

    def noisy_moments(
        self, data: ExactSums, bits: Bits
    ) -> tuple[Float[np.ndarray, ""], Float[np.ndarray, " dimension"], Float[np.ndarray, "dimension dimension"]]:
        """λ_min, X'y and X'X with their noise: what the guarantee is of. **Arguments:** as of `draw`."""
        least, moment, matrix = self.moments(data)
        return (
            np.asarray(self.least.draw([least], bits)[0]),
            self.moment.draw(moment, bits),
            self.matrix.draw(matrix, bits),
        )

    def moments(self, data: ExactSums) -> tuple[Fraction, Exact, Exact]:
        """λ_min, rounded, X'y and X'X, in public units and without noise. Private."""
        sums = self.units.sums(data)
        return self.step * nearest_multiple(sums.gram, self.step), sums.moment, sums.gram


@Compiled
def _estimate(mechanism: Any, least: Any, moment: Any, matrix: Any) -> Any:
    return mechanism.estimate(least, moment, matrix)
