"""Norms: values and duals, exact uniform draws from their balls, and noise of the K-norm law."""

import functools
import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import kngjax as kng
from kngjax.core import registry
from kngjax.geometry.abstract_norms import AbstractAbsoluteNorm
from kngjax.geometry.norms import k_norm_noise
from tests.geometry.table import (
    DIMENSIONS,
    NORMS,
    RATE,
    WEIGHTS,
    drawn,
    half_widths,
    largest_product_over_the_polytope,
    lengths,
    measured,
    norm_of,
    uniform_by_rejection,
    vectors_of,
)
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

every_norm = pytest.mark.parametrize("name", NORMS)
# Of draws, three coefficients by default.
every_dimension = pytest.mark.parametrize(
    "dimension", [3, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)


def test_every_public_norm_is_a_row_of_the_table():
    assert {one.__name__ for one in registry.classes("norms").values()} == set(NORMS)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_value_triangle_inequality_and_scaling(dimension):
    vectors = vectors_of(dimension)[0]
    for name in NORMS:
        values, scaled, sums, _ = measured(name, dimension)["values"]
        np.testing.assert_allclose(values, lengths(name, vectors), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(scaled, 2.5 * values, rtol=1e-12, err_msg=name)
        assert np.all(sums <= (values + np.roll(values, 1)) * (1.0 + 1e-12)), name
        assert measured(name, dimension)["of nothing"] == 0.0


def largest_product(name, vector):
    """max v'u over the unit ball, by SciPy."""
    dimension = len(vector)
    if name == "L1":
        # u = p - q with p, q ≥ 0 and Σ p + q ≤ 1.
        return -optimize.linprog(np.r_[-vector, vector], A_ub=np.ones((1, 2 * dimension)), b_ub=[1.0]).fun
    if name in ("LInf", "WeightedLInf"):
        widths = half_widths(name, dimension)
        return -optimize.linprog(-vector, bounds=np.stack([-widths, widths], 1)).fun
    if name == "Polytope":
        return largest_product_over_the_polytope(vector)
    inside = {"type": "ineq", "fun": lambda u: 1.0 - lengths(name, u) ** 2}
    start, options = 0.1 * np.sign(vector), {"ftol": 1e-13}
    return -optimize.minimize(lambda u: -vector @ u, start, constraints=[inside], options=options).fun


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_dual_norm_is_the_largest_product_over_the_ball(dimension):
    for name in NORMS:
        for vector, dual in zip(vectors_of(dimension)[0][:4], measured(name, dimension)["duals"], strict=True):
            # Of unit size, as SciPy's tolerances ask for.
            size = np.linalg.norm(vector)
            np.testing.assert_allclose(dual / size, largest_product(name, vector / size), rtol=1e-6, err_msg=name)


@every_norm
@every_dimension
def test_draws_are_uniform_in_the_ball(name, dimension):
    draws, _ = drawn(name, dimension)
    radii = lengths(name, draws)
    assert radii.max() <= 1.0 + 1e-12
    assert_same_law(np.minimum(radii, 1.0) ** dimension, stats.uniform.cdf)
    reference = uniform_by_rejection(name, dimension, 50_000, np.random.default_rng(4))
    direction = np.linspace(1.0, -0.4, dimension)
    assert_two_samples_agree(draws @ direction, reference @ direction)


@every_dimension
def test_coordinates_of_uniform_draws_have_their_closed_laws(dimension):
    laws = {
        "LInf": lambda t: (1.0 + t) / 2.0,
        "WeightedLInf": lambda t: (1.0 + t) / 2.0,
        "L1": lambda t: 0.5 + np.sign(t) / 2.0 * (1.0 - (1.0 - np.abs(t)) ** dimension),
        "L2": lambda t: stats.beta.cdf((1.0 + t) / 2.0, (dimension + 1) / 2, (dimension + 1) / 2),
    }
    laws["Ellipsoid"] = laws["L2"]
    for name, law in laws.items():
        for coordinate, width in zip(drawn(name, dimension)[0].T, half_widths(name, dimension), strict=True):
            assert_same_law(coordinate / width, law)


@every_norm
def test_volume_is_the_share_of_a_box(name):
    for dimension in DIMENSIONS:
        number, box = 50_000, np.prod(2.0 * half_widths(name, dimension))
        share = math.exp(float(measured(name, dimension)["log volume"])) / box
        inside = len(uniform_by_rejection(name, dimension, number, np.random.default_rng(6)))
        if name in ("LInf", "WeightedLInf") or dimension == 1:
            assert share == pytest.approx(1.0, rel=1e-12)
            assert inside == number
        else:
            assert_cell_frequencies([inside, number - inside], [share, 1.0 - share])


@every_norm
def test_volume_and_mass_in_the_plane_by_quadrature(name):
    def over_directions(power):
        def integrand(angle):
            return lengths(name, np.array([np.cos(angle), np.sin(angle)])) ** -power

        kinks = np.linspace(0.0, 2.0 * np.pi, 9)
        if name == "Polytope":
            corners = np.asarray(norm_of(name, 2).vertices)
            angles = np.arctan2(corners[:, 1], corners[:, 0])
            kinks = np.unique(np.concatenate([angles % (2.0 * np.pi), (angles + np.pi) % (2.0 * np.pi), kinks]))
        return sum(integrate.quad(integrand, *pair, epsabs=1e-11)[0] for pair in itertools.pairwise(kinks))

    # In polar coordinates ∫∫ exp(-rate·r‖e‖) r dr dφ = ∫ (rate·‖e‖)^(-2) dφ, and the volume is half of it at rate 1.
    found, line, around = measured(name, 2), measured(name, 1), over_directions(2)
    np.testing.assert_allclose(found["log volume"], np.log(around / 2.0), atol=1e-9)
    np.testing.assert_allclose(found["log mass"], np.log(around / RATE**2), atol=1e-9)
    np.testing.assert_allclose(line["log mass"], np.log(2.0 / (RATE * lengths(name, np.ones(1)))))


@every_norm
@every_dimension
def test_k_norm_noise_has_the_k_norm_law(name, dimension):
    _, noise = drawn(name, dimension)
    assert_same_law(lengths(name, noise), stats.gamma(dimension, scale=1.0 / RATE).cdf)
    random = np.random.default_rng(8)
    ball = uniform_by_rejection(name, dimension, 50_000, random)
    reference = ball * random.gamma(dimension + 1, 1.0 / RATE, (len(ball), 1))
    direction = np.linspace(1.0, -0.4, dimension)
    assert_two_samples_agree(noise @ direction, reference @ direction)
    for coordinate, expected in zip(noise.T, reference.T, strict=True):
        assert_two_samples_agree(coordinate, expected)
    if name == "L1" or dimension == 1:
        scale = 1.0 / (RATE * lengths(name, np.eye(dimension)[0]))
        assert_same_law(noise[:, 0], stats.laplace(scale=scale).cdf)


@pytest.mark.slow
@every_norm
def test_shapes_and_batches(name):
    norm, key = norm_of(name, 2), jax.random.key(9)
    assert norm.draw_from_ball(key, (), 2).shape == (2,)
    assert norm.draw_from_ball(key, (3, 4), 2).shape == (3, 4, 2)
    assert k_norm_noise(norm, key, jnp.asarray(1.0), (3, 0), 2).shape == (3, 0, 2)
    rates = jnp.array([1.0, 10.0])
    mapped = jax.jit(jax.vmap(lambda rate: k_norm_noise(norm, key, rate, (), 2)))(rates)
    np.testing.assert_allclose(mapped[0], 10.0 * mapped[1], rtol=1e-12)


def test_norms_of_absolute_values_are_declared_so():
    """They do not see signs, and fall with no |v_j|: `largest_over_box` rests on it."""
    for name in NORMS:
        values, absolute = (measured(name, 3)[key] for key in ("values", "absolute"))
        same = np.allclose(absolute, values, rtol=1e-12)
        falls = np.all(values[3] <= values[0] * (1.0 + 1e-12))
        declared = isinstance(norm_of(name, 3), AbstractAbsoluteNorm)
        assert declared == (same and falls) == (name not in ("Ellipsoid", "Polytope")), name


def test_dimensions_that_parameters_fix():
    assert [norm_of(name, 3).dimension for name in NORMS] == [None, None, None, 3, 3, 3]


def test_weights_must_be_positive_and_finite():
    # The ball of an infinite weight has no volume, and its "norm" does not see the coordinate.
    for wrong in (0.0, -2.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights of WeightedLInf must all be positive"):
            kng.WeightedLInf(np.append(WEIGHTS[:1], wrong))


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 0.5], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[np.nan, 0.0], [0.0, 1.0]]],
    ids=["not symmetric", "indefinite", "singular", "NaN"],
)
def test_the_matrix_must_be_symmetric_and_positive_definite(matrix):
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        kng.Ellipsoid(np.array(matrix))


