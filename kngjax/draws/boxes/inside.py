"""Whether boxes of θ lie in Θ: for certain where a proof needs it, and about."""

import numpy as np

from kngjax.core.verified import NEXT_TO_ZERO
from kngjax.sensitivity.in_fractions import DomainRange

_MARGIN = 2.0**-40


def may_meet(domain: DomainRange, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """False where Θ certainly has no point with θ_j between these: what is no number leaves it open."""
    low, high = sides_of(domain)
    found = ~np.any((lower > high) | (upper < low), axis=1)
    if domain.size is None:
        return found
    least = np.maximum(np.maximum(lower, -upper), 0.0)
    total = (least if domain.power == 1 else np.square(least)).sum(axis=1)
    return found & ~(total * (1.0 - _MARGIN) - NEXT_TO_ZERO > float(domain.size) * (1.0 + _MARGIN))


def about_inside(domain: DomainRange, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Whether Θ has about all points with θ_j between these."""
    low, high = sides_of(domain)
    slack = _MARGIN * (high - low)
    found = np.all((lower >= low - slack) & (upper <= high + slack), axis=1)
    if domain.size is None:
        return found
    most = np.maximum(np.abs(lower), np.abs(upper))
    total = (most if domain.power == 1 else np.square(most)).sum(axis=1)
    return found & (total <= float(domain.size) * (1.0 + _MARGIN))


def sides_of(domain: DomainRange) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest θ_j."""
    return np.array([float(one) for one, _ in domain.sides]), np.array([float(one) for _, one in domain.sides])
