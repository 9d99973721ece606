"""Public lattices of the records and of Θ, and exact integers on them. NumPy alone."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kngjax.core.balls import power_of_two
from kngjax.geometry.domains import AbstractDomain
from kngjax.geometry.shapes import Shape

Integers = Int[np.ndarray, "..."]


def exponent_of(value: float) -> int:
    """Returns the least e with |value| ≤ 2^e; 0 for 0."""
    fraction, exponent = math.frexp(abs(value))
    return exponent - (fraction == 0.5) if value else 0


def on_lattice(values: Any, exponent: int, toward_zero: bool = False) -> Integers:
    """Returns the whole numbers nearest to values/2^e, ties to even: each record for itself, and monotone.

    **Arguments:** `toward_zero`: takes the nearest that is no larger in size, for shares of a person's vote: errors of
    rounding to nearest add up over the rows of a person.

    That is exact: `ldexp` moves the binary point, which loses digits for subnormal numbers alone, where both round to
    0, and `rint` finds the nearest whole number, which has no more than 53 digits. Raises OverflowError beyond 2^62.
    """
    units = (np.trunc if toward_zero else np.rint)(np.ldexp(np.asarray(values, np.float64), -exponent))
    if np.any(np.abs(units) > 2.0**62):
        raise OverflowError("beyond 2^62 units of its lattice: take fewer data_digits and theta_digits")
    return np.asarray(units.astype(np.int64))


@dataclasses.dataclass(frozen=True)
class DomainLattice:
    """The points θ_j = k_j·2^(e_j) of Θ with whole k: which they are is decided in whole numbers.

    **Arguments:** `exponents`: e, one a coefficient. `low`, `high`: the smallest box of k that contains Θ's.
    `radius`: the largest whole r with Σ|k_j|2^(e_j - min e) ≤ r (power 1) or its squares' sum (power 2); None for a
    box.
    """

    exponents: tuple[int, ...]
    low: Int[np.ndarray, " dimension"]
    high: Int[np.ndarray, " dimension"]
    radius: int | None
    power: int

    @classmethod
    def of(cls, domain: AbstractDomain, exponents: list[int]) -> "DomainLattice":
        """Raises ValueError for a domain without an `exact_shape`, and for one without lattice points."""
        shape = domain.exact_shape(len(exponents))
        if shape is None:
            raise ValueError(
                f"lattices of Box, L1Ball and L2Ball are built, not of {type(domain).__name__}: ask for Exact()"
            )
        low = [math.ceil(_scaled(value, e)) for value, e in zip(shape.lower, exponents, strict=True)]
        high = [math.floor(_scaled(value, e)) for value, e in zip(shape.upper, exponents, strict=True)]
        radius = None
        if shape.radius is not None:
            radius = math.floor(_scaled(shape.radius, min(exponents)) ** shape.power)
        if any(lower > upper for lower, upper in zip(low, high, strict=True)):
            raise ValueError("the domain is so thin that no point of the lattice lies in it: widen it")
        return cls(tuple(exponents), np.array(low, np.int64), np.array(high, np.int64), radius, shape.power)

    @property
    def range(self) -> Shape:
        """Returns the range that these points lie in."""
        sides = zip(self.low, self.high, self.exponents, strict=True)
        intervals = ((int(low) * power_of_two(e), int(high) * power_of_two(e)) for low, high, e in sides)
        size = None if self.radius is None else self.radius * power_of_two(min(self.exponents)) ** self.power
        return Shape(tuple(intervals), size, self.power)

    @property
    def sides(self) -> list[int]:
        """Returns the largest |k_j|, one a coefficient."""
        return [max(abs(int(low)), abs(int(high))) for low, high in zip(self.low, self.high, strict=True)]

    @property
    def largest(self) -> int:
        """Returns the largest |k_j| of all."""
        return max(self.sides)

    def contains(self, point: Int[np.ndarray, " dimension"]) -> bool:
        """Tells whether k lies in Θ."""
        return bool(self.contains_each(point[None])[0])

    def contains_each(self, points: Int[np.ndarray, "points dimension"]) -> np.ndarray:
        """Marks the k that lie in Θ."""
        found = np.all((self.low <= points) & (points <= self.high), axis=1)
        if self.radius is not None:
            found[found] = [self._size(np.abs(point)) <= self.radius for point in points[found]]
        return found

    def nearest(self, point: Float[np.ndarray, " dimension"]) -> Int[np.ndarray, " dimension"]:
        """Returns a k in Θ that is about the nearest to this, which is finite."""
        found = np.clip(np.rint(point), self.low, self.high).astype(np.int64)
        if self.contains(found):
            return found
        # A ball, about 0: toward it, by a little more than floats may be off.
        assert self.radius is not None
        share = (self.radius / self._size(np.abs(found))) ** (1.0 / self.power) * (1.0 - 1e-9)
        found = np.trunc(found * share).astype(np.int64)
        return found if self.contains(found) else np.zeros_like(found)

    def misses(self, low: Int[np.ndarray, "boxes dimension"], high: Int[np.ndarray, "boxes dimension"]) -> np.ndarray:
        """Marks boxes low ≤ k ≤ high that certainly have no point in Θ. Not all such boxes are found.

        In float64: |k| < 2^53 is exact there, and so are products with powers of 2; a square and a sum of d terms are
        off by less than (d + 1)·2^-53 of themselves, far less than 10^-12.
        """
        beside = np.any((low > self.high) | (high < self.low), axis=1)
        if self.radius is None:
            return beside
        least = min(self.exponents)
        sizes = np.ldexp(np.maximum(np.maximum(low, -high), 0).astype(float), np.array(self.exponents) - least)
        return beside | (np.sum(sizes**self.power, axis=1) > float(self.radius) * (1.0 + 1e-12))

    def values(self, point: Int[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """θ of k, exact in float64."""
        return np.array([math.ldexp(float(k), e) for k, e in zip(point, self.exponents, strict=True)])

    def _size(self, sizes: np.ndarray) -> int:
        least = min(self.exponents)
        return sum((int(k) << (e - least)) ** self.power for k, e in zip(sizes, self.exponents, strict=True))


def _scaled(value, exponent: int) -> Fraction:
    return Fraction(float(value)) / power_of_two(exponent)
