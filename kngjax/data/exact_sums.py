"""Sums over records that are exact: the same in any order and any division into parts, and rounded once at the end.

A sum of n float64 numbers one after another may err by n units of the last place of the total, and records can be
arranged so that one of them changes the computed sum by several times its own value (Casacuberta et al. 2022): no
sensitivity is proved of such sums. It is proved of the exact sum, and, up to one unit of the last place, of the exact
sum rounded once.

A column of float64 numbers is cut into whole numbers of 22 binary digits, x = Σ_s X_s·2^(e - 21 - 22s) with
|X_s| ≤ 2^21. Products of these, summed over up to 2^11 rows, stay within 2^53, so that float64 is exact whatever the
order of a linear algebra library; blocks of rows are then summed as whole numbers. Three cuts hold every number that
is at least 2^-12 of the largest of its column; rows with others are cut further, and at last summed as fractions.
"""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from kngjax.core.arrays import parameter
from kngjax.core.errors import UnfitShape
from kngjax.core.owner_only import OwnerOnly, owner_only
from kngjax.data.records import QuadraticSummary

Exact = Shaped[np.ndarray, "..."]

_DIGITS = 22
_CUTS = (3, 6)
# Below this part of the largest number of a column scaling might lose digits.
_SMALLEST = 2.0**-300
# Few enough rows that a product of some dozen columns is done before threads of the linear algebra library are up:
# those would take turns with the thread that reads the next chunk, and spin in between.
_BLOCK = 512
_ROWS = 8 * _BLOCK
# Numbers of a column that are summed at once: few enough for a processor's memory of its own.
_LONG = 2**14
_HUGE = 2.0**800
# Binary digits of the lower half of a whole number below 2^53; sums of halves stay exact in int64.
_HALF = 26


@owner_only
class ExactSums(OwnerOnly):
    """Holds all that a quadratic loss needs of records, whatever their number: its sums, exactly. Private.

    **Arguments:** `count`: n; `gram`: G, shape (d, d); `moment`: m, shape (d,); `squares`: s, such that the
    loss is ½θ'Gθ - m'θ + ½s. All are whole numbers of Python or fractions.
    """

    count: int
    gram: Exact
    moment: Exact
    squares: Any

    @property
    def dimension(self) -> int:
        return len(self.moment)

    @property
    def num_records(self) -> int:
        """Returns n; public under replace alone."""
        return self.count

    def __add__(self, other: "ExactSums") -> "ExactSums":
        """The sums of both sets of records together, which may not overlap; raises for another d."""
        if self.dimension != other.dimension:
            raise UnfitShape("the parts of the records have different numbers of columns")
        return ExactSums(*(one + two for one, two in zip(self.parts, other.parts, strict=True)))

    @property
    def parts(self) -> tuple[Any, ...]:
        """Returns the arguments of these sums, which can be pickled. Private."""
        return self.count, self.gram, self.moment, self.squares

    def summary(self, in_public_units: bool = False) -> QuadraticSummary:
        """Returns the sums as float64 numbers, each the nearest to its own."""
        sums = nearest(self.gram), nearest(self.moment), parameter(_float(self.squares))
        return QuadraticSummary(parameter(float(self.count)), *sums, in_public_units)


def nearest(numbers: Exact) -> Float[np.ndarray, "..."]:
    """Returns the float64 number nearest to each exact one; infinite beyond the largest."""
    return np.array([_float(number) for number in numbers.ravel()], np.float64).reshape(numbers.shape)


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def gram(columns: Float[np.ndarray, "records columns"]) -> Exact:
    """Computes X'X for finite float64 numbers, exactly, as fractions."""
    return _gram(columns, _CUTS[0])


