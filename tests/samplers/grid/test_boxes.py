"""Boxes with floors of gradients: what is proved of them beside 200 binary digits, and their law without any floor."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx, fmpq

import kngjax as kng
from kngjax.geometry.abstract_norms import Noise
from kngjax.losses.record_scores import RecordScores
from kngjax.samplers.grid.boxes import cover, draws
from kngjax.samplers.grid.boxes.boxes import Boxes, shares_inside, slabs
from kngjax.samplers.grid.boxes.coordinates import Coordinates, coordinates_for
from kngjax.samplers.grid.boxes.gauges import Gauge
from kngjax.samplers.grid.boxes.inside import may_meet
from kngjax.samplers.grid.boxes.sums import RecordSums
from kngjax.samplers.grid.cells import Grid
from kngjax.samplers.grid.quadratic.bodies import body_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies

LOSSES = {
    "pseudo-Huber": kng.PseudoHuberLoss(0.3),
    "Huber": kng.HuberLoss(0.4),
    "logistic": kng.LogisticLoss(),
    "Poisson": kng.PoissonLoss(),
    "expectile": kng.ExpectileLoss(0.8),
    "smoothed quantile": kng.SmoothedQuantileLoss(0.3, 0.2),
}
KINDS = ("maximum", "sum", "length")
DOMAINS = {"box": kng.Box(-1.0, 1.5), "l1": kng.L1Ball(1.5), "l2": kng.L2Ball(1.5), "outside": kng.Box(1.0, 1.5)}


def problem(loss, kind, domain="box", dimension=2, count=50, scale=Fraction(1, 9)):
    """Sums, norm and Θ, with collinear columns."""
    generator = np.random.default_rng(dimension)
    x = generator.uniform(-1.0, 1.0, (count, dimension))
    x[:, -1] = 0.1 * x[:, -1] + 0.9 * x[:, 0]
    y = np.clip(0.5 + 0.3 * x[:, 0] + 0.3 * generator.standard_normal(count), 0.0, 2.0)
    y = (y > 0.5).astype(float) if loss == "logistic" else y
    body = body_of(DOMAINS[domain].exact_shape(dimension))
    scores = LOSSES[loss].verified_score().extended((Fraction(-3 * dimension), Fraction(3 * dimension)))
    gauge = Gauge(Noise(kind, tuple(Fraction(1 + j, 3) for j in range(dimension)), scale))
    with np.errstate(all="ignore"):
        sums = RecordSums(x, RecordScores(scores, y), coordinates_for(x, RecordScores(scores, y), gauge, body))
    return sums, gauge, body


def levels(sums, gauge, points):
    """‖G‖ at points of u, by the records in balls."""
    return [gauge(sums.gradient_in_balls(sums.coordinates.places([arb(one) for one in u]))) for u in points.tolist()]


def points_of(boxes, number, generator):
    """Random points of random boxes, ends among them."""
    chosen = generator.integers(boxes.floors.size, size=number)
    shares = generator.choice([0.0, 1.0, 0.5, 0.1], (number, boxes.lower.shape[1])) * generator.uniform(0.99, 1.0)
    lower, upper = boxes.lower[chosen], boxes.upper[chosen]
    return chosen, np.clip(lower + shares * (upper - lower), lower, upper)


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("domain", ["box", "outside"])
def test_floors_are_at_most_what_gradients_are(loss, kind, domain):
    """In a cover of shells that rays know, and in its halves: at 200 binary digits."""
    generator = np.random.default_rng(3)
    for dimension, scale in ((1, Fraction(1, 400)), (3, Fraction(1, 9)), (2, Fraction(1, 10**6))):
        sums, gauge, body = problem(loss, kind, domain, dimension, scale=scale)
        with np.errstate(all="ignore"):
            found = cover.Cover(sums, gauge, body.range, sums.coordinates.whole(body))
            for most in (1, 200):
                found.refine(most)
                chosen, points = points_of(found.boxes, 30, generator)
                with ctx.workprec(200):
                    for box, level in zip(chosen, levels(sums, gauge, points), strict=True):
                        assert arb(float(found.boxes.floors[box])) <= level
        assert found.boxes.floors.max() > 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shift", [0.0, 0.9])
def test_floors_beyond_rays_are_at_most_what_gradients_are(kind, shift):
    """From a point where the gradient is 0, and from one where it nearly reaches the floor."""
    generator = np.random.default_rng(6)
    sums, gauge, body = problem("pseudo-Huber", kind, scale=Fraction(1, 10), count=400)
    matrix, centre = sums.coordinates.matrix, sums.coordinates.centre
    inner = np.full(2, -8.0), np.full(2, 8.0)
    with np.errstate(all="ignore"):
        ends = sums.coordinates.whole(body)
        found = cover.Cover(sums, gauge, body.range, ends)
        unit = np.array([1.0, 0.3]) * shift * found._beyond(inner, ends, 0.0)
        sums = RecordSums(sums.x, sums.scores, Coordinates(centre + matrix @ unit, matrix))
        ends = sums.coordinates.whole(body)
        found = cover.Cover(sums, gauge, body.range, ends)
        origin = sums.over(np.zeros((1, 2)), np.zeros((1, 2)))
        level = gauge.above(np.abs(origin.gradient[0]) + origin.error[0])
        floor = found._beyond(inner, ends, level)
    points = generator.uniform(-16.0, 16.0, (60, 2))
    points = points[np.abs(points).max(axis=1) >= 8.0]
    with ctx.workprec(200):
        least = min(float(one.lower()) for one in levels(sums, gauge, points))
    assert floor <= least
    assert floor > 0.0 or shift


@pytest.mark.parametrize("kind", KINDS)
def test_floors_beyond_rays_hold_where_faces_are_at_unequal_distances(kind):
    """A line's rays meet both ends alone: the floor is nearly what the gradient is at the nearer one."""
    sums, gauge, body = problem("pseudo-Huber", kind, dimension=1, scale=Fraction(1, 10), count=400)
    with np.errstate(all="ignore"):
        whole = sums.coordinates.whole(body)
        found = cover.Cover(sums, gauge, body.range, whole)
        for ends in ((-4.0, 16.0), (-16.0, 4.0), (-1.0, 24.0)):
            inner = np.array([ends[0]]), np.array([ends[1]])
            floor = found._beyond(inner, whole, 0.0)
            with ctx.workprec(200):
                least = min(levels(sums, gauge, np.array([[end] for end in ends])))
                start = levels(sums, gauge, np.zeros((1, 1)))[0]
            assert arb(floor) <= least + start
            assert floor > 0.3 * float(least)


