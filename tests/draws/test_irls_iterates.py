"""Private IRLS with every rounding in its proof: noise, weights and sums of iterations, and what one record does."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.schema import Schema
from kngjax.draws import irls_iterates
from kngjax.draws.choice import proved_draw
from kngjax.draws.irls_iterates import IteratesOnGrid
from kngjax.draws.noisy_matrices import NoisyByWishart, NoisyTriangle
from kngjax.mechanisms.noise.matrix_noise import wishart_degrees

SIDE = np.ones(2)
BOUNDS = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0))
EPSILON, DELTA = 0.8, 1e-6
KINDS = {
    "zcdp, Gaussian": {},
    "zcdp, Laplace": {"moment_noise": "laplace", "matrix_noise": "laplace"},
    "zcdp, both": {"moment_noise": "laplace"},
    "zcdp, many": {"moment_noise": "laplace", "iterations": 60},
    "basic, Gaussian": {"accounting": "basic"},
    "basic, Laplace": {"accounting": "basic", "moment_noise": "laplace", "matrix_noise": "laplace", "delta": None},
    "basic, both": {"accounting": "basic", "matrix_noise": "laplace"},
    "basic, Wishart": {"accounting": "basic", "matrix_noise": "wishart"},
    "advanced, many": {"accounting": "advanced", "moment_noise": "laplace", "iterations": 60},
    "advanced, Laplace": {
        "accounting": "advanced",
        "moment_noise": "laplace",
        "matrix_noise": "laplace",
        "iterations": 60,
    },
    "advanced, Wishart": {"accounting": "advanced", "matrix_noise": "wishart", "iterations": 60},
}


def irls(bounds=BOUNDS, adjacency="replace", **changes):
    settings = {"epsilon": EPSILON, "delta": DELTA, "iterations": 3, "cap": 5.0, **changes}
    return kng.PrivateIRLS(bounds, adjacency=adjacency, **settings)


def way(mechanism) -> IteratesOnGrid:
    found = proved_draw(mechanism, Schema(mechanism.dimension))
    assert found is not None
    return found


def table(count=40, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (count, 2))
    return x, np.clip(0.2 + x @ [0.7, -0.4] + 0.3 * generator.laplace(size=count), -2.0, 2.0)


def columns_of(mechanism, x, y, **whose):
    records = mechanism.prepare(x, y, **whose).rows
    return np.column_stack([records.x, records.y]).T.copy()


@pytest.mark.default_cases("zcdp, both", "basic, Laplace", "advanced, many")
@pytest.mark.parametrize("kind", KINDS)
def test_a_release_has_every_rounding_in_its_proof(kind):
    """Each way to spend the budget, at the mechanism's own (ε, δ) and nothing besides."""
    mechanism = irls(**KINDS[kind])
    released = kng.release(mechanism, *table())
    certificate = released.certificate
    assert (certificate.assurance, certificate.rounding) == ("proved", None)
    assert (certificate.epsilon, certificate.delta) == (EPSILON, 0.0 if kind == "basic, Laplace" else DELTA)
    assert certificate.sampler["grid_exponents"] == way(mechanism).settings["grid_exponents"]
    np.testing.assert_array_equal(kng.Release.from_json(released.to_json()).value, released.value)


def test_hulls_are_proved_where_their_corners_are_known(monkeypatch):
    """And where they are not a release is rounded as before."""
    hull = kng.geometry.FeatureHull.powers(2, 0.0, 1.0)
    mechanism, x = irls(kng.Bounds(hull=hull, y=(-1.0, 1.0))), np.linspace(-0.5, 1.5, 9)[:, None] ** [1, 2]
    assert kng.release(mechanism, x, np.zeros(9)).certificate.assurance == "proved"
    found = way(mechanism)
    assert isinstance(found.matrix, NoisyTriangle)
    variance = found.matrix.diagonal.noise.scale_squared
    assert float(variance) ** 0.5 == pytest.approx(float(mechanism.noise_scales(3).matrix), rel=1e-6)
    shift = exactly(float(mechanism._budget()[0].shifts[1]))
    for record in np.asarray(mechanism.prepare(x, np.zeros(9)).x):
        _, matrix = found.moments(np.append(record, 0.0)[:, None], None)
        # An exchange is bounded by √2 times what a removal does.
        assert 2 * (matrix**2).sum() <= variance * shift**2
    monkeypatch.setattr("kngjax.sensitivity.moments_in_fractions.outer_corners", lambda _: None)
    assert proved_draw(mechanism, Schema(3)) is None
    assert kng.release(mechanism, x, np.zeros(9)).certificate.assurance == "in_reals"


