"""Polytopes of features: they contain the curves that they promise, and every record that `prepare` lets through."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, spatial

import kngjax as kng
from kngjax.data import terms
from kngjax.data.records import prepare
from kngjax.geometry.feature_hulls import SLACK, FeatureHull, moment_curve
from kngjax.releases.certificate import describe

TRIANGLE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
PRODUCT = FeatureHull(TRIANGLE) * FeatureHull.powers(2, -1.0, 1.0, pieces=3) * FeatureHull.intervals(3.0, 4.0)
BOUNDS = kng.Bounds(hull=PRODUCT)


def is_in_hull(vertices, point, slack=0.0):
    """Whether the point is a mean of the vertices, moved from theirs by a factor of 1 + slack: a linear programme."""
    centre = vertices.mean(axis=0)
    outer = centre + (1.0 + slack) * (vertices - centre)
    left, right = np.column_stack([outer, np.ones(len(outer))]).T, np.append(point, 1.0)
    # In the l1 distance, so that rounding is a number and not a verdict.
    sides = np.hstack([left, np.eye(len(right)), -np.eye(len(right))])
    cost = np.append(np.zeros(len(outer)), np.ones(2 * len(right)))
    return optimize.linprog(cost, A_eq=sides, b_eq=right, bounds=(0.0, None)).fun <= 1e-11 * (1.0 + np.abs(point).max())


@pytest.mark.slow
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-1.0, 2.0), (10.0, 60.0)])
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_the_hull_of_powers_contains_the_curve(degree, pieces, lower, upper):
    vertices = moment_curve(degree, lower, upper, pieces)
    t = np.linspace(lower, upper, 1001)
    curve = t[:, None] ** np.arange(1, degree + 1)
    hull = FeatureHull.powers(degree, lower, upper, pieces)
    assert not np.any(hull.outside(curve))
    np.testing.assert_array_equal(hull.move_inside(curve), curve)
    scales = np.abs(curve).max(axis=0)
    assert all(is_in_hull(vertices / scales, point / scales) for point in curve[::125])
    # The ends are corners, so no smaller polytope has them inside.
    assert np.all(hull.outside(curve[[0, -1]] + 1e-6 * (curve[[0, -1]] - hull.centre)))


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_more_pieces_are_tighter_down_to_the_curve(degree):
    t = np.linspace(-1.0, 1.0, 4001)
    curve = t[:, None] ** np.arange(1, degree + 1)
    directions = np.random.default_rng(0).normal(size=(200, degree))
    smallest = np.max(directions @ curve.T, axis=1)
    gaps, volumes = [], []
    for pieces in (1, 2, 4, 8, 16):
        vertices = moment_curve(degree, -1.0, 1.0, pieces)
        gaps.append(np.max(np.max(directions @ vertices.T, axis=1) - smallest))
        volumes.append(spatial.ConvexHull(vertices).volume)
    assert min(gaps) >= 0.0
    # Control points are within O(1/pieces²) of the curve.
    assert np.all(np.diff(gaps) < 0.0)
    assert gaps[-1] <= 0.02
    assert np.all(np.diff(volumes) < 0.0)
    assert volumes[-1] <= 1.2 * spatial.ConvexHull(curve[::40]).volume


def test_products_and_intervals():
    assert PRODUCT.columns == 5
    assert PRODUCT.vertices.shape == (3 * 5 * 2, 5)
    np.testing.assert_allclose(PRODUCT.box[0], [0.0, 0.0, -1.0, -1.0 / 9.0, 3.0])
    np.testing.assert_allclose(PRODUCT.box[1], [2.0, 1.0, 1.0, 1.0, 4.0])
    assert not np.any(PRODUCT.outside(PRODUCT.vertices))
    assert not np.any(PRODUCT.outside(PRODUCT.centre[None]))
    both = FeatureHull.intervals([0.0, 1.0], [2.0, 3.0])
    np.testing.assert_array_equal(both.outside(np.array([[1.0, 2.0], [-0.1, 2.0], [1.0, 3.1]])), [False, True, True])
    np.testing.assert_array_equal(FeatureHull([[1.0], [0.0], [0.5]]).blocks[0], [[0.0], [1.0]])


ROWS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.just(5)),
    elements=st.floats(-1e12, 1e12) | st.floats(-2.0, 5.0) | st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0]),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_every_record_that_prepare_lets_through_is_in_the_polytope(rows):
    records = prepare(BOUNDS, rows, np.zeros(len(rows)))
    found = np.asarray(records.x)[:, 1:]
    lower, upper = PRODUCT.box
    assert np.all((found >= lower) & (found <= upper))
    for part, block in zip(np.split(found, [2, 4], axis=1), PRODUCT.blocks, strict=True):
        assert all(is_in_hull(block, row, slack=1.5 * SLACK) for row in part)
    clipped = np.clip(rows, lower, upper)
    inside = ~PRODUCT.outside(clipped)
    np.testing.assert_array_equal(found[inside], clipped[inside])
    # Record by record: alone, a record becomes the same.
    np.testing.assert_array_equal(prepare(BOUNDS, rows[-1:], np.zeros(1)).x, records.x[-1:])


def test_a_narrow_hull_far_from_zero_is_refused_and_others_keep_their_records():
    """What is moved inside is rounded in the units of its size: 1e-6 about 10⁶ has four digits left."""
    angles = 2.0 * np.pi * (np.arange(60) + 0.37) / 60
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    with pytest.raises(ValueError, match="subtract a public number from the columns"):
        kng.geometry.FeatureHull(1e6 + 1e-6 * circle)
    hull = kng.geometry.FeatureHull(1e6 + 2.0 * circle)
    random = np.random.default_rng(0)
    inside = hull.move_inside(hull.centre + 3.0 * random.normal(size=(20_000, 2)))
    # By hand, and half way to the polytope that sensitivities are computed from.
    normals = np.column_stack([np.cos(angles + np.pi / 60), np.sin(angles + np.pi / 60)])
    reach = np.max((inside - hull.centre) @ normals.T, axis=1) / (2.0 * np.cos(np.pi / 60))
    assert np.max(reach) < 1.0 + 1.5e-9
    assert np.max(reach) > 1.0 - 1e-9


def test_a_record_outside_moves_towards_the_centre():
    hull = FeatureHull(TRIANGLE)
    pulled = hull.move_inside(np.array([[2.0, 1.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(pulled[1], [0.5, 0.5])
    # On the segment from (2, 1) to the centre (2/3, 1/3), where x + 2y = 2.
    np.testing.assert_allclose(pulled[0], [1.0, 0.5], rtol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1.0 / 3.0, -0.9, 1e3, -1e5])
@pytest.mark.parametrize("unit", [1.0, 1e-59, 1e50])
def test_no_number_leaves_the_interval_between_it_and_the_centre(far, unit):
    """Rows next to the boundary, which are hardly moved, and rows at the corners of the box."""
    hull, random = FeatureHull(unit * (far + np.array(TRIANGLE))), np.random.default_rng(0)
    lower, upper = hull.box
    edge = random.uniform(size=(4000, 1)) * (hull.vertices[0] - hull.vertices[1]) + hull.vertices[1]
    edge = hull.centre + (edge - hull.centre) * (1.0 + 1e-9 * random.uniform(0.99, 1.01, (4000, 1)))
    corners = np.where(random.random((4000, 2)) < 0.5, lower, upper)
    rows = np.clip(np.vstack([edge, corners]), lower, upper)
    found = hull.move_inside(rows)
    assert 0 < np.sum(found != rows) < rows.size
    ends = np.minimum(rows, hull.centre), np.maximum(rows, hull.centre)
    assert np.all((ends[0] <= found) & (found <= ends[1]))


def test_the_sensitivity_is_that_of_a_polytope_around_the_enforced_one():
    for block, outer in zip(PRODUCT.blocks, PRODUCT.outer_blocks, strict=True):
        assert all(is_in_hull(outer, point) for point in block)
        centre = block.mean(axis=0)
        np.testing.assert_allclose(outer - centre, (1.0 + 2.0 * SLACK) * (block - centre), rtol=1e-9)


DESIGN = terms.Design(
    (
        terms.Polynomial("education", 0, 18),
        terms.Categorical("region", ("north", "south", "west"), missing="north"),
        terms.Polynomial("experience", -4, 60, degree=3),
    )
)


@pytest.mark.parametrize("pieces", [1, 4])
def test_the_hull_of_a_design_contains_its_columns(pieces):
    random = np.random.default_rng(1)
    columns = {
        "education": random.uniform(-5.0, 25.0, 3000),
        "region": random.choice(["north", "south", "west", "abroad"], 3000),
        "experience": np.concatenate([[-4.0, 60.0], random.uniform(-10.0, 70.0, 2998)]),
    }
    matrix, hull = DESIGN.matrix_of(columns), DESIGN.hull(pieces)
    assert (hull.columns, len(hull.blocks)) == (6, 3)
    bounds = kng.Bounds(x=(DESIGN.lower, DESIGN.upper), hull=hull)
    np.testing.assert_array_equal(np.asarray(prepare(bounds, matrix, np.zeros(3000)).x)[:, 1:], matrix)
    assert not np.any(hull.outside(matrix))
    # Two regions at once are in the box and not in the hull.
    both = np.array([[0.0, 1.0, 1.0, 0.0, -0.4, 0.0]])
    assert np.all((DESIGN.lower <= both) & (both <= DESIGN.upper))
    assert np.all(hull.outside(both))
    np.testing.assert_allclose(prepare(bounds, both, [0.0]).x[0, 2:4], [0.5, 0.5])
    np.testing.assert_allclose(prepare(bounds, both, [0.0]).x[0, 2:4].sum(), 1.0)


def test_a_value_in_place_of_missing_ones_leaves_the_hull_of_a_design_as_it_is():
    age = terms.Polynomial("age", 18, 80, degree=2)
    hulls = [terms.Design((term,)).hull() for term in (age, dataclasses.replace(age, missing=50))]
    assert eqx.tree_equal(*hulls)


def test_a_category_of_many_levels_is_a_simplex():
    hull = terms.Design((terms.Categorical("state", tuple(range(50))),)).hull()
    assert hull.blocks[0].shape == (50, 49)
    assert not np.any(hull.outside(np.eye(50)[:, 1:]))
    assert np.all(hull.outside(np.ones((1, 49))))


def test_bounds_with_a_hull():
    assert (BOUNDS.columns, BOUNDS.dimension) == (5, 6)
    np.testing.assert_allclose(BOUNDS.features(6)[0], [1.0, *PRODUCT.box[0]])
    assert [block.shape for block in BOUNDS.feature_blocks(6)] == [(1, 1), (3, 2), (5, 2), (2, 1)]
    assert len(kng.Bounds(hull=PRODUCT, intercept=False).feature_blocks(5)) == 3
    wide = kng.Bounds(x=(-5.0, 5.0), hull=FeatureHull(TRIANGLE))
    assert wide.columns == 2
    with pytest.raises(ValueError, match=r"X has 3 columns and bounds\.x is for 2"):
        prepare(wide, np.zeros((1, 3)), [0.0])
    with pytest.raises(ValueError, match=r"bounds\.x is for 3 columns and the hull for 2"):
        kng.Bounds(x=(np.zeros(3), np.ones(3)), hull=FeatureHull(TRIANGLE))
    with pytest.raises(ValueError, match=r"hull's centre .* lies outside of the bounds of x"):
        kng.Bounds(x=(1.0, 2.0), hull=FeatureHull(TRIANGLE))


def test_a_narrower_box_keeps_records_in_both():
    bounds = kng.Bounds(x=(0.0, 0.9), hull=FeatureHull(TRIANGLE))
    rows = np.random.default_rng(2).uniform(-1.0, 3.0, (500, 2))
    found = np.asarray(prepare(bounds, rows, np.zeros(500)).x)[:, 1:]
    assert np.all((found >= 0.0) & (found <= 0.9))
    assert not np.any(bounds.hull.outside(found))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FeatureHull(), "needs vertices"),
        (lambda: FeatureHull(np.zeros(3)), "vertices must be finite numbers of shape"),
        (lambda: FeatureHull([[1.0], [1.0]]), "lie in a plane"),
        (lambda: FeatureHull([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), "leave out a column that is constant"),
        (lambda: FeatureHull(np.random.default_rng(3).normal(size=(20, 7))), "6 dimensions at most"),
        (lambda: FeatureHull.powers(0, 0.0, 1.0), "degree ≥ 1"),
        (lambda: FeatureHull.powers(2, 1.0, 1.0), "finite lower < upper"),
        (lambda: FeatureHull.powers(2, 0.0, 1.0, pieces=0), "pieces ≥ 1"),
    ],
)
def test_what_is_no_polytope_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_hull_is_made_on_the_host():
    with pytest.raises(TypeError, match="make it outside of jit"):
        jax.jit(lambda points: FeatureHull(points).columns)(jnp.asarray(TRIANGLE))


def test_a_certificate_tells_the_vertices_and_nothing_that_follows_from_them():
    text = json.dumps(describe(BOUNDS))
    fields = json.loads(text)["hull"]
    assert fields["type"] == "FeatureHull"
    assert fields.keys() == {"type", "blocks"}
    np.testing.assert_array_equal(fields["blocks"][0], PRODUCT.blocks[0])
    norm = describe(kng.Polytope(TRIANGLE))
    assert norm.keys() == {"type", "vertices"}
    np.testing.assert_array_equal(kng.Polytope(norm["vertices"]).facets, kng.Polytope(TRIANGLE).facets)


def test_nobody_can_change_a_promise_that_was_made():
    norm = kng.Polytope(TRIANGLE)
    for part in (*PRODUCT.blocks, *PRODUCT.centres, *PRODUCT.facets, norm.vertices, norm.facets, norm.simplices):
        assert not part.flags.writeable
