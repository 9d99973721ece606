"""Sizes of groups are public here: numbers of records that somebody said, guessed or released."""

import math
from dataclasses import dataclass, replace

# Times the noise of a released number of records, below which it says little of how many there are.
_KNOWN_FROM = 10.0
# Deviations of noise that a released number is rarely too large by.
_RARELY = 4.0


@dataclass(frozen=True)
class GroupSize:
    """Holds how many records a group has, as far as anybody said.

    **Arguments:** `count`: n, or a guess of it, or None. `noise`: the standard deviation of the noise of a number that
    was released; 0 for one that was said; None for an equal share of all records, which nobody said.
    """

    count: int | None
    noise: float | None = 0.0

    @property
    def is_known(self) -> bool:
        """Whether somebody said the number, or released it with noise of less than a tenth."""
        return self.count is not None and self.noise is not None and self.count > _KNOWN_FROM * self.noise

    @property
    def at_least(self) -> "GroupSize":
        """Bounds the size from below: a released number is reduced by four standard deviations of its noise."""
        if self.count is None or not self.noise:
            return self
        return replace(self, count=max(math.floor(self.count - _RARELY * self.noise), 1))

    @property
    def in_words(self) -> str:
        """Says how many records a figure is for: as many as the released counts say, or as `num_records`."""
        return "as many records as the released counts say" if self.noise else "as many records as num_records says"

    @property
    def why_unknown(self) -> str:
        """Says why no figure can be based on this size."""
        if self.noise is None:
            return (
                "sizes of the groups are not known: give num_records= to by, one for all or one for each, "
                "by('region', num_records=500), or the counts that a histogram of the groups released"
            )
        return "the released number of records of this group has so much noise itself"
