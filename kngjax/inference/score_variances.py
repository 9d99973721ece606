"""Releases a sampling variance for each combination of coefficients, at a public H, and draws the errors they imply.

With Ŵ = Ĥ^{-1} public, the direction b = Ŵa/√(a'Ŵa) of a combination a'θ has b'Ĥb = 1, and t = Σ s²(b'x)² = b'Jb is
the sampling variance (ŴJŴ) of a'θ over a'Ŵa. One record adds s²(b'x)², cut to a public c, so at most 1 in units
of c, and the sum gets K-norm noise of a box. A person with several rows adds (b'g)², where g is the sum of the scores
s·x of that person's rows times their weights: only persons are taken to be independent. For another H = W^{-1} the
variance is t·a'Wa to first order.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.persons import Unit, sums_by_person
from kngjax.data.records import WeightedRecords
from kngjax.inference.noise_of_sums import box_noise
from kngjax.inference.score_moments import Floats
from kngjax.mechanisms.k_norm import KNormMechanism

# What of ε is for the variances.
SHARE = 0.05
# A record adds at most so many times the mean that was guessed.
_CUT = 40.0
# The least t, in units of the guess.
_FLOOR = 0.05
_SEED = 2
_DIGITS = 2.0**21
_LARGEST = float(np.finfo(np.float64).max)


class UsualScores(NamedTuple):
    """Holds public guesses. **Arguments:** `ratio`: E s²/E w; None where nobody knows. `num_records`: n, or a guess."""

    ratio: float | None
    num_records: int | None


class Directions(NamedTuple):
    """Holds the b of each combination, shape (k, d), and the largest that one record adds, c, shape (k,). Public."""

    vectors: Float[np.ndarray, "combinations dimension"]
    cuts: Float[np.ndarray, " combinations"]

    @classmethod
    def of(
        cls, inverse: Floats, combinations: Floats, bounds: Bounds, square_unit: float, usual: UsualScores
    ) -> "Directions":
        """Makes them at Ŵ. **Arguments:** `square_unit`: the largest s²."""
        vectors = combinations @ inverse
        vectors = vectors / np.sqrt(np.einsum("kd,kd->k", vectors, combinations))[:, None]
        with float64():
            sides = np.abs(np.array([np.asarray(side, np.float64) for side in bounds.features(len(inverse))]))
        with np.errstate(over="ignore"):
            cuts = square_unit * (np.abs(vectors) @ sides.max(axis=0)) ** 2
        if usual.ratio is not None and usual.num_records:
            cuts = np.minimum(cuts, _CUT * usual.ratio / usual.num_records)
        return cls(vectors, np.clip(cuts, np.finfo(np.float64).tiny, _LARGEST))

    def columns(self, x: Floats, square: Floats, square_unit: float) -> Float[np.ndarray, "records combinations"]:
        """Computes s²(b'x)² of each record by itself, over c and within [0, 1]. Private.

        **Arguments:** `square`: s² over its unit.
        """
        made = np.empty((len(self.cuts), len(x)))
        for shares, along, cut in zip(made, self._along(x), self.cuts.tolist(), strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                np.multiply(square, square_unit / cut, out=shares)
                shares *= np.multiply(along, along, out=along)
            _to_few_digits(shares)
        return made.T

    def columns_of_persons(
        self, x: Floats, scores: Floats, square_unit: float, rows: WeightedRecords
    ) -> Float[np.ndarray, "persons combinations"]:
        """Computes (b'g)² of each person by itself, g = Σ w·s·x over that one's rows, over c and in [0, 1]. Private.

        Weights add up to k at most, so that no |b'g| exceeds k times the largest of a record.

        **Arguments:** `scores`: s of rows, over the root of its unit. `rows`: with weights and persons' numbers.
        """
        assert rows.codes is not None
        each, found = np.asarray(rows.weights, np.float64) * scores, []
        for along, cut in zip(self._along(x), self.cuts.tolist(), strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                sums = sums_by_person((each * along)[:, None], rows.codes, rows.num_records)[:, 0]
                found.append((square_unit / cut) * (sums * sums))
            _to_few_digits(found[-1])
        return np.stack(found, axis=1)

    def _along(self, x: Floats) -> Iterator[Float[np.ndarray, " records"]]:
        """Yields b'x of one combination after another, in memory that the next one reuses.

        Column by column, so that what is computed of a record does not depend on where it stands.
        """
        along, product = np.empty(len(x)), np.empty(len(x))
        for vector in self.vectors.tolist():
            along.fill(0.0)
            with np.errstate(over="ignore", invalid="ignore"):
                for column, coefficient in zip(x.T, vector, strict=True):
                    along += np.multiply(column, coefficient, out=product)
            yield along


def _to_few_digits(shares: Floats) -> None:
    """Clips numbers to [0, 1], 1 where they are none, and rounds them: sums of few digits are exact without much ado.

    Rounding moves them by far less than their noise.
    """
    np.clip(shares, 0.0, 1.0, out=shares)
    shares[np.isnan(shares)] = 1.0
    np.rint(np.multiply(shares, _DIGITS, out=shares), out=shares)
    shares /= _DIGITS


def summing_of(number: int, epsilon: float, adjacency: Any, unit: Unit | None = None) -> KNormMechanism:
    """Returns the mechanism that releases sums of numbers in [0, 1]. **Arguments:** `unit`: one row is of each."""
    bounds = Bounds((np.zeros(number), np.ones(number)), intercept=False, unit=unit)
    return KNormMechanism(bounds, epsilon, adjacency, statistic="sum", allow_large_epsilon=True)


def variances_given(
    sums: Floats, summing: KNormMechanism, cuts: Floats, usual: UsualScores, number: int
) -> Float[np.ndarray, "draws combinations"]:
    """Draws t as it may be without noise: what was released less noise as it has, not below a public floor."""
    noise = box_noise(summing, np.random.default_rng(_SEED), number)
    return np.maximum((sums - noise) * cuts, _FLOOR * (usual.ratio or 0.0))
