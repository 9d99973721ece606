"""Scores of one record, s = ∂ρ/∂η, of which every rounding is bounded: in float64, in balls, and their ranges exactly.

Bounds of errors are themselves computed in float64, and then widened by more than what that may have rounded away.
"""

import abc
import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from kngjax.core.balls import ball_of, precision, square
from kngjax.core.verified import EXP_ERROR, NEXT_TO_ZERO, SIGMOID_ERROR, UNIT, Floats, exp, sigmoid
from kngjax.losses.secants import unimodal_secants

Interval = tuple[Fraction, Fraction]

# More than the roundings of a bound's own few operations.
_WIDER = 1.0 + 2.0**-40


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
        return score, (error + UNIT * np.abs(score)) * _WIDER

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
        error = (error + UNIT * np.abs(residual)) * _WIDER
        # Beyond ±k the score is ±k itself.
        beyond = np.abs(residual) - error > self.threshold * _WIDER
        return -np.clip(residual, -self.threshold, self.threshold), np.where(beyond, 0.0, error)

    def slopes(self, predictor, radius, response):
        residual = response - predictor
        radius = (radius + UNIT * np.abs(residual)) * _WIDER
        inside = np.abs(residual) + radius < self.threshold / _WIDER
        beyond = np.abs(residual) - radius > self.threshold * _WIDER
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
        steepest = 2.0 * max(self.level, 1.0 - self.level) * _WIDER
        return score, (steepest * (error + UNIT * np.abs(residual)) + 3.0 * UNIT * np.abs(score)) * _WIDER

    def slopes(self, predictor, radius, response):
        residual = response - predictor
        radius = (radius + UNIT * np.abs(residual)) * _WIDER
        below, above = 2.0 * (1.0 - self.level), 2.0 * self.level
        least = np.where(residual > radius, above, np.where(residual < -radius, below, min(below, above)))
        most = np.where(residual > radius, above, np.where(residual < -radius, below, max(below, above)))
        return least / _WIDER, most * _WIDER

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
class PseudoHuberScore(AbstractVerifiedScore):
    """s = -k·ψ(r/k), ψ(q) = q/√(1 + q²), with r = y - η. **Arguments:** `threshold`: k.

    |qψ'(q)| ≤ |ψ(q)|, so a relative error of q makes at most the same one of s: r and r/k cost u each. So do the
    square with 1 added, half of 2u in the root; the root, k·q and the quotient: together at most 7u with products of
    these. Where |q| is more than 10^10, ψ is ±1 but for 10^-20.
    """

    threshold: float

    def interval(self, predictor, response):
        return -Fraction(self.threshold), Fraction(self.threshold)

    def largest_slope(self, predictor):
        return Fraction(1)

    def _scaled(self, predictor: np.ndarray, response: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.clip((response - predictor) / self.threshold, -1e10, 1e10)

    def floats(self, predictor, error, response):
        scaled = self._scaled(predictor, response)
        score = -(self.threshold * scaled) / np.sqrt(1.0 + scaled * scaled)
        off = error + 8.0 * UNIT * np.abs(score) + 1e-20 * self.threshold + NEXT_TO_ZERO
        return score, np.minimum(off, 2.0 * self.threshold) * _WIDER

    def slopes(self, predictor, radius, response):
        """ρ'' = (1 + q²)^(-3/2), and |ρ'''| < .85866/k; a relative error of q makes at most three of ρ''."""
        scaled = self._scaled(predictor, response)
        at = 1.0 / np.sqrt(1.0 + scaled * scaled)
        slope = at * at * at
        off = (0.85866 * radius / self.threshold + 32.0 * UNIT * slope + 1e-29) * _WIDER
        return np.maximum(slope - off, 0.0), np.minimum(slope + off, 1.0)

    def secants(self, predictor, error, radius, response):
        return unimodal_secants(self, predictor, error, radius, response, response, 0.85866 / self.threshold)

    def ball(self, predictor, response):
        residual = predictor - ball_of(response)
        return residual / (1 + square(residual / arb(self.threshold))).sqrt()

    def slope_ball(self, predictor, response):
        at = 1 / (1 + square((predictor - ball_of(response)) / arb(self.threshold)))
        return at * at.sqrt()


@dataclasses.dataclass(frozen=True)
class LogisticScore(AbstractVerifiedScore):
    """s = σ(t) - c with t = (η - m)/h: logistic regression has h = 1, m = 0 and c = y, quantiles have m = y and c = τ.

    **Arguments:** `bandwidth`: h. `level`: τ; None for logistic regression.

    t is known but for 2u relatively, and |tσ'(t)| < .2240 costs less than u/2; σ itself 2^-49, the difference u.
    |σ'| ≤ ¼, and |σ''| < .0962251, as `kngjax.losses.kernels` proves.
    """

    bandwidth: float = 1.0
    level: float | None = None

    def interval(self, predictor, response):
        level = None if self.level is None else Fraction(self.level)
        return (Fraction(-1), Fraction(1)) if level is None else (-level, 1 - level)

    def largest_slope(self, predictor):
        return 1 / (4 * Fraction(self.bandwidth))

    def _scaled(self, predictor: np.ndarray, response: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return predictor if self.level is None else (predictor - response) / self.bandwidth

    def floats(self, predictor, error, response):
        probability = sigmoid(self._scaled(predictor, response))
        score = probability - (response if self.level is None else self.level)
        off = 0.25 * error / self.bandwidth + SIGMOID_ERROR * probability + UNIT * np.abs(score) + UNIT + NEXT_TO_ZERO
        return score, np.minimum(off, 1.0) * _WIDER

    def slopes(self, predictor, radius, response):
        size = exp(-np.abs(self._scaled(predictor, response)))
        slope = size / ((1.0 + size) * (1.0 + size))
        # A relative error 2u of t makes at most |tσ''(t)|·2u < u of the slope.
        off = 0.0962251 * radius / self.bandwidth + 4.0 * EXP_ERROR * slope + UNIT + NEXT_TO_ZERO
        return np.maximum(slope - off * _WIDER, 0.0) / self.bandwidth / _WIDER, (slope + off) / self.bandwidth * _WIDER

    def secants(self, predictor, error, radius, response):
        mode = np.zeros_like(response) if self.level is None else response
        return unimodal_secants(self, predictor, error, radius, response, mode, 0.0962251 / self.bandwidth**2)

    def _place(self, predictor: arb, response: Fraction) -> arb:
        return predictor if self.level is None else (predictor - ball_of(response)) / arb(self.bandwidth)

    def ball(self, predictor, response):
        return _sigmoid_ball(self._place(predictor, response)) - (
            ball_of(response) if self.level is None else arb(self.level)
        )

    def slope_ball(self, predictor, response):
        probability = _sigmoid_ball(self._place(predictor, response))
        return probability * (1 - probability) / arb(self.bandwidth)


@dataclasses.dataclass(frozen=True)
class PoissonScore(AbstractVerifiedScore):
    """s = e^η - y, for η ≤ 700."""

    def interval(self, predictor, response):
        if predictor is None or response is None or predictor[1] > 700:
            return None
        with precision(128):
            least, most = (ball_of(end).exp() for end in predictor)
            return fraction_of(least.lower()) - response[1], fraction_of(most.upper()) - response[0]

    def largest_slope(self, predictor):
        if predictor is None or predictor[1] > 700:
            return None
        with precision(128):
            return fraction_of(ball_of(predictor[1]).exp().upper())

    def floats(self, predictor, error, response):
        value = exp(predictor)
        score = value - response
        # e^(η + h) - e^η ≤ e^η·2h for h ≤ 1.
        moved = np.where(error <= 1.0, 2.0 * error, np.inf)
        return score, (value * (moved + EXP_ERROR) + UNIT * np.abs(score) + NEXT_TO_ZERO) * _WIDER

    def slopes(self, predictor, radius, response):
        value = exp(predictor)
        off = value * (np.where(radius <= 1.0, 2.0 * radius, np.inf) + EXP_ERROR) * _WIDER + NEXT_TO_ZERO
        return np.maximum(value - off, 0.0) / _WIDER, (value + off) * _WIDER

    def ball(self, predictor, response):
        return predictor.exp() - ball_of(response)

    def slope_ball(self, predictor, response):
        return predictor.exp()


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
        reach = (error + radius) * _WIDER
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


def _sigmoid_ball(place: arb) -> arb:
    """1/(1 + e^-t); next to its limits, where e^-t is beyond any use, a ball 2^-precision wide about them."""
    # Read once: the precision is that of all threads, and another library's may set it meanwhile.
    digits = ctx.prec
    if abs(place) > 2 * digits:
        return arb(0.5) + (1 if place > 0 else -1) * arb(0.5) + arb(0, arb(2) ** -digits)
    return 1 / (1 + (-place).exp())
