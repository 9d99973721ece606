"""Releases means, then for a part of ε how much each column varies about its released mean."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from kngjax.core.arrays import float64
from kngjax.data.bounds import Bounds
from kngjax.data.persons import sums_by_person
from kngjax.data.records import WeightedRecords
from kngjax.inference.covariances import BY_PERSON, NOTHING_ASSUMED
from kngjax.inference.interval_plans import AbstractColumns, AbstractIntervalPlan
from kngjax.inference.intervals_from_sums import ErrorDraws
from kngjax.inference.noise_of_sums import box_noise
from kngjax.inference.score_moments import Floats
from kngjax.inference.score_variances import summing_of
from kngjax.releases.release import Release

# Of ε, for the variances beside a mean: with more the noise of the mean grows, with less that of the variances.
SHARE = 0.15
_SEED = 0
# Each costs little: so many that their quantiles are those of the law.
_DRAWS = 16_000


@dataclasses.dataclass(frozen=True, eq=False)
class MeanPlan(AbstractIntervalPlan):
    """Releases the means θ̃ of n records, then Σ(x_j - θ̃_j)² of each column, with θ̃ taken within the bounds.

    With persons, x is the mean of a person's rows: persons are independent where rows are not.

    A record within the bounds l and u adds at most max((u_j - θ̃_j)², (l_j - θ̃_j)²), which is public by then; in that
    unit it adds a number in [0, 1]. Without noise the sums are taken to lie between 0 and n. They are not cut at the
    largest variance of a mean θ̃, (u_j - θ̃_j)(θ̃_j - l_j): records at the bounds reach it, and all draws would then lie
    below the truth.

    **Arguments:** `mechanism`: `KNormMechanism` of the means, at its own ε. `share`: the share of all of ε for the
    squares. `epsilon`: the ε of the squares. `num_records`: n, once it is known.
    """

    mechanism: Any
    share: float
    epsilon: float

    def settings(self, parts: Sequence[Release] = ()) -> dict[str, Any]:
        return {"type": type(self).__name__, "share": self.share, "epsilon": self.epsilon}

    @functools.cached_property
    def summing(self) -> Any:
        """Returns the mechanism that releases the sums of squares."""
        bounds = self.mechanism.bounds
        return summing_of(self.mechanism.dimension, self.epsilon, self.mechanism.adjacency, bounds.unit_alone)

    @property
    def later(self) -> Sequence[Any]:
        return [self.summing]

    def columns(self, parts: Sequence[Release]) -> AbstractColumns:
        return _Squares(self.mechanism, np.asarray(parts[0].value, np.float64))

    def errors(self, parts: Sequence[Release]) -> ErrorDraws:
        count, theta = parts[0].certificate.num_records, np.asarray(parts[0].value, np.float64)
        # Under replace alone, where n is public.
        assert count is not None
        noise = box_noise(self.summing, np.random.default_rng(_SEED), _DRAWS)
        squares = np.clip(parts[1].value - noise, 0.0, count) * largest_squares(theta, self.mechanism.bounds)
        hessians = np.broadcast_to(count * np.eye(len(theta)), (_DRAWS, len(theta), len(theta)))
        z = self.mechanism.noise.of_error(len(theta), {}).draws(hessians, _SEED)
        normals = np.random.default_rng(_SEED).standard_normal(squares.shape)
        method = (
            f"the variance of each column, from sums with noise of their own for {self.share:g} of epsilon; the "
            "quantiles are those of the noise less the sampling error over what the noise of the sums may have been"
        )
        assumed = BY_PERSON if self.mechanism.bounds.of_persons else NOTHING_ASSUMED
        return ErrorDraws((z - np.sqrt(squares) * normals) / count, method, (assumed,))


@dataclasses.dataclass(frozen=True, eq=False)
class _Squares(AbstractColumns):
    """Maps records, each by itself, to their squared distances from θ̃, in units of the largest, within [0, 1]."""

    mechanism: Any
    theta: Floats

    def rows(self, X: Any, y: Any) -> Any:
        return self.mechanism.intake.rows(X, y, may_be_empty=True, has_codes=True)

    def made(self, rows: Any) -> np.ndarray:
        x, bounds = np.asarray(rows.rows.x, np.float64), self.mechanism.bounds
        if isinstance(rows, WeightedRecords) and rows.codes is not None:
            # Persons' means, as the weights of each one's rows add up to 1.
            x = sums_by_person(np.asarray(rows.weights)[:, None] * x, rows.codes, rows.num_records)
        away = x - within(self.theta, bounds)[0]
        return np.clip(away * away / largest_squares(self.theta, bounds), 0.0, 1.0)


def largest_squares(theta: Floats, bounds: Bounds) -> Floats:
    """Computes the largest (x_j - θ_j)² of records within the bounds, θ taken within them too."""
    middle, lower, upper = within(theta, bounds)
    largest = np.maximum(upper - middle, middle - lower)
    return np.maximum(largest * largest, np.finfo(np.float64).tiny)


def within(theta: Floats, bounds: Bounds) -> tuple[Floats, Floats, Floats]:
    """Clips θ to the bounds of the columns; returns it with these."""
    with float64():
        lower, upper = (np.asarray(side, np.float64) for side in bounds.features(len(theta)))
    return np.clip(theta, lower, upper), lower, upper
