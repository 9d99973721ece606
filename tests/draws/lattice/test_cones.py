"""Cones from an apex: every lattice point is in one box and one of its places, and no score is below its bound."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from kngjax.draws.lattice import cones as cones_file
from kngjax.draws.lattice import heaps
from kngjax.draws.lattice.check_records import CheckRecords
from kngjax.draws.lattice.cone_scores import ConeScore
from kngjax.draws.lattice.cones import Cones
from kngjax.draws.lattice.envelope import LatticeEnvelope
from kngjax.draws.lattice.scores import WEIGHT_UNITS, GradientNorm
from kngjax.draws.lattice.units import DomainLattice
from tests.draws.lattice.test_check_scores import points_of, scores_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies

PLANE = kng.Bounds(x=([-0.4], [1.0]), y=(-1.0, 1.0))
SPACE = kng.Bounds(x=([-0.4, 0.1], [1.0, 0.9]), y=(-1.0, 1.0))
MECHANISMS = {
    "plane": kng.KNG(kng.QuantileLoss(0.5), PLANE, kng.Box(-1.0, 1.0), 100.0, "replace"),
    "plane, l1": kng.KNG(kng.QuantileLoss(0.3), PLANE, kng.Box(-1.0, 0.5), 10.0, "replace", norm=kng.L1()),
    "space": kng.KNG(kng.QuantileLoss(0.5), SPACE, kng.Box(-1.0, 1.0), 100.0, "add_remove"),
    "space, l1 ball, linf": kng.KNG(kng.QuantileLoss(0.7), SPACE, kng.L1Ball(1.0), 50.0, "replace", norm=kng.LInf()),
    "space, l2 ball, l1": kng.KNG(kng.QuantileLoss(0.4), SPACE, kng.L2Ball(1.0), 100.0, "replace", norm=kng.L1()),
}
# Where responses are heaped: at a lattice point, between some, and where that is a corner of Θ, or beyond it.
HEAPS = [0.0, 0.25, 0.37, 1.0, 1.3]


def problem_of(name, value, seed=0, kinds=40, copies=9):
    """Records of which most have this response, as it is rounded to their lattice, and few features that differ."""
    mechanism, generator = MECHANISMS[name], np.random.default_rng(seed)
    times = generator.integers(1, copies + 1, kinds)
    x = generator.uniform(-0.4, 1.0, (kinds, mechanism.bounds.columns))
    # Hyperplanes that meet in lines, too.
    x[::3, 0] = 0.5
    y = np.where(generator.random(kinds) < 0.7, value, generator.uniform(-1.2, 1.2, kinds))
    digits = {1: 5, 2: 3}[mechanism.bounds.columns]
    sampler = kng.draws.Lattice(data_digits=digits, theta_digits=digits, max_records=2**12)
    return sampler.problem(mechanism, mechanism.intake.records(np.repeat(x, times, axis=0), np.repeat(y, times)))


def cones_over(apex, domain) -> Cones:
    cones = Cones.over(np.asarray(apex), domain.low, domain.high)
    assert cones is not None
    return cones


def in_cones(problem, apex):
    """The same problem with boxes that are cones from this k."""
    cones = cones_over(apex, problem.domain)
    records = problem.score._records
    assert ConeScore.holds(records, cones)
    return problem._replace(score=ConeScore(records, cones))


def apexes_of(problem, value):
    """That of the heap, about, corners and faces of Θ's box, and any other."""
    generator, domain = np.random.default_rng(1), problem.domain
    x = problem.score._records.features
    heap = np.zeros(x.shape[1])
    heap[0] = value * 2.0 ** -domain.exponents[0]
    face = np.where(np.arange(x.shape[1]) == 0, domain.low, 0)
    anywhere = generator.integers(domain.low, domain.high + 1)
    return [domain.nearest(heap), domain.low, domain.high, face, anywhere]


def every_draw(cones, low, high, monkeypatch):
    """What `draw` may return, and how likely, whatever the numbers are that it asks for."""
    told: list[int] = []
    while True:
        numbers: list[int] = []

        def below(number, _, numbers=numbers):
            if len(numbers) == len(told):
                told.append(0)
            numbers.append(number)
            return told[len(numbers) - 1]

        monkeypatch.setattr(cones_file, "below", below)
        yield cones.draw(low, high, int), Fraction(1, math.prod(numbers))
        while told and told[-1] + 1 == numbers[len(told) - 1]:
            told.pop()
        if not told:
            return
        told[-1] += 1


def place_of(boxes, numbers):
    """In which box each m is: in just one."""
    inside = np.all((boxes.low <= numbers[:, None]) & (numbers[:, None] <= boxes.high), axis=2)
    np.testing.assert_array_equal(np.sum(inside, axis=1), 1)
    return np.argmax(inside, axis=1)


