"""Base measures ν that are no uniform law: any proper NumPyro distribution, with its support as domain."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to

from kngjax.core.arrays import Vector, is_traced
from kngjax.geometry.domains import AbstractDomain, Interval


def _copy_arrays(base: dist.Distribution) -> dist.Distribution:
    """Copies a law together with its NumPy arrays."""
    return jax.tree.map(lambda leaf: np.array(leaf) if isinstance(leaf, np.ndarray) else leaf, base)


class BaseMeasure(AbstractDomain):
    """Takes a proper NumPyro distribution as base measure; Θ is the distribution's support.

    **Arguments:** `base`: a continuous distribution with event shape (d,), or a scalar one, which serves as the
    law of each coefficient independently. Public: a prior, not something fitted to the data.
    """

    base: dist.Distribution = eqx.field(converter=_copy_arrays)

    def __check_init__(self):
        if is_traced(*jax.tree.leaves(self.base)):
            return
        parts = list(_all_parts(self.base))
        for part in parts:
            if isinstance(part, dist.ImproperUniform | dist.MaskedDistribution):
                raise ValueError(
                    f"{type(part).__name__} has infinite mass, so the density of the mechanism is improper: "
                    "give a proper distribution, or a bounded L1Ball, L2Ball or Box"
                )
        has_points = any(isinstance(part, dist.Delta) for part in parts)
        if has_points or self.base.support is None or self.base.support.is_discrete:
            raise ValueError("the base measure must be continuous: densities are with respect to Lebesgue measure")
        shape = self.base.batch_shape + self.base.event_shape
        if len(shape) > 1:
            raise ValueError(
                f"the base measure must be a law on R^d, got batch shape {self.base.batch_shape} "
                f"and event shape {self.base.event_shape}"
            )
        if self.base.event_shape and biject_to(self.base.support).inverse_shape(shape) != shape:
            raise ValueError("the base measure must have a density on R^d: its support has a lower dimension")
        dimension = self.dimension or 1
        if not np.isfinite(np.asarray(self.log_density(self.interior_point(dimension)))):
            raise ValueError("the base measure has no finite density at its centre: check its parameters")

    @property
    def is_uniform(self) -> bool:
        return False

    @property
    def dimension(self) -> int | None:
        shape = self.base.batch_shape + self.base.event_shape
        return shape[0] if shape else None

    def distribution(self, dimension: int) -> dist.Distribution:
        if self.base.event_shape:
            return self.base
        return self.base.expand((dimension,)).to_event(1)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        theta = jnp.asarray(theta)
        support = self.distribution(theta.shape[-1]).support
        assert support is not None
        return jnp.all(support(theta))

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        if self.base.support is constraints.real or self.base.support is constraints.real_vector:
            return jnp.asarray(theta)
        raise TypeError("no Euclidean projection is known onto the support of this base measure")

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """Infinite: sensitivities that need a bound on x'θ ask for a bounded domain."""
        return jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf)

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        return jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Float[Array, "*shape dimension"]:
        # One key a draw: some NumPyro samplers broadcast their parameters, which strict rank promotion forbids.
        draw_one = jnp.vectorize(self.distribution(dimension).sample, signature="()->(d)")
        return draw_one(jax.random.split(key, shape))

    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        """Eight standard deviations, or 20 where the variance is infinite or unknown."""
        try:
            deviation = jnp.sqrt(self.distribution(dimension).variance)
        except (NotImplementedError, ZeroDivisionError):
            return jnp.full(dimension, 20.0)
        return jnp.where(jnp.isfinite(deviation), 8.0 * deviation, 20.0)

    def interior_point(self, dimension: int) -> Float[Array, " dimension"]:
        """Returns the mean where it is finite, else the image of 0 under the bijector."""
        fallback = jnp.asarray(self.bijector(dimension)(jnp.zeros(dimension)))
        try:
            mean = self.distribution(dimension).mean
        except (NotImplementedError, ZeroDivisionError):
            return fallback
        return jnp.where(jnp.all(jnp.isfinite(mean)), mean, fallback)


def _all_parts(distribution: dist.Distribution) -> Iterator[dist.Distribution]:
    """The distribution and all that it is made of: bases of transformations and truncations, components of mixtures."""
    yield distribution
    for name in distribution.gather_pytree_data_fields():
        part = getattr(distribution, name, None)
        for inner in part if isinstance(part, list | tuple) else [part]:
            if isinstance(inner, dist.Distribution):
                yield from _all_parts(inner)
