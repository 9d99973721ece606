"""Tests of several coefficients at once, by draws of the joint law of their errors."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from kngjax.core.summary_table import AbstractSummarised, SummaryTable


@dataclasses.dataclass(frozen=True, repr=False)
class WaldTest(AbstractSummarised):
    """Tests that Aθ0 = 0, by draws e of the error θ̃ - θ0: under this hypothesis Aθ̃ is one more draw of Ae.

    The test compares Mahalanobis lengths v'C^{-1}v about the mean of the draws of Ae, with C their covariance. If the
    draws have the law of the error, whatever it is, a p-value is at most α with probability α, up to one over the
    number of draws. For several coefficients this assumes that sampling errors are correlated as H^{-1} says, which
    holds where squared scores do not depend on the features: only the variance of each coefficient is released.

    **Arguments:** `statistic`: the length for Aθ̃, of the chi-squared law with `df_num` degrees where errors are normal.
    `pvalue`: (1 + the number of draws with at least that length)/(1 + `draws`). `df_num`: the number of rows of A.
    `draws`: the number of draws. `names`: of the rows of A.
    """

    statistic: float
    pvalue: float
    df_num: int
    draws: int
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        combinations: Float[np.ndarray, "combinations dimension"],
        theta: Float[np.ndarray, " dimension"],
        errors: Float[np.ndarray, "draws dimension"],
        names: Sequence[str] = (),
    ) -> "WaldTest":
        """Tests that Aθ0 = 0. **Arguments:** `combinations`: A. `theta`: θ̃. `errors`: draws of θ̃ - θ0.

        Raises ValueError for rows of A that are sums of one another, as 0 is.
        """
        largest = np.max(np.abs(combinations), axis=1, keepdims=True)
        rows = combinations / np.where(largest > 0.0, largest, 1.0)
        if np.linalg.matrix_rank(rows) < len(rows) or not len(rows):
            raise ValueError("some combinations are sums of others, or zero: leave these out")
        drawn = errors @ rows.T
        centre, scale = drawn.mean(axis=0), drawn.std(axis=0)
        # Of (drawn - centre)/scale = QR the Mahalanobis length of a row is (draws - 1) times the square of Q's.
        orthonormal, upper = np.linalg.qr((drawn - centre) / scale)
        own = np.linalg.solve(upper.T, (rows @ theta - centre) / scale)
        number = len(errors)
        lengths, statistic = (number - 1) * np.sum(orthonormal**2, axis=1), (number - 1) * float(own @ own)
        beyond = int(np.count_nonzero(lengths >= statistic))
        return cls(statistic, (1 + beyond) / (1 + number), len(rows), number, tuple(names))

    @property
    def pvalue_error(self) -> float:
        """Returns the standard deviation of `pvalue` that is due to the number of draws."""
        return float(np.sqrt(self.pvalue * (1.0 - self.pvalue) / self.draws))

    def summary(self) -> SummaryTable:
        """Lays out the statistic and its p-value."""
        about = f" that {', '.join(self.names)} {'are all' if len(self.names) > 1 else 'is'} 0" if self.names else ""
        least = ", the least that these can tell" if self.pvalue <= 1.0 / (1 + self.draws) else ""
        how = f"p-value: +- {self.pvalue_error:.1g} by {self.draws:,} draws of the errors' joint law{least}"
        row = ("Wald", self.statistic, self.df_num, self.pvalue)
        return SummaryTable(f"Wald test{about}", (), ("test", "statistic", "df_num", "p-value"), [row], notes=[how])
