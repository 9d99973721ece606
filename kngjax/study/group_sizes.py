"""Sizes of groups are public here: numbers of records that somebody said, guessed or released."""

import math
from dataclasses import dataclass, replace

from kngjax.inference.known_noise import margin_of_count
from kngjax.mechanisms.quantile_interval import MOST_RECORDS

# Times the noise of a released number of records, below which it says little of how many there are.
_KNOWN_FROM = 10.0
# The part of what an interval may miss that is for released counts which are too large.
_MISSED = 0.1


@dataclass(frozen=True)
class GroupSize:
    """Holds how many records a group has, as far as anybody said.

    **Arguments:** `count`: n, or a guess of it, or None. `noise`: the standard deviation of the noise of a number that
    was released; 0 for one that was said; None for an equal share of all records, which nobody said. `miss`: the
    probability that there are fewer records than `count`, of a bound from below that a released number has.
    """

    count: int | None
    noise: float | None = 0.0
    miss: float = 0.0

    @property
    def is_known(self) -> bool:
        """Tells whether somebody said the number, or released it with noise of less than a tenth."""
        return self.count is not None and self.noise is not None and self.count > _KNOWN_FROM * self.noise

    def at_least(self, level: float) -> "GroupSize":
        """Bounds the size from below for intervals of this level, which count in how often the bound is too large.

        A released ñ is n + R with two-sided geometric R, so that n_L = ñ - k exceeds n with probability
        P(R > k) = q^(k+1)/(1 + q) at most a = (1 - level)/10, q = e^-c: half of what `margin_of_count` bounds. The rate
        c is the count's, which its standard deviation 1/(√2·sinh(c/2)) tells.
        """
        if self.count is None or not self.noise:
            return self
        bound = min(max(self.count - self.margin(level), 1), MOST_RECORDS)
        return replace(self, count=bound, miss=_MISSED * (1.0 - level))

    def margin(self, level: float) -> int:
        """Returns k of `at_least`; 0 of a number that was said."""
        if not self.noise:
            return 0
        rate = 2.0 * math.asinh(math.sqrt(0.5) / self.noise)
        return margin_of_count(rate, 1.0 - 2.0 * _MISSED * (1.0 - level))

    @property
    def in_words(self) -> str:
        """Says how many records a figure is for: as many as the released counts say, or as `num_records`."""
        return "as many as the released counts say" if self.noise else "as many as num_records says"

    @property
    def why_unknown(self) -> str:
        """Says why no figure can be based on this size."""
        if self.noise is None:
            return (
                "sizes of the groups are not known: give num_records= to by, one for all or one for each, "
                "by('region', num_records=500), or the counts that a histogram of the groups released"
            )
        return "the released number of records of this group has so much noise itself"
