"""What a sampler of several curves may know: their joint density, its domain, and the loss of one of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kngjax.core.arrays import Scalar, Vector, block_sums
from kngjax.core.modules import AbstractModule
from kngjax.data.records import Records
from kngjax.geometry.abstract_norms import AbstractNorm
from kngjax.geometry.domains import AbstractDomain
from kngjax.losses.base import AbstractPredictorLoss
from kngjax.samplers.target import Target

Curves = Float[Array, "levels dimension"] | Float[np.ndarray, "levels dimension"]


class CurvesTarget(AbstractModule):
    """log f(θ, T) = -c·Σ_k ‖H_k(θ) - π_k T‖_K + Σ_j log ν(θ_j) on the cone of curves that do not cross; private data.

    H_k are the sums of features in the m + 1 bins between the curves, and π_k the differences of the levels
    (`kngjax.sensitivity.bins`). The cone is x'θ_j ≤ x'θ_{j+1} on the public polytope of the features, T is in R^d.

    **Arguments:** `loss`: of quantile regression at the level ½, whose score is F - ½: F is the share of a record below
    a curve, and another level moves the gradient by a constant alone. `data`: the records. `domain`: Θ of each curve,
    with ν uniform. `norm`: ‖·‖_K. `rate`: c = ε/(2Δ). `levels`: τ, increasing. `vertices`: of the polytope.
    """

    loss: AbstractPredictorLoss
    data: Records
    domain: AbstractDomain
    norm: AbstractNorm
    rate: Scalar
    levels: Float[Array, " levels"] | Float[np.ndarray, " levels"]
    vertices: Float[Array, "vertices dimension"] | Float[np.ndarray, "vertices dimension"]

    @property
    def dimension(self) -> int:
        """d."""
        return self.data.dimension

    @property
    def shares(self) -> Float[Array, " bins"]:
        """π, shape (m + 1,)."""
        return jnp.diff(jnp.concatenate([jnp.zeros(1), jnp.asarray(self.levels), jnp.ones(1)]))

    @property
    def of_one(self) -> Target:
        """The gradient of one level alone, at ½, and its domain."""
        return Target(self.loss, self.data, self.domain, self.norm, self.rate)

    def shifts(self) -> Float[Array, "levels dimension"]:
        """(τ_j - ½)·S: by what the gradients of the levels are less than those at ½."""
        return jnp.outer(jnp.asarray(self.levels) - 0.5, self.totals())

    def totals(self) -> Float[Array, " dimension"]:
        """S = Σ_i x_i."""
        return block_sums(lambda x: jnp.sum(x, axis=0), (self.data.x,))

    def bins(self, curves: Curves) -> Float[Array, "bins dimension"]:
        """H_k(θ), shape (m + 1, d): of values that are sorted for each record, so that no share is negative."""

        def terms(x, y):
            fitted = jnp.sort(x @ jnp.asarray(curves).T, axis=1)
            below = jax.vmap(jax.vmap(self.loss.record_score, (0, None)))(fitted, y) + 0.5
            return jnp.diff(below, axis=1, prepend=0.0, append=1.0).T @ x

        return block_sums(terms, (self.data.x, self.data.y))

    def score(self, curves: Curves, totals: Vector) -> Float[Array, ""]:
        """Σ_k ‖H_k(θ) - π_k T‖_K."""
        rest = self.bins(curves) - jnp.outer(self.shares, totals)
        return jnp.sum(jax.vmap(self.norm)(rest))

    def log_base(self, curves: Curves) -> Float[Array, ""]:
        """Σ_j log ν(θ_j), and -inf where curves cross on the polytope."""
        inside = jnp.where(self.are_in_order(curves), 0.0, -jnp.inf)
        return inside + jnp.sum(jax.vmap(self.domain.log_density)(jnp.asarray(curves)))

    def are_in_order(self, curves: Curves) -> Bool[Array, ""]:
        """Whether no curves cross where the bounds allow records: asked at the vertices, as x'θ is linear in x."""
        return jnp.all(jnp.diff(jnp.asarray(self.vertices) @ jnp.asarray(curves).T, axis=1) >= 0.0)

    def log_density(self, curves: Curves, totals: Vector) -> Float[Array, ""]:
        """log f(θ, T), unnormalised; -inf outside the cone and Θ."""
        return -self.rate * self.score(curves, totals) + self.log_base(curves)
