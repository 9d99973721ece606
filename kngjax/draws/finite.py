"""Exact draws from finite laws with probabilities ∝ count·exp(-rate·level): ball arithmetic, and bits as needed."""

import bisect
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from flint import arb, fmpz

from kngjax.core.balls import ball_of, precision
from kngjax.draws.uniforms import Bits

_FIRST_BITS = 128
# How far beyond the bits of the uniform number balls are computed, and levels are summed one by one.
_GUARD_BITS = 64


def below(number: int, bits: Bits) -> int:
    """Returns a uniform number of 0, ..., number - 1, by rejection."""
    width = (number - 1).bit_length()
    while True:
        drawn = bits(width) if width else 0
        if drawn < number:
            return drawn


def happens(log_odds: Fraction, bits: Bits) -> bool:
    """Returns True with probability exp(-x), for x ≥ 0 exactly.

    A uniform number is known to ever more bits until it lies certainly on one side of exp(-x), which is irrational for
    rational x > 0 (Lindemann), so that this ends with probability 1.
    """
    if log_odds == 0:
        return True
    uniform, num_bits = 0, 0
    while True:
        uniform, num_bits = (uniform << _FIRST_BITS) | bits(_FIRST_BITS), num_bits + _FIRST_BITS
        with precision(num_bits + _GUARD_BITS):
            probability = ball_of(-log_odds).exp() * arb(2) ** num_bits
            if arb(fmpz(uniform + 1)) <= probability:
                return True
            if arb(fmpz(uniform)) >= probability:
                return False


class LevelLaw:
    """P(j) = counts_j·exp(-rate·levels_j)/Z, drawn without rounding.

    A uniform number of [0, Z] is known to 128 bits, then 256, and so on, and Z and the cumulated masses as balls that
    contain them, until it lies certainly between two of them.

    **Arguments:** `levels`: increasing whole numbers. `counts`: positive whole numbers. `rate`: nonnegative.
    """

    def __init__(self, levels: Sequence[int], counts: Sequence[int], rate: Fraction):
        self._levels, self._counts, self._rate = list(levels), list(counts), rate
        # What is left when the first j levels are taken.
        self._left = [0] * (len(self._counts) + 1)
        for index in range(len(self._counts) - 1, -1, -1):
            self._left[index] = self._left[index + 1] + self._counts[index]
        self._cumulated = cache(self._masses)

    def draw(self, bits: Bits) -> int:
        """Draws j."""
        uniform, num_bits = 0, 0
        while True:
            uniform, num_bits = (uniform << _FIRST_BITS) | bits(_FIRST_BITS), num_bits + _FIRST_BITS
            with precision(num_bits + _GUARD_BITS):
                masses, total = self._cumulated(num_bits)
                lower = total * arb(fmpz(uniform)) / arb(2) ** num_bits
                upper = total * arb(fmpz(uniform + 1)) / arb(2) ** num_bits
                # The first whose cumulated mass is certainly above the number, if the one before is certainly not.
                index = bisect.bisect_left(range(len(masses)), True, key=lambda index: bool(masses[index] >= upper))
                if index < len(masses) and (index == 0 or masses[index - 1] <= lower):
                    return index

    def _masses(self, num_bits: int) -> tuple[list[arb], arb]:
        """Σ_{i ≤ j} relative to the first level, for all j before a negligible rest, and Z with the rest as a ball."""
        smallest = arb(2) ** -(num_bits + _GUARD_BITS // 2)
        masses, total = [], arb(0)
        for index, (level, count) in enumerate(zip(self._levels, self._counts, strict=True)):
            factor = ball_of(-self._rate * (level - self._levels[0])).exp()
            rest = factor * self._left[index]
            if index and rest <= smallest:
                return masses, total + rest.union(arb(0))
            total += factor * count
            masses.append(total)
        return masses, total
