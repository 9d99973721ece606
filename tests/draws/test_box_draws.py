"""KNG with smooth losses of few coefficients in releases: their law beside quadrature, and what one record changes."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.draws.box_draws import BoxDraw
from kngjax.draws.choice import proved_draw
from kngjax.draws.quadratic import bodies
from tests.draws import box_problems
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LOSSES = {**box_problems.LOSSES, "Gaussian kernel": kng.SmoothedQuantileLoss(0.3, 0.2, "gaussian")}
# ∂ρ/∂η as papers have them.
SCORES = {
    "pseudo-Huber": lambda eta, y: (eta - y) / np.sqrt(1.0 + ((eta - y) / 0.3) ** 2),
    "Huber": lambda eta, y: np.clip(eta - y, -0.4, 0.4),
    "logistic": lambda eta, y: 1.0 / (1.0 + np.exp(-eta)) - y,
    "Poisson": lambda eta, y: np.exp(eta) - y,
    "expectile": lambda eta, y: 2.0 * np.where(eta > y, 0.2, 0.8) * (eta - y),
    "smoothed quantile": lambda eta, y: 1.0 / (1.0 + np.exp((y - eta) / 0.2)) - 0.3,
    "Gaussian kernel": lambda eta, y: ndtr((eta - y) / 0.2) - 0.3,
}
DOMAINS = {"box": kng.Box([-0.7, -0.2], [0.3, 0.9]), "l1": kng.L1Ball(0.9), "l2": kng.L2Ball(0.9)}
NORMS = {"default": None, "l1": kng.L1(), "l2": kng.L2(), "weighted": kng.WeightedLInf([0.3, 0.7])}
BINARY = ("logistic",)


def mechanism_of(loss, domain, epsilon=1.0, adjacency="replace", norm=None, dimension=2):
    bounds = kng.Bounds(
        x=(-1.0, 1.0), y=None if loss in BINARY else (0.0, 2.0), intercept=dimension > 1, columns=max(1, dimension - 1)
    )
    return kng.KNG(LOSSES[loss], bounds, domain, epsilon, adjacency, norm, allow_large_epsilon=True)


def way_of(mechanism, *data):
    way = proved_draw(mechanism, mechanism.intake.check_schema(*data))
    assert isinstance(way, BoxDraw)
    return way


def records(loss, count, dimension, shift=0.0):
    generator = np.random.default_rng(count)
    x = generator.uniform(-1.0, 1.0, (count, max(1, dimension - 1)))
    y = np.clip(0.6 + 0.4 * x[:, 0] + 0.2 * generator.standard_normal(count) + shift, 0.0, 2.0)
    return x, (y > 0.6).astype(float) if loss in BINARY else y


def density(loss, way, x, y, points):
    """∝ exp(-c‖Σs_i x_i‖) at points of shape (..., d), with the noise of the release."""
    features = x if points.shape[-1] == x.shape[1] else np.column_stack([np.ones(len(x)), x])
    gradients = SCORES[loss](points @ features.T, y) @ features
    sizes = np.abs(gradients) / [float(weight) for weight in way.noise.weights]
    length = {"maximum": lambda: sizes.max(-1), "sum": lambda: sizes.sum(-1), "length": lambda: np.hypot(*sizes.T).T}
    return -length[way.noise.kind]() / math.sqrt(way.noise.scale_squared)


def cells(low, high, unit):
    """The multiples of the unit in [low, high], and what is rounded to each."""
    numbers = range(math.ceil(low / unit), math.floor(high / unit) + 1)
    inner = [(number + 0.5) * unit for number in numbers[:-1]]
    return numbers, np.array([low, *inner, high])


def midpoints(edges, number):
    """So many points of each cell, and how long the part about each is."""
    steps = (np.arange(number) + 0.5) / number
    widths = np.diff(edges)
    return edges[:-1, None] + widths[:, None] * steps, np.broadcast_to(widths[:, None] / number, (widths.size, number))


LINES = {
    **{loss: (loss, kng.Box(-0.5, 1.5), "replace", 12, 4.0) for loss in LOSSES},
    "binding": ("pseudo-Huber", kng.Box(1.0, 3.0), "replace", 40, 4.0),
    "one record": ("logistic", kng.L2Ball(1.0), "replace", 1, 3.0),
    "no record": ("Huber", kng.L1Ball(1.0), "add_remove", 0, 3.0),
    "many": ("smoothed quantile", kng.Box(-0.5, 1.5), "replace", 300, 0.4),
}


def counted(case, draw_all):
    """How often each cell is drawn, and the cells' probabilities."""
    loss, domain, adjacency, count, epsilon = LINES[case]
    mechanism, (x, y) = mechanism_of(loss, domain, epsilon, adjacency, dimension=1), records(loss, count, 1)
    way = way_of(mechanism, x, y)
    unit = 2.0 ** way.grid.exponents[0]
    ((low, high),) = [map(float, side) for side in way.body.shape.sides]
    numbers, edges = cells(low, high, unit)
    points, widths = midpoints(edges, 2000)
    masses = (np.exp(density(loss, way, x, y, points[..., None])) * widths).sum(axis=1)
    places = [round(value[0] / unit) for value in draw_all(mechanism, way, x, y)]
    return [places.count(number) for number in numbers], masses / masses.sum()


