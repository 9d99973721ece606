"""Public units: every record in [-1, 1], sums exactly those of the records, and coefficients back in own units."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kngjax as kng
from kngjax.data.public_units import PublicUnits

# Sums and units are compared in the last digits of float64.
pytestmark = pytest.mark.float64
SQUARED = kng.SquaredLoss()


def table(intercept):
    """Bounds that are far from 0 and of unlike width, and records within them, two at the ends."""
    random = np.random.default_rng(0)
    lower, upper = np.array([1950.0, -1e-3, 0.1]), np.array([2000.0, 2e-3, 0.3])
    x = np.vstack([lower, upper, random.uniform(lower, upper, (40, 3))])
    y = np.concatenate([[60.0, 140.0], random.uniform(60.0, 140.0, 40)])
    bounds = kng.Bounds((lower, upper), (60.0, 140.0), intercept)
    return bounds, kng.data.prepare(bounds, x, y)


@pytest.mark.default_cases("True")
@pytest.mark.parametrize("intercept", [True, False])
def test_every_record_lies_within_one_and_some_at_it(intercept):
    bounds, records = table(intercept)
    units = PublicUnits.of(bounds, records.dimension)
    found, theirs = jax.tree.map(np.asarray, (units.records(records), units.bounds(bounds)))
    for values, lower, upper in ((found.x[:, intercept:], theirs.x_lower, theirs.x_upper), (found.y, -1.0, 1.0)):
        assert np.all((np.asarray(values) >= lower) & (np.asarray(values) <= upper))
        np.testing.assert_allclose(np.max(np.abs(values)), 1.0, rtol=1e-14)
        assert np.max(np.abs(values)) <= 1.0
    np.testing.assert_allclose(np.max(np.abs([theirs.x_lower, theirs.x_upper]), axis=0), 1.0, rtol=1e-14)
    if intercept:
        np.testing.assert_array_equal(found.x[:, 0], 1.0)
        np.testing.assert_allclose(theirs.x_lower, -1.0, rtol=1e-14)


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_are_those_of_the_records_in_these_units(intercept):
    bounds, records = table(intercept)
    units = jax.tree.map(np.asarray, PublicUnits.of(bounds, records.dimension))
    sums = units.sums(SQUARED.sums(records))
    middles, widths = [*units.middles, float(units.y_middle)], [*units.half_widths, float(units.y_half_width)]
    rows = [
        [
            (Fraction(float(cell)) - Fraction(float(m))) / Fraction(float(h))
            for cell, m, h in zip(row, middles, widths, strict=True)
        ]
        for row in np.column_stack([records.x, records.y])
    ]
    exact = np.array(rows, object)
    np.testing.assert_array_equal(sums.gram, exact[:, :-1].T @ exact[:, :-1])
    np.testing.assert_array_equal(sums.moment, exact[:, :-1].T @ exact[:, -1])
    assert sums.squares == exact[:, -1] @ exact[:, -1]
    assert sums.count == len(rows)


@pytest.mark.default_cases("True")
@pytest.mark.parametrize("intercept", [True, False])
def test_least_squares_in_these_units_is_least_squares(intercept):
    bounds, records = table(intercept)
    units = PublicUnits.of(bounds, records.dimension)
    found = units.records(records)
    theta = jnp.asarray(np.linalg.lstsq(found.x, found.y, rcond=None)[0])
    expected = np.linalg.lstsq(records.x, records.y, rcond=None)[0]
    np.testing.assert_allclose(units.in_own_units(theta), expected, rtol=1e-7)
    np.testing.assert_allclose(units.in_own_units(jnp.stack([theta, 0.0 * theta]))[0], expected, rtol=1e-7)
    size = np.abs(units.in_own_units(jnp.ones(records.dimension)) - units.in_own_units(0.0 * theta))
    assert np.all(size <= units.sizes)


def test_hulls_move_with_their_columns():
    hull = kng.geometry.FeatureHull.powers(2, 10.0, 30.0) * kng.geometry.FeatureHull(
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    )
    bounds = kng.Bounds(hull=hull, y=(0.0, 1.0))
    units = PublicUnits.of(bounds, 5)
    found = jax.tree.map(np.asarray, units.bounds(bounds).hull)
    middles, widths = np.asarray(units.middles)[1:], np.asarray(units.half_widths)[1:]
    np.testing.assert_allclose(found.vertices, (hull.vertices - middles) / widths, rtol=1e-12)
    points = np.random.default_rng(1).uniform(*hull.box, (500, 4))
    np.testing.assert_array_equal(found.outside((points - middles) / widths), hull.outside(points))
    assert 0 < hull.outside(points).sum() < 500


@pytest.mark.slow
def test_a_hull_of_levels_is_centred_where_its_corners_are_near():
    """Of 20 levels: about the middle of the box each corner would be √20 away."""
    bounds = kng.Bounds(hull=kng.geometry.FeatureHull(np.vstack([np.zeros(19), np.eye(19)])), y=(0.0, 1.0))
    corners = PublicUnits.of(bounds, 20).bounds(bounds).hull.blocks[0]
    assert np.max(np.linalg.norm(corners, axis=1)) < 1.2


def test_data_in_public_units_are_taken_for_no_others():
    bounds, records = table(True)
    mechanism = kng.AdaSSP(bounds, 1.0, 1e-6, "replace")
    data = mechanism.intake.summarise(records)
    with pytest.raises(TypeError, match="in the public units of the mechanism"):
        kng.owner.nonprivate.minimiser(SQUARED, data)
    with pytest.raises(TypeError, match="from its own prepare"):
        mechanism.draws(SQUARED.summarise(records), jax.random.key(0), 1)
