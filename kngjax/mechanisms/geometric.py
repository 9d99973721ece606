"""The geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009): counts of public cells plus whole noise."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, is_traced
from kngjax.data import cells, weights
from kngjax.data.bounds import Bounds
from kngjax.data.missing import DROP
from kngjax.data.passes import Passes
from kngjax.data.records import Counts, Data, Records, WeightedRecords
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.preparation import AbstractValuesIntake
from kngjax.sensitivity import sums
from kngjax.sensitivity.gradients import Sensitivity

# More numbers would fill the memory of a release with noise.
MOST_CELLS = 1_000_000


class GeometricMechanism(AbstractDirectMechanism):
    """Draws whole numbers θ with P(θ) ∝ exp(-(ε/Δ)·Σ_k |θ_k - c_k|), c_k the number of records in cell k.

    Each count has independent two-sided geometric noise of standard deviation 1/(√2·sinh(ε/(2Δ))). Δ is the most that
    one record changes all counts together: 1 under add_remove, 2 under replace (a record leaves one cell and enters
    another), and 1 under replace if a single cell is counted.

    Proof: for neighbours Σ_k |c_k - c'_k| ≤ Δ. By the triangle inequality the exponents differ by at most ε for every
    θ, and the normaliser (tanh(ε/(2Δ)))^K does not depend on the data. So a draw is ε-DP.

    For one count this noise is optimal for every prior of the reader and every loss that grows with the error (Ghosh et
    al. 2009). A release inverts the distribution function, ⌊-log U·Δ/ε⌋, with as many digits of U as decide it, so that
    nothing is rounded.

    With weights c_k is the sum of the weights in cell k. Weights are multiples of a public unit u, at most m·u
    (`kngjax.data.weights`). The law above then holds in units of u, with m·Δ in place of Δ.

    **Arguments:**

    - `bounds`: `Bounds(y=(lower, upper))` of whole numbers: the cells lower, lower + 1, ..., upper. Data are each
      record's cell. A number beyond the bounds is clipped. A value that is no whole number is treated as `missing_y`
      says, and fails the release without it.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`; the decimal number that it prints as.
    - `adjacency`: "replace" or "add_remove".
    - `counted`: those of the cells that are counted, in this order; None: all of them.

    Everything here is public. Raises ValueError for bounds of anything but y or of no whole numbers, for more than 10⁶
    cells, and for `counted` that are no cells.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    counted: tuple[int, ...] | None = eqx.field(static=True)
    # The first and the last cell: of compiled functions they are no arguments.
    ends: tuple[int, int] = eqx.field(static=True, metadata={"derived": True})
    # u and m: 1 and 1 without weights.
    unit: float = eqx.field(static=True, metadata={"derived": True})
    most_units: int = eqx.field(static=True, metadata={"derived": True})

    has_regressors: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    is_whole: ClassVar[bool] = True
    method: ClassVar[str] = "The counts plus exact two-sided geometric noise, independent for each."

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        counted: Any = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.counted = None if counted is None else _whole_numbers(counted)
        self.ends = _ends(self.bounds)
        largest = self.bounds.weight
        self.unit = 1.0 if largest is None else weights.unit(largest)
        self.most_units = 1 if largest is None else weights.most_units(largest)

    def __check_init__(self):
        bounds = self.bounds
        if bounds.dither is not None:
            raise ValueError("counts are of whole numbers: leave Bounds(..., dither=...) out")
        if self.cells > MOST_CELLS:
            raise ValueError(f"the bounds of y have {self.cells:,} cells: count at most {MOST_CELLS:,}")
        if bounds.missing_y not in (None, DROP) and np.isnan(self.intake.responses([bounds.missing_y])).any():
            raise ValueError(f"missing_y = {bounds.missing_y!r} is no cell: give a whole number within the bounds")
        if self.counted is not None:
            first, last = self.ends
            unknown = [cell for cell in self.counted if not first <= cell <= last]
            if unknown or not self.counted or len(set(self.counted)) < len(self.counted):
                raise ValueError(
                    f"counted must name cells from {first} to {last}, each once, and at least one: got {self.counted}"
                )

    @property
    def loss(self) -> QuantileLoss:
        """Returns the loss of a median, to describe the data: each record is one response, which needs no bound."""
        return QuantileLoss(0.5)

    @property
    def cells(self) -> int:
        """Counts the cells."""
        return self.ends[1] - self.ends[0] + 1

    @property
    def dimension(self) -> int:
        """K, how many cells are counted."""
        return self.cells if self.counted is None else len(self.counted)

    @property
    def change(self) -> int:
        """Δ, in units u."""
        return sums.count_sensitivity(self.dimension, self.adjacency, self.most_units)

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    @property
    def intake(self) -> "CellsIntake":
        # A weight is added to the count of a cell, which is no number to multiply.
        return CellsIntake(self, has_products=False)

    @property
    def noise(self) -> "GeometricNoise":
        return GeometricNoise(self)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ with its derivation."""
        if dimension != self.dimension:
            raise ValueError(f"{self.dimension} cells are counted, not {dimension}")
        why = sums.explain_count_sensitivity(dimension, self.adjacency, self.bounds)
        return Sensitivity(self.change * self.unit, why)

    @property
    def _rate(self) -> Any:
        return jnp.asarray(self.epsilon) / self.change

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log P(θ), K·log tanh(ε/(2Δ)) - (ε/Δ)·Σ_k |θ_k - c_k|, in units u; -inf where θ is not whole. Private."""
        theta, rate = jnp.asarray(theta) / self.unit, self._rate
        counts = jnp.asarray(self._own(data, Counts).counts) / self.unit
        log_masses = jnp.log(jnp.tanh(0.5 * rate)) - rate * jnp.abs(theta - counts)
        return jnp.sum(jnp.where(jnp.floor(theta) == theta, log_masses, -jnp.inf))

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """The counts plus the difference of two geometric numbers ⌊E/rate⌋, E exponential."""
        counts = jnp.asarray(self._own(data, Counts).counts)
        sizes = jnp.floor(jax.random.exponential(key, (2, num_draws, self.dimension)) / self._rate)
        return counts[None] + self.unit * (sizes[0] - sizes[1]), jnp.asarray(True)


class CellsIntake(AbstractValuesIntake):
    """Takes each record as a cell, and counts the records in each."""

    def responses(self, column: Any) -> Float[np.ndarray, " records"]:
        """The whole number of each cell by itself; NaN where it is none."""
        numbers = cells.numbers(column)
        return np.where(np.floor(numbers) == numbers, numbers, np.nan)

    def summarise(self, records: Records | WeightedRecords) -> Counts:
        """Counts the records in each counted cell, or sums their weights, exactly. O(n + K)."""
        self.require_declared_weights(records)
        y, (first, _), unit = records.rows.y, self.mechanism.ends, self.mechanism.unit
        if is_traced(y):
            each = records.times_weights(jnp.ones(y.shape))
            totals = jnp.zeros(self.mechanism.cells).at[jnp.round(jnp.asarray(y) - first).astype(int)].add(each)
        else:
            # Whole numbers of less than 2^20 units: nothing is rounded for 2^33 records.
            each = np.asarray(records.weights) / unit if isinstance(records, WeightedRecords) else None
            totals = np.bincount(np.asarray(y).astype(np.int64) - first, each, self.mechanism.cells) * unit
        counts = totals if self.mechanism.counted is None else totals[np.array(self.mechanism.counted) - first]
        return Counts(counts, np.asarray(float(records.num_records)))

    def summed(self, X: Passes) -> Counts:
        found = self.total(X, self._counts_and_number, is_exact=True)
        if found is None or found[-1] == 0.0:
            self.require_none_needed()
            found = np.zeros(self.mechanism.dimension + 1)
        return Counts(found[:-1], np.asarray(found[-1]))

    def _counts_and_number(self, rows: Records | WeightedRecords) -> Float[np.ndarray, " numbers"]:
        made = self.summarise(rows)
        return np.append(np.asarray(made.counts, np.float64), np.asarray(made.count))


class GeometricNoise(AbstractNoiseFacts):
    """Says what is known of the noise: all, as it is of public scale."""

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"]:
        half = float(self.mechanism.epsilon) / (2.0 * self.mechanism.change)
        # sinh overflows where the noise is 0 to all digits.
        return np.full(dimension, self.mechanism.unit * math.sqrt(0.5) / math.sinh(half) if half < 700.0 else 0.0)


def _ends(bounds: Bounds) -> tuple[int, int]:
    """The first and the last cell. Raises ValueError for bounds of anything else."""
    if bounds.x_lower is not None or bounds.y_lower is None:
        raise ValueError("counts need the public range of the cells alone: give bounds=Bounds(y=(0, last cell))")
    if is_traced(bounds.y_lower, bounds.y_upper):
        raise TypeError("how many cells there are decides shapes: their range may not be traced by JAX")
    first, last = (float(np.asarray(end)) for end in (bounds.y_lower, bounds.y_upper))
    if not all(end.is_integer() and abs(end) < 2.0**53 for end in (first, last)):
        raise ValueError(f"the bounds of y must be whole numbers, the first and the last cell, got {(first, last)}")
    return int(first), int(last)


def _whole_numbers(counted: Any) -> tuple[int, ...]:
    if isinstance(counted, str) or not isinstance(counted, Sequence | np.ndarray):
        raise TypeError(f"counted must be a list of cells, like [1], got {counted!r}")
    numbers = [one.item() if isinstance(one, np.generic) else one for one in counted]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and one == round(one) for one in numbers):
        raise TypeError(f"counted must be whole numbers, got {counted!r}")
    return tuple(map(int, numbers))
