"""Tries in this process, before and after each release, the arithmetic that proofs of releases rest on.

What `kngjax` proves of rounding supposes that +, -, ·, / and √ of float64 give the number nearest to the exact one,
ties to even, numbers below 2^-1022 and signs of 0 included, and that sums of products of whole numbers below 2^53 are
exact whatever their order. A library that was compiled for speed may have told the processor, for a whole thread, to
take numbers below 2^-1022 for 0; others change the direction of rounding. Compilers may keep more digits in between.

What NumPy and Python compute is compared bit by bit with what whole numbers of Python tell, which no setting of the
processor changes: a comparison of numbers would take -0 for 0, and where numbers below 2^-1022 count as 0, those too.
NumPy multiplies and adds one after the other, so a processor that rounds a product and a sum together does so in matrix
products alone, where nothing is rounded.
"""

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq, fmpz
from jaxtyping import Float

from kngjax.core.balls import power_of_two, precision

# Odd, so that arrays have a part that fills a processor's registers and a rest that does not.
_PAIRS = 251
_OF_REALS: dict[str, Callable] = {
    "addition": operator.add,
    "subtraction": operator.sub,
    "multiplication": operator.mul,
    "division": operator.truediv,
}
# The same operators serve arrays and single numbers.
_BY_NUMPY: dict[str, Callable] = _OF_REALS | {"square roots": np.sqrt}
_BY_PYTHON: dict[str, Callable] = _OF_REALS | {"square roots": math.sqrt}
_ROWS, _COLUMNS = 512, 5
_SIGN, _LAST_PLACE = 2**63, -1074


def broken() -> list[str]:
    """Lists the operations that this process computes otherwise than proofs suppose; empty where no fault is found."""
    with np.errstate(all="ignore"):
        return _found()


def require_right() -> None:
    """Raises RuntimeError unless `broken` finds nothing."""
    if found := broken():
        raise RuntimeError(
            f"nothing is released, and nothing is spent: in this process these are not computed as IEEE 754 says, "
            f"and proofs rest on them: {', '.join(found)}. A library that was compiled with -ffast-math or -Ofast, or "
            "that sets the direction of rounding, is the usual cause: start a process without it"
        )


def _found() -> list[str]:
    found = []
    for name, (arguments, expected) in _cases().items():
        if not _in_numpy_they_are(_BY_NUMPY[name], arguments, expected):
            found.append(f"{name} of float64")
        few = (one[:_PAIRS] for one in arguments)
        if not _are(_in_python(_BY_PYTHON[name], *few), expected[:_PAIRS]):
            found.append(f"{name} of Python's floats")
    if not _fractions_are_right():
        found.append("fractions of Python's floats")
    left, right, products = _matrices()
    if not _are(left.T @ right, products):
        found.append("matrix products of whole numbers")
    if not _balls_are_right():
        found.append("balls of FLINT")
    return found


def _are(values: np.ndarray, expected: np.ndarray) -> bool:
    """Whether these are the very bits, whatever numbers they are, or none."""
    return values.dtype == expected.dtype and values.tobytes() == expected.tobytes()


def _in_numpy_they_are(operation: Callable, arguments: tuple[np.ndarray, ...], expected: np.ndarray) -> bool:
    """Whether NumPy computes what is right: of whole arrays, of every other number of one, and of one at a time."""
    return all(_are(np.asarray(operation(*(one[at] for one in arguments))), expected[at]) for at in _places())


@functools.cache
def _places() -> list[slice]:
    """Each special pair is once among the last three, which do not fill a processor's registers."""
    number, rest = len(_special()), _PAIRS % 4
    whole = [slice(start, start + _PAIRS) for start in range(0, number + rest, rest)]
    return [*whole, slice(None, None, 2), *(slice(k, k + 1) for k in range(number))]


def _in_python(operation: Callable, *arguments: np.ndarray) -> np.ndarray:
    """Applies an operation of Python number by number.

    The result is empty where Python refuses, as for a divisor below 2^-1022 that counts as 0.
    """
    with contextlib.suppress(ArithmeticError, ValueError):
        return np.array(list(map(operation, *(one.tolist() for one in arguments))))
    return np.array([])


class _Case(NamedTuple):
    """Numbers that are operated on, and the numbers nearest to what real arithmetic gives."""

    arguments: tuple[Float[np.ndarray, " number"], ...]
    expected: Float[np.ndarray, " number"]


@functools.cache
def _cases() -> dict[str, _Case]:
    """Pairs of numbers with what each operation gives: of many sizes, subnormal, ties, next to ties, and zeros.

    Special ones come first. All come twice: an odd number of them, so that every other one of these is each one once.
    """
    pairs = 2 * [*_special(), *_ordinary(_PAIRS - len(_special()))]
    found = {}
    for name, operation in _OF_REALS.items():
        # Nothing is divided by 0, since a quotient by 0 is no number.
        chosen = [(one, two if name != "division" or _number_of(two) else _nearest(Fraction(3))) for one, two in pairs]
        results = [
            _nearest(operation(_number_of(one), _number_of(two)), _sign_of_zero(name, one, two)) for one, two in chosen
        ]
        found[name] = _Case(tuple(map(_floats, zip(*chosen, strict=True))), _floats(results))
    sizes = [one % _SIGN for one, _ in pairs]
    return found | {"square roots": _Case((_floats(sizes),), _floats(map(_nearest_root, sizes)))}


