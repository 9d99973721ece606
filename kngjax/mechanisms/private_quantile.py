"""Quantiles of numbers by KNG, drawn exactly: one (PrivateQuantile), or several by parts of ε or jointly."""

import itertools
import math
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.exact_costs import exactly, inward
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, cumulative_sums, float64, is_traced, parameter
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, Records, SortedValues
from kngjax.geometry.domains import Box
from kngjax.losses.quantile import QuantileLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.expected_noise import ExpectedNoise, laplace_bridge_variances
from kngjax.mechanisms.joint_quantiles import JointLaw, log_normaliser
from kngjax.mechanisms.kng import KNG
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import require_choice, require_part
from kngjax.mechanisms.preparation import AbstractValuesIntake
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity

MOST_ORDERED = 7  # 5040 orders


class PrivateQuantile(AbstractDirectMechanism):
    """Draws θ with density f(θ) ∝ exp(-ε/(2Δ)·|#{y ≤ θ} - nτ|) on [lo, hi]: the τ-quantile of n numbers.

    It is KNG with `QuantileLoss` and an intercept alone. The density is constant between consecutive order statistics,
    so a draw is exact: it takes gap i, of length g_i, with probability ∝ g_i·exp(-ε|i - nτ|/(2Δ)), and a uniform point
    of this gap. Values outside [lo, hi] count as lo or hi.

    Equal values have no gap between them. If many values are equal, as zeros or rounded incomes, the draw says little.
    Add noise to each value there: `Bounds(y=(lo, hi), dither=unit)`.

    `budget="joint"` draws m levels together (Gillenwater, Joseph and Kulesza 2021). It is KNG with the norm
    Σ_{j=1}^{m+1} |v_j - v_{j-1}| of v_j = #{y ≤ θ_j} - nτ_j, on lo ≤ θ_1 ≤ ... ≤ θ_m ≤ hi. `budget="split"` draws each
    quantile at ε/m and sorts them: ε adds up to ε, and ρ to ε²/(8m). For five levels at ε = 1 and 10³ to 10⁵ normal
    values, joint quantiles are off by 4 ranks on average, and split ones by 10. At equal ρ the two are alike.

    Proof of Δ: `docs/proofs/quantiles.md`. Reimherr and Awan (2019, equation 3) print another Δ, which is wrong.

    **Arguments:**

    - `tau`: τ in (0, 1), or several in increasing order.
    - `bounds`: public bounds of the values, `Bounds(y=(lo, hi))`.
    - `epsilon`: ε in nats, for all levels together; positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove".
    - `budget`: "joint" or "split"; they differ for several levels only.

    Everything here is public. Raises ValueError for levels that are not in increasing order within (0, 1), for bounds
    of anything but y, and for an unknown budget.
    """

    tau: Float[Array, " quantiles"] | Float[np.ndarray, " quantiles"]
    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    budget: str = eqx.field(static=True)

    has_regressors: ClassVar[bool] = False
    proofs: ClassVar[tuple[str, ...]] = ("quantiles",)

    def __init__(
        self,
        tau: Any = None,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        budget: str = "joint",
        *,
        allow_large_epsilon: bool = False,
    ):
        self.tau = _levels(require_part("tau", tau))
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.budget = budget

    def __check_init__(self):
        require_choice("budget", self.budget, ("joint", "split"))
        if self.bounds.x_lower is not None or self.bounds.y_lower is None:
            raise ValueError("a quantile needs public bounds of the values alone: give bounds=Bounds(y=(lower, upper))")

    @property
    def loss(self) -> QuantileLoss:
        """ρ_τ of the first level. Whatever the level, it has a response, needs no bound on it and accepts every one."""
        return QuantileLoss(self.tau[0])

    @property
    def dimension(self) -> int:
        """m, the number of quantiles."""
        return self.tau.shape[0]

    @property
    def runs_on_host(self) -> bool:
        """Tells whether `draws` computes in NumPy, as it does for several levels jointly."""
        return self._is_joint

    @property
    def method(self) -> str:
        """Says how values are drawn, in words."""
        if self._is_joint:
            return (
                "The gaps between order statistics of all quantiles together, by exact forward sums and a backward "
                "draw, then uniform points of the gaps."
            )
        one = "A gap between consecutive order statistics by exact inversion, then a uniform point of it"
        return f"{one}." if self.dimension == 1 else f"{one}; for each quantile by itself at epsilon/m, then sorted."

    @property
    def _is_joint(self) -> bool:
        return self.budget == "joint" and self.dimension > 1

    @property
    def _part(self) -> Any:
        """ε of one of the quantiles that are drawn by themselves, rounded down so that m of them never exceed ε.

        It is what is stated, and what the lattice draws at. While a program is traced digits are not known, and it is
        less than that.
        """
        if self.dimension == 1:
            return self.epsilon
        if is_traced(self.epsilon):
            return self.epsilon / self.dimension * (1.0 - 2.0**-50)
        whole = float(self.epsilon)
        part = inward(exactly(whole) / self.dimension)
        # All parts stay within ε, as the decimal number that it prints as and as the binary one that it is.
        return part if self.dimension * Fraction(part) <= Fraction(whole) else math.nextafter(part, 0.0)

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP and (ε²/8)-zCDP of one draw; with a split budget the sum of m such at ε/m."""
        if self._is_joint or self.dimension == 1:
            return Guarantee.bounded_range(float(self.epsilon), self.adjacency).of(self.bounds.protects)
        part = Guarantee.bounded_range(float(self._part), self.adjacency)
        return Guarantee.composed([part] * self.dimension).of(self.bounds.protects)

    def densities(self) -> tuple[KNG, ...]:
        """Each level's KNG of an intercept alone, at ε/m rounded down."""
        if self._is_joint:
            raise ValueError("Lattice draws one quantile, or several with budget='split': leave the sampler out")
        with float64():
            epsilon = float(self._part)
            domain = Box(self.bounds.y_lower, self.bounds.y_upper)
            return tuple(
                KNG(QuantileLoss(float(tau)), self.bounds, domain, epsilon, self.adjacency, allow_large_epsilon=True)
                for tau in self.tau
            )

    @property
    def intake(self) -> "SortedIntake":
        return SortedIntake(self)

    @property
    def noise(self) -> "QuantileNoise":
        return QuantileNoise(self)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of the joint score, or the largest of the single ones, with its derivation."""
        if dimension != self.dimension:
            raise ValueError(f"these are {self.dimension} quantiles, not {dimension}")
        with float64():
            tau = np.asarray(self.tau)
            if self._is_joint:
                value = float(gradients.joint_quantile_sensitivity(tau, self.adjacency))
                return Sensitivity(value, gradients.explain_joint_quantile_sensitivity(tau, self.adjacency, value))
            changes = np.array(gradients.quantile_changes(tau, self.adjacency))
        return Sensitivity(float(changes.max()), gradients.explain_quantile_changes(tau, self.adjacency, changes))

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ), normalised; -inf outside [lo, hi] and where θ does not increase. Private: a function of the data.

        Of a split budget it is the density of the sorted vector, a sum over the orders in which the quantiles may have
        been drawn. Under jit and vmap; the normaliser does not depend on θ.

        **Arguments:** `theta`: shape (m,). `data`: from `prepare`. Raises ValueError for a split budget and m > 7.
        """
        theta, edges = jnp.asarray(theta), self.jumps(data)
        counts = jnp.searchsorted(edges[1:-1], theta, side="right")
        log_value = (self._joint_log_density if self._is_joint else self._split_log_density)(counts, edges)
        inside = jnp.all((edges[0] <= theta) & (theta <= edges[-1])) & jnp.all(jnp.diff(theta) >= 0.0)
        return jnp.where(inside, log_value, -jnp.inf)

    def _split_log_density(self, counts: Array, edges: Array) -> Array:
        size = self.dimension
        if size > MOST_ORDERED:
            raise ValueError(
                f"the density of {size} quantiles that were drawn by themselves and sorted is a sum over all their "
                f"orders, computed for at most {MOST_ORDERED}: use budget='joint', or one level at a time"
            )
        num_records = edges.shape[0] - 2

        def log_density_of(level: tuple[Array, Array]) -> Array:
            tau, rate = level
            log_mass = jax.scipy.special.logsumexp(_gap_log_masses(edges, tau, rate))
            return -rate * jnp.abs(counts - num_records * tau) - log_mass

        log_densities = jax.lax.map(log_density_of, (jnp.asarray(self.tau), self._rates()))
        orders = np.array(list(itertools.permutations(range(size))))
        return jax.scipy.special.logsumexp(jnp.sum(log_densities[np.arange(size)[None, :], orders], axis=1))

    def _joint_log_density(self, counts: Array, edges: Array) -> Array:
        num_records = edges.shape[0] - 2
        levels = jnp.concatenate([jnp.zeros(1), jnp.asarray(self.tau), jnp.ones(1)])
        ends = jnp.concatenate([jnp.zeros(1), counts, jnp.full(1, float(num_records))])
        rate = self._joint_rate()
        score = jnp.sum(jnp.abs(jnp.diff(ends) - num_records * jnp.diff(levels)))
        return -rate * score - log_normaliser(edges, jnp.asarray(self.tau), rate)

    def jumps(self, data: Data) -> Float[Array, " jumps"]:
        """The bounds and the values: between them f is constant, in every quantile. Private."""
        values = self._own(data, SortedValues).values
        lower, upper = (jnp.reshape(side, 1) for side in self.loss.response_interval(self.bounds))
        return jnp.concatenate([lower, jnp.asarray(values), upper])

    def _rates(self) -> Float[Array, " quantiles"]:
        """ε/(2Δ) of each quantile that is drawn by itself."""
        return self._part / (2.0 * gradients.quantile_changes(self.tau, self.adjacency))

    def rank_rates(self) -> Float[np.ndarray, " quantiles"]:
        """c of each quantile alone, where its density falls with its rank v as exp(-c|v|). Public."""
        with float64():
            # Jointly a rank is in two differences.
            joint = 2.0 * float(self._joint_rate()) if self._is_joint else None
            return np.full(self.dimension, joint) if joint is not None else np.asarray(self._rates())

    def _joint_rate(self) -> Float[Array, ""]:
        return self.epsilon / (2.0 * gradients.joint_quantile_sensitivity(self.tau, self.adjacency))

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """Independent draws, each in increasing order; always successful."""
        if self._is_joint:
            return self._joint_draws(data, key, num_draws), jnp.asarray(True)
        edges = self.jumps(data)
        uniforms = jax.random.uniform(key, (self.dimension, num_draws, 2))
        return _drawn_by_parts(edges, jnp.asarray(self.tau), self._rates(), uniforms), jnp.asarray(True)

    def _joint_draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Array:
        if is_traced(key, *jax.tree.leaves((self, data))):
            raise TypeError(
                "the joint law of several quantiles is drawn on the host and cannot be compiled or mapped: call it in "
                "a loop, or use budget='split'"
            )
        size, left = self.dimension, np.arange(num_draws)
        found = np.empty((num_draws, size))
        with float64():
            law = JointLaw.near(np.asarray(self.jumps(data)), np.asarray(self.tau), float(self._joint_rate()))
            while left.size:
                key, own = jax.random.split(key)
                drawn, is_kept = law.draws(np.array(jax.random.uniform(own, (left.size, 4 * size + 2))))
                found[left[is_kept]], left = drawn[is_kept], left[~is_kept]
        return jnp.asarray(found)


