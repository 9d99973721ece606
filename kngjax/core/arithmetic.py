"""The arithmetic that proofs of releases rest on, tried in this very process before a release is made.

What `kngjax` proves of rounding supposes that +, -, ·, / and √ of float64 give the number nearest to the exact one,
ties to even, numbers below 2^-1022 included, and that sums of products of whole numbers below 2^53 are exact whatever
their order. A library that was compiled for speed may have told the processor, for a whole thread, to take numbers
below 2^-1022 for 0; others change the direction of rounding. Compilers may keep more digits in between. What is
computed here in NumPy is compared with whole numbers of Python. NumPy multiplies and adds one after the other, so a
processor that rounds a product and a sum together does so in matrix products alone, where nothing is rounded.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb, fmpq, fmpz

from kngjax.core.balls import precision

# Odd, so that arrays have a part that fills a processor's registers and a rest that does not.
_PAIRS = 251
_OPERATIONS: dict[str, Callable] = {
    "addition": np.add,
    "subtraction": np.subtract,
    "multiplication": np.multiply,
    "division": np.divide,
}
_ROWS, _COLUMNS = 512, 5


def broken() -> list[str]:
    """What this process computes otherwise than proofs suppose; empty where nothing is known to."""
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
    x, y, expected = _cases()
    found = [
        f"{name} of float64"
        for name, operation in _OPERATIONS.items()
        if operation(x, y).tobytes() != expected[name].tobytes()
    ]
    positive = np.abs(x)
    if np.sqrt(positive).tobytes() != expected["root"].tobytes():
        found.append("square roots of float64")
    # One by one, as Python computes.
    if any(one * two != product for one, two, product in zip(*expected["scalars"], strict=True)):
        found.append("multiplication of Python's floats")
    left, right, products = _matrices()
    if not np.array_equal(left.T @ right, products):
        found.append("matrix products of whole numbers")
    if not _balls_are_right():
        found.append("balls of FLINT")
    return found


@functools.cache
def _cases() -> tuple[np.ndarray, np.ndarray, dict]:
    """Pairs of numbers with what each operation gives: of many sizes, subnormal, ties, and next to ties."""
    ties = [
        # Halfway between two floats, and beyond it by less than a processor's longer registers tell.
        (1.0, 2.0**-53),
        (1.0 + 2.0**-52, 2.0**-53),
        (1.0, 2.0**-53 + 2.0**-105),
        (-1.0, -(2.0**-53) - 2.0**-105),
        (1.0 + 2.0**-30, 1.0 + 2.0**-23),
        (1.0 + 2.0**-30, 1.0 - 2.0**-31),
        # Results below 2^-1022, and arguments there.
        (2.0**-1022, 2.0**-1074),
        (2.0**-1022, 0.5),
        (3.0 * 2.0**-1074, 0.5),
        (2.0**-1060, 1.5),
        (-(2.0**-1030), 3.0),
        (2.0**-540, 1.1 * 2.0**-500),
    ]
    state, numbers = 1, []
    for _ in range(2 * (_PAIRS - len(ties))):
        # Knuth's 64-bit linear congruences: any fixed numbers with all their digits would do.
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        exponent = (state >> 5) % 7 - 3
        numbers.append(math.ldexp((1 - 2 * (state & 1)) * (2**52 + (state >> 12)), exponent - 52))
    pairs = [*ties, *zip(numbers[::2], numbers[1::2], strict=True)]
    exact = [(Fraction(one), Fraction(two)) for one, two in pairs]
    results: dict[str, list[float]] = {
        "addition": [_nearest(one + two) for one, two in exact],
        "subtraction": [_nearest(one - two) for one, two in exact],
        "multiplication": [_nearest(one * two) for one, two in exact],
        "division": [_nearest(one / two) for one, two in exact],
        "root": [_nearest_root(abs(one)) for one, _ in exact],
    }
    x, y = (np.array(side) for side in zip(*pairs, strict=True))
    expected: dict = {name: np.array(values) for name, values in results.items()}
    expected["scalars"] = (x.tolist()[:20], y.tolist()[:20], results["multiplication"][:20])
    return x, y, expected


def _nearest(number: Fraction) -> float:
    """CPython divides whole numbers by whole numbers: the direction of rounding that a processor has does not enter."""
    return number.numerator / number.denominator if number else 0.0


def _nearest_root(number: Fraction) -> float:
    """√ by whole numbers: to 200 binary digits, of which it is known whether more follow."""
    shift = 2 * (600 + 54)
    scaled = number * 2**shift
    root = math.isqrt(scaled.numerator // scaled.denominator)
    return _nearest(Fraction(2 * root + (root * root != scaled), 2) / 2 ** (shift // 2))


@functools.cache
def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices of whole numbers up to 2^21, whose products add up to a quarter of 2^53, and these sums."""
    x, y, _ = _cases()
    whole = np.rint(np.resize(np.concatenate([x, y]), _ROWS * _COLUMNS) * 2.0**60) % (2.0**21 + 1.0)
    left = 2.0**21 - whole.reshape(_ROWS, _COLUMNS) % 1000.0
    right = 2.0**21 - whole[::-1].reshape(_ROWS, _COLUMNS) % 999.0
    exact = left.astype(object).T @ right.astype(object)
    return left, right, exact.astype(np.float64)


def _balls_are_right() -> bool:
    large = 3**200 + 1
    with precision(100):
        third, root = arb(fmpq(1, 3)), arb(2).sqrt()
        return (
            int(fmpz(large) * fmpz(large)) == large * large
            and bool((3 * third).contains(1))
            and bool((root * root).contains(2))
            and bool((arb(5).log().exp()).contains(5))
            and bool(root.rad() < arb(2) ** -90)
            and bool(arb(2).sqrt() > arb(fmpq(14142135623730950488016887, 10**25)))
            and bool(arb(2).sqrt() < arb(fmpq(14142135623730950488016888, 10**25)))
        )
