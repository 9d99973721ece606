"""Draws means, variances and counts given released sums whose noise has a known law, and the ends of these draws.

A draw is the released number less fresh noise of the same law; for a population sampling errors are added. All of it is
public, so it costs nothing.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from kngjax.inference.known_noise import geometric_noise

# Of so many, which are the same ones each time, a tail of .025 has the error .0012.
DRAWS = 16_000
# Of many numbers at once fewer are drawn, so many numbers in all.
_MOST = 10_000_000
Draws = Float[np.ndarray, "draws *numbers"]


def ends_of_draws(draws: Draws, level: float) -> tuple[Any, Any]:
    """Returns the quantiles between which this part of the draws lies, of each number by itself."""
    lower, upper = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    return lower, upper


def means_given(
    sums: Float[np.ndarray, "draws 3"], half_width: float, random: Any, of_population: bool
) -> Float[np.ndarray, " draws"]:
    """Draws the mean of v, |v| ≤ h, in a table or a population, of sums (n, T, S) of 1, v and v² - ½h² less noise.

    The mean is T/n, and that of a population has N(0, (½h² + S/n - (T/n)²)/n) besides, the variance being at least 0
    and at most h² - (T/n)². With fewer than 2 records the sums say nothing of the mean: every other such draw is -h,
    and the rest are h, so that quantiles can but move outwards.
    """
    count, total, squares = sums.T
    known = np.maximum(count, 2.0)
    mean = np.clip(total / known, -half_width, half_width)
    if of_population:
        variance = np.clip(0.5 * half_width**2 + squares / known - mean**2, 0.0, half_width**2 - mean**2)
        mean = mean + random.standard_normal(len(mean)) * np.sqrt(variance / known)
    ends = np.where(np.arange(len(mean)) % 2 == 0, -half_width, half_width)
    return np.where(count < 2.0, ends, np.clip(mean, -half_width, half_width))


def counts_given(released: Float[np.ndarray, " cells"], rate: float, random: Any) -> Float[np.ndarray, "draws cells"]:
    """Draws counts that may have been released as these, less two-sided geometric noise of this rate: at least 0."""
    number = max(min(DRAWS, _MOST // len(released)), 1000)
    return np.maximum(released - geometric_noise(rate, (number, len(released)), random), 0.0)


def expected_counts_given(
    counts: Float[np.ndarray, "draws cells"], random: Any, is_total_public: bool
) -> Float[np.ndarray, "draws cells"]:
    """Draws what counts of a table as large, drawn at random from the population, have been on average.

    Each is a count X with an error N(0, X + 1): a Poisson number has the variance of its mean, and X + 1 is that of the
    means of which X is likely. Where their total is public the errors add up to 0, as those of multinomial counts.
    """
    spread = np.sqrt(counts + 1.0)
    errors = spread * random.standard_normal(counts.shape)
    if is_total_public:
        errors = errors - (counts + 1.0) * errors.sum(axis=1, keepdims=True) / (spread**2).sum(axis=1, keepdims=True)
    return np.maximum(counts + errors, 0.0)


def shares_given(
    counts: Float[np.ndarray, "draws rows cells"], random: Any, of_population: bool
) -> Float[np.ndarray, "draws rows cells"]:
    """Draws the shares of cells in their rows: of the table's records, or with multinomial errors of a population's."""
    if of_population:
        flat = counts.reshape(-1, counts.shape[-1])
        counts = expected_counts_given(flat, random, is_total_public=True).reshape(counts.shape)
    return counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
