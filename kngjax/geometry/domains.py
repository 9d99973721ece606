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
from kngjax.core.modules import AbstractModule
from kngjax.core.representation import ShownAsTyped
from kngjax.geometry import norms
from kngjax.geometry.abstract_norms import AbstractAbsoluteNorm
from kngjax.geometry.shapes import Shape

# NumPyro takes as long to import as JAX, and many programs that name a domain need no distribution.
if TYPE_CHECKING:
    import numpyro.distributions
    import numpyro.distributions.transforms

Interval = tuple[Float[Array, "..."], Float[Array, "..."]]


class AbstractDomain(ShownAsTyped, AbstractModule):
    """A public set Θ ⊂ R^d with a probability measure ν on it.

    `is_sign_symmetric`: whether changing the sign of any θ_j stays within Θ, so that ‖θ‖_1 is at most the largest
    Σ_j θ_j over Θ.
    """

    is_sign_symmetric: ClassVar[bool] = False
    _shown_by_place: ClassVar[bool] = True

    @abc.abstractmethod
    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        """ν as a NumPyro distribution on R^d; its support is Θ."""

    @abc.abstractmethod
    def contains(self, theta: Vector) -> Bool[Array, ""]:
        """Tells whether θ lies in Θ."""

    @abc.abstractmethod
    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        """Returns the point of Θ nearest to θ in Euclidean distance; raises TypeError where none is known."""

    @abc.abstractmethod
    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """Returns the smallest and the largest x'θ over θ ∈ Θ and lower ≤ x ≤ upper: infinite if Θ is unbounded."""

    @abc.abstractmethod
    def chord(self, theta: Vector, direction: Vector) -> Interval:
        """Finds the least and the largest t with θ + t·direction in Θ, for θ in Θ and a direction ≠ 0."""

    @abc.abstractmethod
    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        """Returns a public length scale of Θ along each coordinate: its full width where it is bounded."""

    @property
    def is_uniform(self) -> bool:
        """Tells whether ν is constant on Θ."""
        return True

    @property
    def dimension(self) -> int | None:
        """Returns the dimension that the domain's parameters fix; None if scalars broadcast over the columns."""
        return None

    def in_order_of(self, coefficients: tuple[str, ...] | None) -> "AbstractDomain":
        """Orders the domain's sides by these names; a domain that names none is returned as it is."""
        return self

    def exact_shape(self, dimension: int) -> Shape | None:
        """Θ in the numbers that define it; None unless it is of that form with a uniform measure."""
        return None

    def log_density(self, theta: Vector) -> Float[Array, ""]:
        """log ν(θ), normalised; -inf outside Θ."""
        theta = jnp.asarray(theta)
        dimension = theta.shape[-1]
        inside = self.contains(theta)
        if self.is_uniform:
            return jnp.where(inside, -self.log_volume(dimension), -jnp.inf)
        # Evaluated where it is defined: outside their support NumPyro's densities may be NaN, and so may gradients.
        supported = jnp.where(inside, theta, self.interior_point(dimension))
        return jnp.where(inside, self.distribution(dimension).log_prob(supported), -jnp.inf)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        """Computes the log of Θ's Lebesgue measure, if ν is uniform."""
        return -jnp.asarray(self.distribution(dimension).log_prob(self.interior_point(dimension)))

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Float[Array, "*shape dimension"]:
        """Returns independent draws from ν."""
        return jnp.asarray(self.distribution(dimension).sample(key, shape))

    def bijector(self, dimension: int) -> "numpyro.distributions.transforms.Transform":
        """NumPyro's smooth bijection from R^d onto the interior of Θ."""
        from numpyro.distributions.transforms import biject_to

        return biject_to(self.distribution(dimension).support)

    def interior_point(self, dimension: int) -> Float[Array, " dimension"]:
        """Returns a public point well inside Θ: the image of 0 under the bijector."""
        return jnp.asarray(self.bijector(dimension)(jnp.zeros(dimension)))


