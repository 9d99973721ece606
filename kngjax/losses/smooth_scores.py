"""Bounds every rounding of scores s = ρ' and weights w = ρ'', on which draws in the space of gradients rest.

It also bounds how w may change: all that is said of log w and of ρ''' here is proved in `kngjax.losses.huber` and
`kngjax.losses.kernels`, in real arithmetic; here float64 rounds it to the side that is safe.
"""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from kngjax.core.verified import EXP_ERROR, NEXT_TO_ZERO, SIGMOID_ERROR, UNIT, Floats, exp

# More than the roundings of a bound's own few dozen operations.
_WIDER = 1.0 + 2.0**-40
# Weights may be off by so much, besides their relative error. It is more than e^-690 times 2^100.
NO_WEIGHT = 1e-260
# e^-x of larger numbers is not told from e^-700; and residuals beyond so many k count as that many.
_FARTHEST_EXPONENT, _FARTHEST = 690.0, 1e90
# Segments beyond it have no weight to speak of.
_LONGEST = 1e60
Bound = Callable[[Floats], Floats]


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


class AbstractSmoothScore(abc.ABC):
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

    def wider(self, times: float) -> "AbstractSmoothScore":
        """Widens the scale on which the loss bends so many times: for searches, of which nothing is proved."""
        return self

    @property
    def scale(self) -> float:
        """The scale of η on which the loss bends; infinite where `wider` knows no other."""
        return math.inf


@dataclasses.dataclass(frozen=True)
class SmoothPseudoHuber(AbstractSmoothScore):
    """s = -r/√(1 + (r/k)²) and w = (1 + (r/k)²)^(-3/2) with r = y - η. **Arguments:** `threshold`: k.

    The computed r̂ is off by the error e and 1.01u|r̂|. The score has slope w ≤ 1, and |r|w ≤ 2k/√27, so that
    |s(r̂) - s(r)| ≤ e + uk; it is computed by four operations from r̂, of which the error is at most 5uk. |∂ log w/∂η| =
    3|r|/(k² + r²) is at most 3/(2k), and at most 3/|r|, so that r̂ changes w by no more than a factor exp(1.5e/k + 4u),
    and ten roundings follow. Residuals are cut at 10^90·k, where w is below 1e-269, and s within 1e-179·k of its limit.
    a = 3r/(k² + r²) has |∂a/∂η| ≤ 3/(k² + r²), and |r·∂a/∂η| ≤ 3/(2k).
    """

    threshold: float

    @property
    def steepness(self):
        return 1.5 / self.threshold * _WIDER

    @property
    def largest_bend(self):
        """|ρ'''| = 3(|r|/k²)(1 + (r/k)²)^(-5/2) ≤ (3/2)(4/5)^(5/2)/k."""
        return 0.85866 / self.threshold

    @property
    def concavity(self):
        return 1.5

    def _residual(self, predictor: Floats, response: Floats) -> Floats:
        return np.clip(response - predictor, -_FARTHEST * self.threshold, _FARTHEST * self.threshold)

    def at(self, predictor, error, response):
        k, residual = self.threshold, self._residual(predictor, response)
        squares = 1.0 + np.square(residual / k)
        roots = np.sqrt(squares)
        change = 1.5 * error / k * _WIDER + 4.0 * UNIT
        return ScoresAndWeights(
            -residual / roots,
            np.asarray((error + 7.0 * UNIT * k) * _WIDER),
            1.0 / (squares * roots),
            _relative(change, 12.0),
        )

    def tangents(self, predictor, error, response):
        k, residual = self.threshold, self._residual(predictor, response)
        nearest = np.maximum(np.abs(residual) * (1.0 - 4.0 * UNIT) - error, 0.0)
        slope = 3.0 * residual / (k * k + residual * residual)
        off = (3.0 * error / k / k + 15.0 * UNIT / k) * _WIDER
        return Tangents(slope, off, 3.0 / (k * k + nearest * nearest) * _WIDER)

    def means(self, predictor, error, response):
        """Bounds the mean slope of s below: with p = |r|/k and q = p + U/k it is at least

        (p + q)/(√(1 + p²)√(1 + q²)(q√(1 + p²) + p√(1 + q²))), which falls with both.
        """
        k, residual = self.threshold, self._residual(predictor, response)
        near = (np.abs(residual) * (1.0 + 4.0 * UNIT) + error) * _WIDER / k
        at_near = np.sqrt(1.0 + near * near)

        def bound(reach: Floats) -> Floats:
            far = np.minimum(near + np.maximum(reach / k, 1e-100), _LONGEST)
            at_far = np.sqrt(1.0 + far * far)
            mean = (near + far) / (at_near * at_far * (far * at_near + near * at_far)) / _WIDER
            # Where float64 would overflow nothing is counted.
            return np.where(far < _LONGEST, mean, 0.0)

        return bound

    def in_balls(self, predictor, response):
        residual = response - predictor
        square = 1 + (residual / arb(self.threshold)) ** 2
        root = square.rsqrt()
        return -residual * root, root / square

    def wider(self, times):
        return SmoothPseudoHuber(self.threshold * times)

    @property
    def scale(self):
        return self.threshold


