"""Chooses the ranks of two private order statistics that hold a quantile, from n, ε and the level: all public.

A pair θ_1 ≤ θ_2 is drawn with density ∝ exp(-c·s), s = max(0, a, b) - min(0, a, b), a = #{y ≤ θ_1} - r_1 and
b = #{y ≤ θ_2} - r_2. Where the gaps between values are alike, a is R with

    P(R = a) ∝ Σ_b exp(-c(max(0, a, b) - min(0, a, b))) = q^|a|·(|a| + (1 + q)/(1 - q)), q = e^-c,

since |a| + 1 of the b have s = |a|, and two have each larger one; so is b. Let K = #{y ≤ q_τ} for the quantile q_τ of
the population: Binomial(n, τ) where no value has a probability of its own, and independent of R. From θ_1 > q_τ follows
K ≤ r_1 + R, and from θ_2 < q_τ that K ≥ r_2 + R: r_1 is the largest rank with

    P(K ≤ r_1 + R) ≤ (1 - level)/2,

and r_2 the least one for the other side. No density is needed. K = r_1 + R counts as a miss in full, though half of it
is none, so that intervals are a little wider than they need to be.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import bdtr

# About the probability that the law of R leaves out.
_NEGLIGIBLE = 1e-13
# The share of 1 - level with which an end may come from beyond all values, where it says nothing.
BEYOND = 0.2
# Where nobody guesses the spread of the values, this share of the width of their bounds.
SPREAD = 1e-3
_MOST_RECORDS = 10**12
# Below this rate R has more values than can be added up, and no number of records has an interval.
_LEAST_RATE = 1e-5
_MOST_BLOCKS = 2**14


class Ranks(NamedTuple):
    """r_1 < r_2, from 1 to n - 1."""

    lower: int
    upper: int


@functools.lru_cache(maxsize=8)
def rank_noise(rate: float) -> tuple[Int[np.ndarray, " offsets"], Float[np.ndarray, " offsets"]]:
    """The values of R and their probabilities. **Arguments:** `rate`: c."""
    reach = math.ceil((-math.log(_NEGLIGIBLE) + 2.0 * math.log1p(1.0 / rate)) / rate) + 1
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-rate * np.abs(offsets)) * (np.abs(offsets) + 1.0 / math.tanh(0.5 * rate))
    return offsets, weights / np.sum(weights)


@functools.lru_cache(maxsize=64)
def _in_blocks(rate: float) -> tuple[Int[np.ndarray, " blocks"], Float[np.ndarray, " blocks"]]:
    """Coarsens the law of R to few blocks, each counted as its largest value, which makes misses more probable."""
    offsets, probabilities = rank_noise(rate)
    size = -(-len(offsets) // _MOST_BLOCKS)
    if size == 1:
        return offsets, probabilities
    starts = np.arange(0, len(offsets), size)
    return offsets[np.minimum(starts + size, len(offsets)) - 1], np.add.reduceat(probabilities, starts)


def miss_probability(num_records: int, tau: float, rank: float | int, rate: float) -> float:
    """P(Binomial(n, τ) ≤ r + R). Of the other end take 1 - τ and n - r. **Arguments:** `rank`: r. `rate`: c."""
    offsets, probabilities = _in_blocks(rate)
    most = np.floor(rank + offsets)
    known = bdtr(np.clip(most, 0.0, num_records - 1.0), num_records, tau)
    return float(probabilities @ np.where(most < 0, 0.0, np.where(most >= num_records, 1.0, known)))


def lower_rank(num_records: int, tau: float, rate: float, tail: float) -> int:
    """The largest r with P(Binomial(n, τ) ≤ r + R) ≤ tail; below 1 where there is none."""
    if rate < _LEAST_RATE:
        return 0
    low, high = 0, math.floor(num_records * tau) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if miss_probability(num_records, tau, middle, rate) <= tail else (low, middle)
    return low


def ranks_for(num_records: int, tau: float, rate: float, level: float) -> Ranks | None:
    """Returns the ranks for n records, or None where no ranks reach the level. **Arguments:** `rate`: c."""
    tail = 0.5 * (1.0 - level)
    lower = lower_rank(num_records, tau, rate, tail)
    upper = num_records - lower_rank(num_records, 1.0 - tau, rate, tail)
    return Ranks(lower, upper) if 1 <= lower < upper <= num_records - 1 else None


def beyond_probability(num_records: int, ranks: Ranks, rate: float, width: float) -> float:
    """Estimates the probability that θ_1 or θ_2 comes from a gap as wide as the bounds, below or above all values.

    Others are about as wide as the spread of the values over n. So with Z = Σ_{a, b} e^(-cs) and W = n·width: below,
    θ_1 alone does with W·P(R = r_1), and both with W²·e^(-c·r_2)/(2Z); above likewise.

    **Arguments:** `width`: of the bounds, in units of the spread.
    """
    offsets, probabilities = rank_noise(rate)
    spare = 1.0 / math.tanh(0.5 * rate)
    log_total = math.log(spare) - math.log(probabilities[len(offsets) // 2])
    log_width, total = math.log(num_records * width), 0.0
    for nearer, farther in (ranks, (num_records - ranks.upper, num_records - ranks.lower)):
        alone = log_width - rate * nearer + math.log(nearer + spare)
        both = 2.0 * log_width - rate * farther - math.log(2.0)
        total += sum(math.exp(min(one - log_total, 100.0)) for one in (alone, both))
    return total


def holds(num_records: int, tau: float, rate: float, level: float, width: float) -> bool:
    """Tells whether n records are enough, from public facts alone. **Arguments:** as above."""
    ranks = ranks_for(num_records, tau, rate, level)
    return ranks is not None and beyond_probability(num_records, ranks, rate, width) <= BEYOND * (1.0 - level)


def records_needed(num_records: int, tau: float, rate: float, level: float, width: float) -> int | None:
    """The least n that is enough, rounded up to two digits; None beyond 10^12.

    **Arguments:** `num_records`: too few.
    """

    def middle(low: int, high: int) -> int | None:
        return (low + high) // 2 if high - low > max(low // 200, 1) else None

    least = _least(lambda count: holds(count, tau, rate, level, width), num_records, _MOST_RECORDS, middle)
    if least is None:
        return None
    step = 10 ** max(len(str(least)) - 2, 0)
    return -(-least // step) * step


def rate_needed(num_records: int, tau: float, rate: float, level: float, width: float) -> float | None:
    """The least c that is enough, within a hundredth; None where more privacy loss is of no use."""

    def middle(low: float, high: float) -> float | None:
        return math.sqrt(low * high) if high > 1.01 * low else None

    return _least(lambda trial: holds(num_records, tau, trial, level, width), rate, 64.0, middle)


def _least(is_enough: Callable[[Any], bool], low: Any, most: Any, middle: Callable[[Any, Any], Any]) -> Any:
    """Doubles `low` until it is enough, None beyond `most`, then takes middles until there is none any more."""
    high = low
    while not is_enough(high):
        low, high = high, 2 * high
        if high > most:
            return None
    while (between := middle(low, high)) is not None:
        low, high = (low, between) if is_enough(between) else (between, high)
    return high
