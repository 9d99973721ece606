"""Sets Θ of parameters, one object each: asked in fractions, in balls, and in float64 with the side a proof needs."""

import dataclasses
import functools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Bool, Float

from kngjax.accounting.exact_costs import root_upward
from kngjax.core.balls import ball_of
from kngjax.core.verified import NEXT_TO_ZERO

Interval = tuple[Fraction, Fraction]

_MARGIN = 2.0**-40
_INWARD = 1.0 - 2.0**-30


@dataclasses.dataclass(frozen=True)
class Shape:
    """The θ within these sides and, unless the size is None, with Σ|θ_j|^power ≤ size, without rounding. Public.

    **Arguments:** `sides`: the least and the largest θ_j. `size`: None for a box. `power`: 1 or 2, and 0 for a box.
    """

    sides: tuple[Interval, ...]
    size: Fraction | None = None
    power: int = 0

    @classmethod
    def box(cls, lower: Float[np.ndarray, " dimension"], upper: Float[np.ndarray, " dimension"]) -> "Shape":
        """Takes the ends as the numbers that they are."""
        pairs = zip(np.asarray(lower, np.float64).tolist(), np.asarray(upper, np.float64).tolist(), strict=True)
        return cls(tuple((Fraction(low), Fraction(high)) for low, high in pairs))

    @classmethod
    def ball(cls, radius: float, power: int, dimension: int) -> "Shape":
        """Takes the radius as the number that it is."""
        end = Fraction(radius)
        return cls(((-end, end),) * dimension, end**power, power)

    @functools.cached_property
    def lower(self) -> Float[np.ndarray, " dimension"]:
        """Returns the least θ_j, rounded."""
        return np.array([float(low) for low, _ in self.sides])

    @functools.cached_property
    def upper(self) -> Float[np.ndarray, " dimension"]:
        """Returns the largest θ_j, rounded."""
        return np.array([float(high) for _, high in self.sides])

    @property
    def radius(self) -> float | None:
        """Returns the radius of a ball; None for a box."""
        return None if self.size is None else float(self.sides[0][1])

    @property
    def middle(self) -> list[Fraction]:
        """Returns the middle of Θ."""
        return [(low + high) / 2 for low, high in self.sides]

    @property
    def half_widths(self) -> list[Fraction]:
        """Returns half of the width of Θ along each axis."""
        return [(high - low) / 2 for low, high in self.sides]

    def linear_interval(self, features: Sequence[Interval]) -> Interval:
        """[p, q] that contains every x'θ: its least and largest for a box, Hölder's ± r·max |x_j| or ± r·|x| for a
        ball, rounded up.
        """
        if self.size is None:
            products = [
                [x * theta for x in feature for theta in side]
                for feature, side in zip(features, self.sides, strict=True)
            ]
            return sum(map(min, products), Fraction(0)), sum(map(max, products), Fraction(0))
        sizes = [max(abs(lower), abs(upper)) for lower, upper in features]
        squares = sum((size**2 for size in sizes), Fraction(0))
        reach = self.size * max(sizes) if self.power == 1 else root_upward(self.size * squares)
        return -reach, reach

    def contains(self, places: Sequence[arb]) -> bool | None:
        """Tells whether Θ contains the point in these balls; None if they leave it open."""
        if self.size is not None:
            total, size = sum((abs(place) ** self.power for place in places), arb(0)), ball_of(self.size)
            return True if total <= size else False if total > size else None
        found = True
        for place, (low, high) in zip(places, self.sides, strict=True):
            lower, upper = ball_of(low), ball_of(high)
            if place < lower or place > upper:
                return False
            found = found and place >= lower and place <= upper
        return True if found else None

    def may_meet(self, lower: np.ndarray, upper: np.ndarray) -> Bool[np.ndarray, " boxes"]:
        """Returns False where Θ certainly has no point with θ_j between these; NaN leaves it open."""
        found = ~np.any((lower > self.upper) | (upper < self.lower), axis=1)
        if self.size is None:
            return found
        total = self._total(np.maximum(np.maximum(lower, -upper), 0.0))
        return found & ~(total * (1.0 - _MARGIN) - NEXT_TO_ZERO > float(self.size) * (1.0 + _MARGIN))

    def about_holds(self, lower: np.ndarray, upper: np.ndarray) -> Bool[np.ndarray, " boxes"]:
        """Tells whether Θ has about all points with θ_j between these."""
        slack = _MARGIN * (self.upper - self.lower)
        found = np.all((lower >= self.lower - slack) & (upper <= self.upper + slack), axis=1)
        if self.size is None:
            return found
        return found & (self._total(np.maximum(np.abs(lower), np.abs(upper))) <= float(self.size) * (1.0 + _MARGIN))

    def about_nearest(self, theta: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """θ, or a point of Θ about next to it; the middle for what is not finite."""
        if not np.all(np.isfinite(theta)):
            return 0.5 * self.lower + 0.5 * self.upper
        if self.size is None:
            return np.clip(theta, self.lower, self.upper)
        size = np.linalg.norm(theta, self.power) / self.upper[0]
        return theta if size < _INWARD else theta * (_INWARD / size)

    def _total(self, sizes: Float[np.ndarray, "boxes dimension"]) -> Float[np.ndarray, " boxes"]:
        """Σ|θ_j|^power, rounded."""
        return (sizes if self.power == 1 else np.square(sizes)).sum(axis=1)
