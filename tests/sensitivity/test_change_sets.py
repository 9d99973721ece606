"""The set of possible gradient changes: against brute force, as cube, hull and ellipsoid, and in other bases."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import optimize

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.data import terms
from kngjax.sensitivity.change_sets import LARGEST_NUMBER, change_points, number_of_points
from kngjax.sensitivity.gradients import sensitivity_points

ADJACENCIES = ("replace", "add_remove")
both_adjacencies = pytest.mark.parametrize("adjacency", ADJACENCIES)
TAU = 0.8
LOSS, DOMAIN = kng.QuantileLoss(TAU), kng.Box(-2.0, 2.0)
CURVE = kng.geometry.FeatureHull.powers(2, -0.5, 1.0, pieces=2) * kng.geometry.FeatureHull.intervals(0.0, 2.0)
BOUNDS = {
    "box": kng.Bounds(x=(np.array([-1.0, 0.5]), np.array([2.0, 3.0]))),
    "box without intercept": kng.Bounds(x=(np.array([-1.0, 0.5, 0.0]), np.array([2.0, 3.0, 1.0])), intercept=False),
    "intercept": kng.Bounds(),
    "constant column": kng.Bounds(x=(np.array([2.0, 0.0]), np.array([2.0, 1.0])), intercept=False),
    "curve": kng.Bounds(hull=CURVE),
    "curve without intercept": kng.Bounds(hull=CURVE, intercept=False),
}
every_bounds = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)


def extreme_records(bounds):
    """The features at the corners of what is declared, with the intercept, shape (m, d)."""
    if bounds.hull is not None:
        columns = bounds.hull.vertices
    elif bounds.x_lower is None:
        columns = np.empty((1, 0))
    else:
        columns = np.array(list(itertools.product(*zip(bounds.x_lower, bounds.x_upper, strict=True))))
    return np.column_stack([np.ones((len(columns), int(bounds.intercept))), columns])


def all_changes(bounds, adjacency, tau=TAU):
    """s·x - s'·x' for every pair of extreme records and scores, or s·x."""
    contributions = np.concatenate([score * extreme_records(bounds) for score in (-tau, -0.1, 1.0 - tau)])
    if adjacency == "add_remove":
        return contributions
    return (contributions[:, None] - contributions[None]).reshape(-1, contributions.shape[1])


@pytest.mark.default_cases(
    "box-replace",
    "box without intercept-add_remove",
    "intercept-replace",
    "constant column-add_remove",
    "curve-replace",
    "curve without intercept-add_remove",
)
@both_adjacencies
@every_bounds
def test_the_points_have_the_hull_of_all_changes(bounds, adjacency):
    """The larger score is that of records below the plane, or of those above."""
    for tau in (TAU, 1.0 - TAU):
        changes = kng.sensitivity.sensitivity_set(kng.QuantileLoss(tau), bounds, DOMAIN, adjacency)
        brute, dimension = all_changes(bounds, adjacency, tau), bounds.dimension
        directions = np.concatenate([np.eye(dimension), np.random.default_rng(0).normal(size=(300, dimension))])
        expected = np.max(np.abs(directions @ brute.T), axis=1)
        np.testing.assert_allclose([changes.support(direction) for direction in directions], expected, rtol=1e-7)
        number = number_of_points(bounds.feature_blocks(dimension), changes.adjacency)
        assert changes.points.shape == (number, dimension)
        assert changes.adjacency is Adjacency.parse(adjacency)


@pytest.mark.slow
@both_adjacencies
@every_bounds
def test_the_exact_sensitivity_never_exceeds_that_of_the_box(bounds, adjacency):
    dimension = bounds.dimension
    brute, facets = all_changes(bounds, adjacency), np.tri(dimension)
    for norm, lengths in (
        (kng.L1(), np.abs(brute).sum(axis=1)),
        (kng.L2(), np.linalg.norm(brute, axis=1)),
        (kng.Polytope(facets=facets), np.abs(brute @ facets.T).max(axis=1)),
    ):
        mechanism = kng.KNG(LOSS, bounds, DOMAIN, 1.0, adjacency, norm)
        sensitivity = mechanism.sensitivity_for(dimension)
        assert sensitivity.value <= norm.largest_over_box(mechanism._changes(dimension)) * (1.0 + 1e-12)
        np.testing.assert_allclose(sensitivity.value, lengths.max(), rtol=1e-7)
        assert "points whose hull is that of all changes" in sensitivity.derivation


@pytest.mark.default_cases("add_remove")
@both_adjacencies
def test_symmetric_scores_and_features_fill_the_cube(adjacency):
    """Figure 1's problem in three dimensions: (1, x) with |x_j| ≤ 1 and scores in ±2."""
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0))
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), 1.0, adjacency)
    box = mechanism.score_norm(3)
    hull = kng.sensitivity.sensitivity_set(kng.SquaredLoss(), bounds, kng.L1Ball(1.0), adjacency, 3).hull()
    for vector in np.random.default_rng(1).normal(size=(20, 3)):
        np.testing.assert_allclose(hull(vector), box(vector), rtol=1e-12)
    np.testing.assert_allclose(hull.log_volume(3), box.log_volume(3), atol=1e-12)


