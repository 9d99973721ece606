"""Uniform numbers that are known to as many binary digits as are asked for, and decisions that take no more."""

import bisect
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


def chosen(sums: Callable[[int], list[arb]], bits: Bits) -> int:
    """Returns k with probability in proportion to the k-th mass, as real arithmetic chooses.

    **Arguments:** `sums`: the cumulated masses, in balls of at least so many digits.
    """
    share = Uniform(bits)

    def attempt(digits: int) -> int | None:
        cumulated = sums(digits)
        place = share.ball(digits) * cumulated[-1]
        # The first that is not certainly below; the sum of all is never reached.
        found = bisect.bisect_left(cumulated[:-1], True, key=lambda one: not one <= place)
        return found if found == len(cumulated) - 1 or place < cumulated[found] else None

    return decided(attempt)
