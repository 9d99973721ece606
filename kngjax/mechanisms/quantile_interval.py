"""A confidence interval of a quantile by two private order statistics that are drawn jointly."""

import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced, parameter
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms import interval_ranks
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.interval_ranks import Ranks
from kngjax.mechanisms.parameters import require_part, rounded_up
from kngjax.mechanisms.private_quantile import PrivateQuantile, SortedIntake
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity

# Products of two such numbers and of four times as much are whole numbers of 63 bits.
MOST_RECORDS = 2**30


class QuantileInterval(AbstractDirectMechanism):
    """Draws θ_1 ≤ θ_2 with f(θ) ∝ exp(-ε/(2Δ)·(|a| + |b - a| + |b|)), a = #{y ≤ θ_1} - nτ_1, b = #{y ≤ θ_2} - nτ_2.

    The interval [θ_1, θ_2] holds the τ-quantile of the population with probability at least `level`, over sampling and
    noise together. The draw is the joint law of `PrivateQuantile` at levels τ_1 < τ < τ_2, which follow from n, τ, ε
    and `level` alone (`kngjax.mechanisms.interval_ranks`). Δ = 2 under replace, and 2(1 - min(τ_1, τ_2 - τ_1, 1 - τ_2))
    under add_remove (`docs/proofs/quantiles.md`). Two draws at ε/2 each would need twice as many records.

    No two values may be equal. For whole or rounded numbers give `Bounds(y=(lo, hi), dither=unit)`: the interval of
    `Release.intervals` is then wider by half a unit on each side, and holds the quantile of the values without that
    noise. The bounds must contain the quantile.

    Under replace n is public. Under add_remove `num_records` is a public lower bound of n. With more records the
    interval holds more often than `level`; with half of them a 95% interval holds 83 times in 100.

    **Arguments:** all public.

    - `tau`: τ in (0, 1).
    - `bounds`: of the values, `Bounds(y=(lo, hi))`.
    - `epsilon`: ε in nats; positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove".
    - `level`: the probability with which the interval holds the quantile, at least.
    - `num_records`: a lower bound of n under add_remove; None under replace.
    - `miss`: the probability that n is less than `num_records`, if that bound came from a released count. Ranks are
        then chosen for `level` + `miss`. It is 0 for a stated number.
    - `spread`: a public guess of the width of the interval that contains half of the values; by default a thousandth of
        the width of the bounds. Only the refusal below depends on it, by its logarithm.
    - `force`: release also if n is too small. The two numbers are then private order statistics without an interval,
        `NoInterval`.

    Raises ValueError for numbers out of their ranges. A release raises ValueError, before anything is spent, if n is
    too small: no ranks have the level, or an end would lie beyond all values with probability (1 - level)/5 or more.
    This probability is n·(hi - lo)/spread·P(R = r), with the noise R of a rank r away from the last value.
    """

    tau: Scalar
    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    level: float = eqx.field(static=True)
    num_records: int | None = eqx.field(static=True)
    spread: float | None = eqx.field(static=True)
    force: bool = eqx.field(static=True)
    miss: float = eqx.field(static=True)

    has_regressors: ClassVar[bool] = False
    no_persons: ClassVar[str | None] = (
        "the ranks that make its level are those of independent records, which rows of one person are not, and an "
        "interval would hold too seldom"
    )
    proofs: ClassVar[tuple[str, ...]] = ("quantiles",)
    runs_on_host: ClassVar[bool] = True
    method: ClassVar[str] = "Two order statistics jointly, by exact forward sums and a backward draw in float64."

    def __init__(
        self,
        tau: Any = None,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        level: float = 0.95,
        *,
        num_records: int | None = None,
        spread: float | None = None,
        force: bool = False,
        miss: float = 0.0,
        allow_large_epsilon: bool = False,
    ):
        self.tau = _level("tau", require_part("tau", tau))
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.level = float(_level("level", level))
        self.num_records = num_records
        self.spread = spread
        self.force = bool(force)
        self.miss = float(miss)

    def __check_init__(self):
        if self.bounds.x_lower is not None or self.bounds.y_lower is None:
            raise ValueError("a quantile needs public bounds of the values alone: give bounds=Bounds(y=(lower, upper))")
        count = self.num_records
        if self.adjacency is Adjacency.REPLACE and count is not None:
            raise ValueError("under replace the number of records is that of the data: leave num_records out")
        if self.adjacency is not Adjacency.REPLACE and not (
            isinstance(count, int | np.integer) and 1 <= count <= MOST_RECORDS
        ):
            raise ValueError(
                "under add_remove the number of records is private: give one that there are at least, known in public, "
                f"num_records=10_000, and not {count!r}"
            )
        if not (self.miss >= 0.0 and self.level + self.miss < 1.0) or (self.miss and count is None):
            raise ValueError(
                f"miss must be from 0 to less than 1 - level = {1.0 - self.level:g}, of a num_records: {self.miss}"
            )
        if self.spread is not None and not 0.0 < self.spread < math.inf:
            raise ValueError(
                f"spread must be a positive number, about how far half of the values spread: {self.spread}"
            )

    @property
    def loss(self) -> QuantileLoss:
        """ρ_τ: it has a response, needs no bound on it and accepts every one."""
        return QuantileLoss(self.tau)

    @property
    def dimension(self) -> int:
        """The two ends."""
        return 2

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP and (ε²/8)-zCDP."""
        return Guarantee.bounded_range(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    @property
    def intake(self) -> SortedIntake:
        return SortedIntake(self)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of |a| + |b - a| + |b|, with its derivation."""
        if dimension != 2:
            raise ValueError(f"an interval has two ends, not {dimension}")
        # Under replace it is the same for all levels, and they follow from n.
        levels = None if self.num_records is None else np.array(self.ranks()) / self.num_records
        given = np.array([0.25, 0.75]) if levels is None else levels
        with float64():
            value = float(gradients.joint_quantile_sensitivity(given, self.adjacency))
        return Sensitivity(value, gradients.explain_joint_quantile_sensitivity(levels, self.adjacency, value))

    def count(self, num_records: int | None) -> int:
        """The number of records that ranks are made for. **Arguments:** `num_records`: n, where it is public."""
        known = self.num_records if self.adjacency is not Adjacency.REPLACE else num_records
        if known is None:
            raise ValueError(
                "how many records there are is not known beforehand: give the values as an array or a frame"
            )
        return known

    def ranks(self, num_records: int | None = None) -> Ranks:
        """r_1 < r_2 among n values; nτ_1 and nτ_2. Of public facts alone.

        **Arguments:** `num_records`: n under replace. Raises ValueError where that is too small, as a release does.
        """
        count = self.count(num_records)
        if (refusal := self.refusal(count)) is not None and (not self.force or count < 3):
            raise ValueError(refusal)
        tau, rate = float(self.tau), self._least_rate
        found = interval_ranks.ranks_for(count, tau, rate, self._level_of_ranks)
        if found is not None:
            return found
        tail = 0.5 * (1.0 - self._level_of_ranks)
        upper = min(count - interval_ranks.lower_rank(count, 1.0 - tau, rate, tail), count - 1)
        return Ranks(min(max(interval_ranks.lower_rank(count, tau, rate, tail), 1), upper - 1), upper)

    def refusal(self, num_records: int | None = None, times: float = 1.0) -> str | None:
        """Says why so few records have no interval, and what it takes; None where they have one. By public facts.

        **Arguments:** `num_records`: as of `count`. `times`: ε of all groups over that of one, which this draws for.
        """
        count, tau = self.count(num_records), float(self.tau)
        if interval_ranks.holds(count, *self._settings):
            return None
        ranks = interval_ranks.ranks_for(count, tau, self._least_rate, self._level_of_ranks)
        at = f"at epsilon = {times * float(self.epsilon):.4g}{' for all groups together' if times > 1.0 else ''}"
        why = f"no two ranks have that level with noise for privacy {at}"
        if ranks is not None:
            nearest = min(ranks.lower, count - ranks.upper)
            why = (
                f"only {nearest} of them lie beyond one of its ends, and {at} that end could come "
                "from beyond all values, with public bounds so much wider than the values are spread"
            )
        records, least = self.records_needed(num_records), self.epsilon_needed(num_records)
        would = [] if records is None else [f"{records:,} records"]
        would += [] if least is None else [f"epsilon = {rounded_up(times * least)}"]
        enough = f". It takes at least about {' or '.join(would)}" if would else ""
        return (
            f"{count:,} records are too few for a {self.level:.0%} interval of the {tau:g}-quantile: {why}{enough}; so "
            "may narrower bounds. Nothing was spent; force=True releases the two numbers without a level"
        )

    def records_needed(self, num_records: int | None = None) -> int | None:
        """The least number of records with an interval, to two digits; None where none is enough. By public facts."""
        return interval_ranks.records_needed(self.count(num_records), *self._settings)

    def epsilon_needed(self, num_records: int | None = None) -> float | None:
        """The least ε with which so few records have an interval; None where none is enough. By public facts."""
        rate = interval_ranks.rate_needed(self.count(num_records), *self._settings)
        return None if rate is None else float(self.epsilon) * rate / self._least_rate

    @property
    def _settings(self) -> tuple[float, float, float, float]:
        return float(self.tau), self._least_rate, self._level_of_ranks, self._width

    @property
    def _level_of_ranks(self) -> float:
        """Adds to the level what is missed where there are fewer records than `num_records`."""
        return self.level + self.miss

    @property
    def _width(self) -> float:
        """Returns the width of the bounds in units of the spread."""
        low, high = (float(np.asarray(end)) for end in (self.bounds.y_lower, self.bounds.y_upper))
        return 1.0 / interval_ranks.SPREAD if self.spread is None else (high - low) / self.spread

    @property
    def _least_rate(self) -> float:
        """c of `kngjax.mechanisms.interval_ranks` at the Δ that no levels exceed: 2."""
        return 0.5 * float(self.epsilon)

    def law(self, num_records: int | None = None) -> PrivateQuantile:
        """The two quantiles with the same law in real numbers. **Arguments:** as of `ranks`."""
        count = self.count(num_records)
        levels = np.array(self.ranks(count)) / count
        return PrivateQuantile(levels, self.bounds, self.epsilon, self.adjacency, allow_large_epsilon=True)

    def for_count(self, num_records: int) -> PrivateQuantile:
        """Two quantiles whose levels follow from n."""
        return self.law(num_records)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ), normalised; -inf outside of the bounds and for θ_1 > θ_2. Private: a function of the data."""
        return self.law(data.num_records).log_density(theta, data)

    def jumps(self, data: Data) -> Float[Array, " jumps"]:
        return self.law(data.num_records).jumps(data)

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """Independent draws in float64, for research; a release draws as `kngjax.draws.exact_interval` says."""
        return self.law(data.num_records).draws(data, key, num_draws)


def _level(name: str, value: Any) -> Any:
    """A number strictly between 0 and 1 as an array; raises TypeError or ValueError that names it."""
    if is_traced(value):
        return value
    made = np.asarray(value)
    if made.ndim or made.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be one number strictly between 0 and 1, got {value!r}")
    if not 0.0 < float(made) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return np.asarray(parameter(value))
