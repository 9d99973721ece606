"""Domains Θ of the parameter with the uniform measure ν on them: L1Ball, L2Ball, Box; `base_measures` has the others.

A density mechanism draws θ from exp(-c·score(θ)) ν(dθ). Scores such as the gradient norm of the quantile loss are
bounded, so ν must have finite mass; here it always is a probability: uniform on a bounded convex body or a proper
distribution. The base measure is public: it must not be chosen by looking at the data.
"""

import abc
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from kngjax.core.arrays import Scalar, Vector, is_traced, parameter, require_moderate
from kngjax.core.representation import ShownAsTyped
from kngjax.geometry import norms

# NumPyro takes as long to import as JAX, and many programs that name a domain need no distribution.
if TYPE_CHECKING:
    import numpyro.distributions
    import numpyro.distributions.transforms

Interval = tuple[Float[Array, "..."], Float[Array, "..."]]


class AbstractDomain(ShownAsTyped, eqx.Module):
    """A public set Θ ⊂ R^d with a probability measure ν on it."""

    shown_by_place: ClassVar[bool] = True

    @abc.abstractmethod
    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        """ν as a NumPyro distribution on R^d; its support is Θ."""

    @abc.abstractmethod
    def contains(self, theta: Vector) -> Bool[Array, ""]:
        """Whether θ lies in Θ."""

    @abc.abstractmethod
    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        """The point of Θ nearest to θ in Euclidean distance; raises TypeError where none is known."""

    @abc.abstractmethod
    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """The smallest and the largest x'θ over θ ∈ Θ and lower ≤ x ≤ upper: infinite if Θ is unbounded."""

    @abc.abstractmethod
    def chord(self, theta: Vector, direction: Vector) -> Interval:
        """The smallest and the largest t for which θ + t·direction lies in Θ, for θ in Θ and a direction ≠ 0."""

    @abc.abstractmethod
    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        """A public length scale of Θ along each coordinate: its full width where it is bounded."""

    @property
    def is_uniform(self) -> bool:
        """Whether ν is constant on Θ."""
        return True

    @property
    def dimension(self) -> int | None:
        """The dimension that the domain's parameters fix; None if scalars broadcast over the columns."""
        return None

    def log_density(self, theta: Vector) -> Float[Array, ""]:
        """log ν(θ), normalised; -inf outside Θ."""
        theta = jnp.asarray(theta)
        dimension = theta.shape[-1]
        inside = self.contains(theta)
        # Evaluated where it is defined: outside their support NumPyro's densities may be NaN, and so may gradients.
        interior = self.interior_point(dimension)
        supported = interior if self.is_uniform else jnp.where(inside, theta, interior)
        return jnp.where(inside, self.distribution(dimension).log_prob(supported), -jnp.inf)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Float[Array, "*shape dimension"]:
        """Independent draws from ν."""
        return jnp.asarray(self.distribution(dimension).sample(key, shape))

    def bijector(self, dimension: int) -> "numpyro.distributions.transforms.Transform":
        """NumPyro's smooth bijection from R^d onto the interior of Θ."""
        from numpyro.distributions.transforms import biject_to

        return biject_to(self.distribution(dimension).support)

    def interior_point(self, dimension: int) -> Float[Array, " dimension"]:
        """A public point well inside Θ: the image of 0 under the bijector."""
        return jnp.asarray(self.bijector(dimension)(jnp.zeros(dimension)))


class _AbstractBall(AbstractDomain):
    radius: eqx.AbstractVar[Scalar]

    def __check_init__(self):
        if not is_traced(self.radius) and not (0 < float(self.radius) < np.inf):
            raise ValueError(
                f"the radius must be positive and finite, got {float(self.radius)}: an unbounded domain makes "
                "the density improper"
            )
        if not is_traced(self.radius):
            require_moderate("the radius", self.radius)

    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        return jnp.full(dimension, 2.0 * self.radius)


class L1Ball(_AbstractBall):
    """The uniform measure on Θ = {θ : Σ_j |θ_j| ≤ radius}.

    **Arguments:** `radius`: positive, in the units of θ. Public.
    """

    radius: Scalar = eqx.field(converter=parameter)

    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        from kngjax.geometry.balls import UniformBall

        return UniformBall(self.radius, dimension, norms.L1)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        return norms.L1()(theta) <= self.radius

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        from optax.projections import projection_l1_ball

        return projection_l1_ball(jnp.asarray(theta), self.radius)

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """± radius · max_j |x_j|, by Hölder's inequality."""
        reach = self.radius * jnp.max(jnp.maximum(jnp.abs(lower), jnp.abs(upper)))
        return -reach, reach

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        """Newton's method from outside on t ↦ ‖θ + tv‖_1 - radius: convex, piecewise linear, exact in d + 1 steps."""
        theta, direction = jnp.asarray(theta), jnp.asarray(direction)
        far = (self.radius + jnp.sum(jnp.abs(theta))) / jnp.sum(jnp.abs(direction))

        def moves(t):
            point = theta + t * direction
            excess, slope = jnp.sum(jnp.abs(point)) - self.radius, jnp.sum(jnp.sign(point) * direction)
            outside = (excess > 0) & (slope * t > 0)
            return outside, jnp.where(outside, t - excess / jnp.where(outside, slope, 1.0), t)

        def closer(search):
            number, _, t = search
            outside, t = moves(t)
            return number + 1, outside, t

        def unfinished(search):
            return search[1] & (search[0] < theta.shape[0] + 2)

        def end(side):
            return jax.lax.while_loop(unfinished, closer, (0, jnp.asarray(True), side * far))[2]

        return jnp.minimum(end(-1.0), 0.0), jnp.maximum(end(1.0), 0.0)


