"""Sensitivities that depend on θ (Reimherr and Awan 2019, Theorem 3.1 and Remark 4.2).

At one θ the reach of x'θ is smaller than over all of Θ, and w(θ) says by how much each coordinate of ∇ℓ_n can change
there. The score max_j |∇_j|/w_j(θ) has sensitivity 1, so that no bound on Θ is needed, but a proper base measure is.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Vector
from kngjax.data.bounds import Bounds
from kngjax.geometry import norms
from kngjax.losses.base import AbstractLoss
from kngjax.losses.distance import SquaredDistanceLoss
from kngjax.losses.squared import SquaredLoss
from kngjax.sensitivity.gradients import gradient_changes, response_interval


def depends_on_theta(loss: AbstractLoss, adjacency: Adjacency) -> bool:
    """Whether w(θ) varies with θ: where scores are bounded for every η it does not."""
    if isinstance(loss, SquaredDistanceLoss):
        return adjacency is Adjacency.ADD_REMOVE
    return loss.needs_response_bounds


class SinglePoint(eqx.Module):
    """Θ = {θ}, as far as sensitivities ask."""

    theta: Vector

    def linear_interval(self, lower: Vector, upper: Vector) -> tuple[Array, Array]:
        products = jnp.stack([lower * self.theta, upper * self.theta])
        return jnp.sum(jnp.min(products, axis=0)), jnp.sum(jnp.max(products, axis=0))


class PointwiseSensitivity(eqx.Module):
    """w(θ): by how much each coordinate of ∇ℓ_n(θ; D) can change between neighbouring data sets, at this θ.

    **Arguments:** `loss`, `bounds`, `adjacency`: of the mechanism.
    """

    loss: AbstractLoss
    bounds: Bounds
    adjacency: Adjacency = eqx.field(static=True)

    def changes(self, theta: Vector) -> Float[Array, " dimension"]:
        """w(θ), shape (d,).

        For the squared loss coordinate j of one record's gradient is (v + θ_j x_j)x_j with v = Σ_{k≠j} θ_k x_k - y in
        an interval that does not depend on x_j: linear in v and quadratic in x_j, so its range is exact. For |x_j| ≤ 1
        and |y| ≤ Y it is M(a_j, θ_j) + M(a_j, -θ_j) wide, with a_j = Y + Σ_{k≠j}|θ_k| and M(a, b) = a - b for b ≤ a/2,
        a²/(4b) beyond. Other losses take the score interval at the reach of this θ.
        """
        theta = jnp.asarray(theta)
        if not isinstance(self.loss, SquaredLoss):
            return gradient_changes(self.loss, self.bounds, SinglePoint(theta), self.adjacency, theta.shape[0])
        lower, upper = self.bounds.features(theta.shape[0])
        products = jnp.stack([lower * theta, upper * theta])
        smallest, largest = jnp.min(products, axis=0), jnp.max(products, axis=0)
        response = response_interval(self.bounds)
        others = [
            jnp.sum(smallest) - smallest - response[1],
            jnp.sum(largest) - largest - response[0],
        ]
        curved = jnp.where(theta == 0, 1.0, theta)
        turns = [jnp.clip(jnp.where(theta == 0, lower, -v / (2.0 * curved)), lower, upper) for v in others]
        values = jnp.stack([(v + theta * x) * x for v in others for x in (lower, upper, *turns)])
        least, most = jnp.min(values, axis=0), jnp.max(values, axis=0)
        if self.adjacency is Adjacency.REPLACE:
            return most - least
        return jnp.maximum(jnp.abs(least), jnp.abs(most))

    def norm_at(self, theta: Vector) -> norms.WeightedLInf:
        """max_j |v_j|/w_j(θ): nowhere below the same with w of all of Θ."""
        return norms.WeightedLInf(self.changes(theta))


def explain_pointwise_sensitivity(adjacency: Adjacency) -> str:
    """The derivation of a sensitivity that depends on θ in words."""
    event = "exchanging one record" if adjacency is Adjacency.REPLACE else "one record more or less"
    return (
        f"at each theta {event} moves coordinate j of the gradient by at most w_j(theta), by the score interval at the "
        "reach of x'theta for this theta alone; the score is the gradient's max_j |v_j|/w_j(theta), which changes by "
        "at most 1."
    )
