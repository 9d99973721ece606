"""The exponential mechanism with the loss itself as score (McSherry and Talwar 2007)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Scalar, float64
from kngjax.data.bounds import Bounds
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractLoss
from kngjax.mechanisms.density import AbstractDensityMechanism, Exponent
from kngjax.mechanisms.expected_noise import ExpectedNoise
from kngjax.mechanisms.gradient_noise import NormalNoise
from kngjax.mechanisms.noise_facts import AbstractNoiseFacts
from kngjax.mechanisms.parameters import order_domain, require_part
from kngjax.sensitivity import gradients
from kngjax.sensitivity.gradients import Sensitivity

_IS_NORMAL = "as far as noise reaches the domain cuts nothing off and the loss is about quadratic"


class ExponentialMechanism(AbstractDensityMechanism):
    """Draws θ with density f(θ) ∝ exp(-ε/(2Δ)·ℓ_n(θ; D)) ν(θ).

    Δ is the range of one record's loss over Θ and the bounds (replace), or half of it (add_remove). So every loss needs
    bounds of x, y and Θ; the logistic loss needs none of y. The noise does not vanish beside the sampling error as n
    grows. Proof: `docs/proofs/kng.md` (Reimherr and Awan 2019, Proposition 2.2, for replace).

    In quantile regression with |x'θ| ≤ B and |y| ≤ 1 the exponent is ε/(2·max(τ, 1-τ)(1+B)). The paper prints 4 in
    place of 2, and so spends half of ε.

    **Arguments:** as for `KNG`, without a norm.
    """

    loss: AbstractLoss
    bounds: Bounds
    domain: AbstractDomain
    epsilon: Scalar
    adjacency: Adjacency = eqx.field(static=True)

    takes_weights: ClassVar[bool] = True
    no_persons: ClassVar[str | None] = None
    proofs: ClassVar[tuple[str, ...]] = ("kng",)

    def __init__(
        self,
        loss: AbstractLoss | None = None,
        bounds: Bounds | None = None,
        domain: AbstractDomain | None = None,
        epsilon: Any = None,
        adjacency: str | Adjacency | None = None,
        *,
        allow_large_epsilon: bool = False,
    ):
        self.loss = require_part("loss", loss)
        domain = require_part("domain", domain)
        self._set_parts(bounds, epsilon, adjacency, allow_large_epsilon)
        self.domain = order_domain(domain, self.bounds)

    def __check_init__(self):
        if self.bounds.y_lower is None and self.loss.value_needs_response_bounds:
            raise ValueError(
                f"the exponential mechanism on {type(self.loss).__name__} needs public bounds of the response, "
                "bounds=Bounds(..., y=(lower, upper)): one record's loss grows with y. KNG needs none for this loss"
                if not self.loss.needs_response_bounds
                else f"{type(self.loss).__name__} needs public bounds of the response, Bounds(..., y=(lower, upper))"
            )
        self._check()

    @property
    def exponent(self) -> Exponent:
        return Exponent(self, "loss")

    @property
    def noise(self) -> "ExponentialNoise":
        return ExponentialNoise(self)

    def score_norm(self, dimension: int) -> None:
        return None

    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        return gradients.value_sensitivity(self.loss, self.bounds, self.domain, self.adjacency, dimension)

    def _record_range(self, dimension: int) -> Float[Array, ""]:
        """The range of one record's loss."""
        return gradients.value_sensitivity(self.loss, self.bounds, self.domain, Adjacency.REPLACE, dimension)

    def sensitivity_for(self, dimension: int) -> Sensitivity:
        with float64():
            value = float(self.sensitivity_value(dimension))
        return Sensitivity(value, gradients.explain_value_sensitivity(self.bounds, self.adjacency, value))


class ExponentialNoise(AbstractNoiseFacts):
    """Says what is known of the noise, as normal about the estimate without privacy."""

    def expected(self, hessian: np.ndarray, num_records: int) -> ExpectedNoise | None:
        """θ̃ ≈ N(θ̂, (2Δ/ε)·H^{-1}), on a Θ that does not bind."""
        if not self.mechanism.domain.is_uniform:
            return None
        return ExpectedNoise.of_gradient_noise(hessian, hessian / self.mechanism.known_rate(len(hessian)))

    def of_error(self, dimension: int, published: Mapping[str, np.ndarray]) -> NormalNoise:
        """Approximates the law of z = H(θ̃ - θ̂) by N(0, H/c), with c = ε/(2Δ).

        The density is ∝ exp(-c·ℓ_n), and near θ̂ about that of N(θ̂, (cH)^{-1}).
        """
        if not self.mechanism.domain.is_uniform or self.mechanism.loss.score_is_piecewise_constant:
            raise ValueError(
                "intervals of the exponential mechanism are of smooth losses on a domain without a weight of its own, "
                "where its law is about normal: give a Box or a ball and a smooth loss, or KNG"
            )
        return NormalNoise(self.mechanism.known_rate(dimension), 1, assumptions=(_IS_NORMAL,))