@pytest.mark.slow
@both_adjacencies
def test_the_twelve_coefficients_of_figure_one(adjacency):
    bounds, ball = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0)), kng.L1Ball(1.0)
    changes = kng.sensitivity.sensitivity_set(kng.SquaredLoss(), bounds, ball, adjacency, 12)
    width = 4.0 if adjacency == "replace" else 2.0
    random = np.random.default_rng(2)
    for direction in (*random.normal(size=(20, 12)), *random.choice([-1.0, 1.0], (20, 12))):
        np.testing.assert_allclose(changes.support(direction), width * np.sum(np.abs(direction)), rtol=1e-12)
    # The least ellipsoid around a cube is a ball through its corners.
    matrix = np.asarray(changes.ellipsoid().matrix)
    np.testing.assert_allclose(matrix, np.eye(12) / (12.0 * width**2), atol=1e-9)
    with pytest.raises(ValueError, match="polytopes are for 6 dimensions at most"):
        changes.hull()


@pytest.mark.slow
def test_the_largest_number_of_points_is_served():
    parts = kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0)), kng.Box(-1.0, 1.0)
    assert sensitivity_points(*parts, Adjacency.REPLACE, 13) is not None
    sensitivity = kng.KNG(*parts, 1.0, "replace", kng.L1()).sensitivity_for(13)
    assert sensitivity.value == pytest.approx(13)
    assert "points whose hull" in sensitivity.derivation


def test_where_points_are_too_many_the_box_remains():
    parts = kng.QuantileLoss(0.5), kng.Bounds(x=(-1.0, 1.0)), kng.Box(-1.0, 1.0)
    number = number_of_points(parts[1].feature_blocks(13), Adjacency.REPLACE)
    assert number <= LARGEST_NUMBER < number_of_points(parts[1].feature_blocks(14), Adjacency.REPLACE)
    assert sensitivity_points(*parts, Adjacency.REPLACE, 14) is None
    sensitivity = kng.KNG(*parts, 1.0, "replace", kng.L1()).sensitivity_for(14)
    assert sensitivity.value == pytest.approx(14)
    assert "points whose hull" not in sensitivity.derivation
    with pytest.raises(ValueError, match="more than 8192 extreme points"):
        kng.sensitivity.sensitivity_set(*parts, "replace", 14)


