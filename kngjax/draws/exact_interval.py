"""Draws an interval of a quantile: two points of a public grid jointly, with every rounding in the proof."""

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from kngjax.accounting.exact_costs import exactly
from kngjax.accounting.guarantees import Adjacency
from kngjax.core.balls import power_of_two
from kngjax.data.schema import Schema
from kngjax.draws.base import AbstractDraw
from kngjax.draws.rank_pairs import RankPairs
from kngjax.draws.uniforms import Bits
from kngjax.mechanisms.interval_ranks import Ranks
from kngjax.mechanisms.preparation import TOO_MANY_RECORDS
from kngjax.mechanisms.quantile_interval import MOST_RECORDS, QuantileInterval
from kngjax.sensitivity import in_fractions

# Binary digits of the grid, relative to the width of the bounds and to their largest number.
_DIGITS, _MOST_DIGITS = 40, 50


@dataclasses.dataclass(frozen=True)
class ExactInterval(AbstractDraw):
    """θ = k·2^e with P(k_1, k_2) ∝ exp(-(ε/Δ)·s) for k_1 ≤ k_2, s = (|a| + |b - a| + |b|)/2, as real arithmetic draws.

    Each value is clipped and rounded to the grid by itself, so that neighbours stay neighbours. a and b are counted of
    the rounded values in whole units of 1/D, D = 1 under replace, and `count` under add_remove, of which levels are
    multiples. ε and Δ are fractions, and nothing else is rounded: for neighbours 2s differs by at most Δ at every pair
    of a finite public set, so by the exponential mechanism's proof log-probabilities differ within an interval of
    length ε.

    **Arguments:** `count`: the public number of records that `ranks` are made for. `exponent`: e. `ends`: the first and
    the last k. `refusal`: why there is no interval, where it was asked for all the same; else None.
    """

    mechanism: Any
    count: int
    ranks: Ranks
    exponent: int
    ends: tuple[int, int]
    refusal: str | None
    grid: None = None
    serves: ClassVar[tuple[type, ...]] = (QuantileInterval,)

    @classmethod
    def of(cls, mechanism: Any, facts: Schema) -> "ExactInterval":
        """Returns the draw on a grid relative to the bounds.

        Raises ValueError for too few records, and for bounds that are too near to each other for float64.
        """
        count = mechanism.count(facts.num_records)
        ranks, refusal = mechanism.ranks(count), mechanism.refusal(count)
        low, high = float(mechanism.bounds.y_lower), float(mechanism.bounds.y_upper)
        exponent = max(math.frexp(high - low)[1] - _DIGITS, math.frexp(max(-low, high))[1] - _MOST_DIGITS)
        unit = power_of_two(exponent)
        ends = math.ceil(Fraction(low) / unit), math.floor(Fraction(high) / unit)
        if ends[0] >= ends[1]:
            raise ValueError(
                f"the bounds of y, {low!r} and {high!r}, are too near to each other: subtract a public number"
            )
        return cls(mechanism, count, ranks, exponent, ends, refusal)

    @property
    def settings(self) -> dict[str, Any]:
        public = {"grid_exponent": self.exponent, "num_records": self.count, "ranks": list(self.ranks)}
        return {"type": "Direct", **public, "refusal": self.refusal}

    @property
    def method(self) -> str:
        return (
            f"Ranks {self.ranks.lower} and {self.ranks.upper} of {self.count}, from public facts alone. Values are "
            "rounded to the grid one by one; pairs of its points are counted in whole numbers, block by block of their "
            "score, and drawn by rejection with as many random bits as decide it."
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        if self.mechanism.adjacency is Adjacency.REPLACE:
            return ()
        most = f"there are at most {MOST_RECORDS:,} records"
        return (f"{most}: a release of more fails, and that it failed is not covered",)

    def prepare(self, X: Any, y: Any) -> RankPairs:
        """Prepares the law of the two points, from the sorted values in whole units of the grid. Private."""
        values = np.asarray(self.mechanism.intake.records(X, y).y, np.float64)
        if len(values) > MOST_RECORDS:
            raise ValueError(TOO_MANY_RECORDS)
        # Powers of two are exact, and the nearest whole number has no more than 53 digits.
        whole = np.sort(np.clip(np.rint(np.ldexp(values, -self.exponent)).astype(np.int64), *self.ends))
        unit, times = (1, 1) if self.mechanism.adjacency is Adjacency.REPLACE else (self.count, len(values))
        centres = self.ranks.lower * times, self.ranks.upper * times
        return RankPairs(whole, *self.ends, unit, centres, self.rate / unit)

    @property
    def rate(self) -> Fraction:
        """ε/Δ, of ε as the decimal number that it prints as."""
        levels = [Fraction(rank, self.count) for rank in self.ranks]
        sensitivity = in_fractions.joint_quantile_sensitivity(levels, self.mechanism.adjacency)
        return exactly(float(self.mechanism.epsilon)) / sensitivity

    def draw(self, data: RankPairs, bits: Bits) -> Float[np.ndarray, " ends"]:
        return np.ldexp(np.array(data.draw(bits), np.float64), self.exponent)
