"""KNG with quadratic losses in releases: their law beside closed forms and quadrature, and what one record changes."""

import itertools
import math
import random
import secrets
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx, fmpq

import kngjax as kng
from kngjax.core.arrays import float64
from kngjax.draws.choice import proved_draw
from kngjax.draws.quadratic import bodies
from kngjax.draws.quadratic_draws import QuadraticDraw, noise_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies, assert_same_law

DOMAINS = {"box": kng.Box([-0.7, -0.2], [0.3, 0.9]), "l1": kng.L1Ball(0.9), "l2": kng.L2Ball(0.9)}
NORMS = {"default": None, "l1": kng.L1(), "l2": kng.L2(), "weighted": kng.WeightedLInf([0.3, 0.7])}
PLANE = kng.Bounds(x={"one": (-0.3, 0.7), "two": (0.1, 0.9)}, y=(-0.4, 1.3), intercept=False)


def regression(domain="box", adjacency="replace", norm="default", epsilon=1.0):
    return kng.KNG(kng.SquaredLoss(), PLANE, DOMAINS[domain], epsilon, adjacency, NORMS[norm], allow_large_epsilon=True)


def way_of(mechanism, *data):
    way = proved_draw(mechanism, mechanism.intake.check_schema(*data))
    assert way is not None
    return way


def largest_change(domain, adjacency, norm):
    """sup of the norm over extreme records, by brute force."""
    corners = np.array(list(itertools.product((-0.3, 0.7), (0.1, 0.9))))
    if domain == "box":
        reach = [np.sum(np.where(x > 0, x * [0.3, 0.9], x * [-0.7, -0.2])) for x in corners]
        least = [np.sum(np.where(x > 0, x * [-0.7, -0.2], x * [0.3, 0.9])) for x in corners]
        low, high = min(least), max(reach)
    else:
        dual = {"l1": np.max, "l2": np.linalg.norm}[domain]
        high = max(0.9 * dual(np.abs(x)) for x in corners)
        low = -high
    scores = np.array([low - 1.3, high + 0.4])
    points = [s * x for s in scores for x in corners]
    changes = np.array([p - q for p in points for q in points] if adjacency == "replace" else points)
    box = np.abs(changes).max(axis=0)
    value = {
        "default": np.max(np.abs(changes) / box),
        "l1": np.abs(changes).sum(axis=1).max(),
        "l2": np.linalg.norm(changes, axis=1).max(),
        "weighted": np.max(np.abs(changes) / [0.3, 0.7]),
    }[norm]
    return value, box


SETTINGS = list(itertools.product(DOMAINS, ("replace", "add_remove"), NORMS))


@pytest.mark.default_cases(12)
@pytest.mark.parametrize(("domain", "adjacency", "norm"), SETTINGS)
def test_noise_is_twice_the_largest_change_over_epsilon(domain, adjacency, norm):
    mechanism = regression(domain, adjacency, norm, 0.4)
    noise, (value, box) = noise_of(mechanism, 2), largest_change(domain, adjacency, norm)
    assert noise is not None
    assert math.sqrt(noise.scale_squared) == pytest.approx(2.0 * value / 0.4, rel=1e-12)
    kinds = {"default": "maximum", "weighted": "maximum", "l1": "sum", "l2": "length"}
    weights = {"default": box, "weighted": [0.3, 0.7]}.get(norm, [1.0, 1.0])
    assert noise.kind == kinds[norm]
    np.testing.assert_allclose(list(map(float, noise.weights)), weights, rtol=1e-12)
    # What certificates say of it.
    with float64():
        assert mechanism.sensitivity_for(2).value == pytest.approx(value, rel=1e-12)


LINE = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False, columns=1)


def line(epsilon, domain, adjacency="replace", loss=None):
    bounds = LINE if loss is None else kng.Bounds(x=(-1.0, 1.0), intercept=False, columns=1)
    return kng.KNG(loss or kng.SquaredLoss(), bounds, domain, epsilon, adjacency)


def ball(number):
    return arb(fmpq(number.numerator, number.denominator))