@dataclasses.dataclass(frozen=True)
class SmoothLogistic(AbstractSmoothScore):
    """s = σ(t) - c and w = σ(t)(1 - σ(t))/h, t = (η - m)/h: logistic regression has h = 1, m = 0 and c = y, quantiles
    have m = y and c = τ.

    **Arguments:** `bandwidth`: h. `level`: τ; None for logistic regression.

    For quantiles the computed t is off by 2.1u|t| besides e/h. |tσ'(t)| < .2240, so that this costs σ less than u/2; σ
    itself errs by 2^-49, and the difference by u. |∂ log w/∂t| = |1 - 2σ| < 1, and e^-|t| errs by 2^-50 relatively, so
    that w = e^-|t|/(1 + e^-|t|)² errs by 2^-50·2 and five roundings; by 2.1u·700 more for quantiles, as beyond 700
    there is no weight.
    """

    bandwidth: float = 1.0
    level: float | None = None

    @property
    def steepness(self):
        return 1.0 / self.bandwidth * _WIDER

    @property
    def largest_bend(self):
        """|σ(1 - σ)(1 - 2σ)| ≤ √3/18 < .0962251."""
        return 0.0962251 / self.bandwidth / self.bandwidth * _WIDER

    def _scaled(self, predictor: Floats, response: Floats) -> Floats:
        scaled = predictor if self.level is None else (predictor - response) / self.bandwidth
        return np.clip(scaled, -_FARTHEST, _FARTHEST)

    @property
    def _of_scaling(self) -> float:
        """How far t is off relatively, without the error of the predictor."""
        return 0.0 if self.level is None else 2.1 * UNIT

    def at(self, predictor, error, response):
        scaled = self._scaled(predictor, response)
        size = exp(-np.abs(scaled))
        more = 1.0 + size
        score = np.where(scaled < 0.0, size, 1.0) / more - (response if self.level is None else self.level)
        off = min(0.25 * error / self.bandwidth + SIGMOID_ERROR + 3.0 * UNIT, 1.0) * _WIDER
        change = error / self.bandwidth * _WIDER + self._of_scaling * 700.0 + 2.0 * EXP_ERROR
        return ScoresAndWeights(score, np.asarray(off), size / (more * more) / self.bandwidth, _relative(change, 8.0))

    def tangents(self, predictor, error, response):
        """a = -tanh(t/2)/h, |∂a/∂η| ≤ 1/(2h²) and |t·tanh'(t/2)/2| < ½; m = tanh(t/2)/(th²) falls with |t| from ½."""
        h, scaled = self.bandwidth, self._scaled(predictor, response)
        size = exp(-np.abs(scaled))
        half = (1.0 - size) / (1.0 + size)
        off = (0.5 * error / h + EXP_ERROR + 6.0 * UNIT) / h * _WIDER
        moved = (4.0 * UNIT * np.abs(scaled) + error / h) * _WIDER
        nearest = np.abs(scaled) - moved
        # tanh is that of a |t| that may be smaller by so much, and has half of the slope of t there.
        bend = (half + 0.5 * moved + 2.0 * EXP_ERROR) / np.maximum(nearest, 1e-3) * _WIDER
        bend = np.where(nearest > 1e-3, np.minimum(bend, 0.5), 0.5)
        return Tangents(-np.copysign(half, scaled) / h, off, bend / h / h * _WIDER)

    def means(self, predictor, error, response):
        """Bounds the mean slope of s below: it is at least (a/h)·((D - 1)/U')/((1 + a)(D + a)).

        Here a = e^-|t|, U' = U/h and D ≤ e^U', and the mean slope is at least (σ(|t| + U') - σ(|t|))/U. We take
        D = 1 + U' + U'²/2 + U'³/6 + U'⁴/24. As D ≥ a² this rises with a, which is rounded down.
        """
        h, scaled = self.bandwidth, self._scaled(predictor, response)
        farthest = (np.abs(scaled) * (1.0 + 4.0 * UNIT) + error / h) * _WIDER
        size = np.where(farthest < _FARTHEST_EXPONENT, exp(-farthest) / _WIDER, 0.0)
        weight = size / (1.0 + size) / h / _WIDER

        def bound(reach: Floats) -> Floats:
            step, quotient, series = _series(reach / h * _WIDER)
            return np.where(step < _LONGEST, weight * quotient / (series + size) / _WIDER, 0.0)

        return bound

    def in_balls(self, predictor, response):
        place = predictor if self.level is None else (predictor - response) / arb(self.bandwidth)
        # Read once: the precision is that of all threads, of which another may set it meanwhile.
        digits, away = ctx.prec, abs(place)
        tail = (-away).exp() if not away > 2 * digits else arb(0.5, 0.5) * arb(2) ** (-2 * digits)
        weight = tail / (1 + tail) ** 2
        # From the side where nothing cancels; a ball about 0 is on neither.
        share = tail / (1 + tail) if place < 0 else 1 / (1 + tail) if place > 0 else 1 / (1 + (-place).exp())
        return share - (response if self.level is None else arb(self.level)), weight / arb(self.bandwidth)

    def wider(self, times):
        return self if self.level is None else SmoothLogistic(self.bandwidth * times, self.level)

    @property
    def scale(self):
        return math.inf if self.level is None else self.bandwidth


