"""The smallest eigenvalue of a matrix of fractions, rounded as real arithmetic would round it.

It is no fraction itself. But λ_min ≥ t is the same as A - tI being positive semidefinite, which elimination tells
without error: so the multiple of r that is nearest to λ_min is found by asking for numbers t halfway between two.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from kngjax.core.balls import ball_of, precision
from kngjax.data.exact_sums import Exact, nearest

# Digits of balls, tried one after the other; then come fractions, which are slow and leave nothing open.
_DIGITS = (128, 512, 2048)


def nearest_multiple(matrix: Exact, step: Fraction) -> int:
    """⌊λ_min/r + ½⌋ of a symmetric matrix A: the largest k for which A - (k - ½)rI is positive semidefinite.

    **Arguments:** `matrix`: A, of whole numbers and fractions, shape (d, d). Private. `step`: r.
    """
    guess = _guess(matrix) / step
    return _last(lambda number: is_positive_semidefinite(matrix, (number - Fraction(1, 2)) * step), round(guess))


def is_positive_semidefinite(matrix: Exact, shift: Fraction) -> bool:
    """Tells whether A - tI is positive semidefinite, for a symmetric A. **Arguments:** `matrix`: A. `shift`: t."""
    rows = [[Fraction(entry) - (shift if i == j else 0) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]
    for digits in _DIGITS:
        with precision(digits):
            found = _by_elimination([[ball_of(entry) for entry in row] for row in rows])
        if found is not None:
            return found
    found = _by_elimination([[fmpq(entry.numerator, entry.denominator) for entry in row] for row in rows])
    assert found is not None
    return found


def _by_elimination(rows: list[list[Any]]) -> bool | None:
    """Whether a symmetric matrix, which is changed, is positive semidefinite; None where balls leave it open.

    It is where its first entry is positive and what elimination leaves of the rest is so; or where its first row is 0
    and the rest is so. Else it is not.
    """
    for first, row in enumerate(rows):
        pivot, rest = row[first], row[first + 1 :]
        if pivot < 0:
            return False
        if pivot == 0:
            if any(entry != 0 for entry in rest):
                return False
            if all(entry == 0 for entry in rest):
                continue
        if not pivot > 0:
            return None
        for place in range(first + 1, len(rows)):
            factor, other = row[place] / pivot, rows[place]
            for column in range(place, len(rows)):
                other[column] -= factor * row[column]
    return True


def _guess(matrix: Exact) -> Fraction:
    """Approximates λ_min: how near it is changes how long the search takes, and nothing else."""
    try:
        return Fraction(float(np.linalg.eigvalsh(nearest(matrix))[0]))
    except (np.linalg.LinAlgError, ValueError, OverflowError):
        return Fraction(0)


def _last(holds: Callable[[int], bool], start: int) -> int:
    """The largest k at which it holds, if it holds at all smaller ones and at no larger ones."""
    step = 1
    if holds(start):
        low, high = start, start + step
        while holds(high):
            step *= 2
            low, high = high, high + step
    else:
        low, high = start - step, start
        while not holds(low):
            step *= 2
            low, high = low - step, low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