def line_cells(gram, moment, scale, edges):
    """Of density ∝ exp(-|aθ - b|/λ) between these edges, the first and the last of which are Θ's: by its integral."""

    def mass(first, last):
        if gram == 0:
            return ball(last - first)
        total, middle = arb(0), moment / gram
        for start, end in ((first, min(last, middle)), (max(first, middle), last)):
            if start < end:
                near, far = sorted((abs(gram * start - moment), abs(gram * end - moment)))
                total += ((-ball(near / scale)).exp() - (-ball(far / scale)).exp()) * ball(scale / gram)
        return total

    whole = mass(edges[0], edges[-1])
    return [mass(first, last) / whole for first, last in itertools.pairwise(edges)]


def edges_of(low, high, unit):
    """Halfway between the multiples of the unit in [low, high], and its ends."""
    inner = range(math.ceil(low / unit), math.floor(high / unit))
    return [low, *((number + Fraction(1, 2)) * unit for number in inner), high]


def scale_of(way):
    """λw of one coefficient."""
    squared = way.noise.scale_squared
    root = Fraction(math.isqrt(squared.numerator), math.isqrt(squared.denominator))
    assert root**2 == squared
    return root * way.noise.weights[0]


# A mechanism, records, and two more: None is none.
LINES = {
    "inside": (line(0.8, kng.Box(-0.5, 1.5)), [(1.0, 0.3), (1.0, 1.0), (-0.5, 0.2)], (1.0, 1.0), (1.0, -1.0)),
    "binding": (line(2.5, kng.Box(-0.25, 0.25)), [(1.0, 1.0)] * 3, (1.0, 1.0), (1.0, -1.0)),
    "far": (line(0.8, kng.Box(2.0**40, 2.0**40 + 1.0)), [(1.0, 1.0)] * 3, (1.0, -1.0), (0.0, 1.0)),
    "ball": (line(1.5, kng.L2Ball(0.75)), [(1.0, -0.5), (0.5, 0.25)], (1.0, 1.0), (-1.0, 1.0)),
    "one more": (line(0.8, kng.Box(-0.5, 1.5), "add_remove"), [(1.0, 0.3)] * 2, None, (1.0, -1.0)),
    "the first": (line(3.0, kng.L1Ball(2.0), "add_remove"), [], None, (1.0, -1.0)),
    "mean": (line(1.1, kng.Box(-1.0, 1.0), loss=kng.SquaredDistanceLoss()), [(0.5, 0)] * 4, (1.0, 0), (-1.0, 0)),
}


def columns(mechanism, records):
    table = np.array(records, float).reshape(-1, 2)
    return (table[:, :1], table[:, 1]) if mechanism.loss.has_response else (table[:, :1], None)


def neighbours(case):
    """How the release of the second draws, and the exact sums of both."""
    mechanism, shared, *extra = LINES[case]
    data = [columns(mechanism, [*shared, *([] if one is None else [one])]) for one in extra]
    way = way_of(mechanism, *data[1])
    return way, [way.prepare(*one) for one in data]


def laws_of_neighbours(case, unit):
    """Probabilities of cells, to 400 binary digits, from the sums and the noise of the release."""
    way, sums = neighbours(case)
    (sides,) = way.body.shape.sides
    with ctx.workprec(400):
        numbers = [(Fraction(one.gram[0, 0]), Fraction(one.moment[0])) for one in sums]
        edges = edges_of(sides[0], sides[1], unit)
        return [line_cells(gram, moment, scale_of(way), edges) for gram, moment in numbers]


@pytest.mark.parametrize("case", LINES)
def test_no_cell_is_more_than_epsilon_likelier_for_a_neighbour(case):
    """Both normalisers included."""
    with ctx.workprec(400):
        losses = [float((a / b).log()) for a, b in zip(*laws_of_neighbours(case, Fraction(1, 64)), strict=True)]
    assert max(map(abs, losses)) <= float(LINES[case][0].epsilon) * (1.0 + 1e-14)


@pytest.mark.parametrize("case", ["inside", "ball", "mean", "the first"])
def test_worst_neighbours_spend_half_of_epsilon_on_the_density(case):
    """The rest is for the normaliser. With a scale of noise that is any smaller the density alone would spend more."""
    way, (one, other) = neighbours(case)
    (sides,) = way.body.shape.sides
    gram, moment = one.gram[0, 0] - other.gram[0, 0], one.moment[0] - other.moment[0]
    change = max(abs(gram * theta - moment) for theta in sides)
    epsilon = Fraction(repr(float(way.mechanism.epsilon)))
    expected = {"inside": Fraction(2, 5), "ball": Fraction(2, 7) * 2}.get(case, Fraction(1))
    assert change / scale_of(way) == expected * epsilon / 2


