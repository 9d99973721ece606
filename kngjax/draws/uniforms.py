"""Uniform numbers that are known to as many binary digits as are asked for, and decisions that take no more."""

import math
from collections.abc import Callable
from typing import TypeVar

from flint import arb, fmpz

from kngjax.core.balls import precision

T = TypeVar("T")
Bits = Callable[[int], int]  # `secrets.randbits`: so many independent fair bits, as one number

_FIRST_DIGITS = 64
# Beyond the digits of the uniform numbers, so that balls are about as wide as those.
GUARD_DIGITS = 64


class Uniform:
    """A number U, uniform on [0, 1]: its binary digits are drawn as they are asked for, and stay what they are.

    **Arguments:** `bits`: where they come from. `number`, `digits`: the first digits, where they are drawn already.
    """

    def __init__(self, bits: Bits, number: int = 0, digits: int = 0):
        self._bits, self._number, self._digits = bits, number, digits

    def ball(self, digits: int) -> arb:
        """Returns a ball that contains U, about 2^-digits wide or less, at the precision that is set."""
        if (more := digits - self._digits) > 0:
            self._number, self._digits = (self._number << more) | self._bits(more), digits
        return (arb(fmpz(self._number)) + arb(0.5, 0.5)) / arb(2) ** self._digits

    def near(self) -> float:
        """Returns a float64 number at most 2^-52 from U, from 64 digits: 2^-64, and a rounding of at most 2^-53."""
        if (more := _FIRST_DIGITS - self._digits) > 0:
            self._number, self._digits = (self._number << more) | self._bits(more), _FIRST_DIGITS
        return math.ldexp(float(self._number >> (self._digits - _FIRST_DIGITS)), -_FIRST_DIGITS)


def decided(attempt: Callable[[int], T | None]) -> T:
    """Tries `attempt` with 64 digits of every uniform number, then 128, and so on, until it finds something.

    Whatever it finds is what real arithmetic finds with all digits (`docs/proofs/balls.md`). There is no limit, since a
    limit would make failure depend on the data.
    """
    digits = _FIRST_DIGITS
    while True:
        with precision(digits + GUARD_DIGITS):
            found = attempt(digits)
        if found is not None:
            return found
        digits *= 2