@pytest.mark.parametrize("loss", LOSSES)
def test_float64_has_gradients_over_boxes_and_at_points(loss):
    sums, _, _ = problem(loss, "maximum", dimension=3)
    generator = np.random.default_rng(5)
    for size in (0.0, 1e-9, 0.01, 1.0, 30.0):
        centre, half = generator.uniform(-1.0, 1.0, (1, 3)), size * generator.uniform(0.0, 1.0, (1, 3))
        with np.errstate(all="ignore"):
            known, least = sums.over(centre, half), sums.least(centre, half)[0][0]
        for _ in range(20):
            u = centre + half * generator.choice([-1.0, -0.5, 0.0, 1.0], (1, 3))
            with ctx.workprec(200):
                place = sums.coordinates.places([arb(one) for one in u[0].tolist()])
                truth = sums.gradient_in_balls(place)
            with np.errstate(all="ignore"):
                at_most, _, _, _ = known.sizes(np.array([0]), u, np.zeros((1, 3)))
            for j, one in enumerate(sums.gradient(place)):
                assert one.contains(truth[j].mid())
                # What no float64 tells is no number.
                assert np.isnan(at_most[0, j]) or arb(float(at_most[0, j])) <= abs(truth[j])
                assert arb(float(least[j])) <= abs(truth[j])
                away = [arb(a) - arb(b) for a, b in zip(u[0].tolist(), centre[0].tolist(), strict=True)]
                middle = arb(float(known.gradient[0, j]))
                for k, step in enumerate(away):
                    middle += arb(float(known.matrix[0, j, k]), float(known.off[0, j, k])) * step
                assert (middle + arb(0, float(known.error[0, j]))).overlaps(truth[j])


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_first_box_contains_all_of_the_domain(domain):
    sums, _, body = problem("logistic", "maximum", domain, 3)
    ends = sums.coordinates.whole(body)
    generator = np.random.default_rng(1)
    inverse = np.linalg.inv(sums.coordinates.matrix)
    points = generator.uniform(-1.5, 1.5, (4000, 3))
    power = body.range.power
    if power:
        points *= (1.5 / np.linalg.norm(points, power, axis=1))[:, None]
    else:
        points = np.array(list(itertools.product(*[[float(a), float(b)] for a, b in body.range.sides])))
    places = (points - sums.coordinates.centre) @ inverse.T
    slack = 1e-9 * (ends[1] - ends[0])
    assert np.all(places >= ends[0] - slack)
    assert np.all(places <= ends[1] + slack)
    # And little more.
    assert np.all(places.max(axis=0) >= ends[1] - 0.3 * (ends[1] - ends[0]))


