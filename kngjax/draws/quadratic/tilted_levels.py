"""Levels t of tilted noise in the maximum norm, with density ∝ exp(-κt)·t^z·exp(F(t)): see `tilted_noises`."""

import abc
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, expm1, fsum, inf, lgamma, log

from flint import arb

from kngjax.core.balls import ball_of, upper_end
from kngjax.draws.uniforms import Bits, Uniform

_HALVINGS = 60
# Between the two places, relative to the one in between.
_HALF_STEP = 2.0**-12
# log x beyond which exp(-x) or 1 - x + exp(-x) is nothing beside float64's digits, and from which exp(x) is too large.
_FAR, _STEEP = 36.0, 6.5
# Floors count as no higher where float64 looks for a place.
_HIGHEST = Fraction(2) ** 1000


class AbstractLevels(abc.ABC):
    """Proposes levels t, each of which is accepted with the probability exp(-`doubt`)."""

    @abc.abstractmethod
    def draw(self, tilt: Callable[[], list[arb]], bits: Bits) -> Callable[[int], arb]:
        """Draws a level, as a function of how many digits are wanted."""

    @abc.abstractmethod
    def doubt(self, tilt: Sequence[arb], level: arb) -> arb:
        """-log of the probability to accept it, at least 0."""


class GammaLevels(AbstractLevels):
    """exp(-κt)·t^(z + m). **Arguments:** `zeros`: z. `power`: m. `height`: K."""

    def __init__(self, zeros: int, power: int, height: Fraction):
        self._zeros, self._power, self._height = zeros, power, height

    def draw(self, tilt, bits):
        sizes = [Uniform(bits) for _ in range(self._zeros + self._power + 1)]

        def level(digits):
            return -sum((one.ball(digits).log() for one in sizes), arb(0)) / _gap(tilt())

        return level

    def doubt(self, tilt, level):
        return ball_of(self._height) + self._power * level.log() - _log_falls(tilt, level)


class LevelsBeyond(AbstractLevels):
    """exp(-κ't) beyond t_0. **Arguments:** `floor`: t_0. `zeros`: z. `slope`: m = κ - κ'. `height`: K."""

    def __init__(self, floor: Fraction, zeros: int, slope: Fraction, height: Fraction):
        self._floor, self._zeros, self._slope, self._height = floor, zeros, slope, height

    def draw(self, tilt, bits):
        size = Uniform(bits)

        def level(digits):
            return ball_of(self._floor) - size.ball(digits).log() / (_gap(tilt()) - ball_of(self._slope))

        return level

    def doubt(self, tilt, level):
        found = ball_of(self._height) + ball_of(self._slope) * level - _log_falls(tilt, level)
        return found - self._zeros * level.log() if self._zeros else found


def levels_for(tilt: Sequence[arb], floor: Fraction) -> AbstractLevels:
    """Chooses proposals that are accepted about most often. **Arguments:** `tilt`: h, not 0. `floor`: t_0, or 0."""
    tilts = [abs(one) for one in tilt if not one.is_zero()]
    zeros, gap = len(tilt) - len(tilts), float(_gap(tilt).mid())
    sizes = [float((2 * one).log().mid()) for one in tilts]
    best, chosen = inf, GammaLevels(zeros, 0, Fraction(0))
    for power in range(len(sizes) + 1) if gap > 0.0 else ():
        place = _place_of_slope(sizes, power)
        about = fsum(_log_fall(size + place) for size in sizes) - power * place
        whole = zeros + power + 1
        mass = about + lgamma(whole) - whole * log(gap)
        if mass < best and (height := _height_in_logs(tilts, power, place)) is not None:
            best, chosen = mass, GammaLevels(zeros, power, height)
    start = float(min(floor, _HIGHEST))
    if gap <= 0.0 or start <= 0.0:
        return chosen
    place = start + 1.0 / gap
    steep = fsum(_falling(size + log(place)) for size in sizes) / place + zeros / place
    if steep < 0.9 * gap:
        about = fsum(_log_fall(size + log(place)) for size in sizes) + zeros * log(place) - steep * place
        mass = about - (gap - steep) * start - log(gap - steep)
        slope = Fraction(steep)
        if mass < best and (height := _height(tilts, zeros, slope, place)) is not None:
            return LevelsBeyond(floor, zeros, slope, height)
    return chosen


def _gap(tilt: Sequence[arb]) -> arb:
    """κ."""
    return 1 - sum((abs(one) for one in tilt), arb(0))


def _log_falls(tilt: Sequence[arb], level: arb) -> arb:
    """F(t)."""
    return sum(((-(-2 * abs(one) * level).expm1()).log() for one in tilt if not one.is_zero()), arb(0))


def _height_in_logs(tilts: list[arb], power: int, place: float) -> Fraction | None:
    """Bounds F - mu from above for every u; None where places about this one do not prove a bound."""
    if power == 0:
        return Fraction(0)
    if power == len(tilts):
        # (1 - exp(-2at))/t is at most 2a.
        return upper_fraction(sum(((2 * one).log() for one in tilts), arb(0)))
    first, last = arb(place - _HALF_STEP), arb(place + _HALF_STEP)
    slopes = [sum((_slope(2 * one * end.exp()) for one in tilts), arb(0)) - power for end in (first, last)]
    if not (slopes[0] >= 0 and slopes[1] <= 0):
        return None
    return upper_fraction(_log_falls(tilts, first.exp()) - power * first + slopes[0] * (last - first))


def _height(tilts: list[arb], zeros: int, slope: Fraction, place: float) -> Fraction | None:
    """Bounds F + z log t - mt from above for every t > 0; None where places about this one do not prove a bound."""
    if slope == 0:
        # No h is 0, and F is below 0.
        return Fraction(0)
    first, last, steep = arb(place * (1.0 - _HALF_STEP)), arb(place * (1.0 + _HALF_STEP)), ball_of(slope)
    slopes = [(sum((_slope(2 * one * end) for one in tilts), arb(zeros))) / end - steep for end in (first, last)]
    if not (slopes[0] >= 0 and slopes[1] <= 0):
        return None
    start = _log_falls(tilts, first) + zeros * first.log() - steep * first
    return upper_fraction(start + slopes[0] * (last - first))


def _slope(fall: arb) -> arb:
    """The slope of log(1 - exp(-x)) in log x."""
    return fall / fall.expm1()


def _log_fall(log_size: float) -> float:
    """Computes about log(1 - exp(-x)) at log x of every size: float64 need not have x."""
    return log_size if log_size < -_FAR else log(-expm1(-exp(min(log_size, _FAR))))


def _falling(log_size: float) -> float:
    """Computes about the slope of log(1 - exp(-x)) in log x."""
    if abs(log_size) > _FAR:
        return float(log_size < 0.0)
    return exp(log_size) / expm1(exp(log_size)) if log_size < _STEEP else 0.0


def _place_of_slope(sizes: list[float], power: int) -> float:
    """Finds about the u at which the slopes of all log(1 - exp(-2ae^u)) add up to m.

    **Arguments:** `sizes`: all log 2a.
    """
    if power == 0:
        return 700.0
    low, high = -60.0 - max(sizes), 60.0 - min(sizes)
    if power == len(sizes):
        return low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fsum(_falling(size + middle) for size in sizes) > power else (low, middle)
    return low


def upper_fraction(number: arb) -> Fraction | None:
    """Returns a fraction that is at least this; None where these digits tell of none."""
    return upper_end(number) if number.is_finite() else None
