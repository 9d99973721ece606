"""Estimates how wide a density is on Θ where the border matters, by a crowd of points that walks in float64.

Each point moves along the line through another one of the crowd (Goodman and Weare 2010, "Ensemble samplers with affine
invariance"): how narrow the density is in some direction does not matter to them. Nothing is proved, and speed alone
depends on what they find: they start from fixed random numbers, and no release holds anything of them.
"""

import numpy as np

from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape

# How many points, and steps before some are kept, and steps of which they are.
_POINTS, _STEPS, _KEPT = 128, 250, 60
_FARTHEST, _NEAREST = 0.0, 45.0
# Axes are not sheared by less than so many of their widths; none is narrower than this part of Θ.
_SHEAR, _LEAST = 0.5, 2.0**-46


def spread_of(
    centre: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, gauge: ScaledNorm, domain: Shape
) -> tuple[np.ndarray, np.ndarray] | None:
    """Finds a middle of the density ∝ exp(-‖g + H(θ - c)‖) on Θ, and a matrix of its widths; or None.

    **Arguments:** `centre`: c, in Θ. `gradient`: g. `hessian`: H.
    """
    if not all(np.all(np.isfinite(one)) for one in (centre, gradient, hessian)):
        return None
    half = 0.5 * domain.upper - 0.5 * domain.lower
    crowd = _Crowd(centre, gradient, hessian, gauge, domain)
    places = crowd.walk() / half
    middle = places.mean(axis=0)
    widths = np.cov(places.T, ddof=0).reshape(len(half), len(half))
    return middle * half, half[:, None] * _sheared(widths)


def _sheared(widths: np.ndarray) -> np.ndarray:
    """M such that Mu has about these covariances, its axes one by one, the widest of those left first.

    Each is sheared along those before it, and only where that is much of its width: the others keep to Θ's axes.
    """
    size = len(widths)
    matrix, order = np.zeros((size, size)), []
    rest = widths.copy()
    for _ in range(size):
        axis = max((k for k in range(size) if k not in order), key=lambda k: rest[k, k])
        own = np.sqrt(max(rest[axis, axis], 0.0))
        if order:
            # The covariances of u along the axes before this one.
            inverse = np.linalg.inv(matrix[np.ix_(order, order)])
            shears = np.linalg.lstsq(
                inverse @ widths[np.ix_(order, order)] @ inverse.T, inverse @ widths[order, axis], rcond=None
            )[0]
            matrix[axis, order] = np.where(np.abs(shears) < _SHEAR * own, 0.0, shears)
        matrix[axis, axis] = max(own, _LEAST)
        # The covariances of the others, given this axis.
        if own > 0.0:
            rest = rest - np.outer(rest[:, axis], rest[axis]) / rest[axis, axis]
        order.append(axis)
    return matrix


class _Crowd:
    """Walks a crowd of points on Θ, by the gradient and the Hessian at a centre. Private."""

    def __init__(self, centre: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, gauge: ScaledNorm, domain: Shape):
        self._centre, self._gradient, self._hessian = centre, gradient, hessian
        self._gauge, self._domain = gauge, domain
        self._generator = np.random.default_rng(0)

    def __repr__(self) -> str:
        return "<_Crowd; OWNER ONLY>"

    def _levels(self, places: np.ndarray) -> np.ndarray:
        found = self._gauge.about(np.abs(self._gradient + (places - self._centre) @ self._hessian))
        return np.where(self._domain.about_holds(places, places) & np.isfinite(found), found, np.inf)

    def _first(self) -> np.ndarray:
        """The best of points at all distances from the centre, towards points of Θ."""
        low, high = self._domain.lower, self._domain.upper
        number = 16 * _POINTS
        targets = self._generator.uniform(low, high, (number, len(low)))
        if self._domain.size is not None:
            lengths = np.linalg.norm(targets, self._domain.power, axis=1) / high[0]
            targets /= np.maximum(lengths, 1.0)[:, None]
        ways = 2.0 ** -self._generator.uniform(_FARTHEST, _NEAREST, number)
        places = self._centre + ways[:, None] * (targets - self._centre)
        return places[np.argsort(self._levels(places))[:_POINTS]]

    def walk(self) -> np.ndarray:
        """Walks, and returns points that are distributed about as the density is."""
        places, generator = self._first(), self._generator
        levels, half, kept = self._levels(places), _POINTS // 2, []
        generator.shuffle(places)
        levels = self._levels(places)
        for step in range(_STEPS + _KEPT):
            for own, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
                partners = places[others][generator.integers(half, size=half)]
                scales = (1.0 + generator.uniform(size=half)) ** 2 / 2.0
                tried = partners + scales[:, None] * (places[own] - partners)
                found = self._levels(tried)
                odds = (places.shape[1] - 1) * np.log(scales) + levels[own] - found
                taken = np.log(generator.uniform(size=half)) < odds
                places[own] = np.where(taken[:, None], tried, places[own])
                levels[own] = np.where(taken, found, levels[own])
            if step >= _STEPS:
                kept.append(places.copy())
        return np.concatenate(kept)
