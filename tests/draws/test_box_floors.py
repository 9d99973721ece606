"""Floors of gradients over boxes, and what float64 knows of gradients there, beside 200 binary digits."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from kngjax.draws.boxes import cover
from kngjax.draws.boxes.box_coordinates import BoxCoordinates
from kngjax.draws.boxes.record_sums import RecordSums
from tests.draws.box_problems import KINDS, LOSSES, levels, problem


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
@pytest.mark.parametrize(("dimension", "scale"), [(1, Fraction(1, 400)), (3, Fraction(1, 9)), (2, Fraction(1, 10**6))])
def test_floors_are_at_most_what_gradients_are(loss, kind, domain, dimension, scale):
    """In a cover of shells that rays know, and in its halves: at 200 binary digits."""
    generator = np.random.default_rng(3)
    sums, gauge, body = problem(loss, kind, domain, dimension, count=30, scale=scale)
    with np.errstate(all="ignore"):
        found = cover.Cover(sums, gauge, body.shape, sums.coordinates.whole(body))
        for most in (1, 200):
            found.refine(most)
            chosen, points = points_of(found.boxes, 12, generator)
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
        found = cover.Cover(sums, gauge, body.shape, ends)
        unit = np.array([1.0, 0.3]) * shift * found._beyond(inner, ends, 0.0)
        sums = RecordSums(sums.x, sums.scores, BoxCoordinates(centre + matrix @ unit, matrix))
        ends = sums.coordinates.whole(body)
        found = cover.Cover(sums, gauge, body.shape, ends)
        origin = sums.over(np.zeros((1, 2)), np.zeros((1, 2)))
        level = gauge.above(np.abs(origin.gradient[0]) + origin.error[0])
        floor = found._beyond(inner, ends, level)
    # On the faces of the inner box and a little beyond, where floors are nearly reached.
    points = generator.uniform(-1.0, 1.0, (12, 2))
    points *= generator.uniform(8.0, 9.0, (12, 1)) / np.abs(points).max(axis=1, keepdims=True)
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
        found = cover.Cover(sums, gauge, body.shape, whole)
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
    sums, _, _ = problem(loss, "maximum", dimension=3, count=20)
    generator = np.random.default_rng(5)
    for size in (0.0, 1e-9, 0.01, 1.0, 30.0):
        centre, half = generator.uniform(-1.0, 1.0, (1, 3)), size * generator.uniform(0.0, 1.0, (1, 3))
        with np.errstate(all="ignore"):
            known, least = sums.over(centre, half), sums.least(centre, half)[0][0]
        for _ in range(6):
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