class _AbstractBall(AbstractDomain):
    """The uniform measure on Θ = {θ : ‖θ‖ ≤ radius}.

    **Arguments:** `radius`: positive, in the units of θ. Public. `norm`: ‖·‖, with ‖θ‖^p = Σ|θ_j|^p. `power`: p.
    """

    radius: eqx.AbstractVar[Scalar]
    norm: eqx.AbstractClassVar[AbstractAbsoluteNorm]
    power: eqx.AbstractClassVar[int]

    is_sign_symmetric: ClassVar[bool] = True

    def __check_init__(self):
        if not is_traced(self.radius) and not (np.ndim(self.radius) == 0 and 0 < float(self.radius) < np.inf):
            raise ValueError(
                f"the radius must be one positive and finite number, got {self.radius}: an unbounded domain makes the "
                "density improper"
            )
        if not is_traced(self.radius):
            require_moderate("the radius", self.radius)

    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        from kngjax.geometry.ball_distributions import UniformBall

        return UniformBall(self.radius, dimension, type(self.norm))

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        return self.norm.log_volume(dimension) + dimension * jnp.log(self.radius)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Float[Array, "*shape dimension"]:
        return self.radius * self.norm.draw_from_ball(key, shape, dimension)

    def interior_point(self, dimension: int) -> Float[Array, " dimension"]:
        return jnp.zeros(dimension)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        return self.norm(theta) <= self.radius

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        """Projects θ to a point within Θ by more than the roundings of the point's size: else it might lie beyond.

        With unit roundoff u, a size that is a sum of d numbers, or the root of one of squares, is off by at most
        (d + 1)u of itself in any order, and the scale and the product by five roundings more: (d + 6)·2u covers them.
        """
        from optax import projections

        theta = jnp.asarray(theta)
        nearest = projections.projection_l1_ball if self.power == 1 else projections.projection_l2_ball
        found = nearest(theta, self.radius)
        inward = 1.0 - (theta.shape[-1] + 6) * jnp.finfo(theta.dtype).eps
        size = jnp.maximum(self.norm(found), self.radius)
        return jnp.where(self.contains(theta), theta, inward * (self.radius / size) * found)

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """± radius · ‖max(|lower|, |upper|)‖_*, by the definition of the dual norm."""
        sides = jnp.maximum(jnp.abs(lower), jnp.abs(upper))
        # Squares of what is far from 1 would leave the range of float64.
        largest = jnp.max(sides)
        scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1.0)
        reach = self.radius * (scale * self.norm.dual(sides / scale))
        return -reach, reach

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        return self.norm.chord(self.radius, theta, direction)

    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        return jnp.full(dimension, 2.0 * self.radius)

    def exact_shape(self, dimension: int) -> Shape:
        return Shape.ball(float(self.radius), self.power, dimension)


class L1Ball(_AbstractBall):
    """An l1 ball Θ = {θ : Σ_j |θ_j| ≤ radius} with the uniform measure.

    **Arguments:** `radius`: positive, in the units of θ. Public.
    """

    radius: Scalar = eqx.field(converter=parameter)

    norm: ClassVar[AbstractAbsoluteNorm] = norms.L1()
    power: ClassVar[int] = 1


class L2Ball(_AbstractBall):
    """An l2 ball Θ = {θ : (Σ_j θ_j²)^½ ≤ radius} with the uniform measure.

    **Arguments:** `radius`: positive, in the units of θ. Public.
    """

    radius: Scalar = eqx.field(converter=parameter)

    norm: ClassVar[AbstractAbsoluteNorm] = norms.L2()
    power: ClassVar[int] = 2


class Box(AbstractDomain):
    """A box Θ = {θ : lower_j ≤ θ_j ≤ upper_j} with the uniform measure.

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
        """Orders the box's sides by these names; a box without names is returned as it is.

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
            raise ValueError(f"lower must be below upper in a Box, got {lower} and {upper}")

    @property
    def dimension(self) -> int | None:
        return max((np.shape(side)[-1] for side in (self.lower, self.upper) if np.ndim(side)), default=None)

    def _sides(self, dimension: int) -> Interval:
        return jnp.broadcast_to(self.lower, (dimension,)), jnp.broadcast_to(self.upper, (dimension,))

    def distribution(self, dimension: int) -> "numpyro.distributions.Distribution":
        import numpyro.distributions as dist

        return dist.Uniform(*self._sides(dimension)).to_event(1)

    def log_volume(self, dimension: int) -> Float[Array, ""]:
        return jnp.sum(jnp.log(self.widths(dimension)))

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...], dimension: int) -> Float[Array, "*shape dimension"]:
        sides = (jnp.broadcast_to(side, (*shape, dimension)) for side in self._sides(dimension))
        return jax.random.uniform(key, (*shape, dimension), float, *sides)

    def interior_point(self, dimension: int) -> Float[Array, " dimension"]:
        # What the bijector makes of 0, without a program for each of its operations.
        middle = self.lower + 0.5 * (self.upper - self.lower)
        return jnp.asarray(np.zeros(dimension) + middle)

    def contains(self, theta: Vector) -> Bool[Array, ""]:
        lower, upper = self._sides(np.shape(theta)[-1])
        return jnp.all((lower <= theta) & (theta <= upper))

    def project(self, theta: Vector) -> Float[Array, " dimension"]:
        theta = jnp.asarray(theta)
        return jnp.clip(theta, *self._sides(theta.shape[-1]))

    def linear_interval(self, lower: Vector, upper: Vector) -> Interval:
        """Returns the sum over coordinates of the extreme products of two intervals."""
        theta_lower, theta_upper = self._sides(np.shape(lower)[-1])
        products = jnp.stack([a * b for a in (lower, upper) for b in (theta_lower, theta_upper)])
        return jnp.sum(jnp.min(products, axis=0)), jnp.sum(jnp.max(products, axis=0))

    def chord(self, theta: Vector, direction: Vector) -> Interval:
        return norms.chord_of_box(*self._sides(np.shape(theta)[-1]), theta, direction)

    def widths(self, dimension: int) -> Float[Array, " dimension"]:
        # As in `interior_point`.
        return jnp.asarray(np.zeros(dimension) + (self.upper - self.lower))

    def exact_shape(self, dimension: int) -> Shape:
        return Shape.box(*(np.broadcast_to(np.asarray(side), (dimension,)) for side in (self.lower, self.upper)))
