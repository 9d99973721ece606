"""Mechanisms of records with weights: weight 1 is no weight, weight 3 is three records; and what takes none refuses."""

import math
import random

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from audits.replay import replayed_sensitivity
from kngjax.core import registry
from kngjax.core.arrays import float64
from kngjax.data import weights
from kngjax.data.records import QuadraticSummary, Records, WeightedRecords
from kngjax.data.weights import WeightedTable, with_weights
from kngjax.draws import grid_cells, perturbed_minimizers
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.choice import proved_draw
from kngjax.draws.lattice.lattice_sums import whole_features
from kngjax.draws.quadratic import bodies
from kngjax.draws.quadratic_draws import QuadraticDraw
from tests.oracles.goodness_of_fit import assert_cell_frequencies

N = 12
GENERATOR = np.random.default_rng(3)
X = GENERATOR.uniform(-1.0, 1.0, (N, 1))
Y = np.clip(0.6 + 0.4 * X[:, 0] + 0.3 * GENERATOR.standard_normal(N), 0.0, 2.0)
WHOLE = GENERATOR.integers(0, 4, N).astype(float)
WEIGHTS = weights.clipped(GENERATOR.uniform(0.0, 3.0, N), 3.0)
DOMAIN = kng.Box([-0.5, -1.0], [1.5, 1.0])
LOSSES = {
    "quantile": kng.QuantileLoss(0.3),
    "squared": kng.SquaredLoss(),
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "Huber": kng.HuberLoss(0.4),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "expectile": kng.ExpectileLoss(0.8),
    "smoothed quantile": kng.SmoothedQuantileLoss(0.3, 0.2),
}
SMOOTH = tuple(name for name in LOSSES if name not in ("quantile", "squared"))


def responses(name):
    return (Y > 0.6).astype(float) if name == "logistic" else Y


def made(name, kind=kng.KNG, adjacency="replace", weight=3.0, domain=DOMAIN, epsilon=1.0, **more):
    y = (0.0, 1.0) if name == "logistic" else (0.0, 2.0)
    columns = {} if (domain.dimension or 2) == 1 else {"x": (np.array([-1.0]), 1.0)}
    bounds = kng.Bounds(**columns, y=y, weight=weight)
    return kind(LOSSES[name], bounds, domain, epsilon, adjacency, allow_large_epsilon=True, **more)


@jax.jit
def log_density(mechanism, theta, data):
    return mechanism.log_density(theta, data)


@jax.jit
def record_gradients(loss, theta, rows):
    """Mechanisms for records with weights, and without them."""
    return loss.record_gradients(theta, rows), loss.record_gradients(theta, rows.rows)


@jax.jit
def sums(loss, theta, data):
    return loss.value(theta, data), loss.gradient(theta, data), loss.hessian(theta, data)


@pytest.mark.default_cases("quantile", "pseudo-Huber")
@pytest.mark.parametrize("name", LOSSES)
def test_whole_weights_are_repeated_records(name):
    """Of records that are repeated by hand, whose weights are 1; and each record's gradient is w times its own."""
    loss, y, times = LOSSES[name], responses(name), WHOLE.astype(int)
    with float64():
        given = made(name).prepare(X, y, weights=WHOLE)
        repeated = made(name, weight=None).prepare(np.repeat(X, times, axis=0), np.repeat(y, times))
        theta = np.array([0.31, -0.27])
        first, second = (sums(loss, theta, data)[: 2 if name == "quantile" else 3] for data in (given, repeated))
        jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-12), first, second)
    rows = WeightedRecords(Records(np.column_stack([np.ones(N), X]), y), WHOLE)
    with float64():
        each, plain = map(np.asarray, record_gradients(loss, theta, rows))
        np.testing.assert_allclose(each, WHOLE[:, None] * plain, rtol=1e-12)


