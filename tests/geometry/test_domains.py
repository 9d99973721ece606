"""Domains as sets: membership, nearest points, chords, extreme products, and points to start from."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import optimize

import kngjax as kng
from kngjax.core import registry
from tests.geometry.table import BODIES, LOWER, RADIUS, UPPER, excess, given_to, of_body, vertices

every_body = pytest.mark.parametrize("name", BODIES)
# The properties of one coefficient are those of an interval.
every_dimension = pytest.mark.parametrize(
    "dimension", [3, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)


def test_every_public_body_is_a_row_of_the_table():
    assert {one.__name__ for one in registry.classes("domains").values()} == {*BODIES, "BaseMeasure"}


def volume(name, dimension):
    """The volume of a body of radius r: (2r)^d/d!, π^{d/2}r^d/Γ(d/2 + 1), and the product of the sides."""
    return {
        "L1Ball": lambda: (2.0 * RADIUS) ** dimension / math.factorial(dimension),
        "L2Ball": lambda: math.pi ** (dimension / 2) * RADIUS**dimension / math.gamma(dimension / 2 + 1),
        "Box": lambda: np.prod((UPPER - LOWER)[:dimension]),
    }[name]()


@every_body
@every_dimension
def test_contains(name, dimension):
    thetas, found = given_to(name, dimension)[0], of_body(name, dimension)
    np.testing.assert_array_equal(found["contains"], excess(name, thetas) <= 0)
    assert 0 < found["contains"].sum() < 500
    np.testing.assert_array_equal(np.isneginf(found["log density"]), ~found["contains"])
    np.testing.assert_allclose(found["log density"][found["contains"]], -np.log(volume(name, dimension)))


@every_body
@every_dimension
def test_project_finds_the_nearest_point(name, dimension):
    (thetas, inside, *_), found = given_to(name, dimension), of_body(name, dimension)
    assert np.all(excess(name, found["projected"]) <= 1e-12)
    np.testing.assert_allclose(found["projected twice"], found["projected"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found["projected inside"], inside, rtol=0, atol=1e-14)
    if name == "L2Ball":
        nearest = thetas * np.minimum(1.0, RADIUS / np.linalg.norm(thetas, axis=1, keepdims=True))
        np.testing.assert_allclose(found["projected"], nearest, rtol=1e-12)
        return
    # θ - P(θ) makes an obtuse angle with every direction into the body: at its vertices it is enough to look.
    for theta, projected in zip(thetas, found["projected"], strict=True):
        assert np.all((vertices(name, dimension) - projected) @ (theta - projected) <= 1e-12)


@jax.jit
def projected_and_contained(domain, thetas):
    """The nearest points, and whether the domain contains them and the given ones."""
    found, contains = jax.vmap(domain.project)(thetas), jax.vmap(domain.contains)
    return found, contains(found), contains(thetas)


@pytest.mark.parametrize("kind", [kng.L1Ball, kng.L2Ball])
@pytest.mark.parametrize(
    "dimension", [40, pytest.param(1, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_what_is_projected_onto_a_ball_lies_in_it_exactly(kind, dimension):
    """In fractions, and for `contains`: half of the points on the surface would be rounded to ones beyond it."""
    domain = kind(0.9)
    thetas = np.random.default_rng(9).standard_normal((200, dimension)) * 5.0
    found, contained, given_contained = map(np.asarray, projected_and_contained(domain, thetas))
    assert contained.all()
    for theta, given, is_inside in zip(found, thetas, given_contained, strict=True):
        size = sum(abs(Fraction(float(one))) ** domain.power for one in theta)
        assert size <= Fraction(0.9) ** domain.power
        if not is_inside:
            assert size >= Fraction(0.9) ** domain.power * (1 - Fraction(1, 10**13))
        else:
            np.testing.assert_array_equal(theta, given)


@every_body
@every_dimension
def test_chord_against_bisection(name, dimension):
    (_, starts, directions, *_), (left, right) = given_to(name, dimension), of_body(name, dimension)["chords"]
    for theta, direction, ends in zip(starts, directions, zip(left, right, strict=True), strict=True):
        for sign, end in zip((-1.0, 1.0), ends, strict=True):
            found = optimize.brentq(
                lambda t, theta=theta, v=sign * direction: excess(name, theta + t * v), 0.0, 1e4, xtol=1e-13
            )
            np.testing.assert_allclose(end, sign * found, rtol=1e-9, atol=1e-12)


def test_chord_from_the_boundary_contains_where_it_starts():
    for name in ("L1Ball", "L2Ball"):
        found, directions = of_body(name, 3), given_to(name, 3)[2]
        # Of those that were projected from outside.
        outside = ~found["contains"][:20]
        left, right = (end[outside] for end in found["chords from the boundary"])
        assert left.max() <= 1e-12
        assert right.min() >= -1e-12
        for share in np.linspace(0.0, 1.0, 5):
            steps = left + share * (right - left)
            places = found["projected"][:20][outside] + steps[:, None] * directions[outside]
            assert excess(name, places).max() <= 1e-9


@every_body
@every_dimension
def test_linear_interval_against_brute_force(name, dimension):
    for ends, *interval in zip(given_to(name, dimension)[3], *of_body(name, dimension)["linear"], strict=True):
        corners = np.stack(np.meshgrid(*ends.T, indexing="ij"), -1).reshape(-1, dimension)
        if name == "L2Ball":
            reach = RADIUS * np.linalg.norm(corners, axis=1).max()
            expected = (-reach, reach)
        else:
            products = corners @ vertices(name, dimension).T
            expected = products.min(), products.max()
        np.testing.assert_allclose(interval, expected, rtol=1e-12)


@every_body
@every_dimension
def test_bijector_is_onto_with_the_right_determinant(name, dimension):
    found, unconstrained = of_body(name, dimension), given_to(name, dimension)[4]
    assert np.all(excess(name, found["constrained"]) < 0)
    np.testing.assert_allclose(found["unconstrained"], unconstrained, rtol=1e-7, atol=1e-9)
    expected = np.linalg.slogdet(found["jacobians"][1:])[1]
    np.testing.assert_allclose(found["log determinants"][1:], expected, rtol=1e-8)


@every_body
@every_dimension
def test_interior_points_and_widths_are_those_of_the_body(name, dimension):
    found = of_body(name, dimension)
    assert excess(name, found["interior"]) < -0.02
    np.testing.assert_allclose(found["back from the interior"], 0.0, atol=1e-9)
    expected = UPPER[:dimension] - LOWER[:dimension] if name == "Box" else np.full(dimension, 2 * RADIUS)
    np.testing.assert_allclose(found["widths"], expected)


def test_scalars_broadcast_over_the_coefficients():
    mixed = kng.Box(np.array([-1.0, -2.0]), 3.0)
    assert (kng.Box(-1.0, 1.0).dimension, mixed.dimension, kng.L1Ball(1.0).dimension) == (None, 2, None)
    np.testing.assert_array_equal(mixed.widths(2), [4.0, 5.0])
    np.testing.assert_allclose(kng.Box(-1.0, 1.0).log_density(jnp.zeros(3)), -3.0 * np.log(2.0))


def test_the_radius_must_be_positive_and_finite():
    for kind in (kng.L1Ball, kng.L2Ball):
        for radius in (0.0, -1.0, np.inf, np.nan, [1.0, 2.0]):
            with pytest.raises(ValueError, match="radius must be one positive and finite number"):
                kind(radius)


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