@pytest.mark.parametrize(
    ("name", "value", "apexes"),
    [
        ("plane, l1", 1.0, 1),
        pytest.param("plane", 0.25, 3, marks=pytest.mark.slow),
        pytest.param("plane, l1", 1.0, 3, marks=pytest.mark.slow),
        pytest.param("space, l2 ball, l1", 0.25, 2, marks=pytest.mark.slow),
    ],
)
def test_each_point_of_a_box_is_drawn_as_one_of_its_places(name, value, apexes, monkeypatch):
    """With exactly one over their number, and nothing else is drawn."""
    problem = problem_of(name, value)
    points = points_of(problem.domain)
    for apex in apexes_of(problem, value)[::2][:apexes]:
        drawn = LatticeEnvelope(*in_cones(problem, apex), 1.0, 60)
        cones, boxes = drawn._coordinates, drawn._boxes
        place, sizes = place_of(boxes, cones.of(points)), cones.sizes(boxes.low, boxes.high)
        np.testing.assert_allclose(cones.log_sizes(boxes.low, boxes.high), np.log(np.array(sizes, float)), atol=1e-9)
        for box, (low, high) in enumerate(zip(boxes.low, boxes.high, strict=True)):
            found = [
                (tuple(p.tolist()), share) for p, share in every_draw(cones, low, high, monkeypatch) if p is not None
            ]
            within = [tuple(p) for p, share in found if problem.domain.contains(np.array(p))]
            assert sorted(within) == sorted(map(tuple, points[place == box].tolist()))
            assert len(set(found)) == len(found)
            assert {share for _, share in found} <= {Fraction(1, sizes[box])}


@pytest.mark.default_cases("0.25-space-4", "0.37-plane, l1-0", "0.37-space, l2 ball, l1-2")
@pytest.mark.parametrize("apex", range(5))
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("value", HEAPS)
def test_no_lattice_point_falls_below_the_bound_of_its_cone(value, name, apex):
    """At any stage of halving, and `at` takes what the box left open and the sums of all others for the score."""
    problem = problem_of(name, value)
    points = points_of(problem.domain)
    levels = scores_of(problem.score, points)
    for most in (1, 100):
        drawn = LatticeEnvelope(*in_cones(problem, apexes_of(problem, value)[apex]), 1.0, most)
        boxes, place = drawn._boxes, place_of(drawn._boxes, drawn._coordinates.of(points))
        assert np.all(boxes.lower[place] <= levels)
        found = [drawn._score.at(k, boxes.runs[box], boxes.sums[box]) for k, box in zip(points, place, strict=True)]
        np.testing.assert_array_equal(found, levels)


@pytest.mark.parametrize("name", ["plane", "space"])
def test_cones_from_a_heap_know_its_signs_at_any_distance(name):
    """All responses are in one heap: in each direction the score is one, and so is its bound, but for the apex."""
    problem = problem_of(name, 0.0)
    records = problem.score._records
    everyone = CheckRecords(records.features, 0.0 * records.responses, Fraction(1, 2), records.norm, 1)
    cones = cones_over(np.zeros(len(records.columns), np.int64), problem.domain)
    score = ConeScore(everyone, cones)
    generator = np.random.default_rng(0)
    points = generator.integers(problem.domain.low, problem.domain.high + 1, (30, len(records.columns)))
    numbers = cones.of(points[np.any(points != 0, axis=1)])
    low, high = numbers.copy(), numbers.copy()
    low[:, 1], high[:, 1] = 1, cones.sides[numbers[:, 0]]
    boxes = score.parts(low, high, [everyone.everything] * len(low), np.zeros((len(low), len(records.columns))))
    closed = np.array([some.size == 0 for some in boxes.runs])
    assert np.mean(closed) > 0.3
    levels = [score.at(k, everyone.everything, boxes.sums[0] * 0) for k in points[np.any(points != 0, axis=1)][closed]]
    np.testing.assert_allclose(boxes.lower[closed].astype(float), np.array(levels, float), rtol=1e-9, atol=1.0)


def test_a_tie_on_the_edge_of_a_cone_counts_as_below():
    """Hyperplanes of signed features along edges and diagonals, on which X_i'k = Y_i at many lattice points."""
    x = np.array([point for point in itertools.product((-8, 0, 8), repeat=2) if any(point)])
    domain, apex = DomainLattice((0, 0), np.array([-6, -6]), np.array([6, 6]), None, 0), np.array([1, 1])
    norm = GradientNorm([WEIGHT_UNITS, 3 * WEIGHT_UNITS])
    records = CheckRecords(np.repeat(x, range(1, 9), axis=0), np.repeat(x @ apex, range(1, 9)), Fraction(1, 3), norm, 1)
    for origin in (apex, np.array([-6, 2])):
        cones = cones_over(origin, domain)
        for most in (1, 20):
            boxes = LatticeEnvelope(ConeScore(records, cones), domain, Fraction(1, 64), 1.0, most)._boxes
            points = points_of(domain)
            levels = [records.at(k, records.everything, np.zeros(2)) for k in points]
            place = place_of(boxes, cones.of(points))
            assert np.all(boxes.lower[place] <= levels)
            assert [
                records.at(k, boxes.runs[at], boxes.sums[at]) for k, at in zip(points, place, strict=True)
            ] == levels