def end_in_fractions(radius, point, direction):
    """The largest t with ‖x + tv‖_1 ≤ radius: on the first piece of line, from turn to turn, that ends beyond it."""
    point, direction = ([Fraction(float(one)) for one in vector] for vector in (point, direction))

    def room(t):
        return Fraction(radius) - sum(abs(x + t * v) for x, v in zip(point, direction, strict=True))

    turns = sorted({Fraction(0)} | {-x / v for x, v in zip(point, direction, strict=True) if v and -x / v > 0})
    last = next((turn for turn, after in itertools.pairwise(turns) if room(after) < 0), turns[-1])
    slope = sum(abs(v) if (x + last * v) * v >= 0 else -abs(v) for x, v in zip(point, direction, strict=True))
    return last + room(last) / slope


def test_chords_of_the_l1_norm_against_fractions():
    generator = np.random.default_rng(0)
    points = generator.normal(size=(60, 5)) * (generator.random((60, 5)) < 0.7)
    points *= generator.random((60, 1)) / np.maximum(np.abs(points).sum(axis=1, keepdims=True), 1e-9)
    directions = generator.normal(size=(60, 5))
    # Along axes, along nearly an axis, and along what is nearly still.
    directions[:15] = np.eye(5)[np.arange(15) % 5]
    directions[15:30] *= 10.0 ** generator.integers(-200, 1, (15, 5))
    left, right = jax.jit(jax.vmap(functools.partial(kng.L1().chord, np.ones(()))))(points, directions)
    for point, direction, *ends in zip(points, directions, left, right, strict=True):
        for sign, end in zip((-1.0, 1.0), ends, strict=True):
            np.testing.assert_allclose(sign * end, float(end_in_fractions(1.0, point, sign * direction)), rtol=1e-9)
