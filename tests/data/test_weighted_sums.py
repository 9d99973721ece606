"""Weights as functions of one record, and sums over weighted rows, beside scalar arithmetic and fractions."""

import math
import types
from fractions import Fraction

import numpy as np
import pytest

from kngjax.data import weighted_sums
from kngjax.data.weighted_sums import RootWeights, WeightedRows

POWERS = [1.0, 1.25, 1.5, 1.999]
# Magnitudes of columns, the response last.
SCALES = {"one": [1.0, 1.0, 1.0, 1.0], "mixed": [2.0**50, 1e-60, 3.0, 1e-7], "far": [1e60, 1e-60, 1e60, 1e60]}


def table(count, scales, seed=0):
    """Columns of x and y within these magnitudes, some records at corners and some tiny: shape (d + 1, n)."""
    generator = np.random.default_rng(seed)
    values = generator.uniform(-1.0, 1.0, (len(scales), count))
    corners = generator.random(count) < 0.2
    values[:, corners] = np.sign(values[:, corners])
    values[:, generator.random(count) < 0.1] *= 1e-30
    return values * np.asarray(scales)[:, None]


def weights(power, scales, cap=None):
    roots = RootWeights.of(10.0 / scales[-1] if cap is None else cap, power)
    assert roots is not None
    return roots


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("name", SCALES)
def test_a_weight_is_the_same_wherever_its_record_stands(power, name):
    """Bit for bit: alone, in any order, in slices of odd lengths and offsets, by rows or by columns, beside others."""
    scales, generator = SCALES[name], np.random.default_rng(1)
    columns, roots = table(1003, scales), weights(power, SCALES[name])
    theta = generator.normal(size=3) * scales[-1] / np.asarray(scales[:-1])
    expected = roots(columns[:-1], columns[-1], theta)
    assert len(np.unique(expected)) > 100
    order = generator.permutation(1003)
    shuffled = columns[:, order].copy()
    np.testing.assert_array_equal(roots(shuffled[:-1], shuffled[-1], theta), expected[order])
    for start, stop in [(0, 1), (1, 8), (3, 20), (5, 1002), (998, 1003), (7, 7)]:
        part = columns[:, start:stop]
        np.testing.assert_array_equal(roots(part[:-1], part[-1], theta), expected[start:stop])
    by_rows = np.asfortranarray(columns)
    np.testing.assert_array_equal(roots(by_rows[:-1], by_rows[-1], theta), expected)
    more = np.concatenate([columns, table(37, scales, 2)], axis=1)
    np.testing.assert_array_equal(roots(more[:-1], more[-1], theta)[:1003], expected)
    alone = [roots(columns[:-1, [k]], columns[-1, [k]], theta)[0] for k in range(0, 1003, 50)]
    np.testing.assert_array_equal(alone, expected[::50])


@pytest.mark.parametrize("power", POWERS)
def test_weights_are_those_of_the_formula(power):
    columns, roots = table(200, SCALES["one"]), weights(power, SCALES["one"], cap=5.0)
    theta = np.array([0.3, -0.2, 0.8])
    residuals = np.abs(columns[-1] - columns[:-1].T @ theta)
    expected = np.maximum(residuals, 0.2) ** (power - 2.0)
    np.testing.assert_allclose(roots(columns[:-1], columns[-1], theta) ** 2, expected, rtol=1e-12)
    assert roots.largest**2 == pytest.approx(5.0 ** (2.0 - power), rel=1e-14)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e155, 1e308])
def test_no_weight_is_above_the_cap_whatever_the_iterate(power, size):
    """Residuals may be infinite, or no numbers at all: x and θ are beyond float64 together."""
    columns, roots = table(300, SCALES["far"]), weights(power, SCALES["far"])
    for theta in (np.full(3, size), size * np.array([1.0, -1.0, 1.0]), size * np.array([1.0, 1.0, -1.0])):
        found = roots(columns[:-1], columns[-1], theta)
        assert np.all((found >= 0.0) & (found <= roots.largest))


def test_no_weight_is_above_the_cap_whatever_a_power_comes_to(monkeypatch):
    """C does not say that its pow falls where it ought to: here it is a little larger than where the cap was found."""
    roots, y = weights(1.5, SCALES["one"], cap=7.0), np.array([0.0, 1 / 7, 0.15, 2.0])
    larger = types.SimpleNamespace(pow=lambda base, exponent: math.pow(base, exponent) * (1.0 + 2.0**-50))
    monkeypatch.setattr(weighted_sums, "math", larger)
    found = roots(np.zeros((1, 4)), y, np.zeros(1))
    assert found[0] == found[1] == roots.largest > found[2]


def at(roots, theta):
    """The weights at this iterate, of some records."""
    return lambda part: roots(part[:-1], part[-1], theta)


def rows_by_scalars(columns, roots, rows, theta):
    """What one record becomes, in Python's arithmetic, a record at a time."""
    found = []
    for record in columns.T.tolist():
        residual = record[-1]
        for value, coefficient in zip(record, theta, strict=False):
            residual -= value * coefficient
        distance = max(roots.least, abs(residual))
        power = 1.0 / math.sqrt(distance) if roots.power == 0.5 else math.pow(distance, -roots.power)
        root = min(power, roots.largest)
        found.append(
            [round(Fraction(root * value) / Fraction(2) ** e) * Fraction(2) ** e
             for value, e in zip(record, rows.exponents, strict=True)]
        )  # fmt: skip
    return found


