"""Coordinates in which gradients are about as large as u: θ = θ₀ + Mu, θ₀ and M the float64 numbers that they are.

With θ₀ about where ‖G‖ is least on Θ, H the Hessian there and ‖z‖ of scales a, M = H^{-1}diag(a), but that no unit of u
moves θ much farther than Θ is wide. They are looked for in float64, without proof: speed alone depends on them.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat
from jaxtyping import Float

from kngjax.core.verified import NEXT_TO_ZERO, UNIT
from kngjax.losses.base import AbstractVerifiedScore
from kngjax.samplers.grid.quadratic.bodies import AbstractBody
from kngjax.sensitivity.in_fractions import DomainRange

_WIDER = 1.0 + 2.0**-20
_MOST_STEPS, _SHORT, _LEAST_SCALE = 30, 1e-2, 2.0**-6
# From so many numbers on the search starts with a part of the records.
_MANY, _EIGHTH = 2**14, 8
_INWARD = 1.0 - 2.0**-30


def sum_error(terms: int) -> float:
    """γ_m = mu/(1 - mu): by so much of the sum of their sizes a sum of m products may err, in any order."""
    return terms * UNIT / (1.0 - terms * UNIT) * _WIDER


class Coordinates(NamedTuple):
    """θ = θ₀ + Mu. Private: speed alone depends on it. **Arguments:** `centre`: θ₀. `matrix`: M."""

    centre: Float[np.ndarray, " dimension"]
    matrix: Float[np.ndarray, "dimension dimension"]

    def __repr__(self) -> str:
        return "<Coordinates; OWNER ONLY>"

    def places(self, u: Sequence[arb]) -> list[arb]:
        """θ in balls."""
        rows = zip(self.centre.tolist(), self.matrix.tolist(), strict=True)
        return [arb(t) + sum((arb(m) * one for m, one in zip(row, u, strict=True)), arb(0)) for t, row in rows]

    def hull(self, centres: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of θ_j over boxes, rounded outward."""
        middle, sizes = self.centre + centres @ self.matrix.T, np.abs(self.matrix).T
        moved = np.abs(self.centre) + np.abs(centres) @ sizes
        reach = (halves @ sizes + sum_error(len(self.centre) + 2) * moved) * _WIDER + NEXT_TO_ZERO
        return middle - reach, middle + reach

    def whole(self, body: AbstractBody) -> tuple[Float[np.ndarray, " dimension"], Float[np.ndarray, " dimension"]]:
        """Ends of u over Θ, rounded outward."""
        start = [Fraction(one) for one in self.centre.tolist()]
        lower, upper = [], []
        for row in _rational(self.matrix).inv().tolist():
            slopes = [Fraction(int(one.p), int(one.q)) for one in row]
            shift = sum((slope * t for slope, t in zip(slopes, start, strict=True)), Fraction(0))
            lower.append(-_above(body.most([-slope for slope in slopes], Fraction(0), []) + shift))
            upper.append(_above(body.most(slopes, Fraction(0), []) - shift))
        return np.array(lower), np.array(upper)


def coordinates_for(
    x: np.ndarray, y: np.ndarray, scores: AbstractVerifiedScore, scales: np.ndarray, body: AbstractBody
) -> Coordinates:
    """Those of these records. **Arguments:** `scales`: a."""
    middle, half = (np.array([float(one) for one in side]) for side in (body.middle, body.half_widths))
    with np.errstate(all="ignore"):
        search = _Search(x, y, scores, scales, scales / half)
        centre = _nearest(body.range, search.minimiser(middle), middle)
        hessian = search.at(centre)[1]
        try:
            matrix = np.linalg.solve(hessian, np.diag(scales))
            if np.all(np.isfinite(matrix)) and _rational(matrix).det() != 0:
                return Coordinates(centre, matrix)
        except np.linalg.LinAlgError:
            pass
    return Coordinates(centre, np.diag(half))


class _Search(NamedTuple):
    """Newton's method. **Arguments:** `scales`: a. `ridge`: what is added to the Hessian's diagonal."""

    x: np.ndarray
    y: np.ndarray
    scores: AbstractVerifiedScore
    scales: np.ndarray
    ridge: np.ndarray

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G and H."""
        predictor, nothing = self.x @ theta, np.zeros(len(self.y))
        score = self.scores.floats(predictor, nothing, self.y)[0]
        least, most = self.scores.slopes(predictor, nothing, self.y)
        return score @ self.x, (self.x * (0.5 * (least + most))[:, None]).T @ self.x + np.diag(self.ridge)

    def minimiser(self, theta: np.ndarray) -> np.ndarray:
        """About where G is 0."""
        if self.x.size >= _MANY:
            some = self.x[::_EIGHTH], self.y[::_EIGHTH]
            theta = _Search(*some, self.scores, self.scales / _EIGHTH, self.ridge / _EIGHTH).minimiser(theta)
        gradient, hessian = self.at(theta)
        for _ in range(_MOST_STEPS):
            length, scale = np.linalg.norm(gradient / self.scales), 1.0
            # In units of the noise.
            if not length > _SHORT:
                break
            try:
                step = -np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:
                break
            there = self.at(theta + step)
            while not (end := np.linalg.norm(there[0] / self.scales)) <= (1.0 - 0.25 * scale) * length:
                scale *= 0.5
                if scale < _LEAST_SCALE:
                    break
                there = self.at(theta + scale * step)
            if not end < length:
                break
            theta, (gradient, hessian) = theta + scale * step, there
        return theta


def _nearest(domain: DomainRange, theta: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """θ, or a point of Θ about next to it."""
    if not np.all(np.isfinite(theta)):
        return middle
    low, high = (np.array([float(side[k]) for side in domain.sides]) for k in (0, 1))
    if domain.size is None:
        return np.clip(theta, low, high)
    size = np.linalg.norm(theta, domain.power) / high[0]
    return theta if size < _INWARD else theta * (_INWARD / size)


def _rational(matrix: np.ndarray) -> fmpq_mat:
    numbers = [[Fraction(one) for one in row] for row in matrix.tolist()]
    return fmpq_mat([[fmpq(one.numerator, one.denominator) for one in row] for row in numbers])


def _above(number: Fraction) -> float:
    found = float(number)
    return found if found >= number else float(np.nextafter(found, np.inf))
