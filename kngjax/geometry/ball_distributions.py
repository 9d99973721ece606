"""Uniform distributions on l1 and l2 balls as NumPyro distributions, with bijectors from R^d onto their supports."""

# NumPyro declares as properties what every one of its own constraints and transforms sets as a plain attribute.
# pyright: reportAssignmentType=false, reportArgumentType=false

import jax.numpy as jnp
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    L1BallTransform,
    ParameterFreeTransform,
    biject_to,
)

from kngjax.geometry import norms


class _Ball(constraints.Constraint):
    """{θ : ‖θ‖ ≤ radius}, for the l1 or the l2 norm."""

    event_dim = 1

    def __init__(self, radius, norm: type[norms.L1] | type[norms.L2]):
        self.radius, self.norm = radius, norm

    def __call__(self, x):
        order = 1 if self.norm is norms.L1 else 2
        return jnp.linalg.norm(x, ord=order, axis=-1) <= self.radius

    def feasible_like(self, prototype):
        return jnp.zeros_like(prototype)

    def tree_flatten(self):
        return (self.radius,), (("radius",), {"norm": self.norm})


class L2BallTransform(ParameterFreeTransform):
    """u ↦ u/√(1 + |u|²), from R^d onto the open unit l2 ball.

    The map is radial with R(s) = s/√(1 + s²), so its Jacobian determinant is R'(s)·(R(s)/s)^(d-1), that is
    (1 + |u|²)^(-(d+2)/2): smooth at the origin, where tanh maps need a series.
    """

    domain = constraints.real_vector
    codomain = _Ball(1.0, norms.L2)

    def __call__(self, x):
        return x / jnp.sqrt(1.0 + jnp.sum(x**2, axis=-1, keepdims=True))

    def _inverse(self, y):
        return y / jnp.sqrt(1.0 - jnp.sum(y**2, axis=-1, keepdims=True))

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        return -0.5 * (x.shape[-1] + 2) * jnp.log1p(jnp.sum(x**2, axis=-1))


@biject_to.register(_Ball)
def _biject_to_ball(constraint):
    onto_unit_ball = L1BallTransform() if constraint.norm is norms.L1 else L2BallTransform()
    return ComposeTransform([onto_unit_ball, AffineTransform(0.0, constraint.radius)])


class UniformBall(Distribution):
    """The uniform distribution on {θ ∈ R^d : ‖θ‖ ≤ radius}, for the l1 or the l2 norm."""

    pytree_data_fields = ("radius",)
    pytree_aux_fields = ("norm",)

    def __init__(self, radius, dimension: int, norm: type[norms.L1] | type[norms.L2], *, validate_args=None):
        self.radius, self.norm = radius, norm
        super().__init__(batch_shape=(), event_shape=(dimension,), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return _Ball(self.radius, self.norm)

    def sample(self, key, sample_shape=()):
        return self.radius * self.norm().draw_from_ball(key, sample_shape, self.event_shape[0])

    def log_prob(self, value):
        dimension = self.event_shape[0]
        log_volume = self.norm().log_volume(dimension) + dimension * jnp.log(self.radius)
        return jnp.where(self.support(value), -log_volume, -jnp.inf)
