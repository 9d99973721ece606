"""Coordinates in which gradients are about as large as u: θ = θ₀ + Mu, θ₀ and M the float64 numbers that they are.

With θ₀ about where ‖G‖ is least, H the Hessian there and ‖z‖ of scales a, M = H^{-1}diag(a) where Θ leaves much of the
noise to G; elsewhere M is as wide as the density on Θ is (`crowd`). Hessians are those of the mean slopes of scores as
far as a few units reach: what is steep in between alone tells little. All are looked for in float64, without proof:
speed alone depends on them.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.verified import NEXT_TO_ZERO, sum_error
from kngjax.draws.boxes.crowd import spread_of
from kngjax.draws.linear_algebra import fractions_of, rational
from kngjax.draws.quadratic.bodies import AbstractBody
from kngjax.geometry.scaled_norms import ScaledNorm
from kngjax.geometry.shapes import Shape
from kngjax.losses.record_scores import RecordScores

_WIDER = 1.0 + 2.0**-20
_MOST_STEPS, _SHORT = 30, 1e-2
# Where slopes at points lead nowhere, so many widths are tried, each so much narrower, and points on a line.
_MOST_WIDTHS, _NARROWER, _MOST_HALVINGS = 60, 0.5, 24
# From so many numbers on the search starts with a part of the records.
_MANY, _EIGHTH = 2**14, 8
_HUGE = 2.0**1000
# How often Hessians are taken anew, as far as so many units reach; and when coordinates are about the same.
_MOST_ROUNDS, _UNITS, _CLOSE = 8, 1.5, 2.0
# Points of noise, and the share of them that Θ must have; a unit of u may be so large a part of Θ.
_POINTS, _MUCH, _LONG = 256, 0.3, 0.2


class BoxCoordinates(NamedTuple):
    """θ = θ₀ + Mu. Private: speed alone depends on it. **Arguments:** `centre`: θ₀. `matrix`: M."""

    centre: Float[np.ndarray, " dimension"]
    matrix: Float[np.ndarray, "dimension dimension"]

    def __repr__(self) -> str:
        return "<BoxCoordinates; OWNER ONLY>"

    def places(self, u: Sequence[arb]) -> list[arb]:
        """θ in balls."""
        rows = zip(self.centre.tolist(), self.matrix.tolist(), strict=True)
        return [arb(t) + sum((arb(m) * one for m, one in zip(row, u, strict=True)), arb(0)) for t, row in rows]

    def hull(self, centres: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ends of θ_j over boxes, rounded outward."""
        middle, sizes = self.centre + centres @ self.matrix.T, np.abs(self.matrix).T
        moved = np.abs(self.centre) + np.abs(centres) @ sizes
        reach = (halves @ sizes + sum_error(len(self.centre) + 2) * moved) * _WIDER + NEXT_TO_ZERO
        return middle - reach, middle + reach

    def whole(self, body: AbstractBody) -> tuple[Float[np.ndarray, " dimension"], Float[np.ndarray, " dimension"]]:
        """Returns the ends of u over Θ, rounded outward."""
        start = [Fraction(one) for one in self.centre.tolist()]
        lower, upper = [], []
        for slopes in fractions_of(rational(self.matrix.tolist()).inv()):
            shift = sum((slope * t for slope, t in zip(slopes, start, strict=True)), Fraction(0))
            lower.append(-_above(body.most([-slope for slope in slopes], Fraction(0), []) + shift))
            upper.append(_above(body.most(slopes, Fraction(0), []) - shift))
        return np.array(lower), np.array(upper)


def coordinates_for(x: np.ndarray, scores: RecordScores, gauge: ScaledNorm, body: AbstractBody) -> BoxCoordinates:
    """Finds coordinates in which the gradient of these records is about as large as u."""
    low, high = body.shape.lower, body.shape.upper
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    with np.errstate(all="ignore"):
        search = _NewtonSearch(x, scores, gauge.scales, gauge.scales / half)
        centre, matrix = search.minimiser(middle), np.diag(half)
        hessian = search.at(centre)[1]
        for _ in range(_MOST_ROUNDS):
            before = centre, matrix
            gradient = search.at(centre)[0]
            found = _of_noise(centre, gradient, hessian, gauge, body.shape, half)
            if found is None:
                if not body.shape.about_holds(centre[None], centre[None]).all():
                    centre = body.shape.about_nearest(centre)
                    gradient, hessian = search.at(centre)
                found = spread_of(centre, gradient, hessian, gauge, body.shape)
            if found is None:
                break
            if _is_about(before, found):
                break
            centre, matrix = found
            hessian = search.mean_hessian(centre, matrix)
        return BoxCoordinates(centre, matrix) if _is_usable(centre, matrix) else BoxCoordinates(middle, np.diag(half))


