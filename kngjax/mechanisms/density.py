"""Mechanisms with a density exp(-ε/(2Δ)·score)·ν, from which a sampler draws."""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Guarantee
from kngjax.chains.target import Target
from kngjax.core.arrays import Vector, float64, is_traced
from kngjax.core.compiling import quick_compilation
from kngjax.core.modules import constants
from kngjax.data.records import Data
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.preparation import AbstractIntake, PlainIntake


@dataclasses.dataclass(frozen=True, eq=False)
class Exponent:
    """Describes the exponent -ε/(2Δ)·score of a density for proved draws and samplers. Public.

    **Arguments:** `mechanism`: whose density it is. `scored_by`: whether the score is the loss or a norm of its
    gradient; None for any other score. `given_norm`: the norm that the caller named; None for the default norm, and for
    the loss as score. `is_pointwise`: whether Δ depends on θ.
    """

    mechanism: "AbstractDensityMechanism"
    scored_by: Literal["loss", "gradient"] | None = None
    given_norm: AbstractNorm | None = None
    is_pointwise: bool = False

    def log_range(self, dimension: int, num_records: int) -> float:
        """R = ε/(2Δ)·n·(range of one record's share): how far log f varies over Θ at most, for any n records.

        Public where n is: under replace.
        """
        mechanism = self.mechanism
        with float64(), quick_compilation():
            share = float(mechanism._record_range(dimension)) / float(mechanism.sensitivity_value(dimension))
        # Outward, by far more than these few operations round.
        return 0.5 * float(mechanism.epsilon) * num_records * share * (1.0 + 1e-12)


class AbstractDensityMechanism(AbstractMechanism):
    """A mechanism that draws θ with density proportional to exp(-ε/(2Δ)·score(θ; D)) with respect to ν."""

    domain: eqx.AbstractVar[AbstractDomain]

    @property
    def exponent(self) -> Exponent:
        """Says what the score is; exact draws serve scores that are a loss or a norm of its gradient."""
        return Exponent(self)

    @property
    def intake(self) -> AbstractIntake:
        return PlainIntake(self, takes_shards=True)

    def densities(self) -> tuple["AbstractDensityMechanism", ...]:
        return (self,)

    @abc.abstractmethod
    def score_norm(self, dimension: int) -> AbstractNorm | None:
        """The norm of the gradient that is the score; None if the score is the loss itself."""

    @abc.abstractmethod
    def sensitivity_value(self, dimension: int) -> Float[Array, ""]:
        """Δ for d coefficients; runs under jit."""

    def known_rate(self, dimension: int) -> float:
        """ε/(2Δ) as a float64 number."""
        with float64(), quick_compilation():
            return float(self.epsilon) / (2.0 * float(self.sensitivity_value(dimension)))

    @abc.abstractmethod
    def _record_range(self, dimension: int) -> Float[Array, ""]:
        """Bounds how much one record's share of the score can vary over Θ and the bounds, in units of the score."""

    def _check(self) -> None:
        if is_traced(*jax.tree.leaves(self)):
            return
        self._check_parts()
        with float64(), quick_compilation():
            value = float(self.sensitivity_value(self.dimension or 1 + self.bounds.intercept))
        if not (math.isfinite(value) and value > 0):
            advice = (
                "one record's influence grows with x'theta. Give a bounded domain (L1Ball, L2Ball or Box), or a loss "
                "with a bounded score (quantile, Huber, pseudo-Huber, logistic)"
                if self.loss.has_response
                else "one record's influence grows with its distance to theta. Give a bounded domain (L1Ball, L2Ball "
                "or Box) and bounds of x that leave every column some width, or name a norm"
            )
            raise ValueError(f"the sensitivity of {type(self.loss).__name__} is not finite over this domain: {advice}")

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP and (ε²/8)-zCDP of one exact draw, from the mechanism's own ε."""
        return Guarantee.bounded_range(float(self.epsilon), self.adjacency).of(self.bounds.protects)

    def target(self, data: Data) -> Target:
        """The density for these data, as samplers see it. Private."""
        dimension = data.dimension
        sensitivity = self.sensitivity_value(dimension)
        # On the host numbers are divided there, without a program for it.
        sensitivity = sensitivity if is_traced(sensitivity) else np.asarray(sensitivity)
        rate = jnp.asarray(self.epsilon / (2.0 * sensitivity))
        return Target(self.loss, data, self.domain, self.score_norm(dimension), rate)

    def log_density(self, theta: Vector, data: Data) -> Float[Array, ""]:
        """log f(θ) = -ε/(2Δ)·score(θ; D) + log ν(θ), unnormalised; -inf outside Θ. Private: a function of the data.

        **Arguments:** `theta`: shape (d,), intercept first. `data`: from `prepare`. In the caller's own precision.
        """
        return self.target(constants(data)).log_density(theta)

    def numpyro_model(self, data: Data) -> Callable[[], None]:
        """The mechanism's density as a NumPyro model with one site, `theta`, for research with any NumPyro kernel.

        The base measure is the prior, -ε/(2Δ)·score a factor. Private: its draws are computed from the data. NumPyro
        will run NUTS on the quantile loss's piecewise-constant density without a warning, and wrongly: use our
        samplers there.
        """

        import numpyro

        def model() -> None:
            target = self.target(constants(data))
            theta = numpyro.sample("theta", target.domain.distribution(target.dimension))
            numpyro.factor("score", -target.rate * target.score(theta))

        return model
