"""Ends of balls as fractions, which leave nothing of a ball out, and what balls leave open."""

from fractions import Fraction

import pytest
from flint import arb, ctx

from kngjax.core.balls import are_at_most_0, ball_of, lower_end, power_of_two, square, upper_end


@pytest.mark.parametrize("digits", [10, 53, 128])
@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(-7, 11), Fraction(10**30, 7), Fraction(-3, 10**30)])
def test_ends_are_beyond_what_is_in_the_ball_and_hardly_farther(number, digits):
    with ctx.workprec(digits):
        ball = ball_of(number)
        low, high = lower_end(ball), upper_end(ball)
    assert low < number < high
    assert high - low < 8 * power_of_two(-digits) * abs(number)


def test_ends_of_exact_and_of_wide_balls():
    assert lower_end(arb(5)) == upper_end(arb(5)) == 5
    assert lower_end(arb(0)) == upper_end(arb(0)) == 0
    with ctx.workprec(40):
        low, high = lower_end(arb(1, 0.3)), upper_end(arb(1, 0.3))
    assert low <= 1 - Fraction(0.3) < 1 + Fraction(0.3) <= high
    assert high - low < Fraction(0.6) + power_of_two(-20)


@pytest.mark.parametrize("exponent", [-2000, -1, 0, 3, 2000])
def test_powers_of_two_are_exact(exponent):
    assert power_of_two(exponent) * 2 ** max(-exponent, 0) == 2 ** max(exponent, 0)


def test_what_balls_leave_open_is_not_certain():
    """√2·√2 - 2 is 0, and no ball says so; 10⁻¹⁰⁰ less is known to be less, with more digits."""
    less, zero, more = (lambda end=end: arb(2).sqrt() ** 2 - 2 + end * arb(10) ** -100 for end in (-1, 0, 1))
    assert are_at_most_0(lambda: [less(), less()])
    assert not are_at_most_0(lambda: [zero()])
    assert not are_at_most_0(lambda: [more()])
    assert not are_at_most_0(lambda: [zero(), less()])
    assert not are_at_most_0(lambda: [arb("nan")])


@pytest.mark.parametrize("middle", [0.0, -0.0, 1e-300, -0.5])
def test_the_square_of_a_ball_about_0_is_a_number(middle):
    """Powers of python-flint are none there, by which a search went on for ever."""
    assert square(arb(middle, 1e-13)).is_finite()
    assert square(arb(middle, 1e-13)).contains(arb(middle) * arb(middle))