def _of_noise(
    centre: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    gauge: ScaledNorm,
    domain: Shape,
    half: np.ndarray,
) -> tuple[np.ndarray, np.ndarray] | None:
    """θ₀ and M of noise that Θ has much of; None where it has little of it, or where the Hessian tells little."""
    try:
        matrix = np.linalg.solve(hessian, np.diag(gauge.scales))
        centre = centre - np.linalg.solve(hessian, gradient)
    except np.linalg.LinAlgError:
        return None
    if not (np.all(np.isfinite(centre)) and np.abs(matrix / half[:, None]).max() < _LONG):
        return None
    places = centre + _noise(len(half)) @ matrix.T
    return (centre, matrix) if domain.about_holds(places, places).mean() > _MUCH else None


def _noise(dimension: int) -> np.ndarray:
    """Points with density ∝ exp(-|u|_∞), always the same ones."""
    generator = np.random.default_rng(0)
    directions = generator.uniform(-1.0, 1.0, (_POINTS, dimension))
    lengths = generator.gamma(dimension, size=_POINTS) / np.abs(directions).max(axis=1)
    return directions * lengths[:, None]


def _is_about(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether coordinates are about the same: some units apart, and of units that are some times as large."""
    apart = np.linalg.solve(other[1], np.column_stack([one[0] - other[0], one[1]]))
    sizes = np.linalg.svd(apart[:, 1:], compute_uv=False) if np.all(np.isfinite(apart)) else np.array([0.0])
    return bool(np.abs(apart[:, 0]).max() < _CLOSE and sizes[0] < _CLOSE and sizes[-1] > 1.0 / _CLOSE)


def _is_usable(centre: np.ndarray, matrix: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(centre)) and np.all(np.isfinite(matrix))) and rational(matrix.tolist()).det() != 0


class _NewtonSearch(NamedTuple):
    """Newton's method. **Arguments:** `scales`: a. `ridge`: what is added to the Hessian's diagonal."""

    x: np.ndarray
    scores: RecordScores
    scales: np.ndarray
    ridge: np.ndarray

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G and H."""
        predictor, nothing = self.x @ theta, np.zeros(len(self.x))
        score = self.scores.floats(predictor, nothing)[0]
        least, most = self.scores.slopes(predictor, nothing)
        return score @ self.x, (self.x * (0.5 * (least + most))[:, None]).T @ self.x + np.diag(self.ridge)

    def mean_hessian(self, theta: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """H of the mean slopes between the ends of what some units of u reach."""
        predictor, nothing = self.x @ theta, np.zeros(len(self.x))
        radius = _UNITS * np.linalg.norm(self.x @ matrix, axis=1) + 2.0**-40 * np.abs(predictor) + NEXT_TO_ZERO
        low, high = (self.scores.floats(predictor + sign * radius, nothing)[0] for sign in (-1.0, 1.0))
        slopes = np.maximum((high - low) / (2.0 * radius), 0.0)
        return (self.x * slopes[:, None]).T @ self.x + np.diag(self.ridge)

    def minimiser(self, theta: np.ndarray) -> np.ndarray:
        """Searches for about the point where G is 0."""
        if self.x.size >= _MANY:
            some = self.x[::_EIGHTH], self.scores.rows(slice(None, None, _EIGHTH))
            theta = _NewtonSearch(*some, self.scales / _EIGHTH, self.ridge / _EIGHTH).minimiser(theta)
        gradient, hessian = self.at(theta)
        for _ in range(_MOST_STEPS):
            # In units of the noise.
            length = np.linalg.norm(gradient / self.scales)
            if not length > _SHORT:
                return theta
            try:
                step = -np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:
                break
            there = self.at(theta + step)
            # Neither an infinite length nor none is less than another.
            if not np.linalg.norm(there[0] / self.scales) < min(0.75 * length, _HUGE):
                break
            theta, (gradient, hessian) = theta + step, there
        return self._from_afar(theta, gradient)

    def _from_afar(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Searches by steps from mean slopes, at first over the width of Θ, where slopes at a point tell nothing."""
        reach = self.scales / self.ridge
        for _ in range(_MOST_WIDTHS):
            hessian = self.mean_hessian(theta, np.diag(reach))
            try:
                step = -np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:
                break
            theta, gradient = self._along(theta, step)
            length = np.linalg.norm(gradient / self.scales)
            if not length > _SHORT:
                break
            # No farther than the step was long.
            reach = np.minimum(reach * _NARROWER, np.maximum(np.abs(step), reach * _NARROWER**4))
        return theta

    def _along(self, theta: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Searches along this step, up to twice its length, for the point of about the least loss: its slope rises."""
        least, most, best = 0.0, 2.0, (theta, self._gradient(theta))
        scale = 1.0
        for _ in range(_MOST_HALVINGS):
            place = theta + scale * step
            gradient = self._gradient(place)
            slope = gradient @ step
            if slope <= 0.0:
                least, best = scale, (place, gradient)
            else:
                most = scale
            if most - least < 0.25 * least:
                break
            scale = 0.5 * (least + most) if least > 0.0 else most * 0.125
        return best

    def _gradient(self, theta: np.ndarray) -> np.ndarray:
        predictor = self.x @ theta
        return self.scores.floats(predictor, np.zeros(len(self.x)))[0] @ self.x


def _above(number: Fraction) -> float:
    found = float(number)
    return found if found >= number else float(np.nextafter(found, np.inf))