@pytest.mark.parametrize("power", [1.0, 1.5])
@pytest.mark.parametrize("name", SCALES)
def test_sums_over_rows_are_those_of_fractions(power, name):
    scales = SCALES[name]
    columns, roots = table(150, scales), weights(power, scales)
    rows = WeightedRows.of(roots.largest, scales)
    assert rows is not None
    theta = np.array([0.4, -0.7, 0.1]) * scales[-1] / np.asarray(scales[:-1])
    found = rows.gram(columns, at(roots, theta))
    table_of_rows = np.array(rows_by_scalars(columns, roots, rows, theta), object)
    assert np.all(found == table_of_rows.T @ table_of_rows)
    order = np.random.default_rng(3).permutation(150)
    mixed = columns[:, order].copy()
    assert np.all(rows.gram(mixed, at(roots, theta)) == found)


@pytest.mark.parametrize("power", [1.0, 1.5])
@pytest.mark.parametrize("name", SCALES)
def test_no_row_leaves_its_sizes_and_corners_reach_them(power, name):
    """Numbers next to the bounds, of which products round up, and at them."""
    scales = [np.nextafter(size, 0.0) for size in SCALES[name]]
    columns, roots = table(400, scales), weights(power, scales, cap=0.7 / scales[-1])
    rows = WeightedRows.of(roots.largest, scales)
    assert rows is not None
    for theta in (np.zeros(3), np.array([0.4, -0.7, 0.1]) * scales[-1] / np.asarray(scales[:-1])):
        for row in rows_by_scalars(columns, roots, rows, theta):
            assert all(abs(value) <= size for value, size in zip(row, rows.sizes, strict=True))
    corner = np.array(scales)[:, None]
    found = rows.gram(corner, lambda _: roots.largest)
    assert [found[j, j] for j in range(4)] == [size**2 for size in rows.sizes]
    for size, scale in zip(rows.sizes, scales, strict=True):
        assert float(size) == pytest.approx(roots.largest * scale, rel=2.0**-42)


def test_no_records_have_sums_of_0():
    roots = weights(1.0, SCALES["one"])
    rows = WeightedRows.of(roots.largest, SCALES["one"])
    assert rows is not None
    assert np.all(rows.gram(np.zeros((4, 0)), at(roots, np.zeros(3))) == 0)


@pytest.mark.parametrize("cap", [1e-320, 1e309])
def test_caps_beyond_float64_have_no_weights(cap):
    assert RootWeights.of(cap, 1.0) is None


def test_sizes_beyond_float64_have_no_rows():
    assert WeightedRows.of(1e200, [1e60]) is None
    assert WeightedRows.of(1e-200, [1e-60]) is None


def test_many_records_are_summed_in_chunks_of_any_length():
    """At the largest whole numbers, all of one sign, which reach most digits: against sums by Python."""
    scales = SCALES["one"]
    roots = weights(1.0, scales, cap=1.0)
    rows = WeightedRows.of(roots.largest, scales)
    assert rows is not None
    count = 2 * 8192 + 1001
    columns = np.ones((4, count))
    columns[1] = 1.0 - 2.0**-42
    found = rows.gram(columns, lambda _: roots.largest)
    size = [Fraction(1), 1 - Fraction(2) ** -42, Fraction(1), Fraction(1)]
    assert all(found[j, k] == count * size[j] * size[k] for j in range(4) for k in range(4))
    columns = table(count, scales, 5)
    wholes = np.rint(columns * 2.0**42).astype(object)
    expected = sum((int(one) * int(two) for one, two in zip(wholes[0], wholes[3], strict=True)), 0)
    assert rows.gram(columns, lambda _: roots.largest)[0, 3] == expected * Fraction(2) ** -84


def test_rows_of_a_hull_that_is_far_smaller_than_its_box_are_no_longer_than_said():
    """Numbers next to the middle of two grid numbers, all rounded up: by 2^-34 of themselves."""
    rows = WeightedRows.of(1.0, [1.0, 1.0, 1.0])
    assert rows is not None
    assert rows.exponents == (-42, -42, -42)
    record = np.full((2, 1), 2.0**-9 + 2.0**-43 + 2.0**-61)
    gram, square = rows.gram(np.vstack([record, [[1.0]]]), lambda _: 1.0), 2 * Fraction(float(record[0, 0])) ** 2
    length = gram[0, 0] + gram[1, 1]
    assert length > (1 + Fraction(2) ** -34) * square
    assert length <= rows.squared_length(1.0, square) < (1 + Fraction(2) ** -20) * square


@pytest.mark.default_cases("1.5")
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_rows_of_a_hull_are_no_longer_than_said(power):
    """Of records on a circle, whose products and roundings may lengthen them a little, in fractions."""
    scales = [0.3, 0.3, 0.3, 1.0]
    roots = weights(power, scales, cap=1.0 / 3.0)
    rows = WeightedRows.of(roots.largest, scales)
    assert rows is not None
    turns = np.random.default_rng(0).normal(size=(3, 300))
    columns = np.vstack([0.3 * turns / np.linalg.norm(turns, axis=0), np.ones(300)])
    lengths = [sum(Fraction(value) ** 2 for value in record[:3]) for record in columns.T.tolist()]
    wholes = rows._wholes(columns, roots.largest)
    units = [Fraction(2) ** e for e in rows.exponents]
    squares = [
        sum((int(whole) * unit) ** 2 for whole, unit in zip(record[:3], units, strict=False))
        for record in wholes.T.tolist()
    ]
    longer = [square / (Fraction(roots.largest) ** 2 * length) for square, length in zip(squares, lengths, strict=True)]
    assert max(longer) > 1
    for square, length in zip(squares, lengths, strict=True):
        assert square <= rows.squared_length(roots.largest, length)
    assert rows.squared_length(roots.largest, lengths[0]) < Fraction(roots.largest) ** 2 * lengths[0] * (1 + 2.0**-36)
    assert rows.squared_length(roots.largest, Fraction(100)) == sum(size**2 for size in rows.sizes[:3])
