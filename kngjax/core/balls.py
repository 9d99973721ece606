"""Balls of FLINT, which contain what real arithmetic gives, and what they are made of."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb, ctx, fmpq

_FIRST_DIGITS, _MOST_DIGITS = 64, 2048


def power_of_two(exponent: int) -> Fraction:
    """2^e."""
    return Fraction(2) ** exponent


def ball_of(number: Fraction | int) -> arb:
    """A ball that contains it, at the precision that is set."""
    return arb(fmpq(number.numerator, number.denominator))


def upper_end(ball: arb) -> Fraction:
    """A number that nothing in the ball exceeds, by less than the precision that is set tells apart."""
    digits, exponent = ball.upper().man_exp()
    return int(digits) * power_of_two(int(exponent))


def lower_end(ball: arb) -> Fraction:
    """A number that nothing in the ball falls short of, by less than the precision that is set tells apart."""
    return -upper_end(-ball)


def are_at_most_0(numbers: Callable[[], Sequence[arb]]) -> bool:
    """Whether all that this computes, at whatever precision is set, is at most 0 for certain. Of public numbers.

    What is so by less than 2048 digits tell counts as not certain. Of private numbers a limit would be an output.
    """
    digits = _FIRST_DIGITS
    while digits <= _MOST_DIGITS:
        with ctx.workprec(digits):
            found = numbers()
            if all(number <= 0 for number in found):
                return True
            if any(number > 0 for number in found):
                return False
        digits *= 2
    return False
