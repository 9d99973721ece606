"""Polytope norms: gauges against linear programmes, uniform draws, volumes, changes of basis, and what is refused."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, spatial, stats

import kngjax as kng
from kngjax.geometry.norms import k_norm_noise
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

DIMENSIONS = (1, 2, 3, 5)
every_dimension = pytest.mark.parametrize("dimension", DIMENSIONS)


def points(dimension, number=9, seed=0):
    return np.random.default_rng(seed).normal(size=(number, dimension))


def gauge(vertices, vector):
    """The least Σ_i |λ_i| with v = Σ_i λ_i v_i, by a linear programme."""
    both = np.concatenate([vertices, -vertices])
    return optimize.linprog(np.ones(len(both)), A_eq=both.T, b_eq=vector, bounds=(0.0, None)).fun


@pytest.mark.slow
@every_dimension
def test_the_gauge_of_given_vertices_solves_a_linear_programme(dimension):
    vertices = points(dimension)
    norm = kng.Polytope(vertices)
    for vector in points(dimension, 12, seed=1):
        np.testing.assert_allclose(norm(vector), gauge(vertices, vector), rtol=1e-8)
        np.testing.assert_allclose(norm.dual(vector), np.max(np.abs(vertices @ vector)), rtol=1e-12)
    assert np.max(jax.vmap(norm)(vertices)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.slow
@every_dimension
def test_vertices_and_facets_describe_the_same_ball(dimension):
    norm = kng.Polytope(points(dimension))
    again, vectors = kng.Polytope(facets=norm.facets), points(dimension, 20, seed=2)
    np.testing.assert_allclose(jax.vmap(again)(vectors), jax.vmap(norm)(vectors), rtol=1e-9)
    np.testing.assert_allclose(jax.vmap(again.dual)(vectors), jax.vmap(norm.dual)(vectors), rtol=1e-9)
    np.testing.assert_allclose(again.log_volume(dimension), norm.log_volume(dimension), atol=1e-9)
    assert (norm.dimension, again.dimension) == (dimension, dimension)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_cubes_and_cross_polytopes(dimension):
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=dimension)))
    cube, cross = kng.Polytope(corners), kng.Polytope(np.eye(dimension))
    assert (cube.facets.shape[0], cube.vertices.shape[0]) == (dimension, 2 ** (dimension - 1))
    assert (cross.facets.shape[0], cross.vertices.shape[0]) == (2 ** (dimension - 1), dimension)
    for vector in points(dimension, 5, seed=3):
        np.testing.assert_allclose(cube(vector), np.max(np.abs(vector)), rtol=1e-12)
        np.testing.assert_allclose(cross(vector), np.sum(np.abs(vector)), rtol=1e-12)
    np.testing.assert_allclose(cube.log_volume(dimension), dimension * math.log(2.0), atol=1e-9)
    expected = dimension * math.log(2.0) - math.lgamma(dimension + 1)
    np.testing.assert_allclose(cross.log_volume(dimension), expected, atol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_the_volume_is_that_of_the_hull(dimension):
    vertices = points(dimension)
    volume = spatial.ConvexHull(np.concatenate([vertices, -vertices])).volume
    np.testing.assert_allclose(np.exp(kng.Polytope(vertices).log_volume(dimension)), volume, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 4])
def test_draws_are_uniform_in_the_hull_of_the_vertices(dimension):
    vertices = points(dimension)
    norm = kng.Polytope(vertices)
    draws = np.asarray(norm.draw_from_ball(jax.random.key(4), (20_000,), dimension))
    radii = np.max(np.abs(draws @ norm.facets.T), axis=1)
    assert radii.max() <= 1.0 + 1e-9
    assert_same_law(np.minimum(radii, 1.0) ** dimension, stats.uniform.cdf)
    # The simplices of Delaunay's triangulation are other ones than those that the draws come from.
    triangulation = spatial.Delaunay(np.concatenate([vertices, -vertices]))
    corners = triangulation.points[triangulation.simplices]
    volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / math.factorial(dimension)
    cells = triangulation.find_simplex(draws, tol=1e-9)
    assert_cell_frequencies(np.bincount(cells[cells >= 0], minlength=len(volumes)), volumes / volumes.sum())
    reference = np.random.default_rng(5).uniform(-1.0, 1.0, (400_000, dimension)) * np.abs(vertices).max(axis=0)
    reference = reference[triangulation.find_simplex(reference) >= 0]
    for direction in points(dimension, 3, seed=6):
        assert_two_samples_agree(draws @ direction, reference @ direction)


@pytest.mark.default_cases(2)
@every_dimension
def test_the_largest_value_over_a_box_is_at_a_corner(dimension):
    norm, widths = kng.Polytope(points(dimension)), np.random.default_rng(7).uniform(0.2, 3.0, dimension)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=dimension))) * widths
    np.testing.assert_allclose(norm.largest_over_box(widths), np.max(jax.vmap(norm)(corners)), rtol=1e-12)
    directions = points(dimension, 20_000, seed=8)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = float(np.max(jax.vmap(norm)(directions)))
    assert 0.85 * norm.largest_over_l2_ball(dimension) <= found <= norm.largest_over_l2_ball(dimension) * (1.0 + 1e-12)


@pytest.mark.parametrize("dimension", [2, 4])
def test_no_unit_is_too_small_or_too_large(dimension):
    vertices, vectors = points(dimension), points(dimension, 10, seed=9)
    matrix = points(dimension, dimension, seed=10) @ np.diag(10.0 ** np.linspace(-8.0, 8.0, dimension))
    here, there = kng.Polytope(vertices), kng.Polytope(vertices @ matrix)
    np.testing.assert_allclose(jax.vmap(there)(vectors @ matrix), jax.vmap(here)(vectors), rtol=1e-6)
    expected = here.log_volume(dimension) + np.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose(there.log_volume(dimension), expected, atol=1e-6)


@pytest.mark.slow
def test_polytopes_are_arguments_of_compiled_functions_and_can_be_mapped_over():
    norms = [kng.Polytope(scale * points(2, 3)) for scale in (1.0, 2.0)]
    traces = []

    @jax.jit
    def draw(norm, rate):
        traces.append(None)
        return norm(jnp.ones(2)), k_norm_noise(norm, jax.random.key(11), rate, (3,), 2)

    first, second = (draw(norm, jnp.asarray(1.0)) for norm in norms)
    assert len(traces) == 1
    np.testing.assert_allclose(second[0], first[0] / 2.0, rtol=1e-12)
    np.testing.assert_allclose(second[1], 2.0 * first[1], rtol=1e-9)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *norms)
    mapped = jax.vmap(draw, (0, None))(stacked, jnp.asarray(1.0))
    np.testing.assert_allclose(mapped[0], [first[0], second[0]], rtol=1e-12)
    np.testing.assert_allclose(mapped[1], [first[1], second[1]], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either vertices or facets"),
        ({"vertices": np.eye(2), "facets": np.eye(2)}, "either vertices or facets"),
        ({"vertices": np.ones(3)}, "vertices must be finite numbers of shape"),
        ({"vertices": np.zeros((0, 2))}, "vertices must be finite numbers of shape"),
        ({"vertices": np.array([[1.0, np.nan], [0.0, 1.0]])}, "vertices must be finite numbers of shape"),
        ({"vertices": np.zeros((1, 1))}, "vertices lie in a plane through the origin"),
        ({"vertices": np.array([[1.0, 2.0], [2.0, 4.0]])}, "leave out a column that is constant"),
        ({"vertices": np.array([[1.0, 0.0], [2.0, 0.0]])}, "2 linearly independent ones are needed"),
        ({"vertices": np.eye(3)[:2]}, "3 linearly independent ones are needed"),
        ({"facets": np.array([[1.0, 1.0], [2.0, 2.0]])}, "add facets in the missing directions"),
        ({"vertices": np.eye(7)}, "polytopes are for 6 dimensions at most. Take norm=None"),
    ],
)
def test_what_is_no_ball_is_refused_with_advice(arguments, message):
    with pytest.raises(ValueError, match=message):
        kng.Polytope(**arguments)


def test_a_polytope_is_made_on_the_host():
    with pytest.raises(TypeError, match="make it outside of jit"):
        jax.jit(lambda vertices: kng.Polytope(vertices)(jnp.ones(2)))(jnp.eye(2))