class SortedIntake(AbstractValuesIntake):
    """Takes each record as a value, and sorts the values."""

    def summarise(self, records: Records) -> SortedValues:
        """The responses in increasing order. O(n log n)."""
        return SortedValues.of(records)


class QuantileNoise(AbstractNoiseFacts):
    """Says what is known of the noise, which is on ranks."""

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """Derives the noise on quantiles from that on their ranks, of density ∝ exp(-c|v|).

        For several quantiles jointly, the differences of ranks have such a density.

        **Arguments:** `hessian`: diagonal, n times the density of the values at each quantile.
        """
        with float64():
            if self.mechanism._is_joint:
                ranks = laplace_bridge_variances(float(self.mechanism._joint_rate()), self.mechanism.dimension)
            else:
                ranks = 2.0 / np.square(np.asarray(self.mechanism._rates()))
        return ExpectedNoise.of_gradient_noise(hessian, np.diag(ranks))


def _levels(tau: Any) -> Array | np.ndarray:
    if is_traced(tau):
        return jnp.reshape(tau, -1)
    try:
        levels = np.atleast_1d(np.array(parameter(tau), dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"tau must be a number or a list of numbers, got {tau!r}") from None
    if levels.ndim != 1 or levels.size == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"tau must be one level or a list of levels strictly between 0 and 1, got {tau!r}")
    if np.any(np.diff(levels) <= 0):
        raise ValueError(f"the levels must increase, each given once: tau={sorted(set(levels.tolist()))}")
    return levels