def weighted_gram_of(columns: Float[np.ndarray, "records columns"], weights: Float[np.ndarray, " records"]) -> Exact:
    """Computes Σ_i w_i x_i x_i' for finite float64 numbers, w ≥ 0, exactly, as fractions.

    Weights are whole numbers of some power of two: of each of their binary digits a plain sum is made, over the records
    whose weights have it. Those of `kngjax.data.weights` have twenty.
    """
    largest = float(np.max(weights, initial=0.0))
    exponent = int(np.frexp(largest)[1]) - 53
    wholes = np.ldexp(weights, -exponent)
    if np.any(wholes != np.rint(wholes)):
        return _fractions(columns).T @ (_fractions(columns) * _fractions(weights[:, None]))
    return _by_digits(gram, columns, wholes.astype(np.int64), exponent, (columns.shape[1],) * 2)


def weighted_sums_of(columns: Float[np.ndarray, "records columns"], units: Int[np.ndarray, " records"]) -> Exact:
    """Computes Σ_i m_i x_i for finite float64 numbers and whole m ≥ 0, exactly, as fractions."""
    return _by_digits(column_sums, columns, units, 0, columns.shape[1:])


def _by_digits(summed: Any, columns: np.ndarray, units: np.ndarray, exponent: int, shape: tuple[int, ...]) -> Exact:
    total = np.zeros(shape, object)
    for place in range(54):
        has_digit = (units >> place) & 1 == 1
        if has_digit.any():
            total = total + summed(columns[has_digit]) * Fraction(2) ** (place + exponent)
    return total


def column_sums(columns: Float[np.ndarray, "records columns"]) -> Exact:
    """Returns the sum of each column of finite float64 numbers, exactly, as fractions."""
    total = np.full(columns.shape[1], Fraction(0), object)
    for start in range(0, len(columns), _LONG):
        for place, numbers in enumerate(np.ascontiguousarray(columns[start : start + _LONG].T)):
            total[place] += _sum(numbers)
    return total


def square_sum(columns: Float[np.ndarray, "records columns"]) -> Fraction:
    """Computes Σ_ij x_ij² for finite float64 numbers, exactly."""
    return gram(np.reshape(columns, (-1, 1)))[0, 0] if columns.size else Fraction(0)


