"""Sensitivities of moments without rounding: attained by records at the ends of bounds, and exceeded by none."""

import itertools
from fractions import Fraction

import equinox as eqx
import jax
import numpy as np
import pytest

import kngjax as kng
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.arrays import float64
from kngjax.data.exact_sums import ExactSums
from kngjax.data.public_units import PublicUnits
from kngjax.data.records import Records
from kngjax.sensitivity import moments
from kngjax.sensitivity.moments_in_fractions import (
    SquaredRadii,
    ridge_change,
    rounded_eigenvalue_change,
    squared_moment_changes,
)
from tests.sensitivity.test_moments import LINE, worst_on_the_line

BOUNDS = {
    "plain": kng.Bounds(x=([-1.0, -2.0], [1.0, 0.5]), y=(-0.5, 1.5), intercept=False),
    "intercept": kng.Bounds(x=([0.1, -1e-59], [0.3, 1e-59]), y=(0.1, 0.7)),
    "far": kng.Bounds(x=([2.0**50, 1e6], [2.0**50 + 0.75, 1e6 + 0.1]), y=(-1e59, 1.0)),
    "open dimension": kng.Bounds(x=(-0.1, 0.7), y=(0.0, 0.3)),
    "intercept alone": kng.Bounds(y=(0.1, 0.3)),
}


def units_of(bounds, dimension):
    with float64():
        return jax.tree.map(np.asarray, PublicUnits.of(bounds, dimension))


def corners(bounds, dimension):
    """The sums of one record each, at all corners of the bounds."""
    lower, upper = (np.array(side) for side in bounds.features(dimension))
    sides = [*zip(lower, upper, strict=True), (float(bounds.y_lower), float(bounds.y_upper))]
    for record in itertools.product(*sides):
        row = np.array(record)
        yield kng.SquaredLoss().sums(Records(row[None, :-1], row[-1:]))


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("in_units", [False, True])
def test_radii_are_those_of_the_farthest_record(name, in_units):
    """As the very map to public units has it, which divides by half widths that are rounded."""
    bounds, dimension = BOUNDS[name], 1 if name == "intercept alone" else 3 - (name == "plain")
    with float64():
        units = units_of(bounds, dimension) if in_units else None
        sums = list(corners(bounds, dimension))
    if units is not None:
        sums = [units.sums(one) for one in sums]
    expected = max(np.trace(one.gram) for one in sums), max(one.squares for one in sums)
    assert SquaredRadii.of(bounds, dimension, units) == expected


def test_radii_are_of_the_units_that_records_are_taken_in():
    """Half widths that are too small make records that are longer than 1, and it shows."""
    bounds = BOUNDS["intercept"]
    units = units_of(bounds, 3)
    widths = units.half_widths * 0.5, np.asarray(units.y_half_width * 0.25)
    narrow = eqx.tree_at(lambda part: (part.half_widths, part.y_half_width), units, widths)
    full, half = (SquaredRadii.of(bounds, 3, one) for one in (units, narrow))
    assert half == SquaredRadii(full.features * 4, full.response * 16)
    with jax.enable_x64(False):
        assert SquaredRadii.of(bounds, 3, units) == full


@pytest.mark.parametrize("in_units", [False, True])
def test_radii_of_hulls_are_those_of_float64_and_hardly_more(in_units):
    hull = kng.geometry.FeatureHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * kng.geometry.FeatureHull.powers(2, 1.0, 4.0)
    bounds = kng.Bounds(y=(-1.0, 3.0), hull=hull)
    with float64():
        units = units_of(bounds, 5) if in_units else None
        expected = moments.radii(units.bounds(bounds) if units is not None else bounds, 5)
    found = SquaredRadii.of(bounds, 5, units)
    np.testing.assert_allclose([float(found.features) ** 0.5, float(found.response) ** 0.5], expected, rtol=1e-14)


