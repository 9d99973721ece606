"""Rounds a value that float64 computed to a grid with a random offset, which hides smaller rounding errors.

Proof: `docs/proofs/rounding.md`. Two laws with a coupling in which coordinate j differs by at most r_j fall into
different cells of width h_j with probability at most η = Σ_j (r_j/h_j + 2^-64), whatever they are. So (ε, δ)-DP in real
arithmetic becomes (ε, δ + (1 + e^ε)η)-DP.
"""

import dataclasses
import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.accounting.adjacency import Adjacency
from kngjax.accounting.exact_costs import exactly, outward, with_both_orders
from kngjax.core.arrays import float64
from kngjax.mechanisms.base import AbstractMechanism

# Binary digits that a released value keeps at least, relative to the largest it may be; that it keeps of its noise;
# and that float64 is assumed to have right.
KEPT_DIGITS, NOISE_DIGITS, RIGHT_DIGITS = 20, 10, 44
# The largest δ that rounding may cost: cells are widened to stay below it, and beyond it nothing is released.
LARGEST_DELTA = 1e-4
_FEWEST_DIGITS = 8
_OFFSET_BITS = 64
# Second-order terms of the proof, and what float64 loses in the sizes.
_SLACK = 1 + Fraction(1, 2**40)


@dataclasses.dataclass(frozen=True)
class Rounding:
    """Rounds θ_j within a randomly offset cell about a public centre c_j: to the point of the cell nearest to c_j.

    So a box, or a ball about c, is not left. Cells are h_j = 2^(exponents_j) wide up to a distance of u_j =
    2^(units_j) from the centre, and twice as wide beyond every doubling of that distance, as float64's own spacing:
    with t = |θ_j - c_j|/u_j they are of equal width h_j/u_j in g(t) = t for t ≤ 1 and k + t/2^k for 2^k ≤ t ≤ 2^(k+1).

    Assumed of float64: |θ'_j - θ_j| ≤ 2^-44(|c_j| + max(u_j, |θ_j - c_j|)) in some coupling of the laws, but for a
    probability that is negligible beside η = Σ_j (2·2^-44·s_j/h_j + 2^-64), s_j = |c_j| + u_j. Nobody has proved that.

    **Arguments:** `centre`: c, shape (d,). `exponents`: of h. `units`: of u; empty in a certificate from before
    offsets were random, whose η rests on a density that hardly varies over a cell. All from public settings.
    """

    centre: tuple[float, ...]
    exponents: tuple[int, ...]
    units: tuple[int, ...] = ()

    @classmethod
    def of(cls, mechanism: AbstractMechanism, dimension: int, num_records: int | None = None) -> "Rounding":
        """Makes the grid for a mechanism's values: 2^-10 of the noise if its size is public, at least 2^-20 of s_j.

        u_j is half of Θ's width, or of the bounds of a mean or a quantile, or what the mechanism takes for the size
        of its values; or the size of the noise, where that is larger. For large ε cells are wider, so that (1 + e^ε)η
        ≤ 1e-4.

        **Arguments:** `num_records`: n, where it is known; used under replace alone, where it is public.

        Raises ValueError if that would take cells of more than 2^-8 units: nothing useful can be stated then.
        """
        public = num_records if mechanism.adjacency is Adjacency.REPLACE else None
        with float64():
            centre, units = mechanism.noise.typical_values(dimension)
            noise = mechanism.noise.least(dimension, public)
        centre = np.broadcast_to(np.asarray(centre, np.float64), (dimension,))
        factor = 1.0 + math.exp(min(mechanism.guarantee_for(dimension).epsilon, 700.0))
        cells = [
            _cell(abs(float(middle)), float(unit), float(scale), factor * len(centre))
            for middle, unit, scale in zip(centre, units, noise, strict=True)
        ]
        return cls(tuple(map(float, centre)), *(tuple(column) for column in zip(*cells, strict=True)))

    def __call__(self, value: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """Returns the rounded value, with offsets drawn from the operating system's randomness."""
        return self.rounded(value, [_offset() for _ in self.centre])

    def rounded(self, value: Float[np.ndarray, " dimension"], offsets: Any) -> Float[np.ndarray, " dimension"]:
        """Rounds the value by these offsets U, Fractions in [0, 1): exactly, up to the float nearest to each."""
        coordinates = zip(value, self.centre, self.exponents, self.units, offsets, strict=True)
        return np.array([_round_number(float(one[0]), *one[1:]) for one in coordinates])

    @property
    def distance(self) -> Fraction:
        """Bounds η, by how much rounding in float64 may change the law of the output, in total variation."""
        if not self.units:
            return Fraction(2 * len(self.exponents), 2 ** (RIGHT_DIGITS - KEPT_DIGITS))
        grids = zip(self.centre, self.exponents, self.units, strict=True)
        sizes = [(abs(Fraction(centre)) + _power(unit)) / _power(exponent) for centre, exponent, unit in grids]
        return sum(sizes, Fraction(0)) * _SLACK / 2 ** (RIGHT_DIGITS - 1) + Fraction(len(sizes), 2**_OFFSET_BITS)

    def delta(self, epsilon: float) -> float:
        """Returns (1 + e^ε)η, rounded outward, at most 1, for a guarantee that states an ε."""
        return min(1.0, outward(with_both_orders(exactly(epsilon), self.distance)))


def _cell(centre: float, unit: float, noise: float, factor: float) -> tuple[int, int]:
    """Returns the exponents of h and u for |c|, at least u, the least noise, and (1 + e^ε)d."""
    # A column of one public value has no width.
    exponent = _exponent(max(unit, noise) or centre or 1.0)
    size = centre + math.ldexp(1.0, exponent)
    widest = math.ldexp(1.0, exponent - _FEWEST_DIGITS)
    by_size = min(math.ldexp(size, -KEPT_DIGITS), widest)
    by_noise = min(math.ldexp(noise, -NOISE_DIGITS), widest)
    by_delta = math.ldexp(size, 1 - RIGHT_DIGITS) * factor / LARGEST_DELTA
    if not by_delta <= widest:
        raise ValueError(
            "no rounding of the output hides what float64 may be off by and leaves a useful value: epsilon is so large "
            "that (1 + e^epsilon) times that exceeds 1e-4 of delta, or the bounds are narrow and far from 0. Take a "
            "smaller epsilon, or shift X, y or the domain by a public number; Lattice() needs no such rounding"
        )
    return _exponent(max(by_size, by_noise, by_delta)), exponent


def _exponent(value: float) -> int:
    """Returns the least e with value ≤ 2^e."""
    fraction, exponent = math.frexp(value)
    return exponent - (fraction == 0.5)


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _offset() -> Fraction:
    return Fraction(int.from_bytes(os.urandom(_OFFSET_BITS // 8)), 2**_OFFSET_BITS)


def _round_number(value: float, centre: float, exponent: int, unit: int, offset: Fraction) -> float:
    """Returns c ± u·g⁻¹(…) of the cell's end nearest to c; rounding to a float is monotone, so it stays in Θ."""
    step = (Fraction(value) - Fraction(centre)) / _power(unit)
    width = _power(exponent - unit)
    # The cell about c reaches from (U - 1)·width to U·width; on the left offsets count from the other end.
    shift = offset if step >= 0 else 1 - offset
    cells = _straighten(abs(step)) / width - shift
    if cells < 0:
        return centre
    distance = _curve((math.floor(cells) + shift) * width) * _power(unit)
    return float(Fraction(centre) + (distance if step >= 0 else -distance))


def _straighten(size: Fraction) -> Fraction:
    """Computes g(t)."""
    if size <= 1:
        return size
    doubling = (size.numerator // size.denominator).bit_length() - 1
    return doubling + size / 2**doubling


def _curve(position: Fraction) -> Fraction:
    """Computes g⁻¹: on [k + 1, k + 2] it is (g - k)·2^k."""
    if position <= 1:
        return position
    doubling = math.floor(position) - 1
    return (position - doubling) * 2**doubling
