"""How far x'θ reaches over Θ: all that sensitivities ask of it."""

from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array

from kngjax.core.arrays import Vector
from kngjax.core.modules import AbstractModule


@runtime_checkable
class Reach(Protocol):
    """Knows how far x'θ reaches: a domain, or a set in the place of a domain."""

    def linear_interval(self, lower: Any, upper: Any) -> tuple[Any, Any]:
        """Returns the smallest and the largest x'θ over θ ∈ Θ and lower ≤ x ≤ upper."""
        ...


class Everywhere(AbstractModule):
    """Θ = R^d, for losses whose facts hold for every x'θ."""

    def linear_interval(self, lower: Any, upper: Any) -> tuple[Array, Array]:
        """All real numbers."""
        return jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf)


class SinglePoint(AbstractModule):
    """Θ = {θ}."""

    theta: Vector

    def linear_interval(self, lower: Vector, upper: Vector) -> tuple[Array, Array]:
        """Returns the smallest and the largest x'θ at this θ."""
        products = jnp.stack([lower * self.theta, upper * self.theta])
        return jnp.sum(jnp.min(products, axis=0)), jnp.sum(jnp.max(products, axis=0))