def test_halves_and_slabs_fill_what_they_come_from_exactly():
    generator = np.random.default_rng(2)
    lower = generator.uniform(-1.0, 0.0, (30, 3))
    boxes = Boxes.between([(low, low + generator.uniform(1e-9, 1.0, 3)) for low in lower])

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
    parts = Boxes.between([inner, *slabs(inner, outer)])
    assert volume(parts) == volume(Boxes.between([outer]))
    # Two numbers next to each other have none between them.
    thin = Boxes.between([(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)]))])
    assert thin.halved(np.array([0])).floors.size == 1


@pytest.mark.parametrize("kind", KINDS)
def test_norms_are_rounded_to_the_side_that_proofs_need(kind):
    generator = np.random.default_rng(0)
    gauge = Gauge(Noise(kind, (Fraction(1, 3), Fraction(2, 7), Fraction(5)), Fraction(2, 3)))
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


@pytest.mark.default_cases("True")
@pytest.mark.parametrize("floored", [False, True])
def test_the_law_does_not_depend_on_the_boxes(floored, monkeypatch):
    """Without a floor, and in coordinates that are those of no record; θ_2 is kept, which no box is aligned with."""
    sums, gauge, body = problem("Huber", "maximum", "l2", scale=Fraction(25))
    matrix = np.array([[1.0, 0.6], [-0.3, 0.8]])
    with np.errstate(all="ignore"):
        others = RecordSums(sums.x, sums.scores, Coordinates(np.array([0.2, -0.4]), matrix))
    if not floored:
        monkeypatch.setattr(cover.Cover, "_look", lambda self, boxes: boxes)
        monkeypatch.setattr(cover.Cover, "refine", lambda self, most: None)
        monkeypatch.setattr(cover.Cover, "known", sums.over(np.zeros((1, 2)), np.zeros((1, 2))))
    bits, grid = random.Random(4).getrandbits, Grid((-40, -2))
    places = [draws.draw(draws.cover_of(others, gauge, body), others, gauge, body, grid, bits)[1] for _ in range(400)]
    axis = np.linspace(-1.5, 1.5, 1201)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    gradient = np.clip(points @ sums.x.T - sums.scores.y, -0.4, 0.4) @ sums.x
    masses = np.exp(-np.max(np.abs(gradient) / gauge.scales, axis=-1)) * (np.linalg.norm(points, axis=-1) <= 1.5)
    numbers = np.floor(axis / 0.25 + 0.5).astype(int)
    chances = np.array([masses[:, numbers == number].sum() for number in range(-6, 7)])
    assert_cell_frequencies([places.count(number) for number in range(-6, 7)], chances / chances.sum())


def test_what_float64_rejects_is_rejected_in_balls():
    """Proposals by the hundred, each decided in both ways."""
    sums, gauge, body = problem("pseudo-Huber", "maximum", dimension=2, count=4000, scale=Fraction(1))
    bits = random.Random(9).getrandbits
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.range, sums.coordinates.whole(body))
        found.refine(1000)
        proposals = draws.Proposals(sums, gauge, body, found, bits)
        rejected = 0
        for _ in range(400):
            words = np.array([[bits(64) for _ in range(3)]], np.uint64)
            chosen = proposals._choose(1)
            if not proposals._are_rejected(chosen, words)[0]:
                continue
            rejected += 1
            shares = [draws.Uniform(bits, int(word), 64) for word in words[0]]
            proposal = draws.Proposal(
                sums.coordinates, found.boxes.lower[chosen[0]], found.boxes.upper[chosen[0]], shares[:-1]
            )
            assert not proposals._is_accepted(proposal, int(proposals._weights.whole[chosen[0]]), shares[-1])
    assert rejected > 20


def test_what_lies_outside_of_the_domain_is_not_accepted():
    """In balls alone, by a last number that accepts all else: float64 rejects it before."""
    sums, gauge, body = problem("pseudo-Huber", "maximum", "l2", scale=Fraction(1))
    bits, outside = random.Random(9).getrandbits, 0
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.range, sums.coordinates.whole(body))
        proposals = draws.Proposals(sums, gauge, body, found, bits)
        for box in proposals._choose(100):
            *places, share = (draws.Uniform(bits, word, 64) for word in (bits(64), bits(64), 1))
            proposal = draws.Proposal(sums.coordinates, found.boxes.lower[box], found.boxes.upper[box], places)
            length = np.hypot(*(float(one.mid()) for one in proposal.place(64)))
            assert proposals._is_accepted(proposal, int(proposals._weights.whole[box]), share) == (length < 1.5)
            outside += length > 1.5
    assert 20 < outside < 80


