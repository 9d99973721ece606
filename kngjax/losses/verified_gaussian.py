"""The score of a quantile loss smoothed by the Gaussian kernel, of which every rounding is bounded."""

import dataclasses
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from kngjax.core.balls import ball_of
from kngjax.core.verified import NEXT_TO_ZERO, UNIT, WIDER, Floats
from kngjax.core.verified_normal import DENSITY_ERROR, NORMAL_ERROR, normal_density, normal_probability
from kngjax.losses.secants import unimodal_secants
from kngjax.losses.verified_scores import AbstractVerifiedScore

# At least φ(0) = 1/√(2π); and above |φ'|, which is largest at ±1, where it is φ(1).
_PEAK, _BEND = 0.3989422804014328, 0.2419708


@dataclasses.dataclass(frozen=True)
class GaussianScore(AbstractVerifiedScore):
    """s = Φ(t) - τ with t = (η - y)/h. **Arguments:** `bandwidth`: h. `level`: τ.

    t is known but for 2u relatively, which costs Φ less than 2.1u·max|tφ(t)| < .51u, and the density less than
    2.1u·max|t²φ(t)| < .62u; Φ itself 2^-51, the difference u.
    """

    bandwidth: float
    level: float

    def interval(self, predictor, response):
        return -Fraction(self.level), 1 - Fraction(self.level)

    def largest_slope(self, predictor):
        return Fraction(_PEAK) / Fraction(self.bandwidth)

    def _scaled(self, predictor: np.ndarray, response: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (predictor - response) / self.bandwidth

    def floats(self, predictor: Floats, error: Floats, response: Floats) -> tuple[Floats, Floats]:
        score = normal_probability(self._scaled(predictor, response)) - self.level
        off = _PEAK * error / self.bandwidth + NORMAL_ERROR + 0.51 * UNIT + UNIT * np.abs(score)
        return score, np.where(np.isnan(score), np.nan, np.minimum(off, 1.0) * WIDER)

    def slopes(self, predictor: Floats, radius: Floats, response: Floats) -> tuple[Floats, Floats]:
        slope = normal_density(self._scaled(predictor, response))
        off = _BEND * radius / self.bandwidth + DENSITY_ERROR[0] * slope + DENSITY_ERROR[1] + UNIT + NEXT_TO_ZERO
        off = off * WIDER
        most = np.minimum(slope + off, _PEAK)
        return np.maximum(slope - off, 0.0) / self.bandwidth / WIDER, most / self.bandwidth * WIDER

    def secants(self, predictor: Floats, error: Floats, radius: Floats, response: Floats) -> tuple[Floats, Floats]:
        return unimodal_secants(self, predictor, error, radius, response, response, _BEND / self.bandwidth**2)

    def ball(self, predictor: arb, response: Fraction) -> arb:
        place = (predictor - ball_of(response)) / arb(self.bandwidth)
        # Read once: the precision is that of all threads, and another library's may set it meanwhile.
        digits = ctx.prec
        if abs(place) > 2 * digits:
            return arb(0.5) + (1 if place > 0 else -1) * arb(0.5) + arb(0, arb(2) ** -digits) - arb(self.level)
        return (-place / arb(2).sqrt()).erfc() / 2 - arb(self.level)

    def slope_ball(self, predictor: arb, response: Fraction) -> arb:
        place = (predictor - ball_of(response)) / arb(self.bandwidth)
        return (-place * place / 2).exp() / (2 * arb.pi()).sqrt() / arb(self.bandwidth)
