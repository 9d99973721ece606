"""The K-norm mechanism (Hardt and Talwar 2010): means or sums plus K-norm noise, exactly."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency, Guarantee
from kngjax.core.arrays import Scalar, Vector, float64, is_traced
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data, QuadraticSummary
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.mechanisms.expected_noise import ExpectedNoise, k_norm_covariance
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import check_epsilon, require_part
from kngjax.sensitivity import gradients, sums
from kngjax.sensitivity.gradients import Sensitivity

STATISTICS = ("mean", "sum")


class KNormMechanism(AbstractDirectMechanism):
    """Draws θ with density f(θ) ∝ exp(-(nε/Δ)·‖x̄ - θ‖_K) on R^d: the mean of n records plus K-norm noise.

    Δ is the sensitivity of Σx: exchanging one record moves it by at most u_j - l_j in coordinate j, whatever the
    centre of the box. With l1 as norm this is the Laplace mechanism.

    statistic="sum" draws the sum of the records, with density f(θ) ∝ exp(-(ε/Δ)·‖Σx - θ‖_K), in which n stands
    nowhere: so it serves under add_remove too, where one record more moves coordinate j by at most max(|l_j|, |u_j|).
    That is least for columns about the middle of their bounds; a column of ones is then the number of records.

    It is KNG on `SquaredDistanceLoss` without a domain, where ‖∇ℓ_n‖ = n‖θ - x̄‖: a location family, whose normaliser
    does not depend on the data, so the factor 2 of the exponential mechanism is not needed (Reimherr and Awan 2019,
    Remark 4.1): KNG at 2ε is K-norm at ε. Without it the law is not of bounded range: ε-DP is (ε²/2)-zCDP here.

    **Arguments:**

    - `bounds`: public bounds of one record, `Bounds(x={"age": (0, 99)}, intercept=False)`.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace", or of a sum "add_remove". For a mean n is private there, and no noise scaled by 1/n may be
      used: refused.
    - `norm`: ‖·‖_K; None means the weighted l_inf norm whose ball is the box of possible changes, for which Δ = 1.
    - `statistic`: "mean" or "sum"; of records with weights a sum, Σw·x, of which a column of ones gives Σw. A mean is
      its quotient by a total that is private under either adjacency, and is refused.
    """

    bounds: Bounds
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None
    statistic: str = eqx.field(static=True)

    has_regressors: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    def __init__(
        self,
        bounds: Bounds | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        statistic: str = "mean",
        *,
        allow_large_epsilon: bool = False,
    ):
        self.bounds = require_part("bounds", bounds)
        self.epsilon = check_epsilon(require_part("epsilon", epsilon), allow_large_epsilon)
        self.adjacency = Adjacency.parse(adjacency)
        self.norm = norm
        self.statistic = statistic

    def __check_init__(self):
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic must be one of {', '.join(map(repr, STATISTICS))}, got {self.statistic!r}")
        if self.adjacency is Adjacency.ADD_REMOVE and not self._is_sum:
            raise ValueError(
                "the K-norm mechanism adds noise of scale 1/n to the mean, and with add_remove n is private: use "
                "adjacency='replace', or KNG(SquaredDistanceLoss(), ...) on a bounded domain, or statistic='sum'"
            )
        if self.bounds.weight is not None and not self._is_sum:
            raise ValueError(
                "the sum of the weights is private, and no noise scaled by 1/n may be used on a weighted mean: use "
                "KNG(SquaredDistanceLoss(), ...) on a bounded domain, or statistic='sum'"
            )
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        with float64():
            changes = np.array(self._changes(self.dimension or 1))
        moves = changes > 0
        if not (np.any(moves) if self.norm is not None else np.all(moves)):
            raise ValueError(
                "a column of x has the same lower and upper bound, so that no record changes it and the box of "
                "possible changes has no volume: leave the column out, or name a norm"
            )

    @property
    def loss(self) -> SquaredDistanceLoss:
        """½‖x - θ‖², whose minimiser is the mean."""
        return SquaredDistanceLoss()

    @property
    def method(self) -> str:
        """Says how a value is drawn, in words."""
        return f"The {self.statistic} plus exact K-norm noise."

    @property
    def noise(self) -> "KNormNoise":
        # No record tells how far a sum of these records lies from a sum of others.
        return KNormNoise(self, has_known_error=not self._is_sum)

    @property
    def _is_sum(self) -> bool:
        return self.statistic == "sum"

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP of one draw, hence (ε²/2)-zCDP."""
        return Guarantee.pure(float(self.epsilon), self.adjacency)

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return sums.sum_changes(self.bounds, self.adjacency, dimension)

    def score_norm(self, dimension: int) -> AbstractNorm:
        """The norm of the noise."""
        return gradients.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ of Σx; runs under jit."""
        return sums.sum_sensitivity(self.bounds, self.adjacency, self.norm, dimension)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        """Δ of Σx, with its derivation."""
        with float64():
            changes, value = np.asarray(self._changes(dimension)), float(self.sensitivity_value(dimension))
            norm = self.score_norm(dimension)
        return Sensitivity(value, sums.explain_sum_sensitivity(norm, changes, value, self.adjacency, self.bounds))

    def noise_in_fractions(self, dimension: int, num_records: int) -> ScaledNorm | None:
        """Δ/(nε), of a sum Δ/ε, in the norm, with Δ in fractions; None for a hull and norms that turn axes.

        ε is the decimal number that it prints as.
        """
        if self.bounds.hull is not None:
            return None
        changes = sums.sum_changes_in_fractions(self.bounds, self.adjacency, dimension)
        rate = (1 if self._is_sum else num_records) * exactly(float(self.epsilon))
        if self.norm is None:
            return ScaledNorm("maximum", tuple(changes), 1 / rate**2)
        return self.norm.noise_in_fractions(changes, rate)

    def _rate(self, summary: QuadraticSummary) -> Float[Array, ""]:
        count = 1.0 if self._is_sum else summary.count
        return count * self.epsilon / self.sensitivity_value(summary.dimension)

    def _location(self, summary: QuadraticSummary) -> Float[Array, " dimension"]:
        """Σx or x̄."""
        return jnp.asarray(summary.moment) / (1.0 if self._is_sum else summary.count)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -(nε/Δ)·‖x̄ - θ‖_K - log ∫, normalised; of a sum alike. Private: a function of the data."""
        summary = _summary(data)
        norm, rate = self.score_norm(summary.dimension), self._rate(summary)
        return -rate * norm(self._location(summary) - jnp.asarray(theta)) - k_norm_log_mass(
            norm, rate, summary.dimension
        )

    def draws(
        self, data: Data, key: PRNGKeyArray, num_draws: int
    ) -> tuple[Float[Array, "draws dimension"], Bool[Array, ""]]:
        """x̄ + z, or Σx + z, with z from the K-norm density."""
        summary = _summary(data)
        norm = self.score_norm(summary.dimension)
        noise = k_norm_noise(norm, key, self._rate(summary), (num_draws,), summary.dimension)
        return jnp.broadcast_to(self._location(summary), noise.shape) + noise, jnp.asarray(True)


