"""Whether draws have the law they should have: one failure rate for every statistical check of the suite.

A check fails with probability at most `FAILURE_RATE` if the library is right, so by the union bound N checks fail a
right library with probability at most N·FAILURE_RATE: about 1e-3 for a thousand checks. Seeds are fixed, so that
chance is taken only when a seed, or a generator's way from keys to numbers, changes. A check of several numbers at
once shares the rate among them.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FAILURE_RATE = 1e-6

# Below this expected count the chi-square law is a poor guide to the far tail.
_SMALLEST_EXPECTED_COUNT = 20.0


def assert_same_law(draws: ArrayLike, cdf: Callable[[np.ndarray], np.ndarray]) -> None:
    """Independent draws, shape (n,), follow the continuous distribution function `cdf` (Kolmogorov and Smirnov)."""
    result = stats.kstest(_sample(draws), cdf)
    _judge(result.pvalue, f"largest distance to the distribution function {result.statistic:.4g}")


def assert_gamma(draws: ArrayLike, shape: float) -> None:
    """Independent draws, shape (n,), follow the Gamma(shape) law, and their sum that of Gamma(n·shape).

    The sum tells the scale from a few hundred draws, where distances of distribution functions take thousands.
    """
    sample = _sample(draws)
    assert_same_law(sample, stats.gamma(shape).cdf)
    assert_same_law([sample.sum()], stats.gamma(sample.size * shape).cdf)


def assert_two_samples_agree(first: ArrayLike, second: ArrayLike) -> None:
    """Two samples of independent draws, shapes (m,) and (n,), have one continuous law."""
    result = stats.ks_2samp(_sample(first), _sample(second), method="asymp")
    _judge(result.pvalue, f"largest distance between the distribution functions {result.statistic:.4g}")


def assert_mean_within(draws: ArrayLike, expected: ArrayLike, standard_error: ArrayLike | None = None) -> None:
    """The mean of draws, shape (n,) or (n, d), is the expected one, within its standard errors.

    `standard_error` is that of the mean; None takes it from the draws, which must then be independent.
    """
    sample = np.asarray(draws, dtype=np.float64)
    assert np.all(np.isfinite(sample)), "some draws are not finite"
    if standard_error is None:
        standard_error = sample.std(axis=0, ddof=1) / np.sqrt(sample.shape[0])
    deviations = np.atleast_1d((sample.mean(axis=0) - np.asarray(expected)) / standard_error)
    pvalue = min(1.0, 2.0 * deviations.size * stats.norm.sf(np.abs(deviations).max()))
    _judge(pvalue, f"the means are off by {np.round(deviations, 2)} standard errors")


def assert_cell_frequencies(counts: ArrayLike, probabilities: ArrayLike) -> None:
    """Counts of independent draws in cells that cover everything fit the cells' probabilities (chi-square).

    Rare cells are pooled, each with those about as rare as it; a cell of probability 0 must be empty.
    """
    observed, weights = np.ravel(counts).astype(np.float64), np.ravel(probabilities).astype(np.float64)
    assert observed.shape == weights.shape
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=0.0, atol=1e-9)
    assert np.all(observed[weights == 0.0] == 0.0), "there are draws in cells of probability 0"
    order = np.argsort(weights, kind="stable")
    pools = _pools(observed.sum() * weights[order])
    expected = np.bincount(pools, observed.sum() * weights[order])
    observed = np.bincount(pools, observed[order])
    assert expected.size > 1, "too few draws for these cells: every one was pooled"
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    _judge(float(stats.chi2.sf(statistic, expected.size - 1)), f"chi-square {statistic:.4g} of {expected.size} cells")


def _pools(expected: np.ndarray) -> np.ndarray:
    """Numbers of pools of consecutive cells, each with an expected count that is large enough."""
    found, number, total = np.zeros(expected.size, dtype=int), 0, 0.0
    for place, count in enumerate(expected.tolist()):
        found[place] = number
        total += count
        if total >= _SMALLEST_EXPECTED_COUNT:
            number, total = number + 1, 0.0
    # What is left over at the end belongs to the last whole one.
    return np.minimum(found, max(number - 1, 0))


def _sample(draws: ArrayLike) -> np.ndarray:
    sample = np.asarray(draws, dtype=np.float64)
    assert sample.ndim == 1, f"draws must have shape (n,), got {sample.shape}"
    assert np.all(np.isfinite(sample)), "some draws are not finite"
    return sample


def _judge(pvalue: float, what: str) -> None:
    assert pvalue >= FAILURE_RATE, f"{what}: p = {pvalue:.2g}, below the suite's rate of {FAILURE_RATE:g}"