def test_a_calibration_that_is_too_large_is_not_certified(monkeypatch):
    mechanism = irls()
    spent, noise = mechanism._budget()
    for factor, serves in ((1.0, True), (1.0 + 1e-7, False)):
        more = spent._replace(shifts=factor * spent.shifts)
        monkeypatch.setattr(type(mechanism), "_budget", lambda _, more=more: (more, noise))
        assert (proved_draw(mechanism, Schema(3)) is not None) == serves
    monkeypatch.undo()
    assert kng.release(mechanism, *table()).certificate.assurance == "proved"


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("cap", [0.01, 5.0])
def test_wishart_noise_that_is_too_small_is_not_certified(cap, adjacency, monkeypatch):
    """At weights below 1 and above: 1e-6 less than what hides the largest row."""
    mechanism = irls(adjacency=adjacency, cap=cap, moment_share=0.7, **KINDS["basic, Wishart"])
    spent, noise = mechanism._budget()
    for factor, serves in ((1.0, True), (1.0 - 1e-6, False)):
        less = noise._replace(matrix=factor * noise.matrix)
        monkeypatch.setattr(type(mechanism), "_budget", lambda _, less=less: (spent, less))
        assert (proved_draw(mechanism, Schema(3)) is not None) == serves


def moments_by_fractions(found, x, y, theta):
    """The moments of rows that Python's scalar arithmetic weights and rounds, one record at a time."""
    moment, matrix = [Fraction(0)] * 3, [[Fraction(0)] * 3 for _ in range(3)]
    for record in np.column_stack([np.ones(len(x)), x, y]).tolist():
        root = found.roots.largest
        if theta is not None:
            residual = record[-1]
            for value, coefficient in zip(record, theta.tolist(), strict=False):
                residual -= value * coefficient
            root = min(root, 1.0 / math.sqrt(max(1.0 / 5.0, abs(residual))))
        row = [
            round(Fraction(root * value) / Fraction(2) ** e) * Fraction(2) ** e
            for value, e in zip(record, found.rows.exponents, strict=True)
        ]
        for j in range(3):
            moment[j] += row[j] * row[3]
            for k in range(3):
                matrix[j][k] += row[j] * row[k]
    return moment, matrix


@pytest.mark.parametrize("theta", [None, [0.3, -0.7, 0.2], [1e3, -1e7, 3.3]])
def test_moments_are_those_of_rows_that_are_weighted_and_rounded_one_by_one(theta):
    mechanism, (x, y) = irls(), table(60)
    found, theta = way(mechanism), None if theta is None else np.array(theta)
    moment, matrix = found.moments(np.column_stack([np.ones(60), x, y]).T.copy(), theta)
    expected = moments_by_fractions(found, x, y, theta)
    assert list(moment) == expected[0]
    assert np.asarray(matrix).tolist() == expected[1]


@pytest.fixture
def steps(monkeypatch):
    """The noisy moments and iterates of releases: a list that they come to, three iterations a release."""
    found = []
    iterate = IteratesOnGrid.iterate

    def kept(self, moment, matrix):
        theta = iterate(self, moment, matrix)
        found.append((moment, matrix, theta))
        return theta

    monkeypatch.setattr(IteratesOnGrid, "iterate", kept)
    return found


def test_iterates_are_those_of_weighted_least_squares(steps):
    """Of 10⁶ ε the noise is nearly none: against NumPy's iterations."""
    mechanism, (x, y) = irls(epsilon=1e6, allow_large_epsilon=True), table(200)
    kng.release(mechanism, x, y)
    design, weights = np.column_stack([np.ones(200), x]), np.full(200, 5.0)
    for _, _, theta in steps:
        expected = np.linalg.solve(design.T @ (weights[:, None] * design), design.T @ (weights * y))
        np.testing.assert_allclose(theta, expected, rtol=0.02, atol=0.01)
        weights = 1.0 / np.maximum(0.2, np.abs(y - design @ theta))


