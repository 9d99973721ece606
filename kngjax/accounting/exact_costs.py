"""Privacy costs as exact fractions, and the floats that bound them from outside. Imports no JAX.

Costs add up, and 0.1 + 0.1 + 0.1 exceeds 0.3 in binary. So a float here means the decimal number that Python prints for
it, the shortest one that reads back as the same float: 0.1 is 1/10. That is what its writer meant, and it differs from
the binary value by less than half a unit in the last place, as every number does that a mechanism computes in float64.
"""

import math
from decimal import Decimal
from fractions import Fraction

Number = int | float | str | Decimal | Fraction

# Binary digits of a square root.
_ROOT_BITS = 64


def exactly(value: Number, name: str = "the number") -> Fraction:
    """The number that was written: of a str, Decimal, int or Fraction itself, of a float the decimal that it prints as.

    Raises TypeError or ValueError naming it if it is no finite number.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, int | str | Decimal | Fraction):
            return Fraction(value)
        return Fraction(repr(float(value)))
    except TypeError:
        raise TypeError(f"{name} must be a number or its decimal digits, got {type(value).__name__}") from None
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"{name} must be a finite number, got {value!r}") from None


def outward(value: Fraction) -> float:
    """The smallest float that means (see `exactly`) at least this number ≥ 0: a cost that is rounded never shrinks."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(repr(nearest)) >= value else math.nextafter(nearest, math.inf)


def inward(value: Fraction) -> float:
    """The largest float that means at most this number ≥ 0: an allowance that is rounded never grows."""
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) <= value else math.nextafter(nearest, 0.0)


def root_outward(value: Fraction) -> float:
    """The smallest float that means at least √value."""
    root = math.sqrt(outward(value))
    while Fraction(repr(root)) ** 2 < value:
        root = math.nextafter(root, math.inf)
    while root > 0.0 and Fraction(repr(below := math.nextafter(root, 0.0))) ** 2 >= value:
        root = below
    return root


def root_upward(value: Fraction) -> Fraction:
    """Bounds √value from above, by a relative excess below 2^-63."""
    if value == 0:
        return value
    # So that value·4^shift has 128 binary digits before the point.
    shift = max(0, _ROOT_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    whole = math.ceil(value * 4**shift)
    return Fraction(math.isqrt(whole - 1) + 1, 2**shift)


def with_both_orders(epsilon: Fraction, delta: Fraction) -> Fraction:
    """(1 + e^ε)δ, rounded outward: δ on one side and e^ε of it on the other; at least 1 where e^ε is beyond float64."""
    if delta > 0 and epsilon > 700:
        return Fraction(1)
    return delta * (1 + exactly(math.exp(min(outward(epsilon), 701.0)) * (1.0 + 1e-14)))