@pytest.mark.default_cases("binding", "ball")
@pytest.mark.parametrize("case", ["inside", "binding", "ball", "the first", "mean"])
def test_releases_of_one_coefficient_have_the_probabilities_of_the_closed_form(case, monkeypatch):
    mechanism, shared, _, other = LINES[case]
    monkeypatch.setattr(bodies, "_DIGITS", 3)
    monkeypatch.setattr("secrets.randbits", random.Random(11).getrandbits)
    way, (_, data) = neighbours(case)
    released = kng.release(mechanism, *columns(mechanism, [*shared, other]))
    certificate = released.certificate
    assert (certificate.assurance, certificate.rounding) == ("proved", None)
    assert certificate.sampler == way.settings
    drawn = [released.value, *(way.draw(data, secrets.randbits) for _ in range(399))]
    (exponent,) = certificate.sampler["grid_exponents"]
    unit = Fraction(2) ** exponent
    chances = [float(mass) for mass in laws_of_neighbours(case, unit)[1]]
    ((low, high),) = way.body.shape.sides
    places = [Fraction(value[0]) / unit for value in drawn]
    counts = [places.count(number) for number in range(math.ceil(low / unit), math.floor(high / unit) + 1)]
    assert sum(counts) == len(places)
    assert_cell_frequencies(counts, chances)


@pytest.mark.parametrize("dimension", [5, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2()])
def test_levels_far_inside_are_gamma_numbers(dimension, norm):
    generator = np.random.default_rng(dimension)
    x = generator.uniform(-1.0, 1.0, (4000, dimension))
    y = np.clip(x @ np.full(dimension, 0.2) + 0.1 * generator.standard_normal(4000), -1.0, 1.0)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False, columns=dimension)
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-4.0, 4.0), 90.0, "replace", norm)
    way, bits = way_of(mechanism, x, y), random.Random(3).getrandbits
    data = way.prepare(x, y)
    draws = np.array([way.draw(data, bits) for _ in range(200)])
    gradients = draws @ (x.T @ x) - x.T @ y
    # |x'θ - y| ≤ 4d + 1 for each record.
    change = 2.0 * (4.0 * dimension + 1.0)
    norms, largest = {
        type(None): (np.max(np.abs(gradients), axis=1), change),
        kng.L1: (np.sum(np.abs(gradients), axis=1), change * dimension),
        kng.L2: (np.linalg.norm(gradients, axis=1), change * math.sqrt(dimension)),
    }[type(norm)]
    assert_same_law(norms * 45.0 / largest, scipy.stats.gamma(dimension).cdf)


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_value_lies_outside_of_the_domain(domain, monkeypatch):
    """Of a coarse grid and the fine one, where Θ binds; in fractions."""
    x, y = np.tile([[0.7, 0.9], [-0.3, 0.9]], (30, 1)), np.tile([1.3, -0.4], 30)
    for digits in (4, 40):
        monkeypatch.setattr(bodies, "_DIGITS", digits)
        mechanism = regression(domain)
        way, bits = way_of(mechanism, x, y), random.Random(5).getrandbits
        data = way.prepare(x, y)
        for _ in range(6):
            theta = [Fraction(float(number)) for number in way.draw(data, bits)]
            if domain == "box":
                sides = [(-0.7, 0.3), (-0.2, 0.9)]
                assert all(Fraction(a) <= t <= Fraction(b) for t, (a, b) in zip(theta, sides, strict=True))
            else:
                power = {"l1": 1, "l2": 2}[domain]
                assert sum(abs(t) ** power for t in theta) <= Fraction(0.9) ** power


def corner_records(has_response):
    """Records at the ends of `PLANE`."""
    responses = (-0.4, 1.3) if has_response else (0.0,)
    return list(itertools.product((-0.3, 0.7), (0.1, 0.9), responses))


def measured(kind, vector):
    """The square of the norm."""
    sizes = [abs(entry) for entry in vector]
    return {"maximum": max(sizes) ** 2, "sum": sum(sizes) ** 2}.get(kind, sum(size**2 for size in sizes))


