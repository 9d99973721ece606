"""Noise that leans to one side: y ∈ R^k with density ∝ exp(-‖y‖ - h'y), ‖h‖_* < 1, in balls, for three norms.

The sum: independent coordinates, each the difference of exponential numbers of the rates 1 + h_j and 1 - h_j.

The length: exp(-|y|) is a mixture of N(0, τI) with τ/2 from Gamma((k+1)/2), τ the square of k + 1 normal numbers, which
the tilt turns into N(-τh, τI) with τ as many squares over 1 - |h|².

The maximum: exp(-‖y‖ - h'y) = ∫_{t > ‖y‖} exp(-t - h'y) dt, so given a level t the y_j are independent on [-t, t] with
densities ∝ exp(-h_j y_j), and with a = |h| and κ = 1 - Σa_j the level has the density ∝ exp(-κt)·t^z·exp(F(t)) with
F(t) = Σ_{a_j > 0} log(1 - exp(-2a_j t)) and z the number of a_j that are 0. A level is drawn from exp(-κt)·t^(z + m),
for some m, and what is drawn is accepted with probability exp(F(t) - m log t - K), K at least the largest
F(t) - m log t. Where nothing below some level t_0 > 0 would be accepted, as ‖z‖ is at least that on all of Θ, levels
beyond it are drawn from exp(-κ't), κ' < κ, and accepted with probability exp(F(t) + z log t - mt - K), m = κ - κ'.
F is concave in log t, and F + z log t in t, so that for g either and x its variable, with slopes at x_1 < x_2 that are
above m and below it

    g(x) - mx  ≤  g(x_1) - mx_1 + (g'(x_1) - m)(x_2 - x_1)    for every x.
"""

import abc
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import fsum, inf, lgamma, log, log1p, pi
from typing import ClassVar, NamedTuple

import numpy as np
from flint import arb

from kngjax.core.balls import ball_of, precision
from kngjax.draws.linear_algebra import dot
from kngjax.draws.noises import StandardNormalNoise, draw_noise
from kngjax.draws.quadratic.bodies import steps_down
from kngjax.draws.quadratic.tilted_levels import levels_for, upper_fraction
from kngjax.draws.uniforms import Bits, Uniform
from kngjax.geometry.scaled_norms import DUAL, ScaledNorm, norm_in_balls

# Digits with which what is public about a tilt is checked.
_DIGITS = 256
# A sum over levels in float64 has so many of them, and none farther out than this.
_NODES, _HIGHEST = 256, 1e300


class TiltedDraw(NamedTuple):
    """Holds one draw of y. **Arguments:** `balls`: y from so many digits. `doubt`: -log of the chance to accept it."""

    balls: Callable[[int], list[arb]]
    doubt: Callable[[int], arb]


class AbstractTilted(abc.ABC):
    """The law for one tilt. **Arguments:** `scales`: h_j in balls, at the precision that is set."""

    def __init__(self, tilt: Callable[[], list[arb]], number: int):
        self.tilt, self.number = tilt, number

    kind: ClassVar[str]

    @property
    def dual(self) -> arb:
        """‖h‖_*."""
        return norm_in_balls(DUAL[self.kind], self.tilt())

    @abc.abstractmethod
    def draw(self, bits: Bits) -> TiltedDraw:
        """Draws y."""


class TiltedSum(AbstractTilted):
    """‖y‖ = Σ|y_j|."""

    kind = "sum"

    def draw(self, bits):
        pairs = [(Uniform(bits), Uniform(bits)) for _ in range(self.number)]

        def balls(digits):
            both = zip(pairs, self.tilt(), strict=True)
            return [down.ball(digits).log() / (1 - h) - up.ball(digits).log() / (1 + h) for (up, down), h in both]

        return TiltedDraw(balls, _no_doubt)


class TiltedLength(AbstractTilted):
    """‖y‖ = |y|."""

    kind = "length"

    def draw(self, bits):
        sizes, directions = StandardNormalNoise(self.number + 1, bits), StandardNormalNoise(self.number, bits)

        def balls(digits):
            tilt, normals = self.tilt(), sizes.balls(digits)
            variance = dot(normals, normals) / (1 - dot(tilt, tilt))
            deviation = variance.sqrt()
            return [deviation * one - variance * h for one, h in zip(directions.balls(digits), tilt, strict=True)]

        return TiltedDraw(balls, _no_doubt)


