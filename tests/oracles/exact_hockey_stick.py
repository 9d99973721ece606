"""An oracle for privacy profiles: hockey-stick divergences of normal laws on a line, enclosed by ball arithmetic."""

import math
from fractions import Fraction

import flint
import numpy as np
from flint import arb


def exact(number) -> arb:
    """A float, a Fraction or a whole number as a ball; floats as they are."""
    if isinstance(number, arb):
        return number
    value = Fraction(float(number)) if isinstance(number, float | np.floating) else Fraction(number)
    return arb(flint.fmpq(value.numerator, value.denominator))


def _beyond(at: arb) -> arb:
    """Φ(-t)."""
    return (at / arb(2).sqrt()).erfc() / 2


def _between(lower: arb, upper: arb) -> arb:
    """P(lower < Z < upper), from the side where both tails are small."""
    return _beyond(lower) - _beyond(upper) if lower > 0 else _beyond(-upper) - _beyond(-lower)


def one_way(epsilon, mean, deviation, first: bool) -> arb:
    """δ(P‖Q) at ε of P = N(0, 1), Q = N(m, s²) with s ≤ 1 if `first`, else δ(Q‖P).

    log p/q = log s - z²/2 + (z-m)²/(2s²) = log s + (az² - 2bz + c)/2 with a = 1/s² - 1, b = m/s², c = m²/s², is
    greater than a level outside of its roots.
    """
    epsilon, mean, deviation = exact(epsilon), exact(mean), exact(deviation)
    level = epsilon if first else -epsilon
    a, b = deviation ** (-2) - 1, mean / deviation**2
    rest = mean**2 / deviation**2 + 2 * deviation.log() - 2 * level
    grown = epsilon.exp()
    if a == 0:
        place = rest / (2 * b)
        if first:
            return _beyond(-place) - grown * _beyond(mean - place)
        return _beyond(place - mean) - grown * _beyond(place)
    square = b**2 - a * rest
    if square < 0:
        return arb(1 - grown) if first and epsilon < 0 else arb(0)
    root = square.sqrt()
    larger = b + root if b > 0 else b - root
    ends = (larger / a, rest / larger) if b > 0 else (rest / larger, larger / a)
    upper, lower = ends
    low, high = (lower - mean) / deviation, (upper - mean) / deviation
    if first:
        return _beyond(-lower) + _beyond(upper) - grown * (_beyond(-low) + _beyond(high))
    return _between(low, high) - grown * _between(lower, upper)


def log_delta(epsilon, mean, deviation, digits: int = 60) -> tuple[float, float]:
    """Floats below and above log max(δ(P‖Q), δ(Q‖P)); -inf where both are 0. `mean`, `deviation`: functions of none."""
    for precision in (4 * digits, 1000, 4000, 16000, 64000):
        with flint.ctx.workprec(precision):
            both = [one_way(epsilon, mean(), deviation(), first) for first in (True, False)]
            found = both[0].max(both[1])
            if found.is_finite() and found > 0 and found.rel_accuracy_bits() > 60:
                logarithm = found.log()
                middle = float(logarithm)
                return math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf)
            if found == 0:
                return -math.inf, -math.inf
    with flint.ctx.workprec(1000):
        if abs(found) < arb(2) ** -30_000:
            return -math.inf, -20_000.0
    raise ArithmeticError("the precision does not suffice")


def precision(bits: int):
    """A context in which balls have so many bits."""
    return flint.ctx.workprec(bits)


def mills(at: arb) -> arb:
    """Φ(-t)/φ(t)."""
    return _beyond(at) * (at**2 / 2).exp() * (2 * arb.pi()).sqrt()


def wishart_delta(epsilon: float, change: float, dimension: int, degrees: int, scale: float) -> arb:
    """The larger δ of V and V + τ where V/s is chi-square: L(v) = c·log(v/(v-τ)) - τ/(2s) decreases."""
    level, ratio = exact(epsilon), exact(change) / exact(scale)
    half = arb(degrees - dimension + 1) / 2

    def below(place: arb) -> arb:
        return (place / 2).gamma_lower(half, regularized=1)

    def place(loss: arb) -> arb:
        return ratio / (1 - (-(loss + ratio / 2) / (half - 1)).exp())

    lowest = place(level)
    removed = below(lowest) - level.exp() * below(lowest - ratio)
    if not ratio / 2 > level:
        return removed
    highest = place(-level)
    return removed.max((1 - below(highest - ratio)) - level.exp() * (1 - below(highest)))