class L2Ball(_AbstractBall):
    """The uniform measure on Θ = {θ : (Σ_j θ_j²)^½ ≤ radius}.

    **Arguments:** `radius`: positive, in the units of θ. Public.
    """

    radius: Scalar = eqx.field(converter=parameter)

    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        from kngjax.geometry.balls import UniformBall

        return UniformBall(self.radius, dimension, norms.L2)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        return norms.L2()(theta) <= self.radius

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        from optax.projections import projection_l2_ball

        return projection_l2_ball(jnp.asarray(theta), self.radius)

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """± radius · ‖x‖_2, by the Cauchy-Schwarz inequality."""
        sides = jnp.maximum(jnp.abs(lower), jnp.abs(upper))
        # Squares of what is far from 1 would leave the range of float64.
        largest = jnp.max(sides)
        scale = jnp.where(largest > 0, largest, 1.0)
        reach = self.radius * (scale * jnp.linalg.norm(sides / scale))
        return -reach, reach

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        """The roots of |θ + tv|² = radius²."""
        theta, direction = jnp.asarray(theta), jnp.asarray(direction)
        square = direction @ direction
        middle = -(theta @ direction) / square
        half = jnp.sqrt(jnp.maximum(middle**2 + (self.radius**2 - theta @ theta) / square, 0.0))
        return middle - half, middle + half


class Box(AbstractDomain):
    """The uniform measure on Θ = {θ : lower_j ≤ θ_j ≤ upper_j}.

    **Arguments:** `lower`, `upper`: scalars, which broadcast over the coefficients, or shape (d,), with the
    intercept first; finite, in the units of θ. Or by name, `Box({"intercept": (-9, 9), "age": (-1, 1)})`, for
    bounds that name their columns, in whose order a mechanism takes them. Public.
    """

    lower: Float[Array, "*columns"] | Float[np.ndarray, "*columns"]
    upper: Float[Array, "*columns"] | Float[np.ndarray, "*columns"]
    names: tuple[str, ...] | None = eqx.field(static=True, metadata={"derived": True})

    def __init__(self, lower: Any, upper: Any = None):
        self.names = tuple(lower) if isinstance(lower, Mapping) else None
        if isinstance(lower, Mapping):
            pairs = list(lower.values())
            if upper is not None or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
                raise ValueError("a Box by name has a pair (lower, upper) for each name, and nothing else")
            lower, upper = zip(*pairs, strict=True) if pairs else ([], [])
        if upper is None:
            raise ValueError("a Box needs lower and upper, or a pair of them for each name")
        self.lower, self.upper = parameter(lower), parameter(upper)

    def in_order_of(self, coefficients: tuple[str, ...] | None) -> "Box":
        """The same box with its sides in the order of these names; itself if it has none of its own.

        Raises ValueError unless the names are the same.
        """
        if self.names is None:
            return self
        if coefficients is None or set(coefficients) != set(self.names):
            named = "none" if coefficients is None else f"those of {list(coefficients)}"
            raise ValueError(f"the domain names the coefficients {list(self.names)}, and the bounds {named}")
        order = [self.names.index(name) for name in coefficients]
        return Box(np.asarray(self.lower)[order], np.asarray(self.upper)[order])

    def _argument(self, parameter: inspect.Parameter) -> Any:
        if self.names is None:
            return super()._argument(parameter)
        sides = (np.asarray(side).tolist() for side in (self.lower, self.upper))
        return dict(zip(self.names, zip(*sides, strict=True), strict=True)) if parameter.name == "lower" else None

    def __check_init__(self):
        if np.ndim(self.lower) > 1 or np.ndim(self.upper) > 1:
            raise ValueError("lower and upper of a Box must be scalars or have one value a coefficient")
        if is_traced(self.lower, self.upper):
            return
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        if lower.ndim and upper.ndim and lower.shape != upper.shape:
            raise ValueError(f"lower has {lower.size} values and upper {upper.size}: a Box needs one of each")
        if not (np.all(np.isfinite(lower)) and np.all(np.isfinite(upper))):
            raise ValueError("lower and upper of a Box must be finite: an unbounded domain makes the density improper")
        require_moderate("the sides of a Box", lower, upper)
        if not np.all(lower < upper):
            raise ValueError(f"lower must be below upper in a Box, got lower={lower} and upper={upper}")

    @property
    def dimension(self) -> int | None:
        return max((np.shape(side)[-1] for side in (self.lower, self.upper) if np.ndim(side)), default=None)

    def _sides(self, dimension: int) -> Interval:
        return jnp.broadcast_to(self.lower, (dimension,)), jnp.broadcast_to(self.upper, (dimension,))

    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        import numpyro.distributions as dist

        return dist.Uniform(*self._sides(dimension)).to_event(1)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        lower, upper = self._sides(np.shape(theta)[-1])
        return jnp.all((lower <= theta) & (theta <= upper))

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        theta = jnp.asarray(theta)
        return jnp.clip(theta, *self._sides(theta.shape[-1]))

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """The sum over coordinates of the extreme products of two intervals."""
        theta_lower, theta_upper = self._sides(np.shape(lower)[-1])
        products = jnp.stack([a * b for a in (lower, upper) for b in (theta_lower, theta_upper)])
        return jnp.sum(jnp.min(products, axis=0)), jnp.sum(jnp.max(products, axis=0))

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        theta, direction = jnp.asarray(theta), jnp.asarray(direction)
        still = direction == 0
        ends = [(side - theta) / jnp.where(still, 1.0, direction) for side in self._sides(theta.shape[-1])]
        lower = jnp.where(still, -jnp.inf, jnp.minimum(*ends))
        upper = jnp.where(still, jnp.inf, jnp.maximum(*ends))
        return jnp.max(lower), jnp.min(upper)

    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        lower, upper = self._sides(dimension)
        return upper - lower