@functools.cache
def _special() -> list[tuple[int, int]]:
    """Bits of pairs: halfway between two floats and next to it, below 2^-1022, and zeros of both signs."""
    power, one, smallest = power_of_two, Fraction(1), power_of_two(_LAST_PLACE)
    numbers = [
        # Halfway between two floats, and beyond it by less than a processor's longer registers tell.
        (one, power(-53)),
        (one + power(-52), power(-53)),
        (one, power(-53) + power(-105)),
        (-one, -power(-53) - power(-105)),
        (one + power(-30), one + power(-23)),
        (one + power(-30), one - power(-31)),
        # Results below 2^-1022, and arguments there.
        (power(-1022), smallest),
        (power(-1022), power(-1)),
        (3 * smallest, power(-1)),
        (-smallest, power(-1)),
        (power(-1060), 3 * power(-1)),
        (-power(-1030), 3 * one),
        (power(-540), Fraction(11, 10) * power(-500)),
        (power(-1060), smallest),
        (-power(-1022), power(-1023)),
        # Sums that cancel.
        (one, one),
        (one, -one),
        (-smallest, smallest),
    ]
    zeros = [(one, two) for one in (0, _SIGN) for two in (0, _SIGN)]
    return [*((_nearest(one), _nearest(two)) for one, two in numbers), *zeros, (_SIGN, _nearest(one))]


def _ordinary(number: int) -> list[tuple[int, int]]:
    """Bits of pairs of numbers from 1/8 to 16, by Knuth's 64-bit linear congruences: any with all digits would do."""
    state, found = 1, []
    for _ in range(2 * number):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        exponent = (state >> 5) % 7 - 3
        found.append(_nearest((1 - 2 * (state & 1)) * (2**52 + (state >> 12)) * power_of_two(exponent - 52)))
    return list(zip(found[::2], found[1::2], strict=True))


def _number_of(bits: int) -> Fraction:
    """The number that has these bits in float64."""
    exponent, digits = (bits % _SIGN) >> 52, bits % 2**52
    size = (digits + 2**52 * (exponent > 0)) * power_of_two(max(exponent, 1) - 1 + _LAST_PLACE)
    return -size if bits >= _SIGN else size


def _nearest(number: Fraction, zero: int = 0) -> int:
    """The bits of the float64 number nearest to a fraction, by whole numbers alone. **Arguments:** `zero`: those of 0.

    Ties go to the even number.

    With the exponent as the first digits, a number that is rounded up to a power of two has the right bits by itself.
    """
    if number == 0:
        return zero
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < power_of_two(exponent)
    last = max(exponent - 52, _LAST_PLACE)
    return (last - _LAST_PLACE) * 2**52 + round(size / power_of_two(last)) + _SIGN * (number < 0)


def _sign_of_zero(name: str, one: int, two: int) -> int:
    """The bits of a result that is 0 exactly: of sums and differences it is -0 where both that are added are."""
    first, second = one >= _SIGN, two >= _SIGN
    if name in ("multiplication", "division"):
        return _SIGN * (first != second)
    both = _number_of(one) == _number_of(two) == 0
    return _SIGN * (both and first and second == (name == "addition"))


def _nearest_root(bits: int) -> int:
    """√ by whole numbers: to more than 100 binary digits, of which it is known whether more follow."""
    shift = 2 * (600 + 54)
    scaled = int(_number_of(bits) * 2**shift)
    root = math.isqrt(scaled)
    return _nearest(Fraction(2 * root + (root * root != scaled), 2) / 2 ** (shift // 2))


def _floats(bits: Iterable[int]) -> Float[np.ndarray, " number"]:
    return np.array(list(bits), np.uint64).view(np.float64)


@functools.cache
def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices of whole numbers up to 2^21, whose products add up to a quarter of 2^53, and these sums."""
    numbers = [bits % 2**52 for pair in _ordinary(_PAIRS) for bits in pair]
    left, right = (
        np.array([2**21 - numbers[k % len(numbers)] % most for k in order], object).reshape(_ROWS, _COLUMNS)
        for order, most in ((range(_ROWS * _COLUMNS), 1000), (reversed(range(_ROWS * _COLUMNS)), 999))
    )
    return left.astype(np.float64), right.astype(np.float64), (left.T @ right).astype(np.float64)


def _fractions_are_right() -> bool:
    """Whether floats are the fractions that Python takes them for, and fractions the floats."""
    floats, fractions = _fractions()
    there = [Fraction(one) for one in floats.tolist()]
    return there == fractions and _are(_in_python(float, np.array(fractions, object)), floats)


@functools.cache
def _fractions() -> tuple[np.ndarray, list[Fraction]]:
    few = [bits for pair in _special() for bits in pair if bits != _SIGN]
    return _floats(few), [_number_of(bits) for bits in few]


def _balls_are_right() -> bool:
    large = 3**200 + 1
    with precision(100):
        third, root = arb(fmpq(1, 3)), arb(2).sqrt()
        return (
            int(fmpz(large) * fmpz(large)) == large * large
            and arb(_floats([1]).item()) * arb(2) ** -_LAST_PLACE == 1
            and bool((3 * third).contains(1))
            and bool((root * root).contains(2))
            and bool((arb(5).log().exp()).contains(5))
            and bool(root.rad() < arb(2) ** -90)
            and bool(arb(2).sqrt() > arb(fmpq(14142135623730950488016887, 10**25)))
            and bool(arb(2).sqrt() < arb(fmpq(14142135623730950488016888, 10**25)))
        )
