"""The coarse public rounding of a value that float64 computed, and what is left of its rounding errors."""

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from kngjax._arrays import float64
from kngjax.mechanisms import AbstractMechanism
from kngjax.sensitivity import response_radius

# Digits that a released value keeps, and that float64 is assumed to have right, relative to a public unit.
KEPT_DIGITS, RIGHT_DIGITS = 20, 44


@dataclasses.dataclass(frozen=True)
class Rounding:
    """θ_j to a multiple of 2^(e_j) from a public centre, towards it, so that a convex Θ is not left.

    If float64's θ lies within r = 2^-44 units of the one that real arithmetic makes of the same random numbers, they
    are rounded to different points only if a multiple of h = 2^-20 units lies between: with probability at most
    η = 2d·r/h, as the density hardly varies over a cell. The laws then differ by η in total variation, and what was
    (ε, δ)-DP is (ε, δ + (1 + e^ε)η)-DP. It is a statement about this assumption, and not a proof about the program:
    for that see `kngjax.Lattice`.

    **Arguments:** `centre`: shape (d,), public. `exponents`: e. Both from public settings.
    """

    centre: tuple[float, ...]
    exponents: tuple[int, ...]

    @classmethod
    def of(cls, mechanism: AbstractMechanism, dimension: int) -> "Rounding":
        """In units of Θ's widths; of the bounds of a mean or a quantile; or of y's largest value over each column's."""
        with float64():
            centre, units = _centre_and_units(mechanism, dimension)
        exponents = tuple(math.frexp(float(unit))[1] - KEPT_DIGITS for unit in units)
        places = zip(np.broadcast_to(centre, (dimension,)), exponents, strict=True)
        return cls(tuple(math.ldexp(round(math.ldexp(float(c), -e)), e) for c, e in places), exponents)

    def __call__(self, value: Float[np.ndarray, " dimension"]) -> Float[np.ndarray, " dimension"]:
        """The rounded value."""
        spacing, centre = np.ldexp(1.0, np.array(self.exponents)), np.array(self.centre)
        return centre + np.trunc((value - centre) / spacing) * spacing

    @property
    def share(self) -> float:
        """η = 2d·r/h."""
        return 2 * len(self.exponents) * 2.0 ** (KEPT_DIGITS - RIGHT_DIGITS)

    def delta(self, epsilon: float) -> float:
        """(1 + e^ε)η, at most 1: of a guarantee that states an ε."""
        return min(1.0, (1.0 + math.exp(min(epsilon, 700.0))) * self.share)


def _centre_and_units(mechanism: AbstractMechanism, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    domain, bounds = getattr(mechanism, "domain", None), mechanism.bounds
    if domain is not None:
        return np.asarray(domain.interior_point(dimension)), np.asarray(domain.widths(dimension))
    if not mechanism.loss.has_response or bounds.x_lower is None:
        sides = bounds.features(dimension) if not mechanism.loss.has_response else (bounds.y_lower, bounds.y_upper)
        lower, upper = (np.broadcast_to(np.asarray(side), (dimension,)) for side in sides)
        return (lower + upper) / 2, upper - lower
    largest = np.max(np.abs([np.asarray(side) for side in bounds.features(dimension)]), axis=0)
    reach = 1.0 if bounds.y_lower is None else float(response_radius(bounds))
    return np.zeros(dimension), reach / largest
