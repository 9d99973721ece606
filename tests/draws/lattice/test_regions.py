"""The part of a lattice between two curves: which points lie in it, which boxes miss it, and draws in it."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import kngjax as kng
from audits.lattices import lattice_law
from kngjax.draws.lattice.coordinates import LatticeCoordinates
from kngjax.draws.lattice.regions import CurveRegion, vertices_of
from tests.oracles.goodness_of_fit import assert_cell_frequencies

EXPONENTS = (-3, -2, -5)


def value(vertex, point):
    """v'θ, exactly."""
    pairs = zip(vertex, point, EXPONENTS, strict=True)
    return sum(Fraction(float(number)) * int(k) * Fraction(2) ** exponent for number, k, exponent in pairs)


def lies_between(vertices, point, below, above):
    return all(
        (below is None or value(vertex, below) <= value(vertex, point))
        and (above is None or value(vertex, point) <= value(vertex, above))
        for vertex in vertices
    )


@pytest.mark.parametrize("ends", ["both", "below", "above"])
def test_it_has_the_points_between_its_ends_at_all_vertices(ends):
    generator = np.random.default_rng(0)
    vertices = vertices_of([np.ones((1, 1)), [[-0.1], [0.3]], [[0.7], [1.1]]])
    assert vertices.shape == (4, 3)
    below = None if ends == "above" else np.array([-9, 1, 3])
    above = None if ends == "below" else np.array([7, 2, 2])
    region = CurveRegion(vertices, EXPONENTS, below, above)
    points = generator.integers(-12, 13, (400, 3))
    points = np.vstack([points, *(end for end in (below, above) if end is not None)])
    found = region.contains_each(points)
    assert found.tolist() == [lies_between(vertices, point, below, above) for point in points]
    assert found[400:].all()
    assert 20 < found.sum() < 380


def test_inequalities_that_float64_and_64_bits_cannot_tell_from_equalities_are_decided():
    below = np.array([2**33, 2, 0])
    region = CurveRegion(np.array([[1.0, 2.0**-30, 0.0]]), (0, 0, 0), below, None)
    assert [region.contains(below + np.array([0, step, 0])) for step in (-1, 0, 1)] == [False, True, True]
    # 0.1 + 0.2 is not 0.3 for the numbers that floats are.
    region = CurveRegion(np.array([[0.1, 0.2, -0.3]]), (0, 0, 0), np.zeros(3, np.int64), None)
    sign = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert 0 < abs(sign) < Fraction(1, 2**53)
    for times in (2**40, -(2**40)):
        assert region.contains(np.full(3, times)) is bool(sign * times >= 0)


@pytest.mark.parametrize("turned", [False, True])
def test_no_box_that_has_one_of_its_points_misses_it(turned):
    generator = np.random.default_rng(1)
    vertices = vertices_of([np.ones((1, 1)), [[-1.0], [1.0]], [[0.0], [0.5]]])
    region = CurveRegion(vertices, EXPONENTS, np.array([-4, 0, 1]), np.array([4, 1, 2]))
    matrix = np.array([[1, 2, -1], [0, 1, 3], [0, 0, 1]]) if turned else np.eye(3, dtype=np.int64)
    inverse = np.rint(np.linalg.inv(matrix)).astype(np.int64)
    coordinates = LatticeCoordinates(matrix, inverse)
    points = generator.integers(-12, 13, (3000, 3))
    inside = points[region.contains_each(points)] @ inverse.T
    low = inside - generator.integers(0, 3, inside.shape)
    assert not region.misses(coordinates, low, inside + generator.integers(0, 3, inside.shape)).any()
    others = points @ inverse.T
    assert region.misses(coordinates, others, others).sum() > 1500


@pytest.mark.parametrize("norm", [None, kng.L1()])
def test_draws_in_a_part_of_a_domain_have_its_share_of_the_law(norm):
    bounds = kng.Bounds(x=([-0.3], [0.7]))
    mechanism = kng.KNG(kng.QuantileLoss(0.3), bounds, kng.Box(-1.0, 1.0), 2.0, "add_remove", norm=norm)
    sampler = kng.draws.Lattice(data_digits=4, theta_digits=3, max_records=64, expected_proposals=2.0)
    generator = np.random.default_rng(2)
    records = mechanism.intake.records(generator.uniform(-0.3, 0.7, (9, 1)), generator.normal(size=9))
    problem, law = sampler.problem(mechanism, records), lattice_law(mechanism, records, sampler)
    exponents = problem.domain.exponents
    points = np.array([np.rint(np.ldexp(theta, -np.array(exponents))) for theta in law.theta], np.int64)
    region = CurveRegion(vertices_of(bounds.feature_blocks(2)), exponents, np.array([-3, 1]), np.array([2, -1]))
    held = region.contains_each(points)
    assert 4 < held.sum() < len(points) // 2
    envelope = sampler.envelope(problem, region)
    bits = random.Random(3).getrandbits
    drawn = [tuple(envelope.draw(bits)) for _ in range(300)]
    counts = [drawn.count(tuple(point)) for point in points]
    probabilities = np.where(held, law.probabilities, 0.0)
    assert_cell_frequencies(counts, probabilities / probabilities.sum())


def test_a_part_of_one_point_is_drawn():
    mechanism = kng.KNG(kng.QuantileLoss(0.5), kng.Bounds(x=([0.0], [1.0])), kng.Box(-4.0, 4.0), 1.0, "add_remove")
    problem = (sampler := kng.draws.Lattice(max_records=100)).problem(
        mechanism, mechanism.intake.records(np.ones((5, 1)), np.ones(5))
    )
    only = np.array([12345, -678])
    region = CurveRegion(vertices_of(mechanism.bounds.feature_blocks(2)), problem.domain.exponents, only, only)
    np.testing.assert_array_equal(sampler.envelope(problem, region).draw(random.Random(0).getrandbits), only)


def test_vertices_of_products_are_those_of_their_blocks():
    blocks = [np.ones((1, 1)), [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[2.0], [3.0], [2.0]]]
    expected = {(1.0, *one, other) for one, other in itertools.product([(0, 0), (1, 0), (0, 1)], (2.0, 3.0))}
    assert {tuple(row) for row in vertices_of(blocks)} == expected
