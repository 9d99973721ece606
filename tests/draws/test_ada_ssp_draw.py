"""AdaSSP on a grid: what neighbours do to its noisy moments, what they cost, and what follows of them."""

import random
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats

import kngjax as kng
from audits.grid_laws.neighbours import moment_variances, moments_alone
from kngjax.core.arrays import float64
from kngjax.data.schema import Schema
from kngjax.draws.ada_ssp_draw import NoisyMoments
from kngjax.draws.choice import proved_draw
from tests.oracles.exact_hockey_stick import exact, log_delta, precision

PLANE = kng.Bounds(x=([-1.0], [3.0]), y=(-2.0, 6.0))
LINE = kng.Bounds(x=([-1.5], [1.0]), y=(-0.5, 2.0), intercept=False)
SHARES = (0.2, 0.3, 0.5)


def way_of(mechanism, dimension) -> NoisyMoments:
    way = proved_draw(mechanism, Schema(dimension))
    assert way is not None
    return way


def squared_shift(way, first, second):
    """Of two data sets: how far apart the means of all that is released are, in deviations, squared."""
    both = (moments_alone(way, way.prepare(*data)) for data in (first, second))
    parts = zip(*both, moment_variances(way), strict=True)
    return sum((a - b) ** 2 / spread for ones, twos, spread in parts for a, b in zip(ones, twos, strict=True))


def assert_delta_is_met(squared, epsilon, delta, slack):
    """N(0, 1) and N(s, 1) differ by δ at ε, and by no more."""
    low, high = log_delta(exact(epsilon), lambda: exact(squared).sqrt(), lambda: exact(1))
    with precision(200):
        log = exact(delta).log()
        assert exact(high) <= log
        assert exact(low) >= log - slack


@pytest.mark.parametrize("bounds", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_no_neighbours_are_farther_apart_than_the_noise_hides(bounds, adjacency):
    """In fractions, through the very path of releases. On a line one record more is as far as that."""
    dimension = 1 + bounds.intercept
    mechanism = kng.AdaSSP(bounds, 0.5, 1e-6, adjacency, SHARES)
    way, generator, found = way_of(mechanism, dimension), np.random.default_rng(0), []
    lowest, highest = float(bounds.x_lower[0]), float(bounds.x_upper[0])
    ends = [float(bounds.y_lower), float(bounds.y_upper)]
    for _ in range(40):
        n = int(generator.integers(1, 4))
        x, y = generator.choice([lowest, highest], (n + 1, 1)), generator.choice(ends, n + 1)
        other = (x[:-1], y[:-1]) if adjacency == "add_remove" else (np.vstack([x[:-1], x[:1]]), np.append(y[:-1], y[0]))
        found.append(squared_shift(way, (x, y), other))
    hidden = 2 * mechanism.guarantee.exact_rho
    assert max(found) <= hidden
    # That λ_min is rounded costs a part in 2^19.
    closeness = {("line", "add_remove"): 1 - 2.0**-17, ("plane", "add_remove"): 0.7}
    name = "plane" if bounds.intercept else "line"
    assert max(found) >= hidden * closeness.get((name, adjacency), 0.3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, "0.000001"), (0.01, "1e-30"), (8.0, "0.1")])
def test_the_shift_meets_delta_and_no_more(epsilon, delta):
    """Of the three parts together, by their sensitivities' own values; the least room is that of the calibration."""
    mechanism = kng.AdaSSP(LINE, epsilon, float(delta), "replace", SHARES)
    way = way_of(mechanism, 1)
    # X² and Y² of records that float64 put into units whose widths are rounded outward.
    x, y = (Fraction(end) ** 2 for end in (1 - 2.0**-50 + 2.0**-53, 1 - 2.0**-50 + 2.0**-53))
    squares = (x**2, 4 * x * y, 2 * x**2)
    total = sum(square / spread for square, spread in zip(squares, moment_variances(way), strict=False))
    assert total == pytest.approx(float(2 * mechanism.guarantee.exact_rho), rel=1e-5)
    assert_delta_is_met(2 * mechanism.guarantee.exact_rho, epsilon, Fraction(delta), 1e-6 if epsilon < 8 else 1e-3)


