"""Scores s = ρ' of smooth losses with every rounding bounded, and weights w = ρ'', for draws in the space of gradients.

All that is said of how w may change is proved in `kngjax.losses.huber` and `kngjax.losses.kernels`, in real arithmetic;
here float64 rounds it to the side that is safe.
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from kngjax.core.balls import ball_of, precision, square
from kngjax.core.verified import EXP_ERROR, NEXT_TO_ZERO, SIGMOID_ERROR, UNIT, WIDER, Floats, exp, sigmoid
from kngjax.losses.secants import unimodal_secants
from kngjax.losses.verified_scores import AbstractSmoothScore, ScoresAndWeights, Tangents, fraction_of

# e^-x of larger numbers is not told from e^-700; and residuals beyond so many k count as that many.
_FARTHEST_EXPONENT, _FARTHEST = 690.0, 1e90
# Segments beyond it have no weight to speak of.
_LONGEST = 1e60


@dataclasses.dataclass(frozen=True)
class PseudoHuberScore(AbstractSmoothScore):
    """s = -r/√(1 + (r/k)²) = -k·ψ(r/k), ψ(q) = q/√(1 + q²), and w = (1 + (r/k)²)^(-3/2) with r = y - η.

    `floats` and `slopes`: |qψ'(q)| ≤ |ψ(q)|, so a relative error of q makes at most the same one of s: r and r/k cost u
    each. So do the square with 1 added, half of 2u in the root; the root, k·q and the quotient: together at most 7u
    with products of these.

    `at` and `tangents`: the computed r̂ is off by the error e and 1.01u|r̂|. The score has slope w ≤ 1, and |r|w ≤
    2k/√27, so that |s(r̂) - s(r)| ≤ e + uk; it is computed by four operations from r̂, of which the error is at most
    5uk. |∂ log w/∂η| = 3|r|/(k² + r²) is at most 3/(2k), and at most 3/|r|, so that r̂ changes w by no more than a
    factor exp(1.5e/k + 4u), and ten roundings follow. Residuals are cut at 10^90·k, where w is below 1e-269, and s
    within 1e-179·k of its limit. a = 3r/(k² + r²) has |∂a/∂η| ≤ 3/(k² + r²), and |r·∂a/∂η| ≤ 3/(2k).

    **Arguments:** `threshold`: k.
    """

    threshold: float

    @property
    def scale(self):
        return self.threshold

    def interval(self, predictor, response):
        return -Fraction(self.threshold), Fraction(self.threshold)

    def largest_slope(self, predictor):
        return Fraction(1)

    @property
    def steepness(self):
        return 1.5 / self.threshold * WIDER

    @property
    def largest_bend(self):
        """|ρ'''| = 3(|r|/k²)(1 + (r/k)²)^(-5/2) ≤ (3/2)(4/5)^(5/2)/k."""
        return 0.85866 / self.threshold

    @property
    def concavity(self):
        return 1.5

    def _residual(self, predictor: Floats, response: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip(response - predictor, -_FARTHEST * self.threshold, _FARTHEST * self.threshold)

    def floats(self, predictor, error, response):
        scaled = self._residual(predictor, response) / self.threshold
        score = -(self.threshold * scaled) / np.sqrt(1.0 + scaled * scaled)
        off = error + 8.0 * UNIT * np.abs(score) + 1e-20 * self.threshold + NEXT_TO_ZERO
        return score, np.minimum(off, 2.0 * self.threshold) * WIDER

    def slopes(self, predictor, radius, response):
        """ρ'' = (1 + q²)^(-3/2), and |ρ'''| < .85866/k; a relative error of q makes at most three of ρ''."""
        scaled = self._residual(predictor, response) / self.threshold
        at = 1.0 / np.sqrt(1.0 + scaled * scaled)
        slope = at * at * at
        off = (0.85866 * radius / self.threshold + 32.0 * UNIT * slope + 1e-29) * WIDER
        return np.maximum(slope - off, 0.0), np.minimum(slope + off, 1.0)

    def secants(self, predictor, error, radius, response):
        return unimodal_secants(self, predictor, error, radius, response, response, 0.85866 / self.threshold)

    def at(self, predictor, error, response):
        k, residual = self.threshold, self._residual(predictor, response)
        squares = 1.0 + np.square(residual / k)
        roots = np.sqrt(squares)
        change = 1.5 * error / k * WIDER + 4.0 * UNIT
        return ScoresAndWeights(
            -residual / roots,
            np.asarray((error + 7.0 * UNIT * k) * WIDER),
            1.0 / (squares * roots),
            _relative(change, 12.0),
        )

    def tangents(self, predictor, error, response):
        k, residual = self.threshold, self._residual(predictor, response)
        nearest = np.maximum(np.abs(residual) * (1.0 - 4.0 * UNIT) - error, 0.0)
        slope = 3.0 * residual / (k * k + residual * residual)
        off = (3.0 * error / k / k + 15.0 * UNIT / k) * WIDER
        return Tangents(slope, off, 3.0 / (k * k + nearest * nearest) * WIDER)

    def means(self, predictor, error, response):
        """Bounds the mean slope of s below: with p = |r|/k and q = p + U/k it is at least

        (p + q)/(√(1 + p²)√(1 + q²)(q√(1 + p²) + p√(1 + q²))), which falls with both.
        """
        k, residual = self.threshold, self._residual(predictor, response)
        near = (np.abs(residual) * (1.0 + 4.0 * UNIT) + error) * WIDER / k
        at_near = np.sqrt(1.0 + near * near)

        def bound(reach: Floats) -> Floats:
            far = np.minimum(near + np.maximum(reach / k, 1e-100), _LONGEST)
            at_far = np.sqrt(1.0 + far * far)
            mean = (near + far) / (at_near * at_far * (far * at_near + near * at_far)) / WIDER
            # Where float64 would overflow nothing is counted.
            return np.where(far < _LONGEST, mean, 0.0)

        return bound

    def in_balls(self, predictor, response):
        residual = response - predictor
        squares = 1 + square(residual / arb(self.threshold))
        root = squares.rsqrt()
        return -residual * root, root / squares

    def wider(self, times):
        return PseudoHuberScore(self.threshold * times)


@dataclasses.dataclass(frozen=True)
class LogisticScore(AbstractSmoothScore):
    """s = σ(t) - c and w = σ(t)(1 - σ(t))/h with t = (η - m)/h.

    Logistic regression has h = 1, m = 0 and c = y, smoothed quantiles have m = y and c = τ.

    **Arguments:** `bandwidth`: h. `level`: τ; None for logistic regression.

    For quantiles the computed t is off by 2.1u|t| besides e/h. |tσ'(t)| < .2240, so that this costs σ less than u/2; σ
    itself errs by 2^-49, and the difference by u. |σ'| ≤ ¼, and |σ''| < .0962251, as `kngjax.losses.kernels` proves.
    |∂ log w/∂t| = |1 - 2σ| < 1, and e^-|t| errs by 2^-50 relatively, so that w = e^-|t|/(1 + e^-|t|)² errs by 2^-50·2
    and five roundings; by 2.1u·700 more for quantiles, as beyond 700 there is no weight.
    """

    bandwidth: float = 1.0
    level: float | None = None

    @property
    def scale(self):
        return math.inf if self.level is None else self.bandwidth

    def interval(self, predictor, response):
        level = None if self.level is None else Fraction(self.level)
        return (Fraction(-1), Fraction(1)) if level is None else (-level, 1 - level)

    def largest_slope(self, predictor):
        return 1 / (4 * Fraction(self.bandwidth))

    @property
    def steepness(self):
        return 1.0 / self.bandwidth * WIDER

    @property
    def largest_bend(self):
        """|σ(1 - σ)(1 - 2σ)| ≤ √3/18 < .0962251."""
        return 0.0962251 / self.bandwidth / self.bandwidth * WIDER

    def _scaled(self, predictor: Floats, response: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled = predictor if self.level is None else (predictor - response) / self.bandwidth
            return np.clip(scaled, -_FARTHEST, _FARTHEST)

    def floats(self, predictor, error, response):
        probability = sigmoid(self._scaled(predictor, response))
        score = probability - (response if self.level is None else self.level)
        off = 0.25 * error / self.bandwidth + SIGMOID_ERROR * probability + UNIT * np.abs(score) + UNIT + NEXT_TO_ZERO
        return score, np.minimum(off, 1.0) * WIDER

    def slopes(self, predictor, radius, response):
        size = exp(-np.abs(self._scaled(predictor, response)))
        slope = size / ((1.0 + size) * (1.0 + size))
        # A relative error 2u of t makes at most |tσ''(t)|·2u < u of the slope.
        off = 0.0962251 * radius / self.bandwidth + 4.0 * EXP_ERROR * slope + UNIT + NEXT_TO_ZERO
        return np.maximum(slope - off * WIDER, 0.0) / self.bandwidth / WIDER, (slope + off) / self.bandwidth * WIDER

    def secants(self, predictor, error, radius, response):
        mode = np.zeros_like(response) if self.level is None else response
        return unimodal_secants(self, predictor, error, radius, response, mode, 0.0962251 / self.bandwidth**2)

    def at(self, predictor, error, response):
        scaled = self._scaled(predictor, response)
        size = exp(-np.abs(scaled))
        more = 1.0 + size
        score = np.where(scaled < 0.0, size, 1.0) / more - (response if self.level is None else self.level)
        off = min(0.25 * error / self.bandwidth + SIGMOID_ERROR + 3.0 * UNIT, 1.0) * WIDER
        change = error / self.bandwidth * WIDER + (0.0 if self.level is None else 2.1 * UNIT * 700.0) + 2.0 * EXP_ERROR
        return ScoresAndWeights(score, np.asarray(off), size / (more * more) / self.bandwidth, _relative(change, 8.0))

    def tangents(self, predictor, error, response):
        """a = -tanh(t/2)/h, |∂a/∂η| ≤ 1/(2h²) and |t·tanh'(t/2)/2| < ½; m = tanh(t/2)/(th²) falls with |t| from ½."""
        h, scaled = self.bandwidth, self._scaled(predictor, response)
        size = exp(-np.abs(scaled))
        half = (1.0 - size) / (1.0 + size)
        off = (0.5 * error / h + EXP_ERROR + 6.0 * UNIT) / h * WIDER
        moved = (4.0 * UNIT * np.abs(scaled) + error / h) * WIDER
        nearest = np.abs(scaled) - moved
        # tanh is that of a |t| that may be smaller by so much, and has half of the slope of t there.
        bend = (half + 0.5 * moved + 2.0 * EXP_ERROR) / np.maximum(nearest, 1e-3) * WIDER
        bend = np.where(nearest > 1e-3, np.minimum(bend, 0.5), 0.5)
        return Tangents(-np.copysign(half, scaled) / h, off, bend / h / h * WIDER)

    def means(self, predictor, error, response):
        """Bounds the mean slope of s below: it is at least (a/h)·((D - 1)/U')/((1 + a)(D + a)).

        Here a = e^-|t|, U' = U/h and D ≤ e^U', and the mean slope is at least (σ(|t| + U') - σ(|t|))/U. We take
        D = 1 + U' + U'²/2 + U'³/6 + U'⁴/24. As D ≥ a² this rises with a, which is rounded down.
        """
        h, scaled = self.bandwidth, self._scaled(predictor, response)
        farthest = (np.abs(scaled) * (1.0 + 4.0 * UNIT) + error / h) * WIDER
        size = np.where(farthest < _FARTHEST_EXPONENT, exp(-farthest) / WIDER, 0.0)
        weight = size / (1.0 + size) / h / WIDER

        def bound(reach: Floats) -> Floats:
            step, quotient, series = _series(reach / h * WIDER)
            return np.where(step < _LONGEST, weight * quotient / (series + size) / WIDER, 0.0)

        return bound

    def in_balls(self, predictor, response):
        place = predictor if self.level is None else (predictor - response) / arb(self.bandwidth)
        # Read once: the precision is that of all threads, of which another may set it meanwhile.
        digits, away = ctx.prec, abs(place)
        tail = (-away).exp() if not away > 2 * digits else arb(0.5, 0.5) * arb(2) ** (-2 * digits)
        # σ(-|t|), from which nothing cancels; a ball about 0 is on neither side.
        beyond = tail / (1 + tail)
        share = beyond if place < 0 else 1 - beyond if place > 0 else 1 / (1 + (-place).exp())
        weight = beyond * (1 - beyond)
        if self.level is None:
            return share - response, weight
        return share - arb(self.level), weight / arb(self.bandwidth)

    def wider(self, times):
        return self if self.level is None else LogisticScore(self.bandwidth * times, self.level)


