"""Intervals of a released count: of the records that were counted, and of the population that they were drawn from.

A released count is c = X + R, X the count and R two-sided geometric, P(R = r) = (1 - q)/(1 + q)·q^|r|, q = e^(-rate).
All of it is public, and what is computed here is free.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy.special

# Masses beyond this many standard deviations, or below e^-40, are less than 10^-16.
_DEVIATIONS, _NEGLIGIBLE = 9.0, 40.0
# Halvings of the bracket of an end: it is then known to 10^-9 of its length.
_HALVINGS = 30

Ends = tuple[float, float]


def margin(rate: float, level: float) -> int:
    """Returns the least k with P(|R| > k) = 2q^(k+1)/(1 + q) ≤ 1 - level: X lies in [c - k, c + k] with this level.

    **Arguments:** `rate`: of the noise, ε over what one record changes all counts by. `level`: between 0 and 1.
    """
    # log((1 - level)(1 + q)/2)/log q; rounding up what rounding made a little less changes nothing of the level.
    needed = math.log(2.0 / ((1.0 - level) * (1.0 + math.exp(-rate)))) / rate - 1.0
    return max(0, math.ceil(needed - 1e-9))


def of_population(count: float, rate: float, level: float, num_records: int | None = None) -> Ends:
    """Returns the expected counts m for which both P(X + R ≥ c) and P(X + R ≤ c) are at least (1 - level)/2.

    X is Binomial(n, m/n) where n is public, and Poisson(m) where the number of records is private. The interval holds
    m with at least this level, by the inversion of two tests (Clopper and Pearson 1934, with the noise).

    **Arguments:** `count`: c, whole. `rate`, `level`: as of `margin`. `num_records`: n.
    """
    risk = (1.0 - level) / 2.0
    most = float(num_records) if num_records is not None else max(count, 0.0)
    if num_records is None:
        # Farther than noise and the count's own deviation reach together.
        most += 100.0 + _NEGLIGIBLE / rate + 20.0 * math.sqrt(most + 1.0 + _NEGLIGIBLE / rate)

    def is_too_low(mean: float) -> bool:
        return _at_least(count, mean, rate, num_records) < risk

    def is_low_enough(mean: float) -> bool:
        return 1.0 - _at_least(count + 1.0, mean, rate, num_records) >= risk

    lower = _last(is_too_low, most) if is_too_low(0.0) else 0.0
    upper = _last(is_low_enough, most) if is_low_enough(0.0) else 0.0
    return lower, upper


def _last(holds: Callable[[float], bool], most: float) -> float:
    """Finds the end of [0, m] on which a condition holds; `most` where it holds everywhere."""
    if holds(most):
        return most
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _at_least(count: float, mean: float, rate: float, num_records: int | None) -> float:
    """P(X + R ≥ c) = P(X ≥ c) + Σ_j P(X = c - j)·(P(R ≥ j) - 1{j ≤ 0})."""
    variance = mean if num_records is None else mean * (1.0 - mean / num_records)
    reach = _DEVIATIONS * math.sqrt(variance) + 40.0
    far = math.ceil(_NEGLIGIBLE / rate)
    first, last = max(0, math.floor(mean - reach), int(count) - far), min(math.ceil(mean + reach), int(count) + far)
    if num_records is not None:
        last = min(last, num_records)
    x = np.arange(first, last + 1)
    steps = count - x
    # q^j/(1 + q) for j ≥ 1; less 1, -q^(1 - j)/(1 + q) for j ≤ 0.
    q = math.exp(-rate)
    tails = np.exp(-rate * np.where(steps > 0, steps, 1.0 - steps)) / (1.0 + q) * np.where(steps > 0, 1.0, -1.0)
    masses = np.exp(_log_masses(x, mean, num_records))
    return float(_beyond(count, mean, num_records) + masses @ tails)


def _log_masses(x: np.ndarray, mean: float, num_records: int | None) -> np.ndarray:
    if num_records is None:
        return scipy.special.xlogy(x, mean) - mean - scipy.special.gammaln(x + 1.0)
    chance = mean / num_records
    ways = scipy.special.gammaln(num_records + 1.0) - scipy.special.gammaln(x + 1.0)
    ways = ways - scipy.special.gammaln(num_records - x + 1.0)
    return ways + scipy.special.xlogy(x, chance) + scipy.special.xlog1py(num_records - x, -chance)


def _beyond(count: float, mean: float, num_records: int | None) -> float:
    """P(X ≥ c)."""
    if count <= 0.0:
        return 1.0
    if num_records is None:
        return float(scipy.special.gammainc(count, mean))
    if count > num_records:
        return 0.0
    return float(scipy.special.betainc(count, num_records - count + 1.0, mean / num_records))