@pytest.mark.parametrize("repair", ["floor", "ridge"])
def test_both_ways_make_the_same_of_noisy_moments(repair):
    """NumPy beside JAX, of a matrix with a negative eigenvalue."""
    generator = np.random.default_rng(0)
    matrix, moment = generator.normal(size=(3, 3)), generator.normal(size=3)
    found = irls_iterates.repaired_solution(np, matrix + matrix.T, moment, 0.7, repair)
    values, vectors = np.linalg.eigh(matrix + matrix.T)
    values = np.maximum(values, 0.7) if repair == "floor" else np.maximum(values + 0.7, 0.07)
    np.testing.assert_allclose(found, vectors @ np.diag(1.0 / values) @ vectors.T @ moment, rtol=1e-12)


SCALES = {"one": (1.0, 1.0), "far": (2.0**50, 1e-40), "near 0": (1e-59, 1e59)}


def extreme_bounds(name):
    wide, response = SCALES[name]
    sides = np.array([-wide, 0.0]), np.array([wide / 3.0, 7.0 * wide])
    return kng.Bounds(x=sides, y=(-response / 3.0, response), intercept=False)


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("power", [1.0, 1.25, 1.5, 1.9])
@pytest.mark.parametrize("name", SCALES)
def test_no_record_moves_exact_moments_more_than_the_noise_hides(name, power, adjacency):
    """Pairs at random and at corners, at iterates near the plane and far beyond it, in fractions.

    In units of the noise every change stays within the shift or the loss that the guarantee's parts state, and some
    come within a part in 10³ of it.
    """
    bounds, generator = extreme_bounds(name), np.random.default_rng(1)
    sides = (bounds.x_lower, bounds.y_lower), (bounds.x_upper, bounds.y_upper)
    lower, upper = (np.append(side, end) for side, end in sides)
    reached = []
    for kind in ("gaussian", "laplace"):
        kinds = {"moment_noise": kind, "matrix_noise": kind, "moment_share": 0.7}
        mechanism = irls(bounds, adjacency, power=power, cap=None, **kinds)
        found = way(mechanism)
        assert isinstance(found.matrix, NoisyTriangle)
        parts = mechanism._parts(mechanism._budget()[0])
        bound = [2 * part.exact_rho if kind == "gaussian" else part.exact_epsilon for part in parts]
        scales = found.moment.noise.scale_squared, found.matrix.diagonal.noise.scale_squared
        off_diagonal = found.matrix.above.noise.scale_squared
        assert off_diagonal == (scales[1] / 2 if kind == "gaussian" else scales[1])
        largest = [Fraction(0)] * 2
        for trial in range(60):
            pair = generator.uniform(lower, upper, (2, 3))
            if trial % 2:
                pair = np.where(generator.random((2, 3)) < 0.5, lower, upper)
            size = [0.0, 1.0, 1e-3, 1e150][trial % 4] if trial > 20 else 0.0
            if trial == 0:
                pair[0] = np.where(np.abs(lower) > np.abs(upper), lower, upper)
            theta = None if trial < 10 else generator.normal(size=2) * (upper[2] / upper[:2]) * size
            moves = []
            for record in pair[:1] if adjacency is Adjacency.ADD_REMOVE else pair:
                moves.append(found.moments(np.ascontiguousarray(record[:, None]), theta))
            one = moves[0]
            other = moves[1] if len(moves) > 1 else (0 * one[0], 0 * one[1])
            moment, matrix = one[0] - other[0], one[1] - other[1]
            upper_triangle = matrix[np.triu_indices(2, 1)]
            if kind == "gaussian":
                moved = [
                    (moment**2).sum() / scales[0],
                    (matrix.diagonal() ** 2).sum() / scales[1] + (upper_triangle**2).sum() / off_diagonal,
                ]
            else:
                moved = [
                    abs(moment).sum() ** 2 / scales[0],
                    (abs(matrix.diagonal()).sum() + abs(upper_triangle).sum()) ** 2 / scales[1],
                ]
            largest = [max(pair) for pair in zip(largest, moved, strict=True)]
        allowed = bound if kind == "gaussian" else [part**2 for part in bound]
        assert all(move <= most for move, most in zip(largest, allowed, strict=True))
        reached += [float(move / most) for move, most in zip(largest, allowed, strict=True)]
    if adjacency is Adjacency.ADD_REMOVE:
        assert min(reached) > 0.999
    else:
        # Records of one sign in a column are no opposites, so that an exchange does less here.
        assert min(reached) > 0.2


