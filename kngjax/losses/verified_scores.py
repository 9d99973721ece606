"""Scores of one record, s = ∂ρ/∂η, of which every rounding is bounded: in float64, in balls, and their ranges exactly.

Bounds of errors are themselves computed in float64, and then widened by more than what that may have rounded away.
"""

import abc
import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from kngjax.core.balls import ball_of
from kngjax.core.verified import UNIT, WIDER, Floats

Interval = tuple[Fraction, Fraction]
Bound = Callable[[Floats], Floats]
# Weights may be off by so much, besides their relative error. It is more than e^-690 times 2^100.
NO_WEIGHT = 1e-260


class AbstractVerifiedScore(abc.ABC):
    """s(η, y), which rises with η by at most `largest_slope` times as much. Public: it holds what a loss is made of."""

    @abc.abstractmethod
    def interval(self, predictor: Interval | None, response: Interval | None) -> Interval | None:
        """Returns two numbers between which s lies for η and y in these intervals; None means all real numbers.

        None where nothing bounds it.
        """

    @abc.abstractmethod
    def largest_slope(self, predictor: Interval | None) -> Fraction | None:
        """Bounds (s(η) - s(η'))/(η - η') from above, for all η and η' in this interval and every y."""

    @abc.abstractmethod
    def floats(self, predictor: Floats, error: Floats, response: Floats) -> tuple[Floats, Floats]:
        """s for each record, and how far it may be off for any η that is at most `error` away from the predictor."""

    @abc.abstractmethod
    def slopes(self, predictor: Floats, radius: Floats, response: Floats) -> tuple[Floats, Floats]:
        """Bounds (s(η) - s(η'))/(η - η') for η, η' within the radius by two numbers, not negative."""

    def secants(self, predictor: Floats, error: Floats, radius: Floats, response: Floats) -> tuple[Floats, Floats]:
        """Bounds (s(η) - s(η₀))/(η - η₀) for η within the radius of η₀ by two numbers, not negative.

        η₀ itself is at most `error` away from the predictor.
        """
        return self.slopes(predictor, error + radius, response)

    @abc.abstractmethod
    def ball(self, predictor: arb, response: Fraction) -> arb:
        """A ball that contains s for each η in this one."""

    @abc.abstractmethod
    def slope_ball(self, predictor: arb, response: Fraction) -> arb:
        """A ball that contains (s(η) - s(η'))/(η - η') for all η and η' in this one."""

    def extended(self, interval: Interval) -> "AbstractVerifiedScore":
        """The score at the number of this interval nearest to η: that of a loss continued by its tangents."""
        return TangentScore(self, *interval)


class ScoresAndWeights(NamedTuple):
    """s and w of each record. Private where the records are.

    **Arguments:** `score_error`: how far s may be off. `weight_error`: how far w may be off, relatively, besides
    `NO_WEIGHT`; infinite where nothing is known.
    """

    score: Floats
    score_error: Floats
    weight: Floats
    weight_error: float

    def __repr__(self) -> str:
        return "<ScoresAndWeights; OWNER ONLY>"


class Tangents(NamedTuple):
    """a and m with log w(η + u) ≥ log w(η) + au - ½mu² for every u. Private where the records are.

    **Arguments:** `slope`: a. `error`: how far it may be off. `bend`: m, rounded up.
    """

    slope: Floats
    error: float
    bend: Floats

    def __repr__(self) -> str:
        return "<Tangents; OWNER ONLY>"