@dataclasses.dataclass(frozen=True)
class SmoothPoisson(AbstractSmoothScore):
    """s = e^η - y and w = e^η, so that ∂w/∂η = w, a = 1 and m = 0. Beyond η = 700 nothing is known of either."""

    @property
    def steepness(self):
        return 1.0

    @property
    def largest_bend(self):
        return None

    def at(self, predictor, error, response):
        weight = exp(predictor)
        score = weight - response
        relative = _relative(error, 0.0) + 4.0 * EXP_ERROR
        off = (weight * relative + UNIT * np.abs(score)) * _WIDER + NEXT_TO_ZERO
        return ScoresAndWeights(score, off, weight, relative)

    def tangents(self, predictor, error, response):
        return Tangents(np.ones_like(predictor), 0.0, np.zeros_like(predictor))

    def means(self, predictor, error, response):
        """(w(1 - e^-U))/U ≥ w((D - 1)/U)/D, with D ≤ e^U as above."""
        lowest = predictor - (error + 4.0 * UNIT * np.abs(predictor)) * _WIDER
        weight = np.where(lowest > -_FARTHEST_EXPONENT, exp(lowest) / _WIDER, 0.0)
        weight = np.where(np.isfinite(weight), weight, 0.0)

        def bound(reach: Floats) -> Floats:
            step, quotient, series = _series(reach)
            return np.where(step < _LONGEST, weight * quotient / series / _WIDER, 0.0)

        return bound

    def bends(self, predictor, error, response):
        """we^U, where e^v ≤ (2 + v)/(2 - v) for 0 ≤ v < 2, to the 64th power."""
        weight = exp(predictor + (error + 4.0 * UNIT * np.abs(predictor)) * _WIDER) * _WIDER

        def bound(reach: Floats) -> Floats:
            part = np.minimum(reach * (1.0 / 64.0), 1.5)
            power = (2.0 + part) / (2.0 - part)
            for _ in range(6):
                power = power * power
            return np.where(part < 1.5, weight * power * _WIDER, np.inf)

        return bound

    def in_balls(self, predictor, response):
        weight = predictor.exp()
        return weight - response, weight


def _relative(change: float, roundings: float) -> float:
    """e^c - 1 ≤ c + c² for c ≤ 1, and so many roundings; beyond, nothing is known."""
    return (change + change * change) * _WIDER + roundings * UNIT * _WIDER if change <= 1.0 else math.inf


def _series(step: Floats) -> tuple[Floats, Floats, Floats]:
    """U up to 10^60, (D - 1)/U and D."""
    step = np.minimum(step, _LONGEST)
    quotient = 1.0 + step * (0.5 + step * (1.0 / 6.0 + step * (1.0 / 24.0)))
    return step, quotient, 1.0 + step * quotient