def test_there_are_none_of_hulls_with_many_facets_and_of_units_without_width():
    hull = kng.Bounds(y=(0.0, 1.0), hull=kng.geometry.FeatureHull.powers(4, 0.0, 1.0))
    assert SquaredRadii.of(hull, 5) is None
    units = units_of(LINE, 1)
    flat = eqx.tree_at(lambda part: part.y_half_width, units, np.zeros(()))
    assert SquaredRadii.of(LINE, 1, flat) is None


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_moments_change_by_no_more_and_that_much(adjacency):
    """Of a square about 0, which has corners at right angles and opposite ones, and of other bounds."""
    square = kng.Bounds(x=([-1.0, -1.0], [1.0, 1.0]), y=(-0.5, 0.5), intercept=False)
    for bounds in (square, BOUNDS["plain"]):
        matrix, moment = squared_moment_changes(SquaredRadii.of(bounds, 2), adjacency)
        sums = list(corners(bounds, 2))
        nothing = ExactSums(0, 0 * sums[0].gram, 0 * sums[0].moment, 0)
        others = sums if adjacency is Adjacency.REPLACE else [nothing]
        pairs = list(itertools.product(sums, others))
        matrices = max(np.sum((one.gram - two.gram) ** 2) for one, two in pairs)
        vectors = max(np.sum((one.moment - two.moment) ** 2) for one, two in pairs)
        assert (matrices, vectors) <= (matrix, moment)
        if bounds is square:
            assert (matrices, vectors) == (matrix, moment)


@pytest.mark.parametrize(
    ("square", "step", "expected"), [(Fraction(5, 2), 1, 3), (3, 1, 3), (1, 4, 4), (3, HALF := Fraction(1, 2), 3)]
)
def test_a_rounded_eigenvalue_changes_by_no_more_and_that_much(square, step, expected):
    change = rounded_eigenvalue_change(SquaredRadii(Fraction(square), Fraction(1)), Fraction(step))
    assert change == expected
    places = [Fraction(number, 16) for number in range(65)]
    rounded = [((place + square) / step + HALF) // 1 - (place / step + HALF) // 1 for place in places]
    assert max(rounded) * step == expected


@pytest.mark.parametrize(("regularization", "num_others"), [(0.5, 20.0), (30.0, 50.0), (5.0, 3.0), (1e-3, 1e6)])
def test_changes_of_a_ridge_regression_are_those_of_float64_and_attained(regularization, num_others):
    radii = SquaredRadii.of(LINE, 1)
    bound = float(ridge_change(radii, Fraction(regularization), Fraction(num_others)))
    expected = float(moments.ridge_changes(LINE, regularization, num_others, 1))
    np.testing.assert_allclose(bound, expected, rtol=3e-14)
    if num_others < 100:
        attained = max(change for *_, change in worst_on_the_line(regularization, num_others))
        assert 0.98 * bound < attained <= bound
    # Cells of all sizes leave nothing out: the fewer, the higher the bound.
    coarse, fine = (
        ridge_change(radii, Fraction(regularization), Fraction(num_others), resolution) for resolution in (9, 30_000)
    )
    assert float(fine) <= bound < float(coarse)
    assert float(fine) > 0.99 * bound


def test_the_change_by_a_single_record_is_that_of_the_closed_form():
    """θ̂ = xy/(λ + x²) is largest at x = √λ, or where the bounds end."""
    for ridge in (0.25, 4.0):
        x = min(ridge**0.5, 1.0)
        bound = float(ridge_change(SquaredRadii(Fraction(1), Fraction(9)), Fraction(ridge), Fraction(0)))
        assert 3.0 * x / (ridge + x * x) <= bound < 1.005 * 3.0 * x / (ridge + x * x)


def test_a_ridge_regression_of_large_and_of_tiny_units_changes_as_another():
    """θ has the units of y/x, and λ those of x²."""
    plain = ridge_change(SquaredRadii(Fraction(2), Fraction(3)), Fraction(5), Fraction(99))
    for size in (Fraction(10) ** 60, Fraction(10) ** -60):
        radii = SquaredRadii(2 * size**2, Fraction(3))
        assert float(ridge_change(radii, 5 * size**2, Fraction(99)) * size / plain) == pytest.approx(1.0, rel=1e-12)
