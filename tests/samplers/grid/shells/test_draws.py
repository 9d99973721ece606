"""The law of draws, and what their certificates say, against quadrature and sums of many digits."""

import random

import numpy as np
import pytest
from flint import arb, ctx

import kngjax as kng
from kngjax.mechanisms import smooth_draws
from kngjax.samplers.exact.exact import Exact
from kngjax.samplers.grid.smooth import matrices, search
from kngjax.samplers.grid.smooth.certificate import certify
from kngjax.samplers.grid.smooth.envelope import Envelope
from kngjax.samplers.grid.smooth.search import Problem
from kngjax.samplers.grid.smooth.solutions import enclose, estimate, refine
from kngjax.samplers.grid.smooth.solutions import search as newton
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law, assert_two_samples_agree

THRESHOLD = 0.3


def problem(n, d, epsilon, seed=0, norm=None, domain=None, skew=0.0):
    """A mechanism with records in which columns and residuals are skewed."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, (n, d))
    y = x @ np.full(d, 0.5 / d) + 0.2 * generator.standard_normal(n) + skew * generator.exponential(size=n)
    bounds = kng.Bounds(x=([-1.0] * d, [1.0] * d), intercept=False)
    domain = kng.L1Ball(3.0) if domain is None else domain
    mechanism = kng.KNG(kng.PseudoHuberLoss(THRESHOLD), bounds, domain, epsilon, "replace", norm)
    return mechanism, x, y


def parts(mechanism, x, y):
    way = mechanism.on_grid(mechanism.admit(x, y))
    assert isinstance(way, smooth_draws.GradientsOnGrid)
    records = way.prepare(x, y)
    return way, records, Problem(records, *way.sets)


def gradients(x, y, thetas):
    residuals = y[None] - thetas @ x.T
    return -(residuals / np.sqrt(1.0 + (residuals / THRESHOLD) ** 2)) @ x


def log_density(mechanism, x, y, thetas):
    """-ε/(2Δ)·max|G_j|/w_j with w = 2k·max|x_j|, Δ = 1."""
    epsilon = float(mechanism.epsilon)
    return -0.5 * epsilon * np.abs(gradients(x, y, thetas)).max(axis=1) / (2.0 * THRESHOLD)


def chances_of_cells(mechanism, x, y, unit, low, high):
    """P(k) for low ≤ k < high with one coefficient, by Gauss and Legendre's rule of four nodes in two parts of each."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    radius = float(mechanism.domain.radius)
    edges = np.clip(np.linspace(low - 0.5, high - 0.5, 2 * (high - low) + 1) * unit, -radius, radius)
    middles, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    places = (middles[:, None] + half[:, None] * nodes).reshape(-1, 1)
    values = np.concatenate([log_density(mechanism, x, y, part) for part in np.array_split(places, 100)])
    masses = (np.exp(values - values.max()).reshape(-1, 4) @ weights * half).reshape(-1, 2).sum(axis=1)
    return masses / masses.sum()


def drawn_by(mechanism, x, y, number, seed):
    """Values of as many releases, as `draw` makes them, from one envelope: it is a function of the records alone."""
    way, records, own = parts(mechanism, x, y)
    envelope, bits = way.envelope(records), random.Random(seed).getrandbits
    return way, np.array([way.grid.values(search.draw(own, envelope, way.grid, bits)) for _ in range(number)])


def check_one_coefficient(n, epsilon, radius, number, releases, monkeypatch, digits):
    mechanism, x, y = problem(n, 1, epsilon, domain=kng.L1Ball(radius), skew=0.1)
    monkeypatch.setattr(smooth_draws, "_DIGITS", digits)
    monkeypatch.setattr("secrets.randbits", random.Random(n).getrandbits)
    released = [kng.release(mechanism, x, y) for _ in range(releases)]
    assert released[0].certificate.assurance == "exact_with_rounding"
    assert released[0].certificate.rounding is None
    way, drawn = drawn_by(mechanism, x, y, number, n)
    (exponent,) = released[0].certificate.sampler["grid_exponents"]
    assert way.grid.exponents == (exponent,)
    unit = 2.0**exponent
    places = np.concatenate([[one.value[0] for one in released], drawn[:, 0]]) / unit
    np.testing.assert_array_equal(places, np.round(places))
    reach = int(np.ceil(radius / unit)) + 1
    chances = chances_of_cells(mechanism, x, y, unit, -reach, reach + 1)
    counts = np.array([np.sum(places == k) for k in range(-reach, reach + 1)])
    assert counts.sum() == number + releases
    # Several cells tell the law.
    assert np.sum(counts > 20) > 4
    assert_cell_frequencies(counts, chances)


