"""The K-norm gradient mechanism (Reimherr and Awan 2019, Theorem 3.1)."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.chains.target import Target
from kngjax.core.arrays import Scalar, float64
from kngjax.core.compiling import quick_compilation
from kngjax.data.bounds import Bounds
from kngjax.data.records import Data
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.reach import Reach, SinglePoint
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.density import AbstractDensityMechanism, Exponent
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import GradientNoise
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import order_domain, require_part
from kngjax.sensitivity import gradients, pointwise, weighted
from kngjax.sensitivity.gradients import Sensitivity


class KNG(AbstractDensityMechanism):
    """Draws θ with density f(θ) ∝ exp(-ε/(2Δ)·‖∇ℓ_n(θ; D)‖_K) ν(θ).

    ‖∇ℓ_n(θ; D)‖_K/Δ changes by at most 1 between neighbouring data sets, so a draw is ε-DP and (ε²/8)-zCDP (Reimherr
    and Awan 2019, Theorem 3.1). Proof: `docs/proofs/kng.md`.

    **Arguments:**

    - `loss`: ℓ of one record.
    - `bounds`: public bounds of one record.
    - `domain`: Θ with its base measure ν. Public.
    - `epsilon`: ε in nats, positive, at most 100 unless `allow_large_epsilon`.
    - `adjacency`: "replace" or "add_remove". Required.
    - `norm`: ‖·‖_K; None means the weighted l_inf norm whose unit ball is the box of possible gradient changes, for
        which Δ = 1. It is never worse than plain l_inf. For the geometric median it is the l2 norm. The norm of the
        least ball for which Δ = 1 is `sensitivity_set(loss, bounds, domain, adjacency).hull()`, for up to six
        coefficients.
    - `pointwise_sensitivity`: whether Δ may depend on θ, for losses whose score is bounded at each θ only (squared,
        expectile, Poisson; the mean under add_remove), without a norm of your own:
        f(θ) ∝ exp(-(ε/2)·max_j |∇_j ℓ_n|/w_j(θ)) ν(θ). It adds less noise where Θ is wide, and allows an unbounded Θ
        with a proper ν (Reimherr and Awan 2019, Remark 4.2).

    Raises ValueError where a proof would fail: no domain, no bounds that the loss needs, an infinite sensitivity.
    """

    loss: AbstractLoss
    bounds: Bounds
    domain: AbstractDomain
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)
    norm: AbstractNorm | None
    pointwise_sensitivity: bool = eqx.field(static=True)

    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    proofs: ClassVar[tuple[str, ...]] = ("kng", "sensitivities")

    def __init__(
        self,
        loss: AbstractLoss | None = None,
        bounds: Bounds | None = None,
        domain: AbstractDomain | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        norm: AbstractNorm | None = None,
        *,
        pointwise_sensitivity: bool = False,
        allow_large_epsilon: bool = False,
    ):
        self.loss = require_part("loss", loss)
        domain = require_part("domain", domain)
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.domain = order_domain(domain, self.bounds)
        self.norm = norm
        self.pointwise_sensitivity = pointwise_sensitivity

    def __check_init__(self):
        if self.pointwise_sensitivity and self.norm is not None:
            raise ValueError("pointwise_sensitivity has a norm of its own, max_j |v_j|/w_j(theta): leave norm out")
        if self.pointwise_sensitivity and not weighted.range_depends_on_theta(self.loss, self.bounds, self.adjacency):
            raise ValueError(
                f"the sensitivity of {type(self.loss).__name__} is the same for every theta: leave "
                "pointwise_sensitivity out"
            )
        self._check()

    @property
    def exponent(self) -> Exponent:
        return Exponent(self, "gradient", self.norm, self.pointwise_sensitivity)

    @property
    def noise(self) -> "KNGNoise":
        return KNGNoise(self)

    def _changes(self, dimension: int) -> Float[Array, " dimension"]:
        return gradients.gradient_changes(self.loss, self.bounds, self._reach(dimension), self.adjacency, dimension)

    def _reach(self, dimension: int) -> Reach:
        """Θ, or one point of it where there is no bound over all of R^d and a scale is all that is needed."""
        if self.pointwise_sensitivity and not self.domain.is_uniform:
            return SinglePoint(self.domain.interior_point(dimension))
        return self.domain

    def target(self, data: Data) -> Target:
        target = super().target(data)
        if not self.pointwise_sensitivity:
            return target
        score = pointwise.PointwiseSensitivity(self.loss, self.bounds, self.adjacency)
        return dataclasses.replace(target, pointwise=score)

    def score_norm(self, dimension: int) -> AbstractNorm:
        return gradients.default_norm(self.loss, self._changes(dimension)) if self.norm is None else self.norm

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        return gradients.gradient_sensitivity(
            self.loss, self.bounds, self._reach(dimension), self.adjacency, self.norm, dimension
        )

    def _record_range(self, dimension: int) -> Float[Array, ""]:
        """sup ‖∇ℓ‖_K of one record, as gradients of all records may cancel; infinite where the norm varies with θ."""
        if self.pointwise_sensitivity:
            return jnp.asarray(jnp.inf)
        norm = self.score_norm(dimension)
        return gradients.gradient_sensitivity(
            self.loss, self.bounds, self.domain, Adjacency.ADD_REMOVE, norm, dimension
        )

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        if self.pointwise_sensitivity:
            return Sensitivity(1.0, pointwise.explain_pointwise_sensitivity(self.adjacency))
        with float64(), quick_compilation():
            changes, norm = np.asarray(self._changes(dimension)), self.score_norm(dimension)
            value = float(self.sensitivity_value(dimension))
            derivation = gradients.explain_gradient_sensitivity(
                self.loss, self.bounds, self.domain, self.adjacency, norm, changes, value
            )
        return Sensitivity(value, derivation)


class KNGNoise(AbstractNoiseFacts):
    """Says what is known of the noise of KNG, from its asymptotic law and its K-norm noise."""

    def least(self, dimension: int, num_records: int | None) -> Float[np.ndarray, " dimension"]:
        """Bounds it where one record's gradient grows at a public rate."""
        mechanism = self.mechanism
        slope, norm = mechanism.loss.gradient_slope, mechanism.score_norm(dimension)
        if slope is None or not num_records:
            return np.zeros(dimension)
        # The law is exp(-(ε/2Δ)·c·Σw_i·‖θ - θ̂‖_K), with weights w_i of at most W.
        rate = slope * num_records * weighted.largest(mechanism.bounds) * mechanism.known_rate(dimension)
        return np.array([float(norm.dual(axis)) for axis in np.eye(dimension)]) / rate

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise | None:
        """Hθ̃ ≈ Hθ̂ + z with K-norm noise z of rate ε/(2Δ) (Theorem 3.2), on a Θ that does not bind."""
        return self.of_gradient(len(hessian)).expected(hessian) if self._has_one_law else None

    @property
    def _has_one_law(self) -> bool:
        return self.mechanism.domain.is_uniform and not self.mechanism.pointwise_sensitivity

    def of_gradient(self, dimension: int) -> GradientNoise:
        """Rate ε/(2Δ), where one rate serves all of a Θ that has no other weight."""
        if not self._has_one_law:
            raise ValueError(
                "the likelihood of a release of KNG needs a noise of one law over all of Θ: it is not served for "
                "pointwise_sensitivity, nor for a base measure that is not uniform"
            )
        with float64(), quick_compilation():
            rate = self.mechanism.known_rate(dimension)
            return GradientNoise(self.mechanism.score_norm(dimension), rate, 0.0, "minimum")
