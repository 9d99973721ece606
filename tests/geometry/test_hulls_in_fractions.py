"""Corners of polytopes about hulls: nothing that a hull lets through lies outside, and they are hardly any farther."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from kngjax.geometry import hulls_in_fractions
from kngjax.geometry.feature_hulls import SLACK, FeatureHull
from kngjax.geometry.hulls_in_fractions import _corners, outer_corners

HULLS = {
    "interval": FeatureHull.intervals([0.1], [0.3]),
    "category": FeatureHull(np.vstack([np.zeros(4), np.eye(4)])),
    "triangle far off": FeatureHull([[1e4, 0.1], [1e4 + 1.0, 0.1], [1e4, 0.3]]),
    "square": FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    "powers": FeatureHull.powers(2, 0.0, 10.0),
    "cubes": FeatureHull.powers(3, -1.0, 1.0),
    "pieces that lie in planes": FeatureHull.powers(4, -1.0, 1.0, pieces=2),
    "product": FeatureHull.powers(2, -1.0, 1.0) * FeatureHull.intervals([3.0], [4.0]),
}


@pytest.mark.parametrize("name", HULLS)
def test_corners_reach_as_far_as_what_is_let_through_and_hardly_farther(name):
    """In every direction, beside a linear programme over the facets and over the declared vertices."""
    hull, generator = HULLS[name], np.random.default_rng(0)
    corners = outer_corners(hull)
    assert corners is not None
    for block, facets, centre, vertices in zip(corners, hull.facets, hull.centres, hull.blocks, strict=True):
        steps = np.array([[float(end - Fraction(c)) for end, c in zip(one, centre[0], strict=True)] for one in block])
        sizes = np.ptp(vertices, axis=0)
        for _ in range(30):
            direction = generator.normal(size=len(sizes)) / sizes
            right = np.ones(len(facets))
            most = -optimize.linprog(-direction, A_ub=facets, b_ub=right, bounds=(None, None)).fun
            reached = np.max(steps @ direction)
            # What is let through is longer than 1 by less than 1.8 times the slack.
            assert (1.0 + 1.8 * SLACK) * most < reached * (1.0 + 1e-12)
            declared = np.max((vertices - centre) @ direction)
            np.testing.assert_allclose(reached, declared, rtol=1e-6)


@pytest.mark.parametrize("name", HULLS)
def test_no_row_that_is_let_through_is_longer(name):
    """In fractions: rows far outside, and rows so near to the boundary that they are kept or moved by rounding."""
    hull, generator = HULLS[name], np.random.default_rng(1)
    directions = generator.normal(size=(300, hull.columns)) * np.ptp(hull.vertices, axis=0)
    lengths = np.max([part for part, *_ in hull._lengths(hull.centre + directions)], axis=0)
    edge = hull.centre + directions / lengths[:, None] * (1.0 + SLACK * generator.uniform(0.9, 1.1, (300, 1)))
    rows = hull.move_inside(np.vstack([edge, hull.centre + directions * 10.0 ** generator.uniform(-1, 9, (300, 1))]))
    found, start = [], 0
    for facets, centre in zip(hull.facets, hull.centres, strict=True):
        part = rows[:, start : (start := start + facets.shape[1])]
        steps = [[Fraction(x) - Fraction(c) for x, c in zip(row, centre[0], strict=True)] for row in part.tolist()]
        slopes = [list(map(Fraction, facet)) for facet in np.asarray(facets).tolist()]
        found += [max(sum(f * s for f, s in zip(facet, step, strict=True)) for facet in slopes) for step in steps]
    assert 1.0 + 0.9 * SLACK < float(max(found)) <= 1.0 + 1.8 * SLACK


@pytest.mark.parametrize(
    "facets",
    [
        [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
        [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)],
        [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.1, 1.0)],
        [(1.0, 0.0), (-1.0, 0.0), (2.0, 0.0), (-2.0, 0.0)],
        [(1.0,), (2.0,)],
        [(1.0,), (2.0,), (3.0,)],
        [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)],
    ],
)
def test_facets_that_leave_a_direction_open_have_none(facets):
    assert _corners(tuple(facets), (0.0,) * len(facets[0])) is None


def test_a_cone_has_one_corner_however_many_facets_meet_there():
    """As many facets as a triangle's, and every two of them meet in the same point."""
    assert _corners(((1.0, 0.0), (1.0, 1.0), (1.0, -1.0)), (0.0, 0.0)) is None
    four = ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 0.0, 1.0), (1.0, -1.0, -1.0))
    assert _corners(four, (0.0, 0.0, 0.0)) is None


def test_corners_in_which_more_facets_meet_come_once():
    """The tip of a pyramid, where four facets meet."""
    pyramid = ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.0, -1.0, 1.0), (0.0, 0.0, -1.0))
    found = _corners(pyramid, (0.0, 0.0, 0.0))
    assert found is not None
    assert len(found) == len(set(found)) == 5


def test_facets_that_close_have_their_corners():
    square = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
    expected = {
        (x * Fraction(1 + 2 * Fraction(SLACK)), y * (1 + 2 * Fraction(SLACK))) for x in (1, -1) for y in (1, -1)
    }
    assert set(_corners(square, (0.0, 0.0))) == expected
    # So far from 0 that rounding would move rows by more than there is room for.
    assert _corners(square, (1e9, 0.0)) is None


def test_of_many_facets_nothing_is_tried(monkeypatch):
    hull = HULLS["powers"]
    assert outer_corners(FeatureHull.powers(4, 0.0, 1.0) * hull) is None
    monkeypatch.setattr(hulls_in_fractions, "_MOST_WORK", 1)
    hulls_in_fractions._corners.cache_clear()
    assert outer_corners(hull) is None
    hulls_in_fractions._corners.cache_clear()