class AbstractSmoothScore(AbstractVerifiedScore):
    """s(η, y) of a strictly convex loss, its slope w = ∂s/∂η > 0, and bounds of how w changes. Public.

    In all of it η is at most `error` away from the predictor, and responses are exact.

    - `steepness`: at least |∂ log w/∂η| everywhere, and so at least |a| of every tangent.
    - `largest_bend`: at least |∂w/∂η| everywhere; None where it has no bound, but `bends` on every segment.
    - `concavity`: c such that Σh_i·(log w_i - log w_i(η_i + u_i)) ≤ F(Σh_i(½m_i u_i² - a_i u_i)) for h ≥ 0 of sum d,
      with F(x) = cd·log(1 + x/(cd)); infinite where F is the identity.
    """

    @property
    @abc.abstractmethod
    def steepness(self) -> float:
        """L."""

    @property
    @abc.abstractmethod
    def largest_bend(self) -> float | None:
        """K."""

    @property
    def concavity(self) -> float:
        """c."""
        return math.inf

    @abc.abstractmethod
    def at(self, predictor: Floats, error: float, response: Floats) -> ScoresAndWeights:
        """s and w."""

    @abc.abstractmethod
    def tangents(self, predictor: Floats, error: float, response: Floats) -> Tangents:
        """a and m."""

    @abc.abstractmethod
    def means(self, predictor: Floats, error: float, response: Floats) -> Bound:
        """A function of U: at most every (s(η + u) - s(η))/u with 0 < |u| ≤ U, and not negative."""

    def bends(self, predictor: Floats, error: float, response: Floats) -> Bound:
        """A function of U: at least every |∂w/∂η| at η + u with |u| ≤ U; infinite where float64 does not know."""
        largest = math.inf if self.largest_bend is None else self.largest_bend
        return lambda reach: np.full_like(reach, largest)

    @abc.abstractmethod
    def in_balls(self, predictor: arb, response: arb) -> tuple[arb, arb]:
        """Balls that contain s and w for each η in this one."""

    def ball(self, predictor: arb, response: Fraction) -> arb:
        return self.in_balls(predictor, ball_of(response))[0]

    def slope_ball(self, predictor: arb, response: Fraction) -> arb:
        return self.in_balls(predictor, ball_of(response))[1]

    def wider(self, times: float) -> "AbstractSmoothScore":
        """Widens the scale on which the loss bends so many times: for searches, of which nothing is proved."""
        return self

    @property
    def scale(self) -> float:
        """The scale of η on which the loss bends; infinite where `wider` knows no other."""
        return math.inf


@dataclasses.dataclass(frozen=True)
class SquaredScore(AbstractVerifiedScore):
    """s = η - y."""

    def interval(self, predictor, response):
        if predictor is None or response is None:
            return None
        return predictor[0] - response[1], predictor[1] - response[0]

    def largest_slope(self, predictor):
        return Fraction(1)

    def floats(self, predictor, error, response):
        score = predictor - response
        return score, (error + UNIT * np.abs(score)) * WIDER

    def slopes(self, predictor, radius, response):
        return np.ones_like(predictor), np.ones_like(predictor)

    def ball(self, predictor, response):
        return predictor - ball_of(response)

    def slope_ball(self, predictor, response):
        return arb(1)


@dataclasses.dataclass(frozen=True)
class HuberScore(AbstractVerifiedScore):
    """s = -r for |r| ≤ k, and ±k beyond, with r = y - η. **Arguments:** `threshold`: k."""

    threshold: float

    def interval(self, predictor, response):
        return -Fraction(self.threshold), Fraction(self.threshold)

    def largest_slope(self, predictor):
        return Fraction(1)

    def floats(self, predictor, error, response):
        residual = response - predictor
        error = (error + UNIT * np.abs(residual)) * WIDER
        # Beyond ±k the score is ±k itself.
        beyond = np.abs(residual) - error > self.threshold * WIDER
        return -np.clip(residual, -self.threshold, self.threshold), np.where(beyond, 0.0, error)

    def slopes(self, predictor, radius, response):
        residual = response - predictor
        radius = (radius + UNIT * np.abs(residual)) * WIDER
        inside = np.abs(residual) + radius < self.threshold / WIDER
        beyond = np.abs(residual) - radius > self.threshold * WIDER
        return np.where(inside, 1.0, 0.0), np.where(beyond, 0.0, 1.0)

    def ball(self, predictor, response):
        threshold = arb(self.threshold)
        return (predictor - ball_of(response)).max(-threshold).min(threshold)

    def slope_ball(self, predictor, response):
        size = abs(predictor - ball_of(response))
        if size < arb(self.threshold):
            return arb(1)
        return arb(0) if size > arb(self.threshold) else arb(0.5, 0.5)