class TiltedMaximum(AbstractTilted):
    """‖y‖ = max|y_j|. **Arguments:** `signs`: which h_j are above 0, 0 or below. `floor`: t_0, or 0."""

    kind = "maximum"

    def __init__(self, tilt: Callable[[], list[arb]], signs: Sequence[int], floor: Fraction):
        super().__init__(tilt, len(signs))
        self._signs = signs
        with precision(_DIGITS):
            self._levels = levels_for(tilt(), floor)

    def draw(self, bits):
        level = self._levels.draw(self.tilt, bits)
        points = [Uniform(bits) for _ in range(self.number)]

        def balls(digits):
            most = level(digits)
            triples = zip(points, self.tilt(), self._signs, strict=True)
            return [_within(point.ball(digits), most, tilt, sign) for point, tilt, sign in triples]

        return TiltedDraw(balls, lambda digits: self._levels.doubt(self.tilt(), level(digits)))


def _within(uniform: arb, level: arb, tilt: arb, sign: int) -> arb:
    """The number in [-level, level] with density ∝ exp(-hy)."""
    if sign == 0:
        return level * (2 * uniform - 1)
    step = steps_down(uniform, abs(tilt), 2 * level)
    return step - level if sign > 0 else level - step


def tilted_noise(noise: ScaledNorm, tilt: Sequence[Fraction], floor: Fraction = Fraction(0)) -> AbstractTilted | None:
    """Makes noise over scale and weights for z of density ∝ exp(-‖z/w‖/λ - p'z): h_j = λw_jp_j.

    None unless ‖h‖_* is proved to be below 1, and for p = 0.

    **Arguments:** `tilt`: p. `floor`: below which no ‖y‖ would be accepted, or 0.
    """
    if not any(tilt):
        return None

    def balls() -> list[arb]:
        scale = ball_of(noise.scale_squared).sqrt()
        return [scale * ball_of(weight * one) for weight, one in zip(noise.weights, tilt, strict=True)]

    signs = [(one > 0) - (one < 0) for one in tilt]
    kinds = {"sum": lambda: TiltedSum(balls, len(tilt)), "length": lambda: TiltedLength(balls, len(tilt))}
    found = kinds.get(noise.kind, lambda: TiltedMaximum(balls, signs, floor))()
    with precision(_DIGITS):
        return found if found.dual < 1 else None


def above(number: arb) -> Fraction | None:
    """Returns a fraction that is at least this, at a precision that is always enough; None where there is none."""
    with precision(_DIGITS):
        return upper_fraction(number)


def plain_noise(noise: ScaledNorm, bits: Bits) -> TiltedDraw:
    """Draws noise without a tilt, p = 0, which is always accepted."""
    return TiltedDraw(draw_noise(noise, bits).balls, _no_doubt)


def dual_in_floats(kind: str, tilt: np.ndarray) -> float:
    """Computes ‖h‖_* in float64."""
    sizes = np.abs(tilt)
    return float({"sum": np.max, "length": np.linalg.norm}.get(kind, np.sum)(sizes)) if len(sizes) else 0.0


def about_log_mass(kind: str, tilt: np.ndarray, floor: float) -> float:
    """Computes about log ∫ exp(-‖y‖ - h'y) dy, for the maximum with levels beyond the floor.

    Finite for every tilt with ‖h‖_* < 1 and every floor, and infinite for all others, as it decides what is drawn from.
    """
    number, dual = len(tilt), dual_in_floats(kind, tilt)
    if not dual < 1.0:
        return inf
    if kind == "sum":
        return number * log(2.0) - fsum(log1p(-one) + log1p(one) for one in tilt.tolist())
    if kind == "length":
        half = 0.5 * (number + 1.0)
        return number * log(2.0) + (half - 1.0) * log(pi) + lgamma(half) - half * (log1p(-dual) + log1p(dual))
    # u = log t runs from where exp(-t) matters to where exp(-κt) does. A floor that is no number is none.
    floor = min(max(0.0, floor), _HIGHEST)
    first, reach = max(0.05 * (number + 1.0), floor), 4.0 * (number + 3.0) / (1.0 - dual)
    # Next to a floor that is far out they are closer to each other than float64 tells.
    width = log1p((floor - first + reach) / first)
    places = log(first) + width * np.linspace(0.0, 1.0, _NODES)
    falls = np.outer(np.exp(places), 2.0 * np.abs(tilt))
    ratios = np.where(falls < 1e-9, 1.0, -np.expm1(-falls) / np.where(falls < 1e-9, 1.0, falls))
    values = (
        (number + 1.0) * places - (1.0 - dual) * np.exp(places) + number * log(2.0) + np.sum(np.log(ratios), axis=1)
    )
    largest = float(np.max(values))
    return largest + log(float(np.sum(np.exp(values - largest))) * (width / (_NODES - 1)))


def _no_doubt(digits: int) -> arb:
    return arb(0)
