"""Sums of columns of which some exclude one another, plus noise in blocks."""

import operator
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Scalar, is_traced
from kngjax.data import weights
from kngjax.data.bounds import Bounds
from kngjax.data.exact_sums import ExactSums, column_sums, weighted_sums_of
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.geometry.blocks import BlockNorm, ScaledBlocks
from kngjax.mechanisms.k_norm_law import AbstractKNormLaw
from kngjax.mechanisms.preparation import AbstractIntake
from kngjax.sensitivity import sums
from kngjax.sensitivity.gradients import Sensitivity


class BlockSums(AbstractKNormLaw):
    """Draws θ with density ∝ exp(-ε‖Σx - θ‖), for a norm in blocks in which no record changes Σx by more than 1.

    Columns are exclusive if at most one of them is not 0 in each record, as for products of one feature with the levels
    of a factor. Their changes are bounded together, which needs less noise. `kngjax.sensitivity.sums.blocks_of_sum`
    derives the norm; without exclusive columns it is that of `kngjax.KNormMechanism`. Proof:
    `docs/proofs/intervals-of-regressions.md`.

    The mechanism makes columns exclusive itself. In each group a record keeps the first column that is largest in size,
    and 0 in the others. Rows of persons are made exclusive one by one, and then share votes: a person changes Σwx by
    a convex combination of what records change it by, times most_rows.

    **Arguments:** all public. `bounds`: of the columns, `Bounds((lower, upper), intercept=False)`. `epsilon`: ε in
    nats, at most 100 unless `allow_large_epsilon`. `adjacency`: "replace" or "add_remove". `exclusive`: the groups, of
    columns by number, whose bounds contain 0.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    exclusive: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    # What is released depends on the numbers of the bounds.
    runs_on_host: ClassVar[bool] = True
    method: ClassVar[str] = "The sum plus exact noise in blocks."
    statistic: ClassVar[str] = "sum"
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    proofs: ClassVar[tuple[str, ...]] = ("intervals-of-regressions",)

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        exclusive: Iterable[Iterable[int]] = (),
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        groups = (tuple(operator.index(column) for column in group) for group in exclusive)
        # One without a column excludes nothing.
        self.exclusive = tuple(group for group in groups if group)

    def __check_init__(self):
        dimension = self.bounds.dimension
        if dimension is None:
            raise ValueError("the bounds leave the number of columns open: give Bounds(..., columns=5)")
        self._check_parts()
        if self.bounds.hull is not None:
            raise ValueError("exclusive columns have bounds of their own, and no hull: leave the hull out")
        columns = [column for group in self.exclusive for column in group]
        if len(set(columns)) < len(columns) or not set(columns) <= set(range(dimension)):
            raise ValueError(f"exclusive must name columns 0 to {dimension - 1} at most once, got {self.exclusive}")
        if is_traced(self.epsilon, self.bounds.x_lower):
            return
        lower, upper = (np.broadcast_to(np.asarray(one), (dimension,)) for one in self.bounds.features(dimension))
        if not np.all((lower[columns] <= 0.0) & (upper[columns] >= 0.0)):
            raise ValueError("bounds of exclusive columns must contain 0, which all but one of a group are in a record")
        if not all(weight > 0 for weight in self._norm.weights):
            raise ValueError("a column has the same lower and upper bound, so that no record changes it: leave it out")

    @property
    def dimension(self) -> int:
        """Counts the columns."""
        assert self.bounds.dimension is not None
        return self.bounds.dimension

    @property
    def intake(self) -> "BlockSumsIntake":
        return BlockSumsIntake(self)

    @property
    def _norm(self) -> ScaledBlocks:
        blocks, weights = sums.blocks_of_sum(self.bounds, self.adjacency, self.exclusive, self.dimension)
        return ScaledBlocks(blocks, tuple(weights))

    def score_norm(self, dimension: int) -> BlockNorm:
        return BlockNorm(np.array([float(weight) for weight in self._norm.weights]), self._norm.blocks)

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """1, in this norm."""
        return jnp.ones(())

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        norm = self._norm
        return Sensitivity(1.0, sums.explain_blocks_of_sum(norm.blocks, list(norm.weights), self.adjacency))

    def noise_in_fractions(self, dimension: int, num_records: int) -> ScaledBlocks:
        """1/ε in the norm, where ε is the decimal number that it prints as."""
        return self._norm.scaled(1 / exactly(float(self.epsilon)) ** 2)

    def alone(self, x: Float[np.ndarray, "records columns"]) -> Float[np.ndarray, "records columns"]:
        """Leaves of each exclusive group the column that is largest in size, of each record by itself. Private."""
        x, rows = np.asarray(x, np.float64), np.arange(len(x))
        crowded = [group for group in self.exclusive if _is_crowded(x.T, group)]
        x = x.copy("K") if crowded else x
        for group in crowded:
            columns = np.array(group, int)
            largest = columns[np.argmax(np.abs(x[:, columns]), axis=1)]
            kept = x[rows, largest]
            x[:, columns] = 0.0
            x[rows, largest] = kept
        return x

    def sums_of(self, records: Any) -> ExactSums:
        """The sums, exactly, as a moment. Private."""
        x, count = self.alone(np.asarray(records.rows.x, np.float64)), records.num_records
        moment = column_sums(x) if isinstance(records, Records) else _weighted(x, records.weights, self.bounds.weight)
        # Of a location nothing else is needed: no squares.
        return ExactSums(count, count * np.eye(self.dimension, dtype=int).astype(object), moment, Fraction(0))


def _weighted(x: np.ndarray, each: Any, largest: Any) -> np.ndarray:
    step = weights.unit(largest)
    return weighted_sums_of(x, np.rint(np.asarray(each) / step).astype(np.int64)) * Fraction(step)


def _is_crowded(columns: Float[np.ndarray, "columns records"], group: tuple[int, ...]) -> bool:
    """Whether some record has two of these columns that are not 0."""
    taken = np.zeros(columns.shape[1], bool)
    for place in group:
        is_there = columns[place] != 0.0
        if np.any(taken & is_there):
            return True
        taken |= is_there
    return False


class BlockSumsIntake(AbstractIntake):
    """Takes columns, and sums those that exclusive ones leave of each record."""

    def sums(self, rows: Records | WeightedRecords) -> ExactSums:
        return self.mechanism.sums_of(rows)

    def summarise(self, records: Records | WeightedRecords) -> Data:
        self.require_declared_weights(records)
        return self.mechanism.sums_of(records).summary()