@pytest.mark.default_cases("quantile")
@pytest.mark.parametrize("name", ["quantile", "squared", "pseudo-Huber"])
def test_estimates_without_privacy_are_those_of_repeated_records(name):
    times = WHOLE.astype(int)
    bounds = kng.Bounds(x=(np.array([-1.0]), 1.0), weight=3.0)
    given = kng.data.prepare_rows(bounds, WeightedTable(X, WHOLE), Y)
    repeated = Records(np.repeat(given.rows.x, times, axis=0), np.repeat(Y, times))
    fits = [kng.owner.nonprivate.fit(LOSSES[name], data).theta for data in (given, repeated)]
    values = [float(sums(LOSSES[name], fit, repeated)[0]) for fit in fits]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.default_cases("quantile-KNG-replace", "squared-ExponentialMechanism-add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", [kng.KNG, kng.ExponentialMechanism, kng.ObjectivePerturbation])
@pytest.mark.parametrize("name", ["quantile", "squared", "pseudo-Huber"])
def test_weights_of_1_are_no_weights(name, kind, adjacency):
    if name == "quantile" and kind is kng.ObjectivePerturbation:
        pytest.skip("it is refused, with weights and without")
    theta, densities, sensitivities = jnp.array([0.3, -0.2]), [], []
    for weight, given in ((1.0, np.ones(N)), (None, None)):
        mechanism = made(name, kind, adjacency, weight)
        data = mechanism.prepare(X, Y, weights=given)
        with float64():
            densities.append(float(log_density(mechanism, theta, data)))
        sensitivities.append(mechanism.sensitivity_for(2).value)
    assert densities[0] == pytest.approx(densities[1], rel=1e-9)
    assert sensitivities[0] == pytest.approx(sensitivities[1], rel=1e-12)


GRIDS = {
    "quadratic KNG": ("squared", kng.KNG),
    "boxes": ("pseudo-Huber", kng.KNG),
    "quadratic objective": ("squared", kng.ObjectivePerturbation),
    "smooth objective": ("logistic", kng.ObjectivePerturbation),
}


@pytest.mark.parametrize("case", GRIDS)
def test_draws_on_grids_with_weights_of_1_are_those_without(case):
    """From the same bits to the last digit."""
    name, kind = GRIDS[case]
    values = []
    for weight, given in ((1.0, np.ones(N)), (None, None)):
        mechanism, X_given = made(name, kind, weight=weight), with_weights(X, given)
        way = proved_draw(mechanism, mechanism.intake.check_schema(X_given, responses(name)))
        assert way.takes_weights
        data = way.prepare(X_given, responses(name))
        values.append([way.draw_alone(data, random.Random(seed).getrandbits) for seed in range(3)])
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("case", ["quadratic objective", "smooth objective"])
def test_minimisers_of_whole_weights_are_those_of_repeated_records(case):
    """For the same noise and ridge, those of weights up to 3: from the same bits to the last digit."""
    name, kind = GRIDS[case]
    mechanism, times = made(name, kind, "add_remove"), WHOLE.astype(int)
    y = responses(name)
    way = proved_draw(mechanism, mechanism.intake.check_schema(WeightedTable(X, WHOLE), y))
    repeated = np.repeat(X, times, axis=0), np.repeat(y, times)
    without = eqx.tree_at(lambda part: part.bounds.weight, mechanism, None, is_leaf=lambda part: part is None)
    other = type(way)(without, way.law, way.grid)
    for seed in range(3):
        value = way.draw_alone(way.prepare(WeightedTable(X, WHOLE), y), random.Random(seed).getrandbits)
        expected = other.draw_alone(other.prepare(*repeated), random.Random(seed).getrandbits)
        np.testing.assert_array_equal(value, expected)


