"""Sensitivities that depend on θ (Reimherr and Awan 2019, Theorem 3.1 and Remark 4.2).

At one θ the reach of x'θ is smaller than over all of Θ, and w(θ) says by how much each coordinate of ∇ℓ_n can change
there. The score max_j |∇_j|/w_j(θ) has sensitivity 1, so that no bound on Θ is needed, but a proper base measure is.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import Vector
from kngjax.core.modules import AbstractModule
from kngjax.data.bounds import Bounds
from kngjax.geometry import norms
from kngjax.losses.base import AbstractLoss
from kngjax.sensitivity import weighted
from kngjax.sensitivity.change_sets import changes_within


class PointwiseSensitivity(AbstractModule):
    """w(θ): by how much each coordinate of ∇ℓ_n(θ; D) can change between neighbouring data sets, at this θ.

    **Arguments:** `loss`, `bounds`, `adjacency`: of the mechanism.
    """

    loss: AbstractLoss
    bounds: Bounds
    adjacency: Adjacency = eqx.field(static=True)

    def changes(self, theta: Vector) -> Float[Array, " dimension"]:
        """w(θ), shape (d,), from the range of one record's gradient at this θ."""
        ends = weighted.gradient_range_at(self.loss, jnp.asarray(theta), self.bounds, self.adjacency)
        return changes_within(ends, self.adjacency)

    def norm_at(self, theta: Vector) -> norms.WeightedLInf:
        """max_j |v_j|/w_j(θ): nowhere below the same with w of all of Θ."""
        return norms.WeightedLInf(self.changes(theta))


def explain_pointwise_sensitivity(adjacency: Adjacency) -> str:
    """The derivation of a sensitivity that depends on θ in words."""
    return (
        f"at each theta {adjacency.event} moves coordinate j of the gradient by at most w_j(theta), by the score "
        "interval at the reach of x'theta for this theta alone; the score is the gradient's max_j |v_j|/w_j(theta), "
        "which changes by at most 1."
    )