def products(left: Int[np.ndarray, "records left"], right: Int[np.ndarray, "records right"]) -> Exact:
    """Computes left'right for whole numbers, exactly, as whole numbers of Python."""
    sizes = [max(int(np.max(np.abs(side), initial=1)), 1) for side in (left, right)]
    block = min(2**53 // (sizes[0] * sizes[1]), _BLOCK)
    if block == 0:
        # Not even one product is exact in float64.
        return left.T.astype(object) @ right.astype(object)
    first, second = (np.ascontiguousarray(side.T, np.float64) for side in (left, right))
    return _join(_halves(first, second, block))


def _halves(left: np.ndarray, right: np.ndarray, block: int) -> np.ndarray:
    """High and low halves of left·right' for whole numbers in float64; sums over `block` products are below 2^53."""
    end = left.shape[1] // block * block
    shapes = [(len(side), end // block, block) for side in (left, right)]
    first, second = (side[:, :end].reshape(shape) for side, shape in zip((left, right), shapes, strict=True))
    sums = (first.transpose(1, 0, 2) @ second.transpose(1, 2, 0)).astype(np.int64)
    last = (left[:, end:] @ right[:, end:].T).astype(np.int64)
    # The halves stay below 2^63 for up to 2^36 blocks.
    low = 2**_HALF - 1
    return np.stack([np.sum(sums >> _HALF, axis=0) + (last >> _HALF), np.sum(sums & low, axis=0) + (last & low)])


def _join(halves: np.ndarray) -> Exact:
    return halves[0].astype(object) * 2**_HALF + halves[1].astype(object)


def _gram(columns: np.ndarray, cuts: int) -> Exact:
    width, exponents = columns.shape[1], _exponents(columns)
    halves = np.zeros((2, cuts * width, cuts * width), np.int64)
    finer = []
    for start in range(0, len(columns), _ROWS):
        rows = columns[start : start + _ROWS]
        parts, rest = _cut(rows, exponents, cuts)
        if rest is not None:
            finer.append(rows[rest])
        # All products of cuts at once: one call of the linear algebra library in the place of six.
        flat = parts.reshape(len(parts) * width, len(rows))
        halves[:, : len(flat), : len(flat)] += _halves(flat, flat, _BLOCK)
    products = _join(halves).reshape(cuts, width, cuts, width)
    total = np.zeros((width, width), object)
    for one, other in itertools.product(range(cuts), repeat=2):
        total = total + products[one, :, other] * 2 ** (_DIGITS * (2 * cuts - 2 - one - other))
    scaled = _scale(total, exponents[:, None] + exponents[None] - 2 * (_DIGITS * cuts - 1))
    if not finer:
        return scaled
    rows = np.concatenate(finer)
    return scaled + (_gram(rows, _CUTS[1]) if cuts < _CUTS[1] else _fractions(rows).T @ _fractions(rows))


def _sum(numbers: np.ndarray) -> Fraction:
    """Σx, exactly: of the first 22 binary digits of the largest, of which sums are exact in any order, then of others.

    A part r = (x + m) - m of x, with m of 3·2^51 units, is the nearest multiple of the unit, and x - r is exact.
    """
    total, cuts = Fraction(0), 0
    while (largest := max(np.max(numbers, initial=0.0), -np.min(numbers, initial=0.0))) != 0.0:
        if not largest < np.inf:
            raise ValueError("sums are of finite numbers")
        if largest > _HUGE:
            # m would be infinite.
            small = np.where(np.abs(numbers) < 1.0, numbers, 0.0)
            return total + _sum(small) + _sum((numbers - small) / _HUGE) * Fraction(_HUGE)
        shift = np.ldexp(1.5, int(np.frexp(largest)[1]) + 53 - _DIGITS)
        part = numbers + shift
        part -= shift
        total, cuts = total + Fraction(float(part.sum())), cuts + 1
        numbers = numbers - part
        if cuts >= _CUTS[0]:
            # Few numbers have so many digits.
            numbers = numbers[numbers != 0.0]
    return total


def _exponents(columns: np.ndarray) -> np.ndarray:
    """The least e with |x| ≤ 2^e, for each column."""
    largest = np.zeros(columns.shape[1])
    for start in range(0, len(columns), _ROWS):
        numbers = np.ascontiguousarray(columns[start : start + _ROWS].T)
        largest = np.maximum(largest, np.maximum(numbers.max(axis=1), -numbers.min(axis=1)))
    fractions, exponents = np.frexp(largest)
    return exponents - (fractions == 0.5)


def _cut(rows: np.ndarray, exponents: np.ndarray, cuts: int) -> tuple[np.ndarray, np.ndarray | None]:
    """X_0, X_1, …, shape (cuts, columns, rows), and which rows have digits beyond these cuts; None for none.

    Those rows are 0 here, and there are only as many cuts as have digits.
    """
    width, count = rows.shape[1], len(rows)
    left = np.ascontiguousarray(rows.T)
    if np.all(np.abs(exponents) < 900):
        # A product is much faster than ldexp.
        left = left * np.ldexp(1.0, _DIGITS - 1 - exponents)[:, None]
    else:
        left = np.ldexp(left, (_DIGITS - 1 - exponents)[:, None])
    # Numbers so small that scaling may have lost digits of them.
    finer = np.any((np.abs(left) < _SMALLEST) & (rows.T != 0.0), axis=0)
    parts = np.empty((cuts, width, count))
    for cut in range(cuts):
        np.rint(left, out=parts[cut])
        # The difference is exact: it has no more digits than before.
        left -= parts[cut]
        if not left.any():
            parts = parts[: cut + 1]
            break
        left *= 2.0**_DIGITS
    else:
        finer |= np.any(left != 0.0, axis=0)
    if not finer.any():
        return parts, None
    parts[:, :, finer] = 0.0
    return parts, finer


def _scale(wholes: Exact, exponents: np.ndarray) -> Exact:
    pairs = zip(wholes.ravel(), exponents.ravel(), strict=True)
    return np.array([*(whole * Fraction(2) ** int(e) for whole, e in pairs), None], object)[:-1].reshape(wholes.shape)


def _fractions(columns: np.ndarray) -> Exact:
    return np.array([[Fraction(float(number)) for number in row] for row in columns], object)
