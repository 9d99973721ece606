"""Intervals by noise whose law is known: of counts, sums and means, in the table and in its population.

A released count is c = X + R, X the count and R two-sided geometric, P(R = r) = (1 - q)/(1 + q)·q^|r|, q = e^(-rate). A
released sum or mean is x + L, L of Laplace's law, P(|L| > t) = e^(-t/b), whose standard deviation is √2·b. All of it is
public, and what is computed here is free.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from jaxtyping import Integer

# Masses beyond this many standard deviations, or below e^-40, are less than 10^-16.
_DEVIATIONS, _NEGLIGIBLE = 9.0, 40.0
# Beyond this variance of a count its law is taken as normal: its skewness moves a tail by less than 10^-5.
_NORMAL = 1e9
# Halvings of the bracket of an end: it is then known to 10^-12 of its length, and by half as many to 10^-6.
_HALVINGS = 40
# Of noise, where a law has no closed form: a tail of .025 is then known to .002. Of so many numbers' sum it is normal.
_DRAWS, _SEED, _MANY = 5_000, 0, 50

Ends = tuple[float, float]
# P(noise ≥ j) - 1{j ≤ 0} for numbers j, and the scale of the noise.
Noise = tuple[Callable[[np.ndarray], np.ndarray], float]


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
    needed = math.log(2.0 / ((1.0 - level) * (1.0 + math.exp(-rate)))) / rate - 1.0
    # Rounding up what rounding made a little more than whole changes nothing of the level.
    return max(0, math.ceil(needed - 1e-9))


def margin_of_sum(deviation: float, level: float) -> float:
    """Returns t with P(|L| > t) = 1 - level. **Arguments:** `deviation`: the standard deviation of L."""
    return deviation * math.sqrt(0.5) * math.log(1.0 / (1.0 - level))


def count_of_population(count: float, rate: float, level: float, num_records: int | None = None) -> Ends:
    """Returns the expected counts m for which both P(X + R ≥ c) and P(X + R ≤ c) are at least (1 - level)/2.

    X is Binomial(n, m/n) where n is public, and Poisson(m) where the number of records is private. The interval holds
    m with at least this level, by the inversion of two tests (Clopper and Pearson 1934, with the noise).

    **Arguments:** `count`: c, whole. `rate`, `level`: as of `margin_of_count`. `num_records`: n.
    """
    q = math.exp(-rate)

    def excess(steps: np.ndarray) -> np.ndarray:
        # q^j/(1 + q) for j ≥ 1; less 1, -q^(1 - j)/(1 + q) for j ≤ 0.
        above = steps > 0
        return np.exp(-rate * np.where(above, steps, 1.0 - steps)) / (1.0 + q) * np.where(above, 1.0, -1.0)

    # P(X + R ≤ c) is 1 - P(X + R ≥ c + 1), of whole numbers.
    return _inverted(count, count + 1.0, (excess, 1.0 / rate), level, num_records)


def mean_of_population(mean: float, deviation: float, ends: Ends, num_records: int, level: float) -> Ends:
    """Returns an interval of the mean of the population that n records were drawn from, clipped to their bounds.

    The interval is exact for values at a and b alone, where (x̄ - a)/(b - a)·n is Binomial: no law in [a, b] with this
    mean has sums of a larger variance. For other values it is wider than need be, and covers about its level or more.
    With a few large values among many at a, and little noise, one tail may be half as large again as the binomial one.

    **Arguments:** `mean`, `deviation`: of the release, and of L. `ends`: a and b. `num_records`: n, public.
    """
    low, high = ends
    unit = (high - low) / num_records
    scale = deviation * math.sqrt(0.5) / unit

    def excess(steps: np.ndarray) -> np.ndarray:
        return 0.5 * np.exp(-np.abs(steps) / scale) * np.where(steps > 0, 1.0, -1.0)

    count = (mean - low) / unit
    lower, upper = _inverted(count, count, (excess, scale), level, num_records)
    return low + unit * lower, low + unit * upper


def _inverted(first: float, second: float, noise: Noise, level: float, num_records: int | None) -> Ends:
    """Inverts the tests P(X + N ≥ first) ≥ (1 - level)/2 and P(X + N ≥ second) ≤ (1 + level)/2 in the mean of X."""
    risk = (1.0 - level) / 2.0
    # Farther than noise and the count's own deviation reach together.
    reach = max(first, 0.0) + 100.0 + _NEGLIGIBLE * noise[1]
    most = reach + 20.0 * math.sqrt(reach)
    if num_records is not None:
        most = min(most, float(num_records))

    def is_too_low(mean: float) -> bool:
        return _at_least(first, mean, noise, num_records) < risk

    def is_low_enough(mean: float) -> bool:
        return 1.0 - _at_least(second, mean, noise, num_records) >= risk

    lower = _end(is_too_low, most)[0] if is_too_low(0.0) else 0.0
    upper = _end(is_low_enough, most)[1] if is_low_enough(0.0) else 0.0
    return lower, upper


def _end(holds: Callable[[float], bool], most: float, halvings: int = _HALVINGS) -> Ends:
    """Finds numbers on both sides of the end of [0, m] on which a condition holds; `most` where it holds everywhere."""
    if holds(most):
        return most, most
    low, high = 0.0, most
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _at_least(count: float, mean: float, noise: Noise, num_records: int | None) -> float:
    """Computes P(X + N ≥ c) = P(X ≥ c) + Σ_x P(X = x)·(P(N ≥ c - x) - 1{c ≤ x})."""
    excess, scale = noise
    variance = mean if num_records is None else mean * (1.0 - mean / num_records)
    reach, far = _DEVIATIONS * math.sqrt(variance) + 40.0, _NEGLIGIBLE * scale
    if variance > _NORMAL:
        return _of_both(count - mean, scale, math.sqrt(variance))
    first, last = max(0.0, mean - reach, count - far), min(mean + reach, count + far)
    if num_records is not None:
        last = min(last, float(num_records))
    x = np.arange(math.floor(first), math.ceil(last) + 1) if first <= last else np.empty(0)
    masses = np.exp(_log_masses(x, mean, num_records))
    return float(_beyond(float(math.ceil(count)), mean, num_records) + masses @ excess(count - x))


def _of_both(t: float, scale: float, spread: float) -> float:
    """Computes P(L + N > t) for Laplace noise of this scale and a normal N of this spread, in closed form.

    P(L + N > t) = P(N > t) + ½e^(s²/2b²)·(e^(-t/b)·P(N < t - s²/b) - e^(t/b)·P(N > t + s²/b)).
    """
    z = t / spread
    if spread > 1e9 * scale:
        return float(scipy.special.ndtr(-z))
    ratio = spread / scale
    parts = [
        scipy.special.log_ndtr(-z),
        0.5 * ratio**2 - z * ratio + scipy.special.log_ndtr(z - ratio) - math.log(2.0),
        0.5 * ratio**2 + z * ratio + scipy.special.log_ndtr(-z - ratio) - math.log(2.0),
    ]
    return float(np.exp(parts) @ [1.0, 1.0, -1.0])


def _log_masses(x: np.ndarray, mean: float, num_records: int | None) -> Any:
    if num_records is None:
        return scipy.special.xlogy(x, mean) - mean - scipy.special.gammaln(x + 1.0)
    chance, others = mean / num_records, num_records - x
    ways = scipy.special.gammaln(num_records + 1.0) - scipy.special.gammaln(x + 1.0)
    # Outside of 0 to n nothing has mass.
    ways = ways - np.where(others >= 0, scipy.special.gammaln(np.maximum(others, 0) + 1.0), np.inf)
    return ways + scipy.special.xlogy(x, chance) + scipy.special.xlog1py(np.maximum(others, 0), -chance)


def _beyond(count: float, mean: float, num_records: int | None) -> float:
    """Computes P(X ≥ c)."""
    if count <= 0.0:
        return 1.0
    if num_records is None:
        return float(scipy.special.gammainc(count, mean))
    if count > num_records:
        return 0.0
    return float(scipy.special.betainc(count, num_records - count + 1.0, mean / num_records))


def share_of_row(cell: float, others: float, number: int, rate: float, level: float, of_population: bool) -> Ends:
    """Returns the ends of the shares p of a cell in its row that the released counts leave plausible.

    These are the p for which both tails of (1 - p)R₁ - pR₂ + N(0, Np(1 - p)) at (1 - p)c - p(N - c) are at least
    (1 - level)/2.

    At the true share (1 - p)X - p(n - X) has mean 0 and variance np(1 - p), or of the table's own records is 0: so that
    neither n nor the variance is divided by (Fieller 1954), and the interval holds where N is mostly noise. Tails are
    averages of normal ones over draws of the noises. Where no p has such tails nothing is known of it: [0, 1].

    **Arguments:** `cell`: c, released. `others`: the sum of the `number` other cells of the row, each released with
    noise of its own, whose sum is R₂. `rate`, `level`: as of `margin_of_count`. `of_population`: whether the share is
    that of the population, or of the table's own records.
    """
    risk, random = (1.0 - level) / 2.0, np.random.default_rng(_SEED)
    first, rest = geometric_noise(rate, (_DRAWS,), random), _sum_of_noises(rate, number, random)
    # Counts below what noise takes away are no counts.
    cell, others = max(cell, -margin_of_count(rate, level)), max(others, -margin_of_count(rate, level))
    total = max(cell + others, 1.0)

    def is_plausible(share: float) -> bool:
        found, noise = (1.0 - share) * cell - share * others, (1.0 - share) * first - share * rest
        spread = math.sqrt(total * share * (1.0 - share)) if of_population else 0.0
        # Rounding moves equal numbers apart by much less, and those belong to both tails.
        distance, both = (noise - found) / max(spread, 1e-9 * (1.0 + abs(found))), 10.0 * (spread == 0.0)
        return bool(min(scipy.special.ndtr(both + side * distance).mean() for side in (-1.0, 1.0)) >= risk)

    best = min(max(cell / total, 0.0), 1.0)
    if not is_plausible(best):
        return 0.0, 1.0
    lower = 0.0 if is_plausible(0.0) else best - _end(lambda far: is_plausible(best - far), best, _HALVINGS // 2)[1]
    upper = (
        1.0 if is_plausible(1.0) else best + _end(lambda far: is_plausible(best + far), 1.0 - best, _HALVINGS // 2)[1]
    )
    return lower, upper


def geometric_noise(rate: float, shape: tuple[int, ...], random: Any) -> Integer[np.ndarray, "*shape"]:
    """Draws two-sided geometric noise, as the difference of two geometric numbers. **Arguments:** `random`: NumPy's."""
    chance = -math.expm1(-rate)
    return random.geometric(chance, shape) - random.geometric(chance, shape)


def _sum_of_noises(rate: float, number: int, random: Any) -> np.ndarray:
    if number <= _MANY:
        return geometric_noise(rate, (_DRAWS, number), random).sum(axis=1)
    return random.standard_normal(_DRAWS) * math.sqrt(0.5 * number) / math.sinh(0.5 * rate)