def slope(name, theta, y, w):
    """Σ w_i s_i at each θ of a line, by hand."""
    eta = theta[..., None]
    score = {
        "quantile": lambda: (y <= eta) - 0.3,
        "squared": lambda: eta - y,
        "pseudo-Huber": lambda: (eta - y) / np.sqrt(1.0 + ((eta - y) / 0.3) ** 2),
        "logistic": lambda: 1.0 / (1.0 + np.exp(-eta)) - y,
    }[name]()
    return (w * score).sum(axis=-1)


# Weights up to 3: by hand the most that Σ w_i s_i changes by, for Θ = [-.5, 1.5] and y in [0, 2] or [0, 1].
CHANGES = {
    ("quantile", "replace"): 3.0,
    ("quantile", "add_remove"): 2.1,
    ("squared", "replace"): 12.0,
    ("squared", "add_remove"): 7.5,
    ("pseudo-Huber", "replace"): 1.8,
    ("logistic", "add_remove"): 3.0,
}
LINE = kng.Box([-0.5], [1.5])


def logistic_change():
    """The score lies in [σ(-.5) - 1, σ(1.5)]: under add_remove W times the larger size."""
    return 3.0 * max(1.0 / (1.0 + math.exp(-1.5)), 1.0 - 1.0 / (1.0 + math.exp(0.5)))


@pytest.mark.default_cases("quantile-replace", "logistic-add_remove")
@pytest.mark.parametrize(("name", "adjacency"), CHANGES)
def test_releases_of_kng_have_the_probabilities_of_quadrature(name, adjacency, monkeypatch):
    """exp(-(ε/2Δ)·|Σ w_i s_i|) by NumPy, with Δ by hand; each release refuses nothing and says that records weigh."""
    monkeypatch.setattr(bodies, "_DIGITS", 3)
    mechanism, y = made(name, adjacency=adjacency, domain=LINE, epsilon=3.0), responses(name)
    change = logistic_change() if name == "logistic" else CHANGES[name, adjacency]
    lattice = kng.draws.Lattice(theta_digits=4, max_records=64 if adjacency == "add_remove" else None)
    given, bits = with_weights(None, WEIGHTS), random.Random(5).getrandbits
    certificate = kng.certify(mechanism, given, y, sampler=lattice if name == "quantile" else None)
    assert certificate.assurance == "proved"
    assert any("counts times its own weight" in one for one in certificate.assumptions)
    assert certificate.mechanism["bounds"]["weight"] == 3.0
    if name == "quantile":
        data = lattice.prepare(mechanism, given, y)
        problem = lattice.problem(mechanism, data)
        envelope = lattice.envelope(problem)
        values = np.array([problem.domain.values(envelope.draw(bits))[0] for _ in range(300)])
        # Points of a lattice: the law has their density, and they are as far apart as the values say.
        points = np.arange(-0.5, 1.5 + 1e-9, 2.0**-3)
        masses = np.exp(-3.0 / (2.0 * change) * np.abs(slope(name, points, y, WEIGHTS)))
        assert set(values.tolist()) <= set(points.tolist())
        counts = [(values == point).sum() for point in points]
    else:
        way = proved_draw(mechanism, mechanism.intake.check_schema(given, y))
        assert isinstance(way, QuadraticDraw if name == "squared" else BoxDraw)
        data = way.prepare(given, y)
        values = np.array([way.draw_alone(data, bits)[0] for _ in range(300)])
        unit = 2.0 ** way.grid.exponents[0]
        numbers = np.arange(round(-0.5 / unit), round(1.5 / unit) + 1)
        edges = np.concatenate([[-0.5], (numbers[:-1] + 0.5) * unit, [1.5]])
        inside = (np.arange(400) + 0.5) / 400
        grid = edges[:-1, None] + np.diff(edges)[:, None] * inside
        density = np.exp(-3.0 / (2.0 * change) * np.abs(slope(name, grid, y, WEIGHTS)))
        masses = density.mean(axis=1) * np.diff(edges)
        places = np.rint(values / unit)
        counts = [(places == number).sum() for number in numbers]
    assert_cell_frequencies(counts, masses / masses.sum())


