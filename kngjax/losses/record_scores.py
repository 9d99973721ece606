"""Verified scores of records, times the records' weights where they have some, with every rounding bounded.

A product of a weight and a float64 number is rounded once: by u = 2^-53 of itself, or, of subnormal numbers, by less
than `NEXT_TO_ZERO`. That is added to what is known of a score. Slopes are given as rounded: who takes them must leave
room for one more rounding of each, as of the other factors of its products.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb
from jaxtyping import Float

from kngjax.core.verified import NEXT_TO_ZERO, UNIT, WIDER, Floats
from kngjax.losses.verified_scores import AbstractVerifiedScore


class RecordScores(NamedTuple):
    """w_i s(η_i, y_i) of every record. Private.

    **Arguments:** `score`: s. `y`: of every record. `weights`: w ≥ 0 of every record; None where they count alike.
    """

    score: AbstractVerifiedScore
    y: Float[np.ndarray, " records"]
    weights: Float[np.ndarray, " records"] | None = None

    def __repr__(self) -> str:
        return "<RecordScores; OWNER ONLY>"

    def rows(self, chosen: slice) -> "RecordScores":
        """Selects the scores of a slice of the records."""
        return RecordScores(self.score, self.y[chosen], None if self.weights is None else self.weights[chosen])

    def floats(self, predictor: Floats, error: Floats) -> tuple[Floats, Floats]:
        """Multiplies the scores and errors of `AbstractVerifiedScore.floats` by w. Records are the last axis."""
        score, off = self.score.floats(predictor, error, self.y)
        if self.weights is None:
            return score, off
        score = self.weights * score
        return score, (self.weights * off + UNIT * np.abs(score)) * WIDER + NEXT_TO_ZERO

    def slopes(self, predictor: Floats, radius: Floats) -> tuple[Floats, Floats]:
        """Multiplies the ends of `AbstractVerifiedScore.slopes` by w, rounded once."""
        return self._times(self.score.slopes(predictor, radius, self.y))

    def secants(self, predictor: Floats, error: Floats, radius: Floats) -> tuple[Floats, Floats]:
        """Multiplies the ends of `AbstractVerifiedScore.secants` by w, rounded once."""
        return self._times(self.score.secants(predictor, error, radius, self.y))

    def balls(self, predictors: Sequence[arb]) -> list[arb]:
        """Balls that contain w_i s_i for each η_i in these, one of every record."""
        return self._of_each(self.score.ball, predictors)

    def slope_balls(self, predictors: Sequence[arb]) -> list[arb]:
        """Balls that contain the slopes of w_i s_i over these, one of every record."""
        return self._of_each(self.score.slope_ball, predictors)

    def _of_each(self, function: Callable[[arb, Fraction], arb], predictors: Sequence[arb]) -> list[arb]:
        found = [function(p, Fraction(y)) for p, y in zip(predictors, self.y.tolist(), strict=True)]
        if self.weights is None:
            return found
        return [one * arb(w) for one, w in zip(found, self.weights.tolist(), strict=True)]

    def _times(self, ends: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        return ends if self.weights is None else (self.weights * ends[0], self.weights * ends[1])
