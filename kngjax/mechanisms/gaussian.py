"""Mechanisms that add Gaussian noise to the minimiser of a regularised loss."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar
from kngjax.mechanisms.direct import AbstractDirectMechanism


class AbstractGaussianMechanism(AbstractDirectMechanism):
    """θ̂ + N(0, A^{-1}/γ) with θ̂ = argmin ℓ_n(θ; D) + ½λ|θ|²: its change by one record is known.

    `regularization`: λ. `metric`: A, "identity" for I, "hessian" for H = ∇²ℓ_n + λI or "hessian_squared" for H².
    `max_records`: a public number that n does not exceed, or None where none is needed.
    """

    regularization: eqx.AbstractVar[Scalar]
    metric: eqx.AbstractVar[str]
    max_records: eqx.AbstractVar[Scalar | None]

    @abc.abstractmethod
    def gamma_for(self, dimension: int) -> Float[Array, ""]:
        """γ for d coefficients, 0 or NaN if there is none; runs under jit."""

    @abc.abstractmethod
    def epsilon_at(self, delta: Any, dimension: int | None = None) -> float | None:
        """The smallest ε that is proved at this δ, whatever the data; None where none is.

        **Arguments:** `dimension`: d, where scalar bounds leave it open.
        """
