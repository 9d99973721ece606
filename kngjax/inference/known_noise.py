"""Intervals by noise whose law is known: of counts, sums and means, in the table and in its population.

A released count is c = X + R, X the count and R two-sided geometric, P(R = r) = (1 - q)/(1 + q)·q^|r|, q = e^(-rate). A
released sum or mean is x + L, L of Laplace's law, P(|L| > t) = e^(-t/b), whose standard deviation is √2·b. All of it is
public, and what is computed here is free.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy.special
from scipy.optimize import brentq

# Masses beyond this many standard deviations, or below e^-40, are less than 10^-16.
_DEVIATIONS, _NEGLIGIBLE = 9.0, 40.0
# Halvings of the bracket of an end: it is then known to 10^-9 of its length.
_HALVINGS = 30

Ends = tuple[float, float]


def require_asked(level: float, of: str) -> None:
    """Raises ValueError for no level of an interval, and for what it is not of: the table or its population."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, like 0.95, not {level!r}")
    if of not in ("table", "population"):
        raise ValueError(f"intervals are of the 'table' or of the 'population', not of {of!r}")


def margin_of_count(rate: float, level: float) -> int:
    """Returns the least k with P(|R| > k) = 2q^(k+1)/(1 + q) ≤ 1 - level: X lies in [c - k, c + k] with this level.

    **Arguments:** `rate`: of the noise, ε over what one record changes all counts by. `level`: between 0 and 1.
    """
    # log((1 - level)(1 + q)/2)/log q; rounding up what rounding made a little less changes nothing of the level.
    needed = math.log(2.0 / ((1.0 - level) * (1.0 + math.exp(-rate)))) / rate - 1.0
    return max(0, math.ceil(needed - 1e-9))


def count_of_population(count: float, rate: float, level: float, num_records: int | None = None) -> Ends:
    """Returns the expected counts m for which both P(X + R ≥ c) and P(X + R ≤ c) are at least (1 - level)/2.

    X is Binomial(n, m/n) where n is public, and Poisson(m) where the number of records is private. The interval holds
    m with at least this level, by the inversion of two tests (Clopper and Pearson 1934, with the noise).

    **Arguments:** `count`: c, whole. `rate`, `level`: as of `margin_of_count`. `num_records`: n.
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


def margin_of_sum(deviation: float, level: float) -> float:
    """Returns t with P(|L| > t) = 1 - level. **Arguments:** `deviation`: the standard deviation of L."""
    return deviation * math.sqrt(0.5) * math.log(1.0 / (1.0 - level))


def mean_of_population(mean: float, deviation: float, ends: Ends, num_records: int, level: float) -> Ends:
    """Returns an interval of the mean of the population that n records were drawn from, clipped to their bounds.

    The error is L + N, N normal with at most the variance (m - a)(b - m)/n of numbers in [a, b] with the mean m (Bhatia
    and Davis 2000), m being, of what noise leaves, the nearest to the middle: a part of 1/20 of the risk is for that.
    Of other than two values the variance is less, and the interval wider than it need be.

    **Arguments:** `mean`, `deviation`: of the release, and of L. `ends`: a and b. `num_records`: n, public.
    """
    low, high = ends
    risk, middle = 1.0 - level, 0.5 * (low + high)
    off = margin_of_sum(deviation, 1.0 - 0.05 * risk)
    nearest = float(np.clip(middle, *np.clip([mean - off, mean + off], low, high)))
    spread = math.sqrt(max((nearest - low) * (high - nearest), 0.0) / num_records)
    margin = _quantile_of_both(deviation * math.sqrt(0.5), spread, 0.95 * risk)
    return max(mean - margin, low), min(mean + margin, high)


def _quantile_of_both(scale: float, spread: float, risk: float) -> float:
    """Finds t with P(|L + N| > t) = risk, for Laplace's law of this scale and a normal one of this spread.

    P(L + N > t) = P(N > t) + ½e^(s²/2b²)·(e^(-t/b)·P(N < t - s²/b) - e^(t/b)·P(N > t + s²/b)).
    """
    if spread <= 1e-9 * scale:
        return scale * math.log(1.0 / risk)
    ratio = spread / scale

    def excess(t: float) -> float:
        z = t / spread
        parts = [
            scipy.special.log_ndtr(-z),
            0.5 * ratio**2 - z * ratio + scipy.special.log_ndtr(z - ratio) - math.log(2.0),
            0.5 * ratio**2 + z * ratio + scipy.special.log_ndtr(-z - ratio) - math.log(2.0),
        ]
        return 2.0 * float(np.exp(parts) @ [1.0, 1.0, -1.0]) - risk

    most = scale * math.log(2.0 / risk) - spread * float(scipy.special.ndtri(risk / 4.0))
    return float(brentq(excess, 0.0, most, xtol=1e-12 * most))


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
