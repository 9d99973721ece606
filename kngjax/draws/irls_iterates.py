"""Private IRLS with every rounding in its proof."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.certain_budgets import is_kept
from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import float64
from kngjax.data.exact_sums import Exact
from kngjax.data.records import Records, WeightedRecords
from kngjax.data.schema import Schema
from kngjax.data.weighted_sums import RootWeights, WeightedRows
from kngjax.draws.base import AbstractDraw
from kngjax.draws.noisy_matrices import AbstractNoisyMatrix, NoisyByWishart, NoisyTriangle
from kngjax.draws.noisy_sums import NoisyNumbers
from kngjax.draws.uniforms import Bits
from kngjax.draws.wishart_in_balls import wishart_hides
from kngjax.mechanisms.irls import PrivateIRLS
from kngjax.mechanisms.noise.matrix_noise import repaired_solution, wishart_degrees
from kngjax.sensitivity.moments_in_fractions import (
    SquaredRadii,
    squared_absolute_moment_changes,
    squared_moment_changes,
)

# Wishart noise is larger than float64 has it by this part: more than what rows within rounded sizes may exceed theirs.
_ROOM = Fraction(1, 2**32)


@dataclasses.dataclass(frozen=True)
class IteratesOnGrid(AbstractDraw):
    """Iterates of weighted least squares from moments that are exact but for their noise, and rounded once.

    An iteration multiplies each record (x, y) by u, the root of its weight, which is a function of the record and of
    the iterate before. That one is public, a function of grid numbers that may be published. So u, and the product,
    and its rounding, are a public function of one record by itself, whose values are within public sizes
    (`kngjax.data.weighted_sums`): the moments of such rows are exact, and `kngjax.sensitivity` says by how much one row
    changes them. Real noise is added, and the sum is rounded to a public grid as real arithmetic would round it. What
    follows is post-processing, and computed in float64.

    **Arguments:** `roots`: of the weights. `rows`: the weighted rows. `moment`, `matrix`: what is added to Σ s y x and
    to Σ s x x' in each iteration. `least`: the size of the repair, see `repaired_solution`.
    """

    mechanism: Any
    roots: RootWeights
    rows: WeightedRows
    moment: NoisyNumbers
    matrix: AbstractNoisyMatrix
    least: float
    serves: ClassVar[tuple[type, ...]] = (PrivateIRLS,)
    takes_weights: ClassVar[bool] = True
    rounding: ClassVar[str] = (
        "The moments are exact sums of weighted rows, each a public function of one "
        "record; with their noise they are computed in balls that contain them, and rounded once, to the nearest "
        "multiple of a public power of two, as real arithmetic would round them; what is made of them is a "
        "function of these multiples."
    )

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> "IteratesOnGrid | None":
        """Returns the draw; None where the proof lacks something.

        It lacks calibrations that no ball certifies, and the corners of some hulls; and float64 has no numbers for some
        extreme settings.
        """
        parts, scale, least = mechanism.plan(facts.dimension)
        dimension = facts.dimension
        epsilon, delta = exactly(float(mechanism.epsilon)), exactly(float(mechanism.delta or 0.0))
        whole = Guarantee.composed([*parts] * mechanism.iterations)
        records = SquaredRadii.of(mechanism.bounds, dimension)
        if records is None or not is_kept(whole, epsilon, delta):
            return None
        roots = RootWeights.of(float(mechanism.cap), float(mechanism.power))
        rows = None if roots is None else WeightedRows.of(roots.largest, _largest(mechanism.bounds, dimension))
        if roots is None or rows is None:
            return None
        radii = SquaredRadii(rows.squared_length(roots.largest, records.features), rows.sizes[-1] ** 2)
        total = sum(rows.sizes[:-1], Fraction(0))
        (on_matrix, on_vector), (on_triangle, on_sum) = (
            squared_moment_changes(radii, mechanism.adjacency),
            squared_absolute_moment_changes(radii, total, mechanism.adjacency),
        )
        kinds = mechanism.moment_noise, mechanism.matrix_noise
        moment = NoisyNumbers.of(kinds[0], _scale_squared(kinds[0], parts[0], on_vector, on_sum), dimension)
        matrix = (
            _noise_by_wishart(parts[1], radii.features, mechanism.adjacency, scale, dimension)
            if kinds[1] == "wishart"
            else NoisyTriangle.of(kinds[1], _scale_squared(kinds[1], parts[1], on_matrix, on_triangle), dimension)
        )
        if moment is None or matrix is None:
            return None
        return cls(mechanism, roots, rows, moment, matrix, least)

    @property
    def settings(self) -> dict[str, Any]:
        """Returns the exponents of the grids of Σ s y x and of Σ s x x', where its diagonal may have one of its own."""
        return {"type": "Direct", "grid_exponents": [self.moment.grid.exponents[0], *self.matrix.exponents]}

    def prepare(self, X: Any, y: Any) -> Records | WeightedRecords:
        """Returns the records, one by one: every iteration weights them anew."""
        with float64():
            return self.mechanism.intake.rows(X, y)

    def draw(self, data: Records | WeightedRecords, bits: Bits) -> Float[np.ndarray, " dimension"]:
        columns = np.column_stack([np.asarray(data.rows.x), np.asarray(data.rows.y)]).T.copy()
        theta, shares = None, np.asarray(data.weights) if isinstance(data, WeightedRecords) else None
        for _ in range(self.mechanism.iterations):
            moment, matrix = self.moments(columns, theta, shares)
            noisy = self.moment.draw(moment, bits), self.matrix.draw(matrix, bits)
            theta = self.iterate(*noisy)
        assert theta is not None
        return theta

    def moments(
        self,
        columns: Float[np.ndarray, "columns records"],
        theta: Float[np.ndarray, " dimension"] | None,
        shares: Float[np.ndarray, " records"] | None = None,
    ) -> tuple[Exact, Exact]:
        """Σ s y x and Σ s x x' of the weighted rows, exactly. Private.

        **Arguments:** `columns`: of x, and y. `theta`: the iterate before; None: all have the largest weight. `shares`:
        of a person's vote, by which rows are multiplied; None where each record is one.
        """

        def weigh(part: np.ndarray) -> Any:
            return self.roots.largest if theta is None else self.roots(part[:-1], part[-1], theta)

        sums = self.rows.gram(columns, weigh, shares)
        return sums[:-1, -1], sums[:-1, :-1]

    def iterate(
        self, moment: Float[np.ndarray, " dimension"], matrix: Float[np.ndarray, "dimension dimension"]
    ) -> Float[np.ndarray, " dimension"]:
        """Returns the next θ, finite whatever the noise."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(repaired_solution(np, matrix, moment, self.least, self.mechanism.repair))


def _largest(bounds: Any, dimension: int) -> list[float]:
    """The largest |x_j| of one record, and its largest |y|.

    A hull leaves it as it is: see `FeatureHull.move_inside`.
    """
    features = np.max(np.abs(bounds.sides(dimension)), axis=0).tolist()
    return [*features, max(abs(float(bounds.y_lower)), abs(float(bounds.y_upper)))]


def _scale_squared(kind: str, part: Guarantee, squared: Fraction, absolute: Fraction) -> Fraction:
    """(Δ₁/ε)² of Laplace noise, and (Δ₂/μ)² of Gaussian noise, where μ² = 2ρ. **Arguments:** Δ₂² and Δ₁²."""
    if kind == "laplace":
        assert part.exact_epsilon is not None
        return absolute / part.exact_epsilon**2
    assert part.exact_rho is not None
    return squared / (2 * part.exact_rho)


def _noise_by_wishart(
    part: Guarantee, change: Fraction, adjacency: Adjacency, scale: float, dimension: int
) -> NoisyByWishart | None:
    """Returns Wishart noise that hides one row at this part's (ε, δ); None where balls do not confirm it.

    A row adds or removes vv', with |v|² at most the change.
    """
    degrees, exact = wishart_degrees(dimension), Fraction(scale) * (1 + _ROOM)
    assert part.exact_epsilon is not None
    if not wishart_hides(part.exact_epsilon, part.exact_delta, change, dimension, degrees, exact, adjacency):
        return None
    return NoisyByWishart.of(dimension, degrees, exact)