@pytest.mark.slow
def test_points_are_computed_under_jit_from_traced_bounds_and_scores():
    @jax.jit
    def points(loss, bounds):
        return sensitivity_points(loss, bounds, DOMAIN, Adjacency.REPLACE, 3)

    for scale in (1.0, 2.0):
        bounds = kng.Bounds(x=(np.array([-1.0, 0.5]) * scale, np.array([2.0, 3.0]) * scale))
        expected = sensitivity_points(LOSS, bounds, DOMAIN, Adjacency.REPLACE, 3)
        np.testing.assert_allclose(points(LOSS, bounds), expected, rtol=1e-14)
    hull = kng.Bounds(hull=CURVE, intercept=False)
    expected = sensitivity_points(LOSS, hull, DOMAIN, Adjacency.REPLACE, 3)
    np.testing.assert_allclose(points(LOSS, hull), expected, atol=1e-14)
    many = jax.vmap(
        lambda tau: change_points(BOUNDS["intercept"].feature_blocks(1), (-tau, 1 - tau), Adjacency.REPLACE)
    )
    np.testing.assert_allclose(many(jnp.array([0.2, 0.5]))[:, 0, 0], -1.0)


@pytest.mark.slow
@both_adjacencies
def test_a_mechanism_with_a_fitted_norm_compiles(adjacency):
    bounds = BOUNDS["curve"]
    hull = kng.sensitivity.sensitivity_set(LOSS, bounds, DOMAIN, adjacency).hull()
    mechanism = kng.KNG(LOSS, bounds, DOMAIN, 2.0, adjacency, hull)
    random = np.random.default_rng(3)
    t = random.uniform(-0.5, 1.0, 30)
    data = mechanism.prepare(np.column_stack([t, t**2, random.uniform(0.0, 2.0, 30)]), random.normal(size=30))
    theta = np.array([0.1, -0.2, 0.3, 0.4])
    gradient = ((data.y <= data.x @ theta) - TAU) @ data.x
    found = jax.jit(lambda mechanism, data: mechanism.log_density(theta, data))(mechanism, data)
    np.testing.assert_allclose(found, -1.0 * hull(gradient) - 4.0 * np.log(4.0), rtol=1e-9)


WAGES = terms.Design((terms.Polynomial("education", 0, 18), terms.Polynomial("experience", 0, 60, degree=2)))


def bases_of_wages(random, count=40):
    """(bounds, columns, matrix T) of raw powers and of Legendre polynomials, with the features (1, x)T = (1, x')."""
    education, experience = random.uniform(0.0, 18.0, count), random.uniform(0.0, 60.0, count)
    raw = np.column_stack([education / 18.0, experience / 60.0, (experience / 60.0) ** 2])
    raw_hull = kng.geometry.FeatureHull.intervals(0.0, 1.0) * kng.geometry.FeatureHull.powers(2, 0.0, 1.0)
    legendre = WAGES.matrix_of({"education": education, "experience": experience})
    to_own = np.diag(1.0 / np.array([1.0, 18.0, 60.0, 60.0**2]))
    matrix = np.linalg.inv(to_own) @ WAGES.own_units_matrix
    return (kng.Bounds(hull=raw_hull), raw, np.eye(4)), (kng.Bounds(hull=WAGES.hull()), legendre, matrix)


