"""Boxes, their halves and slabs, the first of them, and the coordinates and norms that they are in."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

import kngjax as kng
from kngjax.draws.boxes.box_coordinates import coordinates_for
from kngjax.draws.boxes.boxes import BoundedBoxes, shares_inside
from kngjax.draws.quadratic.bodies import body_of
from kngjax.draws.refinement import slabs
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.losses.record_scores import RecordScores
from tests.draws.box_problems import DOMAINS, KINDS, LOSSES, SIZE, problem


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_first_box_contains_all_of_the_domain(domain):
    sums, _, body = problem("logistic", "maximum", domain, 3)
    ends = sums.coordinates.whole(body)
    generator = np.random.default_rng(1)
    inverse = np.linalg.inv(sums.coordinates.matrix)
    points = generator.uniform(-SIZE, SIZE, (4000, 3))
    power = body.shape.power
    if power:
        points *= (SIZE / np.linalg.norm(points, power, axis=1))[:, None]
    else:
        points = np.array(list(itertools.product(*[[float(a), float(b)] for a, b in body.shape.sides])))
    places = (points - sums.coordinates.centre) @ inverse.T
    slack = 1e-9 * (ends[1] - ends[0])
    assert np.all(places >= ends[0] - slack)
    assert np.all(places <= ends[1] + slack)
    # And little more.
    assert np.all(places.max(axis=0) >= ends[1] - 0.3 * (ends[1] - ends[0]))


def test_halves_and_slabs_fill_what_they_come_from_exactly():
    generator = np.random.default_rng(2)
    lower = generator.uniform(-1.0, 0.0, (30, 3))
    boxes = BoundedBoxes.between([(low, low + generator.uniform(1e-9, 1.0, 3)) for low in lower])

    def volume(some):
        sides = [
            [Fraction(b) - Fraction(a) for a, b in zip(*ends, strict=True)]
            for ends in zip(some.lower.tolist(), some.upper.tolist(), strict=True)
        ]
        return sum((one[0] * one[1] * one[2] for one in sides), Fraction(0))

    halves = boxes.halved(generator.integers(3, size=30))
    assert halves.floors.size == 60
    assert volume(halves) == volume(boxes)
    inner, outer = (np.array([-0.1, -1.0, -0.3]), np.array([0.2, 0.7, 0.1])), (np.full(3, -1.0), np.full(3, 0.7))
    parts = BoundedBoxes.between([inner, *slabs(inner, outer)])
    assert volume(parts) == volume(BoundedBoxes.between([outer]))
    # Two numbers next to each other have none between them.
    thin = BoundedBoxes.between([(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)]))])
    assert thin.halved(np.array([0])).floors.size == 1


@pytest.mark.parametrize("kind", KINDS)
def test_norms_are_rounded_to_the_side_that_proofs_need(kind):
    generator = np.random.default_rng(0)
    gauge = ScaledNorm(kind, (Fraction(1, 3), Fraction(2, 7), Fraction(5)), Fraction(2, 3))
    for _ in range(50):
        z = generator.standard_normal(3) * 10.0 ** generator.uniform(-30, 30)
        matrix = generator.standard_normal((3, 3))
        form = matrix @ matrix.T
        with ctx.workprec(300):
            exact = gauge([arb(one) for one in z.tolist()])
            assert arb(float(gauge.below(np.abs(z)))) <= exact
            assert exact <= arb(gauge.above(np.abs(z)))
            bound = gauge.largest_form(arb_mat(form.tolist()))
            # At a corner of the box, where a form is largest, too.
            corner = gauge.scales * generator.choice([-1.0, 1.0], 3)
            for one in (z, corner):
                scaled = one / float(gauge([arb(number) for number in one.tolist()]))
                assert arb(float(scaled @ form @ scaled)) <= bound * arb(1.0 + 1e-9)
    assert gauge.below(np.array([np.inf, 1.0, np.nan])) == 0.0


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_certainly_lies_outside_of_the_domain_does(domain):
    """Boxes that contain a point of Θ may meet it, however little of them does; others far from it do not."""
    shape = body_of(DOMAINS[domain].exact_shape(3)).shape
    low, high = (np.array([float(side[k]) for side in shape.sides]) for k in (0, 1))
    generator = np.random.default_rng(8)
    points = generator.uniform(low, high, (500, 3))
    if shape.power:
        points *= (SIZE / np.linalg.norm(points, shape.power, axis=1))[:, None] * (1.0 - 1e-15)
    # With the point at a corner.
    away = generator.uniform(0.0, 1.0, (500, 3)) * np.where(points > 0.5 * (low + high), 1.0, -1.0)
    lower, upper = np.minimum(points, points + away), np.maximum(points, points + away)
    assert np.all(shape.may_meet(lower, upper))
    assert not np.any(shape.may_meet(high + 1e-9 + np.abs(away), high + 2.0))
    assert np.all(shape.may_meet(np.full((1, 3), np.nan), np.full((1, 3), np.nan)))


@pytest.mark.parametrize("domain", DOMAINS)
def test_shares_are_about_how_much_of_a_box_lies_in_the_domain(domain):
    sums, _, body = problem("logistic", "maximum", domain, 3)
    low, high = sums.coordinates.whole(body)
    generator = np.random.default_rng(4)
    boxes = BoundedBoxes.between([(low + 0.1 * k * (high - low), high - 0.05 * k * (high - low)) for k in range(6)])
    shares = shares_inside(body.shape, sums.coordinates, boxes)
    for k, (lower, upper) in enumerate(zip(boxes.lower, boxes.upper, strict=True)):
        places = sums.coordinates.centre + generator.uniform(lower, upper, (4000, 3)) @ sums.coordinates.matrix.T
        assert shares[k] == pytest.approx(body.shape.may_meet(places, places).mean(), abs=0.12)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("loss", [LOSSES["Huber"], LOSSES["logistic"], kng.PseudoHuberLoss(1e-9)], ids=repr)
@pytest.mark.parametrize("first", [0, 1])
def test_coordinates_are_usable_whatever_the_records_are(loss, first):
    """Collinear, without any size, as steep as jumps, far outside of Θ: invertible, and no unit wider than Θ."""
    generator = np.random.default_rng(6)
    x = generator.uniform(-1.0, 1.0, (20, 3))
    tables = (x, 0.0 * x, x[:, :1].repeat(3, axis=1), x * [1.0, 1.0, 0.0], x * [1.0, 1e-150, 1.0], x[:1], x[:0])
    gauge = ScaledNorm("maximum", (Fraction(1, 3),) * 3, Fraction(1, 100))
    domains = kng.Box([-1.0, -1e-6, -1.0], [1.0, 1e-6, 1e3]), kng.L1Ball(SIZE)
    for number, table in enumerate(tables):
        body = body_of(domains[(first + number) % 2].exact_shape(3))
        half = [float(one) for one in body.shape.half_widths]
        scores = loss.verified_score().extended((Fraction(-9), Fraction(9)))
        found = coordinates_for(table, RecordScores(scores, np.full(len(table), 1.0)), gauge, body)
        assert np.all(np.isfinite(found.centre))
        assert np.all(np.abs(found.matrix) <= 4.0 * np.array(half)[:, None])
        lower, upper = found.whole(body)
        assert np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper))