@dataclasses.dataclass(frozen=True)
class PoissonScore(AbstractSmoothScore):
    """s = e^η - y and w = e^η, so that ∂w/∂η = w, a = 1 and m = 0. Beyond η = 700 nothing is known of either."""

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

    @property
    def steepness(self):
        return 1.0

    @property
    def largest_bend(self):
        return None

    def floats(self, predictor, error, response):
        value = exp(predictor)
        score = value - response
        # e^(η + h) - e^η ≤ e^η·2h for h ≤ 1.
        moved = np.where(error <= 1.0, 2.0 * error, np.inf)
        return score, (value * (moved + EXP_ERROR) + UNIT * np.abs(score) + NEXT_TO_ZERO) * WIDER

    def slopes(self, predictor, radius, response):
        value = exp(predictor)
        off = value * (np.where(radius <= 1.0, 2.0 * radius, np.inf) + EXP_ERROR) * WIDER + NEXT_TO_ZERO
        return np.maximum(value - off, 0.0) / WIDER, (value + off) * WIDER

    def at(self, predictor, error, response):
        weight = exp(predictor)
        score = weight - response
        relative = _relative(error, 0.0) + 4.0 * EXP_ERROR
        off = (weight * relative + UNIT * np.abs(score)) * WIDER + NEXT_TO_ZERO
        return ScoresAndWeights(score, off, weight, relative)

    def tangents(self, predictor, error, response):
        return Tangents(np.ones_like(predictor), 0.0, np.zeros_like(predictor))

    def means(self, predictor, error, response):
        """(w(1 - e^-U))/U ≥ w((D - 1)/U)/D, with D ≤ e^U as above."""
        lowest = predictor - (error + 4.0 * UNIT * np.abs(predictor)) * WIDER
        weight = np.where(lowest > -_FARTHEST_EXPONENT, exp(lowest) / WIDER, 0.0)
        weight = np.where(np.isfinite(weight), weight, 0.0)

        def bound(reach: Floats) -> Floats:
            step, quotient, series = _series(reach)
            return np.where(step < _LONGEST, weight * quotient / series / WIDER, 0.0)

        return bound

    def bends(self, predictor, error, response):
        """we^U, where e^v ≤ (2 + v)/(2 - v) for 0 ≤ v < 2, to the 64th power."""
        weight = exp(predictor + (error + 4.0 * UNIT * np.abs(predictor)) * WIDER) * WIDER

        def bound(reach: Floats) -> Floats:
            part = np.minimum(reach * (1.0 / 64.0), 1.5)
            power = (2.0 + part) / (2.0 - part)
            for _ in range(6):
                power = power * power
            return np.where(part < 1.5, weight * power * WIDER, np.inf)

        return bound

    def in_balls(self, predictor, response):
        weight = predictor.exp()
        return weight - response, weight


def _relative(change: float, roundings: float) -> float:
    """e^c - 1 ≤ c + c² for c ≤ 1, and so many roundings; beyond, nothing is known."""
    return (change + change * change) * WIDER + roundings * UNIT * WIDER if change <= 1.0 else math.inf


def _series(step: Floats) -> tuple[Floats, Floats, Floats]:
    """U up to 10^60, (D - 1)/U and D."""
    step = np.minimum(step, _LONGEST)
    quotient = 1.0 + step * (0.5 + step * (1.0 / 6.0 + step * (1.0 / 24.0)))
    return step, quotient, 1.0 + step * quotient