@pytest.mark.default_cases("squared")
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_releases_of_objective_perturbation_have_the_law_of_the_minimiser(name, monkeypatch):
    """θ ≤ t if and only if b ≥ -(Σ w_i s_i(t) + γt), with γ of W·ρ'' and b of W·s, both by hand."""
    monkeypatch.setattr(grid_cells, "_DIGITS", 2)
    monkeypatch.setattr(perturbed_minimizers, "_DIGITS", -1)
    y, epsilon = responses(name), 4.0
    change, curvature = (12.0, 3.0) if name == "squared" else (3.0 * 1.0, 3.0 * 0.25)
    mechanism = made(name, kng.ObjectivePerturbation, domain=LINE, epsilon=epsilon)
    if name == "logistic":
        change = 3.0 * (1.0 / (1.0 + math.exp(-1.5)) + 1.0 - 1.0 / (1.0 + math.exp(0.5)))
    spent = epsilon if name == "squared" else epsilon * 0.99
    rate, ridge = 0.5 * spent / change, curvature / math.expm1(0.5 * spent)
    assert mechanism.sensitivity_for(1).value == pytest.approx(1.0)
    assert float(mechanism.ridge(1)) == pytest.approx(ridge)
    given, bits = with_weights(None, WEIGHTS), random.Random(5).getrandbits
    way = proved_draw(mechanism, mechanism.intake.check_schema(given, y))
    data, unit = way.prepare(given, y), 2.0 ** way.grid.exponents[0]
    values = [way.draw_alone(data, bits)[0] for _ in range(300)]
    # P(θ < t): of a value that is rounded to t or more, the edge of its cell.
    edges = np.linspace(-0.5 + 0.5 * unit, 1.5 - 0.5 * unit, 9)
    edges = (np.floor(edges / unit) + 0.5) * unit
    tilt = slope(name, np.clip(edges, -0.5, 1.5), y, WEIGHTS) if name == "logistic" else slope(name, edges, y, WEIGHTS)
    scaled = rate * (tilt + ridge * edges)
    below = np.where(scaled < 0, 0.5 * np.exp(-np.abs(scaled)), 1.0 - 0.5 * np.exp(-np.abs(scaled)))
    counts = np.histogram(values, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    assert_cell_frequencies(counts, np.diff(np.concatenate([[0.0], below, [1.0]])))


@pytest.mark.default_cases("replace")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_the_mean_of_records_with_weights_is_drawn_about_the_weighted_mean(adjacency):
    x = np.column_stack([Y, 1.0 - Y])
    bounds = kng.Bounds(x=(np.array([0.0, -1.0]), np.array([2.0, 1.0])), intercept=False, weight=3.0)
    mechanism = kng.KNG(
        kng.SquaredDistanceLoss(), bounds, kng.Box([0.0, -1.0], [2.0, 1.0]), 1e4, adjacency, allow_large_epsilon=True
    )
    expected = WEIGHTS @ x / WEIGHTS.sum()
    released = kng.release(mechanism, x, weights=WEIGHTS)
    assert released.certificate.assurance == "proved"
    np.testing.assert_allclose(released.value, expected, atol=0.02)
    data = mechanism.prepare(x, weights=WEIGHTS)
    assert isinstance(data, QuadraticSummary)
    assert data.num_records == N
    theta = jnp.array([0.4, 0.2])
    with float64():
        by_hand = WEIGHTS @ (np.asarray(theta) - x)
        np.testing.assert_allclose(mechanism.loss.gradient(theta, data), by_hand, rtol=1e-12)
        rows = mechanism.intake.rows(with_weights(x, WEIGHTS))
        np.testing.assert_allclose(sums(mechanism.loss, theta, rows)[1], by_hand, rtol=1e-12)
        np.testing.assert_allclose(mechanism.loss.record_gradients(theta, rows).sum(axis=0), by_hand, rtol=1e-12)
        half = 0.5 * WEIGHTS @ ((np.asarray(theta) - x) ** 2).sum(axis=1)
        np.testing.assert_allclose(sums(mechanism.loss, theta, rows)[0], half, rtol=1e-12)


@pytest.mark.default_cases("logistic")
@pytest.mark.parametrize("name", ["squared", "logistic", "quantile"])
def test_no_records_and_weights_of_0_are_drawn_alike(name, monkeypatch):
    """Under add_remove: neither tells anything of θ. Under replace weights of 0 may be all that there is."""
    kinds = (kng.KNG,) if name == "quantile" else (kng.KNG, kng.ObjectivePerturbation)
    for kind in kinds:
        mechanism, drawn = made(name, kind, "add_remove"), []
        for number in (0, 5):
            monkeypatch.setattr("secrets.randbits", random.Random(1).getrandbits)
            given = X[:number], responses(name)[:number]
            drawn.append(kng.release(mechanism, *given, weights=np.zeros(number)).value)
        if name != "quantile":
            # There the boxes of a search are others.
            np.testing.assert_array_equal(*drawn)
        assert np.all(np.isfinite(kng.release(made(name, kind), X, responses(name), weights=np.zeros(N)).value))


@pytest.mark.default_cases("add_remove")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_neighbours_that_differ_in_a_weight_change_the_log_density_by_half_of_epsilon(adjacency):
    """Before it is normalised: nowhere by more, and near that where the record comes with its largest weight."""
    x, y, given = np.ones((31, 1)), np.full(31, 2.0), np.ones(31)
    other = given.copy()
    given[-1], other[-1] = 0.0, 50.0
    number = 30 if adjacency == "add_remove" else 31
    mechanism = made("squared", adjacency=adjacency)
    first = mechanism.prepare(x[:number], y[:number], weights=given[:number])
    second = mechanism.prepare(x, y, weights=other)
    thetas = np.random.default_rng(1).uniform([-0.5, -1.0], [1.5, 1.0], (40, 2))
    thetas[0] = -0.5, -1.0
    values = [np.asarray(log_density(mechanism, theta, data)) for data in (first, second) for theta in thetas]
    changes = np.abs(np.subtract(values[:40], values[40:]))
    assert (0.45 if adjacency == "add_remove" else 0.22) < changes.max() <= 0.5 * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", [kng.KNG, kng.ExponentialMechanism])
def test_replayed_neighbours_that_differ_in_a_weight_spend_no_more_than_epsilon(kind, adjacency):
    """One record goes from weight 0 to a weight far beyond W, at a corner: near ε, and above it if W is half of it."""
    x, y, given = np.ones((30, 1)), np.full(30, 2.0), np.ones(30)
    other = given.copy()
    given[-1], other[-1] = 0.0, 50.0
    number = 29 if adjacency == "add_remove" else 30
    first = WeightedTable(x[:number], given[:number]), y[:number]
    mechanism = made("squared", kind, adjacency)
    walk = kng.chains.EnsembleWalk(num_warmup=20)
    settings = {"key": kng.research_key(0), "num_points": 40, "sampler": walk}
    found = replayed_sensitivity(mechanism, first, (WeightedTable(x, other), y), **settings)
    assert found.passed
    assert found.ratio > (0.9 if adjacency == "add_remove" else 0.45)


def test_the_least_noise_of_a_mean_does_not_depend_on_the_unit_of_weights():
    """It is that of n records of the largest weight, by which values are rounded: 2W·(hi - lo)/(ε·nW) here."""
    for weight in (None, 1.0, 1e6):
        bounds = kng.Bounds(x=(np.array([0.0]), np.array([3.0])), intercept=False, weight=weight)
        mechanism = kng.KNG(kng.SquaredDistanceLoss(), bounds, kng.Box(0.0, 3.0), 0.5, "replace")
        np.testing.assert_allclose(mechanism.noise.least(1, 100), 2.0 * 3.0 / (0.5 * 100), rtol=1e-12)


def test_what_does_not_declare_weights_refuses_them():
    """Of all mechanisms, from the registry."""
    known = registry.classes("mechanisms").values()
    # Private IRLS takes shares of one vote alone, which a property says.
    takes = {one.__name__ for one in known if one.takes_weights is True}
    proved = "KNG ExponentialMechanism ObjectivePerturbation OutputPerturbation PosteriorSample AdaOPS AdaSSP"
    assert takes == {*proved.split(), "KNormMechanism", "GeometricMechanism"}
    line, table = kng.Bounds(y=(0.0, 1.0), weight=2.0), kng.Bounds(x=(np.array([-1.0]), 1.0), y=(0.0, 1.0), weight=2.0)
    columns = kng.Bounds(x=(np.array([-1.0]), 1.0), intercept=False, weight=2.0)
    asked = {
        "PrivateIRLS": lambda: kng.PrivateIRLS(table, 1.0, 1e-6, "replace"),
        "PrivateQuantile": lambda: kng.PrivateQuantile(0.5, line, 1.0, "replace"),
        "QuantileInterval": lambda: kng.QuantileInterval(0.5, line, 1.0, "replace"),
    }
    assert takes | set(asked) == {one.__name__ for one in known}
    for name, make in asked.items():
        with pytest.raises(ValueError, match=f"{name} takes no weights"):
            make()
    undeclared = type("UndeclaredLoss", (kng.GeometricMedianLoss,), {"takes_weights": False})
    with pytest.raises(ValueError, match="UndeclaredLoss takes no weights"):
        kng.KNG(undeclared(), columns, kng.Box([-1.0], [1.0]), 1.0, "replace")


def test_simulations_and_other_samplers_refuse_weights_and_a_stream_needs_its_own():
    mechanism = made("squared")
    with pytest.raises(ValueError, match="are for records with weights"):
        kng.release(mechanism, kng.stream([(X, Y)]))
    with pytest.raises(ValueError, match="brings its own weights"):
        kng.release(mechanism, kng.stream([(X, Y)]), weights=WEIGHTS)
    with pytest.raises(TypeError, match="a simulation takes no weights"):
        kng.data.records.prepare_simulated(mechanism.bounds, jnp.asarray(X), jnp.asarray(Y))
    smooth = made("pseudo-Huber")
    data = smooth.prepare(X, Y, weights=WEIGHTS)
    assert isinstance(data, WeightedRecords)
    for sampler in (kng.chains.Exact(), kng.chains.SliceGibbs(), kng.chains.GradientSpace(), kng.chains.LineGibbs()):
        assert not sampler.takes_weights
        with pytest.raises(ValueError, match="takes no weights"):
            kng.sample(smooth, data, key=kng.research_key(0), sampler=sampler)
        with pytest.raises(ValueError, match="takes no weights"):
            kng.certify(smooth, X, Y, weights=WEIGHTS, sampler=sampler)
    with pytest.raises(ValueError, match="Lattice draws KNG with QuantileLoss"):
        kng.certify(made("squared"), X, Y, weights=WEIGHTS, sampler=kng.draws.Lattice())
    with pytest.raises(ValueError, match="Lattice draws KNG with QuantileLoss"):
        kng.certify(made("quantile", kng.ExponentialMechanism), X, Y, weights=WEIGHTS, sampler=kng.draws.Lattice())
    with pytest.raises(ValueError, match="Lattice serves norm=None"):
        kng.certify(made("quantile", norm=kng.L1()), X, Y, weights=WEIGHTS, sampler=kng.draws.Lattice())
    with pytest.raises(ValueError, match=r"no exact sampler of .* with PseudoHuberLoss"):
        kng.certify(made("pseudo-Huber", kng.ExponentialMechanism), X, Y, weights=WEIGHTS)
    many = kng.KNG(
        kng.LogisticLoss(),
        kng.Bounds(x=(np.full(6, -1.0), 1.0), weight=3.0),
        kng.Box(-1.0, 1.0),
        50.0,
        "replace",
    )
    instead = r"KNG with LogisticLoss and 7 coefficients .* ObjectivePerturbation\(LogisticLoss\(\), .*with weights too"
    with pytest.raises(ValueError, match=instead):
        kng.certify(many, np.zeros((9000, 6)), np.zeros(9000), weights=np.ones(9000))


def test_products_are_on_the_lattice_as_they_are():
    """Within bounds of records without weights they would be clipped there, and weights would hardly count."""
    mechanism = made("quantile")
    data, plan = mechanism.intake.records(with_weights(X, WEIGHTS), Y), kng.draws.Lattice().plan(mechanism, 2, N)
    np.testing.assert_array_equal(data.x, WEIGHTS[:, None] * np.column_stack([np.ones(N), X]))
    found = whole_features(data, plan) * 2.0 ** np.array(plan.exponents)
    np.testing.assert_allclose(found, data.x, atol=1e-4)
    assert np.max(data.x) > 2.0


def test_records_without_weights_are_not_taken_for_weights_of_1():
    rows = Records(np.column_stack([np.ones(N), X]), Y)
    weighted = WeightedRecords(rows, WEIGHTS)
    for name in ("squared", "pseudo-Huber"):
        with pytest.raises(TypeError, match="where the bounds declare them"):
            made(name).intake.summarise(rows)
        with pytest.raises(TypeError, match="where the bounds declare them"):
            made(name, weight=None).intake.summarise(weighted)
    with pytest.raises(TypeError, match="needs the records"):
        kng.QuantileLoss(0.5).hessian(jnp.zeros(2), weighted)
    pair = (X, Y), (X, Y)
    for audit in (
        lambda: kng.audit.black_box(made("squared"), *pair, key=kng.research_key(0), sampler=kng.chains.Exact()),
        lambda: kng.audit.density_ratio(made("quantile")),
    ):
        with pytest.raises(TypeError, match="takes no weights"):
            audit()


def test_engines_that_do_not_declare_weights_are_passed_over(monkeypatch):
    """Whatever a mechanism offers: a draw in boxes, and then an exact sampler, which refuses."""
    given = with_weights(X, WEIGHTS)
    assert kng.certify(made("pseudo-Huber"), given, Y).sampler["type"] == "BoxDraw"
    monkeypatch.setattr(BoxDraw, "takes_weights", False)
    with pytest.raises(ValueError, match=r"no exact sampler of .* with PseudoHuberLoss"):
        kng.certify(made("pseudo-Huber"), given, Y)
    # Without weights nothing changes.
    assert kng.certify(made("pseudo-Huber", weight=None), X, Y).sampler["type"] == "BoxDraw"


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", [kng.chains.EnsembleWalk(), kng.chains.CoordinateWalk(), kng.chains.NUTS()], ids=lambda one: repr(one)
)
def test_chains_that_take_weights_have_the_law_of_quadrature(sampler):
    mechanism = made("pseudo-Huber", domain=LINE, epsilon=3.0)
    data = mechanism.prepare(None, Y, weights=WEIGHTS)
    draws = kng.sample(mechanism, data, key=kng.research_key(1), sampler=sampler, num_draws=400, thinning=10)
    theta = np.linspace(-0.5, 1.5, 4001)
    density = np.exp(-3.0 / (2.0 * 1.8) * np.abs(slope("pseudo-Huber", theta, Y, WEIGHTS)))
    mean = (theta * density).sum() / density.sum()
    deviation = math.sqrt(((theta - mean) ** 2 * density).sum() / density.sum())
    assert abs(draws.theta.mean() - mean) < 6.0 * deviation / math.sqrt(400)
