"""Norms: values and duals, exact uniform draws from their balls, and noise of the K-norm law."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import kngjax as kng
from kngjax.geometry.norms import k_norm_log_mass, k_norm_noise
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

DIMENSIONS = (1, 2, 5)
NAMES = ("L1", "L2", "LInf", "WeightedLInf", "Ellipsoid", "Polytope")
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0, 0.7])
_ROOT = np.random.default_rng(11).normal(size=(5, 5))
MATRIX = _ROOT @ _ROOT.T + 0.5 * np.eye(5)
FACETS = np.concatenate([np.eye(5), 0.7 * np.random.default_rng(13).normal(size=(4, 5))])

every_norm = pytest.mark.parametrize("name", NAMES)
every_dimension = pytest.mark.parametrize("dimension", DIMENSIONS)


def build(name, dimension):
    if name == "Polytope":
        return kng.Polytope(facets=FACETS[:, :dimension])
    parameters = {"WeightedLInf": (WEIGHTS[:dimension],), "Ellipsoid": (MATRIX[:dimension, :dimension],)}
    return getattr(kng, name)(*parameters.get(name, ()))


def lengths(name, vectors):
    """The norms of rows, in NumPy."""
    dimension = vectors.shape[-1]
    return {
        "L1": lambda: np.abs(vectors).sum(-1),
        "L2": lambda: np.sqrt((vectors**2).sum(-1)),
        "LInf": lambda: np.abs(vectors).max(-1),
        "WeightedLInf": lambda: (np.abs(vectors) / WEIGHTS[:dimension]).max(-1),
        "Ellipsoid": lambda: np.sqrt(np.einsum("...i,ij,...j", vectors, MATRIX[:dimension, :dimension], vectors)),
        "Polytope": lambda: np.abs(vectors @ FACETS[:, :dimension].T).max(-1),
    }[name]()


def half_widths(name, dimension):
    """Of the smallest box around the unit ball."""
    if name == "WeightedLInf":
        return WEIGHTS[:dimension]
    if name == "Ellipsoid":
        return np.sqrt(np.diagonal(np.linalg.inv(MATRIX[:dimension, :dimension])))
    if name == "Polytope":
        return np.array([largest_product_over_the_polytope(axis) for axis in np.eye(dimension)])
    return np.ones(dimension)


def largest_product_over_the_polytope(vector):
    rows = FACETS[:, : len(vector)]
    ones = np.ones(2 * len(rows))
    return -optimize.linprog(-vector, A_ub=np.concatenate([rows, -rows]), b_ub=ones, bounds=(None, None)).fun


def uniform_by_rejection(name, dimension, number, random):
    """Uniform points of the unit ball, and how many of the `number` points of the box around it they are."""
    points = random.uniform(-1.0, 1.0, (number, dimension)) * half_widths(name, dimension)
    return points[lengths(name, points) <= 1.0]


@pytest.mark.slow
@every_norm
@every_dimension
def test_value_triangle_inequality_and_scaling(name, dimension):
    norm = build(name, dimension)
    vectors = np.random.default_rng(1).standard_cauchy((200, dimension))
    values = np.asarray(jax.vmap(norm)(vectors))
    np.testing.assert_allclose(values, lengths(name, vectors), rtol=1e-12)
    sums = np.asarray(jax.vmap(norm)(vectors[:100] + vectors[100:]))
    assert np.all(sums <= (values[:100] + values[100:]) * (1.0 + 1e-12))
    np.testing.assert_allclose(jax.vmap(norm)(-2.5 * vectors), 2.5 * values, rtol=1e-12)
    assert norm(np.zeros(dimension)) == 0.0


@every_norm
@every_dimension
def test_the_dual_norm_is_the_largest_product_over_the_ball(name, dimension):
    norm = build(name, dimension)
    for vector in np.random.default_rng(2).normal(size=(4, dimension)):
        if name == "L1":
            # u = p - q with p, q ≥ 0 and Σ p + q ≤ 1.
            programme = optimize.linprog(np.r_[-vector, vector], A_ub=np.ones((1, 2 * dimension)), b_ub=[1.0])
            largest = -programme.fun
        elif name in ("LInf", "WeightedLInf"):
            widths = half_widths(name, dimension)
            largest = -optimize.linprog(-vector, bounds=np.stack([-widths, widths], 1)).fun
        elif name == "Polytope":
            largest = largest_product_over_the_polytope(vector)
        else:
            inside = {"type": "ineq", "fun": lambda u: 1.0 - lengths(name, u) ** 2}
            result = optimize.minimize(
                lambda u, v=vector: -v @ u, 0.1 * np.sign(vector), constraints=[inside], options={"ftol": 1e-13}
            )
            largest = -result.fun
        np.testing.assert_allclose(norm.dual(vector), largest, rtol=1e-6)


@pytest.mark.default_cases(6)
@every_norm
@every_dimension
def test_draws_are_uniform_in_the_ball(name, dimension):
    draws = np.asarray(build(name, dimension).draw_from_ball(jax.random.key(3), (20_000,), dimension))
    radii = lengths(name, draws)
    assert radii.max() <= 1.0 + 1e-12
    assert_same_law(np.minimum(radii, 1.0) ** dimension, stats.uniform.cdf)
    random = np.random.default_rng(4)
    reference = uniform_by_rejection(name, dimension, 1_000_000 if name == "L1" else 150_000, random)
    direction = np.linspace(1.0, -0.4, dimension)
    assert_two_samples_agree(draws @ direction, reference @ direction)


@pytest.mark.slow
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
        draws = np.asarray(build(name, dimension).draw_from_ball(jax.random.key(5), (20_000,), dimension))
        for coordinate, width in zip(draws.T, half_widths(name, dimension), strict=True):
            assert_same_law(coordinate / width, law)


@every_norm
@every_dimension
def test_volume_is_the_share_of_a_box(name, dimension):
    norm, number = build(name, dimension), 200_000
    share = math.exp(float(norm.log_volume(dimension))) / np.prod(2.0 * half_widths(name, dimension))
    inside = len(uniform_by_rejection(name, dimension, number, np.random.default_rng(6)))
    if name in ("LInf", "WeightedLInf") or dimension == 1:
        assert share == pytest.approx(1.0, rel=1e-12)
        assert inside == number
    else:
        assert_cell_frequencies([inside, number - inside], [share, 1.0 - share])


@every_norm
def test_volume_and_mass_in_the_plane_by_quadrature(name):
    norm, rate = build(name, 2), 3.0

    def over_directions(power):
        def integrand(angle):
            return lengths(name, np.array([np.cos(angle), np.sin(angle)])) ** -power

        kinks = np.linspace(0.0, 2.0 * np.pi, 9)
        if name == "Polytope":
            vertices = np.asarray(norm.vertices)
            angles = np.arctan2(vertices[:, 1], vertices[:, 0])
            kinks = np.unique(np.concatenate([angles % (2.0 * np.pi), (angles + np.pi) % (2.0 * np.pi), kinks]))
        return sum(integrate.quad(integrand, *pair, epsabs=1e-11)[0] for pair in itertools.pairwise(kinks))

    # In polar coordinates ∫∫ exp(-rate·r‖e‖) r dr dφ = ∫ (rate·‖e‖)^(-2) dφ, and the volume is half of it at rate 1.
    np.testing.assert_allclose(norm.log_volume(2), np.log(over_directions(2) / 2.0), atol=1e-9)
    np.testing.assert_allclose(k_norm_log_mass(norm, rate, 2), np.log(over_directions(2) / rate**2), atol=1e-9)
    line = build(name, 1)
    np.testing.assert_allclose(k_norm_log_mass(line, rate, 1), np.log(2.0 / (rate * lengths(name, np.ones(1)))))


@pytest.mark.default_cases(6)
@every_norm
@every_dimension
def test_k_norm_noise_has_the_k_norm_law(name, dimension):
    norm, rate, number = build(name, dimension), 2.5, 20_000
    noise = np.asarray(k_norm_noise(norm, jax.random.key(7), rate, (number,), dimension))
    assert_same_law(lengths(name, noise), stats.gamma(dimension, scale=1.0 / rate).cdf)
    random = np.random.default_rng(8)
    ball = uniform_by_rejection(name, dimension, 1_000_000 if name == "L1" else 120_000, random)
    reference = ball * random.gamma(dimension + 1, 1.0 / rate, (len(ball), 1))
    direction = np.linspace(1.0, -0.4, dimension)
    assert_two_samples_agree(noise @ direction, reference @ direction)
    for coordinate, expected in zip(noise.T, reference.T, strict=True):
        assert_two_samples_agree(coordinate, expected)
    if name == "L1" or dimension == 1:
        scale = 1.0 / (rate * lengths(name, np.eye(dimension)[0]))
        assert_same_law(noise[:, 0], stats.laplace(scale=scale).cdf)


@pytest.mark.slow
@every_norm
def test_shapes_and_batches(name):
    norm, key = build(name, 2), jax.random.key(9)
    assert norm.draw_from_ball(key, (), 2).shape == (2,)
    assert norm.draw_from_ball(key, (3, 4), 2).shape == (3, 4, 2)
    assert k_norm_noise(norm, key, jnp.asarray(1.0), (3, 0), 2).shape == (3, 0, 2)
    rates = jnp.array([1.0, 10.0])
    mapped = jax.jit(jax.vmap(lambda rate: k_norm_noise(norm, key, rate, (), 2)))(rates)
    np.testing.assert_allclose(mapped[0], 10.0 * mapped[1], rtol=1e-12)


def test_dimensions_that_parameters_fix():
    assert [build(name, 5).dimension for name in NAMES] == [None, None, None, 5, 5, 5]


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0, -2.0], [1.0, np.nan]])
def test_weights_must_be_positive(weights):
    with pytest.raises(ValueError, match="weights of WeightedLInf must all be positive"):
        kng.WeightedLInf(np.array(weights))


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 0.5], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[np.nan, 0.0], [0.0, 1.0]]],
    ids=["not symmetric", "indefinite", "singular", "NaN"],
)
def test_the_matrix_must_be_symmetric_and_positive_definite(matrix):
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        kng.Ellipsoid(np.array(matrix))


def test_infinite_weights_are_refused():
    # Such a ball has no volume and its "norm" does not see the coordinate.
    with pytest.raises(ValueError, match="weights of WeightedLInf"):
        kng.WeightedLInf(np.array([1.0, np.inf]))


@every_norm
def test_norms_of_absolute_values_are_declared_so(name):
    """They do not see signs, and fall with no |v_j|: box_tree's bounds rest on it."""
    norm, random = build(name, 5), np.random.default_rng(17)
    vectors, shares = random.normal(size=(200, 5)), random.uniform(size=(200, 5))
    measured = jax.vmap(norm)
    same = np.allclose(measured(np.abs(vectors)), measured(vectors), rtol=1e-12)
    falls = np.all(measured(shares * vectors) <= measured(vectors) * (1.0 + 1e-12))
    assert norm.is_absolute == (same and falls) == (name not in ("Ellipsoid", "Polytope"))
