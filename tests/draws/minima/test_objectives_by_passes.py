"""Objectives over passes: balls of sums contain what the exact sums are, and a search begins with few records."""

from fractions import Fraction

import numpy as np

from kngjax.data.records import Records
from kngjax.draws.minima.objectives_by_passes import _add_balls, _few

# Next to the end of what rounding to the nearest of 53 digits may be off by, on both sides; ties; cancelling; tiny.
PAIRS = [
    (1.0, 2.0**-53 * (1 + 2.0**-40)),
    (1.0, 2.0**-53 * (1 - 2.0**-40)),
    (1.0, 2.0**-53),
    (-1.0, 2.0**-54 * (1 + 2.0**-40)),
    (1e16, -1e16 + 2.0),
    (2.0**-1074, 2.0**-1074),
    (1e300, 7.0),
]


def test_a_sum_of_two_balls_contains_every_sum_of_their_points():
    generator = np.random.default_rng(0)
    pairs = [*PAIRS, *(generator.normal(size=(2000, 2)) * 2.0 ** generator.integers(-60, 60, (2000, 2))).tolist()]
    for first, second in pairs:
        radii = generator.choice([0.0, abs(first) * 2.0**-52, 1.0], 2)
        balls = [(np.array([one]), np.array([radius])) for one, radius in zip((first, second), radii, strict=True)]
        (middle,), (radius,) = _add_balls(*balls)
        for sign in (-1, 1):
            end = Fraction(first) + Fraction(second) + sign * sum(map(Fraction, radii.tolist()), Fraction(0))
            assert abs(end - Fraction(float(middle))) <= Fraction(float(radius)), (first, second)


def test_bounds_of_sums_are_no_wider_than_a_few_roundings():
    balls = np.ones(1), np.zeros(1)
    for _ in range(10):
        balls = _add_balls(balls, balls)
    assert balls[0] == 1024.0
    assert balls[1] <= 11 * 2.0**-53 * 1024.0


def test_few_records_of_a_batch_do_not_keep_it_in_memory():
    x, y = np.arange(3000.0).reshape(1000, 3), np.arange(1000.0)
    count, rows, ((few_x, few_y, none),) = _few(Records(x, y, 20))
    assert (count, rows) == (20, 1000), "persons, and rows"
    assert none is None
    np.testing.assert_array_equal(few_x, x[::15])
    np.testing.assert_array_equal(few_y, y[::15])
    assert few_x.base is None
    assert few_y.base is None
