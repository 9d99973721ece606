"""Gram matrices of bounded records plus Gaussian noise: second moments under zero-concentrated privacy."""

from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums, gram
from kngjax.data.records import Data, QuadraticSummary
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import require_positive
from kngjax.mechanisms.preparation import AbstractSumsIntake
from kngjax.sensitivity.gradients import Sensitivity
from kngjax.sensitivity.moments_in_fractions import squared_change_of_grams

# More columns, and the proof of `shortened` would want other constants.
_MOST_COLUMNS = 512
# How much shorter than R records are made: more than what float64 may be off, 2^-42.
_ROOM = 2.0**-40
# Columns are multiples of so small a part of R, so that their sums of products are quick.
_STEP_DIGITS = 40


class GaussianMoments(AbstractDirectMechanism):
    """Draws the upper triangles of Σ x_b x_b' + E_b, b = 1, ..., B, of records (x_1, ..., x_B) with Σ_b |x_b|⁴ ≤ R⁴.

    E_b is symmetric, with independent N(0, Δ²/μ²) on the diagonal and N(0, Δ²/(2μ²)) above it: isotropic in the
    Frobenius norm, in which one record moves all matrices together by at most Δ, Δ² = 2R⁴ under replace and R⁴ under
    add_remove (`kngjax.sensitivity.moments_in_fractions.squared_change_of_grams`). So this is one Gaussian mechanism:
    μ-Gaussian differential privacy, and μ²/2-zCDP.

    Each record by itself is made shorter where it is too long, whatever it was computed by, so that R is a promise that
    is kept here. What R is chosen to be decides accuracy alone.

    **Arguments:** all public. `bounds`: of the B·k columns of a record, B blocks of k. `mu`: μ. `adjacency`. `largest`:
    R⁴. `blocks`: B.
    """

    bounds: Bounds
    mu: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    largest: Scalar
    blocks: int = eqx.field(static=True)

    has_regressors: ClassVar[bool] = False
    method: ClassVar[str] = "Sums of products plus Gaussian noise."

    def __init__(self, bounds: Bounds, mu: Any, adjacency: str | Adjacency, largest: Any, blocks: int):
        self.bounds = bounds
        self.mu = require_positive("mu", mu, "mu of Gaussian differential privacy")
        self.adjacency = Adjacency.parse(adjacency)
        self.largest = require_positive("largest", largest, "the largest sum of fourth powers of lengths")
        self.blocks = blocks

    def __check_init__(self):
        columns = self.bounds.dimension
        if columns is None or self.bounds.intercept or columns % self.blocks or columns > _MOST_COLUMNS:
            raise ValueError(f"bounds must be of {self.blocks} blocks of columns, {_MOST_COLUMNS} at most in all")
        if not 1e-200 < float(self.largest) < 1e200:
            raise ValueError(f"largest must lie within float64's squares, got {float(self.largest):g}")

    @property
    def loss(self) -> SquaredDistanceLoss:
        """Returns a loss that describes the data: each record is a row without a response."""
        return SquaredDistanceLoss()

    @property
    def epsilon(self) -> Scalar:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Infinite: no pure ε holds of Gaussian noise."""
        return np.asarray(np.inf)

    @property
    def size(self) -> int:
        """k, the number of rows of each matrix."""
        assert self.bounds.dimension is not None
        return self.bounds.dimension // self.blocks

    @property
    def dimension(self) -> int:
        """Counts the numbers that are released, B·k(k + 1)/2."""
        return self.blocks * self.size * (self.size + 1) // 2

    @property
    def intake(self) -> "GaussianMomentsIntake":
        return GaussianMomentsIntake(self)

    @property
    def noise(self) -> "GaussianMomentsNoise":
        return GaussianMomentsNoise(self, is_of_columns=False)

    @property
    def guarantee(self) -> Guarantee:
        """μ-Gaussian differential privacy of one draw, hence (μ²/2)-zCDP."""
        return Guarantee.gaussian(float(self.mu), self.adjacency)

    @property
    def squared_change(self) -> Fraction:
        """Δ²."""
        return squared_change_of_grams(Fraction(float(self.largest)), self.adjacency)

    @property
    def variance(self) -> Fraction:
        """Δ²/μ², of noise on the diagonal; above it is half of that."""
        return self.squared_change / exactly(float(self.mu)) ** 2

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        exchange = self.adjacency is Adjacency.REPLACE
        event = "exchanging one record" if exchange else "one record more or less"
        why = "two sums of squares of vectors, whose inner product is not negative" if exchange else "one such sum"
        return Sensitivity(
            float(self.squared_change) ** 0.5,
            f"each record adds x_b x_b' to the matrix b, with a sum of |x_b|^4 of at most {float(self.largest):.6g}; "
            f"{event} changes all matrices together, in the Frobenius norm, by no more than {why}, have.",
        )

    def shortened(self, x: Float[np.ndarray, "records columns"]) -> Float[np.ndarray, "records columns"]:
        """Records with Σ_b |x_b|⁴ ≤ R⁴, of which each depends on itself alone. Private.

        s of at most 512 numbers is computed with a relative error of less than 2^-42 = η, as nothing in it cancels.
        Where the computed s is at most R⁴(1 - 2^-40) the true one is at most R⁴(1 - 2^-40)(1 + 2η) < R⁴. Others are
        multiplied by the fourth root of R⁴(1 - 2^-39)/s, which leaves R⁴(1 - 2^-39) of them, but for η and the few
        roundings of the factor and of products, which are 2^-47. At last numbers are rounded towards 0 to multiples of
        a public step.
        """
        most = float(self.largest)
        squares = np.zeros(len(x))
        for start in range(0, x.shape[1], self.size):
            length = np.zeros(len(x))
            # Column by column, so that what is computed of a record does not depend on where it stands.
            for column in range(start, start + self.size):
                length = length + x[:, column] * x[:, column]
            squares = squares + length * length
        is_long = squares > most * (1.0 - _ROOM)
        factor = np.sqrt(np.sqrt(most * (1.0 - 2.0 * _ROOM) / np.where(is_long, squares, most)))
        step = 2.0 ** (int(np.frexp(most)[1]) // 4 - _STEP_DIGITS)
        return np.trunc(np.where(is_long[:, None], x * factor[:, None], x) / step) * step

    def sums_of(self, records: Any) -> ExactSums:
        """The upper triangles, exactly, as a moment. Private."""
        x = self.shortened(np.asarray(records.rows.x, np.float64))
        above = np.triu_indices(self.size)
        parts = [gram(x[:, start : start + self.size])[above] for start in range(0, x.shape[1], self.size)]
        return ExactSums(len(x), np.zeros((self.dimension, self.dimension), object), np.concatenate(parts), 0)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) of independent normal numbers. Private: a function of the data."""
        assert isinstance(data, QuadraticSummary)
        deviations = jnp.asarray(self.noise.deviations(self.dimension, None))
        return jnp.sum(jax.scipy.stats.norm.logpdf(jnp.asarray(theta), data.moment, deviations))

    def draws(
        self, data: Data, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        assert isinstance(data, QuadraticSummary)
        noise = jax.random.normal(key, (num_draws, self.dimension))
        deviations = jnp.asarray(self.noise.deviations(self.dimension, None))
        return jnp.asarray(data.moment)[None] + noise * deviations[None], jnp.asarray(True)


class GaussianMomentsIntake(AbstractSumsIntake):
    """Takes blocks of columns, and sums the products of each shortened record."""

    @property
    def _dimension_of_records(self) -> int:
        return self.mechanism.blocks * self.mechanism.size


class GaussianMomentsNoise(AbstractNoiseFacts):
    """Says what is known of the noise: all, as it is normal with public deviations."""

    mechanism: "GaussianMoments"  # pyright: ignore[reportIncompatibleVariableOverride]

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"]:
        rows, columns = np.triu_indices(self.mechanism.size)
        deviations = float(self.mechanism.variance) ** 0.5 * np.where(rows == columns, 1.0, 0.5**0.5)
        return np.tile(deviations, self.mechanism.blocks)

    def least(self, dimension: int, num_records: int | None) -> Any:
        return self.deviations(dimension, num_records)

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """0, and what one record adds at most."""
        return np.zeros(dimension), np.full(dimension, float(self.mechanism.largest) ** 0.5)