@dataclasses.dataclass(frozen=True)
class ExpectileScore(AbstractVerifiedScore):
    """s = -2wr with r = y - η, w = τ for r ≥ 0 and 1 - τ for r < 0. **Arguments:** `level`: τ.

    1 - τ is rounded in float64, relatively by u at most where τ ≤ ½; where τ > ½ it is exact.
    """

    level: float

    def _weights(self) -> tuple[Fraction, Fraction]:
        return 2 * (1 - Fraction(self.level)), 2 * Fraction(self.level)

    def interval(self, predictor, response):
        if predictor is None or response is None:
            return None
        below, above = self._weights()
        ends = predictor[0] - response[1], predictor[1] - response[0]
        least, most = (end * (below if end > 0 else above) for end in ends)
        return least, most

    def largest_slope(self, predictor):
        return max(self._weights())

    def floats(self, predictor, error, response):
        residual = response - predictor
        score = -2.0 * np.where(residual < 0.0, 1.0 - self.level, self.level) * residual
        steepest = 2.0 * max(self.level, 1.0 - self.level) * WIDER
        return score, (steepest * (error + UNIT * np.abs(residual)) + 3.0 * UNIT * np.abs(score)) * WIDER

    def slopes(self, predictor, radius, response):
        residual = response - predictor
        radius = (radius + UNIT * np.abs(residual)) * WIDER
        below, above = 2.0 * (1.0 - self.level), 2.0 * self.level
        least = np.where(residual > radius, above, np.where(residual < -radius, below, min(below, above)))
        most = np.where(residual > radius, above, np.where(residual < -radius, below, max(below, above)))
        return least / WIDER, most * WIDER

    def ball(self, predictor, response):
        place = predictor - ball_of(response)
        below, above = map(ball_of, self._weights())
        return below * place.max(arb(0)) + above * place.min(arb(0))

    def slope_ball(self, predictor, response):
        place = predictor - ball_of(response)
        below, above = map(ball_of, self._weights())
        if place > 0 or place < 0:
            return below if place > 0 else above
        return below.union(above)


@dataclasses.dataclass(frozen=True)
class TangentScore(AbstractVerifiedScore):
    """The score at the number of [lower, upper] nearest to η: of `kngjax.losses.extended.TangentExtension`.

    **Arguments:** `inner`: the score. `lower`, `upper`: the ends, exactly.
    """

    inner: AbstractVerifiedScore
    lower: Fraction
    upper: Fraction

    def extended(self, interval):
        """The score at the nearest number of that interval, taken in this one: where they meet, in both together."""
        lower, upper = max(self.lower, interval[0]), min(self.upper, interval[1])
        return TangentScore(self.inner, lower, upper) if lower < upper else TangentScore(self, *interval)

    def interval(self, predictor, response):
        return self.inner.interval((self.lower, self.upper), response)

    def largest_slope(self, predictor):
        return self.inner.largest_slope((self.lower, self.upper))

    def _places(self, predictor: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
        """The nearest places, how far those of numbers within `reach` may lie from them, and whether all lie in or out.

        Well inside nothing is moved: what ends that lie far off are rounded by would hide what decides there.
        """
        lower, upper = float(self.lower), float(self.upper)
        # How far rounding moves the ends at most, with what comparisons with them round away.
        moved = 4.0 * UNIT * max(abs(lower), abs(upper))
        least, most = predictor - (reach + moved), predictor + (reach + moved)
        inside = (least > lower) & (most < upper)
        off = np.where(inside, reach, np.minimum(reach, upper - lower) + moved)
        return np.clip(predictor, lower, upper), off, inside, (most < lower) | (least > upper)

    def floats(self, predictor, error, response):
        place, off, *_ = self._places(predictor, error)
        return self.inner.floats(place, off, response)

    def slopes(self, predictor, radius, response):
        place, off, inside, outside = self._places(predictor, radius)
        least, most = self.inner.slopes(place, off, response)
        return np.where(inside, least, 0.0), np.where(outside, 0.0, most)

    def secants(self, predictor, error, radius, response):
        reach = (error + radius) * WIDER
        place, _, inside, _ = self._places(predictor, reach)
        found = self.inner.secants(place, error, radius, response)
        if inside.all():
            return found
        others = self.slopes(predictor, reach, response)
        return np.where(inside, found[0], others[0]), np.where(inside, found[1], others[1])

    def _nearest(self, predictor: arb) -> arb:
        return predictor.max(ball_of(self.lower)).min(ball_of(self.upper))

    def ball(self, predictor, response):
        return self.inner.ball(self._nearest(predictor), response)

    def slope_ball(self, predictor, response):
        if predictor < ball_of(self.lower) or predictor > ball_of(self.upper):
            return arb(0)
        slope = self.inner.slope_ball(self._nearest(predictor), response)
        inside = predictor > ball_of(self.lower) and predictor < ball_of(self.upper)
        return slope if inside else slope.union(arb(0))


def number(setting: Any) -> float:
    """A public number of a loss as the float64 number that it is: not by JAX, which may have float32 alone."""
    return float(np.asarray(setting, np.float64))


def fraction_of(number: arb) -> Fraction:
    """The number at the middle of a ball, exactly."""
    digits, exponent = number.mid().man_exp()
    return Fraction(int(digits)) * Fraction(2) ** int(exponent)
