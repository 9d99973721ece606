"""Domains as sets: membership, nearest points, chords, extreme products, and points to start from."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import optimize

import kngjax as kng

DIMENSIONS = (1, 2, 4)
RADIUS = 1.7
LOWER, UPPER = np.array([-1.0, 0.5, -3.0, -0.2]), np.array([2.0, 0.75, 4.0, 0.0])
BODIES = ("L1Ball", "L2Ball", "Box")

every_body = pytest.mark.parametrize("name", BODIES)
every_dimension = pytest.mark.parametrize("dimension", DIMENSIONS)


def build(name, dimension):
    if name == "Box":
        return kng.Box(LOWER[:dimension], UPPER[:dimension])
    return getattr(kng, name)(RADIUS)


def excess(name, theta):
    """How far a point is from being inside, in NumPy: at most 0 in the body."""
    dimension = theta.shape[-1]
    if name == "Box":
        return np.maximum(LOWER[:dimension] - theta, theta - UPPER[:dimension]).max(-1)
    return np.linalg.norm(theta, ord=1 if name == "L1Ball" else 2, axis=-1) - RADIUS


def points(dimension, number, seed, spread=2.0):
    return np.random.default_rng(seed).normal(scale=spread, size=(number, dimension))


def inside_points(name, dimension, number, seed):
    drawn = points(dimension, 200 * number, seed, 1.0)
    return drawn[excess(name, drawn) < -1e-6][:number]


def vertices(name, dimension):
    if name == "L1Ball":
        return RADIUS * np.concatenate([np.eye(dimension), -np.eye(dimension)])
    sides = np.stack([LOWER[:dimension], UPPER[:dimension]])
    return np.stack(np.meshgrid(*sides.T, indexing="ij"), -1).reshape(-1, dimension)


@pytest.mark.slow
@every_body
@every_dimension
def test_contains(name, dimension):
    domain, thetas = build(name, dimension), points(dimension, 500, 1)
    inside = np.asarray(jax.vmap(domain.contains)(thetas))
    np.testing.assert_array_equal(inside, excess(name, thetas) <= 0)
    assert 0 < inside.sum() < 500
    np.testing.assert_array_equal(np.isneginf(jax.vmap(domain.log_density)(thetas)), ~inside)


@pytest.mark.slow
@every_body
@every_dimension
def test_project_finds_the_nearest_point(name, dimension):
    domain = build(name, dimension)
    project = jax.jit(lambda theta: domain.project(theta))
    for theta in points(dimension, 6, 2, 3.0):
        projected = np.asarray(project(theta))
        assert excess(name, projected) <= 1e-12
        np.testing.assert_allclose(project(projected), projected, rtol=0, atol=1e-14)
        # θ - P(θ) makes an obtuse angle with every direction into the body: at its vertices it is enough to look.
        if name == "L2Ball":
            nearest = theta * min(1.0, RADIUS / np.linalg.norm(theta))
            np.testing.assert_allclose(projected, nearest, rtol=1e-12)
        else:
            assert np.all((vertices(name, dimension) - projected) @ (theta - projected) <= 1e-12)
    for theta in inside_points(name, dimension, 5, 3):
        np.testing.assert_allclose(project(theta), theta, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", [kng.L1Ball, kng.L2Ball])
@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_what_is_projected_onto_a_ball_lies_in_it_exactly(kind, dimension):
    """In fractions, and for `contains`: half of the points on the surface would be rounded to ones beyond it."""
    domain = kind(0.9)
    thetas = np.random.default_rng(9).standard_normal((200, dimension)) * 5.0
    found = np.asarray(jax.jit(jax.vmap(domain.project))(thetas))
    assert all(bool(domain.contains(theta)) for theta in found)
    for theta, given in zip(found, thetas, strict=True):
        size = sum(abs(Fraction(float(one))) ** domain.power for one in theta)
        assert size <= Fraction(0.9) ** domain.power
        if not bool(domain.contains(given)):
            assert size >= Fraction(0.9) ** domain.power * (1 - Fraction(1, 10**13))
        else:
            np.testing.assert_array_equal(theta, given)


@pytest.mark.slow
@every_body
@every_dimension
def test_chord_against_bisection(name, dimension):
    domain = build(name, dimension)
    starts, directions = inside_points(name, dimension, 20, 4), points(dimension, 20, 5)
    directions[::4, 1:] = 0.0  # coordinate directions, as samplers use them
    left, right = jax.vmap(domain.chord)(starts, directions)
    for theta, direction, ends in zip(starts, directions, zip(left, right, strict=True), strict=True):
        for sign, end in zip((-1.0, 1.0), ends, strict=True):
            found = optimize.brentq(
                lambda t, theta=theta, v=sign * direction: excess(name, theta + t * v), 0.0, 1e4, xtol=1e-13
            )
            np.testing.assert_allclose(end, sign * found, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["L1Ball", "L2Ball"])
def test_chord_from_the_boundary_contains_where_it_starts(name):
    domain = build(name, 4)
    outside, directions = points(4, 30, 6), points(4, 30, 7)
    on_boundary = np.asarray(jax.vmap(domain.project)(3.0 * outside + np.sign(outside)))
    left, right = map(np.asarray, jax.vmap(domain.chord)(on_boundary, directions))
    assert left.max() <= 1e-12
    assert right.min() >= -1e-12
    for share in np.linspace(0.0, 1.0, 5):
        steps = left + share * (right - left)
        assert excess(name, on_boundary + steps[:, None] * directions).max() <= 1e-9


@every_body
@every_dimension
def test_linear_interval_against_brute_force(name, dimension):
    domain, random = build(name, dimension), np.random.default_rng(8)
    for _ in range(5):
        ends = np.sort(random.normal(size=(2, dimension)), axis=0)
        left, right = domain.linear_interval(ends[0], ends[1])
        corners = np.stack(np.meshgrid(*ends.T, indexing="ij"), -1).reshape(-1, dimension)
        if name == "L2Ball":
            reach = RADIUS * np.linalg.norm(corners, axis=1).max()
            expected = (-reach, reach)
        else:
            products = corners @ vertices(name, dimension).T
            expected = products.min(), products.max()
        np.testing.assert_allclose((left, right), expected, rtol=1e-12)


@pytest.mark.default_cases(1)
@every_body
@every_dimension
def test_bijector_is_onto_with_the_right_determinant(name, dimension):
    bijector = build(name, dimension).bijector(dimension)
    for unconstrained in [np.zeros(dimension), *points(dimension, 5, 9, 1.5)]:
        theta = bijector(unconstrained)
        assert excess(name, np.asarray(theta)) < 0
        np.testing.assert_allclose(bijector._inverse(theta), unconstrained, rtol=1e-7, atol=1e-9)
        if np.any(unconstrained != 0.0):
            jacobian = np.asarray(jax.jacfwd(bijector)(unconstrained))
            np.testing.assert_allclose(
                bijector.log_abs_det_jacobian(unconstrained, theta), np.linalg.slogdet(jacobian)[1], rtol=1e-8
            )


@every_body
@every_dimension
def test_interior_points(name, dimension):
    domain = build(name, dimension)
    assert excess(name, np.asarray(domain.interior_point(dimension))) < -0.02
    np.testing.assert_allclose(domain.bijector(dimension)._inverse(domain.interior_point(dimension)), 0.0, atol=1e-9)


@every_body
@every_dimension
def test_widths_are_those_of_the_body(name, dimension):
    expected = UPPER[:dimension] - LOWER[:dimension] if name == "Box" else np.full(dimension, 2 * RADIUS)
    np.testing.assert_allclose(build(name, dimension).widths(dimension), expected)


def test_scalars_broadcast_over_the_coefficients():
    mixed = kng.Box(np.array([-1.0, -2.0]), 3.0)
    assert (kng.Box(-1.0, 1.0).dimension, mixed.dimension, kng.L1Ball(1.0).dimension) == (None, 2, None)
    np.testing.assert_array_equal(mixed.widths(2), [4.0, 5.0])
    np.testing.assert_allclose(kng.Box(-1.0, 1.0).log_density(jnp.zeros(3)), -3.0 * np.log(2.0))


@pytest.mark.parametrize("name", ["L1Ball", "L2Ball"])
@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan, [1.0, 2.0]], ids=str)
def test_the_radius_must_be_positive_and_finite(name, radius):
    with pytest.raises(ValueError, match="radius must be one positive and finite number"):
        getattr(kng, name)(radius)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (-np.inf, 1.0, "must be finite: an unbounded domain makes the density improper"),
        (-1.0, np.inf, "must be finite"),
        (np.nan, 1.0, "must be finite"),
        (1.0, -1.0, "lower must be below upper"),
        (np.zeros(2), np.array([1.0, 0.0]), "lower must be below upper"),
        (np.zeros(2), np.ones(3), "lower has 2 values and upper 3"),
        (np.zeros((2, 2)), np.ones((2, 2)), "must be scalars or have one value a coefficient"),
    ],
)
def test_boxes_that_are_none(lower, upper, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kng.Box(lower, upper)


def test_bodies_are_arguments_of_compiled_functions():
    traces = []

    @jax.jit
    def log_density(domain, theta):
        traces.append(None)
        return domain.log_density(theta)

    for radius in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(log_density(kng.L1Ball(radius), jnp.zeros(2)), -np.log(2.0 * radius**2))
    assert len(traces) == 1
    stacked = jax.vmap(kng.L2Ball)(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(jax.vmap(kng.L2Ball.widths, (0, None))(stacked, 1), [[2.0], [4.0]])


def test_a_box_by_name_is_taken_in_the_order_of_the_bounds():
    box = kng.Box({"age": (-1.0, 2.0), "intercept": (-9.0, 8.0)})
    assert repr(box) == 'Box({"age": (-1.0, 2.0), "intercept": (-9.0, 8.0)})'
    bounds = kng.Bounds(x={"age": (0.0, 1.0)})
    for kind in (kng.KNG, kng.ExponentialMechanism, kng.ObjectivePerturbation):
        mechanism = kind(kng.LogisticLoss(), bounds, box, 1.0, "replace")
        np.testing.assert_array_equal(mechanism.domain.lower, [-9.0, -1.0])
        np.testing.assert_array_equal(mechanism.domain.upper, [8.0, 2.0])
    for other in (kng.Bounds(x=(0.0, 1.0), columns=1), kng.Bounds(x={"height": (0.0, 1.0)})):
        with pytest.raises(
            ValueError, match=r"the domain names the coefficients \['age', 'intercept'\], and the bounds"
        ):
            kng.KNG(kng.LogisticLoss(), other, box, 1.0, "replace")
    for wrong in (({"age": 1.0},), ({"age": (0.0, 1.0)}, 2.0), (1.0,)):
        with pytest.raises(ValueError, match="a Box"):
            kng.Box(*wrong)


def test_uniform_balls_are_numpyro_distributions():
    ball = kng.L1Ball(2.0).distribution(3)
    assert isinstance(ball, dist.Distribution)
    assert (ball.batch_shape, ball.event_shape) == ((), (3,))
    assert not ball.is_discrete