@pytest.mark.default_cases("binding", "no record", "one record")
@pytest.mark.parametrize("case", LINES)
def test_draws_of_one_coefficient_have_the_probabilities_of_quadrature(case, monkeypatch):
    monkeypatch.setattr(bodies, "_DIGITS", 3)
    bits = random.Random(7).getrandbits

    def draw_all(mechanism, way, x, y):
        data = way.prepare(x, y)
        return [way.draw(data, bits) for _ in range(400)]

    assert_cell_frequencies(*counted(case, draw_all))


@pytest.mark.default_cases("Huber-1.4-9.0-l1", "logistic-0.0-6.0-l2")
@pytest.mark.parametrize("norm", [None, "l1", "l2"])
@pytest.mark.parametrize(
    ("loss", "shift", "epsilon"), [("pseudo-Huber", 0.0, 6.0), ("logistic", 0.0, 6.0), ("Huber", 1.4, 9.0)]
)
def test_draws_of_two_coefficients_have_the_probabilities_of_quadrature(loss, norm, shift, epsilon, monkeypatch):
    """With the estimate inside of Θ, and far outside."""
    mechanism = mechanism_of(loss, kng.Box([-0.5, -0.5], [1.0, 1.0]), epsilon, norm=NORMS[norm or "default"])
    x, y = records(loss, 40, 2, shift)
    monkeypatch.setattr(bodies, "_DIGITS", 2)
    way, bits = way_of(mechanism, x, y), random.Random(5).getrandbits
    data = way.prepare(x, y)
    draws = np.array([way.draw(data, bits) for _ in range(300)])
    units = [2.0**exponent for exponent in way.grid.exponents]
    (numbers, edges), (others, ends) = (cells(-0.5, 1.0, unit) for unit in units)
    (rows, heights), (columns, widths) = midpoints(edges, 60), midpoints(ends, 60)
    points = np.stack(np.meshgrid(rows.ravel(), columns.ravel(), indexing="ij"), axis=-1)
    found = np.exp(density(loss, way, x, y, points)) * np.outer(heights.ravel(), widths.ravel())
    masses = found.reshape(len(numbers), 60, len(others), 60).sum(axis=(1, 3))
    places = np.rint(draws / units).astype(int).tolist()
    counts = [places.count([one, two]) for one in numbers for two in others]
    assert_cell_frequencies(counts, (masses / masses.sum()).ravel())


SETTINGS = list(itertools.product(LOSSES, DOMAINS, ("replace", "add_remove"), NORMS))


