"""The second moments of a design, released once for all regressions on it."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums
from kngjax.data.products import changed_columns, product_ranges, products, symmetric, with_shared_columns
from kngjax.data.records import Data
from kngjax.data.schema import Schema, TableShape
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.k_norm import KNormMechanism
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import check_epsilon, require_part
from kngjax.mechanisms.preparation import AbstractSumsIntake
from kngjax.sensitivity.gradients import Sensitivity


class DesignMoments(AbstractDirectMechanism):
    """Draws the entries of G = Σ xx' for j ≤ k, and under add_remove n, plus K-norm noise: density ∝ exp(-ε‖z‖_K).

    It is `kngjax.KNormMechanism` of a sum, of the products x_j x_k of each record by itself. One record moves the sum
    of x_j x_k by at most the width of the interval that x_j x_k lies in under replace, and by its farthest end under
    add_remove; ‖·‖_K is the largest of the changes over these, so that Δ = 1: pure ε. What no record changes, as n
    under replace, has no noise and is not released: `gram` puts it back.

    Released once, it serves every later regression on these features, `kngjax.inference.ReleasedDesign(release)`.

    **Arguments:** all public. `bounds`: those of the regressions, of whose features the moments are; columns are
    counted, `Bounds(..., columns=5)` where they are scalars, and y is not looked at. `epsilon`: ε in nats, at most 100
    unless `allow_large_epsilon`. `adjacency`: "replace" or "add_remove".
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)

    has_regressors: ClassVar[bool] = False
    # What is released depends on the numbers of the bounds.
    runs_on_host: ClassVar[bool] = True
    method: ClassVar[str] = "Sums of products of features plus exact K-norm noise."
    statistic: ClassVar[str] = "sum"

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.bounds = require_part("bounds", bounds)
        self.epsilon = check_epsilon(require_part("epsilon", epsilon), allow_large_epsilon)
        self.adjacency = Adjacency.parse(adjacency)

    def __check_init__(self):
        if is_traced(*(part for part in (self.epsilon, self.bounds.x_lower))):
            return
        if self.bounds.dimension is None:
            raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
        if not np.any(self._kept):
            raise ValueError("no record changes anything of this design: its columns have bounds without width")

    @property
    def loss(self) -> SquaredDistanceLoss:
        """Returns a loss that describes the data: each record is a row without a response."""
        return SquaredDistanceLoss()

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    @property
    def size(self) -> int:
        """d, the intercept included."""
        assert self.bounds.dimension is not None
        return self.bounds.dimension

    @property
    def dimension(self) -> int:
        """Counts the numbers that are released."""
        return int(np.sum(self._kept))

    @property
    def intake(self) -> "DesignIntake":
        return DesignIntake(self)

    @property
    def noise(self) -> "DesignNoise":
        return DesignNoise(self, is_of_columns=False)

    @property
    def _ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ends between which 1 and all products of a record lie."""
        with float64():
            sides = (np.asarray(side, np.float64) for side in self.bounds.features(self.size))
        least, most = product_ranges(*sides)
        return np.append(1.0, least), np.append(1.0, most)

    @property
    def _kept(self) -> Bool[np.ndarray, " columns"]:
        """Marks the columns that one record can change, without the intercept's square, whose sum is n again."""
        least, most = self._ranges
        kept = changed_columns(least, most, self.adjacency)
        kept[1] &= not self.bounds.intercept
        return kept

    @property
    def summing(self) -> KNormMechanism:
        """The mechanism of the sum of these products."""
        least, most = (side[self._kept] for side in self._ranges)
        columns = Bounds((least, most), intercept=False)
        return KNormMechanism(columns, float(self.epsilon), self.adjacency, statistic="sum", allow_large_epsilon=True)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        found = self.summing.sensitivity_for(self.dimension)
        return Sensitivity(found.value, f"a record counts as the products of its features: {found.derivation}")

    def noise_in_fractions(self, dimension: int, num_records: int) -> ScaledNorm | None:
        """1/ε in the norm, as of the sum."""
        return self.summing.noise_in_fractions(self.dimension, num_records)

    def _columns(self, records: Any) -> Float[np.ndarray, "records columns"]:
        """1 and all products of each record by itself, those that are released. Private."""
        x = np.asarray(records.rows.x, np.float64)
        return np.column_stack([np.ones(len(x)), products(x)])[:, self._kept]

    def sums_of(self, records: Any) -> ExactSums:
        """The sums of products, exactly, as a moment. Private."""
        summing, columns = self.summing, self._columns(records)
        return summing.loss.sums(summing.intake.rows(columns, may_be_empty=True))

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -ε‖Σ - θ‖_K - log ∫, normalised. Private: a function of the data."""
        return self.summing.log_density(theta, data)

    def draws(
        self, data: Data, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        return self.summing.draws(data, key, num_draws)

    def gram(
        self, values: Float[np.ndarray, "draws numbers"], num_records: int | None
    ) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, "draws dimension dimension"]]:
        """n and G of released numbers, or of what they may be without noise. Public.

        **Arguments:** `num_records`: n under replace.
        """
        least, _ = self._ranges
        whole = with_shared_columns(values, self._kept, least, num_records)
        if self.bounds.intercept:
            whole[:, 1] = whole[:, 0]
        return whole[:, 0], symmetric(whole[:, 1:], self.size)


class DesignIntake(AbstractSumsIntake):
    """Takes features alone, and sums the products of each record."""

    @property
    def _dimension_of_records(self) -> int:
        return self.mechanism.size

    def _facts(self, columns: TableShape | None, count: int | None) -> Schema:
        # The numbers are not those of columns, whose names they have not.
        return dataclasses.replace(super()._facts(columns, count), names=None)


class DesignNoise(AbstractNoiseFacts):
    """Says what is known of the noise: what is of that on a sum of these products."""

    mechanism: "DesignMoments"  # pyright: ignore[reportIncompatibleVariableOverride]

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"] | None:
        return self.mechanism.summing.noise.deviations(self.mechanism.dimension, num_records)

    def least(self, dimension: int, num_records: int | None) -> Any:
        return self.mechanism.summing.noise.least(self.mechanism.dimension, num_records)

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        return self.mechanism.summing.noise.typical_values(self.mechanism.dimension)
