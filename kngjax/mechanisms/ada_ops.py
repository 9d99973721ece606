"""AdaOPS: one posterior sample of linear regression whose ridge and scale adapt to the data, privately."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, PRNGKeyArray

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced, parameter
from kngjax.core.bisection import bisect
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, QuadraticSummary
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.base import RESTS_ON_RANK
from kngjax.mechanisms.direct import AbstractDirectMechanism, Drawn
from kngjax.mechanisms.gradient_noise import NormalNoise
from kngjax.mechanisms.noise.calibration import posterior_sample_gamma, renyi_budget
from kngjax.mechanisms.noise.gaussian_profiles import posterior_sample_renyi
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import check_delta
from kngjax.sensitivity import moments
from kngjax.sensitivity.gradients import Sensitivity

# The ridge is such that the bound on residuals exceeds what it bounds by e^½ at most, noise apart, and that a
# posterior's covariance spends half of the last stage's budget at most.
_LARGEST_EXCESS, _COVARIANCE_SHARE = 0.5, 0.5
# The least ridge in units of X², so that H is invertible even where λ̃ exceeds λ_min, with probability δ₁.
LEAST_RIDGE = 1e-6


class AdaOPSPlan(NamedTuple):
    """Holds the settings of `AdaOPS` that are public before the data are seen.

    **Arguments:** `order`, `budget`: α, and R of the last stage. `tail`: z.
    """

    order: Array
    budget: Array
    eigenvalue_deviation: Array
    bound_shift: Array
    tail: Array
    least_curvature: Array


class Tuning(NamedTuple):
    """Holds the values that the first two stages choose: λ, h ≤ λ + λ_min, L ≥ Y + X‖θ̂_λ‖, and γ."""

    ridge: Array
    curvature: Array
    bound: Array
    gamma: Array


class AdaOPS(AbstractDirectMechanism):
    """Draws θ ~ N(θ̂_λ, (γH)^{-1}) with H = X'X + λI and θ̂_λ = H^{-1}X'y, where λ and γ are chosen privately.

    1. λ̃ = λ_min(X'X) + σ₁Z₁ - X² - zσ₁; λ is the least that makes h = λ + max(λ̃, 0) a public h₀ at least.
    2. log L = log(Y + X‖θ̂_λ‖) + σ₂Z₂ + a + zσ₂, with a = log(1 + X²/h) and σ₂ in proportion to a.
    3. γ is the largest for which the Rényi divergence of order α of two posteriors is at most R for every record with
       leverage μ ≤ X²/h and residual |r| ≤ L; θ as above.

    A release publishes λ and γ beside θ. The guarantee covers the three stages together.

    Proof: `docs/proofs/ada-ops.md`. The bound is not tight. The worst designs that a search found spend a twentieth to
    a fifth of δ, and a thousandth under `replace`. Wang (2019) introduced AdaOPS; none of that paper's constants is
    used.

    **Arguments:**

    - `bounds`: public bounds of one record, of x and of y.
    - `epsilon`, `delta`: of the release; ε in nats, positive, at most 100 unless `allow_large_epsilon`; 0 < δ < 1.
    - `adjacency`: "add_remove" or "replace".
    - `shares`: of the Rényi budget, for λ̃ and for L: two positive numbers of sum below 1. Smaller shares are better for
      larger n.
    - `failure_share`: δ₁/δ for each of the two events, between 0 and ½.

    θ is in all of R^d, and no domain is needed. With weights of records X'X is Σ w xx', and a record is √w·(x, y).
    """

    bounds: Bounds
    epsilon: Scalar
    delta: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    shares: Float[Array, "2"] | Float[np.ndarray, "2"]
    failure_share: Scalar

    # Its sum with ½λ|θ|² has the minimiser θ̂_λ.
    loss: ClassVar[SquaredLoss] = SquaredLoss()
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = RESTS_ON_RANK
    proofs: ClassVar[tuple[str, ...]] = ("ada-ops",)

    method: ClassVar[str] = "One draw from a Gaussian posterior, with a ridge and a scale from private bounds."

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        delta: Any = None,
        adjacency: str | Adjacency | None = None,
        shares: Any = (0.1, 0.1),
        failure_share: Any = 0.1,
        *,
        allow_large_epsilon: bool = False,
    ):
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.delta = check_delta(delta)
        self.shares, self.failure_share = parameter(shares), parameter(failure_share)

    def __check_init__(self):
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        shares, failure = np.asarray(self.shares), np.asarray(self.failure_share)
        if shares.shape != (2,) or not np.all(shares > 0) or not shares.sum() < 1:
            raise ValueError(f"shares must be two positive numbers of sum below 1, got {shares.tolist()}")
        if failure.shape != () or not 0 < failure < 0.5:
            raise ValueError(f"failure_share must be one number strictly between 0 and 1/2, got {failure.tolist()}")
        with float64():
            plan = jax.tree.map(float, self.plan(self.dimension or 1 + self.bounds.intercept))
        if not all(math.isfinite(part) and part > 0 for part in plan):
            raise ValueError(
                f"epsilon = {float(self.epsilon):g} with delta = {float(self.delta):g} leaves no budget for these "
                "shares: give a larger delta or epsilon"
            )

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one draw."""
        return Guarantee.approximate(float(self.epsilon), float(self.delta), self.adjacency).of(self.bounds.protects)

    def plan(self, dimension: int) -> AdaOPSPlan:
        """α, R, the noise of the first two stages and h₀, from public settings; runs under jit."""
        epsilon, delta = jnp.asarray(self.epsilon), jnp.asarray(self.delta)
        if self.adjacency is Adjacency.REPLACE:
            epsilon = 0.5 * epsilon
            # δ/(1 + e^ε), rounded down.
            delta = delta * jax.nn.sigmoid(-epsilon) * (1.0 - 2.0**-50)
        order, total = renyi_budget(epsilon, (1.0 - 2.0 * self.failure_share) * delta)
        budget = (1.0 - jnp.sum(jnp.asarray(self.shares))) * total
        # A Gaussian shift of s deviations spends αs²/2.
        eigenvalue_shift, bound_shift = (jnp.sqrt(2.0 * share * total / order) for share in self.shares)
        tail = -ndtri(self.failure_share * delta)
        change = moments.eigenvalue_change(self.bounds, dimension)
        # The largest leverages at which a(1 + z/s) ≤ ½, and at which the covariance spends half of R.
        by_bound = jnp.expm1(_LARGEST_EXCESS / (1.0 + tail / bound_shift))
        by_covariance = _largest_leverage(order, _COVARIANCE_SHARE * budget)
        least_curvature = change / jnp.minimum(by_bound, by_covariance)
        return AdaOPSPlan(order, budget, change / eigenvalue_shift, bound_shift, tail, least_curvature)

    @property
    def noise(self) -> "AdaOPSNoise":
        return AdaOPSNoise(self, publishes=("gamma", "ridge"))

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """The sensitivity of λ_min; the derivation says what the other stages rest on."""
        with float64():
            x, y = moments.radii(self.bounds, dimension)
            change = float(moments.eigenvalue_change(self.bounds, dimension))
            plan = jax.tree.map(float, self.plan(dimension))
        halves = ", at half of epsilon, since an exchange is a removal and an addition"
        return Sensitivity(
            change,
            f"{moments.explain_radii(self.bounds, x, y)}, so one record more or less moves the smallest eigenvalue of "
            f"X'X by at most {change:.6g} (noise of deviation {plan.eigenvalue_deviation:.6g}). With h the private "
            f"lower bound of the smallest eigenvalue of X'X + lambda*I, at least {plan.least_curvature:.6g}, it moves "
            f"log(Y + X|theta|) by at most log(1 + X^2/h) (noise of 1/{plan.bound_shift:.6g} times that), and has a "
            f"leverage of at most X^2/h and a residual of at most the private upper bound of Y + X|theta|; for these "
            f"the Renyi divergence of order {plan.order:.6g} between the posteriors is at most {plan.budget:.6g}"
            f"{halves if self.adjacency is Adjacency.REPLACE else ''}.",
        )

    def tuning(self, values: Vector, moment: Vector, normals: Any) -> Tuning:
        """λ, h, L and γ for the draws Z₁, Z₂. Private: for tests and research.

        **Arguments:** `values`: the eigenvalues of X'X in increasing order, shape (d,). `moment`: X'y in the basis of
        its eigenvectors, shape (d,). `normals`: shape (2, draws).
        """
        values, moment, dimension = jnp.asarray(values), jnp.asarray(moment), values.shape[0]
        plan = self.plan(dimension)
        x, y = moments.feature_radius(self.bounds, dimension), moments.response_radius(self.bounds)
        deviation = plan.eigenvalue_deviation
        lower = values[0] - moments.eigenvalue_change(self.bounds, dimension) + deviation * (normals[0] - plan.tail)
        lower = jnp.maximum(lower, 0.0)
        ridge = jnp.maximum(plan.least_curvature - lower, LEAST_RIDGE * jnp.square(x))
        curvature = ridge + lower
        length = jnp.linalg.norm(moment[:, None] / (values[:, None] + ridge[None]), axis=0)
        change = moments.residual_log_change(self.bounds, curvature, dimension)
        bound = (y + x * length) * jnp.exp(change * (1.0 + (normals[1] + plan.tail) / plan.bound_shift))
        gamma = posterior_sample_gamma(plan.order, plan.budget, jnp.square(x) / curvature, bound)
        return Tuning(ridge, curvature, bound, gamma)

    def draws(self, data: Data, key: PRNGKeyArray, num_draws: int) -> Drawn:
        """θ of independent runs of all three stages."""
        summary = self._own(data, QuadraticSummary)
        values, vectors = jnp.linalg.eigh(jnp.asarray(summary.gram))
        values, moment = jnp.maximum(values, 0.0), vectors.T @ jnp.asarray(summary.moment)
        tuning_key, sample_key = jax.random.split(key)
        tuned = self.tuning(values, moment, jax.random.normal(tuning_key, (2, num_draws)))
        curvatures = values[:, None] + tuned.ridge[None]
        normals = jax.random.normal(sample_key, (data.dimension, num_draws))
        thetas = vectors @ (moment[:, None] / curvatures + normals / jnp.sqrt(tuned.gamma[None] * curvatures))
        return thetas.T, jnp.all(jnp.isfinite(thetas))


class AdaOPSNoise(AbstractNoiseFacts):
    """Says what is known of the noise of a draw, given λ and γ."""

    def of_error(self, dimension: int, published: Mapping[str, np.ndarray]) -> NormalNoise:
        """Gives the law of the gradient at a draw from N(θ̂_λ, (γH)^{-1}), with the published λ and γ.

        Before a release they are those of X'X = 0, X'y = 0 and noise of 0.
        """
        if published:
            return NormalNoise(float(published["gamma"]), 1, float(published["ridge"]))
        with float64():
            tuned = self.mechanism.tuning(jnp.zeros(dimension), jnp.zeros(dimension), jnp.zeros((2, 1)))
        return NormalNoise(float(tuned.gamma[0]), 1, float(tuned.ridge[0]))


@jax.jit
def _largest_leverage(order: Array, divergence: Array) -> Float[Array, ""]:
    """μ at which the covariances alone, with r = 0, spend this much, from below."""

    def fits(leverage: Array) -> Array:
        return posterior_sample_renyi(order, leverage, 0.0, 1.0) <= divergence

    return bisect(fits, jnp.zeros_like(order), 1.0 / (order - 1.0), 60)[0]
