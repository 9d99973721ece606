"""Output perturbation: the minimiser of a regularised loss plus Gaussian noise."""

import functools
import math
from typing import Any, ClassVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, float64, is_traced
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, Records, WeightedRecords
from kngjax.geometry.norms import L2
from kngjax.geometry.reach import Everywhere
from kngjax.losses.base import AbstractLoss, AbstractPredictorLoss
from kngjax.mechanisms.gaussian import AbstractGaussianMechanism, Metric
from kngjax.mechanisms.minimisers import WITHIN_TOLERANCE, tilted_minimiser
from kngjax.mechanisms.noise.calibration import gaussian_guarantee, largest_shift
from kngjax.mechanisms.parameters import check_count, check_delta, require_choice, require_part, require_positive
from kngjax.mechanisms.posterior_sample import PosteriorSample, largest_gamma
from kngjax.mechanisms.preparation import MAX_RECORDS, MAX_RECORDS_ASSUMPTION, TOO_MANY_RECORDS
from kngjax.sensitivity import gradients, moments
from kngjax.sensitivity.gradients import Sensitivity

# ‖∇J‖ at which the search for a minimiser stops, in units of the largest change of the gradient.
TOLERANCE = 1e-8
# The share of γ that a calibration gives away.
_GIVEN_AWAY = 1e-10