def test_the_apex_of_a_heap_is_found():
    """Of zeros it is 0; of others along a constant column; and none where the heap does not make the loss least."""
    generator = np.random.default_rng(0)
    x = np.column_stack([np.full(400, 8.0), generator.integers(0, 300, 400)])
    domain = DomainLattice((0, 0), np.array([-9, -9]), np.array([9, 9]), None, 0)

    def apex_of(y, x=x):
        return heaps.apex_of(CheckRecords(x, y, Fraction(1, 2), None, 1), domain, np.array([-9, 7]))

    y = np.where(np.arange(400) < 250, 24.0, generator.integers(-400, 400, 400))
    np.testing.assert_array_equal(apex_of(y), [3, 0])
    np.testing.assert_array_equal(apex_of(np.where(y == 24.0, 0.0, y), x + generator.integers(0, 9, (400, 2))), [0, 0])
    assert apex_of(y, x + generator.integers(0, 9, (400, 2))) is None
    assert apex_of(x @ np.array([-9, 7]) + np.where(np.arange(400) < 50, 0, 3)) is None
    assert apex_of(np.zeros(0), x[:0]) is None


def spending(count, share=0.6):
    """Six in ten are 0, on whole ages and hours that are heaped."""
    generator = np.random.default_rng(0)
    age, hours = generator.integers(18, 91, count), generator.integers(5, 81, count)
    hours[generator.random(count) < 0.6] = 40
    spent = np.round(np.exp(3.0 + 0.01 * age + generator.standard_normal(count)), 2)
    spent[generator.random(count) < share] = 0.0
    return np.column_stack([age, hours]).astype(float), spent


def test_a_table_of_zeros_takes_few_boxes():
    """Boxes of 3,000 records are more than 200,000, and a draw does not end."""
    bounds, sampler = kng.Bounds(x=([18.0, 0.0], [90.0, 100.0])), kng.draws.Lattice()
    mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, kng.Box(-1000.0, 1000.0), 10.0, "replace")
    problem = sampler.problem(mechanism, mechanism.intake.records(*spending(400)))
    drawn = sampler.envelope(problem)
    assert isinstance(drawn._score, ConeScore)
    assert len(drawn._boxes.runs) < 30_000
    assert problem.domain.contains(drawn.draw(random.Random(0).getrandbits))


@pytest.mark.parametrize("domain", [kng.Box(0.0, 1.0), kng.L2Ball(0.3)], ids=["box", "ball"])
def test_cones_of_one_point_beyond_the_domain_do_not_outweigh_it(domain):
    """The apex is a corner of Θ, and the best cones begin just beyond it, or beyond a ball's edge."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, (500, 1))
    y = np.where(generator.random(500) < 0.6, 0.0, -generator.uniform(0.0, 1.0, 500))
    bounds, sampler = kng.Bounds(x=([-1.0], [1.0])), kng.draws.Lattice(data_digits=5, theta_digits=5)
    mechanism = kng.KNG(kng.QuantileLoss(0.5), bounds, domain, 10.0, "replace")
    problem = sampler.problem(mechanism, mechanism.intake.records(x, y))
    drawn = sampler.envelope(problem)
    assert isinstance(drawn._score, ConeScore)
    boxes, rate, points = drawn._boxes, float(problem.rate), points_of(problem.domain)
    lowest = float(np.min(boxes.lower))
    sizes = np.array(drawn._coordinates.sizes(boxes.low, boxes.high), float)
    envelope = sizes @ np.exp(-rate * (boxes.lower.astype(float) - lowest))
    mass = np.sum(np.exp(-rate * (scores_of(problem.score, points).astype(float) - lowest)))
    assert mass / envelope > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.25, 0.37])
def test_draws_from_cones_have_the_probabilities_of_each_point(value):
    problem = problem_of("plane, l1", value)
    points = points_of(problem.domain)
    logs = -float(problem.rate) * scores_of(problem.score, points).astype(float)
    masses = np.exp(logs - np.max(logs))
    bits, drawn = (
        random.Random(3).getrandbits,
        LatticeEnvelope(*in_cones(problem, apexes_of(problem, value)[0]), 4.0, 400),
    )
    found = np.array([drawn.draw(bits) for _ in range(4000)])
    sides = problem.domain.high - problem.domain.low + 1

    def flat(some):
        return np.ravel_multi_index((some - problem.domain.low).T, sides)

    counts, chances = np.bincount(flat(found), minlength=np.prod(sides)), np.zeros(np.prod(sides))
    chances[flat(points)] = masses / masses.sum()
    assert_cell_frequencies(counts, chances)
