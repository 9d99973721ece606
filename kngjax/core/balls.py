"""Makes balls of FLINT, which contain what real arithmetic gives.

They do so at every precision. But FLINT has one precision for all threads, and a thread that sets its own changes what
another one computes meanwhile: how wide its balls are, and so how many random bits it asks for. So the precision is set
in one place, here, by one thread at a time.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from flint import arb, ctx, fmpq

_FIRST_DIGITS, _MOST_DIGITS = 64, 2048
# The precision that FLINT starts with.
DEFAULT_DIGITS = 53
_LOCK = threading.RLock()


@contextlib.contextmanager
def precision(digits: int) -> Iterator[None]:
    """Sets the binary digits of balls within a context, for one thread at a time: others that ask for digits wait.

    Contexts may stand within each other. Afterwards the precision is what it was, whatever was raised. Nothing that
    waits for another thread may stand within, nor a `yield`.
    """
    with _LOCK, ctx.workprec(digits):
        yield


def power_of_two(exponent: int) -> Fraction:
    """Computes 2^e."""
    return Fraction(2) ** exponent


def ball_of(number: Fraction | int) -> arb:
    """Makes a ball that contains a rational number, at the precision that is set."""
    return arb(fmpq(number.numerator, number.denominator))


def square(ball: arb) -> arb:
    """Multiplies a ball by itself: flint's power is no number where the middle is exactly 0 and the radius is not."""
    return ball * ball


def largest(numbers: Sequence[arb]) -> arb:
    """Computes the maximum of several balls."""
    found = numbers[0]
    for other in numbers[1:]:
        found = found.max(other)
    return found


def upper_end(ball: arb) -> Fraction:
    """Gives a number that nothing in the ball exceeds, at the precision that is set."""
    digits, exponent = ball.upper().man_exp()
    return int(digits) * power_of_two(int(exponent))


def lower_end(ball: arb) -> Fraction:
    """Gives a number that nothing in the ball falls short of, at the precision that is set."""
    return -upper_end(-ball)


def are_at_most_0(numbers: Callable[[], Sequence[arb]]) -> bool:
    """Says whether all that this computes of public numbers, at whatever precision, is certain to be at most 0.

    What is so by less than 2048 digits tell counts as not certain. Of private numbers a limit would be an output.
    """
    digits = _FIRST_DIGITS
    while digits <= _MOST_DIGITS:
        with precision(digits):
            found = numbers()
            if all(number <= 0 for number in found):
                return True
            if any(number > 0 for number in found):
                return False
        digits *= 2
    return False