@pytest.mark.default_cases(10)
@pytest.mark.parametrize(("loss", "domain", "adjacency", "norm"), SETTINGS)
def test_noise_is_twice_the_largest_change_over_epsilon(loss, domain, adjacency, norm):
    mechanism = mechanism_of(loss, DOMAINS[domain], 0.4, adjacency, NORMS[norm])
    noise = way_of(mechanism, *records(loss, 3, 2)).noise
    with float64():
        # What certificates say of it.
        value, (weights) = mechanism.sensitivity_for(2).value, np.asarray(mechanism._changes(2))
    assert math.sqrt(noise.scale_squared) == pytest.approx(2.0 * value / 0.4, rel=1e-12)
    assert noise.kind == {"default": "maximum", "weighted": "maximum", "l1": "sum", "l2": "length"}[norm]
    expected = {"default": weights, "weighted": [0.3, 0.7]}.get(norm, [1.0, 1.0])
    np.testing.assert_allclose(list(map(float, noise.weights)), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_worst_neighbours_spend_at_most_half_of_epsilon_on_the_density(loss, adjacency):
    """Records at the ends of the bounds, at corners of Θ. Sensitivities take both at the worst θ of each."""
    mechanism = mechanism_of(loss, DOMAINS["box"], 0.8, adjacency)
    way = way_of(mechanism, *records(loss, 3, 2))
    extremes = np.array(list(itertools.product((-1.0, 1.0), (0.0, 1.0) if loss in BINARY else (0.0, 2.0))))
    corners = np.array(list(itertools.product((-0.7, 0.3), (-0.2, 0.9))))
    losses = []
    for theta, (x, y), (z, w) in itertools.product(corners, extremes, extremes):
        one = SCORES[loss](theta @ [1.0, x], y) * np.array([1.0, x])
        other = SCORES[loss](theta @ [1.0, z], w) * np.array([1.0, z]) if adjacency == "replace" else 0.0
        change = np.abs(one - other) / [float(weight) for weight in way.noise.weights]
        losses.append(change.max() / math.sqrt(way.noise.scale_squared))
    assert max(losses) <= 0.4 * (1.0 + 1e-12)
    # With half of the noise it would be more than that.
    assert max(losses) > 0.2


@pytest.mark.default_cases("1.4-box", "1.4-l1", "1.4-l2")
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("shift", [0.0, 1.4])
def test_no_value_lies_outside_of_the_domain(domain, shift, monkeypatch):
    x, y = records("pseudo-Huber", 60, 2, shift)
    for digits in (3, 40):
        monkeypatch.setattr(bodies, "_DIGITS", digits)
        way, bits = way_of(mechanism_of("pseudo-Huber", DOMAINS[domain], 8.0), x, y), random.Random(5).getrandbits
        data = way.prepare(x, y)
        for _ in range(8):
            theta = [Fraction(float(number)) for number in way.draw(data, bits)]
            if domain == "box":
                sides = [(-0.7, 0.3), (-0.2, 0.9)]
                assert all(Fraction(a) <= t <= Fraction(b) for t, (a, b) in zip(theta, sides, strict=True))
            else:
                power = {"l1": 1, "l2": 2}[domain]
                assert sum(abs(t) ** power for t in theta) <= Fraction(0.9) ** power


def test_other_settings_are_drawn_as_before():
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(0.0, 2.0), columns=1)
    hull = kng.Bounds(
        y=(0.0, 2.0), hull=kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), intercept=False
    )
    wide = kng.Bounds(x=(-1.0, 1.0), y=(0.0, 2.0), columns=4)
    ball, loss = kng.L1Ball(1.0), kng.PseudoHuberLoss(0.3)
    others = (
        kng.KNG(loss, hull, ball, 1.0, "replace"),
        kng.KNG(loss, bounds, ball, 1.0, "replace", kng.Ellipsoid(np.eye(2))),
        kng.KNG(kng.ExpectileLoss(0.3), bounds, ball, 1.0, "replace", pointwise_sensitivity=True),
        kng.KNG(kng.HuberLoss(0.3), wide, ball, 1.0, "replace"),
        kng.KNG(loss, wide, ball, 1.0, "add_remove"),
        kng.KNG(kng.HuberLoss(1e-60), bounds, ball, 1.0, "replace"),
    )
    for mechanism in others:
        columns = 4 if mechanism.bounds is wide else 2 if mechanism.bounds is hull else 1
        assert proved_draw(mechanism, mechanism.intake.check_schema(np.zeros((3, columns)), np.zeros(3))) is None


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("epsilon", [1e-6, 100.0])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 2.0**30])
@pytest.mark.parametrize("loss", ["pseudo-Huber", "logistic"])
def test_any_sizes_and_epsilon_end_in_a_value_of_the_domain(loss, unit, epsilon):
    bounds = kng.Bounds(x=(np.array([-unit]), np.array([unit])), y=None if loss in BINARY else (-1.0, 1.0))
    domain = kng.Box([-1.0, -1.0 / unit], [1.0, 1.0 / unit])
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (30, 1)) * unit
    mechanism = kng.KNG(LOSSES[loss], bounds, domain, epsilon, "add_remove")
    for data in ((x, np.ones(30)), (x[:1], np.ones(1)), (x[:0], np.ones(0))):
        value = kng.release(mechanism, *data).value
        assert np.all(np.abs(value) <= [1.0, 1.0 / unit])