def test_weights_are_at_least_the_masses_that_floors_allow():
    sums, gauge, body = problem("logistic", "sum", dimension=3)
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.range, sums.coordinates.whole(body))
        found.refine(200)
        weights = draws.Weights.of(found.boxes)
    with ctx.workprec(200):
        unit = arb(fmpq(2)) ** weights.exponent
        for k in range(found.boxes.floors.size):
            volume = arb(1)
            for low, high in zip(found.boxes.lower[k].tolist(), found.boxes.upper[k].tolist(), strict=True):
                volume *= arb(high) - arb(low)
            mass = volume * (arb(weights.level) - arb(float(found.boxes.floors[k]))).exp()
            assert mass <= unit * int(weights.whole[k])
    assert weights.sums[-1] == sum(weights.whole.tolist())


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_certainly_lies_outside_of_the_domain_does(domain):
    """Boxes that contain a point of Θ may meet it, however little of them does; others far from it do not."""
    shape = body_of(DOMAINS[domain].exact_shape(3)).range
    low, high = (np.array([float(side[k]) for side in shape.sides]) for k in (0, 1))
    generator = np.random.default_rng(8)
    points = generator.uniform(low, high, (500, 3))
    if shape.power:
        points *= (1.5 / np.linalg.norm(points, shape.power, axis=1))[:, None] * (1.0 - 1e-15)
    # With the point at a corner.
    away = generator.uniform(0.0, 1.0, (500, 3)) * np.where(points > 0.5 * (low + high), 1.0, -1.0)
    lower, upper = np.minimum(points, points + away), np.maximum(points, points + away)
    assert np.all(may_meet(shape, lower, upper))
    assert not np.any(may_meet(shape, high + 1e-9 + np.abs(away), high + 2.0))
    assert np.all(may_meet(shape, np.full((1, 3), np.nan), np.full((1, 3), np.nan)))


@pytest.mark.parametrize("domain", DOMAINS)
def test_shares_are_about_how_much_of_a_box_lies_in_the_domain(domain):
    sums, _, body = problem("logistic", "maximum", domain, 3)
    low, high = sums.coordinates.whole(body)
    generator = np.random.default_rng(4)
    boxes = Boxes.between([(low + 0.1 * k * (high - low), high - 0.05 * k * (high - low)) for k in range(6)])
    shares = shares_inside(body.range, sums.coordinates, boxes)
    for k, (lower, upper) in enumerate(zip(boxes.lower, boxes.upper, strict=True)):
        places = sums.coordinates.centre + generator.uniform(lower, upper, (4000, 3)) @ sums.coordinates.matrix.T
        assert shares[k] == pytest.approx(may_meet(body.range, places, places).mean(), abs=0.12)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("loss", [LOSSES["Huber"], LOSSES["logistic"], kng.PseudoHuberLoss(1e-9)], ids=repr)
def test_coordinates_are_usable_whatever_the_records_are(loss):
    """Collinear, without any size, as steep as jumps, far outside of Θ: invertible, and no unit wider than Θ."""
    generator = np.random.default_rng(6)
    x = generator.uniform(-1.0, 1.0, (60, 3))
    tables = (x, 0.0 * x, x[:, :1].repeat(3, axis=1), x * [1.0, 1.0, 0.0], x * [1.0, 1e-150, 1.0], x[:1], x[:0])
    gauge = Gauge(Noise("maximum", (Fraction(1, 3),) * 3, Fraction(1, 100)))
    for domain in (kng.Box([-1.0, -1e-6, -1.0], [1.0, 1e-6, 1e3]), kng.L1Ball(1.5)):
        body = body_of(domain.exact_shape(3))
        half = [float(one) for one in body.half_widths]
        for table in tables:
            y = np.full(len(table), 1.0)
            scores = loss.verified_score().extended((Fraction(-9), Fraction(9)))
            found = coordinates_for(table, RecordScores(scores, y), gauge, body)
            assert np.all(np.isfinite(found.centre))
            assert np.all(np.abs(found.matrix) <= 4.0 * np.array(half)[:, None])
            lower, upper = found.whole(body)
            assert np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper))
