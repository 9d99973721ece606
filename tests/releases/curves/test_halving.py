"""Curves by halving: the law by hand, draws of it, curves that never cross, records of no node, and what it costs."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import kngjax as kng
from audits.quantile_processes import ProcessLaws
from kngjax.accounting.exact_costs import exactly
from kngjax.releases.curves.halving import Halving, budget_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies

ADJACENCIES = ("replace", "add_remove")
COARSE = kng.draws.Lattice(data_digits=4, theta_digits=2)
NUMBERS = kng.Bounds(y=(0.0, 1.0))
LEVELS = (0.25, 0.5, 0.75)


def of_numbers(adjacency, epsilon=3.0, levels=LEVELS):
    return Halving.of(levels, NUMBERS, kng.Box(0.0, 1.0), epsilon, kng.Adjacency.parse(adjacency), 1, 64, COARSE)


def log_masses(thetas, values, level, rate):
    """Up to a constant: -rate·|#{y ≤ θ} - nt|, normalised over these points."""
    logs = np.array([-rate * abs(sum(y <= theta for y in values) - len(values) * level) for theta in thetas])
    return logs - np.logaddexp.reduce(logs)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_its_law_is_that_of_medians_of_what_lies_below_and_above_the_median(adjacency):
    epsilon, values = 3.0, [0.125, 0.125, 0.375, 0.625, 0.75, 0.875, 0.875]
    found = ProcessLaws(of_numbers(adjacency, epsilon)).law(None, np.array(values))
    grid = [Fraction(k, 4) for k in range(5)]
    # One record changes the count less n/2 by 1/2, and an exchanged one by 1: of the first one, under replace.
    first = epsilon / 2 / 2 / (1.0 if adjacency == "replace" else 0.5)
    later = epsilon / 2 / 2 / 0.5 / (2.0 if adjacency == "replace" else 1.0)
    expected = {}
    for middle, of_middle in zip(grid, log_masses(grid, values, 0.5, first), strict=True):
        low, high = [theta for theta in grid if theta <= middle], [theta for theta in grid if theta >= middle]
        below = zip(low, log_masses(low, [y for y in values if y <= middle], 0.5, later), strict=True)
        above = zip(high, log_masses(high, [y for y in values if y > middle], 0.5, later), strict=True)
        for (one, of_one), (other, of_other) in itertools.product(list(below), list(above)):
            expected[one, middle, other] = of_middle + of_one + of_other
    assert len(found) == len(expected) == 35
    unit = found.keys() and max(point for outcome in found for (point,) in outcome)
    for outcome, logarithm in found.items():
        theta = tuple(Fraction(point, unit) for (point,) in outcome)
        # Scores have steps of 1/4096 of a record.
        assert logarithm == pytest.approx(expected[theta], abs=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_draws_have_the_law_that_audits_enumerate(adjacency):
    drawn, values = of_numbers(adjacency, levels=(0.3, 0.6)), np.array([0.2, 0.4, 0.4, 0.9])
    law = ProcessLaws(drawn).law(None, values)
    records, bits = drawn.prepare(None, values), random.Random(1).getrandbits
    found = [
        tuple(tuple(map(int, points[index])) for index in range(2))
        for points in (drawn.draw_points(records, bits) for _ in range(300))
    ]
    assert set(found) <= law.keys()
    assert_cell_frequencies([found.count(outcome) for outcome in law], np.exp(list(law.values())))


def corners(*sides):
    return np.array([[1.0, *corner] for corner in itertools.product(*sides)])


@pytest.mark.default_cases("5")
@pytest.mark.parametrize("number", [0, 1, 5, 400])
def test_curves_never_cross_where_records_may_be(number):
    """Of no record, too, and of few: a node without a record is drawn evenly from its part of Θ."""
    bounds = kng.Bounds(x={"first": (-1.0, 0.3), "second": (0.1, 1.0)})
    drawn = Halving.of([0.2, 0.4, 0.6, 0.8], bounds, kng.L2Ball(5.0), 2.0, kng.Adjacency.ADD_REMOVE, 3, 1000)
    generator = np.random.default_rng(number)
    x = generator.uniform([-1.0, 0.1], [0.3, 1.0], (number, 2))
    records = drawn.prepare(x, x @ [1.0, -1.0] + generator.standard_normal(number))
    curves = drawn.draw(records, random.Random(number).getrandbits)
    assert curves.shape == (4, 3)
    assert np.all(np.linalg.norm(curves, axis=1) <= 5.0)
    # Numbers of the lattice, of few digits, have exact products with these corners but for .1 and .3.
    assert np.all(np.diff(corners((-1.0, 0.3), (0.1, 1.0)) @ curves.T, axis=1) >= -1e-14)


def test_curves_do_not_cross_on_a_hull_and_may_beside_it():
    hull = kng.geometry.FeatureHull.powers(2, -1.0, 1.0)
    drawn = Halving.of([0.3, 0.5, 0.7], kng.Bounds(hull=hull), kng.Box(-3.0, 3.0), 1.0, kng.Adjacency.ADD_REMOVE, 3, 99)
    assert len(drawn.vertices) == len(hull.vertices) < 12
    t = np.linspace(-1.0, 1.0, 9)
    records = drawn.prepare(np.column_stack([t, t**2]), t)
    curve = np.column_stack([np.ones(99), np.linspace(-1, 1, 99), np.linspace(-1, 1, 99) ** 2])
    assert np.all(np.diff(curve @ drawn.draw(records, random.Random(0).getrandbits).T, axis=1) >= -1e-12)


def test_a_record_is_in_one_node_of_a_depth_at_most_whatever_the_curves_are():
    drawn = Halving.of(
        np.arange(1, 8) / 8, kng.Bounds(x=(-1.0, 1.0), columns=1), kng.Box(-1.0, 1.0), 1.0, kng.Adjacency.REPLACE, 2, 99
    )
    generator = np.random.default_rng(0)
    records = drawn.prepare(generator.uniform(-1, 1, (99, 1)), generator.normal(size=99))
    # These cross.
    curves = {index: generator.integers(-(2**20), 2**20, 2) for index in range(7)}
    for nodes in drawn.depths:
        sizes = [len(drawn.members(node, records, curves).y) for node in nodes]
        assert sum(sizes) == 99
    whole = np.column_stack([records.x, records.y])
    alone = {
        tuple(row): drawn.members(drawn.depths[2][1], records.at(np.array([place])), curves)
        for place, row in enumerate(whole)
    }
    together = drawn.members(drawn.depths[2][1], records, curves)
    assert sum(len(one.y) for one in alone.values()) == len(together.y) > 0


@pytest.mark.parametrize("number", [2, 3, 5, 9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_all_depths_together_cost_epsilon_and_as_good_as_all_of_it(epsilon, number):
    for adjacency in ADJACENCIES:
        drawn = of_numbers(adjacency, epsilon, np.arange(1, number + 1) / (number + 1))
        guarantee = drawn.guarantee
        assert guarantee.adjacency == adjacency
        assert Fraction(repr(epsilon)) * (1 - Fraction(1, 10**14)) < guarantee.exact_epsilon <= Fraction(repr(epsilon))
        assert guarantee.rho == pytest.approx(epsilon**2 / 8 / len(drawn.depths))


def test_its_lattice_is_one_for_all_levels():
    """Of levels of many decimals sums are larger, and digits fewer."""
    bounds = kng.Bounds(x=([0.0], [1.0]))
    drawn = Halving.of([0.1, 0.31, 0.77], bounds, kng.Box(-1.0, 1.0), 1.0, kng.Adjacency.ADD_REMOVE, 2, 2**20)
    assert len({(plan.exponents, plan.unit, plan.domain.exponents) for plan in drawn.plans}) == 1
    assert drawn.settings.data_digits < 20


def test_more_records_than_were_promised_are_refused():
    drawn = of_numbers("add_remove")
    with pytest.raises(RuntimeError, match="max_records"):
        drawn.prepare(None, np.zeros(65))


@pytest.mark.slow
def test_the_noise_of_a_first_curve_is_that_of_the_limit_law():
    drawn = Halving.of(LEVELS, kng.Bounds(x=([-1.0], [1.0])), kng.Box(-9.0, 9.0), 1.0, kng.Adjacency.REPLACE, 2, 5000)
    generator = np.random.default_rng(0)
    x = generator.choice([-1.0, 1.0], (4000, 1))
    records = drawn.prepare(x, np.linspace(-1.0, 1.0, 4000))
    (node,), bits = drawn.depths[0], random.Random(0).getrandbits
    envelope = drawn.envelope(node, records, {})
    counts = [np.sum(~records.are_above(envelope.draw(bits))) for _ in range(400)]
    # A standard deviation of 400 draws is off by about 1/28 of itself.
    assert np.std(counts) == pytest.approx(drawn.noise(node), rel=0.15)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_stand_ins_have_the_noise_of_their_curve_and_of_those_beside_it(adjacency):
    """By hand at ε = 3, L = 2: ε' = 3/2; the median's score changes by 1 (replace) or 1/2, the others' by 1/2."""
    low, middle, high = of_numbers(adjacency).stand_ins(LEVELS)
    first, later = (1.0, 0.75) if adjacency == "replace" else (0.5, 1.5)
    assert float(middle.epsilon) == pytest.approx(1.5)
    # Noise in records is in proportion to change over ε; a quarter has half of the median's besides.
    whole = np.hypot(0.5 / later, 0.5 * first / 1.5)
    for one, level in ((low, 0.25), (high, 0.75)):
        assert one.loss.tau == level
        assert float(one.epsilon) == pytest.approx(0.75 / whole)


@pytest.mark.slow
def test_the_noise_of_stand_ins_is_that_of_draws():
    """Standard deviations of 300 releases of one table, each to 4%, beside previews for its law of responses."""
    levels, number, epsilon = [0.1, 0.3, 0.5, 0.7, 0.9], 4000, 2.0
    # Noise is a few records wide: as dense there as the law says.
    y = scipy.stats.norm.ppf((np.arange(number) + 0.5) / number)
    process = kng.QuantileProcess(levels, kng.Bounds(y=(-4.0, 4.0)), kng.Box(-4.0, 4.0), epsilon, "replace")
    found = np.array([kng.release(process, y=y).value[:, 0] for _ in range(300)])
    halving = process.halving(number)
    noises = halving.whole_noises()
    densities = np.exp(-0.5 * np.quantile(y, levels) ** 2) / np.sqrt(2.0 * np.pi)
    expected = np.array([noises[index] for index in range(5)]) / (number * densities)
    np.testing.assert_allclose(np.std(found, axis=0), expected, rtol=0.25)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_shares_of_epsilon_are_rounded_down(adjacency):
    meant = kng.Adjacency.parse(adjacency)
    for epsilon, depths in itertools.product((0.1, 0.3, 1.0, 1.7, 2.3), (3, 5, 6, 7)):
        nodes = 1 if adjacency == "add_remove" else 2
        first, later = (exactly(budget_of(depth, depths, epsilon, meant)) for depth in (0, 1))
        assert first + (depths - 1) * nodes * later <= exactly(epsilon)