def of_persons(adjacency, **changes):
    facts = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0), unit=kng.Unit("patient", most_rows=1))
    return irls(facts, adjacency, **changes)


def moments_of_persons(found, people, theta, has_shares=True):
    """Those of persons, each (x, y) with one row an entry, by the public call."""
    x, y = (np.concatenate(sides) for sides in zip(*people, strict=True))
    ids = np.repeat(np.arange(len(people)), [len(rows) for _, rows in people])
    data = found.mechanism.prepare(x, y, person=ids)
    return found.moments(columns_of(found.mechanism, x, y, person=ids), theta, data.weights if has_shares else None)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_no_person_moves_exact_moments_more_than_the_noise_hides(kind, adjacency):
    """Persons of 1 to 300 rows, extremes favoured, in fractions; the noise is that for records, and so is its reach."""
    kinds, random = {"moment_noise": kind, "matrix_noise": kind}, np.random.default_rng(3)
    found, of_records = way(of_persons(adjacency, **kinds)), way(irls(BOUNDS, adjacency, **kinds))
    assert (found.moment, found.matrix) == (of_records.moment, of_records.matrix)
    parts = found.mechanism._parts(found.mechanism._budget()[0])
    allowed = [2 * part.exact_rho if kind == "gaussian" else part.exact_epsilon**2 for part in parts]
    scales = found.moment.noise.scale_squared, found.matrix.diagonal.noise.scale_squared
    off_diagonal, most = found.matrix.above.noise.scale_squared, {True: 0.0, False: 0.0}

    def person(m):
        rows = np.where(random.random((m, 3)) < 0.7, random.choice([-1.0, 1.0], (m, 3)), random.uniform(-1, 1, (m, 3)))
        return (
            (rows[:, :2], 2.0 * rows[:, 2]) if random.random() < 0.5 else (rows[:1, :2].repeat(m, 0), np.full(m, 2.0))
        )

    for trial in range(14):
        other, first = person(2), person(300 if trial == 0 else int(random.integers(1, 9)))
        second = [person(int(random.integers(1, 9)))] if adjacency is Adjacency.REPLACE else []
        theta = None if trial < 9 else random.normal(size=3)
        for has_shares in (True, False):
            one, two = (moments_of_persons(found, [other, *some], theta, has_shares) for some in ([first], second))
            moment, matrix = one[0] - two[0], one[1] - two[1]
            diagonal, above = matrix.diagonal(), matrix[np.triu_indices(3, 1)]
            if kind == "gaussian":
                moved = (moment**2).sum() / scales[0], (diagonal**2).sum() / scales[1] + (above**2).sum() / off_diagonal
            else:
                sizes = abs(moment).sum(), abs(diagonal).sum() + abs(above).sum()
                moved = tuple(size**2 / scale for size, scale in zip(sizes, scales, strict=True))
            most[has_shares] = max(most[has_shares], *(float(a / b) for a, b in zip(moved, allowed, strict=True)))
    assert 0.2 < most[True] <= 1.0
    assert most[False] > 4.0, "a control: rows of weight 1"


def test_iterates_of_persons_are_those_of_shares(steps):
    """Of 10⁶ ε, against NumPy's iterations, and so are the moments of simulations."""
    mechanism, (x, y) = of_persons("replace", epsilon=1e6, allow_large_epsilon=True), table(200)
    ids = np.repeat(np.arange(50), 4)[np.random.default_rng(0).permutation(200)]
    ids[:60] = 7
    shares = 1.0 / np.bincount(ids)[ids]
    made = kng.release(mechanism, x, y, person=ids)
    assert made.certificate.guarantee.unit == "patient"
    design, weights = np.column_stack([np.ones(200), x]), 5.0 * shares
    for _, _, theta in steps:
        expected = np.linalg.solve(design.T @ (weights[:, None] * design), design.T @ (weights * y))
        np.testing.assert_allclose(theta, expected, rtol=0.02, atol=0.02)
        weights = shares / np.maximum(0.2, np.abs(y - design @ theta))
    with float64():
        moment, matrix = mechanism._moments(made.value, jnp.asarray(False), mechanism.prepare(x, y, person=ids))
    np.testing.assert_allclose(moment, design.T @ (weights * y), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(matrix, design.T @ (weights[:, None] * design), rtol=1e-5, atol=1e-3)


def delta_of_shift(shift, epsilon):
    return stats.norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift)