def on_grid(loss, domain, dimension, epsilon, adjacency="add_remove", count=3):
    mechanism = kng.KNG(
        loss,
        kng.Bounds(x=(-1.0, 1.0), y=(-5.0, 5.0), intercept=False, columns=dimension),
        domain,
        epsilon,
        adjacency,
        allow_large_epsilon=True,
    )
    return proved_draw(mechanism, mechanism.intake.check_schema(np.zeros((count, dimension)), np.zeros(count)))


def test_scores_too_steep_for_the_domain_by_public_numbers_are_drawn_as_before():
    wide = kng.Box(-1e6, 1e6)
    assert not isinstance(on_grid(kng.PseudoHuberLoss(1e-6), wide, 1, 1.0), BoxDraw)
    assert isinstance(on_grid(kng.PseudoHuberLoss(1e-2), wide, 1, 1.0), BoxDraw)
    # With more coefficients sooner, as long as many records may share one slab.
    narrow = kng.Box(-10.0, 10.0)
    for loss in (kng.HuberLoss(1e-6), kng.SmoothedQuantileLoss(0.5, 1e-6)):
        assert isinstance(on_grid(loss, narrow, 1, 100.0), BoxDraw)
        for dimension in (2, 3, 4):
            assert not isinstance(on_grid(loss, narrow, dimension, 100.0), BoxDraw)
        assert isinstance(on_grid(loss, narrow, 3, 0.1, "replace"), BoxDraw)
        assert not isinstance(on_grid(loss, narrow, 3, 0.1, "replace", count=10_000), BoxDraw)
    for dimension in (1, 2, 3, 4):
        assert isinstance(on_grid(kng.PseudoHuberLoss(0.3), narrow, dimension, 100.0), BoxDraw)


def outside(count, dimension):
    x = np.random.default_rng(569).uniform(-1.0, 1.0, (count, dimension))
    return x, np.where(x[:, 0] > 0.0, 5.0, -5.0)


def collinear(count, dimension):
    x = np.random.default_rng(7).uniform(-1.0, 1.0, (count, dimension))
    x[:, 1:] = np.clip(x[:, :1] + 1e-9 * x[:, 1:], -1.0, 1.0)
    return x, x[:, 0]


def at_corners(count, dimension):
    x = np.sign(np.random.default_rng(565).uniform(-1.0, 1.0, (count, dimension)))
    return x, np.where(x[:, -1] > 0.0, 5.0, -5.0)


def without_one_column(count, dimension):
    x, y = outside(count, dimension)
    return x * (np.arange(dimension) < dimension - 1), y


THIN = kng.Box([-1e3, -1e-3, -1e-3, -1e-3], [1e3, 1e-3, 1e-3, 1e-3])
# Each searched for minutes, or without end, where coordinates were those of the Hessian at an estimate moved into Θ,
# and where boxes were not halved for what of them is outside of Θ.
HARD = {
    "outside of an l1 ball": (kng.PseudoHuberLoss(0.3), kng.L1Ball(2.0), outside, 1000, 3),
    "outside of a box": (kng.PseudoHuberLoss(0.3), kng.Box([5.0] * 3, [6.0] * 3), outside, 1000, 3),
    "thin": (kng.ExpectileLoss(0.001), THIN, at_corners, 1000, 4),
    "collinear": (kng.HuberLoss(0.4), kng.L2Ball(2.0), collinear, 1000, 4),
    "a column of zeros": (kng.PseudoHuberLoss(0.3), kng.Box(-50.0, 50.0), without_one_column, 3, 3),
    "huge counts": (kng.PoissonLoss(), kng.L2Ball(2.0), outside, 50, 2),
}


@pytest.mark.parametrize("case", HARD)
def test_no_records_make_a_search_without_end(case):
    loss, domain, data, count, dimension = HARD[case]
    x, y = data(count, dimension)
    ends = (0.0, 1e6) if case == "huge counts" else (-5.0, 5.0)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=ends, intercept=False, columns=dimension)
    mechanism = kng.KNG(loss, bounds, domain, 100.0, "add_remove", allow_large_epsilon=True)
    way = way_of(mechanism, x, np.clip(y, *ends))
    value = way.draw(way.prepare(x, np.clip(y, *ends)), random.Random(3).getrandbits)
    for place, (low, high) in zip(value.tolist(), way.body.shape.sides, strict=True):
        assert low <= place <= high