@pytest.mark.parametrize(("adjacency", "norm"), list(itertools.product(("replace", "add_remove"), NORMS)))
@pytest.mark.parametrize("loss", [kng.SquaredLoss(), kng.SquaredDistanceLoss()])
def test_neighbours_change_the_score_by_half_of_epsilon_at_most(loss, adjacency, norm):
    """In fractions, from the sums of releases: records whose sums climb, in any order, and one more at an end."""
    bounds = PLANE if loss.has_response else kng.Bounds(x={"one": (-0.3, 0.7), "two": (0.1, 0.9)}, intercept=False)
    mechanism = kng.KNG(loss, bounds, DOMAINS["box"], 0.4, adjacency, NORMS[norm])
    generator, sums = np.random.default_rng(3), []
    shared = generator.uniform(0.1, 0.7, (300, 3)) * np.geomspace(1e-12, 1.0, 300)[:, None]
    shared[:, 1] += 0.1
    for record in [*corner_records(loss.has_response), *([None] if adjacency == "add_remove" else [])]:
        table = generator.permutation(shared if record is None else np.vstack([shared, record]))
        data = (table[:, :2], table[:, 2] if loss.has_response else None)
        way = way_of(mechanism, *data)
        sums.append(way.prepare(*data))
    room = way.noise.scale_squared * Fraction(1, 5) ** 2
    found = []
    pairs = itertools.product(sums, sums[-1:] if adjacency == "add_remove" else sums)
    for (one, other), theta in itertools.product(pairs, itertools.product(*way.body.shape.sides)):
        slopes, moments = one.gram - other.gram, one.moment - other.moment
        change = [sum(a * t for a, t in zip(row, theta, strict=True)) for row in slopes]
        scaled = [(v - m) / w for v, m, w in zip(change, moments, way.noise.weights, strict=True)]
        found.append(measured(way.noise.kind, scaled) / room)
    assert max(found) <= 1
    # Two scores x'θ - y of one θ are hardly both at their ends.
    reached = 1 if adjacency == "add_remove" or not loss.has_response else Fraction(1, 4)
    assert max(found) >= reached if norm in ("default", "weighted") else max(found) > Fraction(1, 4)


def test_what_is_not_of_fractions_is_drawn_as_before():
    hull = kng.Bounds(
        y=(-1.0, 1.0), hull=kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), intercept=False
    )
    plain = kng.SquaredLoss(), PLANE, kng.L1Ball(1.0), 1.0, "replace"
    others = (
        kng.KNG(kng.SquaredLoss(), hull, kng.L1Ball(1.0), 1.0, "replace"),
        kng.KNG(*plain, kng.Ellipsoid(np.eye(2))),
        kng.KNG(*plain, pointwise_sensitivity=True),
        kng.KNG(kng.QuantileLoss(0.5), *plain[1:]),
    )
    for mechanism in others:
        assert not isinstance(
            proved_draw(mechanism, mechanism.intake.check_schema(np.zeros((3, 2)), np.zeros(3))), QuadraticDraw
        )


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("epsilon", [1e-9, 100.0])
@pytest.mark.parametrize("unit", [1e-50, 1.0, 2.0**50])
def test_any_sizes_and_epsilon_end_in_a_value_of_the_domain(unit, epsilon):
    bounds = kng.Bounds(x=(np.array([-unit, 0.0]), np.array([unit, 1.0 / unit])), y=(-1.0, 1.0))
    domain = kng.Box([-1.0, -1.0 / unit, -unit], [1.0, 1.0 / unit, unit])
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (30, 2)) * [unit, 1.0 / unit]
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, domain, epsilon, "add_remove")
    for data in ((x, np.ones(30)), (x[:1], np.ones(1)), (x[:0], np.ones(0))):
        value = kng.release(mechanism, *data).value
        assert np.all(np.abs(value) <= [1.0, 1.0 / unit, unit])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("tiny", [1e-300, 1e-310, 5e-324])
@pytest.mark.parametrize("norm", [None, kng.L1(), kng.L2()])
def test_records_next_to_0_do_not_make_a_release_fail(tiny, norm):
    """Columns that are balanced but for a number that float64 can hardly hold, and an estimate outside of Θ."""
    signs = np.tile([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [1.0, -1.0, -1.0]], (1000, 1))
    x, y = np.vstack([signs, [1.0, tiny, tiny]]), np.ones(4001)
    bounds = kng.Bounds(x=(-1.0, 1.0), y=(-1.0, 1.0), intercept=False, columns=3)
    mechanism = kng.KNG(kng.SquaredLoss(), bounds, kng.Box(-0.1, 0.1), 5.0, "replace", norm)
    assert np.all(np.abs(kng.release(mechanism, x, y).value) <= 0.1)