def test_all_moments_together_meet_delta():
    """By SciPy, from the noise itself and the worst records of every iteration: δ is met, and hardly less is spent."""
    bounds = kng.Bounds(x=(-SIDE, SIDE), y=(-2.0, 2.0), intercept=False)
    found = way(irls(bounds))
    assert isinstance(found.matrix, NoisyTriangle)
    one, opposite, across = (
        found.moments(np.array([[1.0], [sign], [response]]), None)
        for sign, response in ((1.0, 2.0), (1.0, -2.0), (-1.0, 2.0))
    )
    squares = float(((one[0] - opposite[0]) ** 2).sum() / found.moment.noise.scale_squared)
    squares += float(((one[1] - across[1]) ** 2).sum() / found.matrix.diagonal.noise.scale_squared)
    failure = delta_of_shift(np.sqrt(3 * squares), EPSILON)
    assert failure <= DELTA * (1.0 + 1e-9)
    assert failure == pytest.approx(DELTA, rel=1e-4)


def test_wishart_noise_has_the_scale_that_is_documented():
    mechanism = irls(**KINDS["basic, Wishart"])
    found = way(mechanism).matrix
    assert isinstance(found, NoisyByWishart)
    assert found._degrees == wishart_degrees(3)
    assert float(found._scale) == pytest.approx(float(mechanism.noise_scales(3).matrix), rel=1e-9)
    assert found._scale > Fraction(float(mechanism._budget()[1].matrix))


@pytest.mark.default_cases("far-basic, Laplace", "near 0-zcdp, Gaussian")
@pytest.mark.parametrize("kind", ["zcdp, Gaussian", "basic, Laplace", "basic, Wishart"])
@pytest.mark.parametrize("name", SCALES)
def test_extreme_bounds_have_finite_values(name, kind):
    bounds = extreme_bounds(name)
    mechanism = irls(bounds, "add_remove", **KINDS[kind], power=1.5)
    lower, upper = (np.asarray(side) for side in (bounds.x_lower, bounds.x_upper))
    generator = np.random.default_rng(0)
    for count in (0, 1, 50):
        x = generator.uniform(lower, upper, (count, 2))
        y = generator.uniform(float(bounds.y_lower), float(bounds.y_upper), count)
        released = kng.release(mechanism, x, y)
        assert released.certificate.assurance == "proved"
        assert np.all(np.isfinite(released.value))


def test_the_intercept_alone():
    bounds = kng.Bounds(y=(0.0, 1.0))
    released = kng.release(irls(bounds, epsilon=5.0), y=np.full(4000, 0.75))
    assert released.certificate.assurance == "proved"
    assert released.value == pytest.approx([0.75], abs=0.1)


@pytest.mark.parametrize("repair", ["floor", "ridge"])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e150, 1e300, np.finfo(float).max])
def test_iterates_are_finite_whatever_the_noise(repair, size):
    found = way(irls(repair=repair))
    for sign in (1.0, -1.0):
        matrix = np.full((3, 3), size) * np.array([[1.0, -1.0, 1.0], [-1.0, sign, 1.0], [1.0, 1.0, -1.0]])
        assert np.all(np.isfinite(found.iterate(np.array([size, -size, sign]), matrix)))


@pytest.mark.parametrize("cap", [1e-300, 1e300])
def test_caps_beyond_float64_are_left_to_its_own_refusals(cap):
    """Noise so small or so large has no grid, and what happens instead is decided by public settings."""
    assert proved_draw(irls(cap=cap), Schema(3)) is None


def test_bounds_are_the_numbers_of_float64_that_they_are():
    """Next to 1 and to 2, where float32 has no numbers: sizes to 43 binary digits of the largest."""
    side = np.array([1.0 - 2.0**-40])
    bounds = kng.Bounds(x=(-side, side), y=(-1.0, 2.0 - 2.0**-40), intercept=False)
    sizes = way(irls(bounds, cap=4.0)).rows.sizes
    assert sizes == (2 - Fraction(2) ** -39, 4 - Fraction(2) ** -39)
