"""Releases one posterior sample (OPS) of ridge regression: a draw from a Gaussian posterior as a private estimate."""

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, QuadraticSummary
from kngjax.losses.squared import SquaredLoss
from kngjax.mechanisms.base import RESTS_ON_RANK
from kngjax.mechanisms.gaussian import AbstractGaussianMechanism
from kngjax.mechanisms.noise import gaussian_profiles
from kngjax.mechanisms.parameters import (
    LARGEST_SENSIBLE_EPSILON,
    check_count,
    check_delta,
    check_epsilon,
    require_part,
    require_positive,
)
from kngjax.mechanisms.preparation import MAX_RECORDS, MAX_RECORDS_ASSUMPTION, TOO_MANY_RECORDS
from kngjax.sensitivity import moments
from kngjax.sensitivity.gradients import Sensitivity

# The number of cells of leverages, over each of which the profile is bounded, and of rounds that refine the worst.
_CELLS, _ROUNDS = 1024, 4
# The relative error by which a residual and ε are rounded outward, and the share of γ that a calibration gives away.
_ROUNDING, _GIVEN_AWAY = 1e-14, 1e-9


class PosteriorSample(AbstractGaussianMechanism):
    """Draws θ ~ N(θ̂, (γH)^{-1}) with H = X'X + λI and θ̂ = H^{-1}X'y: one sample of a posterior of linear regression.

    It is the posterior of y | X, θ ~ N(Xθ, I/γ) with the prior θ ~ N(0, I/(γλ)). Mean and covariance both depend on the
    data, so this is no Gaussian mechanism. The exact privacy profile of one record follows from its leverage μ and its
    residual r (`kngjax.mechanisms.noise.gaussian_profiles.posterior_sample_log_delta`).

    The guarantee is the largest of these profiles over μ ≤ X²/λ and over the residuals that n records within the bounds
    allow. Proof: `docs/proofs/posterior-sample.md`. An exchange is a removal and an addition, so `replace` has
    δ(ε) ≤ (1 + e^{ε/2})·δ(ε/2) of `add_remove`, which falls below δ for some ε only if λ is well above X².

    The guarantee weakens as n grows, since θ̂ may grow with √n. So `max_records` is a public promise. Most data lose far
    less than this worst case (`kngjax.per_instance_privacy`). `AdaOPS` adapts its noise to the data.

    **Arguments:**

    - `bounds`: public bounds of one record, of x and of y.
    - `regularization`: λ > 0, in the units of x².
    - `gamma`: γ > 0, the inverse of a variance of y; the noise is (γH)^{-1}.
    - `adjacency`: "add_remove" or "replace".
    - `max_records`: a public number that n does not exceed; data with more are refused.
    - `delta`: δ at which `guarantee` states ε, strictly between 0 and 1.
    - `allow_large_epsilon`: whether that ε may exceed 100, beyond which `guarantee`, and so `release`, refuse.

    `PosteriorSample.calibrated` finds the largest γ for given (ε, δ). With weights each record counts as √w·(x, y).
    """

    bounds: Bounds
    regularization: Scalar
    gamma: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    max_records: Scalar
    delta: Scalar
    allow_large_epsilon: bool = eqx.field(static=True)

    # Its sum with ½λ|θ|² has the minimiser θ̂.
    loss: ClassVar[SquaredLoss] = SquaredLoss()
    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = RESTS_ON_RANK
    proofs: ClassVar[tuple[str, ...]] = ("posterior-sample",)

    metric: ClassVar[str] = "hessian"
    assumptions: ClassVar[tuple[str, ...]] = (MAX_RECORDS_ASSUMPTION,)
    advice: ClassVar[str] = f"nothing is released: {TOO_MANY_RECORDS}, or X'X + regularization*I is singular"
    method: ClassVar[str] = "An exact draw from the Gaussian posterior by one Cholesky factor."

    def __init__(
        self,
        bounds: Bounds | None = None,
        regularization: Any = None,
        gamma: Any = None,
        adjacency: str | Adjacency | None = None,
        max_records: Any = None,
        delta: Any = 1e-6,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.allow_large_epsilon = bool(allow_large_epsilon)
        self.bounds = require_part("bounds", bounds)
        self.regularization = require_positive(
            "regularization", regularization, "λ, a positive number in the units of x²"
        )
        self.gamma = require_positive("gamma", gamma, "γ, a positive number: the inverse of a variance of y")
        self.adjacency = Adjacency.parse(adjacency)
        self.max_records = check_count("max_records", max_records, MAX_RECORDS)
        self.delta = check_delta(delta)

    def __check_init__(self):
        if not is_traced(*jax.tree.leaves(self)):
            self._check_parts()

    @classmethod
    def calibrated(
        cls,
        bounds: Bounds,
        regularization: Any,
        epsilon: Any,
        delta: Any,
        adjacency: str | Adjacency,
        max_records: Any,
        dimension: int | None = None,
    ) -> "PosteriorSample":
        """The mechanism with the largest γ that is (ε, δ)-DP.

        **Arguments:** as for the class; `dimension`: d with the intercept, where scalar bounds leave it open. Raises
        ValueError where no γ will do: the covariance reveals a record of leverage X²/λ even as γ → 0.
        """
        number = float(check_epsilon(require_part("epsilon", epsilon), allow_large_epsilon=None))
        with float64(), quick_compilation():
            first = cls(bounds, regularization, 1.0, adjacency, max_records, delta)
            known = first._require_dimension(dimension)
            # Data with other columns have another X, for which this γ is not calibrated: they are refused.
            bounds = bounds.for_dimension(known)
            first = eqx.tree_at(lambda part: part.bounds, first, bounds)
            gamma = float(largest_gamma(first, np.asarray(number), known))
        if not gamma > 0.0:
            raise ValueError(
                f"no gamma makes this ({number:g}, {float(first.delta):g})-differentially private: a record may change "
                "the covariance of the posterior too much. Give a larger regularization"
            )
        given_away = _GIVEN_AWAY
        while given_away < 1.0:
            mechanism = cls(bounds, regularization, gamma, adjacency, max_records, delta)
            # The ε that the guarantee states comes from another search, and has to fit the budget too.
            if mechanism.epsilon_at(mechanism.delta) <= number:
                return mechanism
            gamma, given_away = gamma * (1.0 - given_away), 10.0 * given_away
        raise ValueError(
            f"no gamma was found for which ({number:g}, {float(first.delta):g}) holds with certainty: give a larger "
            "regularization"
        )

    @property
    def epsilon(self) -> Scalar:  # pyright: ignore[reportIncompatibleVariableOverride]
        """ε at this δ, in the worst case."""
        return np.asarray(self.epsilon_at(self.delta))

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one draw at the mechanism's own δ; ε by a search that ends above it."""
        return self.guarantee_for(self._require_dimension(None))

    def guarantee_for(self, dimension: int) -> Guarantee:
        """The guarantee for d coefficients: X grows with the columns that scalar bounds leave open."""
        epsilon = _stated_epsilon(self, dimension)
        if not epsilon <= LARGEST_SENSIBLE_EPSILON and not self.allow_large_epsilon:
            raise ValueError(
                f"in the worst case epsilon is {epsilon:g}, which promises nothing that anybody would call privacy: "
                "give a larger regularization or a smaller gamma (PosteriorSample.calibrated finds the largest); if "
                "this is an experiment, say allow_large_epsilon=True"
            )
        return Guarantee.approximate(epsilon, float(self.delta), self.adjacency).of(self.bounds.protects)

    def known_gamma(self, dimension: int) -> float:
        """γ, which does not depend on d here."""
        return float(self.gamma)

    def gamma_for(self, dimension: int) -> Float[Array, ""]:
        return jnp.asarray(self.gamma)

    def at_epsilon(self, epsilon: float) -> "PosteriorSample | None":
        """Returns the mechanism with the largest γ that is (ε, δ)-DP at the same δ and λ; None where no γ is."""
        with float64(), quick_compilation():
            gamma = float(largest_gamma(self, np.asarray(float(epsilon)), self._require_dimension(None)))
        return eqx.tree_at(lambda one: one.gamma, self, np.asarray(gamma)) if gamma > 0.0 else None

    def delta_at(self, epsilon: Any, dimension: int | None = None) -> float:
        """δ for which the mechanism is (ε, δ)-DP in the worst case. **Arguments:** `dimension`: d where it is open."""
        if not 0.0 <= float(epsilon) < math.inf:
            raise ValueError(f"epsilon must be one number, at least 0 and finite, got {epsilon}")
        with float64(), quick_compilation():
            d = self._require_dimension(dimension)
            return float(jnp.exp(_worst_log_delta(self, jnp.asarray(float(epsilon)), d)))

    def epsilon_at(self, delta: Any, dimension: int | None = None) -> float:
        """The smallest ε for which it is (ε, δ)-DP in the worst case. **Arguments:** as for `delta_at`."""
        with float64(), quick_compilation():
            known = self._require_dimension(dimension)
            return float(_least(self, np.zeros(()), np.asarray(float(check_delta(delta))), False, known))

    def _require_dimension(self, dimension: int | None) -> int:
        known = self.dimension or dimension
        if known is None:
            raise ValueError(
                "the guarantee depends on the number of columns, which scalar bounds leave open: give bounds.x one "
                "value a column, or pass dimension (intercept included)"
            )
        return known

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """sup √μ|r|/(1+μ): the largest change of θ̂ in the norm of H, of the smaller data set; runs under jit."""
        leverages = _leverages(self, dimension)
        residuals = _residuals(self, leverages, dimension)
        return jnp.max(jnp.sqrt(leverages) * residuals / (1.0 + leverages))

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Bounds how far θ̂ may move, with the leverages and residuals behind it in words."""
        with float64(), quick_compilation():
            value, x, y, residual = (float(fact) for fact in _facts(self, dimension))
        n, most = int(self.max_records), x**2 / float(self.regularization)
        return Sensitivity(
            value,
            f"one record has {moments.explain_radii(self.bounds, x, y)}, so its leverage is at most X^2/lambda = "
            f"{most:.6g}, and with at most {n} records its residual at most {residual:.6g}; where it comes or goes the "
            f"estimate moves by at most {value:.6g} in the norm of H. Epsilon takes in that H changes too.",
        )

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -(γ/2)(θ-θ̂)'H(θ-θ̂) + ½log det(γH/2π), normalised. Private: a function of the data."""
        import numpyro.distributions as dist

        mean, precision = self.minimiser(data)[0], self.gamma * self.precision(data)
        return dist.MultivariateNormal(mean, precision_matrix=precision).log_prob(jnp.asarray(theta))

    def numpyro_model(self, data: Data) -> Callable[[], None]:
        """The regression whose posterior this is, as a NumPyro model with one site, `theta`, for NUTS. Private.

        The prior is N(0, I/(γλ)), and the likelihood's factor is -(γ/2)(θ'X'Xθ - 2θ'X'y).
        """
        import numpyro
        import numpyro.distributions as dist

        summary = self._own(data, QuadraticSummary)

        def model() -> None:
            scale = jnp.full(data.dimension, 1.0 / jnp.sqrt(self.gamma * self.regularization))
            theta = numpyro.sample("theta", dist.Normal(jnp.zeros(data.dimension), scale).to_event(1))
            fit = 0.5 * theta @ (jnp.asarray(summary.gram) @ theta) - theta @ jnp.asarray(summary.moment)
            numpyro.factor("likelihood", -self.gamma * fit)

        return model

    def proved_at(self, epsilon: float) -> "PosteriorSample":
        return _proved_at(self, float(epsilon))


# By the mechanism's identity; a release asks several times.
@functools.lru_cache(maxsize=64)
def _stated_epsilon(mechanism: PosteriorSample, dimension: int) -> float:
    return mechanism.epsilon_at(mechanism.delta, dimension)


@functools.lru_cache(maxsize=64)
def _proved_at(mechanism: PosteriorSample, epsilon: float) -> PosteriorSample:
    parts = mechanism.delta, mechanism.adjacency, mechanism.max_records, mechanism.dimension
    return PosteriorSample.calibrated(mechanism.bounds, mechanism.regularization, epsilon, *parts)


@functools.partial(Compiled, static_argnames="dimension")
def _facts(mechanism: PosteriorSample, dimension: int) -> tuple[Array, ...]:
    """Δ, X, Y and the largest |r|."""
    bounds = mechanism.bounds
    radii = moments.feature_radius(bounds, dimension), moments.response_radius(bounds)
    residual = jnp.max(_residuals(mechanism, _leverages(mechanism, dimension), dimension))
    return mechanism.sensitivity_value(dimension), *radii, residual


def _leverages(mechanism: PosteriorSample, dimension: int) -> Float[Array, " leverages"]:
    """Ends of cells up to X²/λ, from where leverage and residual are of little account."""
    most = jnp.square(moments.feature_radius(mechanism.bounds, dimension)) / mechanism.regularization
    least = most / (1e3 * (1.0 + most) * mechanism.max_records)
    return jnp.exp(jnp.linspace(jnp.log(least), jnp.log(most), _CELLS)).at[-1].set(most * (1.0 + _ROUNDING))


def _residuals(mechanism: PosteriorSample, leverages: Array, dimension: int) -> Float[Array, " leverages"]:
    # `max_records` bounds the larger neighbour; one of its records is the target.
    others = mechanism.max_records - 1.0
    return moments.largest_ridge_residual(mechanism.bounds, mechanism.regularization, others, leverages, dimension)


@functools.partial(Compiled, static_argnames="dimension")
def _worst_log_delta(mechanism: PosteriorSample, epsilon: Array, dimension: int) -> Float[Array, ""]:
    """log δ(ε) for the worst record, at most 0, or for replace the bound by a removal and an addition.

    Proof: `docs/proofs/posterior-sample.md`.
    """
    replace = mechanism.adjacency is Adjacency.REPLACE
    step = 0.5 * epsilon if replace else epsilon
    turn = 0.5 * jnp.square(moments.feature_radius(mechanism.bounds, dimension)) / mechanism.regularization

    def refine(_, search):
        ends, attained, _ = search
        lower, upper = ends[:-1], ends[1:]
        largest = _residuals(mechanism, jnp.clip(turn, lower, upper), dimension)
        largest *= jnp.sqrt((1.0 + upper) / (1.0 + lower)) * (1.0 + _ROUNDING)
        residuals = jnp.stack([largest, _residuals(mechanism, upper, dimension)])
        bounds, values = gaussian_profiles.posterior_sample_log_delta(step, upper[None], residuals, mechanism.gamma)
        attained, worst_cell = jnp.maximum(attained, jnp.max(values)), jnp.argmax(bounds)
        is_open = bounds >= jnp.minimum(attained, bounds[worst_cell])
        first, last = jnp.argmax(is_open), bounds.size - 1 - jnp.argmax(is_open[::-1])
        # The last end is kept as it is: rounding must not make the window smaller.
        inner = lower[first] + (upper[last] - lower[first]) * jnp.arange(_CELLS) / _CELLS
        return jnp.append(inner, upper[last]), attained, jnp.maximum(bounds[worst_cell], attained)

    leverages = _leverages(mechanism, dimension)
    start = jnp.concatenate([jnp.zeros(1), leverages]), jnp.asarray(-jnp.inf), jnp.asarray(0.0)
    *_, worst = jax.lax.fori_loop(0, _ROUNDS, refine, start)
    return jnp.minimum((worst + jnp.logaddexp(0.0, step)) * (1.0 - _ROUNDING) if replace else worst, 0.0)


@functools.partial(Compiled, static_argnames="dimension")
def _least(
    mechanism: PosteriorSample, epsilon: Scalar, delta: Scalar, is_variance: Bool[Array, ""], dimension: int
) -> Float[Array, ""]:
    """The smallest 1/γ that meets (ε, δ), or the smallest ε of this mechanism: one program for both.

    δ increases with γ: the means move apart in units of their spread, and the ratio of the spreads stays. So what is
    a little smaller than a γ that meets δ meets it too.
    """

    def profile(trial: Array) -> Array:
        gamma = jnp.where(is_variance, 1.0 / jnp.maximum(trial, 1e-200), mechanism.gamma)
        at_gamma = eqx.tree_at(lambda part: part.gamma, mechanism, gamma)
        return _worst_log_delta(at_gamma, jnp.where(is_variance, epsilon, trial), dimension)

    return gaussian_profiles.epsilon_at(profile, jnp.log(delta), jnp.ones(()))


def largest_gamma(mechanism: PosteriorSample, epsilon: Scalar, dimension: int) -> Float[Array, ""]:
    """The largest γ at which ε meets the mechanism's δ, 0 if none does."""
    return (1.0 - _ROUNDING) / _least(mechanism, epsilon, mechanism.delta, True, dimension)
