"""Certifies in balls the privacy of ridge regressions with Gaussian noise, which float64 has calibrated.

The notation is that of `kngjax.mechanisms.noise.gaussian_profiles`, and of `kngjax.mechanisms.noise.objective_profiles`
for noise in the objective.
"""

import functools
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from kngjax.accounting.gaussian_in_balls import below, one_removal
from kngjax.accounting.guarantees import Guarantee
from kngjax.core.balls import ball_of, precision
from kngjax.sensitivity.moments_in_fractions import SquaredRadii

# Digits beyond those of δ, and how many cells are looked at. Public, so these limits are no output of the data.
_DIGITS, _MOST_CELLS = 128, 20_000
_DIGITS_OF_OBJECTIVES = 256


class RidgeSettings(NamedTuple):
    """Holds all that the worst record depends on; public, and exact.

    **Arguments:** `radii`: X² and Y². `ridge`: λ > 0. `gamma`: γ > 0. `others`: n, the most records beside the one
    that comes or goes.
    """

    radii: SquaredRadii
    ridge: Fraction
    gamma: Fraction
    others: int

    @property
    def leverage(self) -> arb:
        """M = X²/λ."""
        return ball_of(self.radii.features / self.ridge)

    @property
    def response(self) -> arb:
        """Y."""
        return ball_of(self.radii.response).sqrt()


@functools.lru_cache(maxsize=256)
def is_private(settings: RidgeSettings, guarantee: Guarantee) -> bool:
    """Tells whether one posterior sample certainly is as private as this (ε, δ) says, whatever the records are.

    Every record has a leverage μ = tM with M = X²/λ and 0 ≤ t ≤ 1, and a residual of at most
    R(t) = Y(1 + √(nMt(1-t))) (`kngjax.sensitivity.moments.largest_ridge_residual`). Both directions of δ are to be at
    most δ at all t, on cells that are halved until one of two bounds tells:

    - δ(a, r) ≤ δ(b, r√((1+b)/(1+a))) for leverages a ≤ b, and δ increases with |r|
      (`kngjax.mechanisms.posterior_sample`): so the largest leverage with the largest R√((1+b)/(1+a)) of the cell;
    - δ at the middle, plus half of the width times the largest |dδ/dt| of the cell.

    The first alone would need cells as narrow as the room that the budget leaves. With the second there are as many
    as the logarithm of that, since the derivative is small about a maximum.
    """
    small = guarantee.exact_delta.denominator.bit_length() - guarantee.exact_delta.numerator.bit_length()
    with precision(_DIGITS + 2 * max(small, 0)):
        level, bound = one_removal(guarantee)
        cells, seen = [(arb(0), arb(1))], 0
        while cells and seen < _MOST_CELLS:
            lower, upper = cells.pop()
            middle, half, seen = (lower + upper) / 2, (upper - lower) / 2, seen + 1
            if all(delta <= bound for delta in _outermost(settings, lower, upper).deltas(level)):
                continue
            deltas = _worst_record(settings, middle).deltas(level)
            if any(delta > bound for delta in deltas):
                return False
            slopes = _slopes(settings, lower.union(upper), level)
            if not all(delta + abs(slope) * half <= bound for delta, slope in zip(deltas, slopes, strict=True)):
                cells += [(lower, middle), (middle, upper)]
        return not cells


def is_private_in_objective(settings: RidgeSettings, guarantee: Guarantee) -> bool:
    """Tells whether θ = H^{-1}(X'y + b) with b ~ N(0, I/γ) is certainly as private as this (ε, δ) says: by a bound.

    L = -log(1+μ) + t²/2 - tg with t = |x|r√γ - κh, and g, h ~ N(0, 1). Both stay within ±z but for a probability of
    4Φ(-z), and then |t| ≤ w = √γXR + κz, with κ = X²/λ and R = Y(1 + √(nκ)/2) the largest of all residuals, so that
    L ≤ w²/2 + wz. The other direction has log(1+μ) in place of -log(1+μ), and r/(1+μ) and κ/(1+μ). So it is enough
    that log(1+κ) + w²/2 + wz ≤ ε at 4Φ(-z) = δ.
    """
    with precision(_DIGITS_OF_OBJECTIVES):
        epsilon, delta = one_removal(guarantee)
        tail = arb(2).sqrt() * (delta / 2).erfcinv()
        radius = ball_of(settings.radii.features).sqrt()
        residual = settings.response * (1 + (settings.others * settings.leverage).sqrt() / 2)
        width = ball_of(settings.gamma).sqrt() * radius * residual + settings.leverage * tail
        return bool(settings.leverage.log1p() + width * (width / 2 + tail) <= epsilon)