def test_shares_are_of_the_whole_and_of_no_more():
    """Thirds of float64 do not add up to one; nor do these."""
    for shares in [(1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7000000000000002)]:
        mechanism = kng.AdaSSP(LINE, 1.0, 1e-6, "add_remove", shares)
        way = way_of(mechanism, 1)
        (x,) = {(Fraction(1.5) / Fraction(float(way.units.half_widths[0]))) ** 2}
        y = (Fraction(2.0) / Fraction(float(way.units.y_half_width))) ** 2
        least = way.step * -(-x // way.step)
        squares = (least**2, x * y, x**2)
        total = sum(square / spread for square, spread in zip(squares, moment_variances(way), strict=False))
        assert total == 2 * mechanism.guarantee.exact_rho


def test_a_release_is_the_estimate_of_these_moments(monkeypatch):
    """With the bits of the operating system replaced; and the research draws estimate alike."""
    mechanism = kng.AdaSSP(PLANE, 1.0, 1e-3, "replace", SHARES)
    x, y = np.linspace(-1.0, 3.0, 40)[:, None], np.linspace(-2.0, 6.0, 40)
    way = way_of(mechanism, 2)
    for seed in range(2):
        monkeypatch.setattr("secrets.randbits", random.Random(seed).getrandbits)
        released = kng.release(mechanism, x, y)
        least, moment, matrix = way.noisy_moments(way.prepare(x, y), random.Random(seed).getrandbits)
        with float64():
            on_least, _, on_matrix = np.array(mechanism.deviations(2))
        floor = on_matrix * (2.0 + np.sqrt(2.0 * np.log(20.0)))
        ridge = max(0.0, 2.0 * floor - max(0.0, least - on_least * stats.norm.ppf(0.95)))
        values, vectors = np.linalg.eigh(matrix)
        theta = vectors @ (vectors.T @ moment / np.maximum(values + ridge, floor))
        # a + b(x - 1)/2 in units of 4 about 2.
        np.testing.assert_allclose(released.value, [2.0 + 4.0 * (theta[0] - theta[1] / 2.0), 2.0 * theta[1]], rtol=1e-9)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_hulls_hide_what_they_let_through(adjacency):
    """A category's columns and a power's, of records that lie far outside of both."""
    hull = kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * kng.geometry.FeatureHull.powers(2, 1.0, 4.0)
    mechanism = kng.AdaSSP(kng.Bounds(y=(-1.0, 3.0), hull=hull), 1.0, 1e-6, adjacency, SHARES)
    way, generator, found = way_of(mechanism, 5), np.random.default_rng(0), []
    for _ in range(12):
        x, y = generator.normal(size=(4, 4)) * [9.0, 9.0, 40.0, 400.0], generator.normal(size=4) * 9.0
        other = (
            (x[:-1], y[:-1]) if adjacency == "add_remove" else (np.vstack([x[:-1], -x[-1:]]), np.append(y[:-1], 9.0))
        )
        found.append(squared_shift(way, (x, y), other))
    assert 0.1 * 2 * mechanism.guarantee.exact_rho < max(found) <= 2 * mechanism.guarantee.exact_rho
    certificate = kng.certify(mechanism, x, y)
    assert certificate.assurance == "proved"
    # The noise that the certificate tells is that of float64.
    deviation = float(way.matrix.diagonal.noise.scale_squared) ** 0.5
    assert deviation == pytest.approx(float(mechanism.deviations(5)[2]), rel=1e-6)


def test_a_shift_that_balls_do_not_certify_is_not_relied_on(monkeypatch):
    monkeypatch.setattr("kngjax.draws.noisy_sums.is_hidden", lambda *_: False)
    assert proved_draw(kng.AdaSSP(PLANE, 1.0, 1e-6, "replace"), Schema(2)) is None


def test_records_in_any_order_and_division_give_the_same_moments():
    """Records whose sums in float64 depend on their order, and on units that are none of float64's numbers."""
    bounds = kng.Bounds(x=([0.1, -0.3], [0.3, 0.7]), y=(0.1, 0.7))
    way, generator = way_of(kng.AdaSSP(bounds, 1.0, 1e-6, "replace"), 3), np.random.default_rng(1)
    x, y = generator.uniform([0.1, -0.3], [0.3, 0.7], (200, 2)), generator.uniform(0.1, 0.7, 200)
    expected, order = moments_alone(way, way.prepare(x, y)), generator.permutation(200)
    stream = kng.stream(iter([(x[order[:70]], y[order[:70]]), (x[order[70:]], y[order[70:]])]))
    assert moments_alone(way, way.prepare(x[order], y[order])) == expected
    assert moments_alone(way, way.prepare(stream, None)) == expected
    units = [Fraction(float(part)) for part in (*way.units.half_widths, way.units.y_half_width)]
    middles = [Fraction(float(part)) for part in (*way.units.middles, way.units.y_middle)]
    rows = [[1, *map(Fraction, map(float, row))] for row in np.column_stack([x, y])]
    table = np.array([[(v - m) / h for v, m, h in zip(row, middles, units, strict=True)] for row in rows], object)
    gram = table.T @ table
    _, moment, diagonal, others = expected
    assert (moment, diagonal) == (gram[:3, 3].tolist(), np.diag(gram)[:3].tolist())
    assert others == [gram[0, 1], gram[0, 2], gram[1, 2]]


@pytest.mark.parametrize(
    ("lower", "upper", "response"),
    [
        ([2.0**40, -1e-59], [2.0**40 + 2.0**30, 1e-59], (-1e59, 1e59)),
        ([-1e59, 0.1], [1e59, 0.3], (-1e-59, 1e-59)),
    ],
    ids=["large and tiny", "tiny response"],
)
def test_bounds_of_very_different_sizes_always_have_a_number(lower, upper, response):
    """Records that are equal, and no record."""
    bounds = kng.Bounds(x=(np.array(lower), np.array(upper)), y=response)
    mechanism = kng.AdaSSP(bounds, 0.1, 1e-9, "add_remove")
    for count in (30, 0):
        released = kng.release(mechanism, np.tile(upper, (count, 1)), np.full(count, response[1]))
        assert np.all(np.isfinite(released.value))
        assert released.certificate.assurance == "proved"


def test_no_eigenvalue_of_the_noisy_matrix_is_too_small():
    """Whatever the moments that are released are, θ is a number: what follows of them cannot fail."""
    mechanism = kng.AdaSSP(PLANE, 0.1, 1e-9, "replace")
    for least, diagonal in ((-1e9, -1e9), (0.0, 0.0), (1e9, -1e9), (-1e9, 1e9)):
        with float64():
            theta = np.array(mechanism.estimate(np.asarray(least), np.full(2, 1e9), np.diag(np.full(2, diagonal))))
        assert np.all(np.isfinite(theta))


def test_noise_is_the_same_where_jax_has_float32_alone():
    bounds = kng.Bounds(x=([2.0**40, 0.1], [2.0**40 + 2.0**30, 0.3]), y=(0.1, 0.7))
    mechanism = kng.AdaSSP(bounds, 1.0, 1e-6, "add_remove")
    expected = way_of(mechanism, 3)
    with jax.enable_x64(False):
        found = way_of(mechanism, 3)
    assert moment_variances(found) == moment_variances(expected)
    assert found.units.half_widths.dtype == np.float64