class OutputPerturbation(AbstractGaussianMechanism):
    """Releases θ̂ + N(0, A^{-1}/γ) with θ̂ = argmin ℓ_n(θ; D) + ½λ|θ|² over R^d; γ is the largest that is (ε, δ)-DP.

    `metric` chooses A. "identity", A = I, is the Gaussian mechanism, for ridge regression and every loss with a bounded
    score. The other two are for the squared loss, with H = X'X + λI. "hessian", A = H, has the law of
    `PosteriorSample`. "hessian_squared", A = H², is noise b ~ N(0, I/γ) in the objective, and needs a λ of many times
    X²/ε.

    Proof: `docs/proofs/output-perturbation.md`. A release of ridge regression has every rounding in its proof, unless
    there is a hull of very many facets.

    With weights up to W a bounded score is W times as large, and ridge regression takes √w·(x, y) for each record.

    **Arguments:** as for `KNG`, and

    - `regularization`: λ > 0. `delta`: δ, strictly between 0 and 1. `metric`: A.
    - `max_records`: for the squared loss a public number that n does not exceed; data with more are refused.

    Raises ValueError for a loss whose gradients are not bounded, and where no γ will do.
    """

    loss: AbstractLoss
    bounds: Bounds
    regularization: Scalar
    epsilon: Scalar
    delta: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    max_records: Scalar | None

    takes_weights: ClassVar[bool] = True
    proofs: ClassVar[tuple[str, ...]] = ("output-perturbation",)
    failures: ClassVar[tuple[str, ...]] = ("a minimiser that was not found",)
    advice: ClassVar[str] = (
        "no noise hides so many columns with this regularization, or the search for the minimiser did not reach its "
        f"tolerance, or {TOO_MANY_RECORDS}: scale the columns to similar public bounds, or give a larger regularization"
    )

    def __init__(
        self,
        loss: AbstractLoss | None = None,
        bounds: Bounds | None = None,
        regularization: Any = None,
        epsilon: Any = None,
        delta: Any = None,
        adjacency: str | Adjacency | None = None,
        metric: str = "identity",
        max_records: Any = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.loss = require_part("loss", loss)
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.regularization = require_positive("regularization", regularization, "λ, a positive number: the ridge")
        self.delta = check_delta(delta)
        self.metric = metric
        needed = self.loss.is_half_square or max_records is not None
        self.max_records = check_count("max_records", max_records, MAX_RECORDS) if needed else None

    def __check_init__(self):
        require_choice("metric", self.metric, get_args(Metric))
        name = type(self.loss).__name__
        if not isinstance(self.loss, AbstractPredictorLoss) or self.loss.score_is_piecewise_constant:
            raise ValueError(
                f"output perturbation is for smooth losses of a regression, and {name} is none: take KNG, "
                "PrivateQuantile or KNormMechanism"
            )
        if self.loss.is_quadratic and not self.loss.is_half_square:
            raise ValueError(
                f"output perturbation knows how far records move a ridge regression for the squared loss alone, and "
                f"{name} is another quadratic: take SquaredLoss with another regularization, or KNG"
            )
        if self.metric != "identity" and not self.loss.is_half_square:
            raise ValueError(f"metric={self.metric!r} is for the squared loss, whose Hessian does not depend on theta")
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        gamma = self.known_gamma(self.dimension or 1 + self.bounds.intercept)
        if not (math.isfinite(gamma) and gamma > 0.0):
            raise ValueError(
                f"no amount of noise makes {name} with these settings ({float(self.epsilon):g}, {float(self.delta):g})"
                "-differentially private: its gradients must be bounded (logistic, Huber and pseudo-Huber losses are; "
                "the squared loss with bounds of y), and with a metric that depends on the data the regularization "
                "must be many times the largest |x|^2/epsilon"
            )
        # Refuses what no Gaussian noise is known to hide.
        _ = self.guarantee

    @property
    def no_persons(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        if not self.loss.is_half_square and self.metric == "identity":
            return None
        return "of ridge regression and of a metric of the data its proof rests on the rank of one record's Hessian"

    @property
    def method(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Says how a value is drawn, in words."""
        how = "in closed form" if self.loss.is_half_square else "by Newton's method to a public tolerance"
        return f"The regularised minimiser, found {how}, plus exact Gaussian noise."

    @property
    def assumptions(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """States what the guarantee needs of the minimiser."""
        return (MAX_RECORDS_ASSUMPTION if self.loss.is_half_square else WITHIN_TOLERANCE,)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one draw; with noise of fixed covariance it is s-Gaussian DP."""
        if self.metric != "identity":
            return Guarantee.approximate(float(self.epsilon), float(self.delta), self.adjacency).of(
                self.bounds.protects
            )
        return gaussian_guarantee(self.epsilon, self.delta, self.adjacency).of(self.bounds.protects)

    def _gradient_change(self, dimension: int) -> Float[Array, ""]:
        reach = Everywhere()
        return gradients.gradient_sensitivity(self.loss, self.bounds, reach, self.adjacency, L2(), dimension)

    def tolerance(self, dimension: int) -> Float[Array, ""]:
        """‖∇J‖_2 at which the search for the minimiser stops; public."""
        return TOLERANCE * self._gradient_change(dimension)

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ: sup ‖θ̂' - θ̂‖_2, with what the search for a minimiser may add; runs under jit."""
        ridge = jnp.asarray(self.regularization)
        if self.loss.is_half_square:
            exchanges = 2.0 if self.adjacency is Adjacency.REPLACE else 1.0
            return exchanges * moments.ridge_changes(self.bounds, ridge, self._num_others, dimension)
        # Each of the two is within tolerance/λ of its minimiser.
        return (self._gradient_change(dimension) + 2.0 * self.tolerance(dimension)) / ridge

    @property
    def _num_others(self) -> Scalar:
        assert self.max_records is not None
        return jnp.asarray(self.max_records) - 1.0

    def gamma_for(self, dimension: int) -> Float[Array, ""]:
        if self.metric == "identity":
            shift = largest_shift(self.epsilon, self.delta)
            return jnp.square(shift / self.sensitivity_value(dimension))
        epsilon, delta = self.epsilon, self.delta
        if self.metric == "hessian":
            sample = PosteriorSample(
                self.bounds, self.regularization, 1.0, self.adjacency, self.max_records, self.delta
            )
            return largest_gamma(sample, epsilon, dimension)
        if self.adjacency is Adjacency.REPLACE:
            epsilon, delta = 0.5 * epsilon, delta / (1.0 + jnp.exp(0.5 * epsilon))
        x = moments.feature_radius(self.bounds, dimension)
        leverage = jnp.square(x) / self.regularization
        # The largest residual is that at half of the largest leverage.
        residual = moments.largest_ridge_residual(
            self.bounds, self.regularization, self._num_others, 0.5 * leverage, dimension
        )
        quantile = -jax.scipy.special.ndtri(0.25 * jnp.asarray(delta))
        room_left = jnp.asarray(epsilon) - jnp.log1p(leverage)
        width = jnp.sqrt(jnp.square(quantile) + 2.0 * jnp.maximum(room_left, 0.0)) - quantile - leverage * quantile
        # A little less, so that balls confirm what float64 solves for.
        return jnp.square(jnp.maximum(width, 0.0) / (x * residual)) * (1.0 - _GIVEN_AWAY)

    def epsilon_at(self, delta: Any, dimension: int | None = None) -> float | None:
        return float(self.epsilon) if float(delta) >= float(self.delta) else None

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of θ̂ in the l2 norm, with its derivation and γ."""
        (value, gamma), ridge = _known_facts(self, dimension), float(self.regularization)
        if self.loss.is_half_square:
            radii = moments.explain_radii(self.bounds, *moments.radii(self.bounds, dimension))
            why = f"with {radii}, and at most {int(self._num_others) + 1} records, it moves"
        else:
            why = (
                "the objective is lambda-strongly convex, so the minimiser, found to within the public tolerance, "
                f"moves by at most the largest change of the gradient over lambda = {ridge:.6g}:"
            )
        noise = {
            "identity": f"The noise of each coefficient has standard deviation {gamma**-0.5:.6g}, covariance I/gamma",
            "hessian": "The noise has covariance (gamma H)^-1, and epsilon takes in that H changes",
            "hessian_squared": "The noise has covariance (gamma H^2)^-1, and epsilon takes in that H changes",
        }[self.metric]
        return Sensitivity(value, f"{why} by at most {value:.6g} in the l2 norm. {noise}; gamma = {gamma:.6g}.")

    def known_gamma(self, dimension: int) -> float:
        """γ for d coefficients, computed once."""
        return _known_facts(self, dimension)[1]

    def minimiser(self, data: Data) -> tuple[Float[Array, " dimension"], Bool[Array, ""]]:
        """θ̂, NaN if it was not found, and whether it was. Private."""
        if self.loss.is_half_square:
            return super().minimiser(data)
        rows, tolerance = self._own(data, Records | WeightedRecords), self.tolerance(data.dimension)
        return tilted_minimiser(self.loss, rows, jnp.asarray(self.regularization), jnp.zeros(data.dimension), tolerance)


# By the mechanism's identity; a release asks several times.
@functools.lru_cache(maxsize=64)
def _known_facts(mechanism: OutputPerturbation, dimension: int) -> tuple[float, float]:
    with float64(), quick_compilation():
        change, gamma = map(float, _facts(mechanism, dimension))
    return change, gamma


@functools.partial(Compiled, static_argnames="dimension")
def _facts(mechanism: OutputPerturbation, dimension: int) -> tuple[Array, Array]:
    """Δ and γ."""
    return mechanism.sensitivity_value(dimension), mechanism.gamma_for(dimension)