class _Record(NamedTuple):
    """A record in balls: Z is N(0, 1) without it and N(m, s²) with it. **Arguments:** `leverage`: μ. `slope`: |a1|."""

    leverage: arb
    slope: arb

    @classmethod
    def of(cls, settings: RidgeSettings, leverage: arb, residual: arb) -> "_Record":
        return cls(leverage, residual * (ball_of(settings.gamma) * leverage).sqrt())

    @property
    def mean(self) -> arb:
        """m."""
        return self.slope / (1 + self.leverage)

    @property
    def deviation(self) -> arb:
        """s."""
        return (1 + self.leverage).rsqrt()

    def moved(self, place: arb) -> arb:
        """(z - m)/s."""
        return (place - self.mean) / self.deviation

    def square(self, level: arb) -> arb:
        """Computes the discriminant of L = level, which is below 0 where L is never this level."""
        return self.slope * self.mean + self.leverage * (self.leverage.log1p() + 2 * level)

    def roots(self, level: arb) -> tuple[arb, arb]:
        """Returns the two points at which L equals this level, in increasing order."""
        larger = self.slope + self.square(level).nonnegative_part().sqrt()
        # The smaller root by the larger one's partner, which loses no digits.
        smaller = self.slope * self.mean - self.leverage.log1p() - 2 * level
        return smaller / larger, larger / self.leverage

    def deltas(self, level: arb) -> tuple[arb, arb]:
        """δ(D‖D') and δ(D'‖D)."""
        return self._added(level), self._removed(level)

    def _added(self, level: arb) -> arb:
        """Computes δ(D‖D') from the mass outside of the roots of L = ε."""
        lower, upper = self.roots(level)
        outside = below(self.moved(lower)) + below(-self.moved(upper))
        return below(lower) + below(-upper) - level.exp() * outside

    def _removed(self, level: arb) -> arb:
        """Computes δ(D'‖D) from the mass between the roots of L = -ε; 0 if there are none."""
        if self.square(-level) < 0:
            return arb(0)
        lower, upper = self.roots(-level)
        inside = below(self.moved(upper)) - below(self.moved(lower))
        # It may be that there are none, and then what balls make of them may be below 0.
        return (inside - level.exp() * (below(upper) - below(lower))).max(arb(0))


def _fitted(settings: RidgeSettings, place: arb) -> arb:
    """nMt(1-t)."""
    return settings.others * settings.leverage * place * (1 - place)


def _residual(settings: RidgeSettings, place: arb) -> arb:
    """R(t)."""
    return settings.response * (1 + _fitted(settings, place).nonnegative_part().sqrt())


def _leverage(settings: RidgeSettings, place: arb) -> arb:
    return settings.leverage * place


def _worst_record(settings: RidgeSettings, place: arb) -> _Record:
    return _Record.of(settings, _leverage(settings, place), _residual(settings, place))


def _outermost(settings: RidgeSettings, lower: arb, upper: arb) -> _Record:
    """Returns a record that betrays at least as much as any with t between these two.

    R is largest at the t nearest to ½.
    """
    residual = _residual(settings, arb(0.5).max(lower).min(upper))
    first, last = (_leverage(settings, place) for place in (lower, upper))
    return _Record.of(settings, last, residual * ((1 + last) / (1 + first)).sqrt())


def _slopes(settings: RidgeSettings, place: arb, level: arb) -> tuple[arb, arb]:
    """dδ/dt of both directions, at all t of a ball; no numbers where it contains an end of [0, 1].

    δ is a difference P(A) - e^ε Q(A), or Q(A) - e^ε P(A), at the A that makes it largest: so A may be held fast, and
    P = N(0, 1) does not depend on t. With u = (z-m)/s, Q(Z < z) has the derivative -φ(u)(m' + us')/s, and
    e^ε φ(u)/s = φ(z) where L = ε.
    """
    record, most = _worst_record(settings, place), settings.leverage
    fitted, grown = _fitted(settings, place), 1 + record.leverage
    # (log R)'; where n = 0, R is Y.
    turn = settings.others * most * (1 - 2 * place) / (2 * fitted.sqrt()) if settings.others else arb(0)
    turn = turn * settings.response / _residual(settings, place)
    mean = record.mean * (turn + 1 / (2 * place) - most / grown)
    deviation = -most * record.deviation / (2 * grown)

    def rate(at: arb) -> arb:
        return mean + record.moved(at) * deviation

    lower, upper = record.roots(level)
    added = _density(lower) * rate(lower) - _density(upper) * rate(upper)
    square = record.square(-level)
    if square < 0:
        return added, arb(0)
    if not square > 0:
        return added, arb.nan()
    lower, upper = record.roots(-level)
    ends = [_density(record.moved(end)) * rate(end) / record.deviation for end in (lower, upper)]
    return added, ends[0] - ends[1]


def _density(place: arb) -> arb:
    """φ."""
    return (-place * place / 2).exp() / (2 * arb.pi()).sqrt()
