"""Decides by public facts alone whether intervals of a regression are offered, and how ε is divided for them.

H is released with noise N. Intervals are about as narrow as if H were known while κ, the median of the largest
eigenvalue of G^{-½}NG^{-½}, is below a third, and get very wide as it nears 1, G being what H is expected to be. So
the share of ε for H is .35 where κ is at most .6 of it, else .45 where κ is at most 1 of that, and else they are
refused.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from kngjax.core.arrays import float64
from kngjax.inference.covariances import Sandwich, family_of
from kngjax.inference.noise_of_sums import block_noise
from kngjax.inference.score_laws import scatter_is_known
from kngjax.inference.settings import Scenario
from kngjax.mechanisms.parameters import rounded_up
from kngjax.sensitivity import weighted

SHARES = (0.35, 0.6), (0.45, 1.0)
_LARGEST_SHARE, _MOST = SHARES[-1]
# Up to this κ the width of an interval tells how far its middle is off within 1.3; beyond, errors have heavy tails.
TELLING = 0.7
_NOISES, _SEED = 200, 1


class Offer(NamedTuple):
    """Holds the share of ε for H, and κ of it; None where nobody knows. Public.

    **Arguments:** `power`: κ ∝ n^{-power}/ε. It is 1, and 4/5 where w is over twice a bandwidth ∝ n^{-1/5}.
    """

    share: float
    noise: float | None
    power: float = 1.0

    @property
    def is_made(self) -> bool:
        """Tells whether intervals are offered, or nobody knows whether they would be wide."""
        return self.noise is None or self.noise <= _MOST

    def refusal(self, what: str, epsilon: float, num_records: int, counted: str, words: str) -> str:
        """Says why no intervals are offered, and about which n and ε would do. `counted`: what n is of, in words."""
        assert self.noise is not None
        need = self.noise / _MOST
        enough = rounded_up(math.ceil(need ** (1.0 / self.power) * num_records))
        return (
            f"no intervals are offered of {what}: of {num_records:,} {counted} at epsilon = {epsilon:g} noise of H, "
            f"which they need, would be {float(f'{need:.2g}'):,g} times H where H is least, and with more than 1 they "
            f"are very wide ({words}). About {enough} {counted} or epsilon = "
            f"{rounded_up(need * epsilon)} would do, as would fewer terms"
        )


def usual_setting(mechanism: Any, num_records: int | None) -> Scenario | None:
    """Makes the usual assumptions; None where n, or how far responses scatter, is not public."""
    is_known = num_records is not None and scatter_is_known(mechanism)
    return Scenario.of(mechanism, None, None) if is_known else None


def offer_of(
    setting: Scenario | None, covariance: Any, epsilon: float, num_records: int | None, bandwidth: float | None
) -> Offer:
    """Makes the offer for a `Sandwich`, of which all of ε is `epsilon`.

    **Arguments:** all public. `setting`: what is assumed; None where nothing is. `num_records`: n, or a guess, or None.
    `bandwidth`: as of `RecordCurvature`.
    """
    asked = covariance.share
    if not isinstance(covariance, Sandwich) or setting is None or num_records is None or setting.law is None:
        return Offer(_LARGEST_SHARE if asked is None else asked, None)
    unit, epsilon = largest_curvature(setting, bandwidth), float(epsilon)
    # Weights of records are taken to be half of the largest, those of a person's rows together that or 1.
    bounds = setting.mechanism.bounds
    mean = 1.0 if bounds.weight is None else 0.5
    if bounds.of_persons:
        mean = max(1.0, 0.5 * weighted.largest(bounds))
    of = functools.partial(noise_over, mean * num_records * setting.hessian / unit, setting.mechanism, covariance)
    power = 1.0 if bandwidth is None else 0.8
    if asked is not None:
        return Offer(asked, of(asked * epsilon), power)
    (first, most), (second, _) = SHARES
    noise = of(first * epsilon)
    # The law of the noise is that of another ε but for its size.
    return Offer(first, noise, power) if noise <= most else Offer(second, noise * first / second, power)


def largest_curvature(setting: Scenario, bandwidth: float | None) -> float:
    """Bounds w of predictors next to the usual one: of rates, within a factor of e."""
    loss, law = setting.mechanism.loss, setting.law
    assert law is not None
    if bandwidth is not None:
        return abs(float(np.asarray(loss.score_step()[1]))) / (2.0 * bandwidth)
    with float64():
        return float(np.asarray(loss.curvature_bound((law.best - 1.0, law.best + 1.0))))


def noise_over(hessian: np.ndarray, mechanism: Any, covariance: Sandwich, epsilon: float) -> float:
    """Computes κ. **Arguments:** `hessian`: G over the largest w. `epsilon`: of the release of H."""
    summing, products = covariance.summing(mechanism, epsilon), covariance.products(mechanism)
    numbers = block_noise(summing, np.random.default_rng(_SEED), _NOISES)
    noise = family_of(products, None).matrices(numbers)
    root = np.linalg.inv(np.linalg.cholesky(hessian))
    return float(np.median(np.abs(np.linalg.eigvalsh(root @ noise @ root.T)).max(axis=1)))
