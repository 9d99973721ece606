"""Bounds of how much more probable one law makes a set than another, from counts of draws."""

import numpy as np
from jaxtyping import Float, Int
from scipy import stats


def log_ratio_bound(
    named: Int[np.ndarray, " sets"],
    of_named: int,
    other: Int[np.ndarray, " sets"],
    of_other: int,
    risk: float,
    delta: float = 0.0,
) -> Float[np.ndarray, " sets"]:
    """log((P(A) - δ)/Q(A)) of each set A, P(A) bounded from below and Q(A) from above, by Clopper and Pearson.

    From independent draws, of which binomial numbers lie in A. Each of the two bounds fails with probability at most
    `risk`, and so the ratio's with twice as much; -inf where P(A) may be δ or less.

    **Arguments:** `named`, `other`: how many draws of P and of Q lie in each set. `of_named`, `of_other`: of how many.
    """
    lower = np.where(named > 0, stats.beta.ppf(risk, np.maximum(named, 1), of_named - named + 1), 0.0)
    upper = np.where(other < of_other, stats.beta.isf(risk, other + 1, np.maximum(of_other - other, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(lower - delta, 0.0)) - np.log(upper)