# By shells and solutions; where the domain's end cuts the law; by boxes, as the domain is far from the estimate; and
# uniform on the domain with few records.
ONE = [(150, 10.0, 3.0, 0), (150, 10.0, 0.54, 0), (400, 5.0, 0.3, 1), (8, 1.0, 0.125, 3)]


@pytest.mark.parametrize(("n", "epsilon", "radius", "digits"), ONE)
def test_releases_of_one_coefficient_have_the_law_by_quadrature(n, epsilon, radius, digits, monkeypatch):
    check_one_coefficient(n, epsilon, radius, 700, 30, monkeypatch, digits)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon", "radius", "digits"), ONE)
def test_many_releases_of_one_coefficient_have_the_law_by_quadrature(n, epsilon, radius, digits, monkeypatch):
    check_one_coefficient(n, epsilon, radius, 25_000, 100, monkeypatch, digits)


def weighted_points(middles, widths, bounds):
    """A product of Gauss and Legendre's rules about these middles, within the box of the bounds."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    sides = [(max(m - w, low), min(m + w, high)) for m, w, (low, high) in zip(middles, widths, bounds, strict=True)]
    places = [(low + high) / 2 + (high - low) / 2 * nodes for low, high in sides]
    return np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, 2), np.outer(weights, weights).ravel()


# Within the domain, at an edge of a box, and at a corner of it, in which the law is far from the estimate.
@pytest.mark.parametrize("sides", [((-2.0, 2.0), (-2.0, 2.0)), ((-2.0, 0.2), (-2.0, 2.0)), ((-1.0, 0.1), (0.45, 1.0))])
def test_two_coefficients_have_the_law_by_quadrature(sides):
    """In 16 cells between quartiles."""
    domain = kng.Box([low for low, _ in sides], [high for _, high in sides])
    mechanism, x, y = problem(600, 2, 10.5, skew=0.2, domain=domain)
    _, drawn = drawn_by(mechanism, x, y, 1200, 5)
    assert kng.release(mechanism, x, y).certificate.assurance == "exact_with_rounding"
    ends = np.array(sides)
    assert np.all((drawn >= ends[:, 0] - 1e-3) & (drawn <= ends[:, 1] + 1e-3))
    points, weights = weighted_points(drawn.mean(axis=0), 10.0 * drawn.std(axis=0), sides)
    values = np.concatenate([log_density(mechanism, x, y, part) for part in np.array_split(points, 100)])
    masses = np.exp(values - values.max()) * weights
    # Quantiles of what is drawn: they take six of fifteen degrees of freedom at most.
    quartiles = np.quantile(drawn, [0.25, 0.5, 0.75], axis=0)

    def cells(thetas):
        return 4 * np.digitize(thetas[:, 0], quartiles[:, 0]) + np.digitize(thetas[:, 1], quartiles[:, 1])

    chances = np.bincount(cells(points), masses, minlength=16) / masses.sum()
    # Cells that the nodes' midpoints cut are summed to about a hundredth part.
    assert_cell_frequencies(np.bincount(cells(drawn), minlength=16), chances)


@pytest.mark.parametrize("shells", [0, 20])
@pytest.mark.parametrize("rings", [0, 9])
def test_pieces_of_the_domain_have_the_law_too(shells, rings):
    """With so few shells that draws come from rings and from all of the domain."""
    mechanism, x, y = problem(60, 1, 5.0, domain=kng.L1Ball(0.6), skew=0.1)
    way = smooth_draws.GradientsOnGrid(mechanism, 60, 1)
    records = way.prepare(x, y)
    own = Problem(records, *way.sets)
    with ctx.workprec(128):
        certificate = certify(records, *way.sets, estimate(records))
    assert certificate is not None
    full = way.envelope(records)
    finite = [one for one in certificate.radii if np.isfinite(one.radius)][:rings]
    edges, floors = full.edges[: shells + 1], [0.0, *(certificate.floor(one) for one in finite)]
    envelope = Envelope(
        certificate,
        edges,
        full.heights[:shells],
        np.array([0.0, *(one.radius for one in finite)]),
        np.maximum(np.maximum.accumulate(floors), edges[-1]),
        0.0,
    )
    bits = random.Random(100 * shells + rings).getrandbits
    drawn = np.array([way.grid.values(search.draw(own, envelope, way.grid, bits))[0] for _ in range(120)])
    places = np.linspace(-0.6, 0.6, 20_001)[:, None]
    density = np.exp(np.concatenate([log_density(mechanism, x, y, part) for part in np.array_split(places, 50)]))
    sums = np.cumsum(density)
    assert_same_law(drawn, lambda t: np.interp(t, places[:, 0], sums / sums[-1]))


@pytest.mark.parametrize(("d", "norm"), [(3, kng.L1()), (3, kng.L2()), (5, None)])
def test_draws_agree_with_those_of_float64(d, norm):
    mechanism, x, y = problem(3000, d, 40.0 * d * d / 25.0, norm=norm, skew=0.1, domain=kng.Box([-2.0] * d, [2.0] * d))
    way, records, own = parts(mechanism, x, y)
    envelope, bits = way.envelope(records), random.Random(d).getrandbits
    drawn = np.array([way.grid.values(search.draw(own, envelope, way.grid, bits)) for _ in range(200)])
    others = np.asarray(
        kng.sample(mechanism, mechanism.prepare(x, y), sampler=Exact(), num_draws=2000, key=kng.research_key(d)).theta
    )
    others = others.reshape(-1, d)
    for axis in range(d):
        assert_two_samples_agree(drawn[:, axis], others[:, axis])
    assert_two_samples_agree(*(np.linalg.norm(gradients(x, y, one), axis=1) for one in (drawn, others)))


@pytest.mark.parametrize("skew", [0.0, 0.5])
@pytest.mark.parametrize("d", [1, 3])
def test_heights_and_floors_hold_at_points_of_the_domain(d, skew):
    """log det R^{-2} - log det H(θ) ≤ E and ‖G(θ)‖ ≥ T at random points, computed with 200 bits."""
    mechanism, x, y = problem(400, d, 100.0, skew=skew)
    way, records, _ = parts(mechanism, x, y)
    gauge, region = way.sets
    generator, tight = np.random.default_rng(2), -np.inf
    with ctx.workprec(200):
        certificate = certify(records, gauge, region, estimate(records) + 0.01)
        assert certificate is not None
        factor = matrices.matrix(certificate.factor)
        for size in np.geomspace(1e-3, 3.0, 40):
            theta = certificate.theta + size * generator.dirichlet(np.ones(d)) * generator.choice([-1, 1], d)
            ball = [arb(float(one)) for one in theta]
            if region.contains(ball) is not True:
                continue
            there = records.evaluate_in_balls(ball)
            level = gauge(there.gradient)
            assert there.hessian is not None
            height = certificate.height(np.array([float(level) * (1 + 1e-12)]))[0]
            ratio = -matrices.log_determinant(matrices.congruent(factor, there.hessian))
            if np.isfinite(height):
                assert ratio <= height
                tight = max(tight, float(ratio) / height)
            away = np.linalg.norm(np.linalg.solve(certificate.factor.T, theta - certificate.theta))
            for radius in certificate.radii:
                assert radius.radius > away * (1 - 1e-9) or level >= certificate.floor(radius)
    # The bound is of use, and not far off for some of them.
    assert tight > 0.05


@pytest.mark.parametrize("d", [1, 2, 5])
def test_solutions_are_within_balls_of_any_number_of_digits(d):
    """Those of float64 contain those of 200 and of 400 binary digits, and the determinants there."""
    mechanism, x, y = problem(500, d, 100.0, skew=0.1)
    way, records, _ = parts(mechanism, x, y)
    _, region = way.sets
    generator = np.random.default_rng(d)
    certificate = way.envelope(records).certificate
    assert certificate is not None
    for _ in range(5):
        z = [arb(float(one)) for one in generator.normal(size=d)]
        with ctx.workprec(128):
            theta, evaluation, is_refused = newton(records, region, certificate, z)
            assert not is_refused
            solutions = [enclose(records, certificate, [arb(float(t)) for t in theta], evaluation, z)]
        for digits in (128, 400):
            with ctx.workprec(digits + 64):
                place, there, is_refused = refine(records, region, theta, z, digits)
                assert not is_refused
                solutions.append(enclose(records, certificate, place, there, z))
        first, *others = solutions
        assert first is not None
        assert all(ball.rad() < 2.0**-36 for ball in first.theta)
        assert first.log_ratio.rad() < 1e-9
        for digits, other in zip((128, 400), others, strict=True):
            assert other is not None
            assert all(wide.contains(narrow) for wide, narrow in zip(first.theta, other.theta, strict=True))
            assert first.log_ratio.contains(other.log_ratio)
            assert all(ball.rad() < 2.0 ** (30 - digits) for ball in other.theta)


def test_an_equation_that_has_no_solution_is_refused_with_proof():
    """No gradient is larger than k·Σ|x_ij|; and few equations are solved in a small domain."""
    mechanism, x, y = problem(300, 2, 50.0, domain=kng.L1Ball(0.51))
    way, records, _ = parts(mechanism, x, y)
    _, region = way.sets
    certificate = way.envelope(records).certificate
    assert certificate is not None
    for z in ([1e3, 0.0], [200.0, 90.0], [1e9, -1e9]):
        with ctx.workprec(128):
            theta, evaluation, is_refused = newton(records, region, certificate, [arb(one) for one in z])
            solution = enclose(
                records, certificate, [arb(float(t)) for t in theta], evaluation, [arb(one) for one in z]
            )
            assert is_refused or (solution is not None and region.contains(solution.theta) is False)


def test_cells_do_not_depend_on_whether_float64_could_tell(monkeypatch):
    """The same digits, with every decision taken by float64, or never."""
    from kngjax.samplers.grid import uniforms

    mechanism, x, y = problem(60, 2, 100.0)
    way, records, own = parts(mechanism, x, y)
    envelope, found = way.envelope(records), []
    for digits in (-1, 64):
        monkeypatch.setattr(search, "_DIGITS_OF_FLOATS", digits)
        bits = random.Random(7).getrandbits
        found.append([search.draw(own, envelope, way.grid, bits) for _ in range(20)])
    assert found[0] == found[1]
    assert uniforms._FIRST_DIGITS == 64


def test_which_releases_take_it_is_public():
    def way(n, d, epsilon, **changes):
        mechanism, x, y = problem(n, d, epsilon, **changes)
        return mechanism.on_grid(mechanism.admit(x, y))

    assert way(1500, 1, 1.0) is not None
    assert way(1499, 1, 1.0) is None
    assert way(600, 2, 10.0) is not None
    assert way(10, 3, 0.1) is not None
    assert way(600, 2, 10.0, norm=kng.Ellipsoid(np.eye(2))) is None
    mechanism, x, y = problem(3000, 1, 1.0)
    hidden = kng.KNG(mechanism.loss, mechanism.bounds, mechanism.domain, 1.0, "add_remove")
    assert hidden.on_grid(hidden.admit(x, y)) is None
    assert kng.certify(mechanism, x, y, sampler=Exact()).assurance == "exact_in_reals"


def chances_by_the_noise(way, x, y, edges):
    """Of the cells between these edges, with the noise that draws have, by Gauss and Legendre's rule."""
    gauge, _ = way.sets
    (scale,) = (float(one) for one in gauge.scales)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    middles, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    places = middles[:, None] + half[:, None] * nodes
    residuals = y[None] - places.reshape(-1, 1) * x[:, 0]
    k = float(way.mechanism.loss.k)
    gradient = -(residuals / np.sqrt(1.0 + (residuals / k) ** 2)) @ x[:, 0]
    masses = np.exp(-np.abs(gradient) / scale).reshape(places.shape) @ weights * half
    return masses / masses.sum()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_neighbours_are_told_apart_by_more_than_epsilon_and_some_nearly_by_that(epsilon):
    """One record at 0, and one so far above or below that its score is k or -k. Most of Θ lies above 0."""
    bounds = kng.Bounds(x=([-1.0], [1.0]), intercept=False)
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.01), bounds, kng.Box([-1.0], [64.0]), epsilon, "replace")
    edges, x, found = np.concatenate([np.linspace(-1.0, 1.0, 41), np.linspace(2.0, 64.0, 63)]), np.ones((2, 1)), []
    for other in (-1e9, 1e9):
        y = np.array([0.0, other])
        way = mechanism.on_grid(mechanism.admit(x, y))
        assert way is not None
        found.append(np.log(chances_by_the_noise(way, x, y, edges)))
    loss = np.max(np.abs(found[0] - found[1]))
    assert 0.9 * epsilon < loss <= epsilon


def test_the_noise_is_that_of_the_sensitivity_in_fractions():
    """A record at (u, s = k) for one at (u, s = -k): the loss of the densities' exponents is ε/2, and never more."""
    bounds = kng.Bounds(x=(np.array([-0.5, 0.1]), np.array([0.25, 0.7])))
    mechanism = kng.KNG(kng.PseudoHuberLoss(0.1), bounds, kng.L1Ball(2.0), 0.3, "replace")
    noise = smooth_draws.noise_of(mechanism, 3)
    assert noise is not None
    changes = [2 * smooth_draws.Fraction(0.1) * size for size in map(smooth_draws.Fraction, (1.0, 0.5, 0.7))]
    scales = [weight**2 * noise.scale_squared for weight in noise.weights]
    ratios = [change**2 / scale for change, scale in zip(changes, scales, strict=True)]
    assert max(ratios) == smooth_draws.Fraction(3, 20) ** 2