class KNormNoise(AbstractNoiseFacts):
    """Says what is known of the noise: all, as it does not depend on the records."""

    mechanism: "KNormMechanism"  # pyright: ignore[reportIncompatibleVariableOverride]

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise:
        """Gives the exact law of the error from K-norm noise of rate ε/Δ on Σx, whatever the records are."""
        dimension = len(hessian)
        with float64():
            rate = float(self.mechanism.epsilon) / float(self.mechanism.sensitivity_value(dimension))
            noise = k_norm_covariance(self.mechanism.score_norm(dimension), rate, dimension)
        return ExpectedNoise.of_gradient_noise(hessian, noise, is_exact=True)

    def of_gradient(self, dimension: int) -> GradientNoise:
        """nθ̃ - Σx is the noise itself, of rate ε/Δ."""
        if self.mechanism._is_sum:
            raise ValueError("the likelihood of a release is served for means, not for sums: statistic='mean'")
        with float64():
            rate = float(self.mechanism.epsilon) / float(self.mechanism.sensitivity_value(dimension))
            return GradientNoise(self.mechanism.score_norm(dimension), rate, 0.0, None)

    def typical_values(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """Centres a sum on 0, with the most that one record changes it as its size; a mean within its bounds.

        Nothing else is public of a sum of n records.
        """
        if not self.mechanism._is_sum:
            return super().typical_values(dimension)
        return np.zeros(dimension), np.asarray(self.mechanism._changes(dimension))

    def deviations(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"] | None:
        """Gives the standard deviation of the noise on each coordinate, where its law is known in fractions.

        The noise is a radius of a gamma law times a point of the ball or its surface. With independent coordinates, the
        l1 norm, the deviation is √2·λw_j. In a cube the radius is a sum of d + 1 exponential numbers,
        E r² = (d + 1)(d + 2), and a coordinate of the point has the mean square 1/3. On a sphere E r² is d(d + 1), and
        a coordinate's mean square 1/d.
        """
        count = 1 if self.mechanism._is_sum else num_records
        noise = self.mechanism.noise_in_fractions(dimension, count) if count else None
        if noise is None:
            return None
        squares = {"sum": 2.0, "maximum": (dimension + 1) * (dimension + 2) / 3.0, "length": dimension + 1.0}
        scale = np.sqrt(squares[noise.kind] * float(noise.scale_squared))
        return scale * np.array([float(weight) for weight in noise.weights])

    def least(self, dimension: int, num_records: int | None) -> Any:
        """Δ/(nε), of a sum Δ/ε, times how far the unit ball reaches in each coordinate: the scale of Laplace noise."""
        norm = self.mechanism.score_norm(dimension)
        rate = (1 if self.mechanism._is_sum else num_records or 0) * float(self.mechanism.epsilon)
        extents = np.array([float(norm.dual(axis)) for axis in np.eye(dimension)])
        return extents * (float(self.mechanism.sensitivity_value(dimension)) / rate if rate else 0.0)


def _summary(data: Data) -> QuadraticSummary:
    if not isinstance(data, QuadraticSummary):
        raise TypeError(f"the K-norm mechanism needs data from its own prepare, not {type(data).__name__}")
    return data