def _gap_log_masses(edges: Array, tau: Array, rate: Array) -> Float[Array, " gaps"]:
    """log g_i - rate·|i - nτ|; -inf for gaps between equal values."""
    lengths = jnp.diff(edges)
    return jnp.log(lengths) - rate * jnp.abs(jnp.arange(lengths.size) - (lengths.size - 1) * tau)


@jax.jit
def _drawn_by_parts(
    edges: Array, tau: Array, rates: Array, uniforms: Float[Array, "quantiles draws 2"]
) -> Float[Array, "draws quantiles"]:
    """Draws levels one after the other, as each needs arrays of the size of the data, and sorts them."""
    thetas = jax.lax.map(lambda level: _gap_draws(edges, *level), (tau, rates, uniforms))
    return jnp.sort(thetas.T, axis=1)


def _gap_draws(edges: Array, tau: Array, rate: Array, uniforms: Float[Array, "draws 2"]) -> Float[Array, " draws"]:
    """A gap by inversion and a uniform point of it."""
    log_masses = _gap_log_masses(edges, tau, rate)
    cumulative = cumulative_sums(jnp.exp(log_masses - jnp.max(log_masses)))
    gaps = jnp.searchsorted(cumulative, uniforms[:, 0] * cumulative[-1], side="right")
    # Partial sums that are added up in parallel may differ by a rounding error across an empty gap: step off it.
    numbers = jnp.arange(log_masses.size)
    occupied = jax.lax.cummax(jnp.where(log_masses > -jnp.inf, numbers, 0))
    gaps = occupied[jnp.minimum(gaps, log_masses.size - 1)]
    left, right = edges[gaps], edges[gaps + 1]
    return jnp.clip(left + uniforms[:, 1] * (right - left), left, right)
