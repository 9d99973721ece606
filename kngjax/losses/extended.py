"""A loss continued beyond an interval of the linear predictor by its tangents, for proofs over all of R^d."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kngjax.core.arrays import Scalar
from kngjax.losses.base import AbstractPredictorLoss, Interval, Number


class TangentExtension(AbstractPredictorLoss):
    """ρ(η, y) for η ∈ [lower, upper], and beyond it the tangent at the nearest end: ρ(c, y) + s(c, y)(η - c).

    The extension is convex and once differentiable, as ρ is. Its score at any η is that of ρ at c = clip(η, lower,
    upper). Its curvature is that of ρ inside, and 0 outside. So the facts that ρ declares over [lower, upper] hold for
    every η. If x'θ stays within the interval for all θ in Θ, the extension is ρ itself on Θ.

    **Arguments:** `inner`: ρ. `lower`, `upper`: the ends, infinite on a side without extension. Public.
    """

    inner: AbstractPredictorLoss
    lower: Scalar
    upper: Scalar

    def record_value(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        slope = self.inner.record_score(nearest, response)
        return self.inner.record_value(nearest, response) + slope * (predictor - nearest)

    def record_score(self, predictor: Number, response: Number) -> Float[Array, ""]:
        return self.inner.record_score(self._nearest(predictor), response)

    def record_curvature(self, predictor: Number, response: Number) -> Float[Array, ""]:
        nearest = self._nearest(predictor)
        return jnp.where(nearest == predictor, self.inner.record_curvature(nearest, response), 0.0)

    def curvature_bound(self, predictor: Interval) -> Number:
        """Bounds the curvature by that of ρ over [lower, upper], whatever the interval."""
        return self.inner.curvature_bound((self.lower, self.upper))

    def score_interval(self, predictor: Interval, response: Interval | None) -> Interval:
        """Gives the score interval of ρ over [lower, upper], whatever the interval of η."""
        return self.inner.score_interval((self.lower, self.upper), response)

    def value_interval(self, predictor: Interval, response: Interval) -> Interval:
        """Widens the value interval of ρ over [lower, upper] by products of the score and the way beyond the ends."""
        least, most = self.inner.value_interval((self.lower, self.upper), response)
        ways = jnp.minimum(predictor[0] - self.lower, 0.0), jnp.maximum(predictor[1] - self.upper, 0.0)
        products = jnp.stack([score * way for score in self.score_interval(predictor, response) for way in ways])
        return least + jnp.min(products), most + jnp.max(products)

    def _nearest(self, predictor: Number) -> Array:
        return jnp.clip(jnp.asarray(predictor), self.lower, self.upper)