@pytest.mark.slow
@both_adjacencies
@pytest.mark.parametrize("kind", ["hull", "ellipsoid"])
def test_fitted_norms_give_one_law_in_every_basis_and_the_box_does_not(kind, adjacency):
    random = np.random.default_rng(4)
    bases = bases_of_wages(random)
    y, thetas = random.normal(size=40), random.normal(size=(25, 4))
    ones = np.ones((40, 1))
    np.testing.assert_allclose(np.hstack([ones, bases[0][1]]) @ bases[1][2], np.hstack([ones, bases[1][1]]), atol=1e-12)

    def log_densities(norm):
        """log f at the same regressions: θ in raw powers is T^{-1}θ in Legendre polynomials."""
        found = []
        for bounds, columns, matrix in bases:
            loss, domain = kng.QuantileLoss(0.7), kng.BaseMeasure(dist.Normal(0.0, 1.0))
            changes = kng.sensitivity.sensitivity_set(loss, bounds, domain, adjacency)
            fitted = {"hull": changes.hull, "ellipsoid": changes.ellipsoid, None: lambda: None}[norm]()
            mechanism = kng.KNG(loss, bounds, domain, 3.0, adjacency, fitted)
            target = mechanism.target(mechanism.prepare(columns, y))
            found.append(-target.rate * jax.vmap(target.score)(np.linalg.solve(matrix, thetas.T).T))
        return np.asarray(found)

    fitted, box = log_densities(kind), log_densities(None)
    np.testing.assert_allclose(fitted[0], fitted[1], rtol=1e-6)
    assert np.max(np.abs(box[0] / box[1] - 1.0)) > 0.2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_ellipsoid_is_the_least_one_in_the_plane(seed):
    points = np.random.default_rng(seed).normal(size=(12, 2)) @ np.array([[3.0, 1.0], [0.0, 0.2]])
    norm = kng.Ellipsoid.of(points)
    assert np.max(jax.vmap(norm)(points)) == pytest.approx(1.0, rel=1e-12)

    def lengths(root):
        return np.sum((points @ np.array([[root[0], 0.0], [root[1], root[2]]])) ** 2, axis=1)

    least = optimize.minimize(
        lambda root: -np.log(root[0] * root[2]),
        np.array([0.1, 0.0, 0.1]),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda root: 1.0 - lengths(root)}],
        bounds=[(1e-9, None), (None, None), (1e-9, None)],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert np.max(lengths(least.x)) <= 1.0 + 1e-9
    np.testing.assert_allclose(norm.log_volume(2), np.log(np.pi) + least.fun, atol=1e-6)


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_the_ellipsoid_of_points_anywhere_has_them_all_and_a_certificate(dimension):
    random = np.random.default_rng(5)
    points = random.standard_cauchy((200, dimension))
    matrix = np.asarray(kng.Ellipsoid.of(points).matrix)
    lengths = np.einsum("ij,jk,ik->i", points, matrix, points)
    assert lengths.max() == pytest.approx(1.0, rel=1e-9)
    # Optimal if weights of the touching points reproduce A^{-1}/d (John 1948).
    touching = points[lengths > 1.0 - 1e-5]
    upper = np.triu_indices(dimension)
    root = np.linalg.cholesky(matrix)
    products = np.array([np.outer(point, point)[upper] for point in touching @ root])
    weights, distance = optimize.nnls(products.T, (np.eye(dimension) / dimension)[upper])
    assert distance <= 1e-4
    assert weights.sum() == pytest.approx(1.0, abs=1e-3)
    skewed = points @ (random.normal(size=(dimension, dimension)) * 10.0 ** np.linspace(-6.0, 6.0, dimension))
    expected = np.linalg.slogdet(matrix)[1] - 2.0 * np.linalg.slogdet(np.linalg.lstsq(points, skewed)[0])[1]
    np.testing.assert_allclose(np.linalg.slogdet(np.asarray(kng.Ellipsoid.of(skewed).matrix))[1], expected, rtol=1e-6)


def test_sets_are_arrays_and_norms_take_them():
    changes = kng.sensitivity.sensitivity_set(LOSS, BOUNDS["box"], DOMAIN, "replace")
    np.testing.assert_array_equal(np.asarray(changes), changes.points)
    np.testing.assert_array_equal(kng.Polytope(changes).facets, changes.hull().facets)
    np.testing.assert_array_equal(kng.Ellipsoid.of(changes).matrix, changes.ellipsoid().matrix)


def test_what_has_no_set_is_refused_with_advice():
    with pytest.raises(ValueError, match="pass dimension"):
        kng.sensitivity.sensitivity_set(LOSS, kng.Bounds(x=(0.0, 1.0)), kng.Box(-1.0, 1.0), "replace")
    with pytest.raises(ValueError, match=r"SquaredLoss needs public bounds of the response"):
        kng.sensitivity.sensitivity_set(kng.SquaredLoss(), BOUNDS["box"], DOMAIN, "replace")
    unbounded = kng.BaseMeasure(dist.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="without limit"):
        kng.sensitivity.sensitivity_set(
            kng.SquaredLoss(), kng.Bounds(x=(0.0, 1.0), y=(0.0, 1.0)), unbounded, "replace", 2
        )
    with pytest.raises(ValueError, match="points lie in a plane"):
        kng.Ellipsoid.of(np.ones((3, 2)))
